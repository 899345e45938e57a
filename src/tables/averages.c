/* The table of averages: the spans of each function added up, separately for
 * each combination of shapes and overload if asked for. The sums follow the
 * rules of frameworks: every call of a recursive function counts, but an
 * operator that only calls another of its own name counts as one with it. One
 * thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/intern.h"
#include "replay/own_times.h"
#include "tables/framework.h"

typedef struct average {
    struct average_key {
        vst_id id;
        uint32_t shapes, overload; /* 1 + number of a name; 0: none */
        uint32_t is_async;
    } key;
    uint64_t count;
    int64_t self_ns, total_ns;
    int64_t compensated_ns; /* compensated part of total_ns */
    /* number of spans whose compensated time is unknown */
    uint64_t uncompensated;
    int64_t self_bytes, total_bytes;
    int64_t flops;
    int64_t first_ns; /* start of the earliest span, and its serial */
    uint64_t serial;
    /* the span that was added last */
    int64_t last_ns, last_compensated_ns;
    int64_t last_bytes;
    int64_t last_flops;
} average;

typedef struct averages {
    const vst__table_options *options;
    average *of;
    size_t count, capacity;
    vst__intern *known;   /* key -> 1 + index */
    uint32_t *last;       /* by definition id: 1 + index of the row used last */
    unsigned char *kinds; /* by definition id */
    vst_id max;
    vst__own_times pending;
} averages;

static average *averages_add(averages *a, const struct average_key *key)
{
    if (!VST_RESERVE(a->of, a->count + 1, a->capacity))
        return NULL;
    if (vst__intern_add(a->known, key, sizeof *key, (uint32_t)a->count + 1) !=
        VST_OK)
        return NULL;
    a->of[a->count] = (average){.key = *key, .first_ns = INT64_MAX};
    return &a->of[a->count++];
}

/* Returns NULL if memory ran out. */
static average *averages_find(averages *a, const struct average_key *key)
{
    uint32_t *last = &a->last[key->id <= a->max ? key->id : 0];
    average *found = *last != 0 ? &a->of[*last - 1] : NULL;
    uint32_t number;

    if (found != NULL && memcmp(&found->key, key, sizeof *key) == 0)
        return found;
    number = vst__intern_find(a->known, key, sizeof *key);
    found = number != 0 ? &a->of[number - 1] : averages_add(a, key);
    if (found != NULL)
        *last = (uint32_t)(found - a->of) + 1;
    return found;
}

static int64_t flops_of(const vst_span *span)
{
    vst__json_part part = vst__json_find_member(
        (vst__json_part){span->args, span->args_len}, "Flops");
    int64_t value = 0;

    for (size_t i = 0; i < part.count; i++) {
        if (part.at[i] < '0' || part.at[i] > '9' || value > INT64_MAX / 16)
            return value;
        value = value * 10 + (part.at[i] - '0');
    }
    return value;
}

/* Reads shapes, overload and operations, which only annotations and operators
 * have. */
static vst_status read_args(vst__filling *filling, const vst_span *span,
                            struct average_key *key, int64_t *flops)
{
    const vst__table_options *options = filling->pass->options;
    vst_status status = VST_OK;

    *flops = flops_of(span);
    if (options->shapes)
        status = vst__member_number(filling, span, "Input Dims", &key->shapes);
    if (status == VST_OK && options->overloads)
        status =
            vst__member_number(filling, span, "Overload name", &key->overload);
    return status;
}

/* Takes the last span of a row out again, because the span that encloses it
 * counts for both. The last span's own time stays, as a part of the other's. */
static void averages_lift(average *sum)
{
    sum->count--;
    sum->total_ns -= sum->last_ns;
    sum->compensated_ns -= sum->last_compensated_ns;
    sum->total_bytes -= sum->last_bytes;
    sum->flops -= sum->last_flops;
}

static void averages_add_to(average *sum, const vst_span *span, int64_t self_ns,
                            int64_t flops, const vst__table_options *options)
{
    bool is_known = span->compensated_ns != VST_RUNNING_UNKNOWN;

    sum->last_ns = span->end_ns - span->start_ns;
    sum->last_compensated_ns = is_known ? span->compensated_ns : 0;
    sum->last_bytes = vst__total_bytes(span, options);
    sum->last_flops = flops;
    sum->count += !(span->flags & VST_SPAN_RESUMED);
    sum->self_ns += sum->key.is_async ? 0 : self_ns;
    sum->total_ns += sum->last_ns;
    sum->compensated_ns += sum->last_compensated_ns;
    sum->uncompensated += !is_known;
    sum->self_bytes += vst__self_bytes(span, options);
    sum->total_bytes += sum->last_bytes;
    sum->flops += flops;
    if (span->start_ns < sum->first_ns) {
        sum->first_ns = span->start_ns;
        sum->serial = span->serial;
    }
}

