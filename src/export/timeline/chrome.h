/* The inside of the Chrome exporter, shared by chrome.c (the document),
 * chrome_process.c (what is said of processes and threads), chrome_events.c
 * (the events of a replay), chrome_memory.c (allocations and frees) and
 * chrome_arrows.c (who started whom). Which processes, threads and arrows there
 * are is the same in Perfetto's own format: its exporter (perfetto.h) uses
 * these files and puts a drawing of its own. One thread at a time. */
#ifndef VST_EXPORT_CHROME_H
#define VST_EXPORT_CHROME_H

#include <vestige/memory.h>

#include "base/map64.h"
#include "export/output/json.h"
#include "export/output/output.h"
#include "store/reader.h"

#define VST_CHROME_INTERNAL                                                    \
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
typedef struct vst__chrome_track {
    uint32_t tid;
    bool shown; /* recorded something in the windows exported */
} vst__chrome_track;

/* So many definitions of functions that start processes are looked for. */
#define VST_CHROME_STARTERS 16

/* A call that starts a process. */
typedef struct vst__chrome_start {
    int64_t start_ns, end_ns;
    uint32_t tid; /* shown */
    uint32_t how; /* see chrome_arrows.c */
    bool taken;   /* one of the processes came of it */
} vst__chrome_start;

/* A forward operator and the backward one with its sequence number. */
typedef struct vst__chrome_flow {
    int64_t forward_ns, backward_ns;
    uint32_t forward_tid, backward_tid; /* shown; 0: not seen yet */
} vst__chrome_flow;

/* One trace: a process as the document shows it. */
typedef struct vst__chrome_process {
    vst_trace *trace;
    size_t first_window, window_count; /* those that are exported */
    uint32_t pid;                      /* no other process has it */
    uint32_t windows_tid;              /* track of the windows themselves */
    int64_t steps_end_ns;              /* of the last step that is on it */
    vst__chrome_track *tracks;         /* one for each of the trace's threads */

    /* ---- for chrome_arrows.c ---- */
    struct vst__chrome_process *parent; /* NULL: not in the document */
    uint32_t how;
    int64_t parent_ns;   /* when the parent started it */
    uint64_t parent_tid; /* the system's, 0: not known */
    bool has_children;   /* its calls that start processes are noted: */
    vst_id starters[VST_CHROME_STARTERS]; /* ids of what they call, or 0 */
    uint32_t starter_how[VST_CHROME_STARTERS];
    int64_t first_ns;   /* of the first span, once there was one */
    uint32_t first_tid; /* shown; 0: none yet */
    vst__chrome_start *starts;
    size_t start_count, start_capacity;
} vst__chrome_process;

typedef struct vst__chrome vst__chrome;

/* One end of an arrow. */
typedef struct vst__chrome_end {
    const vst__chrome_process *process;
    uint32_t tid;
    int64_t time_ns;
    const char *category, *name;
    uint64_t id; /* both ends have it, no other arrow of the category */
    bool is_head;
} vst__chrome_end;

/* How the parts of a timeline are written. */
typedef struct vst__drawing {
    vst_status (*span)(vst__chrome *chrome, const vst_span *span);
    void (*end)(vst__chrome *chrome, const vst__chrome_end *end);
    /* A value of a counter of the process. */
    void (*point)(vst__chrome *chrome, const char *name, int64_t time_ns,
                  uint64_t bytes);
    /* An allocation or a free; its size and live_bytes may be estimates, size
     * is that of the block. */
    void (*memory)(vst__chrome *chrome, const char *name,
                   const vst_memory_event *event, uint64_t size);
} vst__drawing;

struct vst__chrome {
    const vst__drawing *drawing;
    vst__output *output;
    int64_t base_ns; /* what ts counts from */
    vst__chrome_process *processes;
    size_t process_count;

    /* The process that is being replayed. Its spans' serials follow those of
     * the processes before it. */
    vst__chrome_process *process;
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

    /* ---- for chrome_flows.c: of the process that is being replayed ---- */
    vst__chrome_flow *flows;
    size_t flow_count, flow_capacity;
    vst__map64 flow_of; /* thread and sequence number -> 1 + index */
    uint64_t last_flow; /* of all processes */
};

/* A time as the document has it. Two traces of which one is damaged may be
 * further apart than 64 bits tell. */
