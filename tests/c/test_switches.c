/* Records when threads ran on a processor: threads that sleep, threads that
 * work, and threads that the system does not report. If the system reports
 * none, the tests that need switches do nothing. */
#include <pthread.h>

#include "record/recording.h"
#include "refuse_perf_events.h"
#include "switches_session.h"

static void what_sleeps_runs_for_less_than_it_takes(void)
{
    vst_trace *trace;

    if (!can_see())
        return;
    start();
    sleeps();
    works();
    trace = stop();
    CHECK_INT(of[sleeps_id].known, 1);
    CHECK(of[sleeps_id].running_ns < of[sleeps_id].total_ns / 2);
    CHECK_INT(of[works_id].known, 1);
    CHECK(of[works_id].running_ns > worked_ns / 2);
    end(trace);
}

static void without_the_option_nothing_is_told(void)
{
    unsigned before = count_threads();
    vst_trace *trace;

    start_with(&(vst_session_options){.sched = false});
    sleeps();
    CHECK_INT(count_threads(), before);
    trace = stop();
    CHECK_INT(of[sleeps_id].spans, 1);
    CHECK_INT(of[sleeps_id].known, 0);
    end(trace);
}

static void *sleep_on_a_thread(void *unused)
{
    sleeps();
    return unused;
}

static void on_threads(pthread_t *threads, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, sleep_on_a_thread, NULL),
                  0);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* Switches of a thread are recorded from its first record on; for this record,
 * the thread needs the lock. */
static void a_wait_for_the_recorder_is_no_part_of_what_a_thread_ran(void)
{
    pthread_t thread;
    vst_trace *trace;

    if (!can_see())
        return;
    start();
    works();
    vst__recorder_take();
    CHECK_INT(pthread_create(&thread, NULL, sleep_on_a_thread, NULL), 0);
    sleep_ms(300);
    vst__recorder_give();
    pthread_join(thread, NULL);
    trace = stop();
    CHECK_INT(of[sleeps_id].known, 1);
    CHECK(of[sleeps_id].total_ns > 250000000);
    CHECK(of[sleeps_id].running_ns < 100000000);
    end(trace);
}

static void threads_are_told_apart(void)
{
    enum { COUNT = 50 };
    pthread_t threads[COUNT];
    vst_trace *trace;
    vst_trace_info info;

    if (!can_see())
        return;
    start();
    works();
    on_threads(threads, COUNT);
    trace = stop();
    CHECK_INT(of[sleeps_id].known, COUNT);
    CHECK(of[sleeps_id].running_ns < of[sleeps_id].total_ns / 2);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.threads, COUNT + 1);
    end(trace);
}

static void a_system_that_refuses_takes_nothing_else_away(void)
{
    pthread_t threads[4];
    vst_trace *trace;

    refuse_with = EACCES;
    refuse_after = 0;
    CHECK_INT(vst_session_can_see_switches(), EACCES);
    start();
    sleeps();
    on_threads(threads, 4);
    trace = stop();
    refuse_with = 0;
    CHECK_INT(of[sleeps_id].spans, 5);
    CHECK_INT(of[sleeps_id].known, 0);
    CHECK_TEXT(vst_trace_metadata(trace, "vestige.switches"),
               "{\"threads\": 5, \"refused\": 5, \"errno\": 13}");
    end(trace);
}

static void where_it_refuses_some_the_others_are_known(void)
{
    pthread_t threads[4];
    vst_trace *trace;

    if (!can_see())
        return;
    refuse_with = EPERM;
    refuse_after = 1;
    start();
    sleeps();
    on_threads(threads, 4);
    trace = stop();
    refuse_with = 0;
    CHECK_INT(of[sleeps_id].spans, 5);
    CHECK_INT(of[sleeps_id].known, 1);
    CHECK_TEXT(vst_trace_metadata(trace, "vestige.switches"),
               "{\"threads\": 5, \"refused\": 4, \"errno\": 1}");
    end(trace);
}

static void
what_ran_before_a_range_of_a_bounded_file_is_known_all_the_same(void)
{
    const vst_session_options options = {.sched = true, .max_size = 1 << 20};
    vst_trace *trace;
    vst_trace_info info;

    if (!can_see())
        return;
    start_with(&options);
    for (unsigned i = 0; i < 400000; i++) {
        vst_record(VST_ENTER, works_id);
        vst_record(VST_EXIT, works_id);
        if (i % 20000 == 0)
            sleep_ms(2);
    }
    sleeps();
    trace = stop();
    vst_trace_get_info(trace, &info);
    CHECK(info.dropped != 0);
    CHECK(of[works_id].spans > 1000);
    CHECK_INT(of[works_id].known, of[works_id].spans);
    CHECK_INT(of[sleeps_id].known, 1);
    CHECK(of[sleeps_id].running_ns < of[sleeps_id].total_ns / 2);
    end(trace);
}

/* Reads the file as after a kill: only with the switches that the helper has
 * already written. */
static void what_was_told_can_be_read_while_it_is_recorded(void)
{
    vst_trace *trace = NULL;

    if (!can_see())
        return;
    start();
    sleeps();
    sleep_ms(300);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    replay(trace);
    CHECK_INT(of[sleeps_id].known, 1);
    vst_trace_close(trace);
    trace = stop();
    end(trace);
}

int main(void)
{
    TEST(what_sleeps_runs_for_less_than_it_takes);
    TEST(without_the_option_nothing_is_told);
    TEST(a_wait_for_the_recorder_is_no_part_of_what_a_thread_ran);
    TEST(threads_are_told_apart);
    TEST(a_system_that_refuses_takes_nothing_else_away);
    TEST(where_it_refuses_some_the_others_are_known);
    TEST(what_ran_before_a_range_of_a_bounded_file_is_known_all_the_same);
    TEST(what_was_told_can_be_read_while_it_is_recorded);
    return checks_end();
}
