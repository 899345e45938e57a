/* The spans of a trace, for all tables of sums at the same time: which thread
 * and function is read, and how much time is whose. Functions that are left out
 * count as if they had not been recorded: their time is their caller's. One
 * thread at a time. */
#include "tables/sums.h"

#include <stdlib.h>

/* ---- threads ------------------------------------------------------------ */

static bool sums_look_up(vst__sums *self, uint32_t number)
{
    self->has_asked = true;
    self->asked = number;
    self->is_read = false;
    for (size_t i = 0; i < self->options->thread_count; i++)
        self->is_read |= self->options->threads[i] == number;
    return self->is_read;
}

static inline bool reads_thread(vst__sums *self, uint32_t number)
{
    if (self->options->threads == NULL)
        return true;
    return self->has_asked && self->asked == number
               ? self->is_read
               : sums_look_up(self, number);
}

/* Ends the thread that was read: the spans that follow are another thread's, or
 * there are no more. */
static void sums_end_thread(vst__sums *self)
{
    int64_t missing_ns = 0;

    if (self->estimates.budget != NULL)
        missing_ns = vst__estimates_end_thread(&self->estimates);
    if (self->wanted & VST_SUMS_THREADS)
        vst__thread_sums_end_thread(self, missing_ns);
    vst__duration_sums_end_thread(&self->durations);
}

/* ---- spans -------------------------------------------------------------- */

/* Subtracts from the span the time of calls inside it that is in no row. */
static bool sums_shorten(vst__sums *self, const vst_span *span,
                         unsigned char mark, vst_span *shorter)
{
    int64_t left;

    if (!self->has_untimed)
        return true;
    if (!vst__own_times_end(&self->untimed, span, mark & VST_MARK_NO_TIME,
                            &left))
        return false;
    if (!(mark & VST_MARK_NO_TIME))
        shorter->end_ns = shorter->start_ns + left;
    return true;
}

/* Computes the own time of a span in a tree that folds imports; *self_ns stays
 * if the tree folds nothing. */
static bool fold_time(vst__sums *self, const vst_span *span, unsigned char mark,
                      int64_t *self_ns)
{
    return self->calls.tree == NULL || !self->options->fold_imports ||
           vst__own_times_end(&self->calls.folded, span,
                              !(mark & VST_MARK_LEFT_OUT) &&
                                  !(span->flags & VST_SPAN_MACHINERY),
                              self_ns);
}

/* Computes how long a span ran on a processor, without the calls inside it. */
static bool find_ran(vst__sums *self, const vst_span *span, unsigned char mark,
                     int64_t *ran_ns)
{
    vst_span ran;

    if (!self->has_running)
        return true;
    ran = *span;
    ran.end_ns =
        ran.start_ns +
        (span->running_ns != VST_RUNNING_UNKNOWN ? span->running_ns : 0);
    return vst__own_times_end(&self->ran, &ran, !(mark & VST_MARK_LEFT_OUT),
                              ran_ns);
}

/* Computes for how many left-out calls a recorded call stands. own: the span
 * without the time that is in no row. */
static void sums_estimate(vst__sums *self, const vst_span *span,
                          unsigned char mark, const vst_span *own,
                          int64_t self_ns)
{
    vst__estimates *e = &self->estimates;
    double missing_ns;

    if (mark & (VST_MARK_LEFT_OUT | VST_MARK_NO_TIME)) {
        vst__estimates_see(e, span, mark & VST_MARK_NO_TIME ? self_ns : 0);
        return;
    }
    missing_ns = vst__estimates_add(e, span, own->end_ns - own->start_ns,
                                    self_ns, self->own.missing_ns);
    self->own.levels[span->depth].missing_ns += missing_ns;
}

/* Passes a span that is shown to the parts that want it. `own` is the span
 * without the time that is in no row. */
