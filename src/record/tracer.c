/* The registry of the functions that make tracers. Any thread: functions are
 * registered at start-up, and called when a recording begins. */
#include <stdatomic.h>

#include <vestige/tracer.h>

#include "record/recording.h"
#include "record/tracer_noop.h"

static _Atomic(vst_tracer_make_with_context_fn) make_tracer;
static _Atomic(vst_memory_tracer_make_with_context_fn) make_memory_tracer;

/* ---- tracers ------------------------------------------------------------- */

void vst_tracer_register_with_context(vst_tracer_make_with_context_fn make)
{
    atomic_store(&make_tracer, make);
}

vst_tracer_make_with_context_fn vst_tracer_registered(void)
{
    return atomic_load(&make_tracer);
}

vst_status vst_tracer_make(vst_recording *recording, vst_tracer **tracer)
{
    vst_tracer_make_with_context_fn make = atomic_load(&make_tracer);

    if (make != NULL)
        return make(recording, &recording->tracer_context, tracer);
    *tracer = &vst__tracer_noop;
    return VST_OK;
}

/* ---- memory tracers ------------------------------------------------------ */

void vst_memory_tracer_register_with_context(
    vst_memory_tracer_make_with_context_fn make)
{
    atomic_store(&make_memory_tracer, make);
}

vst_status vst_memory_tracer_make(vst_recording *recording,
                                  vst_memory_tracer **tracer)
{
    vst_memory_tracer_make_with_context_fn make =
        atomic_load(&make_memory_tracer);

    if (make != NULL)
        return make(recording, &recording->memory_tracer_context, tracer);
    *tracer = &vst__memory_tracer_noop;
    return VST_OK;
}
