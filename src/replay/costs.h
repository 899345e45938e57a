/* The costs of recording, which the recorder measured in the recorded process.
 * A file keeps them as metadata, so that any reader can compute how long a call
 * would have taken without the recorder (vst_span's compensated_ns).
 *
 * The value of VST_COSTS_METADATA is JSON. A string says why the costs are
 * unknown. Otherwise it is an array of integers: VST_COSTS_LAYOUT, then groups
 * of four:
 *
 *   kind     a vst_definition_kind
 *   cost     the time that recording one call of this kind adds to the thread,
 *            in picoseconds
 *   inside   the part of the cost that lies between the recorded times of the
 *            call's enter and exit; negative if the interpreter calls the
 *            function before the enter's time is read, or returns from the
 *            function after the exit's time is read
 *   error    the largest error of the cost
 *
 * Kind VST_COSTS_TASK is the introduction of a task (wire.h), which happens
 * inside a call; inside is 0, and without a group it costs nothing.
 *
 * Kind VST_COSTS_END is the work of a Python function after its exit's time was
 * read: its variables are freed then. It takes from 0 to `error` picoseconds,
 * but at most `cost` millionths of the span's duration. Half of that belongs to
 * the span, with an error of the same size; inside is 0.
 *
 * Kind VST_COSTS_PASSING exists if left-out calls of a budget cost something
 * (VST_ESCAPE_LEFT_OUT says how much): `cost` is the millionths of that amount
 * which are counted, `error` the largest error in millionths; inside is 0.
 *
 * Kind 0 is the time of the language's own code while it is recorded, without
 * calls: cost is the recorder's share of it in millionths, inside is 0, error
 * is the error of the share. A kind that has no group costs as much as a
 * VST_DEF_PYTHON, with an error of that size.
 *
 * This file reads the costs, and makes clocks of them, which the matcher keeps
 * for each thread: how much of the time so far was the recorder's, and the
 * error of that. The cost of a span is the difference between its end and its
 * start. One thread at a time. */
#ifndef VST_REPLAY_COSTS_H
#define VST_REPLAY_COSTS_H

#include <vestige/record.h>
#include <vestige/span.h>

#define VST_COSTS_METADATA "vestige.costs"

enum {
    VST_COSTS_LAYOUT = 1,
    VST_COSTS_GROUP = 4,
    /* Numbers that no vst_definition_kind has. */
    VST_COSTS_TASK = 100,
    VST_COSTS_END = 101,
    VST_COSTS_PASSING = 102
};

/* In picoseconds; for kind 0, and `cost` of VST_COSTS_END, in millionths of the
 * time. */
typedef struct vst__cost {
    int64_t cost, inside, error;
} vst__cost;

/* By vst_definition_kind; behind these: an introduced task, the end of a
 * function after its exit, and calls that a budget left out. */
enum {
    VST__COST_TASK = VST_DEF_KINDS,
    VST__COST_END,
    VST__COST_PASSING,
    VST__COSTS
};

typedef struct vst_costs {
    vst__cost of[VST__COSTS];
    unsigned char *kind_of; /* by id, up to max; NULL: no costs are known */
    vst_id max;
    struct vst_budget *budget; /* NULL: left-out calls cost nothing */
} vst_costs;

/* The cost clocks of a thread, or their values when a span began. */
typedef struct vst__cost_clock {
    /* modulo 2^64, if a damaged file holds such costs */
    uint64_t cost_ps, error_ps;
} vst__cost_clock;

struct vst_trace;

/* Reads a trace's costs; kind_of is NULL if they are unknown. Returns false if
 * memory ran out. */
bool vst__costs_make(vst_costs *costs, struct vst_trace *trace);
void vst__costs_free(vst_costs *costs);
/* Reads the metadata. Returns false if it holds no costs. */
bool vst__costs_parse(const char *json, vst__cost of[VST__COSTS]);

/* Returns NULL if the costs are unknown. */
static inline const vst_costs *vst__costs_known(const vst_costs *costs)
{
    return costs->kind_of != NULL ? costs : NULL;
}

static inline vst_definition_kind vst__costs_kind(const vst_costs *costs,
                                                  vst_id id)
{
    return id <= costs->max ? (vst_definition_kind)costs->kind_of[id] : 0;
}

/* Counts a call of id that has ended. */
void vst__costs_count(const vst_costs *costs, vst__cost_clock *clock,
                      vst_id id);
/* Counts a task that was introduced. */
void vst__costs_count_task(const vst_costs *costs, vst__cost_clock *clock);
/* Counts that the language's own code ran for `ns`. */
void vst__costs_pass(const vst_costs *costs, vst__cost_clock *clock,
                     uint64_t ns);
/* Counts the calls that were left out between two times. ran_ns: how long the
 * thread ran in between. */
void vst__costs_pass_left_out(const vst_costs *costs, vst__cost_clock *clock,
                              int64_t start_ns, int64_t end_ns,
                              uint64_t ran_ns);
/* Counts `ns` that the thread itself took to change the set of left-out
 * functions. */
void vst__costs_take(vst__cost_clock *clock, uint64_t ns);
/* Sets *cost_ns to the recorder's part of a span of id, in nanoseconds, and
 * *error_ns to its error. The cost is negative if more than the recorder's part
 * is missing from the span. */
void vst__costs_between(const vst_costs *costs, const vst__cost_clock *start,
                        const vst__cost_clock *end, vst_id id,
                        uint64_t duration_ns, int64_t *cost_ns,
                        int64_t *error_ns);

#endif