static vst_status add_shown(vst__sums *self, const vst_span *span,
                            const vst_span *own, unsigned char mark,
                            int64_t self_ns, int64_t ran_ns)
{
    vst_status status = VST_OK;

    if (self->wanted & VST_SUMS_STEPS && mark & VST_MARK_STEP)
        status = vst__step_sums_add(&self->steps, span);
    if (status == VST_OK && self->wanted & VST_SUMS_REPEATS)
        status = vst__repeat_sums_add(&self->repeats, span);
    if (status == VST_OK && self->wanted & VST_SUMS_LINES &&
        span->called_at != 0)
        status = vst__line_sums_add(&self->lines, self->trace, own);
    if (self->functions.of != NULL && !(span->flags & VST_SPAN_ASYNC))
        vst__function_sums_add(self, own, self_ns, ran_ns);
    if (status == VST_OK && self->wanted & VST_SUMS_DURATIONS &&
        !(mark & VST_MARK_UNTIMED))
        status = vst__duration_sums_add(self, own);
    if (self->wanted & VST_SUMS_COLLECTIONS && mark & VST_MARK_GC)
        vst__collection_sums_add(&self->collections, span);
    return status;
}

static vst_status add_one(vst__sums *self, const vst_span *span)
{
    unsigned char mark = vst__sums_mark(self, span->id);
    bool beside = span->flags & VST_SPAN_ASYNC;
    const vst_span *timed = span;
    vst_status status = VST_OK;
    /* copy of the span, made only where the span is changed, because copying
     * takes time */
    vst_span own;
    int64_t self_ns, folded_ns, ran_ns = 0;

    if (!beside && self->reading != span->thread) {
        sums_end_thread(self);
        self->reading = span->thread;
    }
    if (self->has_untimed || self->calls.tree != NULL) {
        own = *span;
        timed = &own;
    }
    if (!vst__own_times_end(&self->own, span, !(mark & VST_MARK_LEFT_OUT),
                            &self_ns) ||
        !find_ran(self, span, mark, &ran_ns) ||
        !sums_shorten(self, span, mark, &own))
        return VST_E_NOMEM;
    folded_ns = self_ns;
    if (!fold_time(self, span, mark, &folded_ns))
        return VST_E_NOMEM;
    if (self->estimates.budget != NULL && !beside)
        sums_estimate(self, span, mark, timed, self_ns);
    if (self->wanted & VST_SUMS_THREADS && !beside &&
        !(mark & VST_MARK_LEFT_OUT))
        status = vst__thread_sums_add(self, span, mark, self_ns, ran_ns);
    if (status == VST_OK && mark & (VST_MARK_LEFT_OUT | VST_MARK_NO_TIME))
        return self->calls.tree != NULL && !beside
                   ? vst__contexts_leave(self->calls.tree, span->depth)
                   : VST_OK;
    if (status == VST_OK)
        status = add_shown(self, span, timed, mark, self_ns, ran_ns);
    if (status != VST_OK || self->calls.tree == NULL)
        return status;
    return vst__call_sums_add(self, &own, folded_ns);
}

/* Returns whether a wait that ended in a call belongs inside that call. */
static bool is_inside(const vst__sums *self, const vst_span *span)
{
    return span->flags & VST_SPAN_STEP ||
           !(vst__sums_mark(self, span->id) &
             (VST_MARK_AWAITED | VST_MARK_LEFT_OUT | VST_MARK_NO_TIME));
}

static vst_status sums_on_span(void *ctx, const vst_span *span)
{
    vst__sums *self = ctx;
    vst__task_wait wait = {.ns = 0};
    vst_status status = VST_OK;

    if (span->id > self->max || !reads_thread(self, span->thread))
        return VST_OK;
    if (self->calls.tree != NULL && self->options->awaits)
        status = vst__awaits_span(&self->calls.awaits, span, &wait);
    if (self->durations.tasks != NULL && span->task != 0 && status == VST_OK)
        status = vst__tasks_span(self->durations.tasks, span);
    if (status == VST_OK && wait.ns > 0 && is_inside(self, span))
        status = vst__call_sums_add_wait(self, span, span->depth + 1, &wait);
    if (status == VST_OK)
        status = add_one(self, span);
    if (status == VST_OK && wait.ns > 0 && !is_inside(self, span))
        status = vst__call_sums_add_wait(self, span, span->depth, &wait);
    return status;
}

static vst_status sums_on_leave(void *ctx, uint32_t depth)
{
    vst__sums *self = ctx;

    vst__own_times_leave(&self->own, depth);
    if (self->has_running)
        vst__own_times_leave(&self->ran, depth);
    if (self->has_untimed)
        vst__own_times_leave(&self->untimed, depth);
    vst__own_times_leave(&self->calls.folded, depth);
    return self->calls.tree != NULL
               ? vst__contexts_leave(self->calls.tree, depth)
               : VST_OK;
}

