/* Recordings that are bounded: the file stays within its bound, holds the
 * newest records without a gap, counts dropped records, and its names
 * resolve. */
#include <sys/resource.h>

#include "bounded.h"

/* ---- by size ------------------------------------------------------------ */

static void the_newest_records_stay_and_the_others_are_counted(void)
{
    const unsigned count = 400000;
    vst_trace_info info;
    vst_trace *trace;
    seen s;

    begin(MIB, 0);
    record_outer(VST_ENTER);
    record_leaves(0, count);
    CHECK(file_size() <= MIB);
    vst_session_stop(session);
    vst_session_finish(session, NULL);
    CHECK(file_size() <= MIB && file_size() > MIB / 2);
    CHECK_INT(vst_session_lost(session), 0);

    trace = open_file(&info);
    s = see(trace);
    CHECK(info.clean);
    CHECK_INT(info.damaged_at, 0);
    /* Each chunk may begin with one word for the time. */
    CHECK(info.words + info.dropped >= 2 * count + OUTER);
    CHECK(info.words + info.dropped < 2 * count + OUTER + 2000);
    CHECK(s.leaves > MIB / 16 * 9 / 10);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK_INT(s.next[1], 1); /* the last leaf is in the file */
    CHECK_INT(s.outer, OUTER);
    CHECK_INT(s.dropped, info.dropped);
    CHECK_INT(s.losses, 1);
    CHECK_INT(info.complete_ns, info.start_ns);
    vst_trace_close(trace);
    end();
}

static void nothing_is_dropped_while_there_is_room(void)
{
    vst_trace_info info;
    vst_trace *trace;
    seen s;

    begin(16 * MIB, 0);
    record_leaves(0, 100000);
    vst_session_finish(session, NULL);
    trace = open_file(&info);
    s = see(trace);
    CHECK_INT(info.dropped, 0);
    CHECK_INT(s.leaves, 100000);
    CHECK_INT(s.losses, 0);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK_INT(info.complete_ns, info.start_ns);
    vst_trace_close(trace);
    end();
}

static void definitions_are_never_dropped(void)
{
    vst_trace_info info;
    char name[64];
    vst_trace *trace;
    seen s;

    begin(MIB, 0);
    for (int i = 0; i < 20000; i++) {
        vst_id id;

        snprintf(name, sizeof name, "outer with a rather long name %d", i);
        id = define(name);
        vst_record(VST_ENTER, id);
        vst_record(VST_EXIT, id);
        record_leaves((unsigned)i * 10, 10);
    }
    vst_session_finish(session, NULL);
    trace = open_file(&info);
    s = see(trace);
    CHECK_INT(vst_trace_definition_max(trace), 20000 + IDS + 1);
    for (vst_id id = 1; id <= vst_trace_definition_max(trace); id++)
        CHECK(vst_trace_definition(trace, id) != NULL);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK(s.leaves > 1000);
    /* The names alone take 1.7 MiB; records keep half of the bound. */
    CHECK(file_size() < 3 * MIB);
    vst_trace_close(trace);
    end();
}

static void a_bound_that_is_too_small_is_refused(void)
{
    vst_session_options options = {.path = "/tmp/vestige-bounded-none.vst",
                                   .max_size = MIB - 1};
    vst_error error = {VST_OK, 0, 0};

    CHECK_INT(vst_session_create(&options, &session, &error), VST_E_ARGUMENT);
    CHECK_INT(error.status, VST_E_ARGUMENT);
    CHECK(access(options.path, F_OK) != 0);
}

/* A stack deeper than a checkpoint can hold: the outermost frames are known,
 * and nothing breaks. */
static void a_stack_too_deep_for_a_checkpoint_is_cut(void)
{
    vst_trace_info info;
    vst_trace *trace;
    seen s;

    begin(MIB, 0);
    for (int i = 0; i < 5000; i++)
        vst_record(VST_ENTER, outer);
    record_leaves(0, 300000);
    for (int i = 0; i < 4990; i++)
        vst_record(VST_EXIT, outer);
    record_leaves(300000, 1000);
    vst_session_finish(session, NULL);
    trace = open_file(&info);
    s = see(trace);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK_INT(s.next[1], 1);
    CHECK(s.outer > 900 && s.outer < 1024);
    vst_trace_close(trace);
    end();
}

