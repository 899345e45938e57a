/* The fast side of a walk: enters and exits that nest. Follows the rules of
 * replay's matcher (matcher.c), on frames of 24 bytes, and stops before the
 * first event of any other kind; then walk_matcher.c continues with the matcher
 * itself. */
#include "view/walk_match.h"

#include <string.h>

#include <vestige/memory.h>

#include "base/effects.h"
#include "base/grow.h"

__extension__ typedef unsigned __int128 u128;

enum {
    PORTION = 4,           /* events that the matcher gets per call */
    SPANS_ENOUGH = 1 << 16 /* spans that end a batch */
};

#define FRAME_OWN ((uint32_t)VST_FRAME_OWN)

/* The current piece of the clock's map, prepared for one multiplication; gives
 * the same numbers as the map. */
typedef struct ruler {
    vst_ticks start;
    uint64_t limit; /* ticks that it is valid for */
    uint64_t mult;
    int64_t base_ns;
    uint32_t left;
} ruler;

static ruler make_ruler(const vst__clockmap *clock)
{
    const vst__clock_piece *piece = &clock->current;
    /* Stay below 2^56 ns; the map handles larger times. */
    u128 limit = ((u128)1 << (56 + piece->shift)) / (piece->mult | 1);
    ruler made = {piece->start, piece->span, piece->mult, piece->base_ns,
                  64 - piece->shift};

    if (limit < made.limit)
        made.limit = (uint64_t)limit;
    if (made.limit > (uint64_t)1 << piece->shift)
        made.limit = (uint64_t)1 << piece->shift;
    if (piece->shift == 0 || piece->shift > 60)
        made.limit = 0;
    return made;
}

static VST_COLD int64_t match_measure_next_piece(vst__clockmap *clock,
                                                 vst_ticks ticks, ruler *made)
{
    int64_t time_ns = vst__clockmap_to_ns(clock, ticks);

    *made = make_ruler(clock);
    return time_ns;
}

static inline int64_t match_measure(vst__clockmap *clock, ruler *now,
                                    vst_ticks ticks)
{
    uint64_t delta = ticks - now->start; /* huge if ticks lie before start */

    if (VST_LIKELY(delta < now->limit))
        return now->base_ns +
               (int64_t)((u128)(delta << now->left) * now->mult >> 64);
    return match_measure_next_piece(clock, ticks, now);
}

static int64_t to_ns(vst__clockmap *clock, vst_ticks ticks)
{
    return vst__clockmap_to_ns(clock, ticks);
}

/* ---- escapes that leave the stack alone ---------------------------------- */

static vst_status match_lose(const vst__walk *walk,
                             const vst_compressed_event *event,
                             int64_t previous_ns)
{
    vst_loss loss = {
        .kind = VST_LOSS_RECORDS,
        .thread = walk->stretch->thread,
        .start_ns = previous_ns == INT64_MIN ? walk->last_ns : previous_ns,
        .end_ns = walk->last_ns,
        .records = event->payload[0] != 0 ? event->payload[0] : 1,
    };

    return walk->event_sink != NULL && walk->event_sink->loss != NULL
               ? walk->event_sink->loss(walk->event_sink->ctx, &loss)
               : VST_OK;
}

static vst_status match_counter(const vst__walk *walk,
                                const vst_compressed_event *event)
{
    vst_counter sample = {
        .id = (vst_id)(event->payload[0] & VST_ID_MAX),
        .thread = walk->stretch->thread,
        .time_ns = walk->last_ns,
    };

    if (walk->event_sink == NULL || walk->event_sink->counter == NULL)
        return VST_OK;
    memcpy(&sample.value, &event->payload[1], sizeof sample.value);
    return walk->event_sink->counter(walk->event_sink->ctx, &sample);
}

/* Counts an allocation as the matcher does for the innermost span. */
static void match_allocated(vst__walk *walk, const vst_compressed_event *event,
                            uint32_t type)
{
    vst_id head = vst_trace_key_id(event->key);
    uint64_t size = vst_head_size(head);

    if (type == VST_ESCAPE_ALLOC_LARGE)
        size = event->payload_words > 1 ? event->payload[1] : 0;
    if ((type == VST_ESCAPE_ALLOC_LARGE && vst_range_of_head(head) != 0) ||
        vst_head_kind(head) == VST_MEMORY_FRAMEWORK ||
        walk->last_ns > walk->count_until_ns)
        return;
    walk->bytes += size;
    walk->allocations++;
    if (walk->tree != NULL)
        vst__flame_allocated(walk->tree, walk->last_ns, size);
}

