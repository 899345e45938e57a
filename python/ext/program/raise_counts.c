/* See raise_counts.h. All functions are called with the GIL held. */
#include "program/raise_counts.h"

#include "calls/ids.h"
#include "program/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METADATA "vestige.raised"

enum {
    FIRST = 1024,   /* functions that the first table has room for */
    MOST = 1 << 20, /* functions with higher ids are not counted */
    WORTH = 1000,   /* fewer exceptions are not written */
    ROWS_MAX = 200, /* functions that are written */
    ROW_ROOM = 40   /* bytes of `"id": count, ` */
};

static struct vpy_raise_counts_state *const state = &vpy_program.raise_counts;

void vpy_raise_counts_begin(const vpy_tracer *tracer)
{
    state->are_wanted = !VPY_FREE_THREADED && tracer->options.with_stack &&
                        !tracer->options.exceptions &&
                        tracer->options.budget <= 0;
}

bool vpy_raise_counts_are_wanted(void)
{
    return state->are_wanted;
}

/* Makes room for an id. Returns false if there is none. */
static VST_NOINLINE bool raise_counts_grow(vst_id id)
{
    size_t capacity = state->capacity != 0 ? state->capacity : FIRST;
    uint64_t *counts;

    while (capacity <= id && capacity < MOST)
        capacity *= 2;
    if (capacity <= id)
        return false;
    counts = realloc(state->counts, capacity * sizeof *counts);
    if (counts == NULL)
        return false;
    memset(counts + state->capacity, 0,
           (capacity - state->capacity) * sizeof *counts);
    state->counts = counts;
    state->capacity = capacity;
    return true;
}

void vpy_raise_count(uint32_t value, const PyObject *error)
{
    vst_id id = VPY_ID(value);
    const PyObject *type = (const PyObject *)Py_TYPE(error);

    if (vpy_is_left_out(value) || type == PyExc_StopIteration ||
        type == PyExc_StopAsyncIteration || type == PyExc_GeneratorExit)
        return;
    if (id < state->capacity || raise_counts_grow(id))
        state->counts[id]++;
}

/* Writes {"id": count}. */
static void raise_counts_write(vst_recording *recording)
{
    char json[ROWS_MAX * ROW_ROOM + 3] = "{";
    size_t length = 1, rows = 0;

    for (size_t id = 0; id < state->capacity && rows < ROWS_MAX; id++)
        if (state->counts[id] >= WORTH)
            length += (size_t)snprintf(
                json + length, sizeof json - length, "%s\"%zu\": %" PRIu64,
                rows++ != 0 ? ", " : "", id, state->counts[id]);
    json[length++] = '}';
    json[length] = 0;
    if (rows != 0)
        vst_recording_set_metadata(recording, METADATA, json);
}

void vpy_raise_counts_end(vst_recording *recording)
{
    if (recording != NULL && state->counts != NULL)
        raise_counts_write(recording);
    free(state->counts);
    *state = (struct vpy_raise_counts_state){.counts = NULL};
}
