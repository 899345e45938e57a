/* Which calls a trace left out to stay within a budget (VST_ESCAPE_LEFT_OUT),
 * and for how many calls a recorded call stands. One thread at a time. */
#ifndef VST_REPLAY_BUDGET_H
#define VST_REPLAY_BUDGET_H

#include <stddef.h>

#include <vestige/status.h>
#include <vestige/wire.h>

struct vst_trace;

/* What a trace left out. */
typedef struct vst_budget vst_budget;

typedef struct vst_budget_info {
    uint64_t changes; /* how often other functions were left out */
    uint64_t windows;
    uint64_t functions;  /* that were left out at some time */
    uint64_t cpu_ns;     /* of the process, without what recording cost */
    uint64_t cost_ns;    /* what that may have been, at most */
    uint64_t out_cpu_ns; /* CPU time while something was left out */
} vst_budget_info;

/* From one change to the next. */
typedef struct vst_budget_stretch {
    int64_t start_ns, end_ns; /* end_ns of the last one: INT64_MAX */
    uint32_t flags;           /* VST_LEFT_OUT_ */
    size_t count;             /* of ids */
    const vst_id *ids;        /* what was left out, in order */
} vst_budget_stretch;

/* *budget is NULL where nothing was left out. It refers to the trace. */
vst_status vst__budget_read(struct vst_trace *trace, vst_budget **budget,
                            vst_error *error);
void vst__budget_free(vst_budget *budget);
void vst__budget_get_info(const vst_budget *budget, vst_budget_info *info);
/* number: below vst_budget_info.changes. */
void vst__budget_get_stretch(const vst_budget *budget, size_t number,
                             vst_budget_stretch *stretch);
/* A time beside a stretch in which calls of a function were left out. */
typedef struct vst_budget_gap {
    double calls; /* for so many of those a call stands; 0: for none */
    /* How long a thread could be in those: in all of them, and in those that
     * calls of this stretch stand for, which are half of them if there is such
     * a stretch on the other side, too. */
    double all_ns, own_ns;
} vst_budget_gap;

/* The number of the stretch at a time; all that began before the first have
 * that of none, vst_budget_info.changes. */
size_t vst__budget_find(const vst_budget *budget, int64_t ns);
/* The gaps before and behind the stretch in which a call of these times began.
 * since_ns: until then its thread was in a call of the function that began in
 * an earlier stretch. A call stands for none if it lasted through a stretch in
 * which its function was left out. */
void vst__budget_gaps(const vst_budget *budget, size_t number, vst_id id,
                      int64_t start_ns, int64_t end_ns, int64_t since_ns,
                      vst_budget_gap gaps[2]);
/* What calls that were left out cost a thread which ran Python code from
 * start_ns to end_ns, in nanoseconds. */
double vst__budget_passing_ns(const vst_budget *budget, int64_t start_ns,
                              int64_t end_ns);

#endif
