/* read/ reads recorded traces: Trace and its methods, tables, views, packed
 * files. It knows nothing of hooks, and no hook knows it. Only core_module.c
 * and session/, which returns the Trace of its recording, include this
 * header. */
#ifndef VPY_READ_READ_H
#define VPY_READ_READ_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

/* Sets the handle of an object, once, when everything behind it is made; the
 * handle stays until the object's end. So threads that share the object need no
 * lock for it: release pairs with the acquire of vpy_handle_of. Returns false
 * with an exception set if the object has a handle already. */
static inline bool vpy_handle_set(void *place, void *handle)
{
    void *none = NULL;
    bool is_set =
        __atomic_compare_exchange_n((void **)place, &none, handle, false,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED);

    if (!is_set)
        PyErr_SetString(PyExc_RuntimeError,
                        "the object has been set up already");
    return is_set;
}

static inline void *vpy_handle_of(const void *place)
{
    return __atomic_load_n((void *const *)place, __ATOMIC_ACQUIRE);
}

int vpy_trace_type_init(PyObject *module);
int vpy_histograms_init(PyObject *module);
int vpy_lanes_init(PyObject *module);
int vpy_pack_init(PyObject *module);
int vpy_rows_init(PyObject *module);
int vpy_tables_init(PyObject *module);
int vpy_growing_init(PyObject *module);
int vpy_view_init(PyObject *module);

/* Returns the Trace of a session's recording. The session is still open. */
PyObject *vpy_trace_of_session(vst_session *handle);

#pragma GCC visibility pop
#endif
