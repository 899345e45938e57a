/* Names for many tracebacks: each distinct traceback is composed once, and each
 * distinct frame is looked up once. Any thread. Native names are looked up
 * before the interpreter is entered, because that may take long; then the
 * language's names, inside the interpreter.
 *
 * How native frames and frames of the language are joined: one native
 * evaluation frame runs all the language's frames from the innermost to the
 * first that was entered from native code; the next evaluation frame further
 * out runs the next such run. */
#include "traceback/symbols.h"

#include "base/grow.h"
#include "base/intern.h"
#include "base/map64.h"
#include "traceback/language.h"
#include "traceback/names.h"
#include "traceback/traceback.h"

/* A frame of the language that was looked up recently, and its run. Most stacks
 * share their outer frames, so this saves most of the searching. */
typedef struct recent_frame {
    void *code;
    uint32_t instruction;
    uint32_t run; /* index of the run + 1; 0 if none */
} recent_frame;

enum { RECENT_MAX = 1024 };

/* State while names are looked up. A run is the frames that one frame of a
 * traceback stands for. */
typedef struct builder {
    vst_symbols *symbols;
    /* NULL if there are no frames of the language */
    const vst_unwinder *unwinder;
    unsigned flags;
    vst__map64 tracebacks; /* address -> place */
    vst__map64 native;     /* address -> run + 1 */
    vst__map64 codes;      /* address -> number */
    vst__map64 language;   /* number << 32 | instruction -> run + 1 */
    recent_frame *recent;  /* RECENT_MAX entries */
    vst__intern *extras;   /* file and line -> run + 1 */
    vst__span_of *runs;    /* parts of `items` */
    size_t runs_count, runs_capacity;
    uint32_t *items; /* indexes of frames */
    size_t items_count, items_capacity;
    vst_traceback **distinct;
    size_t distinct_capacity;
} builder;

/* Guarded by the interpreter's lock. */
static vst_extra_frames_fn extra_fn;
static void *extra_ctx;

void vst__traceback_set_extra_frames(vst_extra_frames_fn fn, void *ctx)
{
    extra_fn = fn;
    extra_ctx = ctx;
}

/* ---- frames and runs ----------------------------------------------------- */

static const char *same_or_copy(vst_symbols *s, const char *last,
                                size_t last_len, const char *bytes, size_t len)
{
    if (last != NULL && last_len == len && memcmp(last, bytes, len) == 0)
        return last;
    return vst__arena_copy(&s->strings, bytes, len);
}

/* A sink: adds a frame to the run that is being made. */
static vst_status add_frame(void *ctx, const vst_named_frame *frame)
{
    builder *b = ctx;
    vst_symbols *s = b->symbols;
    const vst_named_frame *last;
    vst_named_frame *made;

    if (s->frames_count >= UINT32_MAX ||
        !VST_RESERVE(s->frames, s->frames_count + 1, s->frames_capacity) ||
        !VST_RESERVE(b->items, b->items_count + 1, b->items_capacity))
        return VST_E_NOMEM;
    made = &s->frames[s->frames_count];
    last = s->frames_count != 0 ? made - 1 : NULL;
    *made = *frame;
    made->name = vst__arena_copy(&s->strings, frame->name, frame->name_len);
    made->file = same_or_copy(s, last != NULL ? last->file : NULL,
                              last != NULL ? last->file_len : 0, frame->file,
                              frame->file_len);
    if (made->name == NULL || made->file == NULL)
        return VST_E_NOMEM;
    b->items[b->items_count++] = (uint32_t)s->frames_count++;
    return VST_OK;
}

/* Ends the run that began at `first`. */
static vst_status add_run(builder *b, size_t first)
{
    if (b->runs_count >= UINT32_MAX ||
        !VST_RESERVE(b->runs, b->runs_count + 1, b->runs_capacity))
        return VST_E_NOMEM;
    b->runs[b->runs_count++] = (vst__span_of){first, b->items_count - first};
    return VST_OK;
}

