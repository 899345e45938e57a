/* Tracebacks as Python objects: Traceback, one for each distinct stack, and
 * CapturedTraceback, which holds a Traceback until it is cleared. The core
 * keeps the frames. This file has the table of functions through which the core
 * reaches Python's frames, and shows the garbage collector their references. */
#include "traceback/traceback.h"

#include "traceback/language.h"

#include <structmember.h>

struct vpy_tracebacks_state vpy_tracebacks = {
    .evaluation = {.once = PTHREAD_ONCE_INIT},
};

static const vst_unwinder unwinder = {
    .gather = vpy_frames_gather,
    .leave = vpy_frames_leave,
    .retain = vpy_code_refs_retain,
    .release = vpy_code_refs_release,
    .enter = vpy_frames_enter,
    .append_symbolized = vpy_traceback_append,
    .is_evaluation = vpy_is_evaluation,
};

/* ---- Traceback ----------------------------------------------------------- */

typedef struct visitor {
    visitproc visit;
    void *arg;
} visitor;

static int visit_code(void *code, void *arg)
{
    visitor *to = arg;
    PyObject *ref = vpy_code_ref(code);

    return ref != NULL ? to->visit(ref, to->arg) : 0;
}

static int traceback_traverse(PyObject *object, visitproc visit, void *arg)
{
    vpy_traceback *self = (vpy_traceback *)object;
    visitor to = {visit, arg};

    if (self->handle == NULL)
        return 0;
    return vst__traceback_traverse(self->handle, visit_code, &to);
}

/* Removes the traceback's pointer to its object. The state lock keeps the
 * object from being freed while another thread tries to take a reference. If
 * that thread fails, it may have set another object. */
static void traceback_forget_object(vst_traceback *handle,
                                    const PyObject *object)
{
    vpy_state_take();
    if (vst__traceback_get_user(handle) == object)
        vst__traceback_set_user(handle, NULL);
    vpy_state_give();
}

/* Returns the object of a traceback: a new reference, or NULL if there is none.
 * Call with the state lock. */
static PyObject *find_object(vst_traceback *handle)
{
    PyObject *object = vst__traceback_get_user(handle);

    return object != NULL && vpy_try_incref(object) ? object : NULL;
}

static int traceback_clear(PyObject *object)
{
    vpy_traceback *self = (vpy_traceback *)object;
    vst_traceback *handle = self->handle;

    self->handle = NULL;
    if (handle != NULL) {
        traceback_forget_object(handle, object);
        if (vst__traceback_is_sole(handle))
            vst__traceback_clear(handle);
        vst_traceback_release(handle);
    }
    return 0;
}

/* May run under any lock of the program. So it only releases the traceback,
 * which the core frees later. */
static void traceback_dealloc(PyObject *object)
{
    vpy_traceback *self = (vpy_traceback *)object;

    PyObject_GC_UnTrack(object);
    if (self->handle != NULL) {
        traceback_forget_object(self->handle, object);
        vst_traceback_release(self->handle);
    }
    PyObject_GC_Del(object);
}

/* Return how many frames of a kind were taken. */
static PyObject *get_python_frames(PyObject *object, void *unused)
{
    const vst_traceback *handle = ((vpy_traceback *)object)->handle;

    (void)unused;
    return PyLong_FromSize_t(
        handle != NULL ? vst_traceback_language(handle).count : 0);
}

static PyObject *get_native_frames(PyObject *object, void *unused)
{
    const vst_traceback *handle = ((vpy_traceback *)object)->handle;
    size_t count = 0;

    (void)unused;
    if (handle != NULL)
        vst_traceback_native(handle, &count);
    return PyLong_FromSize_t(count);
}

