/* Spans, instants and counters that the program names itself. record_function
 * is a context manager; when nothing is recorded it costs a comparison. */
#include "vpy.h"

#include <structmember.h>

vst_queue *vpy_recording_queue;

typedef struct annotation {
    PyObject_HEAD PyObject *name;
    PyObject *args; /* str or None */
    bool stack;     /* its call stack is recorded */
    vst_id id;      /* 0: not entered, or nothing was recorded then */
    uint32_t instance;
    uint32_t recording; /* the recording that id belongs to */
    vst_ticks since;    /* 0: no trigger asks how long it lasts */
} annotation;

static uint32_t last_instance;

/* Counts recordings, so that ids are not carried from one to the next. */
static uint32_t recording_number;
static vst_queue *numbered_queue;

static uint32_t current_recording(void)
{
    if (numbered_queue != vpy_recording_queue) {
        numbered_queue = vpy_recording_queue;
        recording_number++;
    }
    return recording_number;
}

/* The next queue may lie at the same address. */
void vpy_annotation_forget(vst_queue *queue)
{
    if (numbered_queue == queue)
        numbered_queue = NULL;
}

static vst_id define(vst_definition_kind kind, PyObject *name)
{
    vst_definition definition = {.kind = kind};
    vst_id id = 0;
    PyObject *text = vpy_text(name, &definition.name, &definition.name_len);

    if (text &&
        vst_queue_define(vpy_recording_queue, &definition, &id) != VST_OK)
        id = 0;
    Py_XDECREF(text);
    return id;
}

/* ---- record_function --------------------------------------------------- */

static int annotation_init(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"name", "args", "stack", NULL};
    annotation *self = (annotation *)object;
    PyObject *name, *extra = Py_None;
    int stack = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "U|O$p:record_function", names,
                                     &name, &extra, &stack))
        return -1;
    if (extra != Py_None && !PyUnicode_Check(extra)) {
        PyErr_Format(PyExc_TypeError,
                     "record_function: args must be a str or None, not %.100s",
                     Py_TYPE(extra)->tp_name);
        return -1;
    }
    Py_INCREF(name);
    Py_XSETREF(self->name, name);
    Py_INCREF(extra);
    Py_XSETREF(self->args, extra);
    self->stack = stack;
    return 0;
}

static void record_arguments(const annotation *self)
{
    vpy_json json = {.length = 0};
    const char *bytes;
    uint32_t length;
    PyObject *text = vpy_text(self->args, &bytes, &length);

    if (text) {
        vpy_json_key(&json, "args", 4);
        vpy_json_string(&json, bytes, length, 1000);
        Py_DECREF(text);
    }
    if (self->stack || vpy_call_stacks)
        vpy_call_stack_put(&json);
    if (json.length)
        vst_record_args(json.bytes, json.length);
}

static PyObject *annotation_enter(PyObject *object, PyObject *unused)
{
    annotation *self = (annotation *)object;

    (void)unused;
    self->id = 0;
    if (vpy_recording_queue && self->name) {
        self->id = define(VST_DEF_ANNOTATION, self->name);
        self->instance = ++last_instance;
        self->recording = current_recording();
        if (self->id) {
            vst_record_begin(self->id, self->instance);
            self->since = vpy_triggers_want_times() ? vst_clock_ticks() : 0;
            if (self->args != Py_None || self->stack || vpy_call_stacks)
                record_arguments(self);
        }
    }
    Py_INCREF(object);
    return object;
}

static PyObject *annotation_exit(PyObject *object, PyObject *const *args,
                                 Py_ssize_t count)
{
    annotation *self = (annotation *)object;

    (void)args, (void)count;
    if (self->id && vpy_recording_queue &&
        self->recording == current_recording()) {
        vst_record_end(self->id, self->instance);
        if (self->since)
            vpy_triggers_annotation_ends(self->name, self->since);
    }
    self->id = 0;
    Py_RETURN_NONE;
}

