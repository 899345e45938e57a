/* The matcher's side of a walk: the open frames go to replay's matcher, and
 * come back when a plain stack can hold them again. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "view/walk_match.h"

/* ---- from the walk to the matcher ---------------------------------------- */

static vst_status walk_push(vst_matcher *matcher, const vst__open *open)
{
    uint32_t flags = open->flags;
    vst_status status;

    status = flags & VST_FRAME_BEGIN
                 ? vst__matcher_begin(matcher, open->pair, 0)
                 : vst__matcher_push(matcher, open->id, 0);
    if (status == VST_OK) {
        vst__frame *frame = &matcher->frames[matcher->count - 1];
        frame->start_ns = open->start_ns;
        frame->flags |= flags;
    }
    return status;
}

vst_status vst__walk_to_matcher(vst__walk *walk)
{
    vst_matcher *matcher;
    vst_status status = VST_OK;

    if (walk->matcher == NULL)
        status = vst_matcher_create(&walk->matcher);
    if (status != VST_OK)
        return status;
    matcher = walk->matcher;
    vst__matcher_reset(matcher);
    matcher->serial = 0;
    matcher->thread = walk->stretch->thread;
    matcher->counts = (vst_matcher_counts){.spans = walk->delivered};
    matcher->spans_before = 0;
    for (size_t i = 0; status == VST_OK && i < walk->open_count; i++)
        status = walk_push(matcher, &walk->open[i]);
    matcher->last_ns = walk->last_ns;
    walk->plain = false;
    if (walk->tree != NULL)
        for (size_t i = 0; i < walk->open_count; i++)
            walk->tree->frames[i].serial = matcher->frames[i].serial;
    return status;
}

/* ---- from the matcher to the walk ---------------------------------------- */

static bool walk_is_plain(const vst_matcher *matcher)
{
    if (matcher->reconciling || matcher->in_gap || matcher->after_gap ||
        matcher->begun_far || matcher->stack != 0 || matcher->stacks.count != 0)
        return false;
    for (size_t i = 0; i < matcher->slot_count; i++)
        if (matcher->slots[i].state != VST_SLOT_FREE &&
            matcher->slots[i].state != VST_SLOT_ON_STACK)
            return false;
    for (size_t i = 0; i < matcher->count; i++)
        if (matcher->frames[i].flags & VST_FRAME_DEAD)
            return false;
    return true;
}

/* Frames do not know their pairs, but the table of pairs knows its frames. */
static void walk_find_pairs(vst__walk *walk)
{
    const vst_matcher *matcher = walk->matcher;

    for (size_t i = 0; i < matcher->pairs.capacity; i++) {
        const vst__map64_entry *entry = &matcher->pairs.entries[i];
        uint32_t number = entry->full ? (uint32_t)entry->value : 0;

        while (number != 0) {
            const vst__slot *slot = &matcher->slots[number - 1];
            if (slot->state == VST_SLOT_ON_STACK)
                walk->open[slot->index].pair = entry->key;
            number = slot->next;
        }
    }
}

static vst_status walk_copy_frames(vst__walk *walk)
{
    const vst_matcher *matcher = walk->matcher;

    if (!VST_RESERVE(walk->open, matcher->count + 1, walk->open_capacity))
        return VST_E_NOMEM;
    walk->open_count = matcher->count;
    walk->begun = 0;
    for (size_t i = 0; i < matcher->count; i++) {
        const vst__frame *frame = &matcher->frames[i];

        walk->open[i] =
            (vst__open){frame->start_ns, 0, frame->id, frame->flags};
        walk->begun += (frame->flags & VST_FRAME_BEGIN) != 0;
    }
    if (walk->begun != 0)
        walk_find_pairs(walk);
    return VST_OK;
}

vst_status vst__walk_from_matcher(vst__walk *walk)
{
    const vst_matcher *matcher = walk->matcher;
    vst_status status;

    if (!walk_is_plain(matcher))
        return VST_OK;
    status = walk_copy_frames(walk);
    if (status != VST_OK)
        return status;
    walk->plain = true;
    walk->last_ns = matcher->last_ns;
    walk->delivered = matcher->counts.spans != matcher->spans_before;
    return VST_OK;
}

const vst__open *vst__walk_open_spans(vst__walk *walk, size_t *count)
{
    if (walk->fold.imports == NULL || walk->fold.open == NULL)
        return vst__walk_all_open(walk, count);
    *count = walk->fold.open_count;
    return walk->fold.open;
}

vst__open *vst__walk_all_open(vst__walk *walk, size_t *count)
{
    if (!walk->plain && walk_copy_frames(walk) != VST_OK)
        return NULL;
    *count = walk->open_count;
    return walk->open;
}

/* ---- while the matcher matches ------------------------------------------- */

