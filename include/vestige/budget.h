/* A budget: recording takes at most a share of the process's CPU time. Where
 * recording every call would take more, some functions are left out for a time.
 * Their time is their caller's own meanwhile. From time to time there is a
 * window in which every function is recorded again.
 *
 * VST_ESCAPE_LEFT_OUT says which functions are left out from its time on, in
 * all threads of the process, until the next one. Any thread may have it. Its
 * words:
 *
 *   0   VST_LEFT_OUT_ flags; from VST_LEFT_OUT_PASSING on (24 bits) what calls
 *       that are left out cost all the same, in millionths of the time of
 *       Python code; from VST_LEFT_OUT_TAKEN on (32 bits) how long the thread
 *       took to change what is left out, in nanoseconds, 0 if another one did
 *   1   CPU time of the process so far without what recording cost, in
 *       nanoseconds
 *   2   what recording cost so far, by the cost of a call of each kind
 *       (costs.h), in nanoseconds of CPU time
 *   3   ticks since which calls were counted to decide this
 *   4   word 1 as it was then
 *   5…  ids of the functions; a list that does not fit goes on in a further
 *       escape with VST_LEFT_OUT_MORE
 *
 * Where the file drops what is old, what is left out is told again.
 *
 * A call that begins while its function is recorded is recorded to its end, and
 * one that begins while it is left out is not recorded at all.
 *
 * A reader estimates what is missing: each call that began in a stretch with
 * its function recorded stands for those in the stretches beside it, by CPU
 * time, as far as they fit in there. One that was open through such a stretch
 * stands for itself alone. The value of VST_BUDGET_METADATA is JSON, the share:
 * 0.05. */
#ifndef VESTIGE_BUDGET_H
#define VESTIGE_BUDGET_H

#include "record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VST_BUDGET_METADATA "vestige.budget"

enum {
    VST_LEFT_OUT_PYTHON = 1, /* every VST_DEF_PYTHON and VST_DEF_NATIVE */
    VST_LEFT_OUT_WINDOW = 2, /* nothing is left out; a window begins */
    VST_LEFT_OUT_MORE = 4,   /* goes on with the list of the escape before */
    VST_LEFT_OUT_STILL = 8   /* before it functions were left out, too */
};

enum {
    VST_LEFT_OUT_PASSING = 8, /* bits of the first word */
    VST_LEFT_OUT_TAKEN = 32
};

enum { VST_LEFT_OUT_HEAD = 5 }; /* words before the ids */

typedef struct vst_left_out {
    uint32_t flags;
    uint32_t passing;  /* millionths */
    uint32_t taken_ns; /* by the calling thread */
    uint64_t cpu_ns, cost_ns;
    vst_ticks since;
    uint64_t since_cpu_ns;
} vst_left_out;

/* Records it, with one thread's records. To be called while no hook records in
 * any thread, or inside of one. False: there was no room. */
VST_API bool vst_recording_leave_out(vst_recording *recording,
                                     const vst_left_out *left_out,
                                     const vst_id *ids, size_t count);

/* ---- reading ------------------------------------------------------------- */

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
VST_API vst_status vst_budget_read(struct vst_trace *trace, vst_budget **budget,
                                   vst_error *error);
VST_API void vst_budget_free(vst_budget *budget);
VST_API void vst_budget_get_info(const vst_budget *budget,
                                 vst_budget_info *info);
/* number: below vst_budget_info.changes. */
VST_API void vst_budget_get_stretch(const vst_budget *budget, size_t number,
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
VST_API size_t vst_budget_find(const vst_budget *budget, int64_t ns);
/* The gaps before and behind the stretch in which a call of these times began.
 * since_ns: until then its thread was in a call of the function that began in
 * an earlier stretch. A call stands for none if it lasted through a stretch in
 * which its function was left out. */
VST_API void vst_budget_gaps(const vst_budget *budget, size_t number, vst_id id,
                             int64_t start_ns, int64_t end_ns, int64_t since_ns,
                             vst_budget_gap gaps[2]);
/* What calls that were left out cost a thread which ran Python code from
 * start_ns to end_ns, in nanoseconds. */
VST_API double vst_budget_passing_ns(const vst_budget *budget, int64_t start_ns,
                                     int64_t end_ns);
#ifdef __cplusplus
}
#endif
#endif
