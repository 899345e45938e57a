/* When threads of a timeline ran, were preempted and waited: what the trace
 * tells of their switches, thread after thread. One thread at a time. */
#include "export/timeline/timeline.h"

typedef struct states {
    vst__timeline *timeline;
    const vst_trace_thread *thread;
    int64_t first_ns, last_ns; /* of the window */
} states;

static void put_state(void *ctx, const vst__thread_stretch *stretch)
{
    const states *self = ctx;
    vst__state state = {
        .thread = self->thread,
        .what = stretch->what,
        .next = stretch->next,
        .start_ns = stretch->start_ns,
        .end_ns = stretch->end_ns,
    };

    if (state.start_ns < self->first_ns)
        state.start_ns = self->first_ns;
    if (state.end_ns > self->last_ns) {
        state.end_ns = self->last_ns;
        state.next = VST_THREAD_UNKNOWN;
    }
    if (state.start_ns < state.end_ns)
        self->timeline->drawing->state(self->timeline, &state);
}

static vst_status put_window(vst__timeline *timeline, vst_running *running,
                             const vst__window *window)
{
    vst_trace *trace = timeline->trace;
    states self = {
        .timeline = timeline,
        .first_ns = vst__clockmap_to_ns(&trace->clock, window->first),
        .last_ns = vst__clockmap_to_ns(&trace->clock, window->last),
    };
    vst_status status = vst__running_collect(running, trace, window);

    for (size_t i = 0; status == VST_OK && i < trace->thread_count; i++) {
        self.thread = &trace->threads[i];
        if (timeline->process->tracks[i].shown)
            status = vst__running_each(running, self.thread->number, put_state,
                                       &self);
    }
    return status;
}

vst_status vst__timeline_put_states(vst__timeline *timeline)
{
    const vst__timeline_process *process = timeline->process;
    vst_running running = {.count = 0};
    vst_status status = VST_OK;

    if (!vst__trace_has_switches(timeline->trace))
        return VST_OK;
    for (size_t i = 0; status == VST_OK && i < process->window_count; i++) {
        const vst__window *window =
            &timeline->trace->windows[process->first_window + i];

        if (!vst__window_is_gone(timeline->trace, window) &&
            window->segment_count != 0)
            status = put_window(timeline, &running, window);
    }
    vst__running_free(&running);
    return status;
}
