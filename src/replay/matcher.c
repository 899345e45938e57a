/* The matcher: interprets the events of a thread. It pairs enters with exits on
 * a stack (matcher_stack.c) and delivers spans as they end.
 *
 * Rules for the delivered spans: on one thread, time never goes back; spans
 * other than VST_SPAN_ASYNC nest, and each starts later than its parent and
 * ends no later; nothing recurses, so only memory bounds the depth. A span
 * opened by a STACK has VST_SPAN_OPEN_AT_START: it was running when recording
 * began, or went on after a gap, or a checkpoint listed it after a drop. A span
 * whose end is hidden by a gap ends where the gap began. One thread at a time
 * uses a matcher. */
#include <stdlib.h>
#include <string.h>

#include "base/effects.h"
#include "replay/matcher_stack.h"
#include "replay/sink.h"

const vst_sink_inside vst__sink_without = {0};

/* Returns NULL if the event is no escape. */
static const vst__escape_rule *rule_of(const vst_compressed_event *event)
{
    return vst_trace_key_kind(event->key) > VST_ESCAPE
               ? vst__escape_rule_of(vst_trace_key_escape_type(event->key))
               : NULL;
}

/* Returns whether an event may stand between a STACK and its STACK_MORE. */
static bool is_in_list(const vst_compressed_event *event)
{
    const vst__escape_rule *rule = rule_of(event);

    return rule != NULL &&
           vst__escape_is_in_list(rule, event->payload, event->payload_words);
}

static bool describes_top(const vst_compressed_event *event)
{
    const vst__escape_rule *rule = rule_of(event);

    return rule != NULL && rule->effect == VST_EFFECT_DESCRIBES;
}

vst_status vst_matcher_create(vst_matcher **matcher)
{
    *matcher = calloc(1, sizeof **matcher);
    if (*matcher == NULL)
        return VST_E_NOMEM;
    vst__matcher_reset(*matcher);
    return VST_OK;
}

void vst_matcher_destroy(vst_matcher *matcher)
{
    if (matcher == NULL)
        return;
    vst__matcher_reset(matcher);
    vst__map64_free(&matcher->open);
    vst__map64_free(&matcher->pairs);
    vst__map64_free(&matcher->stacks);
    vst__map64_free(&matcher->stack_tasks);
    vst__map64_free(&matcher->collectors);
    free(matcher->frames);
    free(matcher->slots);
    free(matcher->saved);
    free(matcher->args);
    free(matcher->exceptions);
    free(matcher->text.bytes);
    free(matcher);
}

void vst__matcher_count(const vst_matcher *matcher, vst_matcher_counts *counts)
{
    *counts = matcher->counts;
}

/* ---- calls --------------------------------------------------------------- */

/* Handles an exit that does not name the top span. */
static vst_status matcher_resynchronise(vst_matcher *matcher, vst_id id,
                                        uint32_t flags, const vst_sink *sink)
{
    size_t index = vst__matcher_find(matcher, id);
    vst_status status;

    if (index == matcher->count) {
        matcher->counts.unmatched_exits++;
        return VST_OK;
    }
    status = vst__matcher_cut(matcher, index + 1, matcher->last_ns, sink);
    if (status != VST_OK)
        return status;
    return vst__matcher_close(matcher, matcher->last_ns, flags, sink);
}

static vst_status matcher_leave(vst_matcher *matcher, vst_id id, uint32_t flags,
                                const vst_sink *sink)
{
    vst_status status = VST_OK;

    if (matcher->count != 0) {
        const vst__frame *top = &matcher->frames[matcher->count - 1];

        if (VST_LIKELY(top->id == id && !(top->flags & VST_FRAME_INNER))) {
            if (matcher->stack_task != 0)
                status = vst__matcher_exit_on_stack(matcher, flags, sink);
            if (status != VST_OK)
                return status;
            return vst__matcher_close(matcher, matcher->last_ns, flags, sink);
        }
    }
    return matcher_resynchronise(matcher, id, flags, sink);
}

/* ---- STACK --------------------------------------------------------------- */

/* Returns the end of the spans that a STACK does not list. */
static int64_t matcher_cut_time(const vst_matcher *matcher)
{
    return matcher->after_gap ? matcher->gap_ns : matcher->last_ns;
}

/* A STACK does not list spans that BEGIN opened: those directly above a
 * confirmed call are confirmed with it. */
static void matcher_skip_begun(vst_matcher *matcher)
{
    while (matcher->reconciled < matcher->count &&
           matcher->frames[matcher->reconciled].flags & VST_FRAME_INNER)
        matcher->reconciled++;
}