/* ---- frames of the language ---------------------------------------------- */

/* Adds the frames that generated code stands for, behind its own frame. Each
 * line is asked for once. */
static vst_status add_extra(builder *b, const vst_named_frame *frame)
{
    const vst_named_sink sink = {b, add_frame};
    size_t key_size = frame->file_len + sizeof frame->line;
    size_t first = b->items_count;
    vst_status status = VST_OK;
    uint32_t number;
    char *key;

    if (extra_fn == NULL)
        return VST_OK;
    if (b->extras == NULL && (b->extras = vst__intern_create()) == NULL)
        return VST_E_NOMEM;
    key = malloc(key_size);
    if (key == NULL)
        return VST_E_NOMEM;
    memcpy(key, &frame->line, sizeof frame->line);
    memcpy(key + sizeof frame->line, frame->file, frame->file_len);
    number = vst__intern_find(b->extras, key, key_size);
    if (number == 0) {
        status = extra_fn(extra_ctx, frame->file, frame->file_len, frame->line,
                          &sink);
        if (status == VST_OK)
            status = add_run(b, first);
        if (status == VST_OK)
            status = vst__intern_add(b->extras, key, key_size,
                                     (uint32_t)b->runs_count);
    } else {
        vst__span_of run = b->runs[number - 1];
        if (!VST_RESERVE(b->items, b->items_count + run.count,
                         b->items_capacity))
            status = VST_E_NOMEM;
        for (size_t i = 0; i < run.count && status == VST_OK; i++)
            b->items[b->items_count++] = b->items[run.first + i];
    }
    free(key);
    return status;
}

static vst_status add_language_frame(void *ctx, const vst_named_frame *frame)
{
    builder *b = ctx;
    vst_status status = add_frame(b, frame);
    vst_named_frame copy;

    if (status != VST_OK)
        return status;
    /* use the copy, because the original's memory may be reused */
    copy = b->symbols->frames[b->symbols->frames_count - 1];
    return add_extra(b, &copy);
}

/* Gives the run of a frame, plus 1; makes the run if it is new. */
static vst_status find_run(builder *b, void *code, uint32_t instruction,
                           uint32_t *run)
{
    const vst_named_sink sink = {b, add_language_frame};
    size_t first = b->items_count;
    uint64_t *number = vst__map64_put(&b->codes, (uintptr_t)code);
    uint64_t *entry;
    vst_status status = VST_OK;

    if (number == NULL)
        return VST_E_NOMEM;
    if (*number == 0)
        *number = b->codes.count;
    entry = vst__map64_put(&b->language, *number << 32 | instruction);
    if (entry == NULL)
        return VST_E_NOMEM;
    if (*entry == 0) {
        status =
            b->unwinder->append_symbolized(code, instruction, b->flags, &sink);
        if (status == VST_OK)
            status = add_run(b, first);
        if (status != VST_OK)
            return status;
        *entry = b->runs_count;
    }
    *run = (uint32_t)*entry;
    return VST_OK;
}

static inline vst_status language_run(builder *b, void *code,
                                      uint32_t instruction, vst__span_of *run)
{
    uint64_t mixed =
        ((uint64_t)(uintptr_t)code >> 4 ^ instruction) * 0x9e3779b97f4a7c15u;
    recent_frame *recent = &b->recent[mixed >> 54];
    vst_status status = VST_OK;

    _Static_assert(RECENT_MAX == 1 << (64 - 54), "as many as the shift leaves");
    if (recent->code != code || recent->instruction != instruction ||
        recent->run == 0) {
        uint32_t found = 0;
        status = find_run(b, code, instruction, &found);
        *recent = (recent_frame){code, instruction, found};
    }
    if (status == VST_OK)
        *run = b->runs[recent->run - 1];
    return status;
}

/* ---- native frames ------------------------------------------------------- */

