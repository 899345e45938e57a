/* Decides which calls a recording with a scope takes: see scope.h. */
#include "record/scope.h"

#include <string.h>

#include "base/effects.h"
#include "base/grow.h"
#include "base/heap.h"

/* ---- kinds of ids -------------------------------------------------------- */

/* One byte for each id, written under the recorder's lock before the id is
 * given out, and read by the threads that got the id. The array is never freed,
 * because a thread that no stop() keeps out may read it while a recording ends.
 * An id beyond the array is a call. */
enum { IDS_MAX = 1 << 20, A_CALL = 0, A_WANTED_CALL = 1, NO_CALL = 2 };

static uint8_t classes[IDS_MAX];
static vst_id classes_used; /* from this id on, all bytes are zero */

static void set_class(vst_id id, uint8_t class)
{
    if (id >= IDS_MAX)
        return;
    __atomic_store_n(&classes[id], class, __ATOMIC_RELAXED);
    if (id >= classes_used)
        classes_used = id + 1;
}

void vst__scope_ids_clear(void)
{
    memset(classes, A_CALL, classes_used);
    classes_used = 0;
}

void vst__scope_id_define(vst_id id, uint32_t kind)
{
    if (kind == VST_DEF_OPERATOR || kind == VST_DEF_GC ||
        kind == VST_DEF_ANNOTATION)
        set_class(id, NO_CALL);
}

void vst__scope_id_want(vst_id id)
{
    set_class(id, A_WANTED_CALL);
}

static uint8_t scope_class_of(vst_id id)
{
    return id < IDS_MAX ? __atomic_load_n(&classes[id], __ATOMIC_RELAXED)
                        : A_CALL;
}

/* ---- a stack ------------------------------------------------------------- */

static bool is_top_recorded(const vst__scope_stack *stack)
{
    return stack->forgotten == 0 &&
           (stack->count == 0 || stack->frames[stack->count - 1].is_recorded);
}

/* Returns whether the call on top is recorded. */
static bool is_caller_recorded(const vst__scope_stack *stack)
{
    return stack->forgotten == 0 && stack->count > 1 &&
           stack->frames[stack->count - 2].is_recorded;
}

static void scope_pop(vst__scope_stack *stack)
{
    const vst__scope_frame *top = &stack->frames[--stack->count];

    stack->depth -= top->counts;
    stack->inside -= top->is_inside;
}

/* Returns the frame that a call of this id gets on top of the stack. */
static vst__scope_frame scope_classify(const vst__scope *scope, vst_id id,
                                       bool at_start)
{
    const vst__scope_stack *stack = &scope->now;
    uint8_t class = scope_class_of(id);
    vst__scope_frame frame = {.id = id, .is_recorded = true};

    if (class == NO_CALL)
        return frame;
    frame.is_inside =
        !scope->wants.only || stack->inside != 0 || class == A_WANTED_CALL;
    frame.counts = frame.is_inside && !at_start;
    frame.is_recorded =
        frame.is_inside && (!frame.counts || scope->wants.max_depth == 0 ||
                            stack->depth < scope->wants.max_depth);
    return frame;
}

static bool scope_has_room(vst__scope_stack *stack)
{
    vst__scope_frame *frames;

    if (VST_LIKELY(stack->count < stack->capacity))
        return true;
    frames = vst__grow_own(stack->frames, &stack->capacity, stack->count + 1,
                           sizeof *frames);
    if (frames != NULL)
        stack->frames = frames;
    return frames != NULL;
}

static bool scope_push(vst__scope *scope, vst_id id, bool at_start)
{
    vst__scope_stack *stack = &scope->now;
    vst__scope_frame frame;

    if (!VST_LIKELY(stack->forgotten == 0 && scope_has_room(stack))) {
        stack->forgotten++;
        return false;
    }
    frame = scope_classify(scope, id, at_start);
    stack->depth += frame.counts;
    stack->inside += frame.is_inside;
    stack->frames[stack->count++] = frame;
    return frame.is_recorded;
}

/* Leaves the call with this id. If the call is not on top, the calls above
 * it end too, as they do for readers. Returns false if the call is not on
 * the stack: it began before the recording, and its exit means nothing to
 * readers. */
static bool scope_leave(vst__scope *scope, vst_id id)
{
    vst__scope_stack *stack = &scope->now;
    size_t at = stack->count;
    bool was_recorded;

    if (stack->forgotten != 0) {
        stack->forgotten--;
        return false;
    }
    while (at != 0 && stack->frames[at - 1].id != id)
        at--;
    if (at == 0)
        return false;
    was_recorded = stack->frames[at - 1].is_recorded;
    while (stack->count >= at)
        scope_pop(stack);
    return was_recorded;
}

