/* Which calls a trace left out to stay within a budget (VST_ESCAPE_LEFT_OUT),
 * and for how many calls a recorded call stands. One thread at a time. */
#ifndef VST_REPLAY_BUDGET_H
#define VST_REPLAY_BUDGET_H

#include <stddef.h>

#include <vestige/status.h>
#include <vestige/wire.h>

struct vst_trace;

/* The functions that a trace left out, and when. */
typedef struct vst_budget vst_budget;

typedef struct vst_budget_info {
    uint64_t changes; /* how often the set of left-out functions changed */
    uint64_t windows;
    uint64_t functions; /* functions that were left out at some time */
    /* CPU time of the process, without the cost of recording */
    uint64_t cpu_ns;
    uint64_t cost_ns;    /* upper bound of the cost of recording */
    uint64_t out_cpu_ns; /* CPU time while something was left out */
} vst_budget_info;

/* The time from one change of the left-out functions to the next. */
typedef struct vst_budget_stretch {
    int64_t start_ns, end_ns; /* end_ns of the last stretch is INT64_MAX */
    uint32_t flags;           /* VST_LEFT_OUT_ */
    size_t count;             /* number of ids */
    const vst_id *ids;        /* the left-out functions, sorted */
} vst_budget_stretch;

/* Sets *budget, or NULL if nothing was left out. The budget refers to the
 * trace. */
vst_status vst__budget_read(struct vst_trace *trace, vst_budget **budget,
                            vst_error *error);
void vst__budget_free(vst_budget *budget);
void vst__budget_get_info(const vst_budget *budget, vst_budget_info *info);
/* number: less than vst_budget_info.changes. */
void vst__budget_get_stretch(const vst_budget *budget, size_t number,
                             vst_budget_stretch *stretch);
/* A period before or after a stretch in which calls of a function were left
 * out. */
typedef struct vst_budget_gap {
    double calls; /* number of left-out calls for which one call stands */
    /* How long a thread could be in these calls: in all of them, and in those
     * that calls of this stretch stand for (half of them if there is such a
     * stretch on the other side, too). */
    double all_ns, own_ns;
} vst_budget_gap;

/* Returns the number of the stretch at a time; vst_budget_info.changes for
 * times before the first stretch. */
size_t vst__budget_find(const vst_budget *budget, int64_t ns);
/* Finds the gaps before and behind stretch `number`, in which a call from
 * start_ns to end_ns began. Until since_ns, the thread was in another call of
 * the function, which began in an earlier stretch. A call that lasted through a
 * stretch in which its function was left out stands only for itself. */
void vst__budget_gaps(const vst_budget *budget, size_t number, vst_id id,
                      int64_t start_ns, int64_t end_ns, int64_t since_ns,
                      vst_budget_gap gaps[2]);
/* Returns the cost of left-out calls in a thread that ran Python code from
 * start_ns to end_ns, in nanoseconds. */
double vst__budget_passing_ns(const vst_budget *budget, int64_t start_ns,
                              int64_t end_ns);

#endif