/* ---- BEGIN and END that nest --------------------------------------------- */

static vst_status match_push(vst__walk *walk, vst_id id, uint64_t pair,
                             uint32_t flags)
{
    vst__open *open;

    if (!VST_RESERVE(walk->open, walk->open_count + 1, walk->open_capacity))
        return VST_E_NOMEM;
    open = &walk->open[walk->open_count];
    if (walk->open_count != 0 && walk->last_ns <= open[-1].start_ns)
        walk->last_ns = open[-1].start_ns + 1;
    *open = (vst__open){walk->last_ns, pair, id, flags};
    walk->open_count++;
    return walk->tree != NULL ? vst__flame_push(walk->tree, id, walk->last_ns)
                              : VST_OK;
}

static void match_pop(vst__walk *walk, bool raised)
{
    const vst__open *top = &walk->open[--walk->open_count];

    walk->spans[walk->span_count++] = (vst__walk_span){
        .start_ns = top->start_ns,
        .end_ns = walk->last_ns,
        .id = top->id,
        .flags = top->flags & ~FRAME_OWN,
        .depth = (uint32_t)walk->open_count,
    };
    walk->delivered = true;
    if (walk->tree != NULL)
        vst__flame_pop(walk->tree, walk->last_ns, raised);
}

static bool match_is_complex_begin(const vst__walk *walk,
                                   const vst_compressed_event *event)
{
    int64_t end_ns;

    return event->payload_words > 1 ||
           (walk->stretch->far_ends != NULL &&
            vst__far_ends_find(walk->stretch->far_ends, event->payload[0],
                               &end_ns));
}

static vst_status match_begin(vst__walk *walk,
                              const vst_compressed_event *event, bool *complex)
{
    vst_id id = (vst_id)(event->payload[0] & VST_ID_MAX);

    if (id == 0)
        return VST_OK;
    *complex = match_is_complex_begin(walk, event);
    if (*complex)
        return VST_OK;
    walk->begun++;
    return match_push(walk, id, event->payload[0], VST_FRAME_BEGIN);
}

static void match_end(vst__walk *walk, uint64_t pair, bool *complex)
{
    const vst__open *top = walk->open + walk->open_count - 1;

    if (walk->begun == 0)
        return;
    *complex = !(top->flags & VST_FRAME_BEGIN) || top->pair != pair;
    if (*complex)
        return;
    walk->begun--;
    match_pop(walk, false);
}

/* Handles an event that does not change the stack, or describes the innermost
 * span. */
static vst_status match_quiet(vst__walk *walk,
                              const vst_compressed_event *event, uint32_t type,
                              int64_t previous_ns)
{
    switch (type) {
    case VST_ESCAPE_ALLOC:
    case VST_ESCAPE_ALLOC_LARGE:
        match_allocated(walk, event, type);
        return VST_OK;
    case VST_ESCAPE_LOST:
        return match_lose(walk, event, previous_ns);
    case VST_ESCAPE_COUNTER:
        return event->payload_words > 1 ? match_counter(walk, event) : VST_OK;
    case VST_ESCAPE_OPERATOR:
        if (walk->open_count != 0)
            walk->open[walk->open_count - 1].flags |= VST_FRAME_OPERATOR;
        return VST_OK;
    case VST_ESCAPE_TASK:
        walk->has_tasks = true;
        return VST_OK;
    case VST_ESCAPE_IMPORT:
        return vst__walk_named(walk, event->payload[0],
                               (uint32_t)walk->open_count, walk->last_ns);
    default:
        return VST_OK;
    }
}

/* Handles an escape by the rule of its type in effects.h. Sets *complex, and
 * does nothing, if only the matcher can handle it. */
