/* Sums of functions while the recording runs; the test controls the clock. */
#include <unistd.h>

#include <vestige/vestige.h>

#include "check.h"
#include "fake_clock.h"
#include "one_session.h"
#include "tables/growing.h"

static vst_id outer, leaf, deep;
static char path[64];

static void begin(void)
{
    vst_session_options options = {.path = path, .overwrite = true};

    snprintf(path, sizeof path, "/tmp/vestige-growing-%d.vst", (int)getpid());
    if (vst_session_create(&options, &session, NULL) != VST_OK ||
        vst_session_start(session, NULL) != VST_OK)
        abort();
    outer = define("outer");
    leaf = define("leaf");
    deep = define("deep");
}

static void end(void)
{
    vst_session_destroy(session);
    unlink(path);
}

static void enter(vst_id id)
{
    vst_record(VST_ENTER, id);
}

static void leave(vst_id id, int64_t after_ns)
{
    fake_advance(after_ns);
    vst_record(VST_EXIT, id);
}

static vst__growing *opened(int64_t before_ns)
{
    vst__growing *sums = NULL;

    if (!CHECK_INT(vst__growing_open(path, before_ns, &sums, NULL), VST_OK))
        abort();
    return sums;
}

static vst__growth grown(vst__growing *sums, bool alive)
{
    vst__growth growth = {0};

    CHECK_INT(vst__growing_read(sums, alive, &growth, NULL), VST_OK);
    return growth;
}

static const void *column(const vst__batch *rows, const char *name)
{
    for (size_t i = 0; i < rows->column_count; i++)
        if (strcmp(rows->specs[i].name, name) == 0)
            return rows->columns[i].values;
    abort();
}

static void check(const vst__growth *growth, vst_id id, int64_t calls,
                  int64_t self_ns, int64_t total_ns)
{
    const vst__batch *rows = growth->functions;
    const int32_t *ids = column(rows, "func");

    for (size_t i = 0; i < rows->rows; i++) {
        if (ids[i] != (int32_t)id)
            continue;
        CHECK_INT(((const int64_t *)column(rows, "calls"))[i], calls);
        CHECK_INT(((const int64_t *)column(rows, "self_ns"))[i], self_ns);
        CHECK_INT(((const int64_t *)column(rows, "total_ns"))[i], total_ns);
        return;
    }
    CHECK(calls == 0 && self_ns == 0 && total_ns == 0);
}

/* Returns the innermost call of the only thread. */
static vst_id inside(const vst__growth *growth)
{
    CHECK_INT(growth->threads->rows, 1);
    return (vst_id) * (const int32_t *)column(growth->threads, "func");
}

static void time_counts_where_it_passed_whenever_calls_begin_and_end(void)
{
    vst__growing *sums;
    vst__growth growth;

    begin();
    enter(outer);
    fake_advance(1000);
    sums = opened(1000000);
    growth = grown(sums, true);
    check(&growth, outer, 1, 1000, 1000);
    CHECK_INT(inside(&growth), outer);
    CHECK_INT(growth.to_ns -
                  *(const int64_t *)column(growth.threads, "since_ns"),
              1000);

    enter(leaf);
    leave(leaf, 300);
    enter(leaf);
    fake_advance(200);
    growth = grown(sums, true);
    check(&growth, leaf, 2, 500, 500);
    check(&growth, outer, 1, 1000, 1500);
    CHECK_INT(inside(&growth), leaf);
    CHECK_INT(growth.words, 3);

    fake_advance(50); /* time passes without a record */
    growth = grown(sums, true);
    check(&growth, leaf, 2, 550, 550);
    check(&growth, outer, 1, 1000, 1550);
    CHECK_INT(growth.words, 0);

    leave(leaf, 10);
    leave(outer, 7);
    growth = grown(sums, true);
    check(&growth, leaf, 2, 560, 560);
    check(&growth, outer, 1, 1007, 1567);
    CHECK_INT(inside(&growth), 0);
    fake_advance(1000);
    growth = grown(sums, true);
    check(&growth, outer, 1, 1007, 1567);
    vst__growing_close(sums);
    end();
}

static void a_function_that_calls_itself_counts_once(void)
{
    vst__growing *sums;
    vst__growth growth;

    begin();
    sums = opened(1000000);
    grown(sums, true);
    for (int i = 0; i < 3; i++) {
        enter(deep);
        fake_advance(10);
    }
    enter(leaf);
    growth = grown(sums, true);
    check(&growth, deep, 3, 30, 30);
    leave(leaf, 5);
    for (int i = 0; i < 3; i++)
        leave(deep, 1);
    growth = grown(sums, true);
    check(&growth, deep, 3, 33, 38);
    check(&growth, leaf, 1, 5, 5);
    vst__growing_close(sums);
    end();
}

static void a_function_that_is_defined_later_counts_too(void)
{
    vst__growing *sums;
    vst__growth growth;
    vst_id late = 0;

    begin();
    enter(outer);
    sums = opened(1000000);
    grown(sums, true);
    for (int i = 0; i < 1000; i++) {
        char name[16];

        snprintf(name, sizeof name, "late %d", i);
        late = define(name);
    }
    fake_advance(1);
    enter(late);
    leave(late, 20);
    growth = grown(sums, true);
    check(&growth, late, 1, 20, 20);
    check(&growth, outer, 1, 1, 21);
    vst__growing_close(sums);
    end();
}

static void the_first_reading_begins_so_long_before_the_end(void)
{
    vst__growing *sums;
    vst__growth growth;

    begin();
    enter(outer);
    for (int i = 0; i < 5000; i++) {
        enter(leaf);
        leave(leaf, 100);
    }
    enter(leaf);
    leave(leaf, 250);
    sums = opened(300);
    growth = grown(sums, true);
    CHECK_INT(growth.to_ns - growth.from_ns, 300);
    /* A call that is open begins before its child. */
    check(&growth, leaf, 2, 301, 301);
    CHECK(growth.words < 10);
    CHECK_INT(growth.lost, 0);
    enter(leaf);
    leave(leaf, 60);
    growth = grown(sums, true);
    check(&growth, leaf, 3, 361, 361);
    vst__growing_close(sums);
    end();
}

static void a_finished_recording_ends_with_its_last_record(void)
{
    vst__growing *sums;
    vst__growth growth;
    int64_t to_ns;

    begin();
    enter(outer);
    leave(outer, 500);
    vst_session_finish(session, NULL);
    fake_advance(100000);
    sums = opened(1000000);
    growth = grown(sums, false);
    CHECK(growth.finished);
    check(&growth, outer, 1, 500, 500);
    to_ns = growth.to_ns;
    growth = grown(sums, false);
    check(&growth, outer, 1, 500, 500);
    CHECK_INT(growth.to_ns, to_ns);
    vst__growing_close(sums);
    end();
}

int main(void)
{
    fake_clock_begin();
    TEST(time_counts_where_it_passed_whenever_calls_begin_and_end);
    TEST(a_function_that_calls_itself_counts_once);
    TEST(a_function_that_is_defined_later_counts_too);
    TEST(the_first_reading_begins_so_long_before_the_end);
    TEST(a_finished_recording_ends_with_its_last_record);
    return checks_end();
}
