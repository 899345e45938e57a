/* The matcher's stack: opens and closes spans, finds the call that an exit
 * means, keeps arguments until their span ends. It does not know events;
 * matcher.c does. One thread at a time. */
#include "replay/matcher_stack.h"

#include <stdlib.h>
#include <string.h>

#include <vestige/graph.h>

#include "base/grow.h"

enum {
    /* If an exit was searched in more frames than this without success, open
     * ids are counted from then on. */
    WALK_MAX = 256,
    ARGS_KEPT = 64 * 1024
};

/* ---- arguments ----------------------------------------------------------- */

static vst__args *new_args(vst_matcher *matcher, uint32_t *number)
{
    vst__args *args;

    if (matcher->free_args != 0) {
        *number = matcher->free_args;
        args = &matcher->args[*number - 1];
        matcher->free_args = args->next_free;
        return args;
    }
    if (matcher->args_count >= UINT32_MAX - 1)
        return NULL;
    args = vst__grow(matcher->args, &matcher->args_capacity,
                     matcher->args_count + 1, sizeof *args);
    if (args == NULL)
        return NULL;
    matcher->args = args;
    args += matcher->args_count++;
    memset(args, 0, sizeof *args);
    *number = (uint32_t)matcher->args_count;
    return args;
}

static void free_args(vst_matcher *matcher, uint32_t number)
{
    vst__args *args = &matcher->args[number - 1];

    args->count = 0;
    args->has_operator = false;
    if (args->capacity > ARGS_KEPT) {
        free(args->bytes);
        args->bytes = NULL;
        args->capacity = 0;
    }
    args->next_free = matcher->free_args;
    matcher->free_args = number;
}

vst_status vst__matcher_add_args(vst_matcher *matcher, const char *bytes,
                                 size_t count)
{
    if (matcher->count == 0)
        return VST_OK;
    return vst__matcher_describe(matcher, &matcher->frames[matcher->count - 1],
                                 bytes, count);
}

vst_status vst__matcher_describe(vst_matcher *matcher, vst__frame *frame,
                                 const char *bytes, size_t count)
{
    vst__args *args;

    if (count == 0)
        return VST_OK;
    args = frame->args != 0 ? &matcher->args[frame->args - 1]
                            : new_args(matcher, &frame->args);
    if (args == NULL)
        return VST_E_NOMEM;
    if (!VST_RESERVE(args->bytes, args->count + count + 2, args->capacity))
        return VST_E_NOMEM;
    if (args->count != 0) {
        memcpy(args->bytes + args->count, ", ", 2);
        args->count += 2;
    }
    memcpy(args->bytes + args->count, bytes, count);
    args->count += count;
    return VST_OK;
}

/* The autograd engine's span around a backward operator gets the operator's
 * numbers too. */
static vst_status stack_describe_engine(vst_matcher *matcher)
{
    const vst__frame *engine;
    vst_status status;

    if (matcher->count < 2)
        return VST_OK;
    engine = &matcher->frames[matcher->count - 2];
    if ((engine->flags & VST_FRAME_OWN) != VST_FRAME_OPERATOR ||
        (engine->args != 0 && matcher->args[engine->args - 1].count != 0))
        return VST_OK;
    matcher->count--;
    status = vst__matcher_add_args(matcher, matcher->text.bytes + 2,
                                   matcher->text.head - 2);
    matcher->count++;
    return status;
}

/* Returns the numbers of the top span; makes them if there are none. */
static vst_operator *find_operator(vst_matcher *matcher)
{
    vst__frame *top = &matcher->frames[matcher->count - 1];
    vst__args *args = top->args != 0 ? &matcher->args[top->args - 1]
                                     : new_args(matcher, &top->args);

    if (args == NULL)
        return NULL;
    if (!args->has_operator)
        args->op = (vst_operator){.sequence = -1, .scope = VST_SCOPE_USER};
    args->has_operator = true;
    return &args->op;
}

