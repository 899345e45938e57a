/* The tables of garbage collections: sums by generation, and the longest ones.
 * One thread at a time. */
#include <string.h>

#include "export/output/json.h"
#include "tables/sums.h"

enum { UNKNOWN = VST_GENERATIONS - 1 };

/* ---- adding up ----------------------------------------------------------- */

static void read_arguments(const vst_span *span, int64_t *generation,
                           int64_t *collected, int64_t *uncollectable)
{
    vst__json_part members = {span->args, span->args_len}, key, value;
    const char *at = span->args;

    *generation = *collected = *uncollectable = -1;
    while (span->args_len != 0 &&
           vst__json_next_member(members, &at, &key, &value)) {
        static const char *const names[] = {"\"generation\"", "\"collected\"",
                                            "\"uncollectable\""};
        int64_t *const to[] = {generation, collected, uncollectable};

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if (key.count == strlen(names[i]) &&
                memcmp(key.at, names[i], key.count) == 0)
                vst__json_integer(value, to[i]);
    }
}

static void collections_note_long(vst__collection_sums *sums,
                                  const vst__collection *one)
{
    size_t last = VST_LONG_COLLECTIONS - 1;
    size_t at = sums->count <= last ? sums->count++ : last;

    if (at == last && sums->longest[at].ns >= one->ns)
        return;
    for (; at != 0 && sums->longest[at - 1].ns < one->ns; at--)
        sums->longest[at] = sums->longest[at - 1];
    sums->longest[at] = *one;
}

void vst__collection_sums_add(vst__collection_sums *sums, const vst_span *span)
{
    int64_t ns = span->end_ns - span->start_ns;
    int64_t generation, collected, uncollectable;
    vst__collection one;

    read_arguments(span, &generation, &collected, &uncollectable);
    if (generation < 0 || generation >= UNKNOWN)
        generation = UNKNOWN;
    sums->of[generation].count++;
    sums->of[generation].ns += ns;
    if (ns > sums->of[generation].longest_ns)
        sums->of[generation].longest_ns = ns;
    sums->of[generation].collected += collected > 0 ? collected : 0;
    sums->of[generation].uncollectable += uncollectable > 0 ? uncollectable : 0;
    one = (vst__collection){span->start_ns, ns, span->thread,
                            (unsigned)generation, collected};
    collections_note_long(sums, &one);
}

/* ---- by generation ------------------------------------------------------- */

enum {
    COLLECTIONS_GENERATION,
    COLLECTIONS_COLLECTIONS,
    COLLECTIONS_TOTAL,
    COLLECTIONS_LONGEST,
    COLLECTIONS_COLLECTED,
    COLLECTIONS_UNCOLLECTABLE
};

static const vst__column_spec collections_columns[] = {
    [COLLECTIONS_GENERATION] = {"generation", VST_COLUMN_I32, true, 0},
    [COLLECTIONS_COLLECTIONS] = {"collections", VST_COLUMN_I64, false, 0},
    [COLLECTIONS_TOTAL] = {"total_ns", VST_COLUMN_I64, false, 0},
    [COLLECTIONS_LONGEST] = {"longest_ns", VST_COLUMN_I64, false, 0},
    [COLLECTIONS_COLLECTED] = {"collected", VST_COLUMN_I64, false, 0},
    [COLLECTIONS_UNCOLLECTABLE] = {"uncollectable", VST_COLUMN_I64, false, 0},
};

static void put_generation(vst__batch *batch, unsigned column,
                           unsigned generation)
{
    vst__batch_i32_or_null(batch, column, generation != UNKNOWN,
                           (int32_t)generation);
}

static vst_status put_collections(const vst__sums *sums, vst__batch *batch)
{
    vst_status status = VST_OK;

    for (unsigned i = 0; i < VST_GENERATIONS && status == VST_OK; i++) {
        if (sums->collections.of[i].count == 0)
            continue;
        status = vst__batch_reserve(batch);
        if (status != VST_OK)
            continue;
        put_generation(batch, COLLECTIONS_GENERATION, i);
        vst__batch_i64(batch, COLLECTIONS_COLLECTIONS,
                       (int64_t)sums->collections.of[i].count);
        vst__batch_i64(batch, COLLECTIONS_TOTAL, sums->collections.of[i].ns);
        vst__batch_i64(batch, COLLECTIONS_LONGEST,
                       sums->collections.of[i].longest_ns);
        vst__batch_i64(batch, COLLECTIONS_COLLECTED,
                       sums->collections.of[i].collected);
        vst__batch_i64(batch, COLLECTIONS_UNCOLLECTABLE,
                       sums->collections.of[i].uncollectable);
        vst__batch_add(batch);
    }
    return status;
}

const vst__table vst__table_collections = {
    .name = "collections",
    VST_COLUMNS(collections_columns),
    .sums = VST_SUMS_COLLECTIONS,
    .put = put_collections,
};

/* ---- the longest --------------------------------------------------------- */

enum {
    LONG_START,
    LONG_DURATION,
    LONG_THREAD,
    LONG_GENERATION,
    LONG_COLLECTED
};

static const vst__column_spec long_columns[] = {
    [LONG_START] = {"start_ns", VST_COLUMN_I64, false, 0},
    [LONG_DURATION] = {"duration_ns", VST_COLUMN_I64, false, 0},
    [LONG_THREAD] = {"thread", VST_COLUMN_I32, false, 0},
    [LONG_GENERATION] = {"generation", VST_COLUMN_I32, true, 0},
    [LONG_COLLECTED] = {"collected", VST_COLUMN_I64, true, 0},
};

static vst_status collections_put_long(const vst__sums *sums, vst__batch *batch)
{
    vst_status status = VST_OK;

    for (size_t i = 0; i < sums->collections.count && status == VST_OK; i++) {
        const vst__collection *one = &sums->collections.longest[i];

        status = vst__batch_reserve(batch);
        if (status != VST_OK)
            continue;
        vst__batch_i64(batch, LONG_START, one->start_ns);
        vst__batch_i64(batch, LONG_DURATION, one->ns);
        vst__batch_i32(batch, LONG_THREAD, (int32_t)one->thread);
        put_generation(batch, LONG_GENERATION, one->generation);
        vst__batch_i64_or_null(batch, LONG_COLLECTED, one->collected >= 0,
                               one->collected);
        vst__batch_add(batch);
    }
    return status;
}

const vst__table vst__table_long_collections = {
    .name = "long_collections",
    VST_COLUMNS(long_columns),
    .sums = VST_SUMS_COLLECTIONS,
    .put = collections_put_long,
};
