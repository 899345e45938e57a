/* Holds the references of tracebacks to code objects, so that the garbage
 * collector sees them. The collector does not track code objects, so it would
 * never find a cycle through the constants of a code object. Therefore all
 * tracebacks share one object for each code object. It holds their only
 * reference, and the collector tracks it: when nothing else refers to the code
 * object, it shows the collector the code object's references.
 *
 * On builds without the GIL the collector tracks code objects. There each
 * traceback has references of its own. */
#include "traceback/traceback.h"

static struct vpy_code_refs_state *const state = &vpy_tracebacks.code_refs;

typedef struct code_ref {
    PyObject_HEAD
    PyCodeObject *code;
} code_ref;

PyObject *vpy_code_ref(PyObject *code)
{
    if (VPY_FREE_THREADED)
        return code;
    return (PyObject *)vpy_code_get_extra(code, state->extra_index);
}

static int code_ref_traverse(PyObject *object, visitproc visit, void *arg)
{
    code_ref *self = (code_ref *)object;

    Py_VISIT(self->code);
    if (Py_REFCNT(self->code) == 1)
        Py_VISIT(self->code->co_consts);
    return 0;
}

static void code_ref_dealloc(PyObject *object)
{
    code_ref *self = (code_ref *)object;
    PyObject *code = (PyObject *)self->code;

    PyObject_GC_UnTrack(object);
    vpy_code_set_extra(code, state->extra_index, NULL);
    PyObject_GC_Del(object);
    Py_DECREF(code);
}

/* No tp_clear: a traceback in the cycle has one, and needs its code objects
 * until then. */
static PyTypeObject code_ref_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "vestige._core.CodeReference",
    .tp_doc = PyDoc_STR("The reference of all tracebacks to a code object."),
    .tp_basicsize = sizeof(code_ref),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = code_ref_traverse,
    .tp_dealloc = code_ref_dealloc,
};

static PyObject *make_code_ref(PyObject *code)
{
    int were_on = vpy_collections_put_off();
    code_ref *self = PyObject_GC_New(code_ref, &code_ref_type);

    vpy_collections_go_on(were_on);
    if (self == NULL)
        return NULL;
    Py_INCREF(code);
    self->code = (PyCodeObject *)code;
    if (vpy_code_set_extra(code, state->extra_index, self) < 0) {
        Py_DECREF(code);
        PyObject_GC_Del(self);
        return NULL;
    }
    PyObject_GC_Track((PyObject *)self);
    return (PyObject *)self;
}

static VST_COLD void retain_first(PyObject *code)
{
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    if (make_code_ref(code) == NULL) {
        Py_INCREF(code);
        state->keep_all = true;
    }
    PyErr_Restore(type, value, trace);
}

void vpy_code_refs_retain(void *const *codes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        PyObject *ref = vpy_code_ref(codes[i]);
        if (VST_LIKELY(ref != NULL))
            Py_INCREF(ref);
        else
            retain_first(codes[i]);
    }
}

void vpy_code_refs_release(void *const *codes, size_t count)
{
    for (size_t i = 0; i < count && !state->keep_all; i++)
        Py_XDECREF(vpy_code_ref(codes[i]));
}

int vpy_code_refs_init(void)
{
    state->extra_index = vpy_code_request_extra(NULL);
    if (state->extra_index < 0) {
        PyErr_SetString(PyExc_ImportError,
                        "no free slot for tracebacks: too many tools use code "
                        "objects' extra data");
        return -1;
    }
    return PyType_Ready(&code_ref_type);
}