/* Closes the calls that the STACK did not confirm. */
static vst_status matcher_end_reconcile(vst_matcher *matcher,
                                        const vst_sink *sink)
{
    vst_status status = vst__matcher_cut(matcher, matcher->reconciled,
                                         matcher_cut_time(matcher), sink);

    matcher->reconciling = matcher->after_gap = false;
    return status;
}

static vst_status matcher_reconcile(vst_matcher *matcher, const uint64_t *ids,
                                    size_t count, int64_t previous_ns,
                                    const vst_sink *sink)
{
    int64_t now_ns = matcher->last_ns;
    vst_status status;

    if (!matcher->reconciling) /* continues a list whose beginning is missing */
        return VST_OK;
    matcher->last_ns = vst__matcher_make_room(now_ns, previous_ns, count);
    for (size_t i = 0; i < count; i++) {
        vst_id id = (vst_id)(ids[i] & VST_ID_MAX);

        if (id == 0)
            continue;
        if (matcher->matching) {
            matcher_skip_begun(matcher);
            if (matcher->reconciled < matcher->count &&
                matcher->frames[matcher->reconciled].id == id) {
                matcher->reconciled++;
                continue;
            }
            matcher->matching = false;
            status = vst__matcher_cut(matcher, matcher->reconciled,
                                      matcher_cut_time(matcher), sink);
            if (status != VST_OK)
                return status;
        }
        status = vst__matcher_push(matcher, id, VST_SPAN_OPEN_AT_START);
        if (status != VST_OK)
            return status;
    }
    matcher_skip_begun(matcher);
    if (!matcher->matching)
        matcher->reconciled = matcher->count;
    if (matcher->last_ns < now_ns)
        matcher->last_ns = now_ns;
    return VST_OK;
}

static vst_status start_reconcile(vst_matcher *matcher, const uint64_t *ids,
                                  size_t count, int64_t previous_ns,
                                  const vst_sink *sink)
{
    matcher->reconciling = true;
    matcher->matching = true;
    matcher->reconciled = 0;
    return matcher_reconcile(matcher, ids, count, previous_ns, sink);
}

/* ---- other escapes ------------------------------------------------------- */

/* Opens a span that was open before; a checkpoint lists it between the calls of
 * a STACK. */
static vst_status matcher_reopen(vst_matcher *matcher, const uint64_t *payload)
{
    bool whole = matcher->reconciling && matcher->reconciled == matcher->count;
    vst_status status = vst__matcher_begin(matcher, payload[0], payload[1]);

    if (whole)
        matcher->reconciled = matcher->count;
    return status;
}

static vst_status matcher_begin(vst_matcher *matcher, const uint64_t *payload,
                                uint32_t words, const vst_sink *sink)
{
    if ((payload[0] & VST_ID_MAX) == 0)
        return VST_OK;
    return vst__begin_before(payload, words) != 0
               ? matcher_reopen(matcher, payload)
               : vst__matcher_begin_now(matcher, payload[0], sink);
}

static vst_status matcher_instant(vst_matcher *matcher,
                                  const vst_compressed_event *event,
                                  const vst_sink *sink)
{
    uint64_t length = event->payload[0] >> 32;
    vst_instant point = {
        .id = (vst_id)(event->payload[0] & VST_ID_MAX),
        .thread = matcher->thread,
        .time_ns = matcher->last_ns,
    };

    if (length != 0 &&
        length <= (event->payload_words - 1) * sizeof(uint64_t)) {
        point.args = (const char *)(event->payload + 1);
        point.args_len = (size_t)length;
    }
    return sink->instant != NULL ? sink->instant(sink->ctx, &point) : VST_OK;
}

static vst_status matcher_counter(vst_matcher *matcher,
                                  const vst_compressed_event *event,
                                  const vst_sink *sink)
{
    vst_counter sample = {
        .id = (vst_id)(event->payload[0] & VST_ID_MAX),
        .thread = matcher->thread,
        .time_ns = matcher->last_ns,
    };

    if (event->payload_words < 2 || sink->counter == NULL)
        return VST_OK;
    memcpy(&sample.value, &event->payload[1], sizeof sample.value);
    return sink->counter(sink->ctx, &sample);
}

static vst_status matcher_arguments(vst_matcher *matcher,
                                    const vst_compressed_event *event)
{
    uint64_t length = event->payload[0];

    if (length > (event->payload_words - 1) * sizeof(uint64_t))
        return VST_OK;
    return vst__matcher_add_args(matcher, (const char *)(event->payload + 1),
                                 (size_t)length);
}

