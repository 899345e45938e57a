/* The parts of the tables of sums. sums.c reads spans once for all parts and
 * finds out which function gets which time; each other file adds up some tables
 * and puts their rows. All share struct vst__sums. One thread at a time. */
#ifndef VST_TABLES_SUMS_H
#define VST_TABLES_SUMS_H

#include "base/intern.h"
#include "replay/contexts.h"
#include "replay/own_times.h"
#include "replay/tasks.h"
#include "tables/histogram.h"
#include "tables/pass.h"
#include "tables/spread.h"
#include "tables/table.h"

/* The parts that tables are made of: a bit each. */
enum {
    VST_SUMS_FUNCTIONS = 1,
    VST_SUMS_CALLS = 2,
    VST_SUMS_THREADS = 4,
    VST_SUMS_COLLECTIONS = 8,
    VST_SUMS_STEPS = 16,
    VST_SUMS_REPEATS = 32,
    VST_SUMS_ESTIMATES = 64,
    VST_SUMS_EXCEPTIONS = 128,
    VST_SUMS_DURATIONS = 256,
    VST_SUMS_LINES = 512
};

/* ---- functions ----------------------------------------------------------- */

typedef struct vst__function_sum {
    uint64_t calls;
    /* calls that were not inside another call of the function */
    uint64_t outer;
    int64_t self_ns, total_ns;
    int64_t max_ns;          /* the part of total_ns in one call */
    int64_t running_ns;      /* the part of total_ns that the calls ran */
    uint64_t unknown;        /* spans whose running time is unknown */
    int64_t self_running_ns; /* the part of self_ns that the calls ran */
    uint64_t self_unknown;   /* like unknown, including calls inside others */
    int64_t error_ns;        /* error of total_ns, if that is compensated */
    uint64_t uncompensated;  /* spans whose compensated time is unknown */
    uint64_t self_bytes, total_bytes, allocations;
} vst__function_sum;

typedef struct vst__function_sums {
    vst__function_sum *of; /* by definition id */
    vst__spread *self, *total;
} vst__function_sums;

/* ---- estimates ----------------------------------------------------------- */

/* Functions that a budget left out for a time: see estimates.c. */
typedef struct vst__estimates {
    /* NULL: nothing was left out, or no table asks */
    struct vst_budget *budget;
    struct vst__estimate *of; /* by definition id */
    /* For the thread that is being read: the functions that it called, the
     * times of its first and last call, and how much of the time in between
     * counts for a call. */
    vst_id *touched;
    size_t touched_count;
    bool has_thread;
    int64_t first_ns, last_ns, spent_ns;
} vst__estimates;

/* ---- the tree of calls --------------------------------------------------- */

/* Waits of tasks, which are leaves of the tree: see awaits.c. */
typedef struct vst__awaits {
    vst__tasks *tasks;
    struct vst__open_step *open; /* open steps, nested */
    size_t count, capacity;
} vst__awaits;

typedef struct vst__call_sums {
    vst_contexts *tree;
    const vst_context_row *rows; /* set when all is read */
    size_t count;
    vst__own_times folded; /* for a tree without frames of the import system */
    vst__awaits awaits;
} vst__call_sums;

/* ---- threads ------------------------------------------------------------- */

typedef struct vst__thread_sum {
    uint32_t number;
    uint64_t calls;
    int64_t self_ns, waiting_ns, gc_ns;
    int64_t first_ns, last_ns;
    int64_t running_ns; /* running time of the thread's outermost calls */
    /* how many of the outermost calls have an unknown running time */
    uint64_t unknown;
    int64_t preempted_ns, gil_ns; /* times of the thread's outermost calls */
    uint64_t unknown_gil;
    /* Time in calls that only wait, by the reason, without the time that they
     * ran, were preempted or waited for the GIL. For the interpreter's own
     * waits (for objects and a stopped world): in all calls. */
    int64_t waited_ns[VST_WAIT_REASONS];
    int64_t top_ns; /* own time of `top`, the function with the most own time */
    vst_id top;
} vst__thread_sum;

typedef struct vst__thread_sums {
    vst__thread_sum *of;
    size_t count, capacity;
    bool has_pauses; /* waits for objects and for a stopped world are known */
    /* For the thread that is being read: the own times of its functions, by
     * definition id, and the list of these functions. */
    struct vst__own_time *own;
    vst_id *spent;
    size_t spent_count;
    struct vst__waiter *waiters; /* by definition id */
    struct vst__waited {
        uint64_t calls;
        int64_t ns;
    } *waited; /* by definition id */
} vst__thread_sums;

