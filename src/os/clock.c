/* The clock, chosen once when the library is loaded and constant after that.
 * Any thread.
 *
 * A counter of the processor is used if the kernel itself keeps time by that
 * counter, because the kernel then vouches that it agrees between cores. On
 * x86-64 the processor must also say that the counter ticks at one rate in
 * every power state; on aarch64 the specification promises that, and the kernel
 * works around errata. An aarch64 processor also reports the counter's rate,
 * which firmware may have set wrong, so we compare it with a measured rate. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <vestige/record.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

VST_READ_BY_HOOKS vst_clock_kind vst_clock_in_use = VST_CLOCK_MONOTONIC;

static vst_clock_sample loaded_at;

static int64_t read_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

vst_ticks vst_clock_ticks_portable(void)
{
    return (vst_ticks)read_ns(CLOCK_MONOTONIC);
}

/* Reads the ticks before and after the other clocks, and keeps the narrowest of
 * a few tries, because an interrupt in between would separate the three
 * moments. */
void vst_clock_sample_now(vst_clock_sample *sample)
{
    vst_ticks best = UINT64_MAX;

    for (int i = 0; i < 3; i++) {
        vst_ticks before = vst_clock_ticks();
        int64_t monotonic = read_ns(CLOCK_MONOTONIC);
        vst_ticks after = vst_clock_ticks();

        if (after - before < best) {
            best = after - before;
            sample->ticks = before + (after - before) / 2;
            sample->monotonic_ns = monotonic;
            sample->realtime_ns = read_ns(CLOCK_REALTIME);
        }
    }
}

/* Measures the rate since the library was loaded; the longer that is, the
 * better. Waits until at least half a millisecond has passed, which gives an
 * error of about one in ten thousand. */
static double measure_rate(void)
{
    vst_clock_sample now;

    do {
        vst_clock_sample_now(&now);
    } while (now.monotonic_ns - loaded_at.monotonic_ns < 500000);
    return (double)(now.ticks - loaded_at.ticks) * 1e9 /
           (double)(now.monotonic_ns - loaded_at.monotonic_ns);
}

/* Returns ticks per second as the processor reports them, 0 if it does not. */
static double reported_rate(void)
{
#if defined(__aarch64__)
    uint64_t rate;

    __asm__("mrs %0, cntfrq_el0" : "=r"(rate));
    return (double)(uint32_t)rate; /* the upper half is reserved */
#else
    return 0;
#endif
}

double vst_clock_ticks_per_second(void)
{
    double measured, told = reported_rate();

    if (vst_clock_in_use == VST_CLOCK_MONOTONIC)
        return 1e9;
    measured = measure_rate();
    return fabs(measured - told) < told / 100 ? told : measured;
}

#ifdef VST_CLOCK_AT_HAND
/* Returns whether the processor says that its counter is steady; the caller
 * asks the kernel after that. */
static bool counter_is_steady(void)
{
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && edx >> 8 & 1;
#else
    return true;
#endif
}

static bool kernel_keeps_time_by_it(void)
{
    const char *its_name =
        VST_CLOCK_AT_HAND == VST_CLOCK_TSC ? "tsc\n" : "arch_sys_counter\n";
    char name[32] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/"
                       "current_clocksource",
                       "re");
    bool found;

    if (file == NULL)
        return false;
    found =
        fgets(name, sizeof name, file) != NULL && strcmp(name, its_name) == 0;
    fclose(file);
    return found;
}
#endif

__attribute__((constructor)) static void choose_clock(void)
{
#ifdef VST_CLOCK_AT_HAND
    if (kernel_keeps_time_by_it() && counter_is_steady())
        vst_clock_in_use = VST_CLOCK_AT_HAND;
#endif
    vst_clock_sample_now(&loaded_at);
}
