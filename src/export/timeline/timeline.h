/* A timeline of one process or several: which processes, threads, arrows and
 * curves of memory there are, and by which numbers and names. Two exporters
 * draw one: chrome.c and perfetto.c. What is drawn the same way at
 * the same moment by both of them goes through a vst__drawing; the events of a
 * replay go to the sink of each.
 *
 * Shared by timeline.c (beginning, end, replaying), timeline_process.c
 * (processes and threads), timeline_memory.c (allocations and frees),
 * timeline_flows.c (operators and their gradients), timeline_tasks.c (lanes of
 * tasks), timeline_arrows.c (which process started which), timeline_states.c
 * (when threads ran) and timeline_devices.c (what devices did). One thread at a
 * time. */
#ifndef VST_EXPORT_TIMELINE_H
#define VST_EXPORT_TIMELINE_H

#include <vestige/device.h>
#include <vestige/memory.h>

#include "base/map64.h"
#include "export/output/json.h"
#include "export/output/output.h"
#include "replay/running.h"
#include "store/reader.h"

/* How keys of our own metadata begin. */
#define VST_TIMELINE_INTERNAL "vestige."

/* A thread as the document shows it. */
typedef struct vst__timeline_track {
    uint32_t tid;
    uint32_t states_tid; /* of a track of its states; 0: there is none */
    bool shown;          /* recorded something in the windows exported */
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
    uint32_t *device_pids;             /* one for each of its devices */

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

/* What a thread did for a while. */
typedef struct vst__state {
    const vst_trace_thread *thread;
    vst__thread_state what, next;
    int64_t start_ns, end_ns;
} vst__state;

/* A step of a task, or the wait after it, on the task's lane. */
typedef struct vst__task_span {
    uint32_t tid;  /* of the lane */
    uint32_t task; /* number */
    int64_t start_ns, end_ns;
    const char *name;
    size_t name_len;
    bool is_wait;
} vst__task_span;

/* What a device did for an annotation on one of its streams. */
typedef struct vst__timeline_annotated {
    uint64_t serial;
    vst_id id;
    int64_t start_ns, end_ns;
} vst__timeline_annotated;

/* The stream of a device that is being written. */
typedef struct vst__timeline_stream {
    uint32_t device, number; /* device 0: none */
    vst__timeline_annotated *annotated;
    size_t annotated_count, annotated_capacity;
    vst__map64 annotated_of; /* serial -> 1 + index */
} vst__timeline_stream;

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
    void (*state)(vst__timeline *timeline, const vst__state *state);
    /* A lane of tasks under a thread, before what is on it. */
    void (*lane)(vst__timeline *timeline, uint32_t thread, uint32_t tid,
                 const char *name, size_t name_len);
    void (*task)(vst__timeline *timeline, const vst__task_span *span);

    /* Devices. A stream (timeline->stream) comes before what is on it,
     * annotations behind it. */
    void (*stream)(vst__timeline *timeline, const char *name, size_t name_len);
    void (*activity)(vst__timeline *timeline, const vst_device_span *span);
    void (*annotated)(vst__timeline *timeline,
                      const vst__timeline_annotated *annotated);
    /* Arguments of an activity that is being written. */
    void (*number)(vst__timeline *timeline, const char *key, int64_t value);
    void (*fraction)(vst__timeline *timeline, const char *key, double value);
    void (*definition)(vst__timeline *timeline, const char *key, vst_id id);
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

    /* The thread that is being replayed. */
    bool has_thread;
    uint32_t thread;     /* its number */
    uint32_t thread_tid; /* shown */

    /* ---- for timeline_flows.c: of the process that is being replayed ---- */
    vst__timeline_flow *flows;
    size_t flow_count, flow_capacity;
    vst__map64 flow_of; /* thread and sequence number -> 1 + index */
    uint64_t last_flow; /* of all processes */

    struct vst__timeline_tasks *tasks; /* of timeline_tasks.c; NULL: none yet */
    vst__timeline_stream stream;       /* for timeline_devices.c */
};

/* A time as the document has it. Two traces of which one is damaged may be
 * further apart than 64 bits tell. */
static inline int64_t vst__timeline_time(const vst__timeline *timeline,
                                         int64_t ns)
{
    return (int64_t)((uint64_t)ns - (uint64_t)timeline->base_ns);
}

/* ---- timeline.c --------------------------------------------------------- */

/* One for each trace, the windows of each and what times count from. */
vst_status vst__timeline_begin(vst__timeline *timeline,
                               vst_trace *const *traces, size_t count,
                               int window);
void vst__timeline_end(vst__timeline *timeline);
/* Replays timeline->trace: the spans, then the memory. */
vst_status vst__timeline_replay(vst__timeline *timeline,
                                const vst_export_options *options,
                                const vst_sink *sink, vst_error *error);
bool vst__timeline_is_step(const vst_definition *definition);
/* A step that a callback begins and another one ends overlaps these calls, but
 * clients look for steps among the spans that are whole. They follow each
 * other, so there is room for them where the windows are; false: not for this
 * one. */
