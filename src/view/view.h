/* Pictures of a trace: what a screen can show of a window of time, at any zoom,
 * from an index that is built once and kept next to the file. A view shows one
 * trace of one process; a picture is made of rectangles.
 *
 * Any thread may use a view, several concurrently; a view of a packed trace
 * serves one at a time. Times are nanoseconds of the wall clock, moved by the
 * offset. The caller frees what an answer points to. */
#ifndef VST_VIEW_VIEW_H
#define VST_VIEW_VIEW_H

#include <vestige/span.h>
#include <vestige/trace.h>

typedef struct vst_view vst_view;

enum { VST_VIEW_IMPORT_IDS = 8 };

/* Returns the id by which a folded import is shown, in a trace whose largest id
 * is `max`. */
static inline vst_id vst_view_import_id(vst_id max, vst_import what,
                                        vst_id module)
{
    if (what == VST_IMPORT_MODULE)
        return max + VST_VIEW_IMPORT_IDS + module;
    /* above the ids of modules that were imported */
    if (what == VST_IMPORT_FAILED && module != 0)
        return max + VST_VIEW_IMPORT_IDS + max + module;
    return max + (vst_id)what;
}

typedef struct vst_view_options {
    /* File of the index; NULL: next to the trace, t.vst.view for t.vst. A
     * stale, torn or foreign index is built again. */
    const char *index;
    /* keep the index in memory, as if the file could not be written */
    bool no_file;
    /* Leave out the frames of the import system. An import is a span whose id
     * is above the trace's largest: vst_view_import_id. */
    bool fold_imports;
    /* The trace is being recorded: the index is kept in memory, and extended by
     * vst__view_refresh. Imports are not folded. */
    bool follow;
    unsigned workers; /* threads that build the index; 0: one per processor */
    vst_progress_fn progress;
    void *progress_ctx;
} vst_view_options;

typedef struct vst_view_info {
    vst_trace_info trace; /* times without the offset */
    uint64_t records;     /* words of records that the index covers */
    uint64_t spans;
    bool has_tasks; /* the trace has steps or waits of tasks */
    uint64_t index_bytes;
    const char *index_path; /* NULL: in memory */
    bool built;             /* the index was built now, not found */
    int64_t start_ns, end_ns;
} vst_view_info;

/* A thread's rows: `levels` rows of its stack, then `off_stack` rows of spans
 * that overlap their neighbours (VST_SPAN_ASYNC); the first of these has depth
 * `levels`. */
typedef struct vst_view_thread {
    uint32_t number;
    uint64_t system_tid;
    const char *name;
    size_t name_len;
    uint32_t levels, off_stack;
    uint64_t spans, records;
    /* begin and end of the thread's spans; 0 if it has none */
    int64_t start_ns, end_ns;
} vst_view_thread;

vst_status vst__view_open(const char *path, const vst_view_options *options,
                          vst_view **view, vst_error *error);
void vst__view_close(vst_view *view);
void vst__view_get_info(const vst_view *view, vst_view_info *info);
size_t vst__view_thread_count(const vst_view *view);
void vst__view_get_thread(const vst_view *view, size_t index,
                          vst_view_thread *thread);
/* Sets the offset, like vst_trace_set_offset. Call while nobody else uses the
 * view. */
vst_status vst__view_set_offset(vst_view *view, int64_t offset_ns);

/* Takes in what was recorded since. Returns VST_E_STATE unless the view follows
 * its trace. Call while nobody else uses the view. In a view that follows,
 * spans that another thread ends (VST_ESCAPE_FAR_END) last to the end of the
 * trace, and there are no curves of memory. */
vst_status vst__view_refresh(vst_view *view, vst_error *error);
/* Returns the trace, for its definitions (vst_trace_definition); valid until
 * the view is refreshed or closed. */
const vst_trace *vst__view_trace(const vst_view *view);

/* The range that a question is about. It may reach beyond the trace. */
typedef struct vst_view_range {
    int64_t from_ns, to_ns;
    uint32_t pixels;         /* columns */
    const uint32_t *threads; /* numbers; NULL: all threads */
    size_t thread_count;
    uint32_t max_depth; /* limit for the depth of the stack; 0: all depths */
    /* For questions that read many records. */
    vst_progress_fn progress;
    void *progress_ctx;
} vst_view_range;

/* ---- a window ------------------------------------------------------------ */

