/* Tables of sums: every number follows from the times in a hand-made file, and
 * from the calls that are left out. Times are ticks, which are nanoseconds. */
#include "tables/pass.h"

#include "check.h"
#include "table_cells.h"
#include "trace_builder.h"

enum { MAIN = 1, MIDDLE, LEAF, SLEEP, COLLECT, DEFINED };
enum { TABLES_MAX = 12 };

typedef struct reading {
    builder b;
    vst_trace *trace;
    vst__table_pass pass;
    vst__filling *rows;
} reading;

static void call_leaf(builder *b)
{
    builder_enter(b, LEAF, 100);
    builder_escape_text(b, VST_ESCAPE_ARGS, 0, 18, "\"arguments\": \"x=1\"");
    builder_exit(b, LEAF, 100);
}

/* Thread 1: main() (1500 ns) calls middle() (500), which calls leaf() (100)
 * twice; then a collection (200) and sleep() (300) follow. Thread 2: leaf(),
 * which raises. */
static void fill(builder *b)
{
    builder_init(b);
    builder_definitions(b, 1);
    builder_thread(b, 1, 77, "main");
    builder_thread(b, 2, 78, "other");
    builder_define(b, VST_DEF_PYTHON, MAIN, "main", "m.py", 1);
    builder_define(b, VST_DEF_PYTHON, MIDDLE, "middle", "m.py", 2);
    builder_define(b, VST_DEF_PYTHON, LEAF, "leaf", "m.py", 3);
    builder_define(b, VST_DEF_NATIVE, SLEEP, "<built-in function sleep>",
                   "time", 0);
    builder_define(b, VST_DEF_GC, COLLECT, "gc", "", 0);
    builder_window(b, 0, 1000, 9000);
    builder_records(b, 0, 1, 1000, 1);
    builder_enter(b, MAIN, 100);
    builder_enter(b, MIDDLE, 100);
    call_leaf(b);
    call_leaf(b);
    builder_exit(b, MIDDLE, 100);
    builder_enter(b, COLLECT, 100);
    builder_escape_text(b, VST_ESCAPE_ARGS, 0, 32,
                        "\"generation\": 2, \"collected\": 7 ");
    builder_exit(b, COLLECT, 200);
    builder_enter(b, SLEEP, 100);
    builder_exit(b, SLEEP, 300);
    builder_exit(b, MAIN, 200);
    builder_records(b, 0, 2, 1000, 1);
    builder_enter(b, LEAF, 100);
    builder_word(b, vst_word(VST_RAISE, LEAF, 50));
}

static void read_tables(reading *r, const vst__table_options *options,
                        const char *const *names, size_t count)
{
    const vst__table *tables[TABLES_MAX];

    memset(r, 0, sizeof *r);
    fill(&r->b);
    CHECK_INT(builder_open(&r->b, &r->trace, NULL), VST_OK);
    for (size_t i = 0; i < count; i++)
        tables[i] = vst__table_of_any_kind(names[i]);
    CHECK_INT(vst__table_pass_create(&r->pass, tables, count, options), VST_OK);
    CHECK_INT(vst__table_pass_read(&r->pass, r->trace, NULL), VST_OK);
    r->rows = r->pass.fillings;
}

#define READ(r, options, ...)                                                  \
    do {                                                                       \
        const char *names_read[] = {__VA_ARGS__};                              \
        read_tables(r, options, names_read,                                    \
                    sizeof names_read / sizeof *names_read);                   \
    } while (0)

static void end(reading *r)
{
    vst__table_pass_free(&r->pass);
    vst_trace_close(r->trace);
    builder_free(&r->b);
}

/* Returns the row in which a column has this value. */
static size_t find(const vst__filling *rows, const char *name, int64_t value)
{
    size_t row = 0;

    while (row < rows->batch.rows && cell(rows, row, name) != value)
        row++;
    return row;
}

static int64_t of(const vst__filling *rows, vst_id id, const char *name)
{
    return cell(rows, find(rows, "func", id), name);
}

static int64_t total(const vst__filling *rows, const char *name)
{
    int64_t sum = 0;

    for (size_t row = 0; row < rows->batch.rows; row++)
        sum += cell(rows, row, name);
    return sum;
}

/* ---- time ---------------------------------------------------------------- */

static void functions_have_their_calls_and_times(void)
{
    vst__table_options options = {.spread = true};
    reading r;

    READ(&r, &options, "functions");
    CHECK_INT(r.rows[0].batch.rows, 5);
    CHECK_INT(of(&r.rows[0], MAIN, "total_ns"), 1500);
    CHECK_INT(of(&r.rows[0], MAIN, "self_ns"), 500);
    CHECK_INT(of(&r.rows[0], LEAF, "calls"), 3);
    CHECK_INT(of(&r.rows[0], LEAF, "total_ns"), 250);
    CHECK_INT(of(&r.rows[0], LEAF, "max_ns"), 100);
    CHECK_INT(of(&r.rows[0], MIDDLE, "self_median_ns") / 16, 300 / 16);
    CHECK_INT(of(&r.rows[0], MAIN, "running_ns"), NONE);
    end(&r);
}