/* ---- garbage collections ------------------------------------------------- */

/* the last one: generation unknown */
enum { VST_GENERATIONS = 4, VST_LONG_COLLECTIONS = 20 };

typedef struct vst__collection {
    int64_t start_ns, ns;
    uint32_t thread;
    unsigned generation;
    int64_t collected;
} vst__collection;

typedef struct vst__collection_sums {
    struct {
        uint64_t count;
        int64_t ns, longest_ns, collected, uncollectable, examined;
    } of[VST_GENERATIONS];
    vst__collection longest[VST_LONG_COLLECTIONS]; /* the longest first */
    size_t count;
} vst__collection_sums;

/* ---- single calls -------------------------------------------------------- */

enum { VST_LONG_STEPS = 8 };

/* Steps of the event loop of a thread; a step of 50 ms or more blocks it. */
struct vst__loop_steps {
    uint32_t thread;
    uint64_t count, blocking;
    int64_t blocking_ns;
    vst__histogram all;
    struct vst__long_step {
        int64_t start_ns, ns;
    } longest[VST_LONG_STEPS]; /* steps that block the loop, the longest first
                                */
};

typedef struct vst__step_sums {
    struct vst__loop_steps *of;
    size_t count, capacity;
} vst__step_sums;

/* The durations of a function's calls. */
typedef struct vst__duration {
    vst__histogram all;
    int64_t longest_start_ns; /* start of the longest call */
    uint32_t longest_thread;
    bool is_async;      /* some calls were off the stack of their thread */
    bool is_touched;    /* called in the thread that is being read */
    int64_t threads_ns; /* from the first to the last call of its threads */
} vst__duration;

typedef struct vst__duration_sums {
    vst__duration *of; /* by definition id */
    vst__tasks *tasks;
    /* For the thread that is being read: the functions that it called, and the
     * times of its first and last call. */
    vst_id *touched;
    size_t touched_count;
    bool has_thread;
    int64_t first_ns, last_ns;
} vst__duration_sums;

/* Calls whose arguments were recorded, by function and arguments. */
typedef struct vst__repeat_sums {
    vst__intern *known; /* NULL before the first */
    struct vst__repeat {
        uint64_t calls;
        int64_t ns;
    } *of; /* by number of the text - 1 */
    uint32_t count;
    size_t capacity;
} vst__repeat_sums;

/* ---- lines --------------------------------------------------------------- */

/* Calls, by the line of the caller that made them. */
typedef struct vst__line_sums {
    vst__intern *known; /* of struct vst__line_key; NULL before the first */
    struct vst__line_sum {
        struct vst__line_key {
            vst_id id, caller;
            int32_t line;
            uint32_t through; /* see vst_span.called_through */
        } what;
        uint64_t calls;
        int64_t ns; /* of calls that are not inside another of the function */
    } *of;          /* by number - 1 */
    uint32_t count;
    size_t capacity;
} vst__line_sums;

/* ---- exceptions ---------------------------------------------------------- */

typedef struct vst__exception_sums {
    /* keys are a struct vst__exception_key; NULL before the first */
    vst__intern *known;
    struct vst__exception_sum {
        struct vst__exception_key {
            vst_id id, raised_in, caught_in;
            uint32_t thread, end;
        } what;
        uint64_t count;
    } *of; /* by number - 1 */
    uint32_t count;
    size_t capacity;
} vst__exception_sums;

/* ---- the whole ----------------------------------------------------------- */

typedef struct vst__sums {
    const vst__table_options *options;
    vst_trace *trace;
    vst_id max;      /* the last definition */
    unsigned wanted; /* VST_SUMS_ bits */
    /* the thread that was looked up last; is_read is the answer */
    uint32_t asked;
    bool has_asked, is_read;
    bool has_untimed; /* a function has VST_MARK_NO_TIME */
    bool grows; /* the trace is still growing: no call stands for others */
    bool has_running; /* calls have running times */
    vst__own_times own;
    vst__own_times ran; /* own running times of calls */
    /* time inside the open calls that is in no row */
    vst__own_times untimed;
    uint32_t reading; /* the thread whose spans are arriving */
    vst__estimates estimates;
    vst__function_sums functions;
    vst__call_sums calls;
    vst__thread_sums threads;
    vst__collection_sums collections;
    vst__step_sums steps;
    vst__duration_sums durations;
    vst__repeat_sums repeats;
    vst__line_sums lines;
    vst__exception_sums exceptions;
} vst__sums;