static vst_status match_escape(vst__walk *walk,
                               const vst_compressed_event *event,
                               int64_t previous_ns, bool *complex)
{
    uint32_t type = vst_trace_key_escape_type(event->key);
    const vst__escape_rule *rule = vst__escape_rule_of(type);

    if (vst__escape_is_void(rule, event->payload_words))
        return VST_OK;
    switch ((vst__effect)rule->effect) {
    case VST_EFFECT_NONE:
    case VST_EFFECT_DESCRIBES:
        return match_quiet(walk, event, type, previous_ns);
    case VST_EFFECT_BEGINS:
        return match_begin(walk, event, complex);
    case VST_EFFECT_ENDS:
        match_end(walk, event->payload[0], complex);
        return VST_OK;
    case VST_EFFECT_SETTLES: /* there are no spans off the stack here */
        *complex = event->payload_words != 0;
        return VST_OK;
    case VST_EFFECT_LISTS:
    case VST_EFFECT_LISTS_MORE:
    case VST_EFFECT_SWITCHES:
    case VST_EFFECT_PAUSES:
    case VST_EFFECT_FORGETS:
        break;
    }
    *complex = true;
    return VST_OK;
}

/* ---- enters and exits ---------------------------------------------------- */

/* Makes room for all spans that a batch can open and close, so that the loops
 * need no checks. */
static vst_status match_make_room(vst__walk *walk, size_t count)
{
    vst__open *open = vst__grow(walk->open, &walk->open_capacity,
                                walk->open_count + count + 1, sizeof *open);
    vst__walk_span *spans =
        vst__grow(walk->spans, &walk->span_capacity,
                  walk->span_count + count + 1, sizeof *spans);

    if (open != NULL)
        walk->open = open;
    if (spans != NULL)
        walk->spans = spans;
    return open != NULL && spans != NULL ? VST_OK : VST_E_NOMEM;
}

static bool match_ends(const vst__open *top, vst_id id)
{
    return top->id == id && !(top->flags & VST_FRAME_BEGIN);
}

static vst__walk_span match_ended(const vst__open *top, vst_id id,
                                  int64_t end_ns, uint32_t kind, size_t depth)
{
    uint32_t raised = kind == VST_RAISE ? VST_SPAN_RAISED : 0u;

    return (vst__walk_span){.start_ns = top->start_ns,
                            .end_ns = end_ns,
                            .id = id,
                            .flags = (top->flags & ~FRAME_OWN) | raised,
                            .depth = (uint32_t)depth};
}

/* Matches events up to the first that only the matcher can handle; sets
 * *matched to their number. The processor cannot predict whether a call begins
 * or ends, so both cases are computed and one is used. */
static vst_status match_plain(vst__walk *walk,
                              const vst_compressed_event *events, size_t count,
                              size_t *matched)
{
    vst__open *open = walk->open;
    vst__walk_span *span = walk->spans + walk->span_count;
    size_t depth = walk->open_count;
    int64_t last_ns = walk->last_ns;
    ruler clock = make_ruler(&walk->clock);
    vst_status status = VST_OK;
    bool complex = false;
    size_t i;

    for (i = 0; i < count; i++) {
        const vst_compressed_event *event = &events[i];
        int64_t now_ns = match_measure(&walk->clock, &clock, event->ticks);
        uint32_t kind = vst_trace_key_kind(event->key);
        vst_id id = vst_trace_key_id(event->key);
        int64_t previous_ns = last_ns;

        last_ns = now_ns > last_ns ? now_ns : last_ns;
        if (VST_LIKELY(kind <= VST_RAISE && depth != 0)) {
            const vst__open top = open[depth - 1];
            int64_t least_ns = kind == VST_ENTER ? top.start_ns + 1 : last_ns;

            if (kind != VST_ENTER && !match_ends(&top, id))
                break;
            last_ns = least_ns > last_ns ? least_ns : last_ns;
            open[depth] = (vst__open){last_ns, 0, id, 0};
            *span = match_ended(&top, id, last_ns, kind, depth - 1);
            span += kind != VST_ENTER;
            depth += kind == VST_ENTER ? 1 : (size_t)-1;
            continue;
        }
        if (kind == VST_ENTER) {
            open[depth++] = (vst__open){last_ns, 0, id, 0};
            continue;
        }
        if (kind <= VST_RAISE)
            break;
        walk->open_count = depth;
        walk->last_ns = last_ns;
        walk->span_count = (size_t)(span - walk->spans);
        status = match_escape(walk, event, previous_ns, &complex);
        depth = walk->open_count;
        last_ns = walk->last_ns;
        span = walk->spans + walk->span_count;
        open = walk->open;
        if (complex || status != VST_OK) {
            last_ns = previous_ns; /* this event is not handled yet */
            break;
        }
    }
    walk->open_count = depth;
    walk->span_count = (size_t)(span - walk->spans);
    walk->last_ns = last_ns;
    walk->delivered |= walk->span_count != 0;
    *matched = i;
    return status;
}

