/* vestige._core.Trace, shared by trace.c (the object and its facts) and
 * trace_replays.c (methods that read the records). */
#ifndef VPY_TRACE_H
#define VPY_TRACE_H

#include "read/state.h"
#include "vpy.h"

#pragma GCC visibility push(hidden)

typedef struct vpy_trace {
    PyObject_HEAD
    vst_trace *handle; /* atomic: set once, see vpy_handle_set */
    PyObject *path;    /* bytes, or NULL for a session's trace; set once */
    /* A replay is running, without the GIL. On builds without the GIL, it
     * becomes true in the object's critical section; release when it ends pairs
     * with the acquire in vpy_trace_is_usable. */
    bool busy;
} vpy_trace;

/* Returns false with an exception set if the trace cannot be used. */
bool vpy_trace_is_usable(vpy_trace *self);
PyObject *vpy_trace_text(const char *bytes, size_t length);

/* Call vpy_trace_begin before and vpy_trace_end after each replay, which runs
 * without the GIL. */
void vpy_trace_begin(vpy_trace *self, PyObject *progress);
/* Calls vpy_trace_begin if the trace is usable; else returns false with an
 * exception set. For functions that are not methods, and so do not run in the
 * trace's critical section. */
bool vpy_trace_borrow(vpy_trace *self, PyObject *progress);
void vpy_trace_end(vpy_trace *self);
/* Replays the trace, between vpy_trace_begin and vpy_trace_end. Call with the
 * GIL, which is released meanwhile. */
vst_status vpy_trace_replay(vpy_trace *self, int window, PyObject *progress,
                            const vst_sink *sink, vst_error *error);
/* Returns the windows to replay: those from number `since` on, all, or the
 * last. */
int vpy_trace_window(int all, int since);
/* Returns a tuple of a sequence's items, or NULL with an exception set if there
 * are none. */
PyObject *vpy_traces_to_export(PyObject *list);
/* Returns the handles of a tuple of traces, which are busy until
 * vpy_traces_give_back. Returns NULL with an exception set on failure; then no
 * trace is busy. */
vst_trace **vpy_traces_borrow(PyObject *traces, PyObject *progress);
void vpy_traces_give_back(PyObject *traces, vst_trace **handles);
/* Returns the name that the spans of a definition show. */
PyObject *vpy_trace_name(const vst_definition *d);

/* trace_replays.c: methods. */
int vpy_trace_replays_init(PyObject *module);
PyObject *vpy_trace_spans(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_trace_names(PyObject *object, PyObject *unused);

/* trace_tables.c: a method, which returns {name of a table: Rows}. */
PyObject *vpy_trace_tables(PyObject *object, PyObject *args, PyObject *kw);

/* trace_names.c: methods. vpy_trace_add_devices adds devices, if there are any,
 * to the facts of info(). */
PyObject *vpy_trace_add_devices(PyObject *facts, const vst_trace *handle);
PyObject *vpy_trace_definitions(PyObject *object, PyObject *unused);
int vpy_trace_names_init(PyObject *module);
PyObject *vpy_trace_functions(PyObject *object, PyObject *unused);
PyObject *vpy_trace_function(const vst_trace *trace, const vst_definition *d);
PyObject *vpy_trace_import_name(PyObject *object, PyObject *args);

/* exports.c: methods, and functions of the module. */
PyObject *vpy_trace_export(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_trace_count_nodes(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_export_traces(PyObject *module, PyObject *args, PyObject *kw);
PyObject *vpy_export_memory(PyObject *module, PyObject *args, PyObject *kw);
PyObject *vpy_node_ids(PyObject *module, PyObject *args, PyObject *kw);

/* trace.c: raises for a failed reading of memory; VST_E_STATE means that no
 * memory was recorded. vpy_memory_check_temporary returns false with an
 * exception set if the number is out of range. */
PyObject *vpy_memory_fail(vst_status status, const vst_error *error,
                          PyObject *path);
bool vpy_memory_check_temporary(int temporary);

#pragma GCC visibility pop
#endif