static inline int64_t vst__chrome_time(const vst__chrome *chrome, int64_t ns)
{
    return (int64_t)((uint64_t)ns - (uint64_t)chrome->base_ns);
}

/* ---- chrome.c ----------------------------------------------------------- */

/* One for each trace, the windows of each and what times count from. */
vst_status vst__chrome_begin(vst__chrome *chrome, vst_trace *const *traces,
                             size_t count, int window);
void vst__chrome_end_all(vst__chrome *chrome);
/* Replays chrome->trace: the spans, then the memory. */
vst_status vst__chrome_replay(vst__chrome *chrome,
                              const vst_export_options *options,
                              const vst_sink *sink, vst_error *error);
void vst__chrome_put_u64(vst__output *output, uint64_t value);
void vst__chrome_put_us(vst__output *output, int64_t ns);
/* A value that somebody else made: as it is if it is JSON, else as text. */
void vst__chrome_put_value(vst__output *output, const char *json);

/* ---- chrome_process.c --------------------------------------------------- */

/* Gives every process its pid and every thread its tid. */
vst_status vst__chrome_assign(vst__chrome *chrome);
/* The name of chrome->process in a document of several, as JSON, of less than
 * VST_CHROME_NAME_MAX bytes. */
#define VST_CHROME_NAME_MAX ((size_t)4096)
void vst__chrome_put_long_name(vst__chrome *chrome, vst__output *output);
/* The same of what else tells it apart. */
void vst__chrome_put_labels(vst__chrome *chrome, vst__output *output);
/* Names and places of chrome->process and its threads; the first event of the
 * document has no comma before it. */
void vst__chrome_put_process(vst__chrome *chrome);

/* ---- chrome_events.c ---------------------------------------------------- */

/* The sink that writes a replay's events, each on a line of its own that begins
 * with a comma. */
void vst__chrome_sink(vst__chrome *chrome, vst_sink *sink);
vst_status vst__chrome_write_span(vst__chrome *chrome, const vst_span *span);
/* What clients call spans of this kind. */
const char *vst__chrome_category(vst_definition_kind kind);
bool vst__chrome_is_step(const vst_definition *definition);
/* A step that a callback begins and another one ends overlaps these calls, but
 * clients look for steps among the spans that are whole. They follow each
 * other, so there is room for them where the windows are; false: not for this
 * one. */
bool vst__chrome_make_room_for_step(vst__chrome *chrome, const vst_span *span);
/* Has chrome->thread_text be that of a thread. */
void vst__chrome_set_thread(vst__chrome *chrome, uint32_t number);
/* Room for the heads of chrome->trace, and their end. */
vst_status vst__chrome_make_heads(vst__chrome *chrome);
void vst__chrome_free_heads(vst__chrome *chrome);

/* ---- chrome_memory.c ---------------------------------------------------- */

/* What chrome->trace has of memory, once its spans are written: their numbers
 * go on with it. */
vst_status vst__chrome_put_memory(vst__chrome *chrome,
                                  const vst_export_options *options,
                                  vst_error *error);
void vst__chrome_put_point(vst__chrome *chrome, const char *name,
                           int64_t time_ns, uint64_t bytes);
void vst__chrome_put_memory_instant(vst__chrome *chrome, const char *name,
                                    const vst_memory_event *event,
                                    uint64_t size);
/* The innermost frame of the language; NULL: none. */
const vst_stack *vst__chrome_find_place(const vst_trace *trace,
                                        vst_stack_id id);

/* ---- chrome_flows.c ----------------------------------------------------- */

/* span->op is not NULL; tid is shown. */
vst_status vst__chrome_note_operator(vst__chrome *chrome, const vst_span *span,
                                     uint32_t tid);
/* What was noted of chrome->process. */
void vst__chrome_put_flows(vst__chrome *chrome);
void vst__chrome_forget_flows(vst__chrome *chrome);

/* ---- chrome_arrows.c ---------------------------------------------------- */

void vst__chrome_put_end(vst__chrome *chrome, const vst__chrome_end *end);
/* Finds each process's parent. */
void vst__chrome_find_parents(vst__chrome *chrome);
/* Has the sink note what the arrows of chrome->process need. */
void vst__chrome_watch(vst__chrome *chrome, vst_sink *sink);
/* Once all processes are written. */
vst_status vst__chrome_put_arrows(vst__chrome *chrome);

#endif
