/* Spans that the program names itself: record_function is a context manager. If
 * nothing is recorded, a span costs a comparison. */
#include "annotate/annotate.h"

#include "base/json.h"
#include "program/triggers.h"
#include "record/language.h"

#include <structmember.h>

/* Values of `bound`: the method as which a span was looked up, see
 * self_bound.c. */
enum { BOUND_ENTER = 1, BOUND_EXIT = 2 };

struct vpy_annotate_state vpy_annotate = {
    .graph = {.last_record = UINT64_C(1) << 40},
};

typedef struct annotation {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *name;
    PyObject *args;   /* str or None */
    PyObject *values; /* a tuple whose shapes are recorded, or NULL */
    PyObject *theirs; /* the framework's span that replaces this one, or NULL */
    bool stack;       /* record the call stack */
    bool open_ended;  /* a future ends the span, not __exit__ */
    unsigned char bound;
    vst_id id; /* 0: not entered, or entered without a recording */
    uint32_t instance;
    uint32_t recording; /* the recording that id belongs to */
    vst_ticks since;    /* 0: no trigger needs the duration */
    const void *buffer; /* the buffer of the thread that began the span */
} annotation;

/* ---- record_function ----------------------------------------------------- */

/* Takes the arguments after the name: one text, or values whose shapes are
 * recorded. */
static int annotation_take_values(annotation *self, PyObject *const *values,
                                  Py_ssize_t count)
{
    PyObject *text = Py_None;

    if (count == 1 && (PyUnicode_Check(values[0]) || values[0] == Py_None)) {
        text = values[0];
    } else if (count) {
        PyObject *tuple = PyTuple_New(count);
        if (tuple == NULL)
            return -1;
        for (Py_ssize_t i = 0; i < count; i++)
            PyTuple_SET_ITEM(tuple, i, Py_NewRef(values[i]));
        Py_XSETREF(self->values, tuple);
    }
    Py_INCREF(text);
    Py_XSETREF(self->args, text);
    return 0;
}

static int annotation_take_name(annotation *self, PyObject *name)
{
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError,
                     "record_function: name must be a str, not %.100s",
                     Py_TYPE(name)->tp_name);
        return -1;
    }
    Py_INCREF(name);
    Py_XSETREF(self->name, name);
    return 0;
}

static int annotation_init(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"name", "args", "stack", NULL};
    annotation *self = (annotation *)object;
    PyObject *name, *extra = Py_None, *none;
    Py_ssize_t count = PyTuple_GET_SIZE(args);
    int stack = 0;

    if (count > 1) { /* parse the name, and `stack` as the only keyword */
        PyObject *head = PyTuple_GetSlice(args, 0, 1);
        int failed =
            head == NULL ||
            !PyArg_ParseTupleAndKeywords(head, kw, "O|$Op:record_function",
                                         names, &name, &none, &stack) ||
            annotation_take_name(self, name) < 0 ||
            annotation_take_values(self, &PyTuple_GET_ITEM(args, 1), count - 1);
        Py_XDECREF(head);
        self->stack = stack;
        return failed ? -1 : 0;
    }
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O|O$p:record_function", names,
                                     &name, &extra, &stack) ||
        annotation_take_name(self, name) < 0)
        return -1;
    if (extra != Py_None && !PyUnicode_Check(extra)) {
        PyErr_Format(PyExc_TypeError,
                     "record_function: args must be a str or None, not %.100s",
                     Py_TYPE(extra)->tp_name);
        return -1;
    }
    self->stack = stack;
    return annotation_take_values(self, &extra, 1);
}

static PyObject *call_annotation(PyObject *object, PyObject *const *args,
                                 size_t flagged, PyObject *names);

static PyObject *annotation_new(PyTypeObject *type, PyObject *args,
                                PyObject *kw)
{
    annotation *self = (annotation *)type->tp_alloc(type, 0);

    (void)args, (void)kw;
    if (self != NULL)
        self->call = call_annotation;
    return (PyObject *)self;
}

/* Handles the common call, record_function("name"), without making a tuple of
 * arguments. */