/* sums.c. With options, trace and wanted set, vst__sums_begin sets up the sink
 * for the replay. When the replay is over, vst__sums_end makes every part ready
 * for its rows. Free the sums even if something fails. */
vst_status vst__sums_begin(vst__sums *sums, vst_sink *sink);
vst_status vst__sums_finish(vst__sums *sums);
void vst__sums_free(vst__sums *sums);

static inline unsigned char vst__sums_mark(const vst__sums *sums, vst_id id)
{
    return sums->options->marks != NULL ? sums->options->marks[id] : 0;
}

/* Each part has functions that begin it, if it is wanted, add a span with its
 * own time, end it when all is read, and free it in any state. */
vst_status vst__function_sums_begin(vst__sums *sums);
void vst__function_sums_add(vst__sums *sums, const vst_span *span,
                            int64_t self_ns, int64_t self_running_ns);
/* Makes room for new definitions, which have no marks. */
vst_status vst__function_sums_grow(vst__sums *sums);
void vst__function_sums_free(vst__sums *sums);

vst_status vst__estimates_begin(vst__sums *sums);
/* Adds the own time of a call that is in no row. */
void vst__estimates_see(vst__estimates *e, const vst_span *span,
                        int64_t spent_ns);
/* Adds a call that counts for ns, self_ns of that as own time. inside_ns is the
 * own time of the calls that recorded calls inside this one stand for. Returns
 * that time for this call and the calls inside: the calls around it must lose
 * it. */
double vst__estimates_add(vst__estimates *e, const vst_span *span, int64_t ns,
                          int64_t self_ns, double inside_ns);
/* Ends the thread that was read. Returns how much longer the thread was in
 * calls than is recorded. */
int64_t vst__estimates_end_thread(vst__estimates *e);
/* Turns the sums of functions into estimates; error_ns is the error of the
 * total. */
void vst__estimates_end(vst__sums *sums);
void vst__estimates_free(vst__estimates *e);

vst_status vst__call_sums_add(vst__sums *sums, vst_span *span, int64_t self_ns);
/* Adds a wait of a task, below or next to the span in which it ended. */
vst_status vst__call_sums_add_wait(vst__sums *sums, const vst_span *span,
                                   uint32_t depth, const vst__task_wait *wait);
void vst__call_sums_free(vst__sums *sums);

vst_status vst__awaits_event(vst__awaits *awaits, const vst_task_event *event);
/* Finds the wait that ended when this call continued; 0 ns if there is none. */
vst_status vst__awaits_span(vst__awaits *awaits, const vst_span *span,
                            vst__task_wait *wait);
void vst__awaits_free(vst__awaits *awaits);

vst_status vst__thread_sums_begin(vst__sums *sums);
vst_status vst__thread_sums_add(vst__sums *sums, const vst_span *span,
                                unsigned char mark, int64_t self_ns,
                                int64_t ran_ns);
vst_status vst__thread_sums_add_pause(vst__sums *sums, const vst_wait *wait);
/* Ends the thread that was read. missing_ns: how much longer the thread was in
 * calls than is recorded. */
void vst__thread_sums_end_thread(vst__sums *sums, int64_t missing_ns);
void vst__thread_sums_free(vst__sums *sums);

void vst__collection_sums_add(vst__collection_sums *sums, const vst_span *span);
vst_status vst__step_sums_add(vst__step_sums *sums, const vst_span *span);
void vst__step_sums_free(vst__step_sums *sums);

vst_status vst__duration_sums_begin(vst__sums *sums);
vst_status vst__duration_sums_add(vst__sums *sums, const vst_span *span);
/* The thread that was read ends. */
void vst__duration_sums_end_thread(vst__duration_sums *sums);
void vst__duration_sums_free(vst__sums *sums);

vst_status vst__repeat_sums_add(vst__repeat_sums *sums, const vst_span *span);
void vst__repeat_sums_free(vst__repeat_sums *sums);
/* Adds a span whose place is known. */
vst_status vst__line_sums_add(vst__line_sums *sums, const vst_trace *trace,
                              const vst_span *span);
void vst__line_sums_free(vst__line_sums *sums);
vst_status vst__exception_sums_add(vst__exception_sums *sums,
                                   const vst_instant *mark);
void vst__exception_sums_free(vst__exception_sums *sums);

#endif