static vst_status native_run(builder *b, uintptr_t address, vst__span_of *run)
{
    const vst_named_sink sink = {b, add_frame};
    size_t first = b->items_count;
    uint64_t *entry = vst__map64_put(&b->native, address);
    vst_status status;

    if (entry == NULL)
        return VST_E_NOMEM;
    if (*entry == 0) {
        vst__names_begin();
        status = vst__names_of(address, &sink);
        vst__names_end();
        if (status == VST_OK)
            status = add_run(b, first);
        if (status != VST_OK)
            return status;
        *entry = b->runs_count;
    }
    *run = b->runs[*entry - 1];
    return VST_OK;
}

/* ---- one traceback ------------------------------------------------------- */

/* State of the walk over a traceback's frames. */
typedef struct walk {
    builder *builder;
    const vst_traceback *traceback;
    size_t next; /* next frame of the language */
    /* evaluation frames without a run of the language's frames */
    size_t unmatched;
    /* first pass: native names are looked up, nothing is added */
    bool is_first;
} walk;

static bool is_evaluation(const walk *w, uintptr_t address)
{
    const vst_unwinder *u = w->builder->unwinder;

    return u != NULL && u->is_evaluation != NULL && u->is_evaluation(address);
}

/* If the innermost frames were skipped, the outer ones still match; if there
 * are too few evaluation frames, the outer ones are missing. */
static void count_unmatched(walk *w)
{
    const vst_traceback *t = w->traceback;
    const uint32_t *instructions = vst__traceback_instructions(t);
    size_t runs = 0, evaluations = 0;

    for (size_t i = 0; i < t->language; i++)
        if ((instructions[i] & VST_FRAME_ENTRY) || i + 1 == t->language)
            runs++;
    for (size_t i = 0; i < t->native && runs != 0; i++)
        if (is_evaluation(w, t->words[i]))
            evaluations++;
    w->unmatched = evaluations > runs ? evaluations - runs : 0;
}

static inline vst_status add_indexes(walk *w, vst__span_of run)
{
    vst_symbols *s = w->builder->symbols;

    if (w->is_first || run.count == 0)
        return VST_OK;
    if (run.count == 1 && s->indexes_count < s->indexes_capacity) {
        s->indexes[s->indexes_count++] = w->builder->items[run.first];
        return VST_OK;
    }
    if (!VST_RESERVE(s->indexes, s->indexes_count + run.count,
                     s->indexes_capacity))
        return VST_E_NOMEM;
    memcpy(s->indexes + s->indexes_count, w->builder->items + run.first,
           run.count * sizeof *s->indexes);
    s->indexes_count += run.count;
    return VST_OK;
}

/* Adds the frames of the language that one evaluation frame runs, or all. */
static vst_status add_language(walk *w, bool all)
{
    const vst_traceback *t = w->traceback;
    void *const *codes = vst__traceback_codes(t);
    const uint32_t *instructions = vst__traceback_instructions(t);
    vst_status status = VST_OK;
    bool has_ended = false;

    while (w->next < t->language && !has_ended && status == VST_OK) {
        size_t i = w->next++;
        vst__span_of run;

        if (!w->is_first) {
            status = language_run(w->builder, codes[i],
                                  instructions[i] & ~VST_FRAME_ENTRY, &run);
            if (status == VST_OK)
                status = add_indexes(w, run);
        }
        has_ended = !all && (instructions[i] & VST_FRAME_ENTRY) != 0;
    }
    return status;
}

static vst_status walk_frames(builder *b, const vst_traceback *t, bool is_first)
{
    walk w = {.builder = b, .traceback = t, .is_first = is_first};
    bool has_language = b->unwinder != NULL && t->language != 0;
    vst_status status = VST_OK;

    if (has_language && t->native != 0)
        count_unmatched(&w);
    for (size_t i = 0; i < t->native && status == VST_OK; i++) {
        bool evaluates = has_language && w.next < t->language &&
                         is_evaluation(&w, t->words[i]);
        vst__span_of run;

        if (evaluates && w.unmatched == 0) {
            status = add_language(&w, false);
            continue;
        }
        if (evaluates)
            w.unmatched--;
        status = native_run(b, t->words[i], &run);
        if (status == VST_OK)
            status = add_indexes(&w, run);
    }
    if (has_language && status == VST_OK)
        status = add_language(&w, true);
    return status;
}