static PyObject *annotation_vectorcall(PyObject *type, PyObject *const *args,
                                       size_t flagged, PyObject *names)
{
    Py_ssize_t count = PyVectorcall_NARGS(flagged);
    annotation *self;

    if (count == 0 || (names != NULL && PyTuple_GET_SIZE(names))) {
        PyObject *tuple = PyTuple_New(count), *dict = NULL, *made = NULL;
        for (Py_ssize_t i = 0; tuple != NULL && i < count; i++)
            PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
        if (tuple != NULL && names != NULL && (dict = PyDict_New()) != NULL)
            for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++)
                if (PyDict_SetItem(dict, PyTuple_GET_ITEM(names, i),
                                   args[count + i]) < 0)
                    Py_CLEAR(dict);
        if (tuple != NULL && (dict != NULL || names == NULL))
            made = annotation_new((PyTypeObject *)type, NULL, NULL);
        if (made != NULL && annotation_init(made, tuple, dict) < 0)
            Py_CLEAR(made);
        Py_XDECREF(tuple);
        Py_XDECREF(dict);
        return made;
    }
    self = (annotation *)annotation_new((PyTypeObject *)type, NULL, NULL);
    if (self != NULL && (annotation_take_name(self, args[0]) < 0 ||
                         annotation_take_values(self, args + 1, count - 1) < 0))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void record_arguments(const annotation *self)
{
    vpy_json json = {.length = 0};
    const char *bytes;
    uint32_t length;
    PyObject *text = vpy_text(self->args, &bytes, &length);

    if (self->values != NULL)
        json.length =
            vpy_shapes_put(self->values, json.bytes, sizeof json.bytes / 2);
    if (text != NULL) {
        vpy_json_key(&json, "args", 4);
        vpy_json_string(&json, bytes, length, 1000);
        Py_DECREF(text);
    }
    if (self->stack || vpy_wants_call_stacks())
        vpy_call_stack_put(&json);
    if (json.length)
        vst_record_args(json.bytes, json.length);
}

static void annotation_begin_node(const annotation *self)
{
    vpy_node node;

    vpy_node_prepare(&node, self->args, self->values);
    /* may store a record, which must come before the span's */
    vst_thread_enter_free();
    vst_record_begin(self->id, self->instance);
    vpy_node_record(&node);
}

static PyObject *annotation_enter(PyObject *object, PyObject *unused)
{
    annotation *self = (annotation *)object;

    (void)unused;
    self->id = 0;
    self->open_ended = false;
    if (vpy_annotate.framework.span != NULL && self->name != NULL &&
        vpy_framework_listens()) {
        Py_XSETREF(self->theirs, vpy_framework_enter(self->name, self->args));
        return self->theirs != NULL ? Py_NewRef(object) : NULL;
    }
    if (vpy_is_recording() && self->name != NULL) {
        self->id = vpy_annotation_id(self->name, &self->recording);
        self->instance = __atomic_add_fetch(
            &vpy_annotate.annotation.last_instance, 1, __ATOMIC_RELAXED);
        if (self->id) {
            if (vpy_graph_observer_now())
                annotation_begin_node(self);
            else
                vst_record_begin(self->id, self->instance);
            self->buffer = vst_thread_buffer;
            self->since = vpy_triggers_want_times() ? vst_clock_ticks() : 0;
            if (self->args != Py_None || self->values != NULL || self->stack ||
                vpy_wants_call_stacks())
                record_arguments(self);
        }
    }
    Py_INCREF(object);
    return object;
}

/* Ends a span. members: a str of JSON members that belong to the span, or NULL.
 * inside: see annotation_end_inside. */
static void annotation_end_with(const annotation *self, PyObject *members,
                                bool inside)
{
    const char *bytes;
    uint32_t length;
    PyObject *text = vpy_text(members, &bytes, &length);

    if (text != NULL && length)
        vst_record_end_args(self->id, self->instance, bytes, length);
    else if (inside)
        vst__record_end_inside(self->id, self->instance);
    else
        vst_record_end(self->id, self->instance);
    Py_XDECREF(text);
}

static void end_annotation(annotation *self, PyObject *members, bool inside)
{
    if (self->id && vpy_annotation_is_of_now(self->recording)) {
        if (VST_LIKELY(self->buffer == vst_thread_buffer && members == NULL &&
                       !inside))
            vst_record_end(self->id, self->instance);
        else if (self->buffer == vst_thread_buffer)
            annotation_end_with(self, members, inside);
        else
            vpy_far_end(self->buffer, self->id, self->instance,
                        self->recording);
        if (self->since)
            vpy_triggers_annotation_ends(self->name, self->since);
    }
    self->id = 0;
}

static PyObject *annotation_exit(PyObject *object, PyObject *const *args,
                                 Py_ssize_t count)
{
    annotation *self = (annotation *)object;
    PyObject *theirs = self->theirs;

    if (theirs != NULL) {
        self->theirs = NULL;
        return vpy_framework_exit(theirs, args, count);
    }
    if (!self->open_ended)
        end_annotation(self, NULL, false);
    Py_RETURN_NONE;
}

/* Leaves the span without ending it, for spans that last until a future is done
 * (annotate.py). */
static PyObject *annotation_leave_open(PyObject *object, PyObject *unused)
{
    annotation *self = (annotation *)object;

    (void)unused;
    if (self->open_ended) {
        PyErr_SetString(
            PyExc_RuntimeError,
            "_call_end_callbacks_on_future can only be called once.");
        return NULL;
    }
    self->open_ended = true;
    Py_RETURN_NONE;
}

static PyObject *annotation_end(PyObject *object, PyObject *args)
{
    PyObject *members = NULL;

    if (!PyArg_ParseTuple(args, "|U:_end", &members))
        return NULL;
    end_annotation((annotation *)object, members, false);
    Py_RETURN_NONE;
}

