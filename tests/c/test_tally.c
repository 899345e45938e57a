/* What a program is doing: looks at a recording of which the test has the
 * clock. */
#include <unistd.h>

#include <vestige/vestige.h>

#include "check.h"
#include "fake_clock.h"
#include "one_session.h"
#include "view/tally.h"

static vst_id outer, leaf, deep;
static char path[64];

static void begin(void)
{
    vst_session_options options = {.path = path, .overwrite = true};

    snprintf(path, sizeof path, "/tmp/vestige-tally-%d.vst", (int)getpid());
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

static vst_tally_look look_at(vst_tally *tally, bool alive)
{
    vst_tally_look look = {0};

    CHECK_INT(vst__tally_next(tally, alive, &look, NULL), VST_OK);
    return look;
}

static void check(const vst_tally_look *look, vst_id id, uint64_t calls,
                  int64_t own_ns, int64_t total_ns)
{
    for (size_t i = 0; i < look->function_count; i++) {
        const vst_tally_function *function = &look->functions[i];

        if (function->id != id)
            continue;
        CHECK_INT(function->calls, calls);
        CHECK_INT(function->own_ns, own_ns);
        CHECK_INT(function->total_ns, total_ns);
        return;
    }
    CHECK(calls == 0 && own_ns == 0 && total_ns == 0);
}

static void time_counts_where_it_passed_whenever_calls_begin_and_end(void)
{
    vst_tally *tally;
    vst_tally_look look;

    begin();
    enter(outer);
    fake_advance(1000);
    CHECK_INT(vst__tally_open(path, 1000000, &tally, NULL), VST_OK);
    look = look_at(tally, true);
    check(&look, outer, 1, 1000, 1000);
    CHECK_INT(look.thread_count, 1);
    CHECK_INT(look.threads[0].id, outer);
    CHECK_INT(look.to_ns - look.threads[0].since_ns, 1000);

    enter(leaf);
    leave(leaf, 300);
    enter(leaf);
    fake_advance(200);
    look = look_at(tally, true);
    check(&look, leaf, 2, 500, 500);
    check(&look, outer, 0, 0, 500);
    CHECK_INT(look.threads[0].id, leaf);
    CHECK_INT(look.words, 3);

    fake_advance(50); /* no record, and yet time passes */
    look = look_at(tally, true);
    check(&look, leaf, 0, 50, 50);
    check(&look, outer, 0, 0, 50);
    CHECK_INT(look.words, 0);

    leave(leaf, 10);
    leave(outer, 7);
    look = look_at(tally, true);
    check(&look, leaf, 0, 10, 10);
    check(&look, outer, 0, 7, 17);
    CHECK_INT(look.threads[0].id, 0);
    fake_advance(1000);
    look = look_at(tally, true);
    CHECK_INT(look.function_count, 0);
    vst__tally_close(tally);
    end();
}

static void a_function_that_calls_itself_counts_once(void)
{
    vst_tally *tally;
    vst_tally_look look;

    begin();
    CHECK_INT(vst__tally_open(path, 1000000, &tally, NULL), VST_OK);
    look = look_at(tally, true);
    for (int i = 0; i < 3; i++) {
        enter(deep);
        fake_advance(10);
    }
    enter(leaf);
    leave(leaf, 5);
    for (int i = 0; i < 3; i++)
        leave(deep, 1);
    look = look_at(tally, true);
    check(&look, deep, 3, 33, 38);
    check(&look, leaf, 1, 5, 5);
    vst__tally_close(tally);
    end();
}

static void the_first_look_is_at_the_last_time_alone(void)
{
    vst_tally *tally;
    vst_tally_look look;

    begin();
    enter(outer);
    for (int i = 0; i < 5000; i++) {
        enter(leaf);
        leave(leaf, 100);
    }
    enter(leaf);
    leave(leaf, 250);
    CHECK_INT(vst__tally_open(path, 300, &tally, NULL), VST_OK);
    look = look_at(tally, true);
    CHECK_INT(look.to_ns - look.from_ns, 300);
    check(&look, leaf, 2, 300, 300);
    CHECK(look.words < 10);
    CHECK_INT(look.lost, 0);
    vst__tally_close(tally);
    end();
}

static void a_finished_recording_ends_with_its_last_record(void)
{
    vst_tally *tally;
    vst_tally_look look;

    begin();
    enter(outer);
    leave(outer, 500);
    vst_session_finish(session, NULL);
    fake_advance(100000);
    CHECK_INT(vst__tally_open(path, 1000000, &tally, NULL), VST_OK);
    look = look_at(tally, false);
    CHECK(look.finished);
    check(&look, outer, 1, 500, 500);
    look = look_at(tally, false);
    CHECK_INT(look.function_count, 0);
    CHECK_INT(look.to_ns, look.from_ns);
    vst__tally_close(tally);
    end();
}

int main(void)
{
    fake_clock_begin();
    TEST(time_counts_where_it_passed_whenever_calls_begin_and_end);
    TEST(a_function_that_calls_itself_counts_once);
    TEST(the_first_look_is_at_the_last_time_alone);
    TEST(a_finished_recording_ends_with_its_last_record);
    return checks_end();
}
