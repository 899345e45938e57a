/* The callbacks of sys.monitoring: objects with a vectorcall of their own,
 * which costs less than a built-in function. */
#ifndef VPY_CALLS_MONITORING_CALLBACK_H
#define VPY_CALLS_MONITORING_CALLBACK_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

typedef PyObject *(*vpy_callback_fn)(PyObject *, PyObject *const *, size_t,
                                     PyObject *);

typedef struct vpy_callback {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    char mark; /* letter of the event, for the self test */
} vpy_callback;

/* Return new references; NULL with an exception set. */
PyTypeObject *vpy_callback_type(PyObject *module);
PyObject *vpy_callback_new(PyTypeObject *type, vpy_callback_fn function,
                           char mark);

/* The hook of the self test; see monitoring_test.c. */
PyObject *vpy_monitoring_on_test(PyObject *self, PyObject *const *args,
                                 size_t nargsf, PyObject *kwnames);

#pragma GCC visibility pop
#endif