static PyGetSetDef traceback_attributes[] = {
    {"python_frames", get_python_frames, NULL,
     PyDoc_STR("How many Python frames it has."), NULL},
    {"native_frames", get_native_frames, NULL,
     PyDoc_STR("How many native frames it has, without inlined calls."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject vpy_traceback_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "vestige._core.Traceback",
    .tp_doc = PyDoc_STR("A stack, returned by gather_traceback: equal stacks "
                        "are the same object."),
    .tp_basicsize = sizeof(vpy_traceback),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = traceback_traverse,
    .tp_clear = traceback_clear,
    .tp_dealloc = traceback_dealloc,
    .tp_getset = traceback_attributes,
};

/* Makes the object of a traceback. That may run a collection first, in which a
 * finalizer may make the object of the same traceback: so look again. */
static VST_COLD PyObject *make_object(vst_traceback *handle)
{
    vpy_traceback *self = PyObject_GC_New(vpy_traceback, &vpy_traceback_type);
    PyObject *other;

    if (self == NULL) {
        vst_traceback_release(handle);
        return NULL;
    }
    vpy_may_be_tried((PyObject *)self);
    vpy_state_take();
    other = find_object(handle);
    self->handle = other != NULL ? NULL : handle;
    if (other == NULL)
        vst__traceback_set_user(handle, self);
    vpy_state_give();
    PyObject_GC_Track((PyObject *)self);
    if (other == NULL)
        return (PyObject *)self;
    Py_DECREF(self);
    vst_traceback_release(handle);
    return other;
}

PyObject *vpy_traceback_object(vst_traceback *handle)
{
    PyObject *object;

    vpy_state_take();
    object = find_object(handle);
    vpy_state_give();
    if (object == NULL)
        return make_object(handle);
    vst_traceback_release(handle); /* the object has its own reference */
    return object;
}

/* The native frames between Python and this function are left out, as they are
 * our own. */
static PyObject *traceback_capture(bool python, bool native, size_t skip)
{
    unsigned parts = (python ? VST_TRACEBACK_LANGUAGE : 0u) |
                     (native ? VST_TRACEBACK_NATIVE : 0u) |
                     (python && native ? VST_TRACEBACK_FROM_LANGUAGE : 0u);
    vst_traceback *handle = vst_traceback_capture(parts, skip);

    return handle != NULL ? vpy_traceback_object(handle) : PyErr_NoMemory();
}

/* ---- CapturedTraceback --------------------------------------------------- */

typedef struct captured {
    PyObject_HEAD
    PyObject *traceback; /* a Traceback; NULL: cleared */
    Py_ssize_t skip;     /* frames not to show */
} captured;

static int captured_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(((captured *)object)->traceback);
    return 0;
}

static int captured_clear(PyObject *object)
{
    Py_CLEAR(((captured *)object)->traceback);
    return 0;
}

static void captured_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    Py_XDECREF(((captured *)object)->traceback);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *captured_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char *names[] = {"tb", "skip", NULL};
    PyObject *traceback, *self;
    Py_ssize_t skip = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "O|n:CapturedTraceback", names,
                                     &traceback, &skip))
        return NULL;
    if (traceback != Py_None && Py_TYPE(traceback) != &vpy_traceback_type)
        return PyErr_Format(PyExc_TypeError,
                            "CapturedTraceback: tb must be a result of "
                            "gather_traceback() or None, not %.100s",
                            Py_TYPE(traceback)->tp_name);
    if (skip < 0) {
        PyErr_SetString(PyExc_ValueError, "skip must not be negative");
        return NULL;
    }
    self = type->tp_alloc(type, 0);
    if (self != NULL && traceback != Py_None) {
        Py_INCREF(traceback);
        ((captured *)self)->traceback = traceback;
    }
    if (self != NULL)
        ((captured *)self)->skip = skip;
    return self;
}

static PyObject *captured_cleanup(PyObject *object, PyObject *unused)
{
    (void)unused;
    captured_clear(object);
    Py_RETURN_NONE;
}

/* Puts the arguments into `values`, in the order of `names`. */
static bool read_arguments(const char *function, const char *const *names,
                           size_t known, PyObject **values,
                           PyObject *const *args, Py_ssize_t count,
                           PyObject *keywords)
{
    Py_ssize_t named = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;

    if ((size_t)count > known) {
        PyErr_Format(PyExc_TypeError, "%s takes at most %zu arguments, not %zd",
                     function, known, count);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        values[i] = args[i];
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *key = PyTuple_GET_ITEM(keywords, i);
        size_t at = 0;
        while (at < known &&
               PyUnicode_CompareWithASCIIString(key, names[at]) != 0)
            at++;
        if (at == known || at < (size_t)count) {
            PyErr_Format(PyExc_TypeError,
                         at == known ? "%s has no argument named %R"
                                     : "%s was given %R twice",
                         function, key);
            return false;
        }
        values[at] = args[count + i];
    }
    return true;
}

/* Returns a truth value, `absent` if there is no argument, or -1 with an
 * exception set. */
static int read_truth(PyObject *value, int absent)
{
    return value != NULL ? PyObject_IsTrue(value) : absent;
}

