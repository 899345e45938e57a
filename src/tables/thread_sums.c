/* The table of threads with the time of each, and the table of the functions
 * that waited. One thread at a time. */
#include <stdlib.h>

#include "base/grow.h"
#include "replay/named_waits.h"
#include "tables/sums.h"

typedef struct vst__own_time {
    int64_t ns;
    bool is_spent; /* the function is in the list of spent */
} own_time;

/* ---- adding up ----------------------------------------------------------- */

vst_status vst__thread_sums_begin(vst__sums *sums)
{
    vst__thread_sums *own = &sums->threads;
    size_t count = (size_t)sums->max + 1;
    vst_trace_info info;

    vst_trace_get_info(sums->trace, &info);
    own->has_pauses = info.object_waits;
    own->own = calloc(count, sizeof *own->own);
    own->spent = calloc(count, sizeof *own->spent);
    own->waited = calloc(count, sizeof *own->waited);
    own->waiters = vst__named_waits(sums->trace, sums->max);
    return own->own != NULL && own->spent != NULL && own->waited != NULL &&
                   own->waiters != NULL
               ? VST_OK
               : VST_E_NOMEM;
}

void vst__thread_sums_free(vst__sums *sums)
{
    free(sums->threads.of);
    free(sums->threads.own);
    free(sums->threads.spent);
    free(sums->threads.waiters);
    free(sums->threads.waited);
}