static void durations_are_those_of_the_calls(void)
{
    vst__table_options options = {.spread = false};
    reading r;

    READ(&r, &options, "duration");
    CHECK_INT(r.rows[0].batch.rows, 5);
    CHECK_INT(of(&r.rows[0], LEAF, "count"), 3);
    CHECK_INT(of(&r.rows[0], LEAF, "total_ns"), 250);
    CHECK_INT(of(&r.rows[0], LEAF, "min_ns"), 50);
    CHECK_INT(of(&r.rows[0], LEAF, "p50_ns"), 100);
    CHECK_INT(of(&r.rows[0], LEAF, "max_ns"), 100);
    CHECK_INT(of(&r.rows[0], LEAF, "slow_count"), 0);
    CHECK_INT(of(&r.rows[0], LEAF, "longest_thread"), 1);
    CHECK_INT(of(&r.rows[0], LEAF, "threads_ns"), 1550);
    CHECK_INT(of(&r.rows[0], MAIN, "threads_ns"), 1500);
    CHECK_INT(of(&r.rows[0], MAIN, "longest_start_ns") % 10000, 1100);
    end(&r);
}

static void functions_with_the_mark_have_no_durations(void)
{
    const unsigned char marks[DEFINED] = {[MIDDLE] = VST_MARK_UNTIMED};
    vst__table_options options = {.marks = marks};
    reading r;

    READ(&r, &options, "duration", "functions");
    CHECK_INT(of(&r.rows[0], MIDDLE, "count"), MISSING);
    CHECK_INT(of(&r.rows[1], MIDDLE, "calls"), 1);
    end(&r);
}

static void steps_have_how_long_they_took(void)
{
    const unsigned char marks[DEFINED] = {[LEAF] = VST_MARK_STEP};
    vst__table_options options = {.marks = marks};
    reading r;

    READ(&r, &options, "steps");
    CHECK_INT(cell(&r.rows[0], 0, "steps"), 2);
    CHECK_INT(cell(&r.rows[0], 0, "p50_ns"), 100);
    CHECK_INT(cell(&r.rows[0], 0, "max_ns"), 100);
    end(&r);
}

static void what_was_not_asked_for_is_not_known(void)
{
    vst__table_options options = {.spread = false};
    reading r;

    READ(&r, &options, "functions");
    CHECK_INT(of(&r.rows[0], LEAF, "self_median_ns"), NONE);
    CHECK_INT(of(&r.rows[0], LEAF, "total_mean_error_ns"), NONE);
    end(&r);
    CHECK(vst__table_of_any_kind("nothing") == NULL);
}

static void every_table_has_all_of_the_time(void)
{
    vst__table_options options = {.min_ns = 0};
    reading r;

    READ(&r, &options, "functions", "calls", "threads");
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(total(&r.rows[i], "calls"), 7);
        CHECK_INT(total(&r.rows[i], "self_ns"), 1550);
    }
    end(&r);
}

static void the_time_of_a_function_that_is_left_out_is_its_callers(void)
{
    const unsigned char marks[DEFINED] = {[MIDDLE] = VST_MARK_LEFT_OUT};
    vst__table_options options = {.marks = marks};
    reading r;
    size_t main_row;

    READ(&r, &options, "functions", "calls");
    CHECK_INT(of(&r.rows[0], MIDDLE, "calls"), MISSING);
    CHECK_INT(of(&r.rows[0], MAIN, "self_ns"), 800);
    CHECK_INT(of(&r.rows[0], MAIN, "total_ns"), 1500);
    main_row = find(&r.rows[1], "func", MAIN);
    CHECK_INT(of(&r.rows[1], LEAF, "parent"), main_row);
    CHECK_INT(of(&r.rows[1], LEAF, "calls"), 2);
    CHECK_INT(cell(&r.rows[1], main_row, "self_ns"), 800);
    end(&r);
}

static void time_that_counts_for_nobody_is_nowhere(void)
{
    const unsigned char marks[DEFINED] = {[SLEEP] = VST_MARK_NO_TIME |
                                                    VST_MARK_WAITS};
    vst__table_options options = {.marks = marks};
    reading r;

    READ(&r, &options, "functions", "calls", "threads", "waits");
    CHECK_INT(of(&r.rows[0], SLEEP, "calls"), MISSING);
    CHECK_INT(of(&r.rows[0], MAIN, "total_ns"), 1200);
    for (size_t i = 0; i < 3; i++)
        CHECK_INT(total(&r.rows[i], "self_ns"), 1250);
    CHECK_INT(cell(&r.rows[2], 0, "waiting_ns"), 300);
    CHECK_INT(of(&r.rows[3], SLEEP, "self_ns"), 300);
    CHECK_INT(of(&r.rows[3], SLEEP, "calls"), 1);
    end(&r);
}

