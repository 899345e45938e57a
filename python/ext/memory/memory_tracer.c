/* The memory tracer: implements the contract in <vestige/tracer.h>. The core
 * makes a memory tracer for each recording of memory. It connects the
 * interpreter's allocators with the core's recorder of allocations. All of it
 * runs with the GIL held. */
#include "memory/memory.h"

#include "traceback/traceback.h"

#include <stdlib.h>

struct vpy_memory_state vpy_memory = {
    .nodes = {.generation = 1, .lock = ATOMIC_FLAG_INIT},
};

static struct vpy_memory_tracer_state *const state = &vpy_memory.tracer;

typedef struct vpy_memory_tracer {
    vst_memory_tracer base;
    vst_recording *recording;
    vst_session *session;
    vpy_memory_options options;
} memory_tracer;

/* Between vst_memory_enter and vst_memory_leave allocations are our own and are
 * not recorded. */
static vst_status memory_tracer_start(vst_memory_tracer *base)
{
    memory_tracer *tracer = (memory_tracer *)base;
    vst_memory_options options = {
        .native_allocators = tracer->options.native_allocators,
        .native_stacks = tracer->options.native_stacks,
        .sample_bytes = tracer->options.sample_bytes,
        .stack = vpy_memory_stack,
    };
    vst_status status;

    if (state->active != NULL || state->is_over)
        return state->active != NULL ? VST_E_BUSY : VST_E_STATE;
    vst_memory_enter();
    vpy_memory_stacks_begin(tracer->recording);
    if (options.native_stacks)
        vpy_evaluation_note(tracer->recording);
    vpy_memory_hooks_install();
    status = vst_memory_start(tracer->recording, &options, NULL);
    if (status == VST_OK)
        state->active = tracer;
    else
        vpy_memory_hooks_remove();
    vst_memory_leave();
    return status;
}

static void memory_tracer_stop(vst_memory_tracer *base)
{
    if (state->active == NULL || &state->active->base != base)
        return;
    vst_memory_enter();
    vst_memory_stop();
    vpy_memory_hooks_remove();
    state->active = NULL;
    vst_memory_leave();
}

static vst_status export_memory_history(vst_memory_tracer *base,
                                        const char *path, vst_error *error)
{
    memory_tracer *tracer = (memory_tracer *)base;
    vst_trace *trace;
    vst_status status;

    if (tracer->session == NULL)
        return vst_error_set(error, VST_E_STATE, 0, 0);
    status = vst_session_open_trace(tracer->session, &trace, error);
    if (status != VST_OK)
        return status;
    status = vst_traces_export_memory(&trace, 1, path, NULL, error);
    vst_trace_close(trace);
    return status;
}

static void memory_tracer_destroy(vst_memory_tracer *base)
{
    memory_tracer_stop(base);
    free(base);
}

static const vst_memory_tracer_ops ops = {
    .start = memory_tracer_start,
    .stop = memory_tracer_stop,
    .export_memory_history = export_memory_history,
    .destroy = memory_tracer_destroy,
};

/* context->options are vpy_memory_options. */
static vst_status memory_tracer_make(vst_recording *recording,
                                     const vst_tracer_context *context,
                                     vst_memory_tracer **out)
{
    static const vpy_memory_options usual = {.native_allocators = true};
    const vpy_memory_options *options =
        context->options != NULL ? context->options : &usual;
    memory_tracer *tracer = calloc(1, sizeof *tracer);

    if (tracer == NULL)
        return VST_E_NOMEM;
    tracer->base.ops = &ops;
    tracer->recording = recording;
    tracer->session = context->session;
    tracer->options = *options;
    *out = &tracer->base;
    return VST_OK;
}

void vpy_memory_abandon(void)
{
    if (state->active != NULL)
        memory_tracer_stop(&state->active->base);
}

/* Registered with atexit, and runs after functions that were registered later.
 * From then on no hook reads objects that the interpreter frees at its end. */
static PyObject *memory_tracer_end(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    state->is_over = true;
    if (state->active != NULL)
        memory_tracer_stop(&state->active->base);
    Py_RETURN_NONE;
}

static PyMethodDef end_method = {"vestige_memory_at_exit", memory_tracer_end,
                                 METH_NOARGS, NULL};

static PyObject *is_tracing(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(vst_memory_is_tracing());
}

static PyMethodDef functions[] = {
    {"memory_is_tracing", is_tracing, METH_NOARGS,
     PyDoc_STR("memory_is_tracing()\n--\n\nWhether memory is being recorded "
               "in this process.")},
    {NULL, NULL, 0, NULL},
};

int vpy_memory_init(PyObject *module)
{
    if (vpy_at_exit(&end_method) < 0 ||
        PyModule_AddFunctions(module, functions) < 0)
        return -1;
    vst_memory_tracer_register_with_context(memory_tracer_make);
    return 0;
}
