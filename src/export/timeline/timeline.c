/* A timeline of one process or several, whatever format draws it: which traces
 * and windows it shows, what its times count from, and replaying a trace into
 * it. One thread at a time. */
#include "export/timeline/timeline.h"

#include <stdlib.h>

#include <vestige/trace.h>

/* torch counts ts from a multiple of this, a quarter of a year, so that the
 * traces of several ranks share a base. */
#define BASE_NS ((int64_t)7889238 * 1000000000)

/* ---- beginning and end -------------------------------------------------- */

static int64_t floor_to(int64_t value, int64_t step)
{
    int64_t rest = value % step;

    return value - rest - (rest < 0 ? step : 0);
}

/* The windows of each process, and what all times count from. */
static vst_status select_windows(vst__timeline *timeline, int window)
{
    int64_t first_ns = INT64_MAX;

    for (size_t i = 0; i < timeline->process_count; i++) {
        vst__timeline_process *process = &timeline->processes[i];
        vst_trace *trace = process->trace;
        int64_t start_ns =
            vst__clockmap_to_ns(&trace->clock, trace->header.start.ticks);
        vst_status status = vst__trace_select_windows(
            trace, window, &process->first_window, &process->window_count);

        if (status != VST_OK)
            return status;
        if (start_ns < first_ns)
            first_ns = start_ns;
    }
    timeline->base_ns = floor_to(first_ns, BASE_NS);
    return VST_OK;
}

vst_status vst__timeline_begin(vst__timeline *timeline,
                               vst_trace *const *traces, size_t count,
                               int window)
{
    vst_status status;

    timeline->processes = calloc(count, sizeof *timeline->processes);
    if (timeline->processes == NULL)
        return VST_E_NOMEM;
    timeline->process_count = count;
    for (size_t i = 0; i < count; i++)
        timeline->processes[i].trace = traces[i];
    status = select_windows(timeline, window);
    if (status == VST_OK)
        status = vst__timeline_assign(timeline);
    if (status == VST_OK)
        vst__timeline_find_parents(timeline);
    return status;
}

void vst__timeline_end(vst__timeline *timeline)
{
    vst__timeline_forget_flows(timeline);
    vst__timeline_forget_tasks(timeline);
    for (size_t i = 0; i < timeline->process_count; i++) {
        free(timeline->processes[i].tracks);
        free(timeline->processes[i].device_pids);
        free(timeline->processes[i].starts);
    }
    free(timeline->processes);
}

/* ---- replaying ---------------------------------------------------------- */

/* A trace with memory is read twice. */
typedef struct half {
    vst_progress_fn fn;
    void *ctx;
    double before;
} half;

static int tell_half(void *ctx, double done)
{
    const half *self = ctx;

    return self->fn(self->ctx, self->before + done / 2);
}

vst_status vst__timeline_replay(vst__timeline *timeline,
                                const vst_export_options *options,
                                const vst_sink *sink, vst_error *error)
{
    vst_trace *trace = timeline->trace;
    half told = {trace->progress, trace->progress_ctx, 0};
    vst_status status;

    if (!vst_trace_has_memory(trace))
        return vst_trace_replay(trace, options->window, options->tracer, sink,
                                error);
    if (told.fn != NULL)
        vst_trace_set_progress(trace, tell_half, &told);
    status =
        vst_trace_replay(trace, options->window, options->tracer, sink, error);
    told.before = 0.5;
    if (status == VST_OK)
        status = vst__timeline_put_memory(timeline, options, error);
    vst_trace_set_progress(trace, told.fn, told.ctx);
    return status;
}

/* ---- steps -------------------------------------------------------------- */

bool vst__timeline_is_step(const vst_definition *definition)
{
    static const char prefix[] = "ProfilerStep#";

    return definition->kind == VST_DEF_ANNOTATION &&
           definition->name_len >= sizeof prefix - 1 &&
           memcmp(definition->name, prefix, sizeof prefix - 1) == 0;
}

bool vst__timeline_make_room_for_step(vst__timeline *timeline,
                                      const vst_span *span)
{
    vst__timeline_process *process = timeline->process;

    if (process->steps_end_ns > span->start_ns)
        return false;
    process->steps_end_ns = span->end_ns;
    return true;
}
