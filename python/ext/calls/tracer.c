/* The Python tracer: an implementation of the contract in <vestige/tracer.h>
 * that the core makes when a recording starts. It starts and stops the parts of
 * a recording; engine.c places the hooks. */
#include "calls/tracer.h"

#include "base/inside.h"
#include "calls/budget.h"
#include "calls/engine.h"
#include "calls/ids.h"
#include "calls/lines.h"
#include "program/exceptions.h"
#include "program/program.h"
#include "program/raise_counts.h"
#include "program/tasks.h"
#include "record/language.h"
#include "record/language_lock.h"

#include <stdio.h>
#include <stdlib.h>

VST_READ_BY_HOOKS struct vpy_calls_hooks vpy_calls_hooks = {
    .code_extra_index = -1,
    .natives = vpy_calls.natives.none,
};

struct vpy_calls_state vpy_calls = {
    .clock = {.lock = PTHREAD_MUTEX_INITIALIZER,
              .rung = PTHREAD_COND_INITIALIZER},
#if VPY_HAS_MONITORING
    .monitoring = {.live_answer = Py_None, .answer = Py_None},
    .tool = {.id = -1},
#endif
};

static struct vpy_tracer_state *const state = &vpy_calls.tracer;

void vpy_options_clear(vpy_options *options)
{
    Py_CLEAR(options->include);
    Py_CLEAR(options->exclude);
    Py_CLEAR(options->record_args);
    Py_CLEAR(options->only);
    Py_CLEAR(options->waits);
}

/* The recorder calls this function with a thread's first record, and after
 * attention was requested of all threads. A free-running thread may not hold
 * the GIL: then there is nothing to do. */
static void tracer_attend(void *ctx)
{
    PyObject *type, *value, *traceback;
    PyThreadState *tstate;

    if (!PyGILState_Check() || !vpy_is_active() || vpy_is_finalizing())
        return;
    tstate = PyThreadState_Get();
    PyErr_Fetch(&type, &value, &traceback);
    vpy_hook_enter(tstate);
    vpy_threads_name_current();
    vpy_state_take();
    if (state->active != NULL && state->active == ctx)
        vst__recording_key_thread(state->active->recording, vst_thread_handle(),
                                  (uintptr_t)tstate);
    vpy_state_give();
    vpy_greenlets_watch_thread();
    vpy_hook_leave(tstate);
    PyErr_Restore(type, value, traceback);
}

static void set_active(vpy_tracer *tracer)
{
    vpy_state_take();
    __atomic_store_n(&state->active, tracer, __ATOMIC_RELAXED);
    vpy_state_give();
}

static void end_parts(void)
{
    vpy_gil_waits_end();
    vpy_object_waits_end();
    vpy_exceptions_end();
    vpy_raise_counts_end(NULL);
    vpy_greenlets_end();
    vpy_tasks_end();
    vpy_code_ids_end();
    vpy_native_ids_end();
    vpy_callable_ids_clear();
    vpy_modules_end();
    set_active(NULL);
}

static void enable_gc(void)
{
    vpy_collections_go_on(state->gc_was_on);
    state->gc_was_on = 0;
}

static bool tracer_is_wanted(const vpy_tracer *tracer)
{
    return tracer->options.with_stack || tracer->options.c_functions;
}

#if VPY_FREE_THREADED
static void hold_threads(bool begins)
{
    if (begins)
        vpy_world_stop();
    else
        vpy_world_start();
}

/* Other threads run meanwhile. So the hooks are placed first, and see no ids
 * until the open calls of all threads are noted at one moment. */
static bool begin_calls(vpy_tracer *tracer)
{
    vst__recording_set_hold(tracer->recording, hold_threads);
    if (tracer->options.sched) {
        /* notes in the trace that there is no GIL */
        vpy_gil_waits_begin(tracer);
        vpy_object_waits_begin(tracer);
    }
    if (tracer_is_wanted(tracer) && !vpy_engine_start(tracer))
        return false;
    vpy_threads_announce_in_stopped_world(tracer);
    return true;
}
#else
/* No Python code may run between noting the open calls and placing the hooks.
 * So the garbage collector, whose finalizers are Python code, is off meanwhile.
 */
static bool begin_calls(vpy_tracer *tracer)
{
    vpy_code_ids_go_live();
    vpy_threads_announce(tracer);
    if (tracer->options.sched)
        vpy_gil_waits_begin(tracer);
    return !tracer_is_wanted(tracer) || vpy_engine_start(tracer);
}
#endif

