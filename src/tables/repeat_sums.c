/* The table of repeats: functions that were called with equal arguments again
 * and again, if arguments were recorded. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "export/output/json.h"
#include "tables/sums.h"

enum {
    ARGUMENTS_MAX = 512,    /* bytes; longer arguments are not compared */
    DIFFERENT_MAX = 100000, /* further distinct arguments are not counted */
    LISTED = 20             /* rows: the arguments used most often */
};

/* ---- adding up ----------------------------------------------------------- */

static vst__json_part arguments_of(const vst_span *span)
{
    static const char name[] = "\"arguments\"";
    vst__json_part members = {span->args, span->args_len}, key, value;
    const char *at = span->args;

    while (vst__json_next_member(members, &at, &key, &value))
        if (key.count == sizeof name - 1 &&
            memcmp(key.at, name, key.count) == 0)
            return value;
    return (vst__json_part){NULL, 0};
}

/* Makes one key of the function and its arguments. Returns its length; 0 if
 * they are not compared. Where a text was cut, arguments may differ although
 * they look equal. */
static size_t repeats_describe(const vst_span *span, char *key)
{
    static const char dots[] = "\xe2\x80\xa6";
    vst__json_part arguments = arguments_of(span);

    if (arguments.at == NULL || arguments.count > ARGUMENTS_MAX ||
        memmem(arguments.at, arguments.count, dots, sizeof dots - 1) != NULL ||
        memmem(arguments.at, arguments.count, "\\u2026", 6) != NULL)
        return 0;
    memcpy(key, &span->id, sizeof span->id);
    memcpy(key + sizeof span->id, arguments.at, arguments.count);
    return sizeof span->id + arguments.count;
}

/* Returns the number of a key, which may be new; 0 if memory ran out. */
static uint32_t repeats_number_of(vst__repeat_sums *sums, const char *key,
                                  size_t size)
{
    uint32_t number;

    if (sums->known == NULL)
        sums->known = vst__intern_create();
    if (sums->known == NULL)
        return 0;
    number = vst__intern_find(sums->known, key, size);
    if (number != 0)
        return number;
    if (!VST_RESERVE(sums->of, (size_t)sums->count + 1, sums->capacity))
        return 0;
    sums->of[sums->count] = (struct vst__repeat){.ns = 0};
    return vst__intern_add(sums->known, key, size, sums->count + 1) == VST_OK
               ? ++sums->count
               : 0;
}

vst_status vst__repeat_sums_add(vst__repeat_sums *sums, const vst_span *span)
{
    char key[sizeof(vst_id) + ARGUMENTS_MAX];
    size_t size;
    uint32_t number;

    if (span->args_len == 0 || sums->count >= DIFFERENT_MAX)
        return VST_OK;
    size = repeats_describe(span, key);
    if (size == 0)
        return VST_OK;
    number = repeats_number_of(sums, key, size);
    if (number == 0)
        return VST_E_NOMEM;
    sums->of[number - 1].calls += !(span->flags & VST_SPAN_RESUMED);
    sums->of[number - 1].ns += span->end_ns - span->start_ns;
    return VST_OK;
}

void vst__repeat_sums_free(vst__repeat_sums *sums)
{
    vst__intern_destroy(sums->known);
    free(sums->of);
}

/* ---- the table ----------------------------------------------------------- */

#define REPEATS_COLUMNS(COLUMN)                                                \
    COLUMN(I32, func, id)                                                      \
    /* JSON */                                                                 \
    COLUMN(TEXT, arguments, key.at + sizeof id, key.count - sizeof id)         \
    COLUMN(I64, calls, repeat->calls)                                          \
    COLUMN(I64, total_ns, repeat->ns)

/* The numbers and keys of the most frequent calls. */
typedef struct most {
    size_t count;
    uint32_t numbers[LISTED];
    vst__json_part keys[LISTED];
} most;

static void repeats_insert(const vst__repeat_sums *sums, most *found,
                           uint32_t number)
{
    uint64_t calls = sums->of[number - 1].calls;
    size_t at = found->count;

    while (at != 0 && sums->of[found->numbers[at - 1] - 1].calls < calls)
        at--;
    if (at == LISTED)
        return;
    if (found->count < LISTED)
        found->count++;
    memmove(found->numbers + at + 1, found->numbers + at,
            (found->count - at - 1) * sizeof found->numbers[0]);
    found->numbers[at] = number;
}

static void repeats_find_key(void *ctx, const void *key, size_t size,
                             uint32_t number)
{
    most *found = ctx;

    for (size_t i = 0; i < found->count; i++)
        if (found->numbers[i] == number)
            found->keys[i] = (vst__json_part){key, size};
}

static void repeats_put_row(vst__batch *batch, const struct vst__repeat *repeat,
                            vst__json_part key)
{
    vst_id id;

    memcpy(&id, key.at, sizeof id);
    VST_PUT_ROW(batch, REPEATS_COLUMNS);
}

static void repeats_put(vst__filling *filling)
{
    const vst__repeat_sums *own = &filling->pass->sums->repeats;
    most found = {.count = 0};

    for (uint32_t number = 1; number <= own->count; number++)
        if (own->of[number - 1].calls > 1)
            repeats_insert(own, &found, number);
    if (found.count != 0)
        vst__intern_each(own->known, repeats_find_key, &found);
    for (size_t i = 0; i < found.count; i++)
        repeats_put_row(&filling->batch, &own->of[found.numbers[i] - 1],
                        found.keys[i]);
}

const vst__table vst__table_repeats = {
    .name = "repeats",
    VST_COLUMNS(REPEATS_COLUMNS),
    .sums = VST_SUMS_REPEATS,
    .put = repeats_put,
};
