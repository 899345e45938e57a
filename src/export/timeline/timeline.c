/* A timeline from its first trace to its last: chooses the windows to show, the
 * base of all times, and the order in which the things of a process are drawn.
 * One thread at a time. */
#include "export/timeline/timeline.h"

#include <stdlib.h>

#include <vestige/memory.h>
#include <vestige/trace.h>

#include "graph/graph.h"

/* torch counts ts from a multiple of this, a quarter of a year, so that the
 * traces of several ranks share a base. */
#define BASE_NS ((int64_t)7889238 * 1000000000)

/* In the order in which the parts draw after the spans. */
static const vst__timeline_part *const parts[] = {
    &vst__timeline_devices, &vst__timeline_operators, &vst__timeline_tasks,
    &vst__timeline_states,  &vst__timeline_starts,
};

enum { PARTS = sizeof parts / sizeof parts[0] };

/* ---- beginning and end --------------------------------------------------- */

static int64_t floor_to(int64_t value, int64_t step)
{
    int64_t rest = value % step;

    return value - rest - (rest < 0 ? step : 0);
}

/* Selects the windows of each process, and the base of all times. */
static vst_status select_windows(vst__timeline *timeline)
{
    int64_t first_ns = INT64_MAX;

    for (size_t i = 0; i < timeline->drawing->process_count; i++) {
        vst__timeline_process *process = &timeline->processes[i];
        vst__drawn_process *drawn = process->drawn;
        vst_trace *trace = process->trace;
        vst_status status = vst__trace_select_windows(
            trace, timeline->options->window, &process->first_window,
            &process->window_count);

        if (status != VST_OK)
            return status;
        drawn->start_ns =
            vst__clockmap_to_ns(&trace->clock, trace->header.start.ticks);
        drawn->first_window_ns =
            process->window_count == 0
                ? drawn->start_ns
                : vst__clockmap_to_ns(
                      &trace->clock,
                      trace->windows[process->first_window].first);
        if (drawn->start_ns < first_ns)
            first_ns = drawn->start_ns;
    }
    timeline->drawing->base_ns = floor_to(first_ns, BASE_NS);
    return VST_OK;
}

static vst_status timeline_begin(vst__timeline *timeline,
                                 vst_trace *const *traces)
{
    vst__drawing *drawing = timeline->drawing;
    size_t count = drawing->process_count;
    vst_status status;

    drawing->processes = calloc(count, sizeof *drawing->processes);
    timeline->processes = calloc(count, sizeof *timeline->processes);
    if (drawing->processes == NULL || timeline->processes == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        drawing->processes[i].trace = timeline->processes[i].trace = traces[i];
        drawing->processes[i].index = i;
        timeline->processes[i].drawn = &drawing->processes[i];
    }
    status = select_windows(timeline);
    if (status == VST_OK)
        status = vst__timeline_assign(timeline);
    return status == VST_OK ? vst__timeline_find_parents(timeline) : status;
}

static void timeline_end(vst__timeline *timeline)
{
    vst__drawing *drawing = timeline->drawing;

    vst__timeline_forget_starts(timeline);
    for (size_t i = 0; i < drawing->process_count; i++) {
        if (timeline->processes != NULL)
            free(timeline->processes[i].tracks);
        if (drawing->processes != NULL)
            free(drawing->processes[i].groups);
    }
    free(timeline->processes);
    free(drawing->processes);
}

/* ---- a process ----------------------------------------------------------- */

/* Half of the progress: a trace with memory is read twice. */
typedef struct half {
    vst_progress_fn fn;
    void *ctx;
    double before;
} half;

static int timeline_report_half(void *ctx, double done)
{
    const half *self = ctx;

    return self->fn(self->ctx, self->before + done / 2);
}

