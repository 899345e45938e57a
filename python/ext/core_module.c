/* vestige._core: puts the extension together. Loading it registers the Python
 * tracer with the core, which from then on makes a tracer for every recording.
 * The module belongs to the main interpreter. */
#include "annotate/annotate.h"
#include "base/inside.h"
#include "base/own_code.h"
#include "calls/engine.h"
#include "calls/ids.h"
#include "memory/memory.h"
#include "program/program.h"
#include "program/tasks.h"
#include "read/read.h"
#include "session/session.h"
#include "traceback/traceback.h"

#include <vestige/api.h>

static void module_record(vst_kind kind, vst_id id)
{
    vst_record(kind, id);
}

static void *traceback_object(vst_traceback *traceback)
{
    return vpy_traceback_object(traceback);
}

/* Frameworks' allocations have no stacks: the hooks of native allocators see
 * the same bytes and record stacks when memory is traced as a whole. */
static void framework_allocated(uintptr_t address, size_t size)
{
    vst_record_alloc(VST_MEMORY_FRAMEWORK, address, size, 0, 0,
                     vst_clock_ticks());
}

static void framework_freed(uintptr_t address)
{
    vst_record_free(VST_MEMORY_FRAMEWORK_FREE, address, 0, vst_clock_ticks());
}

static void framework_freed_size(uintptr_t address, size_t size)
{
    vst_record_free(VST_MEMORY_FRAMEWORK_FREE, address, size,
                    vst_clock_ticks());
}

static vst_buffer **thread_buffer(void)
{
    return &vst_thread_buffer;
}

static const vst_api api = {
    .size = sizeof(vst_api),
    .tracer_register_with_context = vst_tracer_register_with_context,
    .tracer_registered = vst_tracer_registered,
    .recording_define_id = vst_recording_define_id,
    .thread_enter_free = vst_thread_enter_free,
    .record = module_record,
    .matcher_create = vst_matcher_create,
    .matcher_destroy = vst_matcher_destroy,
    .matcher_feed = vst_matcher_feed,
    .traceback_capture = vst_traceback_capture,
    .traceback_addresses = vst_traceback_addresses,
    .traceback_of = vst_traceback_of,
    .traceback_retain = vst_traceback_retain,
    .traceback_release = vst_traceback_release,
    .traceback_free_dead = vst_traceback_free_dead,
    .traceback_object = traceback_object,
    .recording_define = vst_recording_define,
    .record_operator = vst_record_operator,
    .record_operator_exit = vst_record_operator_exit,
    .framework_allocated = framework_allocated,
    .framework_freed = framework_freed,
    .record_node = vst_record_node,
    .record_far_end = vst_record_far_end,
    .framework_freed_size = framework_freed_size,
    .thread_buffer = thread_buffer,
    .recording_epoch = &vst_recording_epoch,
    .clock_in_use = &vst_clock_in_use,
    .clock_ticks = vst_clock_ticks_portable,
    .record_storages = vst_record_storages,
    .call_instead = vst_call_instead,
    .collector_register = vst_collector_register,
    .collector_unregister = vst_collector_unregister,
    .collector_tell = vst_collector_tell,
    .device_declare = vst_device_declare,
    .device_declare_stream = vst_device_declare_stream,
    .device_sync = vst_device_sync,
    .device_deliver = vst_device_deliver,
    .device_lost = vst_device_lost,
    .clock_ticks_per_second = vst_clock_ticks_per_second,
};

static PyObject *set_torch_mode(PyObject *module, PyObject *on)
{
    int truth = PyObject_IsTrue(on);

    (void)module;
    if (truth < 0)
        return NULL;
    vpy_calls.engine.torch_mode = truth;
    Py_RETURN_NONE;
}

static PyObject *module_hooks_in_place(PyObject *module, PyObject *unused)
{
    PyObject *result;

    vpy_control_take();
    result = vpy_engine_hooks_in_place(module, unused);
    vpy_control_give();
    return result;
}

static PyObject *engine_choices(PyObject *module, PyObject *unused)
{
    PyObject *result;

    vpy_control_take();
    result = vpy_engine_choices(module, unused);
    vpy_control_give();
    return result;
}

static PyObject *gil_waits_trouble(PyObject *module, PyObject *unused)
{
    const char *trouble;

    (void)module, (void)unused;
    vpy_control_take();
    vpy_gil_waits_prepare();
    trouble = vpy_gil_waits_trouble();
    vpy_control_give();
    return PyUnicode_FromString(trouble != NULL ? trouble : "");
}