vst_status vst__matcher_add_node(vst_matcher *matcher, const uint64_t *payload,
                                 uint32_t words, const vst_sink *sink)
{
    const vst__frame *top;
    vst_operator *op = NULL;

    if (matcher->count == 0)
        return VST_OK;
    /* the operator's outputs may come after the span has ended, in the function
     * that ends it */
    if (!(vst_node_flags(payload[0]) & VST_NODE_OUTPUTS)) {
        op = find_operator(matcher);
        if (op == NULL)
            return VST_E_NOMEM;
        op->record = vst_node_record(payload[0]);
    }
    if (sink->node == NULL)
        return VST_OK;
    top = &matcher->frames[matcher->count - 1];
    return sink->node(sink->ctx, &(vst_node){
                                     .id = top->id,
                                     .thread = matcher->thread,
                                     .serial = top->serial,
                                     .time_ns = matcher->last_ns,
                                     .op = op,
                                     .payload = payload,
                                     .words = words,
                                 });
}

vst_status vst__matcher_add_operator(vst_matcher *matcher,
                                     const uint64_t *payload, uint32_t words,
                                     const vst_sink *sink)
{
    vst_operator *numbers;
    vst__frame *top;
    vst_operator op;
    vst_status status;

    if (matcher->count == 0)
        return VST_OK;
    top = &matcher->frames[matcher->count - 1];
    top->flags |= VST_FRAME_OPERATOR;
    if (words == 0)
        return VST_OK;
    if (sink->no_args) {
        numbers = find_operator(matcher);
        if (numbers == NULL)
            return VST_E_NOMEM;
        vst__operator_read_head(payload, words, numbers);
        return VST_OK;
    }
    if (!vst__operator_read(payload, words,
                            (vst__operator_wish){sink->tensors, sink->keywords},
                            &op, &matcher->text))
        return VST_E_NOMEM;
    /* without the leading ", " */
    status = vst__matcher_add_args(
        matcher, matcher->text.count ? matcher->text.bytes + 2 : "",
        matcher->text.count ? matcher->text.count - 2 : 0);
    if (status == VST_OK) {
        numbers = find_operator(matcher);
        if (numbers == NULL)
            return VST_E_NOMEM;
        *numbers = op;
    }
    if (status == VST_OK && op.scope == VST_SCOPE_BACKWARD && op.sequence >= 0)
        status = stack_describe_engine(matcher);
    return status;
}

/* ---- how often an id is open --------------------------------------------- */

/* Counts one more; returns true if the id was open already. */
static bool count_open(vst_matcher *matcher, vst_id id)
{
    uint64_t *times = vst__map64_put(&matcher->open, id);

    if (times == NULL) {
        /* no memory for the index: search without it */
        matcher->indexed = false;
        return false;
    }
    return ++*times > 1;
}

static void stack_uncount(vst_matcher *matcher, vst_id id)
{
    uint64_t *times = vst__map64_find(&matcher->open, id);

    if (times != NULL)
        --*times;
}

void vst__matcher_build_index(vst_matcher *matcher)
{
    vst__map64_clear(&matcher->open);
    matcher->indexed = true;
    for (size_t i = 0; i < matcher->count && matcher->indexed; i++)
        if (!(matcher->frames[i].flags & VST_FRAME_INNER))
            count_open(matcher, matcher->frames[i].id);
}

/* ---- finding the call of an exit ----------------------------------------- */

size_t vst__matcher_find(vst_matcher *matcher, vst_id id)
{
    const uint64_t *times =
        matcher->indexed ? vst__map64_find(&matcher->open, id) : NULL;

    if (matcher->indexed && (times == NULL || *times == 0))
        return matcher->count;
    for (size_t i = matcher->count; i-- != 0;)
        if (matcher->frames[i].id == id &&
            !(matcher->frames[i].flags & VST_FRAME_INNER))
            return i;
    if (matcher->count > WALK_MAX)
        vst__matcher_build_index(matcher);
    return matcher->count;
}

/* ---- the stack ----------------------------------------------------------- */

VST_NOINLINE static bool make_room(vst_matcher *matcher)
{
    return VST_RESERVE(matcher->frames, matcher->count + 1, matcher->capacity);
}