bool vst__timeline_make_room_for_step(vst__timeline *timeline,
                                      const vst_span *span);

/* ---- timeline_process.c ------------------------------------------------- */

/* Gives every process its pid and every thread its tid. */
vst_status vst__timeline_assign(vst__timeline *timeline);
/* The name of timeline->process in a document of several, as JSON, of less than
 * VST_TIMELINE_NAME_MAX bytes. */
#define VST_TIMELINE_NAME_MAX ((size_t)4096)
void vst__timeline_put_long_name(vst__timeline *timeline, vst__output *output);
/* The same of what else tells it apart. */
void vst__timeline_put_labels(vst__timeline *timeline, vst__output *output);

/* The pid by which a device of timeline->process is shown. */
uint32_t vst__timeline_device_pid(const vst__timeline_process *process,
                                  uint32_t device);

/* ---- timeline_memory.c -------------------------------------------------- */

/* What timeline->trace has of memory, once its spans are written: their numbers
 * go on with it. */
vst_status vst__timeline_put_memory(vst__timeline *timeline,
                                    const vst_export_options *options,
                                    vst_error *error);
/* The innermost frame of the language; NULL: none. */
const vst_stack *vst__timeline_find_place(const vst_trace *trace,
                                          vst_stack_id id);

/* ---- timeline_flows.c --------------------------------------------------- */

/* span->op is not NULL; tid is shown. */
vst_status vst__timeline_note_operator(vst__timeline *timeline,
                                       const vst_span *span, uint32_t tid);
/* What was noted of timeline->process. */
void vst__timeline_put_flows(vst__timeline *timeline);
void vst__timeline_forget_flows(vst__timeline *timeline);

/* ---- timeline_states.c -------------------------------------------------- */

/* The states of the threads of timeline->process, where its trace has any. */
vst_status vst__timeline_put_states(vst__timeline *timeline);

/* ---- timeline_tasks.c --------------------------------------------------- */

/* Has the sink draw the tasks of timeline->process. */
void vst__timeline_watch_tasks(vst__timeline *timeline, vst_sink *sink);
/* A span with VST_SPAN_STEP, when it is written. */
vst_status vst__timeline_note_step(vst__timeline *timeline,
                                   const vst_span *span);
/* Arrows of work for thread pools, once the spans are written. */
void vst__timeline_put_work(vst__timeline *timeline);
void vst__timeline_forget_tasks(vst__timeline *timeline);

/* ---- timeline_devices.c ------------------------------------------------- */

/* What clients call activities. */
typedef enum vst__device_category {
    VST_DEVICE_KERNEL,
    VST_DEVICE_MEMCPY,
    VST_DEVICE_MEMSET,
    VST_DEVICE_SYNC,
    VST_DEVICE_OVERHEAD,
    VST_DEVICE_CUDA_RUNTIME,
    VST_DEVICE_CUDA_DRIVER,
    VST_DEVICE_XPU_RUNTIME,
    VST_DEVICE_XPU_DRIVER,
    VST_DEVICE_ANNOTATION,
    VST_DEVICE_CATEGORIES
} vst__device_category;

const char *vst__device_category_name(vst__device_category category);
vst__device_category
vst__timeline_activity_category(const vst__timeline *timeline,
                                const vst_device_span *span);
/* `GPU 0`, into so many bytes; its length. */
#define VST_DEVICE_LABEL_MAX 48
size_t vst__timeline_device_label(const vst_trace_device *device, char *text);
/* What is on no stream, as a wait for a context, is on torch's -1. */
static inline int64_t vst__timeline_stream_number(uint32_t stream)
{
    return stream == UINT32_MAX ? -1 : (int64_t)stream;
}

/* Has the drawing put the arguments that clients look for; what the collector
 * gave comes behind them. */
void vst__timeline_put_activity_args(vst__timeline *timeline,
                                     const vst_device_span *span);
/* The number of the arrow from a call to what it launched. Those of several
 * processes, or collectors, are told apart by what no correlation id reaches:
 * numbers stay exact up to 2 ** 53. */
uint64_t vst__timeline_activity_flow(const vst__timeline *timeline,
                                     const vst_device_span *span);
/* Has the drawing begin timeline->stream, by the name that was declared, or its
 * number. */
void vst__timeline_put_stream(vst__timeline *timeline);
/* Has the sink draw devices. */
void vst__timeline_watch_devices(vst__timeline *timeline, vst_sink *sink);
/* After the replay: the annotations of the last stream; and frees what was
 * kept. */
void vst__timeline_end_devices(vst__timeline *timeline);

/* ---- timeline_arrows.c -------------------------------------------------- */

/* Finds each process's parent. */
void vst__timeline_find_parents(vst__timeline *timeline);
/* The tid by which a thread is shown, by its number. */
uint32_t vst__timeline_tid(const vst__timeline_process *process,
                           uint32_t number);
/* Has the sink note what the arrows of timeline->process need. */
void vst__timeline_watch(vst__timeline *timeline, vst_sink *sink);
/* Once all processes are written. */
vst_status vst__timeline_put_arrows(vst__timeline *timeline);

#endif
