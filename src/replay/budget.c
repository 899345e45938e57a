/* Reads which calls a recording with a budget left out, and for how many calls
 * each recorded call stands: see budget.h. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include <vestige/trace.h>

#include "base/grow.h"
#include "replay/budget.h"
#include "replay/replay.h"

/* The time from one VST_ESCAPE_LEFT_OUT to the next. */
typedef struct stretch {
    int64_t start_ns, since_ns;
    uint64_t cpu_ns, since_cpu_ns, cost_ns; /* values at the stretch's start */
    uint32_t flags;
    /* share of the time that passing by left-out calls costs */
    double passing;
    double passed_ns;  /* the cost of passing before the stretch */
    size_t ids, count; /* part of budget.ids, sorted */
} stretch;

enum { FLAGS = (1 << VST_LEFT_OUT_PASSING) - 1 };

struct vst_budget {
    stretch *all; /* stretches by time */
    size_t count, capacity;
    vst_id *ids;
    size_t id_count, id_capacity;
    unsigned char *calls;   /* by id: whether it is a function */
    unsigned char *was_out; /* by id: whether it was left out at any time */
    vst_id max;
};

/* ---- collecting ---------------------------------------------------------- */

static bool add_ids(vst_budget *self, const uint64_t *ids, size_t count)
{
    if (!VST_RESERVE(self->ids, self->id_count + count, self->id_capacity))
        return false;
    for (size_t i = 0; i < count; i++)
        if (ids[i] != 0 && ids[i] <= self->max)
            self->ids[self->id_count++] = (vst_id)ids[i];
    return true;
}

static bool budget_add(vst_budget *self, const vst_time_converter *converter,
                       const vst_compressed_event *event)
{
    const uint64_t *words = event->payload;
    bool more = words[0] & VST_LEFT_OUT_MORE;

    if (!VST_RESERVE(self->all, self->count + 1, self->capacity))
        return false;
    if (!more || self->count == 0)
        self->all[self->count++] = (stretch){
            .start_ns = converter->to_ns(converter->ctx, event->ticks),
            .since_ns = converter->to_ns(converter->ctx, words[3]),
            .cpu_ns = words[1],
            .since_cpu_ns = words[4],
            .cost_ns = words[2],
            .flags = (uint32_t)words[0] & FLAGS,
            .passing = ((uint32_t)words[0] >> VST_LEFT_OUT_PASSING) / 1e6,
            .ids = self->id_count};
    if (!add_ids(self, words + VST_LEFT_OUT_HEAD,
                 event->payload_words - VST_LEFT_OUT_HEAD))
        return false;
    self->all[self->count - 1].count =
        self->id_count - self->all[self->count - 1].ids;
    return true;
}

static vst_status budget_take(void *ctx, const vst_time_converter *converter,
                              const vst_compressed_event *events, size_t count,
                              int64_t end_ns)
{
    const uint32_t wanted = vst_trace_key_kind_of_escape(VST_ESCAPE_LEFT_OUT);

    (void)end_ns;
    for (size_t i = 0; i < count; i++)
        if (vst_trace_key_kind(events[i].key) == wanted &&
            events[i].payload_words >= VST_LEFT_OUT_HEAD &&
            !budget_add(ctx, converter, &events[i]))
            return VST_E_NOMEM;
    return VST_OK;
}

static int by_id(const void *a, const void *b)
{
    vst_id x = *(const vst_id *)a, y = *(const vst_id *)b;

    return (x > y) - (x < y);
}

/* For stretches with equal times, the CPU time decides. */
static int budget_by_time(const void *a, const void *b)
{
    const stretch *x = a, *y = b;

    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->cpu_ns > y->cpu_ns) - (x->cpu_ns < y->cpu_ns);
}

static bool is_out(const vst_budget *self, size_t at, vst_id id)
{
    const stretch *s = &self->all[at];

    if (s->flags & VST_LEFT_OUT_PYTHON && self->calls[id])
        return true;
    return s->count != 0 &&
           bsearch(&id, self->ids + s->ids, s->count, sizeof id, by_id) != NULL;
}

/* Never negative: a file may claim that the CPU time goes back. */
static uint64_t cpu_of(const vst_budget *self, size_t at)
{
    const stretch *s = &self->all[at];

    return at + 1 < self->count && s[1].cpu_ns > s->cpu_ns
               ? s[1].cpu_ns - s->cpu_ns
               : 0;
}

/* If the first stretch leaves functions out and nothing was left out before,
 * the time that was counted before it becomes a stretch too. The file does not
 * say what recording had cost when that time began, and a bounded file has
 * dropped the records from when the cost was small; the cost is assumed to have
 * grown evenly. */