static vst_status averages_on_span(void *ctx, const vst_span *span)
{
    vst__filling *filling = ctx;
    averages *a = filling->own;
    vst_definition_kind kind =
        span->id <= a->max ? (vst_definition_kind)a->kinds[span->id] : 0;
    bool call = vst__is_call(kind), shown = !a->options->no_calls || !call;
    struct average_key key = {.id = span->id,
                              .is_async = (span->flags & VST_SPAN_ASYNC) != 0};
    vst_status status = VST_OK;
    int64_t self_ns, flops = 0;
    average *sum;

    if (!vst__own_times_end(&a->pending, span, shown, &self_ns))
        return VST_E_NOMEM;
    if (!shown)
        return VST_OK;
    if (span->args_len && !call)
        status = read_args(filling, span, &key, &flops);
    if (status != VST_OK)
        return status;
    if (kind == VST_DEF_OPERATOR && a->pending.children == 1 &&
        a->pending.child && a->of[a->pending.child - 1].key.id == span->id)
        averages_lift(&a->of[a->pending.child - 1]);
    sum = averages_find(a, &key);
    if (sum == NULL)
        return VST_E_NOMEM;
    vst__own_times_note(&a->pending, span, (uint32_t)(sum - a->of) + 1);
    averages_add_to(sum, span, self_ns, flops, a->options);
    return VST_OK;
}

static vst_status averages_on_leave(void *ctx, uint32_t depth)
{
    vst__filling *filling = ctx;

    vst__own_times_leave(&((averages *)filling->own)->pending, depth);
    return VST_OK;
}

/* Framework's allocations outside of all spans get a row without an id. */
static vst_status on_loose(void *ctx, const vst_loose_bytes *loose)
{
    const struct average_key key = {0};
    vst__filling *filling = ctx;
    averages *a = filling->own;
    average *sum;

    if (!a->options->framework || loose->depth != 0)
        return VST_OK;
    sum = averages_find(a, &key);
    if (sum == NULL)
        return VST_E_NOMEM;
    sum->count++;
    sum->self_bytes += loose->bytes;
    sum->total_bytes += loose->bytes;
    if (loose->time_ns < sum->first_ns)
        sum->first_ns = loose->time_ns;
    return VST_OK;
}

/* ---- the table ----------------------------------------------------------- */

#define AVERAGES_COLUMNS(COLUMN)                                               \
    COLUMN(I32, func, sum->key.id)                                             \
    /* serial of the first span */                                             \
    COLUMN(I64, span, sum->serial)                                             \
    COLUMN(I64, calls, sum->count)                                             \
    COLUMN(I64, self_ns, sum->self_ns)                                         \
    COLUMN(I64, total_ns, sum->total_ns)                                       \
    COLUMN(I64, self_bytes, sum->self_bytes)                                   \
    COLUMN(I64, total_bytes, sum->total_bytes)                                 \
    COLUMN(I64, flops, sum->flops)                                             \
    COLUMN(OWN_OR_NULL, shapes, sum->key.shapes != 0, sum->key.shapes - 1)     \
    COLUMN(OWN_OR_NULL, overload, sum->key.overload != 0,                      \
           sum->key.overload - 1)                                              \
    COLUMN(BOOL, is_async, sum->key.is_async)                                  \
    COLUMN(I64_OR_NULL, compensated_ns, sum->uncompensated == 0,               \
           sum->compensated_ns)

static bool note_kinds(averages *a, const vst_trace *trace)
{
    a->max = vst_trace_definition_max(trace);
    a->kinds = calloc((size_t)a->max + 1, 1);
    a->last = calloc((size_t)a->max + 1, sizeof *a->last);
    for (vst_id id = 1; a->kinds != NULL && id <= a->max; id++) {
        const vst_definition *d = vst_trace_definition(trace, id);

        a->kinds[id] = d != NULL ? (unsigned char)d->kind : 0;
    }
    return a->kinds != NULL && a->last != NULL;
}

static vst_status averages_begin(vst__filling *filling)
{
    averages *a = calloc(1, sizeof *a);

    filling->own = a;
    if (a == NULL)
        return VST_E_NOMEM;
    a->options = filling->pass->options;
    a->known = vst__intern_create();
    filling->sink = (vst_sink){.ctx = filling,
                               .no_imports = true,
                               .span = averages_on_span,
                               .leave = averages_on_leave,
                               .loose = on_loose};
    filling->is_read = true;
    return note_kinds(a, filling->pass->trace) && a->known != NULL
               ? VST_OK
               : VST_E_NOMEM;
}

static int by_first(const void *a, const void *b)
{
    const average *x = a, *y = b;

    if (x->first_ns != y->first_ns)
        return x->first_ns < y->first_ns ? -1 : 1;
    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static void averages_put(vst__filling *filling)
{
    averages *a = filling->own;

    if (a->count != 0)
        qsort(a->of, a->count, sizeof *a->of, by_first);
    for (size_t i = 0; i < a->count; i++) {
        const average *sum = &a->of[i];

        if (sum->count != 0 || sum->total_ns != 0)
            VST_PUT_ROW(&filling->batch, AVERAGES_COLUMNS);
    }
}

static void averages_end(vst__filling *filling)
{
    averages *a = filling->own;

    filling->own = NULL;
    if (a == NULL)
        return;
    vst__intern_destroy(a->known);
    free(a->of);
    free(a->last);
    free(a->kinds);
    free(a->pending.levels);
    free(a);
}

const vst__table vst__table_averages = {
    .name = "averages",
    VST_COLUMNS(AVERAGES_COLUMNS),
    .begin = averages_begin,
    .put = averages_put,
    .end = averages_end,
};
