/* The interface between a timeline and the formats that draw one. A timeline
 * (timeline.h) turns replayed traces into processes, lanes, spans, instants,
 * counters and arrows; a format writes these. No format knows what a span or a
 * lane stands for, and no part of a timeline knows how a format writes it. A
 * pointer handed to a format is valid only during the call, unless said
 * otherwise. Times are nanoseconds of the wall clock. One thread at a time. */
#ifndef VST_EXPORT_DRAWING_H
#define VST_EXPORT_DRAWING_H

#include <vestige/trace.h>

#include "export/output/json.h"
#include "export/output/output.h"
#include "replay/running.h"

/* Prefix of the keys of vestige's own metadata. */
#define VST_DRAWING_INTERNAL "vestige."

/* Categories by which clients know events. Formats may number them, so add new
 * categories at the end. */
typedef enum vst__category {
    VST_CATEGORY_OF_LABEL, /* a span has its label's category */
    VST_CATEGORY_CALL,
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

/* ---- arguments ----------------------------------------------------------- */

/* A key is padded, so that it can be copied with a constant size. */
typedef struct vst__key {
    char text[31];
    uint8_t count;
} vst__key;

#define VST_KEY(text) {(text), sizeof(text) - 1}

typedef enum vst__arg_type {
    VST_ARG_NONE, /* the value is unknown */
    VST_ARG_U64,
    VST_ARG_I64,
    VST_ARG_DOUBLE,
    VST_ARG_TEXT,
    VST_ARG_WORD, /* a short text of letters, digits and underscores */
    VST_ARG_TIME, /* nanoseconds, in i64; written in the document's own unit */
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
    /* members that the program gave; they follow the others */
    const char *json;
    size_t json_len; /* 0: none */
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

/* ---- things to draw ------------------------------------------------------ */

/* The name by which spans, instants or values of one kind are shown. */
typedef struct vst__label {
    const char *text; /* UTF-8 by intent */
    size_t count;
    vst__category category;
    /* 1, 2, 3 … within a process, in the order of first use; 0: the text is
     * used too rarely for a number. */
    uint32_t number;
    /* the label's spans are calls; only their place in the tree numbers them */
    bool is_call;
    bool in_bytes; /* the label's values are bytes */
    /* will be used again in this process, so preparing `ready` pays */
    bool lasts;
    const vst_definition *definition; /* NULL if it has none */

    /* For the format, NULL and 0 at first; `ready` is freed with the label. */
    char *ready;
    size_t ready_count;
    uint64_t track;
} vst__label;

/* Lanes that belong together and not to a thread, such as the streams of a
 * device. */
typedef struct vst__drawn_group {
    uint32_t number; /* number in the trace */
    uint32_t pid;    /* unique pid, in documents where the group is a process */
    uint32_t place;  /* index among its process's groups */
    uint32_t ordinal;
    char label[48];
    const char *name;
    size_t name_len;
    const char *attributes; /* JSON members */
    size_t attributes_len;
    uint64_t track; /* for the format, 0 at first */
} vst__drawn_group;

typedef struct vst__drawn_process {
    const vst_trace *trace; /* for metadata about its recording */
    size_t index;
    uint32_t pid;         /* unique in the document */
    uint32_t windows_tid; /* tid of the lane of the windows */
    int64_t start_ns, first_window_ns;
    vst__drawn_group *groups; /* the declared groups */
    size_t group_count;
    /* Contents of JSON strings; valid only in ops->process. */
    vst__json_part name, labels;
} vst__drawn_process;

/* A lane of a thread (no group, `under` 0), below the lane of a thread, or of a
 * group. */
typedef struct vst__drawn_lane {
    int64_t pid, tid; /* for documents that identify lanes by numbers */
    uint32_t under;   /* tid of the thread above; 0: none */
    vst__drawn_group *group;
    const char *name;
    size_t name_len;
    uint64_t place;
} vst__drawn_lane;

/* How a span lies among the other spans of its lane. */
typedef enum vst__fit {
    /* nests in the thread's spans at its depth; arrives when it ends */
    VST_FIT_NESTS,
    VST_FIT_OVERLAPS, /* may overlap the thread's spans */
    VST_FIT_ALONE,    /* on a lane whose spans do not overlap */
    VST_FIT_LOOSE     /* may overlap others of `lane` */
} vst__fit;

/* Arrows from one span to many; the id connects them. */
typedef struct vst__drawn_flow {
    vst__category category; /* category and name of the arrows */
    uint64_t id;
    uint32_t starts; /* number of arrows that start at this span */
    bool ends;       /* an arrow ends here */
    uint32_t index;  /* index among the arrows of its start */
    int64_t from_ns; /* begin of the span where the arrow starts */
} vst__drawn_flow;

typedef struct vst__drawn_span {
    vst__label *label;
    /* VST_CATEGORY_OF_LABEL, except for VST_FIT_LOOSE */
    vst__category category;
    vst__fit fit;
    uint32_t depth;
    /* tid of the thread in its process; unused for VST_FIT_LOOSE */
    uint32_t tid;
    const vst__drawn_lane *lane; /* for VST_FIT_LOOSE, else NULL */
    int64_t start_ns, end_ns;
    uint64_t number, caller;     /* numbers among all spans; 0: none */
    const vst__arg_list *args;   /* NULL: none */
    const vst__drawn_flow *flow; /* NULL: none */
} vst__drawn_span;

typedef struct vst__drawn_instant {
    vst__label *label;
    uint32_t tid;
    int64_t time_ns;
    const vst__arg_list *args; /* never NULL */
} vst__drawn_instant;

/* The state of a thread for a period. */
typedef struct vst__drawn_state {
    uint32_t tid;
    const char *name; /* the thread's name */
    size_t name_len;
    vst__thread_state what, next;
    int64_t start_ns, end_ns;
} vst__drawn_state;

/* A window: a period between a start and a stop. */
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
    uint64_t id;   /* unique among the arrows of the category */
    bool on_lanes; /* an end may lie on a lane that is not a thread's */
    vst__arrow_end from, to;
} vst__arrow;

/* ---- a format ------------------------------------------------------------ */

typedef struct vst__drawing vst__drawing;

/* The functions of a format. They report errors by vst__drawing_fail(). */
typedef struct vst__drawing_ops {
    /* Number spans like torch.profiler: a call names its caller, because the
     * document does not hold the tree; if there are nodes of an execution
     * trace, only these have a function's id. */
    bool numbers_as_torch;
    void (*begin)(vst__drawing *drawing);
    /* NULL: the document has no end of its own. */
    void (*end)(vst__drawing *drawing);
    /* Begins the process drawing->process; its threads and groups follow. */
    void (*process)(vst__drawing *drawing);
    /* NULL: groups are drawn with their first lanes. */
    void (*group)(vst__drawing *drawing, const vst__drawn_group *group);
    /* Called before anything is drawn on a lane; called again if its name has
     * changed. */
    void (*lane)(vst__drawing *drawing, const vst__drawn_lane *lane);
    void (*span)(vst__drawing *drawing, const vst__drawn_span *span);
    void (*instant)(vst__drawing *drawing, const vst__drawn_instant *instant);
    void (*counter)(vst__drawing *drawing, vst__label *label, uint32_t tid,
                    int64_t time_ns, const vst__arg *value);
    /* Called after the spans of both ends. */
    void (*arrow)(vst__drawing *drawing, const vst__arrow *arrow);
    /* NULL: states are drawn as spans, on lanes of their own. */
    void (*state)(vst__drawing *drawing, const vst__drawn_state *state);
    void (*window)(vst__drawing *drawing, const vst__drawn_window *window);
} vst__drawing_ops;

/* The first member of every format's struct. */
struct vst__drawing {
    const vst__drawing_ops *ops;
    vst__output *output;
    int64_t base_ns; /* a time from which the document's times may count */
    vst__drawn_process *processes;
    size_t process_count;
    const vst__drawn_process *process; /* the process that is being drawn */
    vst_status status; /* the first error other than the output's */
};

/* Returns a time in the document. The difference wraps around, because a
 * damaged trace may be too far from another for 64 bits. */
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

/* timeline.c: draws traces, each as a process. */
vst_status vst__timeline_draw(vst__drawing *drawing, vst_trace *const *traces,
                              size_t count, const vst_export_options *options,
                              vst_error *error);

#endif