static vst_status on_wait(void *ctx, const vst_wait *wait)
{
    vst__sums *self = ctx;

    return reads_thread(self, wait->thread)
               ? vst__thread_sums_add_pause(self, wait)
               : VST_OK;
}

static vst_status on_instant(void *ctx, const vst_instant *mark)
{
    vst__sums *self = ctx;

    return reads_thread(self, mark->thread)
               ? vst__exception_sums_add(&self->exceptions, mark)
               : VST_OK;
}

static vst_status sums_on_task(void *ctx, const vst_task_event *event)
{
    vst__sums *self = ctx;
    vst_status status = VST_OK;

    if (!reads_thread(self, event->thread))
        return VST_OK;
    if (self->durations.tasks != NULL)
        status = vst__tasks_event(self->durations.tasks, event);
    return status == VST_OK && self->calls.tree != NULL && self->options->awaits
               ? vst__awaits_event(&self->calls.awaits, event)
               : status;
}

/* ---- a reading ---------------------------------------------------------- */

static vst_status sums_begin(vst__sums *self)
{
    vst_status status = VST_OK;

    self->max = vst_trace_definition_max(self->trace);
    for (vst_id id = 1; id <= self->max && !self->has_untimed; id++)
        self->has_untimed = vst__sums_mark(self, id) & VST_MARK_NO_TIME;
    if (!self->grows && self->wanted & (VST_SUMS_FUNCTIONS | VST_SUMS_THREADS |
                                        VST_SUMS_ESTIMATES))
        status = vst__estimates_begin(self);
    if (status == VST_OK && self->wanted & VST_SUMS_FUNCTIONS)
        status = vst__function_sums_begin(self);
    self->has_running =
        self->wanted & (VST_SUMS_FUNCTIONS | VST_SUMS_THREADS) &&
        vst__trace_has_switches(self->trace);
    if (status == VST_OK && self->wanted & VST_SUMS_THREADS)
        status = vst__thread_sums_begin(self);
    if (status == VST_OK && self->wanted & VST_SUMS_CALLS)
        status = vst__contexts_create(&self->calls.tree);
    if (self->calls.tree != NULL && self->options->by_thread)
        vst__contexts_by_thread(self->calls.tree);
    if (status == VST_OK && self->wanted & VST_SUMS_DURATIONS)
        status = vst__duration_sums_begin(self);
    return status;
}

vst_status vst__sums_begin(vst__sums *self, vst_sink *sink)
{
    vst_status status = sums_begin(self);

    *sink = (vst_sink){
        .ctx = self,
        .recursion = self->wanted & (VST_SUMS_FUNCTIONS | VST_SUMS_DURATIONS |
                                     VST_SUMS_LINES) ||
                     self->estimates.budget != NULL,
        .no_args = !(self->wanted & (VST_SUMS_COLLECTIONS | VST_SUMS_REPEATS)),
        .span = sums_on_span,
        .leave = sums_on_leave,
        .instant = self->wanted & VST_SUMS_EXCEPTIONS ? on_instant : NULL,
        .wait = self->threads.has_pauses ? on_wait : NULL,
        .task = (self->calls.tree != NULL && self->options->awaits) ||
                        self->durations.tasks != NULL
                    ? sums_on_task
                    : NULL,
    };
    return status;
}

vst_status vst__sums_finish(vst__sums *self)
{
    sums_end_thread(self);
    if (self->functions.of != NULL && self->estimates.budget != NULL)
        vst__estimates_end(self);
    return self->calls.tree != NULL
               ? vst__contexts_finish(self->calls.tree, &self->calls.rows,
                                      &self->calls.count)
               : VST_OK;
}

void vst__sums_free(vst__sums *self)
{
    vst__function_sums_free(self);
    vst__call_sums_free(self);
    vst__thread_sums_free(self);
    vst__duration_sums_free(self);
    vst__step_sums_free(&self->steps);
    vst__repeat_sums_free(&self->repeats);
    vst__line_sums_free(&self->lines);
    vst__exception_sums_free(&self->exceptions);
    vst__estimates_free(&self->estimates);
    free(self->own.levels);
    free(self->ran.levels);
    free(self->untimed.levels);
}