static vst_status timeline_replay(vst__timeline *timeline, vst_error *error)
{
    vst_trace *trace = timeline->trace;
    half told = {trace->progress, trace->progress_ctx, 0};
    vst_sink sink = {.ctx = timeline, .tells_compensated = true};
    vst_status status;

    vst__timeline_watch_spans(timeline, &sink);
    for (size_t i = 0; i < PARTS; i++)
        if (parts[i]->watch != NULL)
            parts[i]->watch(timeline, &sink);
    if (told.fn != NULL && vst_trace_has_memory(trace))
        vst_trace_set_progress(trace, timeline_report_half, &told);
    status =
        vst_trace_replay(trace, timeline->options->window, NULL, &sink, error);
    told.before = 0.5;
    if (status == VST_OK && vst_trace_has_memory(trace))
        status = vst__timeline_draw_memory(timeline, error);
    vst_trace_set_progress(trace, told.fn, told.ctx);
    return status;
}

static void draw_windows(vst__timeline *timeline)
{
    const vst__timeline_process *process = timeline->process;
    vst__clockmap *clock = &timeline->trace->clock;

    for (size_t i = 0; i < process->window_count; i++) {
        const vst__window *window =
            &timeline->trace->windows[process->first_window + i];
        const vst__drawn_window drawn = {
            window->number, vst__clockmap_to_ns(clock, window->first),
            vst__clockmap_to_ns(clock, window->last)};

        timeline->drawing->ops->window(timeline->drawing, &drawn);
    }
}

static vst_status draw_all(vst__timeline *timeline, vst_error *error)
{
    vst_status status;

    vst__timeline_draw_process(timeline);
    status = vst__timeline_status(timeline);
    if (status == VST_OK)
        status = timeline_replay(timeline, error);
    else
        vst_error_set(error, status, 0, 0);
    if (status != VST_OK)
        return status;
    for (size_t i = 0; status == VST_OK && i < PARTS; i++)
        if (parts[i]->finish != NULL)
            status = parts[i]->finish(timeline);
    timeline->serials_before = timeline->serial_max;
    if (status == VST_OK)
        draw_windows(timeline);
    if (status == VST_OK)
        status = vst__timeline_status(timeline);
    return status == VST_OK ? VST_OK : vst_error_set(error, status, 0, 0);
}

static vst_status timeline_draw_process(vst__timeline *timeline,
                                        vst__timeline_process *process,
                                        vst_error *error)
{
    vst_trace *trace = process->trace;
    uint64_t nodes = 0;
    vst_status status = VST_OK;

    timeline->process = process;
    timeline->drawing->process = process->drawn;
    timeline->trace = trace;
    timeline->has_thread = false;
    process->steps_end_ns = INT64_MIN;
    if (timeline->drawing->ops->numbers_as_torch)
        status = vst__graph_count(trace, timeline->options->window, true,
                                  &nodes, error);
    if (status != VST_OK)
        return status;
    timeline->has_nodes = nodes != 0;
    timeline->overloads =
        vst_trace_metadata(trace, VST_DRAWING_INTERNAL "overloads") != NULL;
    status = vst__timeline_make_names(timeline);
    status = status == VST_OK ? draw_all(timeline, error)
                              : vst_error_set(error, status, 0, 0);
    for (size_t i = 0; i < PARTS; i++)
        if (parts[i]->forget != NULL)
            parts[i]->forget(timeline);
    vst__timeline_free_names(timeline);
    return status;
}

/* ---- the document -------------------------------------------------------- */

vst_status vst__timeline_draw(vst__drawing *drawing, vst_trace *const *traces,
                              size_t count, const vst_export_options *options,
                              vst_error *error)
{
    vst__timeline timeline = {.drawing = drawing, .options = options};
    vst_status status;

    drawing->process_count = count;
    status = timeline_begin(&timeline, traces);
    if (status == VST_OK)
        drawing->ops->begin(drawing);
    else
        vst_error_set(error, status, 0, 0);
    for (size_t i = 0; i < count && status == VST_OK; i++)
        status =
            timeline_draw_process(&timeline, &timeline.processes[i], error);
    if (status == VST_OK) {
        status = vst__timeline_draw_starts(&timeline);
        if (status == VST_OK && drawing->ops->end != NULL)
            drawing->ops->end(drawing);
        if (status == VST_OK)
            status = vst__drawing_status(drawing);
        vst_error_set(error, status, 0, 0);
    }
    timeline_end(&timeline);
    return status;
}
