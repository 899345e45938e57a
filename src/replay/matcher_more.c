/* What is known of a frame beyond its own fields, for sinks that ask for it and
 * traces that have it: running times and waits, imports, recursion, its place
 * in the tree of calls. Apart from the stack, so that frames of which nobody
 * wants to know that cost no more for it. */
#include "replay/imports.h"
#include "replay/matcher_stack.h"
#include "replay/places.h"

/* ---- how often an id is open -------------------------------------------- */

/* Counts one more; true if it was open already. */
static bool count_open(vst_matcher *matcher, vst_id id)
{
    uint64_t *times = vst__map64_put(&matcher->open, id);

    if (times == NULL) {
        matcher->indexed = false; /* no memory: it is only an index */
        return false;
    }
    return ++*times > 1;
}

void vst__matcher_uncount(vst_matcher *matcher, vst_id id)
{
    uint64_t *times = vst__map64_find(&matcher->open, id);

    if (times != NULL && --*times == 0)
        vst__map64_remove(&matcher->open, id);
}

void vst__matcher_build_index(vst_matcher *matcher)
{
    vst__map64_clear(&matcher->open);
    matcher->indexed = matcher->wants_more = true;
    for (size_t i = 0; i < matcher->count && matcher->indexed; i++)
        if (!(matcher->frames[i].flags & VST_FRAME_INNER))
            count_open(matcher, matcher->frames[i].id);
}

/* ---- when a frame begins ------------------------------------------------- */

/* Of the top frame. */
static vst_status find_place(vst_matcher *matcher)
{
    vst__frame *top = &matcher->frames[matcher->count - 1];
    uint32_t around = matcher->count > 1 ? (top - 1)->place : 0;

    top->place = vst__places_enter(matcher->places, around, top->id);
    if (top->place == 0)
        return VST_E_NOMEM;
    if (!(top->flags & VST_FRAME_BEGIN) &&
        matcher->places->items[top->place].recursive)
        top->flags |= VST_SPAN_RECURSIVE;
    return VST_OK;
}

VST_NOINLINE vst_status vst__matcher_note_more(vst_matcher *matcher)
{
    vst__frame *top = &matcher->frames[matcher->count - 1];

    top->waited_ns = matcher->waited_ns;
    top->costs = matcher->costs_so_far;
    if (matcher->running != NULL) {
        top->ran_ns = vst__running_at(matcher->running, top->start_ns);
        top->lost_ns = vst__running_lost_at(matcher->running, top->start_ns);
    }
    if (matcher->imports != NULL)
        vst__imports_enter(matcher->imports, matcher->frames, matcher->count);
    if (matcher->indexed && !(top->flags & VST_FRAME_BEGIN) &&
        count_open(matcher, top->id))
        top->flags |= VST_SPAN_RECURSIVE;
    return matcher->places != NULL ? find_place(matcher) : VST_OK;
}

/* ---- when it ends -------------------------------------------------------- */

VST_NOINLINE vst_status vst__matcher_settle_more(vst_matcher *matcher,
                                                 vst__frame *top,
                                                 vst_span *span,
                                                 const vst_sink *sink)
{
    if (matcher->imports != NULL)
        vst__imports_leave(top, span->flags & VST_SPAN_RAISED);
    if (matcher->indexed && !(top->flags & VST_FRAME_BEGIN))
        vst__matcher_uncount(matcher, top->id);
    if (matcher->running == NULL && matcher->costs == NULL &&
        !sink->knows_gil && !sink->knows_pauses && !sink->by_running)
        return VST_OK;
    return vst__matcher_measure(matcher, top, span, sink);
}
