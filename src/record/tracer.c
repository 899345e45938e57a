/* The registry: who makes a tracer. Registering happens at start-up, making
 * when a recording begins; both may happen on any thread. */
#include <stdatomic.h>

#include <vestige/tracer.h>

#include "record/tracer_noop.h"

static _Atomic(vst_tracer_make_fn) make_tracer;
static _Atomic(vst_memory_tracer_make_fn) make_memory_tracer;

void vst_tracer_register(vst_tracer_make_fn make)
{
    atomic_store(&make_tracer, make);
}

vst_tracer_make_fn vst_tracer_registered(void)
{
    return atomic_load(&make_tracer);
}

vst_status vst_tracer_make(vst_recording *recording, vst_tracer **tracer)
{
    vst_tracer_make_fn make = atomic_load(&make_tracer);

    if (make)
        return make(recording, tracer);
    *tracer = &vst__tracer_noop;
    return VST_OK;
}

void vst_memory_tracer_register(vst_memory_tracer_make_fn make)
{
    atomic_store(&make_memory_tracer, make);
}

vst_status vst_memory_tracer_make(vst_recording *recording,
                                  vst_memory_tracer **tracer)
{
    vst_memory_tracer_make_fn make = atomic_load(&make_memory_tracer);

    if (make)
        return make(recording, tracer);
    *tracer = &vst__memory_tracer_noop;
    return VST_OK;
}