static vst_status tracer_start(vpy_tracer *tracer)
{
    vst_status status = VST_E_TRACER;

    state->gc_was_on = vpy_collections_put_off();
    state->message[0] = 0;
    vpy_budget_prepare(tracer->options.budget);
    if (!vpy_base.inside.works[VPY_PART_RECORDING]) {
        snprintf(state->message, sizeof state->message, "%s",
                 vpy_part_trouble(VPY_PART_RECORDING));
    } else if (!vpy_code_ids_begin(tracer) || !vpy_native_ids_begin(tracer)) {
        PyErr_Clear();
        status = VST_E_NOMEM;
    } else {
        set_active(tracer);
        vst__recording_set_attention(tracer->recording, tracer_attend, tracer);
        if (tracer->options.with_stack && tracer->options.lines)
            vpy_lines_begin(tracer->recording);
        vpy_exceptions_begin(tracer);
        vpy_raise_counts_begin(tracer);
        vpy_greenlets_begin(tracer);
        if (begin_calls(tracer)) {
            vpy_engine_go_live();
            vpy_budget_begin(tracer);
            tracer->running = true;
            status = VST_OK;
            if (tracer->gc)
                vpy_gc_start(tracer);
        }
    }
    if (status != VST_OK)
        end_parts();
    enable_gc();
    return status;
}

static void tracer_stop(vst_tracer *base)
{
    vpy_tracer *tracer = (vpy_tracer *)base;
    PyObject *type, *value, *traceback;

    if (!tracer->running)
        return;
    PyErr_Fetch(&type, &value, &traceback);
    vpy_budget_end();
    if (tracer_is_wanted(tracer))
        vpy_engine_stop(tracer);
    vpy_gc_stop();
    if (!tracer->is_parents) {
        vpy_threads_name_all();
        vpy_raise_counts_end(tracer->recording);
    }
    end_parts();
    tracer->running = false;
    PyErr_Restore(type, value, traceback);
}

void vpy_tracer_abandon(void)
{
    if (state->active == NULL)
        return;
    /* even if the fork came while the recording started */
    state->active->running = true;
    state->active->is_parents = true;
    tracer_stop(&state->active->base);
    enable_gc();
}

static vst_status tracer_restart(vst_tracer *base)
{
    vpy_tracer *tracer = (vpy_tracer *)base;

    return tracer->running ? VST_E_STATE : tracer_start(tracer);
}

static void register_gc_callback(vst_tracer *base)
{
    vpy_tracer *tracer = (vpy_tracer *)base;

    tracer->gc = true;
    if (tracer->running)
        vpy_gc_start(tracer);
}

/* Turns events into spans with replay's matcher. Called without the GIL. */
static vst_status get_events(vst_tracer *base,
                             const vst_time_converter *converter,
                             const vst_compressed_event *enters, size_t count,
                             int64_t end_time_ns, const vst_sink *sink)
{
    vpy_tracer *tracer = (vpy_tracer *)base;

    if (tracer->matcher == NULL &&
        vst_matcher_create(&tracer->matcher) != VST_OK)
        return VST_E_NOMEM;
    return vst_matcher_feed(tracer->matcher, converter, enters, count,
                            end_time_ns, sink);
}

static void tracer_destroy(vst_tracer *base)
{
    vpy_tracer *tracer = (vpy_tracer *)base;

    tracer_stop(base);
    vst_matcher_destroy(tracer->matcher);
    vpy_options_clear(&tracer->options);
    free(tracer);
}

static const vst_tracer_ops ops = {
    .stop = tracer_stop,
    .restart = tracer_restart,
    .register_gc_callback = register_gc_callback,
    .get_events = get_events,
    .destroy = tracer_destroy,
};

vst_status vpy_tracer_make(vst_recording *recording,
                           const vst_tracer_context *context, vst_tracer **out)
{
    /* For sessions that other code than session/ made. */
    static const vpy_options usual = {.with_stack = true,
                                      .c_functions = true,
                                      .lines = true,
                                      .qualified_names = true,
                                      .spins = true,
                                      .engine = "auto"};
    const vpy_options *options =
        context->options != NULL ? context->options : &usual;
    vpy_tracer *tracer = calloc(1, sizeof *tracer);
    vst_status status = VST_E_NOMEM;

    if (tracer == NULL)
        return status;
    tracer->base.ops = &ops;
    tracer->recording = recording;
    tracer->options = *options;
    Py_XINCREF(tracer->options.include);
    Py_XINCREF(tracer->options.exclude);
    Py_XINCREF(tracer->options.record_args);
    Py_XINCREF(tracer->options.only);
    Py_XINCREF(tracer->options.waits);
    status = tracer_start(tracer);
    if (status != VST_OK) {
        tracer_destroy(&tracer->base);
        return status;
    }
    *out = &tracer->base;
    return VST_OK;
}