/* ---- threads and rows --------------------------------------------------- */

static void threads_tell_when_they_ran_and_in_what(void)
{
    vst__table_options options = {.min_ns = 0};
    reading r;

    READ(&r, &options, "threads");
    CHECK_INT(r.rows[0].batch.rows, 2);
    CHECK_INT(cell(&r.rows[0], 0, "thread"), 1);
    CHECK_INT(cell(&r.rows[0], 0, "last_ns") - cell(&r.rows[0], 0, "first_ns"),
              1500);
    CHECK_INT(cell(&r.rows[0], 0, "top"), MAIN);
    CHECK_INT(cell(&r.rows[0], 1, "top"), LEAF);
    CHECK_INT(cell(&r.rows[0], 1, "object_ns"), NONE);
    end(&r);
}

static void only_the_threads_that_were_asked_for_are_read(void)
{
    static const uint32_t other = 2;
    vst__table_options options = {.threads = &other, .thread_count = 1};
    reading r;

    READ(&r, &options, "functions", "calls", "threads");
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(r.rows[i].batch.rows, 1);
        CHECK_INT(total(&r.rows[i], "self_ns"), 50);
    }
    end(&r);
    options.thread_count = 0;
    READ(&r, &options, "functions", "calls", "threads", "steps");
    for (size_t i = 0; i < 4; i++)
        CHECK_INT(r.rows[i].batch.rows, 0);
    end(&r);
}

static void calls_that_an_exception_left_are_counted(void)
{
    vst__table_options options = {.min_ns = 0};
    reading r;

    READ(&r, &options, "calls");
    CHECK_INT(total(&r.rows[0], "raised"), 1);
    CHECK_INT(of(&r.rows[0], MAIN, "raised"), 0);
    end(&r);
}

static void short_calls_get_no_row(void)
{
    vst__table_options options = {.min_ns = 300};
    reading r;

    READ(&r, &options, "calls", "functions");
    CHECK_INT(r.rows[0].batch.rows, 3);
    CHECK_INT(of(&r.rows[0], LEAF, "calls"), MISSING);
    CHECK_INT(cell(&r.rows[0], 0, "parent"), NONE);
    CHECK_INT(of(&r.rows[0], SLEEP, "parent"), 0);
    CHECK_INT(r.rows[1].batch.rows, 5);
    end(&r);
}

/* ---- single calls ------------------------------------------------------- */

static void collections_are_told_by_generation_and_caller(void)
{
    const unsigned char marks[DEFINED] = {[COLLECT] = VST_MARK_GC};
    vst__table_options options = {.marks = marks};
    reading r;

    READ(&r, &options, "collections", "long_collections", "collection_callers",
         "threads");
    CHECK_INT(r.rows[0].batch.rows, 1);
    CHECK_INT(cell(&r.rows[0], 0, "generation"), 2);
    CHECK_INT(cell(&r.rows[0], 0, "collections"), 1);
    CHECK_INT(cell(&r.rows[0], 0, "longest_ns"), 200);
    CHECK_INT(cell(&r.rows[0], 0, "collected"), 7);
    CHECK_INT(cell(&r.rows[1], 0, "duration_ns"), 200);
    CHECK_INT(cell(&r.rows[1], 0, "thread"), 1);
    CHECK_INT(of(&r.rows[2], MAIN, "total_ns"), 200);
    CHECK_INT(cell(&r.rows[3], 0, "gc_ns"), 200);
    end(&r);
}

static void calls_with_the_same_arguments_are_repeats(void)
{
    vst__table_options options = {.min_ns = 0};
    const vst__column *arguments;
    reading r;

    READ(&r, &options, "repeats", "steps");
    CHECK_INT(r.rows[0].batch.rows, 1);
    CHECK_INT(of(&r.rows[0], LEAF, "calls"), 2);
    CHECK_INT(of(&r.rows[0], LEAF, "total_ns"), 200);
    arguments = &r.rows[0].batch.columns[1];
    CHECK_INT(arguments->byte_count, 5);
    CHECK(memcmp(arguments->bytes, "\"x=1\"", 5) == 0);
    end(&r);
}

