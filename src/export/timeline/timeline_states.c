/* When threads of a timeline ran, were preempted and waited: the switches of
 * the trace, thread after thread. One thread at a time. */
#include "export/timeline/timeline.h"

typedef struct states {
    vst__timeline *timeline;
    const vst_trace_thread *thread;
    const vst__timeline_track *track;
    int64_t first_ns, last_ns; /* begin and end of the window */
} states;

static void draw_span(const states *self, const vst__drawn_state *state)
{
    static const char *const names[] = {
        [VST_THREAD_UNKNOWN] = "?",
        [VST_THREAD_WAITS] = "waiting",
        [VST_THREAD_RUNS] = "running",
        [VST_THREAD_PREEMPTED] = "preempted",
    };
    const char *name = names[state->what];
    vst__label label = vst__label_of(name, strlen(name), VST_CATEGORY_STATE);

    self->timeline->drawing->ops->span(
        self->timeline->drawing,
        &(vst__drawn_span){.label = &label,
                           .category = VST_CATEGORY_OF_LABEL,
                           .fit = VST_FIT_ALONE,
                           .tid = self->track->states_tid,
                           .start_ns = state->start_ns,
                           .end_ns = state->end_ns});
}

static void draw_state(void *ctx, const vst__thread_stretch *stretch)
{
    const states *self = ctx;
    vst__drawing *drawing = self->timeline->drawing;
    vst__drawn_state state = {
        .tid = self->track->tid,
        .name = self->thread->name,
        .name_len = self->thread->name_len,
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
    if (state.start_ns >= state.end_ns)
        return;
    if (drawing->ops->state != NULL)
        drawing->ops->state(drawing, &state);
    else
        draw_span(self, &state);
}

static vst_status states_draw_window(vst__timeline *timeline,
                                     vst_running *running,
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
        self.track = &timeline->process->tracks[i];
        if (self.track->shown)
            status = vst__running_each(running, self.thread->number, draw_state,
                                       &self);
    }
    return status;
}

static vst_status states_finish(vst__timeline *timeline)
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
            status = states_draw_window(timeline, &running, window);
    }
    vst__running_free(&running);
    return status;
}

const vst__timeline_part vst__timeline_states = {NULL, states_finish, NULL};