static void scope_reset(vst__scope_stack *stack)
{
    stack->count = stack->inside = stack->forgotten = 0;
    stack->depth = 0;
}

/* ---- switched stacks ----------------------------------------------------- */

static void free_stack(vst__scope_stack *stack)
{
    vst__free(stack->frames);
    vst__free(stack);
}

/* Keeps the current stack for later. Without memory, its calls are forgotten
 * and their exits are not recorded. */
static void scope_put_away(vst__scope *scope)
{
    vst__scope_stack *kept;
    uint64_t *place;

    if (scope->now.count == 0 && scope->now.forgotten == 0)
        return;
    kept = vst__alloc(sizeof *kept);
    place = kept != NULL ? vst__map64_put(&scope->others, scope->number) : NULL;
    if (place == NULL) {
        vst__free(kept);
        scope_reset(&scope->now);
        return;
    }
    *kept = scope->now;
    *place = (uint64_t)(uintptr_t)kept;
    memset(&scope->now, 0, sizeof scope->now);
}

static void switch_to(vst__scope *scope, uint64_t number)
{
    const uint64_t *place;

    if (number == scope->number)
        return;
    scope_put_away(scope);
    scope->number = number;
    place = vst__map64_find(&scope->others, number);
    if (place != NULL) {
        vst__scope_stack *kept = (vst__scope_stack *)(uintptr_t)*place;

        vst__free(scope->now.frames);
        scope->now = *kept;
        vst__free(kept);
        vst__map64_remove(&scope->others, number);
    }
}

static void forget_others(vst__scope *scope)
{
    for (size_t i = 0; i < scope->others.capacity; i++)
        if (scope->others.entries[i].full)
            free_stack(
                (vst__scope_stack *)(uintptr_t)scope->others.entries[i].value);
    vst__map64_clear(&scope->others);
}

/* ---- a thread's scope ---------------------------------------------------- */

bool vst__scope_begin(vst__scope **scope, const vst__scope_options *options)
{
    if (!vst__scope_is_wanted(options)) {
        vst__scope_free(*scope);
        *scope = NULL;
        return true;
    }
    if (*scope == NULL)
        *scope = vst__calloc(1, sizeof **scope);
    if (*scope == NULL)
        return false;
    forget_others(*scope);
    scope_reset(&(*scope)->now);
    (*scope)->wants = *options;
    (*scope)->number = 0;
    (*scope)->describes = true;
    return true;
}

void vst__scope_free(vst__scope *scope)
{
    if (scope == NULL)
        return;
    forget_others(scope);
    vst__map64_free(&scope->others);
    vst__free(scope->now.frames);
    vst__free(scope);
}

bool vst__scope_takes(vst__scope *scope, vst_kind kind, vst_id id)
{
    bool takes = kind == VST_ENTER ? scope_push(scope, id, false)
                                   : scope_leave(scope, id);

    scope->describes = is_top_recorded(&scope->now);
    return takes;
}

bool vst__scope_takes_escape(vst__scope *scope, vst_escape type,
                             const uint64_t *payload)
{
    switch (vst__escape_rule_of((uint32_t)type)->effect) {
    case VST_EFFECT_DESCRIBES:
        /* The name of an import is recorded in a function that the import
         * calls. The name belongs to the import, even if the depth ends between
         * the two. */
        return scope->describes ||
               (type == VST_ESCAPE_IMPORT && is_caller_recorded(&scope->now));
    case VST_EFFECT_BEGINS:
        scope->describes = true;
        return true;
    case VST_EFFECT_SWITCHES:
        switch_to(scope, payload[0]);
        scope->describes = is_top_recorded(&scope->now);
        return true;
    default:
        return true;
    }
}

bool vst__scope_top_is_recorded(const vst__scope *scope)
{
    return is_top_recorded(&scope->now);
}

size_t vst__scope_list(vst__scope *scope, vst_id *ids, size_t count,
                       bool at_start)
{
    vst__scope_stack *stack = &scope->now;
    size_t same = 0, recorded = 0;

    stack->forgotten = 0;
    while (same < count && same < stack->count &&
           stack->frames[same].id == ids[same])
        same++;
    while (stack->count > same)
        scope_pop(stack);
    for (size_t i = 0; i < count; i++) {
        bool takes = i < same ? stack->frames[i].is_recorded
                              : scope_push(scope, ids[i], at_start);
        if (takes)
            ids[recorded++] = ids[i];
    }
    scope->describes = is_top_recorded(stack);
    return recorded;
}
