/* The table of durations: how long the calls of a function took, the spans of
 * an annotation (such as requests), and the tasks of a coroutine function, each
 * as a histogram and its quantiles. A function that calls itself counts once.
 * One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "tables/pass.h"
#include "tables/sums.h"

#define DURATION_COLUMNS(COLUMN)                                               \
    COLUMN(I32, process, filling->pass->source->process)                       \
    COLUMN(OWN, of, of)                                                        \
    COLUMN(I32, func, id)                                                      \
    COLUMN(SHOWN, name, vst__names_of(filling, id)->shown)                     \
    COLUMN(I64, count, all->count)                                             \
    COLUMN(I64, total_ns, all->sum_ns)                                         \
    COLUMN(I64, min_ns, all->min_ns)                                           \
    COLUMN(I64, p50_ns, median_ns)                                             \
    COLUMN(I64, p99_ns, vst__histogram_quantile(all, 0.99))                    \
    COLUMN(I64, max_ns, all->max_ns)                                           \
    COLUMN(I64, longest_start_ns, duration->longest_start_ns)                  \
    COLUMN(I32, longest_thread, duration->longest_thread)                      \
    COLUMN(I64, slow_count, slow)                                              \
    COLUMN(I64, slow_ns, slow_ns)                                              \
    COLUMN(I64_OR_NULL, threads_ns, of == OF_CALL, duration->threads_ns)       \
    COLUMN(TEXT, histogram, text, vst__histogram_write(all, text))

static const char *const of_names[] = {"call", "async", "task"};
enum { OF_CALL, OF_ASYNC, OF_TASK };

/* A call is slow if it took so many times the median. */
enum { SLOW_TIMES = 10 };

/* ---- spans --------------------------------------------------------------- */

vst_status vst__duration_sums_begin(vst__sums *sums)
{
    vst__duration_sums *own = &sums->durations;
    size_t count = (size_t)sums->max + 1;

    own->of = calloc(count, sizeof *own->of);
    own->touched = calloc(count, sizeof *own->touched);
    return own->of != NULL && own->touched != NULL
               ? vst__tasks_create(&own->tasks)
               : VST_E_NOMEM;
}

static vst_status duration_put_in(vst__duration *duration, int64_t start_ns,
                                  int64_t ns, uint32_t thread)
{
    vst__histogram *all = &duration->all;

    if (all->count == 0 || ns > all->max_ns) {
        duration->longest_start_ns = start_ns;
        duration->longest_thread = thread;
    }
    return vst__histogram_add(all, ns);
}

vst_status vst__duration_sums_add(vst__sums *sums, const vst_span *span)
{
    vst__duration_sums *own = &sums->durations;
    vst__duration *duration = &own->of[span->id];

    if (span->flags & VST_SPAN_RECURSIVE)
        return VST_OK;
    if (span->flags & VST_SPAN_ASYNC) {
        duration->is_async = true;
    } else {
        if (!own->has_thread || span->start_ns < own->first_ns)
            own->first_ns = span->start_ns;
        if (!own->has_thread || span->end_ns > own->last_ns)
            own->last_ns = span->end_ns;
        own->has_thread = true;
        if (!duration->is_touched)
            own->touched[own->touched_count++] = span->id;
        duration->is_touched = true;
    }
    return duration_put_in(duration, span->start_ns,
                           span->end_ns - span->start_ns, span->thread);
}

void vst__duration_sums_end_thread(vst__duration_sums *own)
{
    for (size_t i = 0; i < own->touched_count; i++) {
        vst__duration *duration = &own->of[own->touched[i]];

        duration->threads_ns += own->last_ns - own->first_ns;
        duration->is_touched = false;
    }
    own->touched_count = 0;
    own->has_thread = false;
}

void vst__duration_sums_free(vst__sums *sums)
{
    vst__duration_sums *own = &sums->durations;

    for (vst_id id = 0; own->of != NULL && id <= sums->max; id++)
        vst__histogram_free(&own->of[id].all);
    free(own->of);
    free(own->touched);
    vst__tasks_destroy(own->tasks);
}

/* ---- rows ---------------------------------------------------------------- */

static void put_duration(vst__filling *filling, vst_id id, int of,
                         vst__duration *duration)
{
    vst__histogram *all = &duration->all;
    int64_t median_ns = vst__histogram_quantile(all, 0.5), slow_ns = 0;
    uint64_t slow = vst__histogram_above(
        all, median_ns > 0 ? SLOW_TIMES * median_ns : 1, &slow_ns);
    char text[VST_HISTOGRAM_TEXT];

    VST_PUT_ROW(&filling->batch, DURATION_COLUMNS);
}

/* Adds up the tasks that ended, by their functions. */
static vst_status put_tasks(vst__filling *filling, const vst__sums *sums)
{
    const vst__tasks *tasks = sums->durations.tasks;
    vst__duration *of = calloc((size_t)sums->max + 1, sizeof *of);
    vst_status status = of != NULL ? VST_OK : VST_E_NOMEM;

    for (size_t i = 0; i < vst__tasks_count(tasks) && status == VST_OK; i++) {
        const vst__task *task = vst__tasks_at(tasks, i);

        if (task->id <= sums->max && task->kind != VST_TASK_HUB &&
            task->end != VST_TASK_OPEN &&
            !(vst__sums_mark(sums, task->id) & VST_MARK_LEFT_OUT))
            status =
                duration_put_in(&of[task->id], task->start_ns,
                                task->end_ns - task->start_ns, task->thread);
    }
    for (vst_id id = 0; of != NULL && id <= sums->max; id++) {
        if (of[id].all.count != 0 && status == VST_OK)
            put_duration(filling, id, OF_TASK, &of[id]);
        vst__histogram_free(&of[id].all);
    }
    free(of);
    return status;
}

static vst_status begin_durations(vst__filling *filling)
{
    return vst__names_add(filling, of_names,
                          sizeof of_names / sizeof of_names[0]);
}

static void put_durations(vst__filling *filling)
{
    const vst__sums *sums = filling->pass->sums;
    vst_status status;

    for (vst_id id = 0; id <= sums->max; id++) {
        vst__duration *duration = &sums->durations.of[id];

        if (duration->all.count != 0)
            put_duration(filling, id, duration->is_async ? OF_ASYNC : OF_CALL,
                         duration);
    }
    status = put_tasks(filling, sums);
    if (status != VST_OK)
        filling->batch.status = status;
}

const vst__table vst__table_duration = {
    .name = "duration",
    VST_COLUMNS(DURATION_COLUMNS),
    .has_names = true,
    .begin = begin_durations,
    .sums = VST_SUMS_DURATIONS,
    .put = put_durations,
};
