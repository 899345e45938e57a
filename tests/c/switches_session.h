/* Recordings of switches for tests: work that sleeps, work that does not, the
 * running time of both according to the trace, and the threads of the
 * process. */
#ifndef VST_TEST_SWITCHES_SESSION_H
#define VST_TEST_SWITCHES_SESSION_H

#include <dirent.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <vestige/vestige.h>

#include "check.h"
#include "one_session.h"

static vst_id sleeps_id, works_id;

static void start_with(const vst_session_options *options)
{
    CHECK_INT(vst_session_create(options, &session, NULL), VST_OK);
    sleeps_id = define("sleeps");
    works_id = define("works");
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
}

static void start(void)
{
    start_with(&(vst_session_options){.sched = true});
}

static void sleep_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0)
        ;
}

static void sleeps(void)
{
    vst_record(VST_ENTER, sleeps_id);
    sleep_ms(40);
    vst_record(VST_EXIT, sleeps_id);
}

static int64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t worked_ns; /* working time, by the thread's CPU clock */

static void works(void)
{
    int64_t began = cpu_ns();

    vst_record(VST_ENTER, works_id);
    while (cpu_ns() - began < 20000000)
        ;
    worked_ns = cpu_ns() - began;
    vst_record(VST_EXIT, works_id);
}

typedef struct sums {
    size_t spans, known;
    int64_t total_ns, running_ns; /* times of the calls whose running time is
                                   * known */
} sums;

static sums of[3]; /* by id */

static vst_status add_span(void *ctx, const vst_span *span)
{
    sums *sum = &of[span->id < 3 ? span->id : 0];

    (void)ctx;
    sum->spans++;
    if (span->running_ns != VST_RUNNING_UNKNOWN) {
        sum->known++;
        sum->total_ns += span->end_ns - span->start_ns;
        sum->running_ns += span->running_ns;
        CHECK(span->running_ns >= 0);
        CHECK(span->running_ns <= span->end_ns - span->start_ns);
    }
    return VST_OK;
}

static void replay(vst_trace *trace)
{
    const vst_sink sink = {.span = add_span};

    memset(of, 0, sizeof of);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
}

static vst_trace *stop(void)
{
    vst_trace *trace = NULL;

    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    replay(trace);
    return trace;
}

static void end(vst_trace *trace)
{
    vst_trace_close(trace);
    vst_session_destroy(session);
    session = NULL;
    vst_thread_release();
}

static int other; /* the id of a thread other than the first, set by
                   * count_threads() */

static unsigned count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;
    unsigned count = 0;

    while ((entry = readdir(folder)) != NULL) {
        int thread = atoi(entry->d_name);

        count += thread != 0;
        if (thread != 0 && thread != getpid())
            other = thread;
    }
    closedir(folder);
    return count;
}

static bool can_see(void)
{
    return vst_session_can_see_switches() == 0;
}

#endif
