/* Tracebacks with several threads. A deadlock that must not happen: one thread
 * holds the interpreter's lock and waits for a device's lock, another thread
 * holds the device's lock and drops a traceback. Also counts and tables with
 * many threads, and a fork while they run. Runs under the thread sanitizer,
 * too. */
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "fake_unwinder.h"
#include "traceback/traceback.h"

#if defined(__SANITIZE_THREAD__)
enum { ROUNDS = 20000, RACES = 20000 };
#else
enum { ROUNDS = 100000, RACES = 100000 };
#endif

enum { CODES = 64, THREADS = 4 };

static pthread_mutex_t interpreter = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t device = PTHREAD_MUTEX_INITIALIZER;
static fake_code codes[CODES];

/* Frames of the calling thread, selected by a number. */
typedef struct stack {
    fake_code *codes[8];
    uint32_t numbers[8];
} stack;

static void set_stack(stack *s, uint32_t number)
{
    for (uint32_t i = 0; i < 8; i++) {
        s->codes[i] = &codes[(number + i) % CODES];
        s->numbers[i] = number * 8 + i;
    }
    fake_frames = (fake_stack){s->codes, s->numbers, 1 + number % 8};
}

static long references(void)
{
    long sum = 0;

    for (int i = 0; i < CODES; i++)
        sum += atomic_load(&codes[i].references);
    return sum;
}

static void nothing_is_left(void)
{
    vst_traceback_free_dead();
    CHECK_INT(vst__table_count(), 0);
    CHECK_INT(references(), 0);
}

/* ---- the deadlock ------------------------------------------------------- */

typedef struct dance {
    void (*release)(vst_traceback *traceback);
    pthread_barrier_t both_hold; /* both threads hold their first lock */
    pthread_barrier_t ends;
    vst_traceback *dropped;
    int rounds;
    atomic_bool is_stuck;
} dance;

/* A thread that cannot take a lock within this time counts as deadlocked. */
static bool lock_in_time(pthread_mutex_t *mutex, long ms)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return pthread_mutex_timedlock(mutex, &until) == 0;
}

/* A destructor that takes the interpreter's lock, as destructors must not. */
static dance *wrong_dance;

static void release_inside_of_the_interpreter(vst_traceback *traceback)
{
    if (lock_in_time(&interpreter, 200)) {
        vst_traceback_release(traceback);
        vst_traceback_free_dead();
        pthread_mutex_unlock(&interpreter);
    } else {
        atomic_store(&wrong_dance->is_stuck, true);
        vst_traceback_release(traceback);
    }
}

/* Holds the device's lock while it drops the last reference. */
static void *drop_under_the_device(void *arg)
{
    dance *d = arg;

    for (int i = 0; i < d->rounds; i++) {
        pthread_mutex_lock(&device);
        pthread_barrier_wait(&d->both_hold);
        d->release(d->dropped);
        pthread_mutex_unlock(&device);
        pthread_barrier_wait(&d->ends);
    }
    return NULL;
}

/* Holds the interpreter's lock, then waits for the device's lock, then
 * captures. */
static void dance_with(dance *d)
{
    pthread_t other;
    stack own;

    vst_unwinder_install(&fake_unwinder);
    fake_lock = &interpreter;
    pthread_barrier_init(&d->both_hold, NULL, 2);
    pthread_barrier_init(&d->ends, NULL, 2);
    pthread_create(&other, NULL, drop_under_the_device, d);
    for (int i = 0; i < d->rounds; i++) {
        vst_traceback *more;

        pthread_mutex_lock(&interpreter);
        fake_has_lock = true;
        set_stack(&own, (uint32_t)i % 64);
        d->dropped = vst_traceback_capture(VST_TRACEBACK_LANGUAGE, 0);
        pthread_barrier_wait(&d->both_hold);
        pthread_mutex_lock(&device);
        more = vst_traceback_capture(VST_TRACEBACK_LANGUAGE, 0);
        pthread_mutex_unlock(&device);
        vst_traceback_release(more);
        fake_has_lock = false;
        pthread_mutex_unlock(&interpreter);
        pthread_barrier_wait(&d->ends);
    }
    pthread_join(other, NULL);
    pthread_barrier_destroy(&d->both_hold);
    pthread_barrier_destroy(&d->ends);
}

static void the_last_release_under_a_lock_waits_for_no_interpreter(void)
{
    dance d = {.release = vst_traceback_release, .rounds = ROUNDS};

    dance_with(&d);
    nothing_is_left();
}

