/* The interface between a timeline and the formats that draw one. A timeline
 * (timeline.h) turns replayed traces into processes, lanes, spans, instants,
 * counters and arrows; a format writes those. No format knows what a span or a
 * lane stands for, and nothing that is drawn knows how a format writes it.
 * Every pointer handed to a format is valid during the call only, unless said
 * otherwise. Times are nanoseconds of the wall clock. One thread at a time. */
#ifndef VST_EXPORT_DRAWING_H
#define VST_EXPORT_DRAWING_H

#include <vestige/trace.h>

#include "export/output/json.h"
#include "export/output/output.h"
#include "replay/running.h"

/* How keys of our own metadata begin. */
#define VST_DRAWING_INTERNAL "vestige."

/* Categories by which clients know events. Formats may number them: new ones go
 * to the end. */
typedef enum vst__category {
    VST_CATEGORY_CALL = 1,
    VST_CATEGORY_OPERATOR,
    VST_CATEGORY_ANNOTATION,
    VST_CATEGORY_INSTANT,
    VST_CATEGORY_COUNTER,
    VST_CATEGORY_WINDOW,
    VST_CATEGORY_MEMORY,
    VST_CATEGORY_GRADIENT,
    VST_CATEGORY_START,
    VST_CATEGORY_TASK,
    VST_CATEGORY_AWAIT,
    VST_CATEGORY_KERNEL,
    VST_CATEGORY_MEMCPY,
    VST_CATEGORY_MEMSET,
    VST_CATEGORY_SYNC,
    VST_CATEGORY_OVERHEAD,
    VST_CATEGORY_CUDA_RUNTIME,
    VST_CATEGORY_CUDA_DRIVER,
    VST_CATEGORY_XPU_RUNTIME,
    VST_CATEGORY_XPU_DRIVER,
    VST_CATEGORY_DEVICE_ANNOTATION,
    VST_CATEGORY_STATE,
    VST_CATEGORY_LAUNCH,
    VST_CATEGORIES
} vst__category;

const char *vst__category_name(vst__category category);

/* ---- arguments ---------------------------------------------------------- */

/* All of a key may be copied at a constant size. */
typedef struct vst__key {
    char text[31];
    uint8_t count;
} vst__key;

#define VST_KEY(text) {(text), sizeof(text) - 1}

typedef enum vst__arg_type {
    VST_ARG_NONE, /* the value is not known */
    VST_ARG_U64,
    VST_ARG_I64,
    VST_ARG_DOUBLE,
    VST_ARG_TEXT,
    VST_ARG_WORD, /* a short text of letters, digits and underscores */
    VST_ARG_TIME, /* nanoseconds, in i64; in the document's own unit */
    VST_ARG_DURATION
} vst__arg_type;

typedef struct vst__arg {
    const vst__key *key;
    vst__arg_type type;
    union {
        uint64_t u64;
        int64_t i64;
        double number;
        struct {
            const char *at; /* UTF-8 by intent */
            size_t count;
        } text;
    };
} vst__arg;

enum { VST_ARGS_MAX = 16 };

typedef struct vst__arg_list {
    size_t count;
    vst__arg items[VST_ARGS_MAX];
    const char *json; /* what the program gave, behind the others */
    size_t json_len;  /* 0: nothing */
} vst__arg_list;

static inline vst__arg *vst__args_add(vst__arg_list *args, const vst__key *key,
                                      vst__arg_type type)
{
    vst__arg *arg = &args->items[args->count++];

    arg->key = key;
    arg->type = type;
    return arg;
}

static inline void vst__args_u64(vst__arg_list *args, const vst__key *key,
                                 uint64_t value)
{
    vst__args_add(args, key, VST_ARG_U64)->u64 = value;
}

static inline void vst__args_i64(vst__arg_list *args, const vst__key *key,
                                 int64_t value)
{
    vst__args_add(args, key, VST_ARG_I64)->i64 = value;
}

static inline void vst__args_text(vst__arg_list *args, const vst__key *key,
                                  const char *at, size_t count)
{
    vst__arg *arg = vst__args_add(args, key, VST_ARG_TEXT);

    arg->text.at = at;
    arg->text.count = count;
}

/* ---- what is drawn ------------------------------------------------------ */

/* What spans, instants or values of one kind are shown by. */
typedef struct vst__label {
    const char *text; /* UTF-8 by intent */
    size_t count;
    vst__category category;
    /* 1, 2, 3 … in a process, in the order of their first use; 0: a text that
     * is not worth a number. */
    uint32_t number;
    bool is_call;  /* its spans have no numbers but those of the tree */
    bool in_bytes; /* its values are bytes */
    bool lasts;    /* used again in this process: `ready` is worth the making */
    const vst_definition *definition; /* NULL: none */

    /* The format's own, NULL and 0 at first; `ready` is freed with the label.
     */
    char *ready;
    size_t ready_count;
    uint64_t track;
} vst__label;

/* Lanes that belong together and to no thread, such as those of a device. */
typedef struct vst__drawn_group {
    uint32_t number; /* the trace's */
    uint32_t pid; /* in documents where it is a process; no other one has it */
    uint32_t place; /* among its process's groups */
    uint32_t ordinal;
    char label[48];
    const char *name;
    size_t name_len;
    const char *attributes; /* JSON members */
    size_t attributes_len;
    uint64_t track; /* the format's own, 0 at first */
} vst__drawn_group;

typedef struct vst__drawn_process {
    const vst_trace *trace; /* for what its recording says of itself */
    size_t index;
    uint32_t pid;         /* no other process has it */
    uint32_t windows_tid; /* the lane of the windows */
    int64_t start_ns, first_window_ns;
    vst__drawn_group *groups; /* those that were declared */
    size_t group_count;
    /* The insides of JSON strings; only while its beginning is drawn. */
    vst__json_part name, labels;
} vst__drawn_process;