/* Ends the span before the calls that end it, so that it does not overlap them.
 */
static PyObject *annotation_end_inside(PyObject *object, PyObject *unused)
{
    (void)unused;
    end_annotation((annotation *)object, NULL, true);
    Py_RETURN_NONE;
}

/* Calls a function of annotate.py, which handles decorators and futures. */
static PyObject *annotation_call_module(const char *function, PyObject *self,
                                        PyObject *argument)
{
    PyObject *home = PyImport_ImportModule("vestige.annotate");
    PyObject *result =
        home != NULL ? PyObject_CallMethod(home, function, "OO", self, argument)
                     : NULL;

    Py_XDECREF(home);
    return result;
}

/* Calls a span as its __enter__, as its __exit__, or as a decorator. */
static PyObject *call_annotation(PyObject *object, PyObject *const *args,
                                 size_t flagged, PyObject *names)
{
    unsigned bound = ((annotation *)object)->bound;
    Py_ssize_t count = PyVectorcall_NARGS(flagged);

    if (names != NULL && PyTuple_GET_SIZE(names))
        count = -1;
    if (count == 0 && bound & BOUND_ENTER)
        return annotation_enter(object, NULL);
    if (count == 3 && bound & BOUND_EXIT)
        return annotation_exit(object, args, count);
    if (count != 1)
        return PyErr_Format(PyExc_TypeError,
                            "record_function decorates one function");
    return annotation_call_module("_decorate", object, args[0]);
}

static PyObject *annotation_on_future(PyObject *object, PyObject *future)
{
    return annotation_call_module("_on_future", object, future);
}

static void annotation_dealloc(PyObject *object)
{
    annotation *self = (annotation *)object;
    PyTypeObject *type = Py_TYPE(object);

    Py_XDECREF(self->name);
    Py_XDECREF(self->args);
    Py_XDECREF(self->values);
    Py_XDECREF(self->theirs);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMemberDef annotation_members[] = {
    {"name", T_OBJECT, offsetof(annotation, name), READONLY, NULL},
    {"args", T_OBJECT, offsetof(annotation, args), READONLY, NULL},
    {"_values", T_OBJECT, offsetof(annotation, values), READONLY, NULL},
    {"_theirs", T_OBJECT, offsetof(annotation, theirs), READONLY, NULL},
    {"stack", T_BOOL, offsetof(annotation, stack), READONLY, NULL},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(annotation, call), READONLY,
     NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef annotation_methods[] = {
    {"__enter__", annotation_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))annotation_exit, METH_FASTCALL,
     NULL},
    {"_leave_open", annotation_leave_open, METH_NOARGS, NULL},
    {"_end", annotation_end, METH_VARARGS, NULL},
    {"_end_inside", annotation_end_inside, METH_NOARGS, NULL},
    {"_call_end_callbacks_on_future", annotation_on_future, METH_O,
     PyDoc_STR("_call_end_callbacks_on_future(future)\n--\n\nMake the span "
               "last until the future is done. Returns the future.")},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(
    annotation_doc,
    "record_function(name, *args, stack=False)\n--\n\n"
    "A named span: `with record_function(\"load\"): …`, or "
    "`@record_function(\"load\")` before a function.\n\n"
    "As a decorator it makes a new span for every call, so the function may "
    "recurse and run in several\nthreads or tasks. A coroutine function "
    "remains a coroutine function, and its span lasts from the first\nawait to "
    "the end; generator functions likewise.\n\n"
    "If one str follows the name, it is recorded as it is. Of other values "
    "the shapes and element types of\narrays are recorded: of objects that "
    "have a buffer, an __array_interface__ or __dlpack__. With stack=True\nthe "
    "trace also shows where the span was begun: the call stack is among its "
    "arguments.");

static PyType_Slot annotation_slots[] = {
    {Py_tp_init, annotation_init},       {Py_tp_new, annotation_new},
    {Py_tp_call, PyVectorcall_Call},     {Py_tp_dealloc, annotation_dealloc},
    {Py_tp_members, annotation_members}, {Py_tp_methods, annotation_methods},
    {Py_tp_doc, (void *)annotation_doc}, {0, NULL},
};

static PyType_Spec annotation_spec = {
    .name = "vestige.record_function",
    .basicsize = sizeof(annotation),
    .flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = annotation_slots,
};

int vpy_annotation_init(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &annotation_spec, NULL);

    if (type == NULL ||
        vpy_self_bound((PyTypeObject *)type, "__enter__",
                       offsetof(annotation, bound), BOUND_ENTER) < 0 ||
        vpy_self_bound((PyTypeObject *)type, "__exit__",
                       offsetof(annotation, bound), BOUND_EXIT) < 0 ||
        PyModule_AddType(module, (PyTypeObject *)type) < 0) {
        Py_XDECREF(type);
        return -1;
    }
    ((PyTypeObject *)type)->tp_vectorcall = annotation_vectorcall;
    Py_DECREF(type);
    return 0;
}