static void a_full_disk_makes_it_do_with_what_it_has(void)
{
    struct rlimit old, limit;
    vst_trace_info info;
    vst_trace *trace;
    seen s;

    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 256 * 1024;
    setrlimit(RLIMIT_FSIZE, &limit);
    begin(MIB, 0);
    record_leaves(0, 100000);
    CHECK_INT(vst_session_lost(session), 0);
    vst_session_finish(session, NULL);
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK(file_size() <= 256 * 1024);
    trace = open_file(&info);
    s = see(trace);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK_INT(s.next[1], 1);
    CHECK(info.dropped > 0);
    vst_trace_close(trace);
    end();
}

static void a_window_that_was_dropped_is_gone_and_the_next_one_there(void)
{
    vst_clock_sample between;
    vst_trace_info info;
    vst_trace *trace;
    seen s;

    begin(MIB, 0);
    record_leaves(0, 5000);
    vst_session_stop(session);
    vst_clock_sample_now(&between);
    vst_session_start(session, NULL);
    record_leaves(3, 200000);
    vst_session_finish(session, NULL);
    trace = open_file(&info);
    s = see(trace);
    CHECK_INT(info.windows, 2);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK_INT(s.next[1], 4);
    CHECK(info.start_ns > between.realtime_ns &&
          s.first_ns > between.realtime_ns);
    vst_trace_close(trace);
    end();
}

/* ---- by time ------------------------------------------------------------ */

static int64_t now_ns(void)
{
    vst_clock_sample now;

    vst_clock_sample_now(&now);
    return now.monotonic_ns;
}

/* Works on a machine of any speed: records until the file holds less than half
 * of the recording, and fails only if this never happens. After a pause, in
 * which all records in the file become too old, records for a while longer. */
static void only_what_was_recorded_lately_is_shown(void)
{
    const int64_t keep = 20000000;
    const unsigned most = 20000000;
    vst_trace_info info;
    unsigned i = 0;
    int64_t until;
    vst_trace *trace;
    seen s;

    begin(0, (uint64_t)keep);
    record_outer(VST_ENTER);
    until = now_ns() + 10 * keep;
    for (; now_ns() < until || (file_size() >= (uint64_t)i * 8 && i < most);
         i += 1000) {
        int64_t began = now_ns();
        record_leaves(i, 1000);
        if (now_ns() - began > keep / 4 && until < now_ns() + 2 * keep)
            until = now_ns() + 2 * keep;
    }
    vst_session_finish(session, NULL);
    trace = open_file(&info);
    s = see(trace);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK_INT(s.outer, OUTER);
    CHECK_INT(s.next[1], 1);
    CHECK(s.last_leaf_ns - s.first_ns <= keep + 1000);
    CHECK(info.end_ns - info.start_ns >= keep);
    CHECK(info.dropped > 0);
    CHECK(s.dropped >= info.dropped);
    CHECK(s.leaves < i / 2);
    /* The file's size follows the window and does not grow with time. */
    CHECK(info.bytes < (uint64_t)i * 8);
    vst_trace_close(trace);
    end();
}

int main(void)
{
    TEST(the_newest_records_stay_and_the_others_are_counted);
    TEST(nothing_is_dropped_while_there_is_room);
    TEST(definitions_are_never_dropped);
    TEST(a_bound_that_is_too_small_is_refused);
    TEST(a_stack_too_deep_for_a_checkpoint_is_cut);
    TEST(a_full_disk_makes_it_do_with_what_it_has);
    TEST(a_window_that_was_dropped_is_gone_and_the_next_one_there);
    TEST(only_what_was_recorded_lately_is_shown);
    return checks_end();
}
