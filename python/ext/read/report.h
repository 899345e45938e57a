/* The parts of Trace.report(): report_parts.c and report_spread.c make them for
 * trace_report.c. They need the GIL only to make Python objects; one thread at
 * a time uses each. */
#ifndef VPY_REPORT_H
#define VPY_REPORT_H

#include "read/spans.h"

#include <vestige/budget.h>
#include <vestige/contexts.h>
#include <vestige/tasks.h>

#pragma GCC visibility push(hidden)

/* Marks that Python gives a definition. LEFT_OUT: its time counts for its
 * caller. NO_TIME: its time counts for nobody, as if the call had returned at
 * once. */
enum {
    VPY_MARK_LEFT_OUT = 1,
    VPY_MARK_WAITS = 2,
    VPY_MARK_GC = 4,
    VPY_MARK_NO_TIME = 8,
    VPY_MARK_STEP = 16, /* it runs one step of an event loop */
    /* Where a task waits in it, its caller is who awaits: asyncio.sleep() */
    VPY_MARK_AWAITED = 32
};

/* ---- which threads ----------------------------------------------------- */

typedef struct vpy_chosen {
    uint32_t *numbers; /* NULL: all of them */
    size_t count;
    uint32_t last; /* the one that was asked for last, and the answer */
    bool asked, has;
} vpy_chosen;

/* None, or a sequence of numbers; false with an exception set. */
bool vpy_chosen_set(vpy_chosen *chosen, PyObject *numbers);
bool vpy_chosen_look(vpy_chosen *chosen, uint32_t number);

static inline bool vpy_chosen_has(vpy_chosen *chosen, uint32_t number)
{
    if (chosen->numbers == NULL)
        return true;
    return chosen->asked && chosen->last == number
               ? chosen->has
               : vpy_chosen_look(chosen, number);
}

/* ---- functions --------------------------------------------------------- */

/* How much the calls of a function differ. Calls are grouped into stretches of
 * equal numbers, of which the means are kept; when there are too many
 * stretches, their length doubles. A histogram counts how long calls took, with
 * sixteen bins for each power of two. Memory grows with the number of calls,
 * since very many functions may have been called once. */
enum { VPY_STRETCHES = 32, VPY_BINS = 672, VPY_FEW = 2 * VPY_BINS };

typedef struct vpy_spread {
    double *sums;
    double current;
    uint64_t size, in_current;
    uint32_t used;
    uint32_t few_count;
    uint64_t count;
    uint16_t *few;  /* the bins of the first VPY_FEW calls, one by one … */
    uint32_t *bins; /* … then how many calls are in each; NULL until then */
} vpy_spread;

/* A typical call, in ns; less than 0: not known. */
typedef struct vpy_typical {
    double error_of_mean, median, error_of_median;
} vpy_typical;

/* Without memory the call is added where there is room. */
void vpy_spread_add(vpy_spread *spread, int64_t ns);
void vpy_spread_free(vpy_spread *spread);
vpy_typical vpy_spread_typical(const vpy_spread *spread);

typedef struct vpy_sum {
    uint64_t calls;
    uint64_t
        outer; /* calls that were not inside another of the same function */
    int64_t self_ns, total_ns;
    int64_t running_ns;     /* of total_ns */
    uint64_t unknown;       /* spans whose running time is not known */
    int64_t error_ns;       /* of total_ns, where that is compensated */
    uint64_t uncompensated; /* spans of which that is not known */
    uint64_t self_bytes, total_bytes, allocations;
} vpy_sum;

typedef struct vpy_sums {
    vpy_sum *of; /* by definition id; NULL: not wanted */
    vpy_spread *self, *total;
    vst_id max;
} vpy_sums;

bool vpy_sums_make(vpy_sums *sums, vst_id max, bool spread);
void vpy_sums_free(vpy_sums *sums);
void vpy_sums_add(vpy_sums *sums, const vst_span *span, int64_t self_ns);
PyObject *vpy_sums_list(const vpy_sums *sums);

/* ---- functions that a budget left out (report_estimates.c) -----------------
 */

typedef struct vpy_estimates {
    vst_budget *budget;      /* NULL: nothing was left out */
    struct vpy_estimate *of; /* by definition id */
    vst_id max;
    bool compensated; /* times are, and have an error of that */
    /* Of the thread that is being read: which functions it called, from when to
     * when, and how much of that time is somebody's. */
    vst_id *touched;
    size_t touched_count;
    bool has_thread;
    int64_t first_ns, last_ns, spent_ns;
} vpy_estimates;

vst_status vpy_estimates_begin(vpy_estimates *e, vst_trace *trace,
                               vst_error *error);
void vpy_estimates_free(vpy_estimates *e);
/* A call that counts for nobody, with its own time. */
void vpy_estimates_see(vpy_estimates *e, const vst_span *span,
                       int64_t spent_ns);
/* A call that counts for ns, self_ns of that by itself. inside_ns and what is
 * returned: own time of calls that recorded ones inside of it stand for, or
 * these and it, and that calls around it must lose. */
double vpy_estimates_add(vpy_estimates *e, const vst_span *span, int64_t ns,
                         int64_t self_ns, double inside_ns);
/* The spans that follow are another thread's. Gives how much longer this one
 * was in calls than is recorded. */