vst_status vst__matcher_push(vst_matcher *matcher, vst_id id, uint32_t flags)
{
    vst__frame *frame;

    if (matcher->count == matcher->capacity && !make_room(matcher))
        return VST_E_NOMEM;
    frame = &matcher->frames[matcher->count];
    frame->caller = 0;
    frame->task = 0;
    if (matcher->count != 0) {
        const vst__frame *parent = frame - 1;
        frame->task = parent->task;
        /* Viewers sort spans by their start: a child that starts in the same
         * nanosecond as its parent might be taken for the parent. */
        if (matcher->last_ns <= parent->start_ns)
            matcher->last_ns = parent->start_ns + 1;
        frame->caller = parent->flags & (VST_FRAME_BEGIN | VST_FRAME_OPERATOR)
                            ? parent->caller
                            : parent->serial;
    }
    matcher->count++;
    frame->start_ns = matcher->last_ns;
    frame->children_ns = 0;
    frame->ran_ns = frame->lost_ns = frame->waited_ns = VST_RUNNING_UNKNOWN;
    frame->self_bytes = frame->self_allocations = 0;
    frame->inner_bytes = frame->inner_allocations = 0;
    frame->self_framework = frame->inner_framework = 0;
    frame->serial = ++matcher->serial;
    frame->id = id;
    frame->flags = flags;
    frame->slot = frame->args = frame->exception = frame->place = 0;
    frame->called_at = matcher->next_called_at;
    if (!VST_LIKELY(matcher->next_called_at == 0)) {
        frame->flags |= matcher->next_flags;
        matcher->next_called_at = 0;
    }
    frame->import = VST_IMPORT_NONE;
    frame->module = 0;
    if (matcher->indexed && !(flags & VST_FRAME_BEGIN) &&
        count_open(matcher, id))
        frame->flags |= VST_SPAN_RECURSIVE;
    return VST_LIKELY(!matcher->wants_facts) ? VST_OK
                                             : vst__matcher_note_facts(matcher);
}

vst_status vst__matcher_deliver(vst_matcher *matcher, const vst__frame *frame,
                                vst_span *span, const vst_sink *sink)
{
    vst_status status = VST_OK;

    span->id = frame->id;
    span->thread = matcher->thread;
    span->start_ns = frame->start_ns;
    span->serial = frame->serial;
    span->place = frame->place;
    span->import = frame->import;
    span->module = frame->module;
    span->task = frame->task;
    span->called_at = frame->called_at;
    span->called_through = frame->flags & VST_FRAME_THROUGH;
    span->children_ns = frame->children_ns;
    span->self_bytes = frame->self_bytes;
    span->total_bytes = frame->self_bytes + frame->inner_bytes;
    span->self_framework_bytes = frame->self_framework;
    span->total_framework_bytes =
        frame->self_framework + frame->inner_framework;
    span->self_allocations = frame->self_allocations;
    span->total_allocations =
        frame->self_allocations + frame->inner_allocations;
    span->flags |= frame->flags & ~(uint32_t)VST_FRAME_OWN;
    span->args = NULL;
    span->args_len = 0;
    span->op = NULL;
    if (frame->args != 0) {
        const vst__args *args = &matcher->args[frame->args - 1];
        span->args = args->bytes;
        span->args_len = args->count;
        span->op = args->has_operator ? &args->op : NULL;
    }
    matcher->counts.spans++;
    matcher->counts.cut_spans += (span->flags & VST_SPAN_CUT) != 0;
    if (sink->span != NULL)
        status = vst__sink_span(sink, span);
    if (frame->args != 0)
        free_args(matcher, frame->args);
    return status;
}

/* Memory allocated in a frame also counts for the frame below. */
static void add_allocated(vst__frame *below, const vst__frame *top)
{
    below->inner_bytes += top->self_bytes + top->inner_bytes;
    below->inner_allocations += top->self_allocations + top->inner_allocations;
    below->inner_framework += top->self_framework + top->inner_framework;
}

/* Removes the top frame; its time counts as children's time of the frame
 * below. */
static vst_status stack_drop(vst_matcher *matcher, const vst_sink *sink)
{
    const vst__frame *top = &matcher->frames[--matcher->count];

    if (matcher->count != 0) {
        vst__frame *below = &matcher->frames[matcher->count - 1];
        below->children_ns += top->children_ns;
        add_allocated(below, top);
    }
    if (top->exception != 0) {
        vst_status status = vst__matcher_pass_exception(matcher, top, 0, sink);
        if (status != VST_OK)
            return status;
    }
    return sink->leave != NULL
               ? sink->leave(sink->ctx, (uint32_t)matcher->count)
               : VST_OK;
}

