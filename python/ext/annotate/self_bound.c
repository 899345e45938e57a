/* Methods that resolve to the very object on which they are looked up.
 *
 * A `with` looks up __enter__ and __exit__ and calls the result. For an
 * ordinary method Python makes a bound method object each time; two of these
 * take a third of the cost of a span that is not recorded. Here the look-up
 * returns the object itself and sets a bit in it for the method that was looked
 * up. The object's type then does the call.
 *
 * A subclass with its own __call__ gets ordinary methods. Called with the GIL
 * held. */
#include "annotate/annotate.h"

static struct vpy_self_bound_state *const state = &vpy_annotate.self_bound;

typedef struct self_bound {
    PyObject_HEAD
    PyObject *ordinary;  /* the method that it replaces */
    PyTypeObject *owner; /* borrowed: the type owns this */
    size_t offset;       /* of the bits in an object of that type */
    unsigned char bit;
} self_bound;

static PyObject *self_bound_bind(PyObject *object, PyObject *to, PyObject *type)
{
    self_bound *self = (self_bound *)object;
    unsigned char *bits;

    if (to == NULL || !PyObject_TypeCheck(to, self->owner) ||
        Py_TYPE(to)->tp_call != self->owner->tp_call)
        return Py_TYPE(self->ordinary)->tp_descr_get(self->ordinary, to, type);
    bits = (unsigned char *)to + self->offset;
    if (!(__atomic_load_n(bits, __ATOMIC_RELAXED) & self->bit))
        __atomic_or_fetch(bits, self->bit, __ATOMIC_RELAXED);
    return Py_NewRef(to);
}

static PyObject *self_bound_call(PyObject *object, PyObject *args, PyObject *kw)
{
    return PyObject_Call(((self_bound *)object)->ordinary, args, kw);
}

/* Returns the ordinary method's name, documentation and so on. */
static PyObject *get_attribute(PyObject *object, PyObject *name)
{
    return PyObject_GetAttr(((self_bound *)object)->ordinary, name);
}

static PyObject *self_bound_represent(PyObject *object)
{
    return PyObject_Repr(((self_bound *)object)->ordinary);
}

static void self_bound_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    Py_XDECREF(((self_bound *)object)->ordinary);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {
    {Py_tp_descr_get, self_bound_bind},  {Py_tp_call, self_bound_call},
    {Py_tp_getattro, get_attribute},     {Py_tp_repr, self_bound_represent},
    {Py_tp_dealloc, self_bound_dealloc}, {0, NULL},
};

static PyType_Spec spec = {
    .name = "vestige._core.SelfBound",
    .basicsize = sizeof(self_bound),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int vpy_self_bound(PyTypeObject *owner, const char *name, size_t offset,
                   unsigned char bit)
{
    PyObject *ordinary, *made;
    int result = -1;

    if (state->type == NULL)
        state->type = (PyTypeObject *)PyType_FromSpec(&spec);
    ordinary = state->type != NULL
                   ? PyObject_GetAttrString((PyObject *)owner, name)
                   : NULL;
    made = ordinary != NULL ? state->type->tp_alloc(state->type, 0) : NULL;
    if (made != NULL) {
        self_bound *self = (self_bound *)made;
        self->ordinary = Py_NewRef(ordinary);
        self->owner = owner;
        self->offset = offset;
        self->bit = bit;
        result = PyObject_SetAttrString((PyObject *)owner, name, made);
    }
    Py_XDECREF(made);
    Py_XDECREF(ordinary);
    return result;
}