int64_t vpy_estimates_end_thread(vpy_estimates *e);
/* The sums become estimates; error_ns is that of the total. */
void vpy_estimates_put(vpy_estimates *e, vpy_sums *sums);
PyObject *vpy_estimates_dict(const vpy_estimates *e);

/* ---- the tree ---------------------------------------------------------- */

/* The key of an import in the tree: the id of the module's code, if it is
 * known, and what was imported. */
enum { VPY_IMPORT_BITS = 3, VPY_IMPORT_MASK = (1 << VPY_IMPORT_BITS) - 1 };

static inline uint32_t vpy_import_key(vst_id module, vst_import import)
{
    return module << VPY_IMPORT_BITS | (uint32_t)import;
}

/* The key of a wait: the kind of object, and in place of what was imported: */
enum { VPY_KEY_AWAITS = 7 };

/* Waits of tasks (report_awaits.c). */
typedef struct vpy_awaits {
    vst_tasks *tasks;
    struct vpy_open_step *open; /* steps, one inside of the other */
    size_t count, capacity;
} vpy_awaits;

void vpy_awaits_free(vpy_awaits *awaits);
vst_status vpy_awaits_event(vpy_awaits *awaits, const vst_task_event *event);
/* The wait that ended where this call goes on; 0 ns: none did. */
vst_status vpy_awaits_span(vpy_awaits *awaits, const vst_span *span,
                           vst_task_wait *wait);

PyObject *vpy_tree_list(const vst_context_row *rows, size_t count,
                        long long min_ns);

/* ---- threads ----------------------------------------------------------- */

typedef struct vpy_thread_sums {
    uint32_t number;
    uint64_t calls;
    int64_t self_ns, waiting_ns, gc_ns;
    int64_t first_ns, last_ns;
    int64_t running_ns; /* of its outermost calls */
    uint64_t unknown;   /* of those, whose running time is not known */
    int64_t preempted_ns, gil_ns; /* the same as running_ns */
    uint64_t unknown_gil;
    /* In calls that only wait, by what they wait for: without the time that
     * they ran, were preempted or waited for the GIL. Of the interpreter's own
     * waits, for objects and a stopped world, in all calls. */
    int64_t waited_ns[VST_WAIT_REASONS];
    int64_t top_ns; /* of the function that took most by itself */
    vst_id top;
} vpy_thread_sums;

/* Adds how long an outermost call ran and waited. */
void vpy_thread_sums_add(vpy_thread_sums *sums, const vst_span *span);
/* has_pauses: waits for objects and for a stopped world are known. */
PyObject *vpy_thread_sums_list(const vpy_thread_sums *sums, size_t count,
                               bool has_pauses);

/* What each function waits for, by definition id; NULL: no memory. */
unsigned char *vpy_wait_reasons(const vst_trace *trace, vst_id max);

/* What waited, by definition id. */
typedef struct vpy_waits {
    struct vpy_wait {
        uint64_t calls;
        int64_t ns;
    } *of;
} vpy_waits;

/* [(id, calls, ns)] of the functions that waited. */
PyObject *vpy_waits_list(const vpy_waits *waits, vst_id max);

/* ---- garbage collections ----------------------------------------------- */

enum { VPY_GENERATIONS = 4, VPY_LONGEST = 20 }; /* the last: not known */

typedef struct vpy_collection {
    int64_t start_ns, ns;
    uint32_t thread;
    int generation;
    long long collected;
} vpy_collection;

typedef struct vpy_collections {
    struct {
        uint64_t count;
        int64_t ns, longest_ns;
        long long collected, uncollectable;
    } of[VPY_GENERATIONS];
    vpy_collection longest[VPY_LONGEST]; /* the longest first */
    size_t count;
} vpy_collections;

void vpy_collections_add(vpy_collections *gc, const vst_span *span);
PyObject *vpy_collections_dict(const vpy_collections *gc);
/* [(id or 0, count, ns)]: in which functions collections began. */
PyObject *vpy_gc_callers(const vst_context_row *rows, size_t count,
                         const unsigned char *marks);

/* ---- single calls (report_notable.c) ----------------------------------- */

enum { VPY_STEPS = 8 };

typedef struct vpy_step {
    int64_t start_ns, ns;
    uint32_t thread;
} vpy_step;

/* Steps of event loops; those that took 50 ms or more block it. */
typedef struct vpy_steps {
    uint64_t count, blocking;
    int64_t blocking_ns;
    vpy_step longest[VPY_STEPS]; /* that block, the longest first */
} vpy_steps;

void vpy_steps_add(vpy_steps *steps, const vst_span *span);
/* (count, blocking, ns of those, [(start, ns, thread)]) */
PyObject *vpy_steps_tuple(const vpy_steps *steps);

/* Calls whose arguments were recorded, by function and arguments. */
typedef struct vpy_repeats {
    vpy_texts texts;
    struct vpy_repeat {
        uint64_t calls;
        int64_t ns;
    } *of; /* by number of the text - 1 */
    uint32_t count;
} vpy_repeats;

/* False: out of memory. */
bool vpy_repeats_add(vpy_repeats *repeats, const vst_span *span);
void vpy_repeats_free(vpy_repeats *repeats);
/* [(id, arguments as JSON, calls, ns)] of those that were called most often. */
PyObject *vpy_repeats_list(const vpy_repeats *repeats);

#pragma GCC visibility pop
#endif