static bool add_first(vst_budget *self)
{
    stretch *grown, first;

    if (self->count == 0 || self->all[0].flags & VST_LEFT_OUT_STILL ||
        (self->all[0].count == 0 &&
         !(self->all[0].flags & VST_LEFT_OUT_PYTHON)))
        return true;
    grown =
        vst__grow(self->all, &self->capacity, self->count + 1, sizeof *grown);
    if (grown == NULL)
        return false;
    self->all = grown;
    first = grown[0];
    memmove(grown + 1, grown, self->count++ * sizeof *grown);
    grown[0] = (stretch){.start_ns = first.since_ns,
                         .since_ns = first.since_ns,
                         .cpu_ns = first.since_cpu_ns,
                         .since_cpu_ns = first.since_cpu_ns};
    if (first.since_cpu_ns < first.cpu_ns)
        grown[0].cost_ns =
            (uint64_t)((double)first.cost_ns * (double)first.since_cpu_ns /
                       (double)first.cpu_ns);
    else
        grown[0].cost_ns = first.cost_ns;
    return true;
}

/* Returns the cost of left-out calls up to a time inside or behind a stretch.
 */
static double passed_by(const stretch *s, int64_t ns)
{
    return s->passed_ns +
           (double)((uint64_t)ns - (uint64_t)s->start_ns) * s->passing;
}

static bool budget_finish(vst_budget *self, const vst_trace *trace)
{
    qsort(self->all, self->count, sizeof *self->all, budget_by_time);
    if (!add_first(self))
        return false;
    self->calls = calloc((size_t)self->max + 1, 1);
    self->was_out = calloc((size_t)self->max + 1, 1);
    if (self->calls == NULL || self->was_out == NULL)
        return false;
    for (vst_id id = 1; id <= self->max; id++) {
        const vst_definition *d = vst_trace_definition(trace, id);
        self->calls[id] = d != NULL && (d->kind == VST_DEF_PYTHON ||
                                        d->kind == VST_DEF_NATIVE);
    }
    for (size_t i = 0; i < self->count; i++) {
        stretch *s = &self->all[i];
        if (i + 1 < self->count)
            s[1].passed_ns = passed_by(s, s[1].start_ns);
        if (s->count != 0)
            qsort(self->ids + s->ids, s->count, sizeof *self->ids, by_id);
        for (size_t k = 0; k < s->count; k++)
            self->was_out[self->ids[s->ids + k]] = 1;
        for (vst_id id = 1; s->flags & VST_LEFT_OUT_PYTHON && id <= self->max;
             id++)
            self->was_out[id] |= self->calls[id];
    }
    return true;
}

vst_status vst__budget_read(vst_trace *trace, vst_budget **budget,
                            vst_error *error)
{
    vst_budget *self;
    vst_status status;
    vst_event_sink sink = {NULL, budget_take};

    *budget = NULL;
    vst_error_set(error, VST_OK, 0, 0);
    if (vst_trace_metadata(trace, VST_BUDGET_METADATA) == NULL)
        return VST_OK;
    self = calloc(1, sizeof *self);
    if (self == NULL)
        return VST_E_NOMEM;
    self->max = vst_trace_definition_max(trace);
    sink.ctx = self;
    status = vst__trace_replay_events(trace, VST_WINDOW_ALL, &sink, error);
    if (status == VST_OK && !budget_finish(self, trace))
        status = VST_E_NOMEM;
    if (status == VST_OK && self->count != 0) {
        *budget = self;
        return VST_OK;
    }
    vst__budget_free(self);
    return status;
}

void vst__budget_free(vst_budget *budget)
{
    if (budget == NULL)
        return;
    free(budget->all);
    free(budget->ids);
    free(budget->calls);
    free(budget->was_out);
    free(budget);
}

/* ---- answers ------------------------------------------------------------- */

void vst__budget_get_info(const vst_budget *budget, vst_budget_info *info)
{
    const stretch *first = budget->all, *last = first + budget->count - 1;

    *info = (vst_budget_info){.changes = budget->count};
    if (last->cpu_ns > first->cpu_ns)
        info->cpu_ns = last->cpu_ns - first->cpu_ns;
    if (last->cost_ns > first->cost_ns)
        info->cost_ns = last->cost_ns - first->cost_ns;
    for (size_t i = 0; i < budget->count; i++) {
        const stretch *s = &budget->all[i];
        info->windows += s->flags & VST_LEFT_OUT_WINDOW ? 1 : 0;
        if (s->count != 0 || s->flags & VST_LEFT_OUT_PYTHON)
            info->out_cpu_ns += cpu_of(budget, i);
    }
    for (vst_id id = 1; id <= budget->max; id++)
        info->functions += budget->was_out[id];
}

void vst__budget_get_stretch(const vst_budget *budget, size_t number,
                             vst_budget_stretch *found)
{
    const stretch *s = &budget->all[number];

    *found = (vst_budget_stretch){
        .start_ns = s->start_ns,
        .end_ns = number + 1 < budget->count ? s[1].start_ns : INT64_MAX,
        .flags = s->flags,
        .count = s->count,
        .ids = budget->ids + s->ids};
}

