/* Copies a matcher. In a growing trace, the open spans are closed in a copy, to
 * see the spans as if the trace ended there. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "replay/matcher_stack.h"

/* Returns NULL if there is nothing to copy, or if memory ran out (*failed). */
static void *copy_items(const void *items, size_t count, size_t item,
                        bool *failed)
{
    void *made = count != 0 ? malloc(count * item) : NULL;

    *failed |= made == NULL && count != 0;
    if (made != NULL)
        memcpy(made, items, count * item);
    return made;
}

static void copy_map(vst__map64 *map, bool *failed)
{
    vst__map64 made = {.capacity = map->count != 0 ? map->capacity : 0};

    if (made.capacity != 0)
        made.entries = vst__calloc(made.capacity, sizeof *made.entries);
    *failed |= made.entries == NULL && made.capacity != 0;
    if (made.entries != NULL) {
        memcpy(made.entries, map->entries,
               made.capacity * sizeof *made.entries);
        made.count = map->count;
    } else {
        made.capacity = 0;
    }
    *map = made;
}

/* Copies the arrays to which elements of other arrays point. */
static void copy_inner(vst_matcher *made, bool *failed)
{
    for (size_t i = 0; i < made->args_count; i++) {
        vst__args *args = &made->args[i];

        args->bytes = copy_items(args->bytes, args->count, 1, failed);
        args->capacity = args->bytes != NULL ? args->count : 0;
    }
    for (size_t i = 0; i < made->saved_count; i++) {
        vst__saved *saved = &made->saved[i];

        saved->frames = copy_items(saved->frames, saved->count,
                                   sizeof *saved->frames, failed);
        saved->capacity = saved->frames != NULL ? saved->count : 0;
    }
}

#define COPY_ARRAY(array, size, room)                                          \
    made->array =                                                              \
        copy_items(made->array, made->size, sizeof *made->array, &failed);     \
    made->size = made->room = made->array != NULL ? made->size : 0

vst_status vst__matcher_copy(const vst_matcher *matcher, vst_matcher **copy)
{
    bool failed = false;
    vst_matcher *made = malloc(sizeof *made);

    *copy = NULL;
    if (made == NULL)
        return VST_E_NOMEM;
    *made = *matcher;
    made->text = (vst__text){.bytes = NULL};
    COPY_ARRAY(frames, count, capacity);
    COPY_ARRAY(slots, slot_count, slot_capacity);
    COPY_ARRAY(saved, saved_count, saved_capacity);
    COPY_ARRAY(args, args_count, args_capacity);
    COPY_ARRAY(exceptions, exception_count, exception_capacity);
    copy_inner(made, &failed);
    copy_map(&made->open, &failed);
    copy_map(&made->pairs, &failed);
    copy_map(&made->stacks, &failed);
    copy_map(&made->stack_tasks, &failed);
    copy_map(&made->collectors, &failed);
    if (!failed)
        *copy = made;
    else
        vst_matcher_destroy(made);
    return failed ? VST_E_NOMEM : VST_OK;
}
