/* annotate/ records spans (record_function), instants and counters that the
 * program names itself, with their arguments, shapes and call stacks, and as
 * nodes of execution traces. The program calls it through vestige._core;
 * session/ sets the recording. */
#ifndef VPY_ANNOTATE_ANNOTATE_H
#define VPY_ANNOTATE_ANNOTATE_H

#include "annotate/state.h"

#pragma GCC visibility push(hidden)

struct vpy_json;

/* ---- annotation.c -------------------------------------------------------- */

int vpy_annotation_init(PyObject *module);

/* ---- annotation_ids.c ---------------------------------------------------- */

void vpy_recording_set(vst_recording *recording);

static inline bool vpy_is_recording(void)
{
    return __atomic_load_n(&vpy_annotate.ids.recording, __ATOMIC_RELAXED) !=
           NULL;
}

void vpy_annotation_forget(
    vst_recording *recording); /* call before the recording is freed */
/* Returns the id of a span's name, 0 if it gets none, and the number of its
 * recording. vpy_annotation_is_of_now: whether that recording is still the one
 * in progress. */
vst_id vpy_annotation_id(PyObject *name, uint32_t *recording);
bool vpy_annotation_is_of_now(uint32_t recording);
/* Returns the id of a name in the recording in progress; 0 if it gets none. */
vst_id vpy_define_name(vst_definition_kind kind, PyObject *name);

/* ---- far_ends.c ---------------------------------------------------------- */

/* Records the end of a span that another thread began, which has this
 * buffer. */
void vpy_far_end(const void *buffer, vst_id id, uint32_t instance,
                 uint32_t recording);
void vpy_far_ends_record(uint32_t recording);

/* ---- points.c ------------------------------------------------------------ */

extern PyMethodDef vpy_points_functions[];

/* ---- self_bound.c -------------------------------------------------------- */

/* Makes a method of a type resolve to the object on which it is looked up. The
 * type is called by vectorcall. Returns 0 if that worked. */
int vpy_self_bound(PyTypeObject *owner, const char *name, size_t offset,
                   unsigned char bit);

/* ---- call_stack.c -------------------------------------------------------- */

static inline bool vpy_wants_call_stacks(void)
{
    return __atomic_load_n(&vpy_annotate.call_stack.is_wanted,
                           __ATOMIC_RELAXED);
}

void vpy_call_stack_put(struct vpy_json *json);
void vpy_call_stacks_forget(void);

/* ---- shapes.c ------------------------------------------------------------ */

/* Writes JSON members with the shapes of a tuple of values. Returns how many
 * bytes that takes, 0 if they do not fit. */
size_t vpy_shapes_put(PyObject *values, char *text, size_t size);

/* ---- graph_nodes.c ------------------------------------------------------- */

static inline unsigned vpy_graph_observer_now(void)
{
    return __atomic_load_n(&vpy_annotate.graph.observer, __ATOMIC_RELAXED);
}

/* An annotation as a node of the execution trace. It is prepared before the
 * annotation is entered, because that may run code of the program. */
typedef struct vpy_node {
    unsigned observer;
    uint64_t record;
    bool cut;
    unsigned char *bytes; /* points to `own`, or to a block of the heap */
    size_t count, capacity;
    unsigned char own[1024];
} vpy_node;

void vpy_node_prepare(vpy_node *node, PyObject *text, PyObject *values);
void vpy_node_record(vpy_node *node);
extern PyMethodDef vpy_nodes_functions[];

/* ---- fast_contexts.c: torch's _RecordFunctionFast ------------------------ */

extern PyMethodDef vpy_fast_contexts_functions[];
void vpy_fast_contexts_unwatch(void);

/* ---- framework_spans.c: torch's own record_function ---------------------- */

/* Returns whether another listener than vestige sees torch's spans on this
 * thread. */
bool vpy_framework_listens(void);
PyObject *vpy_framework_enter(PyObject *name, PyObject *args);
PyObject *vpy_framework_exit(PyObject *span, PyObject *const *args,
                             Py_ssize_t count);
extern PyMethodDef vpy_framework_spans_functions[];

#pragma GCC visibility pop
#endif
