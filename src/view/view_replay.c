/* Fills the content of a span by replaying the records around it. */
#include <stdlib.h>
#include <string.h>

#include "view/view_span.h"

typedef struct capture {
    const vst__view_wanted *wanted;
    bool done;
    bool folded; /* ids and depths differ from those of the records */
    vst_view_span *span;
} capture;

vst_status vst__view_keep_args(vst_view_span *span, const char *args,
                               size_t count)
{
    free(span->args);
    span->args = NULL;
    span->args_len = 0;
    if (count == 0)
        return VST_OK;
    span->args = malloc(count);
    if (span->args == NULL)
        return VST_E_NOMEM;
    memcpy(span->args, args, count);
    span->args_len = count;
    return VST_OK;
}

static vst_status take_whole(void *ctx, const vst_span *span)
{
    capture *self = ctx;
    const vst__view_wanted *wanted = self->wanted;
    vst_view_span *into = self->span;

    if (self->done || span->start_ns != wanted->start_ns ||
        span->end_ns != wanted->end_ns ||
        ((span->flags & VST_SPAN_ASYNC) != 0) != wanted->off_stack ||
        (!self->folded &&
         (span->id != wanted->id ||
          (!wanted->off_stack && span->depth != wanted->depth))))
        return VST_OK;
    self->done = true;
    into->flags = span->flags;
    into->self_ns = span->end_ns - span->start_ns - span->children_ns;
    into->self_bytes = span->self_bytes;
    into->total_bytes = span->total_bytes;
    into->allocations = span->total_allocations;
    return vst__view_keep_args(into, span->args, span->args_len);
}

vst_status vst__view_replay(vst__pass *pass, size_t stretch,
                            const vst__view_wanted *wanted, int64_t from_ns,
                            int64_t to_ns, vst_view_span *span)
{
    vst_view *view = pass->view;
    bool folded = view->reading.imports != NULL && !wanted->off_stack;
    capture ctx = {wanted, false, folded, span};
    const vst_sink_inside inside = {.costs = vst__costs_known(&view->costs)};
    vst_sink sink = {.ctx = &ctx, .span = take_whole, .inside = &inside};
    vst__walk *walk = &pass->walk;
    int64_t children_ns = 0;
    vst_status status;
    bool ends = false;

    walk->always_matcher = true;
    walk->whole_sink = &sink;
    status = vst__pass_open(pass, stretch, from_ns, to_ns);
    while (status == VST_OK && !ends && !ctx.done) {
        status = vst__pass_next(pass, to_ns, &ends);
        if (status == VST_OK && folded)
            children_ns += vst__pass_time(pass, wanted->depth + 1,
                                          wanted->start_ns, wanted->end_ns);
    }
    walk->always_matcher = false;
    walk->whole_sink = NULL;
    if (folded && ctx.done)
        span->self_ns = wanted->end_ns - wanted->start_ns - children_ns;
    return status;
}
