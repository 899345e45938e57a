/* Functions that get no thunk because the interpreter or a module compares
 * their address, and those of vestige. With the GIL. */
#include "thunks/thunks.h"

#include <string.h>

#if VPY_COMPARES_WITH_SLOTS
static bool slots_holds(const void *structure, size_t size,
                        PyCFunction function)
{
    for (size_t i = 0; structure != NULL && i < size; i += sizeof function)
        if (memcmp((const char *)structure + i, &function, sizeof function) ==
            0)
            return true;
    return false;
}

static bool is_slot_of(const PyTypeObject *type, PyCFunction function)
{
    return slots_holds(type, sizeof *type, function) ||
           slots_holds(type->tp_as_async, sizeof *type->tp_as_async,
                       function) ||
           slots_holds(type->tp_as_number, sizeof *type->tp_as_number,
                       function) ||
           slots_holds(type->tp_as_sequence, sizeof *type->tp_as_sequence,
                       function) ||
           slots_holds(type->tp_as_mapping, sizeof *type->tp_as_mapping,
                       function);
}
#endif

/* Whether a method's function is also what its class has in a slot, as that of
 * dict.__getitem__. A subclass takes over the slot only while the two are the
 * same, and a class that was made without it stays slow. */
static bool is_compared_with_slot(const vpy_found *f)
{
#if VPY_COMPARES_WITH_SLOTS
    PyObject *keeper = f->keeper;
    const PyTypeObject *type = NULL;

    if (!(f->method->ml_flags & METH_COEXIST))
        return false;
    if (PyType_Check(keeper))
        type = (PyTypeObject *)keeper;
    else if (PyCFunction_Check(keeper) && PyCFunction_GET_SELF(keeper) != NULL)
        type = Py_TYPE(PyCFunction_GET_SELF(keeper)); /* may be a subclass */
    for (; type != NULL; type = type->tp_base)
        if (is_slot_of(type, f->method->ml_meth))
            return true;
#else
    (void)f;
#endif
    return false;
}

bool vpy_is_our_own(const vpy_found *f)
{
    return f->owner == VPY_OF_MODULE && strncmp(f->where, "vestige.", 8) == 0;
}

/* Functions whose address the interpreter or its modules compare. */
bool vpy_is_compared(const vpy_found *f)
{
    const char *name = f->method != NULL ? f->method->ml_name : "";
    const char *where = f->where != NULL ? f->where : "";

    if (f->method == NULL)
        return false;
    if (strcmp(name, "__new__") == 0)
        return true;
    if (strcmp(name, "__getstate__") == 0)
        return f->keeper == (PyObject *)&PyBaseObject_Type;
    if (strncmp(name, "encode_basestring", 17) == 0)
        return strcmp(where, "_json") == 0;
    if (strncmp(name, "persistent_", 11) == 0)
        return strncmp(where, "_pickle.", 8) == 0;
    return is_compared_with_slot(f) || vpy_is_our_own(f);
}
