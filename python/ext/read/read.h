/* read/ reads traces that were recorded: Trace and what it answers, tables,
 * views, packed files. It knows nothing of hooks, and no hook knows it. Only
 * core_module.c and session/, which gives out the Trace of its recording,
 * include this header. */
#ifndef VPY_READ_READ_H
#define VPY_READ_READ_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

int vpy_trace_type_init(PyObject *module);
int vpy_marks_init(PyObject *module);
int vpy_memory_events_init(PyObject *module);
int vpy_pack_init(PyObject *module);
int vpy_states_init(PyObject *module);
int vpy_task_lanes_init(PyObject *module);
int vpy_tables_init(PyObject *module);
int vpy_tally_init(PyObject *module);
int vpy_view_init(PyObject *module);

/* The Trace of a session that is still open. */
PyObject *vpy_trace_of_session(PyObject *session, vst_session *handle);

#pragma GCC visibility pop
#endif