static void steps_are_counted_by_the_thread_of_their_loop(void)
{
    const unsigned char marks[DEFINED] = {[LEAF] = VST_MARK_STEP};
    vst__table_options options = {.marks = marks};
    reading r;

    READ(&r, &options, "steps", "long_steps", "budget");
    CHECK_INT(r.rows[0].batch.rows, 2);
    for (size_t i = 0; i < 2; i++) {
        CHECK_INT(cell(&r.rows[0], i, "steps"), 2 - (int64_t)i);
        CHECK_INT(cell(&r.rows[0], i, "thread"), 1 + (int64_t)i);
        CHECK_INT(cell(&r.rows[0], i, "blocking"), 0);
    }
    CHECK_INT(r.rows[1].batch.rows, 0);
    CHECK_INT(r.rows[2].batch.rows, 0); /* nothing was left out */
    end(&r);
}

/* ---- tables of all kinds ------------------------------------------------ */

static void rows_and_sums_come_from_one_reading(void)
{
    vst__table_options options = {.min_ns = 0};
    reading r;

    READ(&r, &options, "span", "functions", "thread", "stack", "wait");
    CHECK_INT(r.rows[0].batch.rows, 7);
    CHECK_INT(total(&r.rows[0], "self_ns"), 1550);
    CHECK_INT(total(&r.rows[1], "self_ns"), 1550);
    CHECK_INT(r.rows[2].batch.rows, 2);
    CHECK_INT(r.rows[3].batch.rows, 6); /* rows are places: leaf() has two */
    CHECK_INT(r.rows[4].batch.rows, 1);
    CHECK_INT(cell(&r.rows[4], 0, "duration_ns"), 300);
    end(&r);
}

/* Tables of tasks share their reading, in any order. */
static void tables_of_tasks_are_empty_where_there_are_none(void)
{
    vst__table_options options = {.min_ns = 0};
    reading r;

    READ(&r, &options, "blocked_calls", "blocked_steps", "task_steps",
         "task_awaits", "task", "functions");
    for (size_t i = 0; i < 5; i++)
        CHECK_INT(r.rows[i].batch.rows, 0);
    CHECK_INT(r.rows[5].batch.rows, 5);
    end(&r);
}

/* leaf() calls itself: the table of functions needs to know this, the table of
 * spans does not. */
static void what_one_table_looks_for_changes_no_other(void)
{
    const char *const both[] = {"span", "functions"};
    int64_t flags[2];

    for (size_t count = 1; count <= 2; count++) {
        vst__table_options options = {.min_ns = 0};
        const vst__table *tables[2];
        vst__table_pass pass;
        vst_trace *trace;
        builder b;

        builder_init(&b);
        builder_definitions(&b, 1);
        builder_thread(&b, 1, 77, "main");
        builder_define(&b, VST_DEF_PYTHON, LEAF, "leaf", "m.py", 3);
        builder_window(&b, 0, 1000, 9000);
        builder_records(&b, 0, 1, 1000, 1);
        builder_enter(&b, LEAF, 100);
        builder_enter(&b, LEAF, 100);
        builder_exit(&b, LEAF, 100);
        builder_exit(&b, LEAF, 100);
        CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
        for (size_t i = 0; i < count; i++)
            tables[i] = vst__table_of_any_kind(both[i]);
        CHECK_INT(vst__table_pass_create(&pass, tables, count, &options),
                  VST_OK);
        CHECK_INT(vst__table_pass_read(&pass, trace, NULL), VST_OK);
        flags[count - 1] = total(&pass.fillings[0], "flags");
        if (count == 2)
            CHECK_INT(of(&pass.fillings[1], LEAF, "outer_calls"), 1);
        vst__table_pass_free(&pass);
        vst_trace_close(trace);
        builder_free(&b);
    }
    CHECK_INT(flags[0], flags[1]);
}

int main(void)
{
    TEST(functions_have_their_calls_and_times);
    TEST(durations_are_those_of_the_calls);
    TEST(functions_with_the_mark_have_no_durations);
    TEST(steps_have_how_long_they_took);
    TEST(what_was_not_asked_for_is_not_known);
    TEST(every_table_has_all_of_the_time);
    TEST(the_time_of_a_function_that_is_left_out_is_its_callers);
    TEST(time_that_counts_for_nobody_is_nowhere);
    TEST(threads_tell_when_they_ran_and_in_what);
    TEST(only_the_threads_that_were_asked_for_are_read);
    TEST(calls_that_an_exception_left_are_counted);
    TEST(short_calls_get_no_row);
    TEST(collections_are_told_by_generation_and_caller);
    TEST(calls_with_the_same_arguments_are_repeats);
    TEST(steps_are_counted_by_the_thread_of_their_loop);
    TEST(rows_and_sums_come_from_one_reading);
    TEST(tables_of_tasks_are_empty_where_there_are_none);
    TEST(what_one_table_looks_for_changes_no_other);
    return checks_end();
}