/* Handles an END, which may have arguments, or say that it ends inside
 * calls. */
static vst_status matcher_end(vst_matcher *matcher, const uint64_t *payload,
                              uint32_t words, const vst_sink *sink)
{
    vst_status status = VST_OK;

    if (words > 2 && payload[1] <= (words - 2) * sizeof(uint64_t))
        status = vst__matcher_describe_pair(matcher, payload[0],
                                            (const char *)(payload + 2),
                                            (size_t)payload[1]);
    if (status != VST_OK)
        return status;
    return vst__matcher_end(matcher, payload[0], words == 2 && payload[1] != 0,
                            sink);
}

/* Handles an escape that neither changes the stack nor describes the top
 * span. */
static vst_status matcher_handle_other(vst_matcher *matcher,
                                       const vst_time_converter *converter,
                                       const vst_compressed_event *event,
                                       int64_t previous_ns,
                                       const vst_sink *sink)
{
    const uint64_t *payload = event->payload;
    uint32_t words = event->payload_words;

    switch (vst_trace_key_escape_type(event->key)) {
    case VST_ESCAPE_INSTANT:
        return matcher_instant(matcher, event, sink);
    case VST_ESCAPE_EXCEPTION:
        return vst__matcher_raise(matcher, payload[0], sink);
    case VST_ESCAPE_LINES:
        return vst__matcher_lines(matcher, payload[0], sink);
    case VST_ESCAPE_DEVICE:
        if (vst__sink_inside(sink)->devices != NULL)
            vst__matcher_call(matcher, payload, words,
                              vst__sink_inside(sink)->devices);
        return VST_OK;
    case VST_ESCAPE_COUNTER:
        return matcher_counter(matcher, event, sink);
    case VST_ESCAPE_LOST:
        return vst__matcher_lost(matcher, payload[0], previous_ns, sink);
    case VST_ESCAPE_LEFT_OUT:
        vst__costs_take(&matcher->costs_so_far,
                        payload[0] >> VST_LEFT_OUT_TAKEN);
        return VST_OK;
    case VST_ESCAPE_WAIT:
        return vst__matcher_waited(matcher, converter, event, previous_ns,
                                   sink);
    default:
        return VST_OK;
    }
}

/* Carries out the effect of an escape (effects.h). Not inline, so that the code
 * for enters and exits keeps its registers. */
VST_NOINLINE static vst_status escape(vst_matcher *matcher,
                                      const vst_time_converter *converter,
                                      const vst_compressed_event *event,
                                      int64_t previous_ns, const vst_sink *sink)
{
    uint32_t type = vst_trace_key_escape_type(event->key);
    const vst__escape_rule *rule = vst__escape_rule_of(type);
    const uint64_t *payload = event->payload;
    uint32_t words = event->payload_words;

    if (type >= VST_ESCAPE_FIXED)
        return vst__matcher_memory(matcher, event, type, sink);
    if (vst__escape_is_void(rule, words))
        return VST_OK;
    if (rule->goes_on)
        matcher->after_gap = false;
    switch (type) {
    case VST_ESCAPE_BEGIN:
        return matcher_begin(matcher, payload, words, sink);
    case VST_ESCAPE_END:
        return matcher_end(matcher, payload, words, sink);
    case VST_ESCAPE_STACK:
        return start_reconcile(matcher, payload, words, previous_ns, sink);
    case VST_ESCAPE_STACK_MORE:
        return matcher_reconcile(matcher, payload, words, previous_ns, sink);
    case VST_ESCAPE_SWITCH:
        return vst__matcher_switch(matcher, payload[0], words > 1 && payload[1],
                                   previous_ns, sink);
    case VST_ESCAPE_GAP:
        return vst__matcher_gap(matcher, payload[0] != 0, sink);
    case VST_ESCAPE_DROPPED:
        return vst__matcher_dropped(matcher, converter, event, previous_ns,
                                    sink);
    case VST_ESCAPE_SETTLE:
        return vst__matcher_settle(matcher, words != 0, sink);
    case VST_ESCAPE_ARGS:
        return matcher_arguments(matcher, event);
    case VST_ESCAPE_OPERATOR:
        return vst__matcher_add_operator(matcher, payload, words, sink);
    case VST_ESCAPE_NODE:
        return vst__matcher_add_node(matcher, payload, words, sink);
    case VST_ESCAPE_TASK:
        return vst__matcher_task(matcher, payload, words, sink);
    case VST_ESCAPE_IMPORT:
        return vst__matcher_import(matcher, payload[0], sink);
    default:
        return matcher_handle_other(matcher, converter, event, previous_ns,
                                    sink);
    }
}

