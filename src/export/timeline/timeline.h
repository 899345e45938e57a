/* The inside of the Chrome exporter, shared by chrome.c (the document),
 * timeline_process.c (what is said of processes and threads), chrome_events.c
 * (the events of a replay), timeline_memory.c (allocations and frees) and
 * timeline_arrows.c (who started whom). Which processes, threads and arrows
 * there are is the same in Perfetto's own format: its exporter (perfetto.h)
 * uses these files and puts a drawing of its own. One thread at a time. */
#ifndef VST_EXPORT_TIMELINE_H
#define VST_EXPORT_TIMELINE_H

#include <vestige/memory.h>

#include "base/map64.h"
#include "export/output/json.h"
#include "export/output/output.h"
#include "store/reader.h"

#define VST_TIMELINE_INTERNAL                                                  \
    "vestige." /* how keys of our own metadata begin                           \
                */

/* How an event of one definition begins, up to the tid's value. */
typedef struct vst__chrome_head {
    char *bytes; /* NULL: not made yet */
    size_t count;
    vst_definition_kind kind;
    bool is_step; /* of the program's, as its profiler counts them */
    int32_t line;
} vst__chrome_head;

/* A thread as the document shows it. */
typedef struct vst__timeline_track {
    uint32_t tid;
    bool shown; /* recorded something in the windows exported */
} vst__timeline_track;

/* So many definitions of functions that start processes are looked for. */
#define VST_TIMELINE_STARTERS 16

/* A call that starts a process. */
typedef struct vst__timeline_start {
    int64_t start_ns, end_ns;
    uint32_t tid; /* shown */
    uint32_t how; /* see timeline_arrows.c */
    bool taken;   /* one of the processes came of it */
} vst__timeline_start;

/* A forward operator and the backward one with its sequence number. */
typedef struct vst__timeline_flow {
    int64_t forward_ns, backward_ns;
    uint32_t forward_tid, backward_tid; /* shown; 0: not seen yet */
} vst__timeline_flow;

/* One trace: a process as the document shows it. */
typedef struct vst__timeline_process {
    vst_trace *trace;
    size_t first_window, window_count; /* those that are exported */
    uint32_t pid;                      /* no other process has it */
    uint32_t windows_tid;              /* track of the windows themselves */
    int64_t steps_end_ns;              /* of the last step that is on it */
    vst__timeline_track *tracks;       /* one for each of the trace's threads */

    /* ---- for timeline_arrows.c ---- */
    struct vst__timeline_process *parent; /* NULL: not in the document */
    uint32_t how;
    int64_t parent_ns;   /* when the parent started it */
    uint64_t parent_tid; /* the system's, 0: not known */
    bool has_children;   /* its calls that start processes are noted: */
    vst_id starters[VST_TIMELINE_STARTERS]; /* ids of what they call, or 0 */
    uint32_t starter_how[VST_TIMELINE_STARTERS];
    int64_t first_ns;   /* of the first span, once there was one */
    uint32_t first_tid; /* shown; 0: none yet */
    vst__timeline_start *starts;
    size_t start_count, start_capacity;
} vst__timeline_process;

typedef struct vst__timeline vst__timeline;

/* One end of an arrow. */
typedef struct vst__arrow_end {
    const vst__timeline_process *process;
    uint32_t tid;
    int64_t time_ns;
    const char *category, *name;
    uint64_t id; /* both ends have it, no other arrow of the category */
    bool is_head;
} vst__arrow_end;

/* How the parts of a timeline are written. */
typedef struct vst__drawing {
    vst_status (*span)(vst__timeline *timeline, const vst_span *span);
    void (*end)(vst__timeline *timeline, const vst__arrow_end *end);
    /* A value of a counter of the process. */
    void (*point)(vst__timeline *timeline, const char *name, int64_t time_ns,
                  uint64_t bytes);
    /* An allocation or a free; its size and live_bytes may be estimates, size
     * is that of the block. */
    void (*memory)(vst__timeline *timeline, const char *name,
                   const vst_memory_event *event, uint64_t size);
} vst__drawing;

struct vst__timeline {
    const vst__drawing *drawing;
    vst__output *output;
    int64_t base_ns; /* what ts counts from */
    vst__timeline_process *processes;
    size_t process_count;

    /* The process that is being replayed. Its spans' serials follow those of
     * the processes before it. */
    vst__timeline_process *process;
    vst_trace *trace;
    uint64_t serials_before, serial_max;
    vst__chrome_head *heads;  /* one for each definition */
    vst__chrome_head unknown; /* for the id that lost its definition last */
    vst_id unknown_id;
    bool has_nodes; /* of an execution trace */

    /* The thread that is being replayed: its number, and the text between an
     * event's head and its time. */
    bool has_thread;
    uint32_t thread;
    char thread_text[48];
    size_t thread_count;
    uint32_t thread_tid; /* shown */
    /* Behind it the digits that times have in common while they differ by less
     * than VST_JSON_EIGHT nanoseconds; 0: there are none. */
    uint64_t time_from;
    size_t time_count; /* of the text with these digits */

