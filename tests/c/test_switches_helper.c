/* vestige's thread that reads switches: when the thread runs, how forks treat
 * it, and what is reported if the thread cannot keep up. If the system reports
 * no switches, the tests that need them do nothing. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "switches_session.h"

static void the_helper_is_there_while_it_is_recorded(void)
{
    unsigned before = count_threads();
    vst_trace *trace;

    if (!can_see())
        return;
    start();
    CHECK_INT(count_threads(), before);
    vst_record(VST_ENTER, works_id);
    CHECK_INT(count_threads(), before + 1);
    vst_record(VST_EXIT, works_id);
    trace = stop();
    CHECK_INT(count_threads(), before);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    works();
    CHECK_INT(count_threads(), before + 1);
    vst_trace_close(trace);
    trace = stop();
    CHECK_INT(of[works_id].known, 2);
    end(trace);
}

static unsigned threads_after_fork;

static void look_after_fork(void)
{
    threads_after_fork = count_threads();
}

static int record_in_a_child(void)
{
    vst_trace *trace;
    int failed = checks_bad;

    start();
    works();
    trace = stop();
    CHECK_INT(of[works_id].known, 1);
    end(trace);
    return checks_bad != failed;
}

/* The helper is stopped for a while after a fork. When it continues, it finds a
 * full chunk. */
static void record_until_there_are(unsigned threads)
{
    int64_t began = cpu_ns();

    while (count_threads() != threads && cpu_ns() - began < 10000000000)
        for (int record = 0; record < 1000; record++) {
            vst_record(VST_ENTER, works_id);
            vst_record(VST_EXIT, works_id);
        }
    CHECK_INT(count_threads(), threads);
}

static void a_fork_finds_no_helper_and_its_child_records_anew(void)
{
    unsigned before = count_threads();
    vst_session *outer;
    vst_trace *trace;
    int status;
    pid_t child;

    if (!can_see())
        return;
    start();
    works();
    CHECK_INT(count_threads(), before + 1);
    outer = session;
    child = fork();
    if (child == 0) {
        vst_record(VST_ENTER, works_id); /* into nothing */
        _exit(record_in_a_child());
    }
    CHECK_INT(threads_after_fork, before);
    session = outer;
    sleeps();
    record_until_there_are(before + 1);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    trace = stop();
    CHECK_INT(of[sleeps_id].known, 1);
    CHECK_INT(of[works_id].known, of[works_id].spans);
    end(trace);
}

/* The process ends with its last thread; the helper does not keep it alive. */
static void it_does_not_keep_a_process_alive(void)
{
    int status = 0;
    pid_t child;

    if (!can_see())
        return;
    child = fork();
    if (child == 0) {
        start();
        works();
        pthread_exit(NULL);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Returns the mask of the signals that the other thread blocks. */
static unsigned long long blocked_by_the_other(void)
{
    char path[64], line[256];
    unsigned long long blocked = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%d/status", other);
    file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "SigBlk: %llx", &blocked);
    if (file != NULL)
        fclose(file);
    return blocked;
}

/* All signals except SIGBUS, by which the system reports that the file was cut.
 * A thread begins with all signals blocked, and sets its own mask a moment
 * later. */
static void it_takes_no_signals(void)
{
    unsigned long long blocked;
    unsigned before = count_threads();

    if (!can_see())
        return;
    start();
    record_until_there_are(before + 1);
    for (int tries = 0; tries < 1000; tries++) {
        blocked = blocked_by_the_other();
        if (!(blocked >> (SIGBUS - 1) & 1))
            break;
        sleep_ms(10);
    }
    CHECK(blocked >> (SIGTERM - 1) & 1);
    CHECK(blocked >> (SIGINT - 1) & 1);
    CHECK(blocked >> (SIGPROF - 1) & 1);
    CHECK(!(blocked >> (SIGBUS - 1) & 1));
    end(stop());
}

static int fork_and_wait(void)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    return waitpid(child, &status, 0) == child ? status : -1;
}

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

/* More switches than a ring buffer holds, and none after them. */
static void what_was_lost_last_is_not_known(void)
{
    vst_trace *trace;

    if (!can_see())
        return;
    start();
    works();
    CHECK_INT(fork_and_wait(), 0); /* the helper is gone now */
    vst_record(VST_ENTER, sleeps_id);
    for (int i = 0; i < 5000; i++)
        sleep_us(1);
    vst_record(VST_EXIT, sleeps_id);
    trace = stop();
    CHECK_INT(of[sleeps_id].spans, 1);
    CHECK_INT(of[sleeps_id].known, 0);
    CHECK_INT(of[works_id].known, 1);
    end(trace);
}

/* Forks by a direct system call, which the C library does not see. */
static void a_child_that_nobody_was_told_of_can_end(void)
{
    int status = 0;
    pid_t child;

    if (!can_see())
        return;
    start();
    works();
    child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) {
        alarm(10);
        vst_session_destroy(session);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    end(stop());
}

int main(void)
{
    pthread_atfork(NULL, look_after_fork, NULL);
    TEST(the_helper_is_there_while_it_is_recorded);
    TEST(a_fork_finds_no_helper_and_its_child_records_anew);
    TEST(it_does_not_keep_a_process_alive);
    TEST(it_takes_no_signals);
    TEST(what_was_lost_last_is_not_known);
    TEST(a_child_that_nobody_was_told_of_can_end);
    return checks_end();
}