/* Does what match_plain does, and also fills a tree of calls. */
static vst_status match_tree(vst__walk *walk,
                             const vst_compressed_event *events, size_t count,
                             size_t *matched)
{
    vst_status status = VST_OK;
    size_t i;

    for (i = 0; status == VST_OK && i < count; i++) {
        const vst_compressed_event *event = &events[i];
        int64_t now_ns = to_ns(&walk->clock, event->ticks);
        int64_t previous_ns = walk->last_ns;
        uint32_t kind = vst_trace_key_kind(event->key);
        vst_id id = vst_trace_key_id(event->key);
        bool complex = false;

        if (now_ns > walk->last_ns)
            walk->last_ns = now_ns;
        if (kind == VST_ENTER) {
            status = match_push(walk, id, 0, 0);
        } else if (kind <= VST_RAISE) {
            const vst__open *top = walk->open + walk->open_count - 1;
            complex = walk->open_count == 0 || top->id != id ||
                      top->flags & VST_FRAME_BEGIN;
            if (!complex)
                match_pop(walk, kind == VST_RAISE);
        } else {
            status = match_escape(walk, event, previous_ns, &complex);
        }
        if (complex) {
            walk->last_ns = previous_ns;
            break;
        }
    }
    *matched = i;
    return status;
}

/* Counts allocations, because the matcher's own sums are not accessible. */
static void match_count_allocated(vst__walk *walk,
                                  const vst_compressed_event *events,
                                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t type = vst_trace_key_escape_type(events[i].key);

        if (type == VST_ESCAPE_ALLOC || type == VST_ESCAPE_ALLOC_LARGE) {
            walk->last_ns = to_ns(&walk->clock, events[i].ticks);
            match_allocated(walk, &events[i], type);
        }
    }
}

/* Lets the matcher match, a few events at a time: two alternating stacks
 * deliver all of their open calls at each switch, and a batch may hold
 * thousands of switches. */
static vst_status match_by_matcher(vst__walk *walk,
                                   const vst_compressed_event *events,
                                   size_t count, size_t *matched)
{
    size_t most = walk->tree != NULL ? 1 : PORTION;
    vst_status status = VST_OK;

    while (status == VST_OK && *matched < count &&
           walk->span_count < SPANS_ENOUGH) {
        const vst_compressed_event *next = events + *matched;
        size_t portion = count - *matched < most ? count - *matched : most;

        if (walk->tree == NULL)
            match_count_allocated(walk, next, portion);
        status = vst__walk_feed(walk, next, portion, VST_TIME_OPEN);
        if (walk->tree != NULL)
            match_count_allocated(walk, next, portion);
        *matched += portion;
    }
    return status;
}

vst_status vst__walk_match(vst__walk *walk, const vst_compressed_event *events,
                           size_t count, size_t *matched)
{
    vst_status status = VST_OK;

    *matched = count;
    if (walk->direct != NULL)
        return vst_matcher_feed(walk->matcher, &walk->converter, events, count,
                                VST_TIME_OPEN, walk->direct);
    *matched = 0;
    if (!walk->plain && !walk->always_matcher)
        status = vst__walk_from_matcher(walk);
    if (status == VST_OK)
        status = match_make_room(walk, count);
    if (status == VST_OK && walk->plain)
        status = walk->tree != NULL ? match_tree(walk, events, count, matched)
                                    : match_plain(walk, events, count, matched);
    if (status != VST_OK || *matched == count)
        return status;
    if (walk->plain)
        status = vst__walk_to_matcher(walk);
    return status == VST_OK ? match_by_matcher(walk, events, count, matched)
                            : status;
}

vst_status vst__walk_finish(vst__walk *walk)
{
    int64_t end_ns =
        vst__clockmap_to_ns(&walk->clock, walk->stretch->window->last);
    vst_status status = VST_OK;

    if (walk->plain)
        status = vst__walk_to_matcher(walk);
    return status == VST_OK ? vst__walk_feed(walk, NULL, 0, end_ns) : status;
}
