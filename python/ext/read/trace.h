/* A vestige._core.Trace, shared by trace.c (the object and its facts) and
 * trace_replays.c (what reads the records). */
#ifndef VPY_TRACE_H
#define VPY_TRACE_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

typedef struct vpy_trace {
    PyObject_HEAD
    vst_trace *handle; /* atomic: set once, see vpy_handle_set */
    PyObject *path;    /* bytes, NULL for a session's; set once */
    /* A replay is running, without the GIL. Where there is none, it becomes
     * true in the object's critical section; release when it ends pairs with
     * the acquire in vpy_trace_is_usable. */
    bool busy;
} vpy_trace;

extern PyTypeObject *vpy_trace_type;

/* False with an exception set. */
bool vpy_trace_is_usable(vpy_trace *self);
PyObject *vpy_trace_text(const char *bytes, size_t length);

/* To be called before and after each replay, which runs without the GIL. */
void vpy_trace_begin(vpy_trace *self, PyObject *progress);
/* Begins if it is usable, else false with an exception set: for what is no
 * method, and so not in the critical section of the trace. */
bool vpy_trace_borrow(vpy_trace *self, PyObject *progress);
void vpy_trace_end(vpy_trace *self);
/* A whole replay, between the two; with the GIL, which it gives back meanwhile.
 */
vst_status vpy_trace_replay(vpy_trace *self, int window, PyObject *progress,
                            const vst_sink *sink, vst_error *error);
/* The windows to replay: from a number on, all, or the last. */
int vpy_trace_window(int all, int since);
/* A tuple of a sequence's items, at least one; NULL with an exception set.
 */
PyObject *vpy_traces_to_export(PyObject *list);
/* The handles of a tuple of traces, which are busy until they are given back.
 * NULL with an exception set; then none is busy. */
vst_trace **vpy_traces_borrow(PyObject *traces, PyObject *progress);
void vpy_traces_give_back(PyObject *traces, vst_trace **handles);
/* The name of the spans of a definition. */
PyObject *vpy_trace_name(const vst_definition *d);

/* trace_replays.c: methods. */
int vpy_trace_replays_init(PyObject *module);
PyObject *vpy_trace_totals(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_trace_spans(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_trace_names(PyObject *object, PyObject *unused);

/* trace_tables.c: a method. {name of a table: Rows}. */
PyObject *vpy_trace_tables(PyObject *object, PyObject *args, PyObject *kw);

/* trace_names.c: methods; and what info() tells of devices is added to it, if
 * there are any. */
PyObject *vpy_trace_add_devices(PyObject *told, const vst_trace *handle);
PyObject *vpy_trace_definitions(PyObject *object, PyObject *unused);
int vpy_trace_names_init(PyObject *module);
PyObject *vpy_trace_functions(PyObject *object, PyObject *unused);
PyObject *vpy_trace_function(const vst_definition *d);
PyObject *vpy_trace_import_name(PyObject *object, PyObject *args);

/* exports.c: methods, and functions of the module. */
PyObject *vpy_trace_export(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_trace_count_nodes(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_export_traces(PyObject *module, PyObject *args, PyObject *kw);
PyObject *vpy_export_memory(PyObject *module, PyObject *args, PyObject *kw);
PyObject *vpy_node_ids(PyObject *module, PyObject *args, PyObject *kw);

/* trace_memory.c: methods; what both raise where no memory was recorded; and
 * whether k is one, else an exception is set. */
int vpy_trace_memory_init(PyObject *module);
PyObject *vpy_trace_has_memory(PyObject *object, PyObject *unused);
PyObject *vpy_trace_memory(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_memory_fail(vst_status status, const vst_error *error,
                          PyObject *path);
bool vpy_memory_check_temporary(int temporary);

#pragma GCC visibility pop
#endif
