/* The hooks in programs with threads: each thread's records equal its calls,
 * while other threads run, end, fork, are interrupted or stop the recording.
 * The argument is the library that makes all calls, see memory_oracle.h. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory_session.h"
#include "oracle_session.h"

enum { THREADS = 8, CALLS = 5000, MANY = 1000, SIGNAL_SIZE = 123457 };

static const vst_memory_options all = {.native_allocators = true};
static const oracle *o;

/* ---- threads ------------------------------------------------------------ */

typedef struct worker {
    pthread_t thread;
    oracle_log log;
    uint64_t seed;
} worker;

static void *work(void *argument)
{
    worker *w = argument;

    o->run(w->seed, CALLS, &w->log);
    return NULL;
}

/* Returns whether the recorded events of a thread begin with the noted
 * events. */
static bool has_done(uint32_t thread, const oracle_log *log)
{
    size_t at = 0;

    for (size_t i = 0; i < memory_count && at < log->count; i++)
        if (memory_events[i].thread == thread &&
            !oracle_is_same(&memory_events[i], &log->events[at++]))
            return false;
    return at == log->count;
}

static void every_thread_is_recorded_as_it_was(void)
{
    static worker workers[THREADS];
    size_t noted = 0, found = 0;

    memory_begin(&all);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.log = {calloc(4 * CALLS, sizeof(oracle_event)),
                                      0, 4 * CALLS, false},
                              .seed = i};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    memory_end();
    for (size_t i = 0; i < THREADS; i++) {
        noted += workers[i].log.count;
        for (uint32_t thread = 1; thread < 100; thread++)
            if (has_done(thread, &workers[i].log)) {
                found++;
                break;
            }
        free(workers[i].log.events);
    }
    CHECK_INT(found, THREADS);
    CHECK_INT(memory_count, noted);
    CHECK(memory_count > 0 && memory_events[memory_count - 1].live_count == 0);
}

/* ---- ends --------------------------------------------------------------- */

static pthread_key_t key;

/* Sets the key again, so that the destructor gets a second round. */
static void free_late(void *block)
{
    void **next = *(void **)block;

    o->free(block);
    if (next != NULL)
        pthread_setspecific(key, next);
}

static void *take_and_leave(void *argument)
{
    void **first = o->malloc(64), **second = o->malloc(64);

    first[0] = second;
    second[0] = NULL;
    pthread_setspecific(key, first);
    return argument;
}

static void what_ends_with_its_thread_is_recorded(void)
{
    memory_begin(&all);
    for (int i = 0; i < MANY; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, take_and_leave, NULL) != 0)
            abort();
        pthread_join(thread, NULL);
    }
    memory_end();
    CHECK_INT(memory_count, 4 * MANY);
    CHECK_INT(memory_events[memory_count - 1].live_count, 0);
}

static void *free_it(void *block)
{
    o->free(block);
    return NULL;
}

static void another_thread_may_free_a_block(void)
{
    pthread_t thread;
    void *block;

    memory_begin(&all);
    block = o->malloc(1000);
    pthread_create(&thread, NULL, free_it, block);
    pthread_join(thread, NULL);
    memory_end();
    CHECK_INT(memory_count, 2);
    CHECK(memory_events[0].thread != memory_events[1].thread);
    CHECK_INT(memory_events[1].serial, memory_events[0].serial);
    CHECK_INT(memory_events[1].flags, VST_MEMORY_FREES);
}

/* ---- start and stop ----------------------------------------------------- */

static atomic_bool is_over;
static atomic_int told; /* the number of calls of tell_stack() */
static atomic_bool may_be_told;
static atomic_int told_too_late;

static vst_stack_id tell_stack(unsigned *flags)
{
    *flags = VST_MEMORY_UNLOCKED;
    told++;
    if (!may_be_told)
        told_too_late++;
    return 0;
}

/* While another thread forks, no thread may enter a sanitizer's allocator,
 * because the child would wait for its lock for ever. The program's own
 * allocator may be entered. */
static pthread_mutex_t sanitized_fork = PTHREAD_MUTEX_INITIALIZER;

static void *run_on(void *argument)
{
    (void)argument;
    while (!is_over) {
        if (SANITIZED)
            pthread_mutex_lock(&sanitized_fork);
        for (int i = 0; i < 100; i++)
            o->free(o->malloc(100));
        if (SANITIZED)
            pthread_mutex_unlock(&sanitized_fork);
    }
    return NULL;
}

static void nobody_is_asked_for_a_stack_after_stop(void)
{
    vst_memory_options options = all;
    pthread_t threads[2];

    options.stack = tell_stack;
    is_over = false;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, run_on, NULL);
    for (int i = 0; i < 10; i++) {
        int before;

        may_be_told = true;
        before = told;
        memory_begin(&options);
        for (int wait = 0; wait < 50000 && told == before; wait++)
            usleep(200);
        vst_memory_stop();
        may_be_told = false;
        memory_end();
    }
    is_over = true;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(told > 0);
    CHECK_INT(told_too_late, 0);
}