static PyObject *captured_extract(PyObject *type, PyObject *const *args,
                                  Py_ssize_t count, PyObject *keywords)
{
    static const char *const names[] = {"script", "cpp", "skip"};
    PyTypeObject *made = (PyTypeObject *)type;
    PyObject *values[3] = {NULL, NULL, NULL};
    PyObject *traceback, *self;
    int native;
    Py_ssize_t skip;

    if ((count || keywords != NULL) &&
        !read_arguments("extract()", names, 3, values, args, count, keywords))
        return NULL;
    native = read_truth(values[1], 0);
    skip = values[2] != NULL
               ? PyNumber_AsSsize_t(values[2], PyExc_OverflowError)
               : 0;
    if (native < 0 || (skip == -1 && PyErr_Occurred() != NULL))
        return NULL;
    if (skip < 0) {
        PyErr_SetString(PyExc_ValueError, "skip must not be negative");
        return NULL;
    }
    traceback = traceback_capture(true, native, (size_t)skip);
    if (traceback == NULL)
        return NULL;
    self = made->tp_alloc(made, 0);
    if (self != NULL)
        ((captured *)self)->traceback = traceback;
    else
        Py_DECREF(traceback);
    return self;
}

static PyMemberDef captured_members[] = {
    {"tb", T_OBJECT, offsetof(captured, traceback), READONLY,
     PyDoc_STR("The result of gather_traceback; None after cleanup().")},
    {"skip", T_PYSSIZET, offsetof(captured, skip), READONLY,
     PyDoc_STR("How many of the innermost frames are not shown.")},
    {NULL, 0, 0, 0, NULL},
};

#define FASTCALL(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef captured_methods[] = {
    {"extract", FASTCALL(captured_extract),
     METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     PyDoc_STR("extract(script=False, cpp=False, skip=0)\n--\n\n"
               "The stack of the calling thread, without the innermost `skip` "
               "frames.")},
    {"cleanup", captured_cleanup, METH_NOARGS,
     PyDoc_STR(
         "cleanup()\n--\n\nRelease the frames; the object is empty then.")},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject captured_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "vestige._core.CapturedTraceback",
    .tp_doc = PyDoc_STR("CapturedTraceback(tb, skip=0)\n--\n\nA traceback that "
                        "can be released."),
    .tp_basicsize = sizeof(captured),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_new = captured_new,
    .tp_traverse = captured_traverse,
    .tp_clear = captured_clear,
    .tp_dealloc = captured_dealloc,
    .tp_members = captured_members,
    .tp_methods = captured_methods,
};

/* ---- functions ----------------------------------------------------------- */

static PyObject *gather_traceback(PyObject *module, PyObject *const *args,
                                  Py_ssize_t count, PyObject *keywords)
{
    static const char *const names[] = {"python", "script", "cpp"};
    PyObject *values[3] = {NULL, NULL, NULL};
    int python, native;

    (void)module;
    if (!read_arguments("gather_traceback()", names, 3, values, args, count,
                        keywords))
        return NULL;
    python = read_truth(values[0], 1);
    native = read_truth(values[2], 1);
    return python < 0 || native < 0 ? NULL
                                    : traceback_capture(python, native, 0);
}

static PyObject *free_dead(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromSize_t(vst_traceback_free_dead());
}

static PyMethodDef functions[] = {
    {"gather_traceback", FASTCALL(gather_traceback),
     METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("gather_traceback(python=True, script=True, cpp=True)\n--\n\n"
               "The stack of the calling thread.")},
    {"free_dead_captured_tracebacks", free_dead, METH_NOARGS,
     PyDoc_STR(
         "free_dead_captured_tracebacks()\n--\n\nRelease the code "
         "of tracebacks that nobody holds. Returns how many there were.")},
    {NULL, NULL, 0, NULL},
};

int vpy_traceback_init(PyObject *module)
{
    if (vpy_frames_init() < 0 || vpy_code_refs_init() < 0 ||
        PyType_Ready(&vpy_traceback_type) < 0 ||
        vpy_traceback_names_init(module) < 0 ||
        PyModule_AddType(module, &captured_type) < 0 ||
        PyModule_AddType(module, &vpy_traceback_type) < 0 ||
        PyModule_AddFunctions(module, functions) < 0)
        return -1;
    vst_unwinder_install(&unwinder);
    return 0;
}
