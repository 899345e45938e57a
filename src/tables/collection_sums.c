/* The tables of garbage collections: sums by generation, and the longest ones.
 * One thread at a time. */
#include <string.h>

#include "export/output/json.h"
#include "tables/sums.h"

enum { UNKNOWN = VST_GENERATIONS - 1 };

/* ---- adding up ----------------------------------------------------------- */

static void read_arguments(const vst_span *span, int64_t *generation,
                           int64_t *collected, int64_t *uncollectable,
                           int64_t *examined)
{
    vst__json_part members = {span->args, span->args_len}, key, value;
    const char *at = span->args;

    *generation = *collected = *uncollectable = *examined = -1;
    while (span->args_len != 0 &&
           vst__json_next_member(members, &at, &key, &value)) {
        static const char *const names[] = {"\"generation\"", "\"collected\"",
                                            "\"uncollectable\"",
                                            "\"examined\""};
        int64_t *const to[] = {generation, collected, uncollectable, examined};

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
    int64_t generation, collected, uncollectable, examined;
    vst__collection one;

    read_arguments(span, &generation, &collected, &uncollectable, &examined);
    if (generation < 0 || generation >= UNKNOWN)
        generation = UNKNOWN;
    sums->of[generation].count++;
    sums->of[generation].ns += ns;
    if (ns > sums->of[generation].longest_ns)
        sums->of[generation].longest_ns = ns;
    sums->of[generation].collected += collected > 0 ? collected : 0;
    sums->of[generation].uncollectable += uncollectable > 0 ? uncollectable : 0;
    sums->of[generation].examined += examined > 0 ? examined : 0;
    one = (vst__collection){span->start_ns, ns, span->thread,
                            (unsigned)generation, collected};
    collections_note_long(sums, &one);
}

/* ---- by generation ------------------------------------------------------- */

#define COLLECTIONS_COLUMNS(COLUMN)                                            \
    COLUMN(I32_OR_NULL, generation, i != UNKNOWN, i)                           \
    COLUMN(I64, collections, sums->of[i].count)                                \
    COLUMN(I64, total_ns, sums->of[i].ns)                                      \
    COLUMN(I64, longest_ns, sums->of[i].longest_ns)                            \
    COLUMN(I64, collected, sums->of[i].collected)                              \
    COLUMN(I64, uncollectable, sums->of[i].uncollectable)                      \
    /* number of objects examined, by collections that report it */            \
    COLUMN(I64, examined, sums->of[i].examined)

static void put_collections(vst__filling *filling)
{
    const vst__collection_sums *sums = &filling->pass->sums->collections;

    for (unsigned i = 0; i < VST_GENERATIONS; i++)
        if (sums->of[i].count != 0)
            VST_PUT_ROW(&filling->batch, COLLECTIONS_COLUMNS);
}

const vst__table vst__table_collections = {
    .name = "collections",
    VST_COLUMNS(COLLECTIONS_COLUMNS),
    .sums = VST_SUMS_COLLECTIONS,
    .put = put_collections,
};

/* ---- the longest --------------------------------------------------------- */

#define LONG_COLUMNS(COLUMN)                                                   \
    COLUMN(I64, start_ns, one->start_ns)                                       \
    COLUMN(I64, duration_ns, one->ns)                                          \
    COLUMN(I32, thread, one->thread)                                           \
    COLUMN(I32_OR_NULL, generation, one->generation != UNKNOWN,                \
           one->generation)                                                    \
    COLUMN(I64_OR_NULL, collected, one->collected >= 0, one->collected)

static void collections_put_long(vst__filling *filling)
{
    const vst__collection_sums *sums = &filling->pass->sums->collections;

    for (size_t i = 0; i < sums->count; i++) {
        const vst__collection *one = &sums->longest[i];

        VST_PUT_ROW(&filling->batch, LONG_COLUMNS);
    }
}

const vst__table vst__table_long_collections = {
    .name = "long_collections",
    VST_COLUMNS(LONG_COLUMNS),
    .sums = VST_SUMS_COLLECTIONS,
    .put = collections_put_long,
};
