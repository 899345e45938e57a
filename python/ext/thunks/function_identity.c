/* Computes equality and hash of built-in functions. The interpreter computes
 * both from ml_meth, and dictionaries of the program may have stored the hash.
 * While thunks or watched methods are in place, we compute both in the same way
 * from the original functions. Any thread enters, with the GIL of any
 * interpreter, because static types are shared. A thread that still calls the
 * interpreter's functions gets equal answers: our functions are in place before
 * the first ml_meth is replaced, and until the last one is put back. */
#include "thunks/thunks.h"

#include "thunks/watched_methods.h"

static struct vpy_function_identity_state *const state = &vpy_thunks.identity;

static PyCFunction function_of(PyObject *object)
{
    PyCFunction function = ((PyCFunctionObject *)object)->m_ml->ml_meth;

    return vpy_watched_original(vpy_thunk_original(function));
}

static Py_hash_t function_hash(PyObject *self)
{
    return vpy_function_hash(((PyCFunctionObject *)self)->m_self,
                             function_of(self));
}

static PyObject *function_compare(PyObject *self, PyObject *other, int op)
{
    bool equal;

    if ((op != Py_EQ && op != Py_NE) || !PyCFunction_Check(self) ||
        !PyCFunction_Check(other))
        Py_RETURN_NOTIMPLEMENTED;
    equal = ((PyCFunctionObject *)self)->m_self ==
                ((PyCFunctionObject *)other)->m_self &&
            function_of(self) == function_of(other);
    return PyBool_FromLong(equal == (op == Py_EQ));
}

/* `len.__hash__` is a wrapper that holds the C function too. */
static void replace_in_wrapper(const char *name, void *from, void *to)
{
    PyObject *dict = vpy_type_dict(&PyCFunction_Type);
    PyObject *found = dict != NULL ? vpy_dict_get_named(dict, name) : NULL;
    PyWrapperDescrObject *wrapper = (PyWrapperDescrObject *)found;

    if (found != NULL && Py_IS_TYPE(found, &PyWrapperDescr_Type) &&
        wrapper->d_wrapped == from)
        wrapper->d_wrapped = to;
    Py_XDECREF(found);
    Py_XDECREF(dict);
}

static void function_replace(hashfunc from_hash, hashfunc to_hash,
                             richcmpfunc from_compare, richcmpfunc to_compare)
{
    PyTypeObject *types[] = {&PyCFunction_Type, &PyCMethod_Type};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (types[i]->tp_hash == from_hash)
            __atomic_store_n(&types[i]->tp_hash, to_hash, __ATOMIC_RELAXED);
        if (types[i]->tp_richcompare == from_compare)
            __atomic_store_n(&types[i]->tp_richcompare, to_compare,
                             __ATOMIC_RELAXED);
    }
    replace_in_wrapper("__hash__", (void *)(uintptr_t)from_hash,
                       (void *)(uintptr_t)to_hash);
    replace_in_wrapper("__eq__", (void *)(uintptr_t)from_compare,
                       (void *)(uintptr_t)to_compare);
    replace_in_wrapper("__ne__", (void *)(uintptr_t)from_compare,
                       (void *)(uintptr_t)to_compare);
}

void vpy_function_identity_keep(vpy_identity_keeper keeper)
{
    state->keepers |= keeper;
    if (PyCFunction_Type.tp_hash == function_hash)
        return;
    state->old_hash = PyCFunction_Type.tp_hash;
    state->old_compare = PyCFunction_Type.tp_richcompare;
    function_replace(state->old_hash, function_hash, state->old_compare,
                     function_compare);
}

void vpy_function_identity_release(vpy_identity_keeper keeper)
{
    state->keepers &= ~(unsigned)keeper;
    if (state->old_hash != NULL && !state->keepers)
        function_replace(function_hash, state->old_hash, function_compare,
                         state->old_compare);
}
