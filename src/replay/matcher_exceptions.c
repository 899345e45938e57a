/* Who caught an exception. A mark says where it was raised; from there on the
 * exception is kept with the frame that it is in. A call that it leaves hands
 * it to the calling frame. A call that goes on and then ends normally has
 * caught the exception: its mark is delivered when that call ends, or when the
 * next exception reaches it. A frame has at most one exception. A call that a
 * `finally` or `with` makes on the way changes nothing, whatever is raised and
 * caught inside it. One thread at a time. */
#include <vestige/trace.h>

#include "base/grow.h"
#include "replay/matcher_stack.h"

enum { NO_CALL = VST_FRAME_BEGIN | VST_FRAME_OPERATOR | VST_FRAME_DEAD };

/* ---- text of an exception ------------------------------------------------ */

/* Writes a function as timelines show it. */
static void exception_put_function(vst__text *text,
                                   const vst_definition *function)
{
    if (function->kind == VST_DEF_PYTHON) {
        vst__text_escaped(text, function->file + function->file_skip,
                          function->file_len - function->file_skip);
        vst__text_format(text, "(%d): ", (int)function->line);
    }
    vst__text_escaped(text, function->name, function->name_len);
}

static void put_member(vst__text *text, const vst_trace *trace,
                       const char *member, vst_id id)
{
    const vst_definition *function = vst_trace_definition(trace, id);

    if (function == NULL)
        return;
    vst__text_put(text, member);
    exception_put_function(text, function);
    vst__text_put(text, "\"");
}

/* Returns false if memory ran out. */
static bool exception_describe(const vst_trace *trace, vst_instant *mark,
                               vst__text *text)
{
    const vst_definition *what = vst_trace_definition(trace, mark->id);

    text->count = 0;
    text->failed = false;
    vst__text_put(text, "\"raised at\": \"");
    if (what != NULL && what->file_len != 0) {
        vst__text_escaped(text, what->file + what->file_skip,
                          what->file_len - what->file_skip);
        vst__text_format(text, ":%d", (int)what->line);
    }
    vst__text_put(text, "\"");
    put_member(text, trace, ", \"raised in\": \"", mark->raised_in);
    if (mark->end == VST_EXCEPTION_NOT_CAUGHT)
        vst__text_put(text, ", \"caught in\": null");
    else
        put_member(text, trace, ", \"caught in\": \"", mark->caught_in);
    mark->args = text->bytes;
    mark->args_len = text->count;
    return !text->failed;
}

/* ---- the frame of an exception ------------------------------------------- */

/* Delivers an exception and frees its place. */
static vst_status exception_deliver(vst_matcher *matcher, uint32_t number,
                                    vst_exception_end end, vst_id caught_in,
                                    const vst_sink *sink)
{
    vst__exception *kept = &matcher->exceptions[number - 1];

    kept->mark.end = end;
    kept->mark.caught_in = caught_in;
    kept->next_free = matcher->free_exception;
    matcher->free_exception = number;
    if (sink->instant == NULL)
        return VST_OK;
    if (vst__sink_inside(sink)->trace != NULL &&
        !exception_describe(vst__sink_inside(sink)->trace, &kept->mark,
                            &matcher->text))
        return VST_E_NOMEM;
    return sink->instant(sink->ctx, &kept->mark);
}

/* Gives an exception to the top frame. An exception that was there before has
 * been caught. */
static vst_status exception_arrive(vst_matcher *matcher, uint32_t number,
                                   const vst_sink *sink)
{
    vst__frame *top;
    uint32_t before;

    if (matcher->count == 0)
        return exception_deliver(matcher, number, VST_EXCEPTION_NOT_CAUGHT, 0,
                                 sink);
    top = &matcher->frames[matcher->count - 1];
    before = top->exception;
    top->exception = number;
    return before != 0
               ? exception_deliver(matcher, before, VST_EXCEPTION_CAUGHT,
                                   top->flags & NO_CALL ? 0 : top->id, sink)
               : VST_OK;
}

static uint32_t new_exception(vst_matcher *matcher)
{
    uint32_t number = matcher->free_exception;

    if (number != 0) {
        matcher->free_exception = matcher->exceptions[number - 1].next_free;
        return number;
    }
    if (!VST_RESERVE(matcher->exceptions, matcher->exception_count + 1,
                     matcher->exception_capacity) ||
        matcher->exception_count >= UINT32_MAX - 1)
        return 0;
    return (uint32_t)++matcher->exception_count;
}

/* Returns the innermost frame that is a call. */
static vst_id exception_running(const vst_matcher *matcher)
{
    for (size_t i = matcher->count; i != 0; i--)
        if (!(matcher->frames[i - 1].flags & NO_CALL))
            return matcher->frames[i - 1].id;
    return 0;
}

vst_status vst__matcher_raise(vst_matcher *matcher, uint64_t word,
                              const vst_sink *sink)
{
    uint32_t number;

    /* without a call, the exception was raised by code around the program */
    if (sink->instant == NULL || matcher->count == 0)
        return VST_OK;
    number = new_exception(matcher);
    if (number == 0)
        return VST_E_NOMEM;
    matcher->exceptions[number - 1].mark = (vst_instant){
        .id = (vst_id)(word & VST_ID_MAX),
        .thread = matcher->thread,
        .time_ns = matcher->last_ns,
        .raised_in = exception_running(matcher),
    };
    return exception_arrive(matcher, number, sink);
}

/* An annotation or an operator that ends has not caught the exception. */
vst_status vst__matcher_pass_exception(vst_matcher *matcher,
                                       const vst__frame *left, uint32_t flags,
                                       const vst_sink *sink)
{
    uint32_t number = left->exception;

    if (flags & VST_SPAN_RAISED || left->flags & NO_CALL)
        return exception_arrive(matcher, number, sink);
    if (flags & VST_SPAN_CUT)
        return exception_deliver(matcher, number, VST_EXCEPTION_UNKNOWN, 0,
                                 sink);
    return exception_deliver(matcher, number, VST_EXCEPTION_CAUGHT, left->id,
                             sink);
}