/* The answer is one block: a head, rows, rectangles, and behind them, if rows
 * have values (lanes.h), a value for each rectangle. Spans narrower than a
 * pixel are merged with their neighbours into runs of at most a pixel, and
 * further if there would be more than VST_VIEW_RECTS_MAX. */
#define VST_VIEW_MAGIC 0x4e495756u /* "VWIN" */
#define VST_VIEW_RECTS_MAX 20000u
/* Enough for every screen, and little enough for memory. */
#define VST_VIEW_PIXELS_MAX 65536u

typedef struct vst_view_head {
    uint32_t magic;
    uint32_t rows, rects;
    /* 0: drawn from records only; else the coarsest level used */
    uint32_t level;
    int64_t from_ns, to_ns;
} vst_view_head;

typedef struct vst_view_row {
    uint32_t thread;
    uint32_t depth;
    uint32_t first, rects;
} vst_view_row;

enum { /* Flags in a rectangle's id. */
       VST_VIEW_RAISED = 1 << 24,
       VST_VIEW_OFF_STACK = 1 << 25, /* overlaps its neighbours */
       /* the span was open when the recording began */
       VST_VIEW_OPEN_AT_START = 1 << 26,
       VST_VIEW_OPEN_AT_END = 1 << 27,
       VST_VIEW_AWAITS = 1 << 28, /* a wait of tasks */
       VST_VIEW_AWAITS_SHIFT = 29,
       VST_VIEW_AWAITS_MANY = 7 /* a wait of several tasks */
};
#define VST_VIEW_ID_MASK 0xffffffu

typedef struct vst_view_rect {
    uint32_t start, end; /* 0: from_ns, UINT32_MAX: to_ns */
    /* A definition, and flags. For a run: the definition that took most of the
     * time, with no flag but VST_VIEW_OFF_STACK. */
    uint32_t id;
    uint16_t busy; /* share of the width that spans cover; 65535: all of it */
    /* 1: a span; more: a run of that many; 65535: at least that many */
    uint16_t count;
} vst_view_rect;

/* The values of a counter in a stretch of time. */
typedef struct vst_view_value {
    double least, most, last;
} vst_view_value;

vst_status vst__view_window(vst_view *view, const vst_view_range *range,
                            void **bytes, size_t *count, vst_error *error);

/* ---- spans --------------------------------------------------------------- */

typedef struct vst_view_parent {
    vst_id id;
    int64_t start_ns, end_ns;
} vst_view_parent;

typedef struct vst_view_span {
    vst_id id;
    uint32_t thread, depth, flags; /* VST_SPAN_… */
    int64_t start_ns, end_ns, self_ns;
    /* Bytes and blocks that it allocated; self_bytes is UINT64_MAX (unknown)
     * for spans of very many records. */
    uint64_t self_bytes, total_bytes, allocations;
    char *args; /* JSON members; NULL: none */
    size_t args_len;
    vst_view_parent *parents; /* outermost first */
    size_t parent_count;
} vst_view_span;

/* Finds the span of a row at a time. Returns VST_E_ARGUMENT if there is none.
 */
vst_status vst__view_span_at(vst_view *view, uint32_t thread, uint32_t depth,
                             int64_t time_ns, vst_view_span *span,
                             vst_error *error);
void vst__view_span_free(vst_view_span *span);

typedef struct vst_view_ids {
    const vst_id *ids;
    size_t count;
} vst_view_ids;

/* Counts the spans of these ids that begin in each pixel: `counts` has `pixels`
 * elements. */
vst_status vst__view_find(vst_view *view, const vst_view_range *range,
                          const vst_view_ids *ids, uint32_t *counts,
                          vst_error *error);
/* Finds the first span of these ids that begins after from_ns, or with `back`
 * the last that begins before it; does not fill args and parents. Returns
 * VST_E_ARGUMENT if there is none. */
vst_status vst__view_next(vst_view *view, const vst_view_range *range,
                          const vst_view_ids *ids, bool back,
                          vst_view_span *span, vst_error *error);

/* A node of a tree of calls; parents come before their children. */
typedef struct vst_view_flame_row {
    int64_t parent; /* row of the parent; -1 at a root */
    vst_id id;
    uint64_t count;            /* spans with at least a part in the range */
    int64_t self_ns, total_ns; /* the parts inside the range */
    uint64_t self_bytes;       /* allocated in the range */
} vst_view_flame_row;

vst_status vst__view_flame(vst_view *view, const vst_view_range *range,
                           vst_view_flame_row **rows, size_t *count,
                           vst_error *error);

#endif
