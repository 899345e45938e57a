/* Sums of a growing trace: whatever the file holds, and at whatever place the
 * writer was at each reading, these sums equal the sums of one pass over the
 * file. */
#include <string.h>

#include "check.h"
#include "growing_file.h"
#include "tables/growing.h"
#include "tables/pass.h"

/* Returns the rows of one pass over the current file. */
static void pass_over(const char *path, vst__batch *rows)
{
    const vst__table *functions = vst__table_of_any_kind("functions");
    vst__table_pass pass;
    vst_trace *trace;

    if (!CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK))
        return;
    CHECK_INT(vst__table_pass_create(&pass, &functions, 1, NULL), VST_OK);
    CHECK_INT(vst__table_pass_read(&pass, trace, NULL), VST_OK);
    *rows = pass.fillings[0].batch;
    pass.fillings[0].batch = (vst__batch){.specs = NULL};
    vst__table_pass_free(&pass);
    vst_trace_close(trace);
}

static bool is_valid(const vst__column *column, size_t row)
{
    return column->valid == NULL || column->valid[row / 8] >> row % 8 & 1;
}

static void compare(const vst__batch *sums, const vst__batch *truth)
{
    if (!CHECK_INT(sums->rows, truth->rows))
        return;
    for (size_t i = 0; i < truth->column_count && checks_bad == 0; i++) {
        size_t size = truth->specs[i].type == VST_COLUMN_I32 ? 4 : 8;

        for (size_t row = 0; row < truth->rows && checks_bad == 0; row++) {
            const char *a = (const char *)sums->columns[i].values + row * size;
            const char *b = (const char *)truth->columns[i].values + row * size;

            CHECK_INT(is_valid(&sums->columns[i], row),
                      is_valid(&truth->columns[i], row));
            CHECK(memcmp(a, b, size) == 0);
        }
        if (checks_bad != 0)
            printf("# column %s\n", truth->specs[i].name);
    }
}

static void check_now(vst__growing *sums, const growing *file)
{
    vst__batch truth = {.specs = NULL};
    vst__growth growth;

    if (!CHECK_INT(vst__growing_read(sums, false, &growth, NULL), VST_OK))
        return;
    pass_over(file->path, &truth);
    compare(growth.functions, &truth);
    vst__batch_free(&truth);
}

static void grow(const view_random *random)
{
    vst__growing *sums = NULL;
    growing file;

    growing_begin(&file, random);
    if (CHECK_INT(vst__growing_open(file.path, INT64_MAX / 4, &sums, NULL),
                  VST_OK)) {
        while (checks_bad == 0 && (file.shown < file.chunk_count ||
                                   random_number(&file.random) % 8 != 0)) {
            check_now(sums, &file);
            growing_more(&file);
            growing_write(&file, &file.now);
        }
        growing_write(&file, &file.whole);
        check_now(sums, &file);
        check_now(sums, &file);
    }
    if (checks_bad != 0)
        printf("# seed %llu\n", (unsigned long long)random->state);
    vst__growing_close(sums);
    growing_end(&file);
}

/* VESTIGE_SEEDS=100-2000 in the environment adds these seeds. */
static void each_seed(void (*fn)(unsigned), unsigned count)
{
    const char *seeds = getenv("VESTIGE_SEEDS");
    unsigned first = 1, last = count / check_step(1, 2);

    if (seeds != NULL)
        CHECK(sscanf(seeds, "%u-%u", &first, &last) == 2);
    for (unsigned i = first; i <= last && checks_bad == 0; i++)
        fn(i);
}

static void grow_calls(unsigned i)
{
    grow(&(view_random){.state = i,
                        .threads = 1 + i % 5,
                        .windows = 1 + i % 3,
                        .pages = 1 + i % 3,
                        .chunks = 1 + i % 6});
}

static void sums_of_calls_are_those_of_one_pass_at_every_reading(void)
{
    each_seed(grow_calls, 40);
}

static void grow_anything(unsigned i)
{
    grow(&(view_random){.state = 1000 + i,
                        .threads = 1 + i % 4,
                        .windows = 1 + i % 2,
                        .pages = 1 + i % 2,
                        .chunks = 2 + i % 5,
                        .odd = i % 3 == 0 ? 400 : 20,
                        .more_kinds = i % 2 == 1});
}

static void so_are_those_of_records_of_any_kind_in_any_order(void)
{
    each_seed(grow_anything, 60);
}

int main(void)
{
    TEST(sums_of_calls_are_those_of_one_pass_at_every_reading);
    TEST(so_are_those_of_records_of_any_kind_in_any_order);
    return checks_end();
}