static int annotation_traverse(PyObject *object, visitproc visit, void *arg)
{
    annotation *self = (annotation *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->name);
    Py_VISIT(self->args);
    return 0;
}

static int annotation_clear(PyObject *object)
{
    annotation *self = (annotation *)object;

    Py_CLEAR(self->name);
    Py_CLEAR(self->args);
    return 0;
}

static void annotation_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    PyObject_GC_UnTrack(object);
    annotation_clear(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMemberDef annotation_members[] = {
    {"name", T_OBJECT, offsetof(annotation, name), READONLY, NULL},
    {"args", T_OBJECT, offsetof(annotation, args), READONLY, NULL},
    {"stack", T_BOOL, offsetof(annotation, stack), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef annotation_methods[] = {
    {"__enter__", annotation_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))annotation_exit, METH_FASTCALL,
     NULL},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(annotation_doc, "record_function(name, args=None, *, "
                             "stack=False)\n--\n\n"
                             "A named span around a block of code.");

static PyType_Slot annotation_slots[] = {
    {Py_tp_init, annotation_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_traverse, annotation_traverse},
    {Py_tp_clear, annotation_clear},
    {Py_tp_dealloc, annotation_dealloc},
    {Py_tp_members, annotation_members},
    {Py_tp_methods, annotation_methods},
    {Py_tp_doc, (void *)annotation_doc},
    {0, NULL},
};

static PyType_Spec annotation_spec = {
    .name = "vestige._core.record_function",
    .basicsize = sizeof(annotation),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = annotation_slots,
};

/* ---- points ------------------------------------------------------------ */

static PyObject *instant(PyObject *module, PyObject *args)
{
    PyObject *name, *members = NULL;

    (void)module;
    if (!PyArg_ParseTuple(args, "U|U:instant", &name, &members))
        return NULL;
    if (vpy_recording_queue) {
        const char *bytes = "";
        uint32_t length = 0;
        PyObject *text = vpy_text(members, &bytes, &length);
        vst_id id = define(VST_DEF_INSTANT, name);
        if (id)
            vst_record_instant(id, bytes, length);
        Py_XDECREF(text);
    }
    Py_RETURN_NONE;
}

static PyObject *counter(PyObject *module, PyObject *args)
{
    PyObject *name;
    double value;

    (void)module;
    if (!PyArg_ParseTuple(args, "Ud:counter", &name, &value))
        return NULL;
    if (vpy_recording_queue) {
        vst_id id = define(VST_DEF_COUNTER, name);
        if (id)
            vst_record_counter(id, value);
    }
    Py_RETURN_NONE;
}

static PyObject *recording(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(vpy_recording_queue != NULL);
}

static PyObject *set_call_stacks(PyObject *module, PyObject *on)
{
    int truth = PyObject_IsTrue(on);

    (void)module;
    if (truth < 0)
        return NULL;
    vpy_call_stacks = truth;
    if (!truth)
        vpy_call_stacks_forget();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_annotation_stacks", set_call_stacks, METH_O,
     PyDoc_STR("set_annotation_stacks(on)\n--\n\nWhether every annotation "
               "has its call stack; False forgets those that were named.")},
    {"instant", instant, METH_VARARGS,
     PyDoc_STR("instant(name, json_members='')\n--\n\nRecords a moment.")},
    {"counter", counter, METH_VARARGS,
     PyDoc_STR("counter(name, value)\n--\n\nRecords a number over time.")},
    {"recording", recording, METH_NOARGS,
     PyDoc_STR("recording()\n--\n\nWhether something is being recorded.")},
    {NULL, NULL, 0, NULL},
};

int vpy_annotation_init(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &annotation_spec, NULL);

    if (!type || PyModule_AddType(module, (PyTypeObject *)type) < 0) {
        Py_XDECREF(type);
        return -1;
    }
    Py_DECREF(type);
    return PyModule_AddFunctions(module, functions);
}