/* Where things are drawn. A thread's lane (no group, nothing it lies under); a
 * lane under a thread's; or one of a group. */
typedef struct vst__drawn_lane {
    int64_t pid, tid; /* where a document knows lanes by such numbers */
    uint32_t under;   /* tid of a thread; 0: under none */
    vst__drawn_group *group;
    const char *name;
    size_t name_len;
    uint64_t place;
} vst__drawn_lane;

/* How a span lies among the others of its lane. */
typedef enum vst__fit {
    VST_FIT_NESTS,    /* in those of the thread, at its depth; comes when it
                       * ends */
    VST_FIT_OVERLAPS, /* those of the thread */
    VST_FIT_ALONE,    /* none of the lane overlaps another */
    VST_FIT_LOOSE     /* it may overlap others of `lane` */
} vst__fit;

/* Arrows from one span to many, which know each other by a number. */
typedef struct vst__drawn_flow {
    vst__category category; /* of the arrows, and their name */
    uint64_t id;
    uint32_t starts; /* so many start at this span */
    bool ends;       /* one ends here */
    uint32_t index;  /* which one of those of its start */
    int64_t from_ns; /* when its start began */
} vst__drawn_flow;

typedef struct vst__drawn_span {
    vst__label *label;
    vst__category category;
    vst__fit fit;
    uint32_t depth;
    uint32_t tid;                /* of the process's; LOOSE: the lane says it */
    const vst__drawn_lane *lane; /* LOOSE: NULL otherwise */
    int64_t start_ns, end_ns;
    uint64_t number, caller;     /* among all spans, 0: none */
    const vst__arg_list *args;   /* NULL: none */
    const vst__drawn_flow *flow; /* NULL: none */
} vst__drawn_span;

typedef struct vst__drawn_instant {
    vst__label *label;
    uint32_t tid;
    int64_t time_ns;
    const vst__arg_list *args; /* never NULL */
} vst__drawn_instant;

/* What a thread did for a while. */
typedef struct vst__drawn_state {
    uint32_t tid;
    const char *name; /* of the thread */
    size_t name_len;
    vst__thread_state what, next;
    int64_t start_ns, end_ns;
} vst__drawn_state;

/* A stretch of recording. */
typedef struct vst__drawn_window {
    uint32_t number;
    int64_t start_ns, end_ns;
} vst__drawn_window;

typedef struct vst__arrow_end {
    const vst__drawn_process *process;
    uint32_t tid;
    int64_t time_ns;
} vst__arrow_end;

typedef struct vst__arrow {
    vst__category category;
    const char *name;
    uint64_t id;   /* no other arrow of the category has it */
    bool on_lanes; /* an end may lie on a lane that is no thread's */
    vst__arrow_end from, to;
} vst__arrow;

/* ---- a format ----------------------------------------------------------- */

typedef struct vst__drawing vst__drawing;

/* A format reports trouble by vst__drawing_fail(). */
typedef struct vst__drawing_ops {
    /* Spans are numbered as torch.profiler numbers them: calls name their
     * caller, as the document does not hold the tree, and where there are nodes
     * of an execution trace only those have a function's id. */
    bool numbers_as_torch;
    void (*begin)(vst__drawing *drawing);
    void (*end)(vst__drawing *drawing, const char *path);
    /* drawing->process is another one; its threads and groups follow. */
    void (*process)(vst__drawing *drawing);
    /* NULL: groups are drawn with their first lanes. */
    void (*group)(vst__drawing *drawing, const vst__drawn_group *group);
    /* Before anything is on it; again if its name has changed. */
    void (*lane)(vst__drawing *drawing, const vst__drawn_lane *lane);
    void (*span)(vst__drawing *drawing, const vst__drawn_span *span);
    void (*instant)(vst__drawing *drawing, const vst__drawn_instant *instant);
    void (*counter)(vst__drawing *drawing, vst__label *label, uint32_t tid,
                    int64_t time_ns, const vst__arg *value);
    /* Behind the spans of both ends. */
    void (*arrow)(vst__drawing *drawing, const vst__arrow *arrow);
    /* NULL: states are spans, on lanes of their own. */
    void (*state)(vst__drawing *drawing, const vst__drawn_state *state);
    void (*window)(vst__drawing *drawing, const vst__drawn_window *window);
} vst__drawing_ops;

/* The first member of every format's own. */
struct vst__drawing {
    const vst__drawing_ops *ops;
    vst__output *output;
    int64_t base_ns; /* what a document's times may count from */
    vst__drawn_process *processes;
    size_t process_count;
    const vst__drawn_process *process; /* the one that is being drawn */
    vst_status status; /* the first trouble that is not the output's */
};

/* A time as the document has it. Two traces of which one is damaged may be
 * further apart than 64 bits tell. */
static inline int64_t vst__drawing_time(const vst__drawing *drawing, int64_t ns)
{
    return (int64_t)((uint64_t)ns - (uint64_t)drawing->base_ns);
}

static inline void vst__drawing_fail(vst__drawing *drawing, vst_status status)
{
    if (drawing->status == VST_OK)
        drawing->status = status;
}

static inline vst_status vst__drawing_status(const vst__drawing *drawing)
{
    return drawing->status != VST_OK ? drawing->status
                                     : drawing->output->status;
}

/* Draws traces, a process each; timeline.c. */
vst_status vst__timeline_draw(vst__drawing *drawing, vst_trace *const *traces,
                              size_t count, const vst_export_options *options,
                              const char *path, vst_error *error);

#endif