static void a_release_that_takes_the_interpreters_lock_would_hang(void)
{
    dance d = {.release = release_inside_of_the_interpreter, .rounds = 1};

    wrong_dance = &d;
    dance_with(&d);
    CHECK(atomic_load(&d.is_stuck));
    nothing_is_left();
}

/* ---- races -------------------------------------------------------------- */

static _Atomic(vst_traceback *) handed[THREADS];

/* Captures the same few stacks as all threads, keeps some tracebacks, and hands
 * others over. */
static void *race(void *arg)
{
    size_t own = (size_t)(uintptr_t)arg;
    vst_traceback *kept[16] = {NULL};
    uint32_t seed = (uint32_t)own + 1;
    stack frames;

    for (int i = 0; i < RACES / THREADS; i++) {
        uint32_t number, place;
        uintptr_t address;
        vst_traceback *taken;
        vst_language_frames now;

        seed = seed * 1664525 + 1013904223;
        number = seed >> 28;
        place = (seed >> 20) % 16;
        address = number + 1;

        set_stack(&frames, number);
        if (seed & 1 << 16)
            taken = vst_traceback_of(&address, 1);
        else
            taken = vst_traceback_capture(VST_TRACEBACK_LANGUAGE, 0);
        vst_traceback_release(kept[place]);
        kept[place] = vst_traceback_retain(taken);
        vst_traceback_release(
            atomic_exchange(&handed[(own + 1) % THREADS], taken));
        if (seed % 64 == 0) {
            pthread_mutex_lock(&interpreter);
            vst_traceback_free_dead();
            pthread_mutex_unlock(&interpreter);
        }
        now = vst_traceback_language(kept[place]);
        if (now.count != 0 && now.instructions[0] != number * 8)
            abort();
    }
    for (int i = 0; i < 16; i++)
        vst_traceback_release(kept[i]);
    return NULL;
}

static void counts_are_right_whatever_threads_do(void)
{
    pthread_t threads[THREADS];

    fake_lock = &interpreter;
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, race, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < THREADS; i++)
        vst_traceback_release(atomic_exchange(&handed[i], NULL));
    nothing_is_left();
}

/* ---- fork --------------------------------------------------------------- */

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CAN_FORK /* sanitizers' own locks are not free in a child */
static atomic_bool has_forked;

static void *work_on(void *arg)
{
    uintptr_t address = 0;

    (void)arg;
    while (!atomic_load(&has_forked)) {
        vst_traceback *taken;
        vst_symbols *symbols;

        address = (address + 1) % 64;
        taken = vst_traceback_of(&address, 1);
        symbols = NULL;
        vst_traceback_symbolize(&taken, 1, 0, &symbols, NULL);
        vst_symbols_free(symbols);
        vst_traceback_release(taken);
        vst_traceback_release(vst_traceback_capture(VST_TRACEBACK_NATIVE, 0));
    }
    return NULL;
}

/* The child captures and names a traceback. If a lock blocks the child, an
 * alarm ends it. */
static void a_forked_child_finds_every_lock_free(void)
{
    uint32_t min_native = vst_traceback_has_native() ? 3 : 0;
    pthread_t thread;

    pthread_create(&thread, NULL, work_on, NULL);
    for (int i = 0; i < 50; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            uintptr_t address = 1;
            vst_traceback *taken;
            vst_symbols *symbols;
            alarm(20);
            taken = vst_traceback_of(&address, 1);
            symbols = NULL;
            vst_traceback_symbolize(&taken, 1, 0, &symbols, NULL);
            taken = vst_traceback_capture(VST_TRACEBACK_NATIVE, 0);
            _exit(symbols != NULL && taken->native >= min_native ? 0 : 1);
        }
        if (!CHECK(child > 0) || waitpid(child, &status, 0) != child)
            break;
        if (!CHECK_INT(status, 0))
            break;
    }
    atomic_store(&has_forked, true);
    pthread_join(thread, NULL);
    nothing_is_left();
}
#endif

int main(void)
{
    TEST(the_last_release_under_a_lock_waits_for_no_interpreter);
    TEST(a_release_that_takes_the_interpreters_lock_would_hang);
    TEST(counts_are_right_whatever_threads_do);
#ifdef CAN_FORK
    TEST(a_forked_child_finds_every_lock_free);
#endif
    return checks_end();
}
