/* The clock that the library chooses when it is loaded: its rate, its order
 * between threads, and the times of a trace recorded with this clock. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <vestige/vestige.h>

#include "check.h"

static int64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Returns whether the kernel's clock source is the processor's time stamp
 * counter, according to its name. */
static bool kernel_says(const char *its_name)
{
    char name[64] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/"
                       "current_clocksource",
                       "re");

    if (file == NULL)
        return false;
    if (fgets(name, sizeof name, file) == NULL)
        name[0] = '\0';
    fclose(file);
    name[strcspn(name, "\n")] = '\0';
    return strcmp(name, its_name) == 0;
}

static void the_counter_is_used_where_the_kernel_keeps_time_by_it(void)
{
#if defined(__aarch64__)
    CHECK_INT(vst_clock_in_use, kernel_says("arch_sys_counter")
                                    ? VST_CLOCK_CNTVCT
                                    : VST_CLOCK_MONOTONIC);
#elif defined(__x86_64__)
    if (!kernel_says("tsc"))
        CHECK_INT(vst_clock_in_use, VST_CLOCK_MONOTONIC);
    else
        CHECK(vst_clock_in_use == VST_CLOCK_TSC ||
              vst_clock_in_use == VST_CLOCK_MONOTONIC); /* not invariant */
#else
    CHECK_INT(vst_clock_in_use, VST_CLOCK_MONOTONIC);
#endif
    CHECK_INT(vst_clock_is_at_hand(), vst_clock_in_use != VST_CLOCK_MONOTONIC);
}

/* If the machine delays the test, both clocks continue, so the comparison stays
 * right. */
static void so_many_ticks_are_a_second(void)
{
    double rate = vst_clock_ticks_per_second();
    vst_clock_sample from, to;
    double ns, true_ns;

    vst_clock_sample_now(&from);
    do {
        vst_clock_sample_now(&to);
    } while (to.monotonic_ns - from.monotonic_ns < 20000000);
    ns = (double)(to.ticks - from.ticks) / rate * 1e9;
    true_ns = (double)(to.monotonic_ns - from.monotonic_ns);
    CHECK(fabs(ns - true_ns) < true_ns / 50);
}

/* The processor reports its exact rate. */
static void the_rate_is_the_one_that_the_processor_tells(void)
{
#if defined(__aarch64__)
    uint64_t told;

    __asm__("mrs %0, cntfrq_el0" : "=r"(told));
    CHECK(told >= 1000000);
    if (vst_clock_in_use == VST_CLOCK_CNTVCT)
        CHECK(vst_clock_ticks_per_second() == (double)told);
#endif
}

static void a_sample_is_one_moment_on_three_clocks(void)
{
    vst_clock_sample sample;
    int64_t before = monotonic_ns();
    vst_ticks ticks_before = vst_clock_ticks();

    vst_clock_sample_now(&sample);
    CHECK(sample.ticks >= ticks_before);
    CHECK(sample.ticks <= vst_clock_ticks());
    CHECK(sample.monotonic_ns >= before);
    CHECK(sample.monotonic_ns <= monotonic_ns());
}

/* ---- threads ------------------------------------------------------------ */

enum { THREADS = 4, TURNS = 4000 };

static _Atomic vst_ticks latest;
static atomic_int went_back;

/* The processor may execute the clock read before an earlier load. Our clock
 * waits until the load is done. */
static void finish_loads(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#elif defined(__aarch64__)
    __asm__ volatile("dsb ld\n\tisb" ::: "memory");
#endif
}

/* No thread reads an earlier time than another thread has read and
 * published. */
static void *look_at_the_clock(void *unused)
{
    for (int i = 0; i < TURNS; i++) {
        vst_ticks seen = atomic_load(&latest);
        vst_ticks now;

        finish_loads();
        now = vst_clock_ticks();
        if (now < seen)
            atomic_fetch_add(&went_back, 1);
        while (seen < now && !atomic_compare_exchange_weak(&latest, &seen, now))
            ;
    }
    return unused;
}

static void time_does_not_go_back_from_thread_to_thread(void)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, look_at_the_clock, NULL),
                  0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(atomic_load(&went_back), 0);
}

/* ---- a trace ------------------------------------------------------------ */

static void a_trace_says_which_clock_and_when_it_was(void)
{
    char path[] = "/tmp/vestige-test-clock-XXXXXX";
    vst_session_options options = {.path = path, .overwrite = true};
    vst_session *session = NULL;
    vst_clock_sample before, after;
    vst_trace *trace = NULL;
    vst_trace_info info = {0};

    close(mkstemp(path));
    vst_clock_sample_now(&before);
    CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    vst_session_destroy(session);
    vst_clock_sample_now(&after);
    CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.clock, vst_clock_in_use);
    CHECK(info.start_ns >= before.realtime_ns - 1000000);
    CHECK(info.end_ns <= after.realtime_ns + 1000000);
    vst_trace_close(trace);
    unlink(path);
}

int main(void)
{
    TEST(the_counter_is_used_where_the_kernel_keeps_time_by_it);
    TEST(so_many_ticks_are_a_second);
    TEST(the_rate_is_the_one_that_the_processor_tells);
    TEST(a_sample_is_one_moment_on_three_clocks);
    TEST(time_does_not_go_back_from_thread_to_thread);
    TEST(a_trace_says_which_clock_and_when_it_was);
    return checks_end();
}