/* Finds the last stretch that began by then. */
size_t vst__budget_find(const vst_budget *self, int64_t ns)
{
    size_t low = 0, high = self->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (self->all[middle].start_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low != 0 ? low - 1 : self->count;
}

/* Returns the share of a gap that belongs to the recorded stretch on one side:
 * all, or half if there is a recorded stretch on the other side, too. */
static double share_of(bool has_other)
{
    return has_other ? 0.5 : 1;
}

/* Returns the length of a gap, 0 if it is empty. */
static double budget_length(int64_t from_ns, int64_t to_ns)
{
    return to_ns > from_ns ? (double)((uint64_t)to_ns - (uint64_t)from_ns) : 0;
}

static int64_t budget_later(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

/* Returns the gap before a stretch: the stretches before it in which this
 * function was left out. */
static vst_budget_gap budget_before(const vst_budget *self, size_t at,
                                    vst_id id, int64_t since_ns)
{
    uint64_t cpu = 0, own = cpu_of(self, at);
    vst_budget_gap gap = {0, 0, 0};
    size_t i = at;
    double share;

    while (i != 0 && is_out(self, i - 1, id))
        cpu += cpu_of(self, --i);
    if (cpu == 0 || own == 0)
        return gap;
    share = share_of(i != 0);
    gap.calls = (double)cpu / (double)own * share;
    gap.all_ns = budget_length(budget_later(self->all[i].start_ns, since_ns),
                               self->all[at].start_ns);
    gap.own_ns = share * gap.all_ns;
    return gap;
}

/* Returns the CPU time of a stretch after this moment. */
static double cpu_behind(const vst_budget *self, size_t at, int64_t ns)
{
    const stretch *s = &self->all[at];
    double cpu = (double)cpu_of(self, at);

    if (cpu <= 0 || ns <= s->start_ns)
        return cpu;
    return ns < s[1].start_ns ? cpu * (double)(s[1].start_ns - ns) /
                                    (double)(s[1].start_ns - s->start_ns)
                              : 0;
}

/* Returns the gap behind a stretch: the next stretches, as long as this
 * function is left out in them. A call that began at `ns` stands for calls of
 * the gap only if it is among the last calls that were counted in the stretch.
 */
static vst_budget_gap budget_after(const vst_budget *self, size_t at, vst_id id,
                                   int64_t ns, int64_t end_ns)
{
    const stretch *next = &self->all[at + 1];
    uint64_t own = cpu_of(self, at);
    vst_budget_gap gap = {0, 0, 0};
    double cpu = 0, share;
    size_t i = at + 1;

    for (; i < self->count && is_out(self, i, id); i++)
        cpu += cpu_behind(self, i, end_ns);
    if (cpu <= 0 || own == 0)
        return gap;
    if (next->since_ns > self->all[at].start_ns &&
        next->since_cpu_ns < next->cpu_ns) {
        if (ns < next->since_ns)
            return gap;
        if (next->cpu_ns - next->since_cpu_ns < own)
            own = next->cpu_ns - next->since_cpu_ns;
    }
    share = share_of(i < self->count && cpu_of(self, i) != 0);
    gap.calls = cpu / (double)own * share;
    gap.all_ns = budget_length(budget_later(next->start_ns, end_ns),
                               self->all[i < self->count ? i : i - 1].start_ns);
    gap.own_ns = share * gap.all_ns;
    return gap;
}

/* Returns whether a call that began in a stretch was open from the beginning to
 * the end of another stretch in which its function was left out. */
static bool budget_outlasts(const vst_budget *self, size_t at, vst_id id,
                            int64_t end_ns)
{
    for (size_t i = at + 1; i + 1 < self->count; i++) {
        if (self->all[i + 1].start_ns > end_ns)
            return false;
        if (is_out(self, i, id))
            return true;
    }
    return false;
}

void vst__budget_gaps(const vst_budget *budget, size_t at, vst_id id,
                      int64_t start_ns, int64_t end_ns, int64_t since_ns,
                      vst_budget_gap gaps[2])
{
    gaps[0] = gaps[1] = (vst_budget_gap){0, 0, 0};
    if (at == budget->count || id > budget->max || !budget->was_out[id] ||
        is_out(budget, at, id) || budget_outlasts(budget, at, id, end_ns))
        return;
    gaps[0] = budget_before(budget, at, id, since_ns);
    if (at + 1 < budget->count)
        gaps[1] = budget_after(budget, at, id, start_ns, end_ns);
}

double vst__budget_passing_ns(const vst_budget *budget, int64_t start_ns,
                              int64_t end_ns)
{
    size_t first = vst__budget_find(budget, start_ns);
    size_t last = vst__budget_find(budget, end_ns);
    double before_ns =
        first != budget->count ? passed_by(&budget->all[first], start_ns) : 0;

    return last != budget->count
               ? passed_by(&budget->all[last], end_ns) - before_ns
               : 0;
}
