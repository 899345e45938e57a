/* Facts about a frame that only some sinks ask for and only some traces have:
 * running times and waits, imports, the place in the tree of calls. Separate
 * from the stack, so that frames without these facts cost no more. One thread
 * at a time. */
#include "replay/imports.h"
#include "replay/matcher_stack.h"
#include "replay/places.h"

/* ---- when a frame begins ------------------------------------------------- */

/* Finds the place of the top frame. */
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

VST_NOINLINE vst_status vst__matcher_note_facts(vst_matcher *matcher)
{
    vst__frame *top = &matcher->frames[matcher->count - 1];

    if (matcher->measures)
        vst__matcher_begin_measure(matcher, top);
    if (matcher->imports != NULL)
        vst__imports_enter(matcher->imports, matcher->frames, matcher->count);
    return matcher->places != NULL ? find_place(matcher) : VST_OK;
}

vst_status vst__matcher_import(vst_matcher *matcher, uint64_t id,
                               const vst_sink *sink)
{
    const vst_sink_inside *inside = vst__sink_inside(sink);

    if (inside->named != NULL)
        return inside->named(sink->ctx, id, (uint32_t)matcher->count);
    if (matcher->imports != NULL && vst__imports_is_name(matcher->imports, id))
        vst__imports_name(matcher->imports, matcher->frames, matcher->count,
                          (vst_id)id);
    return VST_OK;
}

/* ---- when it ends -------------------------------------------------------- */

VST_NOINLINE vst_status vst__matcher_end_facts(vst_matcher *matcher,
                                               vst__frame *top, vst_span *span,
                                               const vst_sink *sink)
{
    if (matcher->imports != NULL)
        vst__imports_leave(top, span->flags & VST_SPAN_RAISED);
    return matcher->measures ? vst__matcher_measure(matcher, top, span, sink)
                             : VST_OK;
}
