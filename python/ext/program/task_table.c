/* Maps addresses to tasks: the frame of a task's outermost coroutine (tasks.c),
 * or a greenlet (greenlets.c). The table holds no references, and does not
 * notice when an object ends: a caller that sees a new object at an address
 * removes the old entry. Called with the GIL held; the state lock guards the
 * table. */
#include "program/tasks.h"

#include "program/state.h"

#include <stdlib.h>

static struct vpy_task_table_state *const state = &vpy_program.task_table;

uint32_t vpy_task_new_number(void)
{
    return __atomic_add_fetch(&state->last_task, 1, __ATOMIC_RELAXED);
}

static size_t task_table_place_of(const void *address, size_t capacity)
{
    return (size_t)((uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 20) &
           (capacity - 1);
}

/* Returns the entry of an address, or the free entry where it would be put. */
static vpy_known *task_table_look_up(vpy_known *places, size_t capacity,
                                     const void *address)
{
    size_t i = task_table_place_of(address, capacity);

    while (places[i].address != NULL && places[i].address != address)
        i = (i + 1) & (capacity - 1);
    return &places[i];
}

static bool task_table_grow(void)
{
    size_t capacity = state->capacity != 0 ? 2 * state->capacity : 256;
    vpy_known *places = calloc(capacity, sizeof *places);

    if (places == NULL)
        return false;
    for (size_t i = 0; i < state->capacity; i++)
        if (state->places[i].address != NULL)
            *task_table_look_up(places, capacity, state->places[i].address) =
                state->places[i];
    free(state->places);
    state->places = places;
    state->capacity = capacity;
    return true;
}

vpy_known *vpy_known_put(const void *address)
{
    vpy_known *found;

    if (2 * state->count >= state->capacity && !task_table_grow())
        return NULL;
    found = task_table_look_up(state->places, state->capacity, address);
    if (found->address == NULL) {
        *found = (vpy_known){.address = address, .is_fresh = true};
        state->count++;
    }
    return found;
}

vpy_known *vpy_known_find(const void *address)
{
    vpy_known *found =
        state->capacity != 0 && address != NULL
            ? task_table_look_up(state->places, state->capacity, address)
            : NULL;

    return found != NULL && found->address != NULL ? found : NULL;
}

bool vpy_known_get(const void *address, vpy_known *copy)
{
    const vpy_known *known;

    vpy_state_take();
    known = vpy_known_put(address);
    if (known != NULL)
        *copy = *known;
    vpy_state_give();
    return known != NULL;
}

void vpy_known_set(const vpy_known *copy)
{
    vpy_known *known;

    vpy_state_take();
    known = vpy_known_find(copy->address); /* NULL if the recording has ended */
    if (known != NULL)
        *known = *copy;
    vpy_state_give();
}

void vpy_known_clear(void)
{
    vpy_state_take();
    free(state->places);
    state->places = NULL;
    state->count = state->capacity = 0;
    vpy_state_give();
}