/* Returns the sums of a thread, or NULL if memory ran out. */
static vst__thread_sum *threads_find(vst__thread_sums *own, uint32_t number)
{
    if (own->count != 0 && own->of[own->count - 1].number == number)
        return &own->of[own->count - 1];
    for (size_t i = 0; i < own->count; i++)
        if (own->of[i].number == number)
            return &own->of[i];
    if (!VST_RESERVE(own->of, own->count + 1, own->capacity))
        return NULL;
    own->of[own->count] = (vst__thread_sum){
        .number = number, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    return &own->of[own->count++];
}

/* Finds the function with the most own time in the thread; among equals, the
 * one that was defined first. */
void vst__thread_sums_end_thread(vst__sums *sums, int64_t missing_ns)
{
    vst__thread_sums *own = &sums->threads;
    int64_t top_ns = 0;
    vst_id top = 0;

    for (size_t i = 0; i < own->spent_count; i++) {
        vst_id id = own->spent[i];
        own_time *spent = &own->own[id];

        if (spent->ns > top_ns || (spent->ns == top_ns && top && id < top)) {
            top_ns = spent->ns;
            top = id;
        }
        *spent = (own_time){0};
    }
    own->spent_count = 0;
    for (size_t i = 0; top != 0 && i < own->count; i++) {
        vst__thread_sum *sum = &own->of[i];

        if (sum->number != sums->reading)
            continue;
        sum->self_ns += missing_ns;
        if (top_ns > sum->top_ns) {
            sum->top_ns = top_ns;
            sum->top = top;
        }
    }
}

static void threads_spend(vst__thread_sums *own, vst_id id, int64_t ns)
{
    own_time *spent = &own->own[id];

    if (!spent->is_spent)
        own->spent[own->spent_count++] = id;
    spent->is_spent = true;
    spent->ns += ns;
}

/* Adds how long an outermost call ran and waited. */
static void add_outermost(vst__thread_sum *sum, const vst_span *span)
{
    if (span->running_ns == VST_RUNNING_UNKNOWN) {
        sum->unknown++;
    } else {
        sum->running_ns += span->running_ns;
        sum->preempted_ns += span->preempted_ns;
    }
    if (span->gil_ns == VST_RUNNING_UNKNOWN)
        sum->unknown_gil++;
    else
        sum->gil_ns += span->gil_ns;
}

/* Returns whether the own time of a call of such a function was waiting. */
static bool is_waiting(const vst__waiter *waiter, int64_t self_ns)
{
    return !waiter->is_around || waiter->reason == VST_WAIT_SPIN ||
           self_ns >= VST_WAITED_NS;
}

/* Returns how long a call waited, without calls inside it; 0 if that is not
 * known. */
static int64_t own_waiting(const vst_span *span, const vst__waiter *waiter,
                           int64_t self_ns, int64_t ran_ns)
{
    int64_t waiting = vst_span_waiting(span);

    if (!is_waiting(waiter, self_ns))
        return 0;
    if (waiter->is_around && waiting > self_ns - ran_ns)
        waiting = self_ns - ran_ns;
    return waiting > 0 ? waiting : 0;
}

vst_status vst__thread_sums_add(vst__sums *sums, const vst_span *span,
                                unsigned char mark, int64_t self_ns,
                                int64_t ran_ns)
{
    vst__thread_sums *own = &sums->threads;
    const vst__waiter *waiter = &own->waiters[span->id];
    bool is_new = !(span->flags & VST_SPAN_RESUMED);
    vst__thread_sum *sum;

    sum = threads_find(own, span->thread);
    if (sum == NULL)
        return VST_E_NOMEM;
    sum->calls += is_new;
    if (!(mark & VST_MARK_NO_TIME)) {
        threads_spend(own, span->id, self_ns);
        sum->self_ns += self_ns;
    }
    if (span->parent == 0)
        add_outermost(sum, span);
    if (waiter->reason != VST_WAIT_NONE)
        sum->waited_ns[waiter->reason] +=
            own_waiting(span, waiter, self_ns, ran_ns);
    if (mark & VST_MARK_WAITS && is_waiting(waiter, self_ns)) {
        sum->waiting_ns += self_ns;
        own->waited[span->id].calls += is_new;
        own->waited[span->id].ns += self_ns;
    }
    if (mark & VST_MARK_GC)
        sum->gc_ns += self_ns;
    if (span->start_ns < sum->first_ns)
        sum->first_ns = span->start_ns;
    if (span->end_ns > sum->last_ns)
        sum->last_ns = span->end_ns;
    return VST_OK;
}

/* Adds waits for locks of objects and for a stopped world, if they are known.
 */
vst_status vst__thread_sums_add_pause(vst__sums *sums, const vst_wait *wait)
{
    vst__thread_sum *sum;

    if (wait->serial == 0 ||
        (wait->reason != VST_WAIT_OBJECT && wait->reason != VST_WAIT_WORLD))
        return VST_OK;
    sum = threads_find(&sums->threads, wait->thread);
    if (sum == NULL)
        return VST_E_NOMEM;
    sum->waited_ns[wait->reason] += wait->end_ns - wait->start_ns;
    return VST_OK;
}

/* ---- threads ------------------------------------------------------------- */

#define THREADS_COLUMNS(COLUMN)                                                \
    COLUMN(I32, thread, sum->number)                                           \
    COLUMN(I64, calls, sum->calls)                                             \
    COLUMN(I64, self_ns, sum->self_ns)                                         \
    COLUMN(I64, waiting_ns, sum->waiting_ns)                                   \
    COLUMN(I64, gc_ns, sum->gc_ns)                                             \
    COLUMN(I64, first_ns, sum->first_ns)                                       \
    COLUMN(I64, last_ns, sum->last_ns)                                         \
    COLUMN(I64_OR_NULL, running_ns, sum->unknown == 0, sum->running_ns)        \
    COLUMN(I64_OR_NULL, gil_ns, sum->unknown_gil == 0, sum->gil_ns)            \
    COLUMN(I64_OR_NULL, preempted_ns, sum->unknown == 0, sum->preempted_ns)    \
    COLUMN(I64, lock_ns, sum->waited_ns[VST_WAIT_LOCK])                        \
    COLUMN(I64, io_ns, sum->waited_ns[VST_WAIT_IO])                            \
    COLUMN(I64, sleep_ns, sum->waited_ns[VST_WAIT_SLEEP])                      \
    COLUMN(I64, child_ns, sum->waited_ns[VST_WAIT_CHILD])                      \
    COLUMN(I64_OR_NULL, object_ns, own->has_pauses,                            \
           sum->waited_ns[VST_WAIT_OBJECT])                                    \
    COLUMN(I64_OR_NULL, world_ns, own->has_pauses,                             \
           sum->waited_ns[VST_WAIT_WORLD])                                     \
    /* the function with the most own time */                                  \
    COLUMN(I32_UNLESS_0, top, sum->top)

static void threads_put_threads(vst__filling *filling)
{
    const vst__thread_sums *own = &filling->pass->sums->threads;

    for (size_t i = 0; i < own->count; i++) {
        const vst__thread_sum *sum = &own->of[i];

        VST_PUT_ROW(&filling->batch, THREADS_COLUMNS);
    }
}

const vst__table vst__table_threads = {
    .name = "threads",
    VST_COLUMNS(THREADS_COLUMNS),
    .sums = VST_SUMS_THREADS,
    .put = threads_put_threads,
};

/* ---- waits --------------------------------------------------------------- */

#define WAITS_COLUMNS(COLUMN)                                                  \
    COLUMN(I32, func, id)                                                      \
    COLUMN(I64, calls, waited->calls)                                          \
    COLUMN(I64, self_ns, waited->ns)

static void put_waits(vst__filling *filling)
{
    const vst__sums *sums = filling->pass->sums;

    for (vst_id id = 1; id <= sums->max; id++) {
        const struct vst__waited *waited = &sums->threads.waited[id];

        if (waited->calls != 0 || waited->ns != 0)
            VST_PUT_ROW(&filling->batch, WAITS_COLUMNS);
    }
}

const vst__table vst__table_waits = {
    .name = "waits",
    VST_COLUMNS(WAITS_COLUMNS),
    .sums = VST_SUMS_THREADS,
    .put = put_waits,
};