static PyObject *object_waits_trouble(PyObject *module, PyObject *unused)
{
    const char *trouble;

    (void)module, (void)unused;
    vpy_control_take();
    vpy_object_waits_prepare();
    trouble = vpy_object_waits_trouble();
    vpy_control_give();
    return PyUnicode_FromString(trouble != NULL ? trouble : "");
}

static PyObject *can_see_switches(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromLong(vst_session_can_see_switches());
}

static PyMethodDef functions[] = {
    {"gil_waits_trouble", gil_waits_trouble, METH_NOARGS,
     PyDoc_STR("gil_waits_trouble()\n--\n\nWhy waits for the GIL cannot be "
               "recorded; \"\" if they can.")},
    {"object_waits_trouble", object_waits_trouble, METH_NOARGS,
     PyDoc_STR(
         "object_waits_trouble()\n--\n\nWhy waits for locks of "
         "objects and for a stopped world cannot be recorded without the GIL; "
         "\"\" if they can.")},
    {"can_see_switches", can_see_switches, METH_NOARGS,
     PyDoc_STR("can_see_switches()\n--\n\n0 if the system shows when threads "
               "run, else the errno of its refusal.")},
    {"set_torch_mode", set_torch_mode, METH_O,
     PyDoc_STR("set_torch_mode(on)\n--\n\nUse the monitoring tool id that "
               "torch.profiler would use.")},
    {"hooks_in_place", module_hooks_in_place, METH_NOARGS,
     PyDoc_STR("hooks_in_place()\n--\n\nHow many hooks of vestige's are "
               "installed now; 0 while nothing is recorded.")},
    {"engine_choices", engine_choices, METH_NOARGS,
     PyDoc_STR(
         "engine_choices()\n--\n\nThe engine that \"auto\" stands for, and "
         "for each engine why it cannot be used here, or None.")},
    {NULL, NULL, 0, NULL},
};

static int check_interpreter(void)
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError,
                        "vestige works in the main interpreter only, not in "
                        "sub-interpreters");
        return -1;
    }
    return 0;
}

static int add_constants(PyObject *module)
{
    PyObject *capsule =
        PyCapsule_New((void *)(uintptr_t)&api, VST_API_CAPSULE, NULL);
    PyObject *engines = vpy_engine_names();
    int failed =
        PyModule_AddObjectRef(module, "api", capsule) < 0 ||
        PyModule_AddObjectRef(module, "engines", engines) < 0 ||
        PyModule_AddStringConstant(module, "__version__", VPY_VERSION) < 0;

    Py_XDECREF(capsule);
    Py_XDECREF(engines);
    return failed ? -1 : 0;
}

/* The module's functions, in addition to `functions`. */
static PyMethodDef *const tables[] = {
    vpy_points_functions,        vpy_nodes_functions,
    vpy_fast_contexts_functions, vpy_framework_spans_functions,
    vpy_tensors_functions,       vpy_modules_functions,
    vpy_noted_functions,         vpy_program_functions,
    vpy_snapshot_functions,      vpy_watch_functions,
    vpy_copies_functions,        vpy_own_code_functions,
    vpy_memory_names_functions};

static int add_functions(PyObject *module)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (PyModule_AddFunctions(module, tables[i]) < 0)
            return -1;
    return 0;
}

static int module_exec(PyObject *module)
{
    if (check_interpreter() < 0 || vpy_errors_init(module) < 0 ||
        vpy_names_init() < 0 || vpy_code_ids_init() < 0 ||
        vpy_callable_ids_init() < 0 ||
        vpy_inside_init(module, vpy_calls_hooks.code_extra_index) < 0 ||
        vpy_forks_init(module) < 0 || vpy_exits_init(module) < 0 ||
        vpy_gc_init() < 0 || vpy_tasks_init() < 0 ||
        vpy_engines_init(module) < 0 || vpy_trace_type_init(module) < 0 ||
        vpy_session_type_init(module) < 0 || vpy_pack_init(module) < 0 ||
        vpy_histograms_init(module) < 0 || vpy_rows_init(module) < 0 ||
        vpy_tables_init(module) < 0 || vpy_view_init(module) < 0 ||
        vpy_growing_init(module) < 0 || vpy_lanes_init(module) < 0 ||
        vpy_annotation_init(module) < 0 || vpy_traceback_init(module) < 0 ||
        vpy_memory_init(module) < 0 || vpy_collectors_init(module, &api) < 0 ||
        add_functions(module) < 0 || add_constants(module) < 0)
        return -1;
    vst_tracer_register_with_context(vpy_tracer_make);
    vpy_storage_guard_init();
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
#if VPY_FREE_THREADED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "vestige._core",
    .m_doc = "Hooks, sessions and traces. Use the vestige package instead.",
    .m_size = 0,
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
