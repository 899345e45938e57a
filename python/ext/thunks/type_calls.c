/* The call slot of a type. Classes that have inherited it hold a copy, so the
 * thunk of a slot is copied to them, and removed again: also from classes that
 * were made meanwhile, since these take the slot from its wrapper, `__call__`,
 * which holds the thunk, too. Objects that have a vectorcall pointer are called
 * by the slot if their type says that they have none. With the GIL. */
#include "thunks/thunks.h"

static void copy_to_classes(PyTypeObject *type, ternaryfunc from,
                            ternaryfunc to)
{
    PyObject *classes = vpy_subclasses(type);
    Py_ssize_t count = classes != NULL ? PyList_GET_SIZE(classes) : 0;

    for (Py_ssize_t i = 0; i < count; i++) {
        PyTypeObject *class = (PyTypeObject *)PyList_GET_ITEM(classes, i);
        if (class->tp_call != from)
            continue;
        __atomic_store_n(&class->tp_call, to, __ATOMIC_RELEASE);
        copy_to_classes(class, from, to);
    }
    Py_XDECREF(classes);
}

static void copy_to_wrapper(PyTypeObject *type, ternaryfunc from,
                            ternaryfunc to)
{
    PyObject *dict = vpy_type_dict(type);
    PyObject *found =
        dict != NULL ? vpy_dict_get_named(dict, "__call__") : NULL;
    PyWrapperDescrObject *wrapper = (PyWrapperDescrObject *)found;

    if (found != NULL && Py_IS_TYPE(found, &PyWrapperDescr_Type) &&
        wrapper->d_wrapped == (void *)(uintptr_t)from)
        wrapper->d_wrapped = (void *)(uintptr_t)to;
    Py_XDECREF(found);
    Py_XDECREF(dict);
}

static void copy_call(PyTypeObject *type, ternaryfunc from, ternaryfunc to)
{
    copy_to_wrapper(type, from, to);
    copy_to_classes(type, from, to);
}

/* A class calls `type.__call__` by the slot of its metaclass alone. */
void vpy_type_calls_put(vpy_thunk_about *about, PyTypeObject *type)
{
    PyCFunction thunk = *about->place;

    if (type != &PyType_Type &&
        PyType_HasFeature(type, Py_TPFLAGS_HAVE_VECTORCALL)) {
        about->had_vectorcall = true;
        type->tp_flags &= ~Py_TPFLAGS_HAVE_VECTORCALL;
    }
    copy_call(type, (ternaryfunc)(void (*)(void))vpy_thunk_original(thunk),
              (ternaryfunc)(void (*)(void))thunk);
}

void vpy_type_calls_restore(vpy_thunk_about *about, PyTypeObject *type)
{
    PyCFunction original = *about->place;

    copy_call(type, (ternaryfunc)(void (*)(void))vpy_thunk_of(about),
              (ternaryfunc)(void (*)(void))original);
    if (about->had_vectorcall)
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    about->had_vectorcall = false;
}