/* ---- signals ------------------------------------------------------------ */

static void map_in_handler(int number)
{
    (void)number;
    o->map(SIGNAL_SIZE);
}

static void *interrupt(void *thread)
{
    while (!is_over) {
        pthread_kill(*(pthread_t *)thread, SIGUSR1);
        usleep(50);
    }
    return NULL;
}

/* Mappings of the handler during code of the recorder are not recorded;
 * everything else is. */
static void a_signal_may_come_at_any_moment(void)
{
    static oracle_event events[16 * CALLS];
    oracle_log log = {events, 0, sizeof events / sizeof *events, false};
    pthread_t self = pthread_self(), thread;
    struct sigaction action = {.sa_handler = map_in_handler};
    size_t at = 0, mapped = 0;

    is_over = false;
    sigaction(SIGUSR1, &action, NULL);
    memory_begin(&all);
    o->run(4, 10, &log); /* the first event takes memory for the thread */
    raise(SIGUSR1);      /* at least one signal arrives outside the recorder */
    pthread_create(&thread, NULL, interrupt, &self);
    o->run(5, 4 * CALLS, &log);
    is_over = true;
    pthread_join(thread, NULL);
    memory_end();
    for (size_t i = 0; i < memory_count; i++) {
        if (memory_events[i].size == SIGNAL_SIZE &&
            (memory_events[i].kind == VST_MEMORY_MMAP ||
             memory_events[i].kind == VST_MEMORY_MUNMAP)) {
            mapped++;
            continue;
        }
        if (!CHECK(at < log.count &&
                   oracle_is_same(&memory_events[i], &log.events[at])))
            break;
        at++;
    }
    CHECK_INT(at, log.count);
    CHECK(mapped > 0);
    signal(SIGUSR1, SIG_DFL);
}

/* ---- fork --------------------------------------------------------------- */

static int trace_in_child(void)
{
    if (vst_memory_is_tracing())
        return 1;
    o->free(o->malloc(10)); /* passes through */
    memory_session = NULL;
    memory_begin(&all);
    o->free(o->malloc(20));
    memory_end();
    if (memory_count != 2 || memory_events[0].size != 20)
        return 2;
    memory_forget();
    return checks_bad != 0;
}

static void a_child_is_traced_once_it_starts_that_itself(void)
{
    pthread_t thread;
    int status;

    is_over = false;
    pthread_create(&thread, NULL, run_on, NULL);
    memory_begin(&all);
    for (int i = 0; i < 5; i++) {
        pid_t child;

        if (SANITIZED)
            pthread_mutex_lock(&sanitized_fork);
        child = fork();
        if (child == 0)
            _exit(trace_in_child());
        if (SANITIZED)
            pthread_mutex_unlock(&sanitized_fork);
        waitpid(child, &status, 0);
        CHECK_INT(status, 0);
    }
    is_over = true;
    pthread_join(thread, NULL);
    memory_end();
    CHECK(memory_count > 0);
}

static void a_child_may_stop_what_its_parent_started(void)
{
    int status;
    pid_t child;

    memory_begin(&all);
    child = fork();
    if (child == 0) {
        vst_memory_stop();
        o->free(o->malloc(10));
        _exit(vst_memory_is_tracing());
    }
    waitpid(child, &status, 0);
    CHECK_INT(status, 0);
    o->free(o->malloc(10));
    memory_end();
    CHECK_INT(memory_count, 2);
}

/* ---- the end ------------------------------------------------------------ */

static void *last_block;

static void free_at_exit(void)
{
    o->free(last_block);
    o->free(o->malloc(10));
}

static void a_program_may_end_while_it_is_traced(void)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        pthread_t thread;
        is_over = false;
        memory_begin(&all);
        pthread_create(&thread, NULL, run_on, NULL);
        last_block = o->malloc(100);
        atexit(free_at_exit);
        exit(checks_bad != 0);
    }
    waitpid(child, &status, 0);
    CHECK_INT(status, 0);
}

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

    if (library == NULL)
        return 2;
    o = oracle_in(library);
    pthread_key_create(&key, free_late);
    TEST(every_thread_is_recorded_as_it_was);
    TEST(what_ends_with_its_thread_is_recorded);
    TEST(another_thread_may_free_a_block);
    TEST(nobody_is_asked_for_a_stack_after_stop);
    TEST(a_signal_may_come_at_any_moment);
    TEST(a_child_is_traced_once_it_starts_that_itself);
    TEST(a_child_may_stop_what_its_parent_started);
    TEST(a_program_may_end_while_it_is_traced);
    memory_forget();
    return checks_end();
}