/* ---- feeding ------------------------------------------------------------- */

static vst_status matcher_feed(vst_matcher *matcher,
                               const vst_time_converter *converter,
                               const vst_compressed_event *events, size_t count,
                               const vst_sink *sink)
{
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < count; i++) {
        const vst_compressed_event *event = &events[i];
        int64_t now_ns = converter->to_ns(converter->ctx, event->ticks);
        int64_t previous_ns = matcher->last_ns;
        uint32_t kind = vst_trace_key_kind(event->key);

        if (matcher->begun_far && !describes_top(event))
            status = vst__matcher_end_far(matcher, sink);
        if (status == VST_OK && matcher->reconciling && !is_in_list(event))
            status = matcher_end_reconcile(matcher, sink);
        if (status != VST_OK)
            break;
        if (now_ns > matcher->last_ns)
            matcher->last_ns = now_ns;
        if (!VST_LIKELY(matcher->costs == NULL))
            vst__matcher_pass_time(matcher, previous_ns);
        switch (kind) {
        case VST_ENTER:
            matcher->after_gap = false;
            status =
                vst__matcher_push(matcher, vst_trace_key_id(event->key), 0);
            if (matcher->stack_task != 0 && status == VST_OK)
                status = vst__matcher_enter_on_stack(matcher, sink);
            break;
        case VST_EXIT:
        case VST_RAISE:
            matcher->after_gap = false;
            status =
                matcher_leave(matcher, vst_trace_key_id(event->key),
                              kind == VST_RAISE ? VST_SPAN_RAISED : 0, sink);
            break;
        default:
            status = escape(matcher, converter, event, previous_ns, sink);
            break;
        }
    }
    return status;
}

static vst_status matcher_finish(vst_matcher *matcher, int64_t end_ns,
                                 const vst_sink *sink)
{
    vst_status status = VST_OK;

    if (matcher->begun_far)
        status = vst__matcher_end_far(matcher, sink);
    if (status == VST_OK && matcher->reconciling)
        status = matcher_end_reconcile(matcher, sink);
    /* the hooks did not come back: open calls are known up to here */
    if (status == VST_OK && matcher->in_gap)
        status = vst__matcher_cut(matcher, 0, matcher->last_ns, sink);
    if (matcher->last_ns < end_ns)
        matcher->last_ns = end_ns;
    if (status == VST_OK && matcher->in_gap)
        status = vst__matcher_gap(matcher, true, sink);
    if (status == VST_OK)
        status = vst__matcher_close_all(matcher, matcher->last_ns,
                                        VST_SPAN_OPEN_AT_END, sink);
    return status;
}

vst_status vst_matcher_feed(vst_matcher *matcher,
                            const vst_time_converter *converter,
                            const vst_compressed_event *events, size_t count,
                            int64_t end_time_ns, const vst_sink *sink)
{
    const vst_sink_inside *inside = vst__sink_inside(sink);
    vst_status status;

    if (events == NULL && end_time_ns == VST_TIME_OPEN) {
        vst__matcher_reset(matcher);
        matcher->serial = 0;
        matcher->counts = (vst_matcher_counts){0, 0, 0};
        matcher->spans_before = 0;
        return VST_OK;
    }
    if (sink->recursion && !matcher->indexed)
        vst__matcher_build_index(matcher);
    matcher->places = inside->places;
    matcher->running = inside->running;
    matcher->imports = inside->imports;
    matcher->costs = inside->costs;
    matcher->measures = inside->running != NULL || inside->costs != NULL ||
                        inside->knows_gil || inside->knows_pauses ||
                        inside->by_running;
    matcher->wants_facts =
        inside->places != NULL || inside->imports != NULL || matcher->measures;
    if (count != 0)
        matcher->thread = events[0].where.resource;
    status = matcher_feed(matcher, converter, events, count, sink);
    if (status == VST_OK && sink->recursion && !matcher->indexed)
        status = VST_E_NOMEM;
    if (status == VST_OK && end_time_ns != VST_TIME_OPEN)
        status = matcher_finish(matcher, end_time_ns, sink);
    /* after an error, the caller does not feed the rest of this thread */
    if (status != VST_OK || end_time_ns != VST_TIME_OPEN)
        vst__matcher_reset(matcher);
    return status;
}
