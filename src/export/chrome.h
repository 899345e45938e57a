/* The inside of the Chrome exporter, shared by chrome.c (the document),
 * chrome_process.c (what is said of processes and threads), chrome_events.c
 * (the events of a replay), chrome_memory.c (allocations and frees) and
 * chrome_arrows.c (who started whom). One thread at a time. */
#ifndef VST_EXPORT_CHROME_H
#define VST_EXPORT_CHROME_H

#include "base/map64.h"
#include "export/json.h"
#include "export/output.h"
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

typedef struct vst__chrome {
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

    /* ---- for chrome_flows.c: of the process that is being replayed ---- */
    vst__chrome_flow *flows;
    size_t flow_count, flow_capacity;
    vst__map64 flow_of; /* thread and sequence number -> 1 + index */
    uint64_t last_flow; /* of all processes */
} vst__chrome;

/* A time as the document has it. Two traces of which one is damaged may be
 * further apart than 64 bits tell. */
static inline int64_t vst__chrome_time(const vst__chrome *chrome, int64_t ns)
{
    return (int64_t)((uint64_t)ns - (uint64_t)chrome->base_ns);
}

/* ---- chrome.c ----------------------------------------------------------- */

void vst__chrome_put_u64(vst__output *output, uint64_t value);
void vst__chrome_put_us(vst__output *output, int64_t ns);
/* A value that somebody else made: as it is if it is JSON, else as text. */
void vst__chrome_put_value(vst__output *output, const char *json);

/* ---- chrome_process.c --------------------------------------------------- */

/* Gives every process its pid and every thread its tid. */
vst_status vst__chrome_assign(vst__chrome *chrome);
/* Names and places of chrome->process and its threads; the first event of the
 * document has no comma before it. */
void vst__chrome_put_process(vst__chrome *chrome);

/* ---- chrome_events.c ---------------------------------------------------- */

/* The sink that writes a replay's events, each on a line of its own that begins
 * with a comma. */
void vst__chrome_sink(vst__chrome *chrome, vst_sink *sink);
vst_status vst__chrome_write_span(vst__chrome *chrome, const vst_span *span);
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
/* ---- chrome_flows.c ----------------------------------------------------- */

/* span->op is not NULL; tid is shown. */
vst_status vst__chrome_note_operator(vst__chrome *chrome, const vst_span *span,
                                     uint32_t tid);
/* What was noted of chrome->process. */
void vst__chrome_put_flows(vst__chrome *chrome);
void vst__chrome_forget_flows(vst__chrome *chrome);

/* ---- chrome_arrows.c ---------------------------------------------------- */

/* Finds each process's parent. */
void vst__chrome_find_parents(vst__chrome *chrome);
/* Has the sink note what the arrows of chrome->process need. */
void vst__chrome_watch(vst__chrome *chrome, vst_sink *sink);
/* Once all processes are written. */
vst_status vst__chrome_put_arrows(vst__chrome *chrome);

#endif