    /* ---- for timeline_flows.c: of the process that is being replayed ---- */
    vst__timeline_flow *flows;
    size_t flow_count, flow_capacity;
    vst__map64 flow_of; /* thread and sequence number -> 1 + index */
    uint64_t last_flow; /* of all processes */
};

/* A time as the document has it. Two traces of which one is damaged may be
 * further apart than 64 bits tell. */
static inline int64_t vst__timeline_time(const vst__timeline *timeline,
                                         int64_t ns)
{
    return (int64_t)((uint64_t)ns - (uint64_t)timeline->base_ns);
}

/* ---- chrome.c ----------------------------------------------------------- */

/* One for each trace, the windows of each and what times count from. */
vst_status vst__timeline_begin(vst__timeline *timeline,
                               vst_trace *const *traces, size_t count,
                               int window);
void vst__timeline_end(vst__timeline *timeline);
/* Replays timeline->trace: the spans, then the memory. */
vst_status vst__timeline_replay(vst__timeline *timeline,
                                const vst_export_options *options,
                                const vst_sink *sink, vst_error *error);
void vst__chrome_put_u64(vst__output *output, uint64_t value);
void vst__chrome_put_us(vst__output *output, int64_t ns);
/* A value that somebody else made: as it is if it is JSON, else as text. */
void vst__chrome_put_value(vst__output *output, const char *json);

/* ---- timeline_process.c ---------------------------------------------------
 */

/* Gives every process its pid and every thread its tid. */
vst_status vst__timeline_assign(vst__timeline *timeline);
/* The name of timeline->process in a document of several, as JSON, of less than
 * VST_TIMELINE_NAME_MAX bytes. */
#define VST_TIMELINE_NAME_MAX ((size_t)4096)
void vst__timeline_put_long_name(vst__timeline *timeline, vst__output *output);
/* The same of what else tells it apart. */
void vst__timeline_put_labels(vst__timeline *timeline, vst__output *output);
/* Names and places of timeline->process and its threads; the first event of the
 * document has no comma before it. */
void vst__chrome_put_process(vst__timeline *timeline);

/* ---- chrome_events.c ---------------------------------------------------- */

/* The sink that writes a replay's events, each on a line of its own that begins
 * with a comma. */
void vst__chrome_sink(vst__timeline *timeline, vst_sink *sink);
vst_status vst__chrome_write_span(vst__timeline *timeline,
                                  const vst_span *span);
/* What clients call spans of this kind. */
const char *vst__chrome_category(vst_definition_kind kind);
bool vst__timeline_is_step(const vst_definition *definition);
/* A step that a callback begins and another one ends overlaps these calls, but
 * clients look for steps among the spans that are whole. They follow each
 * other, so there is room for them where the windows are; false: not for this
 * one. */
bool vst__timeline_make_room_for_step(vst__timeline *timeline,
                                      const vst_span *span);
/* Has timeline->thread_text be that of a thread. */
void vst__chrome_set_thread(vst__timeline *timeline, uint32_t number);
/* Room for the heads of timeline->trace, and their end. */
vst_status vst__chrome_make_heads(vst__timeline *timeline);
void vst__chrome_free_heads(vst__timeline *timeline);

/* ---- timeline_memory.c ----------------------------------------------------
 */

/* What timeline->trace has of memory, once its spans are written: their numbers
 * go on with it. */
vst_status vst__timeline_put_memory(vst__timeline *timeline,
                                    const vst_export_options *options,
                                    vst_error *error);
void vst__chrome_put_point(vst__timeline *timeline, const char *name,
                           int64_t time_ns, uint64_t bytes);
void vst__chrome_put_memory_instant(vst__timeline *timeline, const char *name,
                                    const vst_memory_event *event,
                                    uint64_t size);
/* The innermost frame of the language; NULL: none. */
const vst_stack *vst__timeline_find_place(const vst_trace *trace,
                                          vst_stack_id id);

/* ---- timeline_flows.c -----------------------------------------------------
 */

/* span->op is not NULL; tid is shown. */
vst_status vst__timeline_note_operator(vst__timeline *timeline,
                                       const vst_span *span, uint32_t tid);
/* What was noted of timeline->process. */
void vst__timeline_put_flows(vst__timeline *timeline);
void vst__timeline_forget_flows(vst__timeline *timeline);

/* ---- timeline_arrows.c ----------------------------------------------------
 */

void vst__chrome_put_end(vst__timeline *timeline, const vst__arrow_end *end);
/* Finds each process's parent. */
void vst__timeline_find_parents(vst__timeline *timeline);
/* Has the sink note what the arrows of timeline->process need. */
void vst__timeline_watch(vst__timeline *timeline, vst_sink *sink);
/* Once all processes are written. */
vst_status vst__timeline_put_arrows(vst__timeline *timeline);

#endif
