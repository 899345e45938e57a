/* Reads named tracebacks: accessors, and everything as JSON. One thread at a
 * time. */
#include "traceback/symbols.h"

#include <stdio.h>

#include "base/escape.h"

void vst_symbols_free(vst_symbols *symbols)
{
    if (symbols == NULL)
        return;
    vst__arena_free(&symbols->strings);
    free(symbols->frames);
    free(symbols->indexes);
    free(symbols->distinct);
    free(symbols->places);
    free(symbols);
}

size_t vst_symbols_frame_count(const vst_symbols *symbols)
{
    return symbols->frames_count;
}

const vst_named_frame *vst_symbols_frame(const vst_symbols *symbols,
                                         size_t index)
{
    return &symbols->frames[index];
}

const uint32_t *vst_symbols_of(const vst_symbols *symbols, size_t i,
                               size_t *count, size_t *place)
{
    const vst__span_of *span = &symbols->distinct[symbols->places[i]];

    *count = span->count;
    if (place != NULL)
        *place = symbols->places[i];
    return symbols->indexes + span->first;
}

/* ---- JSON ---------------------------------------------------------------- */

/* A growing text; `failed` if memory ran out. */
typedef struct text {
    char *bytes;
    size_t count, capacity;
    bool failed;
} text;

static char *symbols_reserve(text *t, size_t more)
{
    if (t->capacity - t->count < more && !t->failed) {
        size_t capacity = 2 * t->capacity + more;
        char *moved = realloc(t->bytes, capacity);
        t->failed = moved == NULL;
        if (moved != NULL) {
            t->bytes = moved;
            t->capacity = capacity;
        }
    }
    return t->failed ? NULL : t->bytes + t->count;
}

static void symbols_add(text *t, const char *bytes, size_t count)
{
    char *at = symbols_reserve(t, count);

    if (at != NULL && count != 0) {
        memcpy(at, bytes, count);
        t->count += count;
    }
}

static void add_plain(text *t, const char *bytes)
{
    symbols_add(t, bytes, strlen(bytes));
}

static void add_string(text *t, const char *bytes, size_t count)
{
    size_t room = (count + 1) * VST_JSON_ESCAPE_MAX;
    char *at = symbols_reserve(t, room);

    if (at != NULL)
        t->count =
            (size_t)(vst__json_escape(at, at + room, &bytes, bytes + count) -
                     t->bytes);
}

static void add_frame(text *t, const vst_named_frame *frame)
{
    char line[32];

    add_plain(t, "{\"name\": \"");
    add_string(t, frame->name, frame->name_len);
    add_plain(t, "\", \"filename\": \"");
    add_string(t, frame->file, frame->file_len);
    snprintf(line, sizeof line, "\", \"line\": %u}", (unsigned)frame->line);
    add_plain(t, line);
}

/* The place of the text of each frame, or of each traceback. */
typedef struct made {
    text text;
    vst__span_of *spans;
} made;

static void add_list(text *t, const made *items, const uint32_t *indexes,
                     size_t count)
{
    add_plain(t, "[");
    for (size_t i = 0; i < count && !t->failed; i++) {
        const vst__span_of *span = &items->spans[indexes[i]];
        if (i != 0)
            add_plain(t, ",\n");
        symbols_add(t, items->text.bytes + span->first, span->count);
    }
    add_plain(t, "]");
}

static bool make_spans(made *m, size_t count)
{
    m->spans = malloc((count + 1) * sizeof *m->spans);
    return m->spans != NULL;
}

/* Writes each distinct frame once, then each distinct traceback, and copies
 * from there. */
vst_status vst_symbols_json(const vst_symbols *symbols, char **json,
                            size_t *length)
{
    made frames = {0}, lists = {0};
    text whole = {0};
    bool has_room = make_spans(&frames, symbols->frames_count) &&
                    make_spans(&lists, symbols->distinct_count);

    *json = NULL;
    for (size_t i = 0; i < symbols->frames_count && has_room; i++) {
        size_t first = frames.text.count;
        add_frame(&frames.text, &symbols->frames[i]);
        frames.spans[i] = (vst__span_of){first, frames.text.count - first};
        has_room = !frames.text.failed;
    }
    for (size_t i = 0; i < symbols->distinct_count && has_room; i++) {
        const vst__span_of *span = &symbols->distinct[i];
        size_t first = lists.text.count;
        add_list(&lists.text, &frames, symbols->indexes + span->first,
                 span->count);
        lists.spans[i] = (vst__span_of){first, lists.text.count - first};
        has_room = !lists.text.failed;
    }
    if (has_room) {
        add_list(&whole, &lists, symbols->places, symbols->given);
        symbols_add(&whole, "", 1);
        has_room = !whole.failed;
    }
    free(frames.text.bytes);
    free(frames.spans);
    free(lists.text.bytes);
    free(lists.spans);
    if (!has_room) {
        free(whole.bytes);
        return VST_E_NOMEM;
    }
    *json = whole.bytes;
    *length = whole.count - 1;
    return VST_OK;
}
