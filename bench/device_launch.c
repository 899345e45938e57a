/* Measures the cost of a launch for the launching thread while a device is
 * recorded: a call of the runtime is timed and delivered, as in
 * examples/c/device, on THREADS threads in parallel.
 *
 *   device_launch LAUNCHES THREADS [LIMIT]
 *
 * Prints the CPU time of a launch in nanoseconds, the least of ROUNDS rounds:
 * with a collector, and without one. Fails if the time with a collector is
 * above LIMIT. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <vestige/vestige.h>

enum { ROUNDS = 10, THREADS_MAX = 64 };

static vst_recording *recording; /* NULL: nothing is collected; atomic */
static uint32_t device;
static vst_id name_id;
static long launches;

/* ---- a collector that has nothing to collect ---------------------------- */

static vst_status start(vst_collector *collector)
{
    (void)collector;
    return VST_OK;
}

static void ignore(vst_collector *collector)
{
    (void)collector;
}

static const vst_collector_ops ops = {start, NULL, ignore, ignore};
static vst_collector the_collector = {&ops};

static vst_status make(vst_recording *made_for, vst_collector **collector)
{
    const vst_device one = {.platform = "none", .name = "nothing"};
    const vst_definition name = {
        .kind = (vst_definition_kind)VST_DEF_ACTIVITY,
        .name = "launch",
        .name_len = 6,
        .file = "",
    };

    *collector = &the_collector;
    vst_recording_define_id(made_for, &name, &name_id);
    __atomic_store_n(&recording, made_for, __ATOMIC_RELEASE);
    return vst_device_declare(made_for, &one, &device);
}

/* ---- launches ----------------------------------------------------------- */

static void launch(uint64_t correlation)
{
    vst_recording *to = __atomic_load_n(&recording, __ATOMIC_ACQUIRE);
    vst_activity call;

    if (to == NULL)
        return;
    call = (vst_activity){
        .kind = VST_ACTIVITY_RUNTIME,
        .device = device,
        .id = name_id,
        .correlation = correlation,
        .start = vst_clock_ticks(),
    };
    call.end = vst_clock_ticks();
    vst_device_deliver(to, &call);
}

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void *run(void *result)
{
    double began = cpu_ns();

    for (long i = 0; i < launches; i++)
        launch((uint64_t)i + 1);
    *(double *)result = (cpu_ns() - began) / (double)launches;
    return NULL;
}

static double round_of(int threads)
{
    pthread_t all[THREADS_MAX];
    double results[THREADS_MAX], sum = 0;

    for (int i = 0; i < threads; i++)
        if (pthread_create(&all[i], NULL, run, &results[i]) != 0)
            exit(2);
    for (int i = 0; i < threads; i++) {
        pthread_join(all[i], NULL);
        sum += results[i];
    }
    return sum / threads;
}

static double with_collector(int threads)
{
    const vst_session_options options = {.devices = true};
    vst_session *session;
    double ns;

    if (vst_session_create(&options, &session, NULL) != VST_OK ||
        vst_session_start(session, NULL) != VST_OK)
        exit(2);
    ns = round_of(threads);
    __atomic_store_n(&recording, NULL, __ATOMIC_RELEASE);
    if (vst_session_lost(session) != 0) {
        fprintf(stderr, "device_launch: activities were lost\n");
        exit(2);
    }
    vst_session_destroy(session);
    return ns;
}

int main(int argc, char **argv)
{
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    double limit = argc > 3 ? atof(argv[3]) : 1e9;
    double least = 1e9, least_without = 1e9;

    launches = argc > 1 ? atol(argv[1]) : 1000000;
    if (launches < 1 || threads < 1 || threads > THREADS_MAX)
        return 2;
    vst_collector_register("none", make);
    for (int i = 0; i < ROUNDS; i++) {
        double ns = with_collector(threads), without = round_of(threads);

        least = ns < least ? ns : least;
        least_without = without < least_without ? without : least_without;
    }
    printf("a launch: %.1f ns recorded, %.1f ns without a collector\n", least,
           least_without);
    return least > limit;
}
