/* A timeline of one or more processes: replays traces and draws their
 * processes, threads, spans, arrows and curves through the interface of
 * drawing.h, in any format.
 *
 * timeline.c draws process after process, timeline_process.c names processes
 * and threads, timeline_spans.c draws what threads did. Each further kind of
 * thing is a vst__timeline_part in a file of its own. One thread at a time. */
#ifndef VST_EXPORT_TIMELINE_H
#define VST_EXPORT_TIMELINE_H

#include <vestige/record.h>

#include "export/timeline/drawing.h"
#include "store/reader.h"

typedef struct vst__timeline vst__timeline;

/* One kind of things that are drawn in addition to the spans of threads. */
typedef struct vst__timeline_part {
    /* Sets the sink's functions that the part needs for timeline->process. */
    void (*watch)(vst__timeline *timeline, vst_sink *sink);
    /* Draws what remains after the spans. NULL: nothing. */
    vst_status (*finish)(vst__timeline *timeline);
    /* Frees what was kept of timeline->process. NULL: nothing. */
    void (*forget)(vst__timeline *timeline);
} vst__timeline_part;

extern const vst__timeline_part vst__timeline_devices;
extern const vst__timeline_part vst__timeline_operators;
extern const vst__timeline_part vst__timeline_starts;
extern const vst__timeline_part vst__timeline_states;
extern const vst__timeline_part vst__timeline_tasks;

/* A thread in the document. */
typedef struct vst__timeline_track {
    uint32_t tid;
    uint32_t states_tid; /* tid of the lane of its states; 0: none */
    bool shown;          /* has records in the exported windows */
} vst__timeline_track;

/* One trace. */
typedef struct vst__timeline_process {
    vst__drawn_process *drawn;
    vst_trace *trace;
    size_t first_window, window_count; /* the exported windows */
    int64_t steps_end_ns;        /* end of the last step on the windows' lane */
    vst__timeline_track *tracks; /* one for each of the trace's threads */
    uint32_t last_tid;           /* the last tid that was given out */
} vst__timeline_process;

/* A definition, and its label. */
typedef struct vst__timeline_name {
    vst__label label;
    vst_definition_kind kind;
    int32_t line;
    bool is_step; /* a step of the program, numbered by its profiler */
} vst__timeline_name;

struct vst__timeline {
    vst__drawing *drawing;
    const vst_export_options *options;
    vst__timeline_process *processes; /* as many as drawing->processes */

    /* The process that is being replayed. Serials of its spans continue after
     * those of earlier processes. */
    vst__timeline_process *process;
    vst_trace *trace;
    uint64_t serials_before, serial_max;
    vst__timeline_name *names; /* one for each definition */
    vst_id first_id;           /* id of names[0] */
    /* how many names from the first on have consecutive ids */
    size_t dense;
    /* for the lost definition that was looked up last */
    vst__timeline_name unknown;
    vst_id unknown_id;
    char unknown_text[48];
    uint32_t name_count; /* numbers given out */
    bool has_nodes;      /* has nodes of an execution trace */
    bool overloads; /* operators are shown with the names of their overloads */

    /* The thread that is being replayed. */
    bool has_thread;
    uint32_t thread;       /* number of the thread in the trace */
    uint32_t thread_tid;   /* tid of the thread in the document */
    vst__drawn_span plain; /* the last span of the thread without arguments */

    uint64_t last_arrow; /* the last number given out, for all processes */
    /* for timeline_starts.c, one per process */
    struct vst__timeline_birth *births;

    /* Data that the parts keep about the process. */
    struct vst__timeline_gradients *gradients;
    struct vst__timeline_task_lanes *task_lanes;
    struct vst__timeline_stream *stream;
};

static inline vst_status vst__timeline_status(const vst__timeline *timeline)
{
    return vst__drawing_status(timeline->drawing);
}

/* ---- timeline_process.c -------------------------------------------------- */

/* Gives every process its pid and every thread its tid. */
vst_status vst__timeline_assign(vst__timeline *timeline);
/* Draws timeline->process, with its threads and groups. */
void vst__timeline_draw_process(vst__timeline *timeline);
/* Returns the tid of the thread with this number. */
uint32_t vst__timeline_tid(const vst__timeline_process *process,
                           uint32_t number);

/* ---- timeline_names.c ---------------------------------------------------- */

/* Make and free the list of names of timeline->trace. */
vst_status vst__timeline_make_names(vst__timeline *timeline);
void vst__timeline_free_names(vst__timeline *timeline);
/* Returns NULL if memory ran out. An id without definition gets a name too,
 * which is valid until the next such id. */
vst__timeline_name *vst__timeline_make_name(vst__timeline *timeline, vst_id id);
static inline vst__timeline_name *
vst__timeline_find_name(vst__timeline *timeline, vst_id id)
{
    size_t index = (size_t)id - timeline->first_id;

    return VST_LIKELY(index < timeline->dense &&
                      timeline->names[index].label.number != 0)
               ? &timeline->names[index]
               : vst__timeline_make_name(timeline, id);
}
/* Makes a label of a text; vst__label_free() frees the label if it lasts. */
vst__label vst__label_of(const char *text, size_t count,
                         vst__category category);
void vst__label_free(vst__label *label);

/* ---- timeline_spans.c ---------------------------------------------------- */

/* Sets the sink's functions that draw spans, instants, counters and losses. */
void vst__timeline_watch_spans(vst__timeline *timeline, vst_sink *sink);
vst_status vst__timeline_draw_span(vst__timeline *timeline,
                                   const vst_span *span);
/* Returns the tid of the thread with this number. */
static inline uint32_t vst__timeline_thread(vst__timeline *timeline,
                                            uint32_t number)
{
    if (!timeline->has_thread || timeline->thread != number) {
        timeline->thread = number;
        timeline->thread_tid = vst__timeline_tid(timeline->process, number);
        timeline->has_thread = true;
    }
    return timeline->thread_tid;
}

/* ---- spans that the parts need ------------------------------------------- */

/* timeline_operators.c: notes an operator. span->op is not NULL; tid is the
 * document's. */
vst_status vst__timeline_note_operator(vst__timeline *timeline,
                                       const vst_span *span, uint32_t tid);
/* timeline_tasks.c: notes a span with VST_SPAN_STEP when it is drawn. */
vst_status vst__timeline_note_step(vst__timeline *timeline,
                                   const vst_span *span);

/* ---- timeline_memory.c --------------------------------------------------- */

/* Draws the memory of timeline->trace after its spans, continuing their
 * numbers. */
vst_status vst__timeline_draw_memory(vst__timeline *timeline, vst_error *error);

/* ---- timeline_devices.c -------------------------------------------------- */

/* Makes a group for each device of the process; drawing->processes must have
 * their pids. */
vst_status vst__timeline_make_groups(vst__timeline *timeline,
                                     vst__timeline_process *process);

/* ---- timeline_starts.c --------------------------------------------------- */

/* Finds each process's parent. */
vst_status vst__timeline_find_parents(vst__timeline *timeline);
/* Draws arrows from processes to those that they started, when all are drawn.
 */
vst_status vst__timeline_draw_starts(vst__timeline *timeline);
void vst__timeline_forget_starts(vst__timeline *timeline);

#endif
