/* What sys.monitoring calls: an object with a vectorcall of its own, which
 * costs less than a built-in function does. */
#ifndef VPY_CALLS_MONITORING_CALLBACK_H
#define VPY_CALLS_MONITORING_CALLBACK_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

typedef PyObject *(*vpy_callback_fn)(PyObject *, PyObject *const *, size_t,
                                     PyObject *);

typedef struct vpy_callback {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    char mark; /* of the event, for the self test */
} vpy_callback;

/* New references; NULL with an exception. */
PyTypeObject *vpy_callback_type(PyObject *module);
PyObject *vpy_callback_new(PyTypeObject *type, vpy_callback_fn function,
                           char mark);

/* monitoring_test.c: the events of the calls that the self test makes, in
 * order.
 */
typedef struct vpy_monitoring_seen {
    PyThreadState *thread; /* that makes them, NULL: no test is under way */
    size_t length;
    char seen[128];
} vpy_monitoring_seen;

extern vpy_monitoring_seen vpy_monitoring_test;
PyObject *vpy_monitoring_on_test(PyObject *self, PyObject *const *args,
                                 size_t nargsf, PyObject *kwnames);

#pragma GCC visibility pop
#endif
