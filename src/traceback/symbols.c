/* Reads named tracebacks: accessors, and everything as JSON. One thread at a
 * time. */
#include "traceback/symbols.h"

#include "base/text.h"

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

static void add_frame(vst__text *t, const vst_named_frame *frame)
{
    vst__text_put(t, "{\"name\": \"");
    vst__text_escaped(t, frame->name, frame->name_len);
    vst__text_put(t, "\", \"filename\": \"");
    vst__text_escaped(t, frame->file, frame->file_len);
    vst__text_format(t, "\", \"line\": %u}", (unsigned)frame->line);
}

/* The place of the text of each frame, or of each traceback. */
typedef struct made {
    vst__text text;
    vst__span_of *spans;
} made;

static void add_list(vst__text *t, const made *items, const uint32_t *indexes,
                     size_t count)
{
    vst__text_put(t, "[");
    for (size_t i = 0; i < count && !t->failed; i++) {
        const vst__span_of *span = &items->spans[indexes[i]];
        if (i != 0)
            vst__text_put(t, ",\n");
        vst__text_add(t, items->text.bytes + span->first, span->count);
    }
    vst__text_put(t, "]");
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
    vst__text whole = {0};
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
        vst__text_add(&whole, "", 1);
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