vst_status vst__matcher_close(vst_matcher *matcher, int64_t end_ns,
                              uint32_t flags, const vst_sink *sink)
{
    vst__frame *top = &matcher->frames[matcher->count - 1];
    vst_span span; /* the other fields are copied from the frame */
    vst_status status = VST_OK;

    matcher->count--;
    span.end_ns = span.left_ns = end_ns;
    span.depth = (uint32_t)matcher->count;
    span.parent = 0;
    span.caller = top->caller;
    span.flags = flags;
    span.running_ns = span.preempted_ns = VST_RUNNING_UNKNOWN;
    span.gil_ns = span.paused_ns = VST_RUNNING_UNKNOWN;
    span.compensated_ns = span.compensated_error_ns = VST_RUNNING_UNKNOWN;
    if (matcher->indexed && !(top->flags & VST_FRAME_BEGIN))
        stack_uncount(matcher, top->id);
    if (!VST_LIKELY(!matcher->wants_facts)) {
        status = vst__matcher_end_facts(matcher, top, &span, sink);
        if (status != VST_OK)
            return status;
    }
    if (matcher->count != 0) {
        vst__frame *parent = top - 1;
        parent->children_ns += span.end_ns - top->start_ns;
        add_allocated(parent, top);
        span.parent = parent->serial;
    }
    status = vst__matcher_deliver(matcher, top, &span, sink);
    if (!VST_LIKELY(top->exception == 0) && status == VST_OK)
        status = vst__matcher_pass_exception(matcher, top, flags, sink);
    while (status == VST_OK && matcher->count != 0 &&
           matcher->frames[matcher->count - 1].flags & VST_FRAME_DEAD)
        status = stack_drop(matcher, sink);
    return status;
}

vst_status vst__matcher_cut(vst_matcher *matcher, size_t count, int64_t end_ns,
                            const vst_sink *sink)
{
    vst_status status = VST_OK;

    while (status == VST_OK && matcher->count > count) {
        const vst__frame *top = &matcher->frames[matcher->count - 1];

        if (!(top->flags & VST_FRAME_INNER)) {
            status = vst__matcher_close(matcher, end_ns, VST_SPAN_CUT, sink);
            continue;
        }
        if (!(top->flags & VST_FRAME_DEAD))
            status = vst__matcher_detach(matcher, matcher->count - 1, sink);
        if (status == VST_OK)
            status = stack_drop(matcher, sink);
    }
    return status;
}

void vst__matcher_forget(vst_matcher *matcher)
{
    matcher->next_called_at = 0;
    while (matcher->count != 0) {
        const vst__frame *top = &matcher->frames[--matcher->count];

        if (matcher->indexed && !(top->flags & VST_FRAME_BEGIN))
            stack_uncount(matcher, top->id);
        if (top->args != 0)
            free_args(matcher, top->args);
    }
}

/* ---- creating and resetting ---------------------------------------------- */

void vst__matcher_reset(vst_matcher *matcher)
{
    for (size_t i = 0; i < matcher->args_count; i++)
        free(matcher->args[i].bytes);
    for (size_t i = 0; i < matcher->saved_count; i++)
        free(matcher->saved[i].frames);
    matcher->args_count = matcher->saved_count = matcher->slot_count = 0;
    matcher->exception_count = matcher->free_exception = 0;
    matcher->free_args = matcher->free_saved = matcher->free_slot = 0;
    matcher->newest = 0;
    matcher->begun_far = false;
    matcher->next_called_at = 0;
    vst__map64_clear(&matcher->open);
    vst__map64_clear(&matcher->pairs);
    vst__map64_clear(&matcher->stacks);
    vst__map64_clear(&matcher->stack_tasks);
    vst__map64_clear(&matcher->collectors);
    matcher->count = matcher->stack_task = 0;
    matcher->stack = 0;
    matcher->switched_by.is_known = false;
    matcher->last_ns = INT64_MIN;
    matcher->waited_ns = 0;
    matcher->costs_so_far = (vst__cost_clock){0, 0};
    matcher->costs_lost_ns = INT64_MIN;
    matcher->costs_ran_ns = 0;
    matcher->waited_until_ns = INT64_MIN;
    matcher->wait_event_ns = INT64_MAX;
    matcher->in_gap = matcher->after_gap = false;
    matcher->reconciling = matcher->indexed = false;
    matcher->spans_before = matcher->counts.spans;
}
