/* The clock: chosen once when the library is loaded, constant after that. Any
 * thread. The TSC is used where the processor says that it ticks at one rate in
 * every power state and the kernel itself keeps time by it, which is the
 * kernel's word that it agrees between cores. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <vestige/clock.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

vst_clock_kind vst_clock_in_use = VST_CLOCK_MONOTONIC;

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

/* Ticks are read twice around the other clocks and the tightest of a few tries
 * is kept: an interrupt in between would put the three moments apart. */
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

/* The longer the library has been loaded the better the rate is known; half a
 * millisecond, the least it waits for, is good to about one in ten thousand. */
double vst_clock_ticks_per_second(void)
{
    vst_clock_sample now;

    if (vst_clock_in_use == VST_CLOCK_MONOTONIC)
        return 1e9;
    do {
        vst_clock_sample_now(&now);
    } while (now.monotonic_ns - loaded_at.monotonic_ns < 500000);
    return (double)(now.ticks - loaded_at.ticks) * 1e9 /
           (double)(now.monotonic_ns - loaded_at.monotonic_ns);
}

#if defined(__x86_64__)
static int tsc_is_invariant(void)
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && edx >> 8 & 1;
}

static int kernel_keeps_time_by_tsc(void)
{
    char name[16] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/"
                       "current_clocksource",
                       "re");

    if (file == NULL)
        return 0;
    int found =
        fgets(name, sizeof name, file) != NULL && strcmp(name, "tsc\n") == 0;
    fclose(file);
    return found;
}
#endif

__attribute__((constructor)) static void choose_clock(void)
{
#if defined(__x86_64__)
    if (kernel_keeps_time_by_tsc() && tsc_is_invariant())
        vst_clock_in_use = VST_CLOCK_TSC;
#endif
    vst_clock_sample_now(&loaded_at);
}