/* ---- all tracebacks ------------------------------------------------------ */

static vst_status find_distinct(builder *b, vst_traceback *const *tracebacks,
                                size_t count)
{
    vst_symbols *s = b->symbols;
    size_t frames = 0; /* frames of all distinct tracebacks */

    s->given = count;
    s->places = malloc((count + 1) * sizeof *s->places);
    if (s->places == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        uint64_t *place =
            vst__map64_put(&b->tracebacks, (uintptr_t)tracebacks[i]);
        if (place == NULL)
            return VST_E_NOMEM;
        if (*place == 0) {
            size_t next = s->distinct_count;
            if (!VST_RESERVE(s->distinct, next + 1, s->distinct_capacity) ||
                !VST_RESERVE(b->distinct, next + 1, b->distinct_capacity))
                return VST_E_NOMEM;
            b->distinct[next] = tracebacks[i];
            s->distinct[next] = (vst__span_of){0, 0};
            *place = ++s->distinct_count;
            if (tracebacks[i] != NULL)
                frames += tracebacks[i]->language + tracebacks[i]->native;
        }
        s->places[i] = (uint32_t)(*place - 1);
    }
    /* an estimate of the number of indexes; the array grows if needed */
    return VST_RESERVE(s->indexes, frames, s->indexes_capacity) ? VST_OK
                                                                : VST_E_NOMEM;
}

static vst_status put_together(builder *b)
{
    vst_symbols *s = b->symbols;
    const vst_unwinder *unwinder = vst__unwinder_installed();
    vst_status status = VST_OK;
    void *entered;

    for (size_t i = 0; i < s->distinct_count; i++)
        if (b->distinct[i] != NULL && b->distinct[i]->language != 0)
            b->unwinder = unwinder; /* only these frames need the unwinder */
    for (size_t i = 0; i < s->distinct_count && status == VST_OK; i++)
        if (b->distinct[i] != NULL && b->distinct[i]->native != 0)
            status = walk_frames(b, b->distinct[i], true);
    if (b->unwinder != NULL && !b->unwinder->enter(&entered))
        b->unwinder = NULL;
    for (size_t i = 0; i < s->distinct_count && status == VST_OK; i++) {
        s->distinct[i].first = s->indexes_count;
        if (b->distinct[i] != NULL)
            status = walk_frames(b, b->distinct[i], false);
        s->distinct[i].count = s->indexes_count - s->distinct[i].first;
    }
    if (b->unwinder != NULL)
        b->unwinder->leave(entered);
    return status;
}

vst_status vst_traceback_symbolize(vst_traceback *const *tracebacks,
                                   size_t count, unsigned flags,
                                   vst_symbols **symbols, vst_error *error)
{
    recent_frame recent[RECENT_MAX] = {{0}};
    builder b = {.symbols = calloc(1, sizeof *b.symbols),
                 .flags = flags,
                 .recent = recent};
    vst_status status = VST_E_NOMEM;

    *symbols = NULL;
    if (b.symbols != NULL)
        status = find_distinct(&b, tracebacks, count);
    if (status == VST_OK)
        status = put_together(&b);
    vst__map64_free(&b.tracebacks);
    vst__map64_free(&b.native);
    vst__map64_free(&b.codes);
    vst__map64_free(&b.language);
    vst__intern_destroy(b.extras);
    free(b.runs);
    free(b.items);
    free(b.distinct);
    if (status != VST_OK) {
        vst_symbols_free(b.symbols);
        return vst_error_set(error, status, 0, 0);
    }
    *symbols = b.symbols;
    return VST_OK;
}