static vst_status walk_take_span(void *ctx, const vst_span *span)
{
    vst__walk *walk = ctx;

    if (!VST_RESERVE(walk->spans, walk->span_count + 1, walk->span_capacity))
        return VST_E_NOMEM;
    walk->spans[walk->span_count++] = (vst__walk_span){
        span->start_ns, span->end_ns, span->id, span->flags, span->depth, 0};
    if (walk->whole_sink != NULL)
        return walk->whole_sink->span(walk->whole_sink->ctx, span);
    return VST_OK;
}

vst_status vst__walk_named(vst__walk *walk, uint64_t id, uint32_t depth,
                           int64_t time_ns)
{
    const vst_imports *imports = walk->fold.imports;

    if (imports == NULL || !vst__imports_is_name(imports, id))
        return VST_OK;
    if (walk->tree != NULL)
        vst__flame_name(walk->tree, (vst_id)id);
    if (!VST_RESERVE(walk->spans, walk->span_count + 1, walk->span_capacity))
        return VST_E_NOMEM;
    walk->spans[walk->span_count++] =
        (vst__walk_span){.start_ns = time_ns,
                         .end_ns = time_ns,
                         .id = (vst_id)id,
                         .depth = depth,
                         .is_import = VST_WALK_NAMES};
    return VST_OK;
}

static vst_status walk_take_named(void *ctx, uint64_t id, uint32_t depth)
{
    vst__walk *walk = ctx;

    return vst__walk_named(walk, id, depth, walk->matcher->last_ns);
}

static vst_status walk_take_loss(void *ctx, const vst_loss *loss)
{
    const vst_sink *event_sink = ((vst__walk *)ctx)->event_sink;

    return event_sink != NULL && event_sink->loss != NULL
               ? event_sink->loss(event_sink->ctx, loss)
               : VST_OK;
}

static vst_status walk_take_counter(void *ctx, const vst_counter *counter)
{
    const vst_sink *event_sink = ((vst__walk *)ctx)->event_sink;

    return event_sink != NULL && event_sink->counter != NULL
               ? event_sink->counter(event_sink->ctx, counter)
               : VST_OK;
}

static vst_status walk_take_moved(void *ctx, int64_t start_ns, int64_t time_ns)
{
    const vst_sink *event_sink = ((vst__walk *)ctx)->event_sink;

    return event_sink != NULL && vst__sink_inside(event_sink)->moved != NULL
               ? event_sink->inside->moved(event_sink->ctx, start_ns, time_ns)
               : VST_OK;
}

static vst_status walk_take_task(void *ctx, const struct vst_task_event *event)
{
    (void)event;
    ((vst__walk *)ctx)->has_tasks = true;
    return VST_OK;
}

/* Makes the tree match the matcher after an event: frames that are gone end,
 * new frames begin. */
static vst_status walk_follow(vst__walk *walk, size_t spans_before)
{
    vst__flame *tree = walk->tree;
    const vst_matcher *matcher = walk->matcher;
    size_t same =
        tree->frame_count < matcher->count ? tree->frame_count : matcher->count;
    size_t span = spans_before;

    while (same != 0 &&
           tree->frames[same - 1].serial != matcher->frames[same - 1].serial)
        same--;
    while (tree->frame_count > same) {
        uint32_t depth = (uint32_t)tree->frame_count - 1;
        while (span < walk->span_count &&
               (walk->spans[span].depth != depth ||
                walk->spans[span].flags & VST_SPAN_ASYNC))
            span++;
        if (span == walk->span_count) {
            vst__flame_drop(tree);
            continue;
        }
        vst__flame_pop(tree, walk->spans[span].end_ns,
                       walk->spans[span].flags & VST_SPAN_RAISED);
        span++;
    }
    for (size_t i = same; i < matcher->count; i++) {
        const vst__frame *frame = &matcher->frames[i];
        vst_status status = vst__flame_push(tree, frame->id, frame->start_ns);
        if (status != VST_OK)
            return status;
        tree->frames[i].serial = frame->serial;
    }
    return VST_OK;
}

vst_status vst__walk_feed(vst__walk *walk, const vst_compressed_event *events,
                          size_t count, int64_t end_ns)
{
    size_t spans_before = walk->span_count;
    const vst_sink_inside inside = {
        .trace = walk->trace,
        .far_ends = walk->stretch->far_ends,
        .costs =
            walk->whole_sink != NULL ? walk->whole_sink->inside->costs : NULL,
        .moved = walk_take_moved,
        .named = walk_take_named,
    };
    const vst_sink sink = {
        .ctx = walk,
        .no_args = walk->whole_sink == NULL && !walk->keep_args,
        .span = walk_take_span,
        .loss = walk_take_loss,
        .counter = walk_take_counter,
        .task = walk_take_task,
        .tells_compensated = true,
        .inside = &inside,
    };
    vst_status status;

    status = vst_matcher_feed(walk->matcher, &walk->converter, events, count,
                              end_ns, &sink);
    if (status == VST_OK && walk->tree != NULL)
        status = walk_follow(walk, spans_before);
    return status;
}
