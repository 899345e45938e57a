/* read/ reads traces that were recorded: Trace and what it answers, tables,
 * views, packed files. It knows nothing of hooks, and no hook knows it. Only
 * core_module.c and session/, which gives out the Trace of its recording,
 * include this header. */
#ifndef VPY_READ_READ_H
#define VPY_READ_READ_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

/* The handle of an object is set once, when all behind it is made, and stays
 * until the object's end. So threads that share the object need no lock for it:
 * release pairs with the acquire of vpy_handle_of. False, with an exception
 * set, if the object has one already. */
static inline bool vpy_handle_set(void *place, void *handle)
{
    void *none = NULL;
    bool is_set =
        __atomic_compare_exchange_n((void **)place, &none, handle, false,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED);

    if (!is_set)
        PyErr_SetString(PyExc_RuntimeError, "it was made already");
    return is_set;
}

static inline void *vpy_handle_of(const void *place)
{
    return __atomic_load_n((void *const *)place, __ATOMIC_ACQUIRE);
}

int vpy_trace_type_init(PyObject *module);
int vpy_lanes_init(PyObject *module);
int vpy_memory_events_init(PyObject *module);
int vpy_pack_init(PyObject *module);
int vpy_rows_init(PyObject *module);
int vpy_tables_init(PyObject *module);
int vpy_growing_init(PyObject *module);
int vpy_view_init(PyObject *module);

/* The Trace of the recording of a session that is still open. */
PyObject *vpy_trace_of_session(vst_session *handle);

#pragma GCC visibility pop
#endif
