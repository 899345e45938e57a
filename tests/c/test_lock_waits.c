/* Waits for the language's lock, recorded by hooks; the test's lock is built
 * like CPython's. No test depends on durations: a thread that should wait has
 * looked at the lock several times before the thread gets the lock. */
#include <pthread.h>
#include <time.h>

#include <vestige/vestige.h>

#include "base/wait_reasons.h"
#include "check.h"
#include "record/language_lock.h"

enum { LOOKS = 5, LOOK_NS = 1000000, WAITS_MAX = 64 };

/* The least time that a thread has waited after this many looks. The last look
 * has only begun; the first may have begun late, if the thread did not run
 * after reading the clock. */
#define LOOKED_NS ((LOOKS - 2) * (int64_t)LOOK_NS)

/* ---- the lock ----------------------------------------------------------- */

static struct {
    uintptr_t holder;
    int is_held;
    pthread_cond_t condition, given;
    pthread_mutex_t mutex;
} language = {.condition = PTHREAD_COND_INITIALIZER,
              .given = PTHREAD_COND_INITIALIZER,
              .mutex = PTHREAD_MUTEX_INITIALIZER};

static const vst_lock lock = {.condition = &language.condition,
                              .given_condition = &language.given,
                              .is_held = &language.is_held,
                              .holder = &language.holder};

static unsigned looks; /* looks of the waiting thread; guarded by the mutex */

static void look(pthread_cond_t *condition)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(condition, &language.mutex, &until);
}

static void take(uintptr_t key)
{
    pthread_mutex_lock(&language.mutex);
    while (language.is_held) {
        looks++;
        look(&language.condition);
    }
    language.is_held = 1;
    language.holder = key;
    pthread_mutex_unlock(&language.mutex);
}

/* Resets the count of looks. Call after a thread has finished waiting. */
static void forget_looks(void)
{
    pthread_mutex_lock(&language.mutex);
    looks = 0;
    pthread_mutex_unlock(&language.mutex);
}

static void drop(void)
{
    pthread_mutex_lock(&language.mutex);
    language.is_held = 0;
    pthread_cond_signal(&language.condition);
    pthread_mutex_unlock(&language.mutex);
}

/* Returns when another thread has looked at the lock this often. */
static void let_wait(unsigned times)
{
    unsigned seen = 0;

    while (seen < times) {
        nanosleep(&(struct timespec){0, 100000}, NULL);
        pthread_mutex_lock(&language.mutex);
        seen = looks;
        pthread_mutex_unlock(&language.mutex);
    }
    forget_looks();
}

/* ---- a recording -------------------------------------------------------- */

static vst_session *session;
static vst_id call_id;

static vst_wait waits[WAITS_MAX];
static size_t wait_count, waits_in_all;
static struct {
    size_t spans;
    int64_t gil_ns, ns, last_end_ns;
    int64_t stopped_ns; /* end of the call during which the recording stops */
} calls;

static vst_status add_wait(void *ctx, const vst_wait *wait)
{
    (void)ctx;
    waits_in_all++;
    if (wait_count < WAITS_MAX)
        waits[wait_count++] = *wait;
    return VST_OK;
}

static vst_status add_span(void *ctx, const vst_span *span)
{
    (void)ctx;
    calls.spans++;
    calls.ns += span->end_ns - span->start_ns;
    calls.gil_ns += span->gil_ns;
    if (span->end_ns > calls.last_end_ns)
        calls.last_end_ns = span->end_ns;
    if (span->thread == 1)
        calls.stopped_ns = span->end_ns;
    return VST_OK;
}

static void start(void)
{
    const vst_definition definition = {
        .kind = VST_DEF_PYTHON, .name = "call", .name_len = 4};
    vst_recording *recording;

    forget_looks();
    CHECK_INT(vst_session_create(&(vst_session_options){.sched = true},
                                 &session, NULL),
              VST_OK);
    recording = vst_session_recording(session);
    CHECK_INT(vst_recording_define_id(recording, &definition, &call_id),
              VST_OK);
    vst_recording_set_metadata(recording, VST_WAITS_METADATA, "true");
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    CHECK_INT(vst__lock_hook((const void *)&lock), VST_OK);
    vst__lock_watch(&lock);
    vst_record(VST_ENTER, call_id); /* this thread is number 1 */
    vst__recording_key_thread(recording, vst_thread_handle(), 11);
    take(11);
}

static void stop(void)
{
    const vst_sink sink = {.span = add_span, .wait = add_wait};
    vst_trace *trace = NULL;

    vst_record(VST_EXIT, call_id);
    vst__lock_watch(NULL);
    vst__lock_unhook();
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    wait_count = waits_in_all = calls.spans = 0;
    calls.ns = calls.gil_ns = calls.last_end_ns = 0;
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    vst_trace_close(trace);
    CHECK_INT(vst_session_lost(session), 0);
    vst_session_destroy(session);
    session = NULL;
    vst_thread_release();
    drop();
}

static void run_beside(void *(*function)(void *), pthread_t *thread)
{
    CHECK_INT(pthread_create(thread, NULL, function, NULL), 0);
}

/* Starts a thread, which waits for the lock until we drop the lock, and joins
 * the thread. */
static void record_a_wait(void *(*function)(void *), void *argument)
{
    pthread_t thread;

    start();
    CHECK_INT(pthread_create(&thread, NULL, function, argument), 0);
    let_wait(LOOKS);
    drop();
    pthread_join(thread, NULL);
    stop();
    CHECK_INT(wait_count, 1);
}

static int64_t length(const vst_wait *wait)
{
    return wait->end_ns - wait->start_ns;
}

/* ---- tests -------------------------------------------------------------- */

static void *call_and_take(void *unused)
{
    vst_record(VST_ENTER, call_id);
    take(22);
    vst_record(VST_EXIT, call_id);
    drop();
    return unused;
}

static void many_looks_are_one_wait_with_its_holder(void)
{
    record_a_wait(call_and_take, NULL);
    CHECK_INT(waits[0].reason, VST_WAIT_GIL);
    CHECK_INT(waits[0].thread, 2);
    CHECK_INT(waits[0].holder, 1);
    CHECK_INT(waits[0].id, call_id);
    CHECK(length(&waits[0]) >= LOOKED_NS);
    CHECK_INT(calls.spans, 2);
    CHECK_INT(calls.gil_ns, length(&waits[0]));
    CHECK(calls.gil_ns <= calls.ns);
}

static void *take_and_call(void *unused)
{
    take(22);
    vst_record(VST_ENTER, call_id);
    vst_record(VST_EXIT, call_id);
    drop();
    return unused;
}

static void a_thread_that_never_recorded_keeps_its_wait(void)
{
    record_a_wait(take_and_call, NULL);
    CHECK_INT(waits[0].thread, 2);
    CHECK_INT(waits[0].id, 0);
    CHECK_INT(calls.gil_ns, 0); /* no call was open, so no call has the wait */
}

/* The chunk has room for the records of the wait except the last few words. */
static void *fill_and_take(void *rest)
{
    vst_record(VST_ENTER, call_id);
    while (vst_thread_buffer->limit - vst_thread_buffer->cursor >
           (ptrdiff_t)(uintptr_t)rest) {
        vst_record(VST_ENTER, call_id);
        vst_record(VST_EXIT, call_id);
    }
    take(22);
    vst_record(VST_EXIT, call_id);
    drop();
    return NULL;
}

static void a_full_chunk_keeps_it_for_the_next_record(void)
{
    for (uintptr_t rest = 1; rest < 9; rest++) {
        record_a_wait(fill_and_take, (void *)rest);
        CHECK_INT(calls.gil_ns, length(&waits[0]));
    }
}

enum { MANY = 1500 };

/* Makes waits that end immediately, in a call without other records. */
static void *call_and_wait_often(void *unused)
{
    vst_record(VST_ENTER, call_id);
    pthread_mutex_lock(&language.mutex);
    for (int i = 0; i < MANY; i++) {
        pthread_cond_t *condition = &language.condition;
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        pthread_cond_timedwait(condition, &language.mutex, &now);
    }
    pthread_mutex_unlock(&language.mutex);
    vst_record(VST_EXIT, call_id);
    return unused;
}

static void a_long_call_keeps_many(void)
{
    pthread_t thread;

    start();
    drop(); /* the lock is free, so every wait ends */
    run_beside(call_and_wait_often, &thread);
    pthread_join(thread, NULL);
    stop();
    CHECK_INT(wait_count, WAITS_MAX);
    CHECK_INT(waits_in_all, MANY);
    CHECK_INT(calls.spans, 2);
}

static void *wait_elsewhere(void *unused)
{
    static pthread_cond_t other = PTHREAD_COND_INITIALIZER;

    vst_record(VST_ENTER, call_id);
    pthread_mutex_lock(&language.mutex);
    look(&other);
    pthread_mutex_unlock(&language.mutex);
    vst_record(VST_EXIT, call_id);
    return unused;
}

static void other_waits_pass(void)
{
    pthread_t thread;

    start();
    run_beside(wait_elsewhere, &thread);
    pthread_join(thread, NULL);
    stop();
    CHECK_INT(wait_count, 0);
    CHECK_INT(calls.spans, 2);
}

static bool is_given; /* guarded by the mutex */

static void *give_away(void *unused)
{
    vst_record(VST_ENTER, call_id);
    pthread_mutex_lock(&language.mutex);
    looks = 1;
    while (!is_given)
        pthread_cond_wait(&language.given, &language.mutex);
    pthread_mutex_unlock(&language.mutex);
    vst_record(VST_EXIT, call_id);
    return unused;
}

static void who_gives_the_lock_away_waits_until_another_has_it(void)
{
    pthread_t thread;

    is_given = false;
    start();
    run_beside(give_away, &thread);
    let_wait(1);
    pthread_mutex_lock(&language.mutex);
    is_given = true;
    pthread_cond_signal(&language.given);
    pthread_mutex_unlock(&language.mutex);
    pthread_join(thread, NULL);
    stop();
    CHECK_INT(wait_count, 1);
    CHECK_INT(waits[0].holder, 0);
    CHECK_INT(calls.gil_ns, length(&waits[0]));
}

static void a_wait_that_goes_on_lasts_until_the_stop(void)
{
    pthread_t thread;

    start();
    run_beside(call_and_take, &thread);
    let_wait(LOOKS);
    stop(); /* stopping drops the lock, too */
    pthread_join(thread, NULL);
    CHECK_INT(wait_count, 1);
    CHECK_INT(waits[0].thread, 2);
    CHECK_INT(waits[0].holder, 1);
    CHECK_INT(waits[0].id, call_id);
    CHECK(length(&waits[0]) >= LOOKED_NS);
    CHECK_INT(calls.gil_ns, length(&waits[0]));
    CHECK(waits[0].end_ns >= calls.stopped_ns);
    CHECK(waits[0].end_ns <= calls.last_end_ns);
}

static void it_finds_room_in_a_full_chunk(void)
{
    for (uintptr_t rest = 1; rest < 9; rest++) {
        pthread_t thread;

        start();
        CHECK_INT(pthread_create(&thread, NULL, fill_and_take, (void *)rest),
                  0);
        let_wait(LOOKS);
        stop();
        pthread_join(thread, NULL);
        CHECK_INT(wait_count, 1);
        CHECK_INT(calls.gil_ns, length(&waits[0]));
    }
}

/* Let the two threads signal each other; guarded by the mutex. */
static bool has_waited, may_end;

static void signal_to(bool *what)
{
    pthread_mutex_lock(&language.mutex);
    *what = true;
    pthread_mutex_unlock(&language.mutex);
}

static void await(const bool *what)
{
    bool is_told = false;

    while (!is_told) {
        nanosleep(&(struct timespec){0, 100000}, NULL);
        pthread_mutex_lock(&language.mutex);
        is_told = *what;
        pthread_mutex_unlock(&language.mutex);
    }
}

/* Stops the recording while the other thread is in a call, after its waits. */
static void stop_beside(pthread_t thread)
{
    await(&has_waited);
    stop();
    signal_to(&may_end);
    pthread_join(thread, NULL);
}

/* Makes waits that end, then continues the call. */
static void *wait_often_and_go_on(void *unused)
{
    vst_record(VST_ENTER, call_id);
    pthread_mutex_lock(&language.mutex);
    for (int i = 0; i < MANY; i++) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        pthread_cond_timedwait(&language.condition, &language.mutex, &now);
    }
    pthread_mutex_unlock(&language.mutex);
    signal_to(&has_waited);
    await(&may_end);
    return unused;
}

static void what_a_long_call_kept_is_stored_at_the_stop(void)
{
    pthread_t thread;

    has_waited = may_end = false;
    start();
    drop();
    run_beside(wait_often_and_go_on, &thread);
    stop_beside(thread);
    CHECK_INT(waits_in_all, MANY);
}

static void *take_and_go_on(void *unused)
{
    vst_record(VST_ENTER, call_id);
    take(22);
    drop();
    signal_to(&has_waited);
    await(&may_end);
    return unused;
}

static void a_wait_that_ended_after_the_watch_is_no_longer(void)
{
    pthread_t thread;

    has_waited = may_end = false;
    start();
    run_beside(take_and_go_on, &thread);
    let_wait(LOOKS);
    vst__lock_watch(NULL);
    drop();
    stop_beside(thread);
    CHECK_INT(wait_count, 1);
    CHECK(waits[0].end_ns < calls.last_end_ns);
}

static void hooks_are_gone_after_the_stop(void)
{
    const void *learned = NULL;

    start();
    drop();
    vst__lock_learn(&learned);
    pthread_mutex_lock(&language.mutex);
    look(&language.condition);
    CHECK(learned == &language.condition);
    learned = NULL;
    vst__lock_watch(NULL);
    vst__lock_unhook();
    look(&language.condition);
    CHECK(learned == NULL);
    pthread_mutex_unlock(&language.mutex);
    vst__lock_learn(NULL);
    stop();
}

static void threads_keep_apart(void)
{
    pthread_t threads[8];

    start();
    for (size_t i = 0; i < 8; i++)
        run_beside(call_and_take, &threads[i]);
    let_wait(8 * LOOKS);
    drop();
    for (size_t i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    stop();
    CHECK_INT(calls.spans, 9);
    CHECK(wait_count >= 1 && wait_count <= 8);
    for (size_t i = 0; i < wait_count; i++)
        for (size_t j = 0; j < i; j++)
            CHECK(waits[i].thread != waits[j].thread);
}

static vst__waiter waiter_of(vst_definition_kind kind, const char *name,
                             const char *file, const char *more)
{
    const vst_definition d = {.kind = kind,
                              .name = name,
                              .name_len = (uint32_t)strlen(name),
                              .file = file,
                              .file_len = (uint32_t)strlen(file)};

    return vst__waiter_of(&d, more, strlen(more));
}

static void functions_that_wait_are_known_by_name(void)
{
    static const struct {
        const char *name;
        vst_wait_reason reason;
    } known[] = {
        {"<built-in function sleep>", VST_WAIT_SLEEP},
        {"<built-in function waitpid>", VST_WAIT_CHILD},
        {"<built-in function read>", VST_WAIT_IO},
        {"<built-in function sched_yield>", VST_WAIT_SPIN},
        {"<built-in method acquire of _thread.lock object>", VST_WAIT_LOCK},
        {"<built-in method recv of _socket.socket object>", VST_WAIT_IO},
        {"<built-in method read of _io.FileIO object>", VST_WAIT_NONE},
        {"<built-in function acquire>", VST_WAIT_NONE},
        {"<built-in function slee>", VST_WAIT_NONE},
        {"<built-in function sleep clock_nanosleep>", VST_WAIT_NONE},
        {"<built-in method sleep of  object>", VST_WAIT_NONE},
        {"<built-in function >", VST_WAIT_NONE},
        {"sleep", VST_WAIT_NONE},
        {"", VST_WAIT_NONE},
        {"<built-in function wait_c>", VST_WAIT_IO},
        {"<built-in method exec of QApplication object>", VST_WAIT_IO},
        {"<built-in method exec of Plan object>", VST_WAIT_NONE},
        {"<built-in method _internal_poll of "
         "grpc._cython.cygrpc.CompletionQueue object>",
         VST_WAIT_IO},
        {"<built-in method recv of zmq.backend.cython._zmq.Socket object>",
         VST_WAIT_IO},
        {"<built-in method tick of pygame.time.Clock object>", VST_WAIT_SLEEP},
        {"<built-in type bytes>", VST_WAIT_NONE},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        CHECK_INT(waiter_of(VST_DEF_NATIVE, known[i].name, "", "").reason,
                  known[i].reason);
    CHECK_TEXT(vst_wait_reason_name(VST_WAIT_GIL), "gil");
    CHECK_TEXT(vst_wait_reason_name(VST_WAIT_REASONS), "");
}

static void only_own_time_around_other_calls_is_waiting(void)
{
    const char *loop =
        "<built-in method run_until_complete of uvloop.loop.Loop object>";
    const char *runners = "/usr/lib/python3.12/asyncio/runners.py";

    CHECK_INT(waiter_of(VST_DEF_NATIVE, loop, "", "").reason, VST_WAIT_IO);
    CHECK(waiter_of(VST_DEF_NATIVE, loop, "", "").is_around);
    CHECK_INT(waiter_of(VST_DEF_PYTHON, "Runner.run", runners, "").reason,
              VST_WAIT_IO);
    CHECK(waiter_of(VST_DEF_PYTHON, "Runner.run", runners, "").is_around);
    CHECK_INT(waiter_of(VST_DEF_PYTHON, "Runner.run", "runners.py", "").reason,
              VST_WAIT_NONE);
    CHECK_INT(waiter_of(VST_DEF_PYTHON, "sleep", "a.py", "").reason,
              VST_WAIT_NONE);
    CHECK(!waiter_of(VST_DEF_NATIVE, "<built-in function sleep>", "", "")
               .is_around);
    CHECK(waiter_of(VST_DEF_NATIVE,
                    "<built-in method exec of QApplication object>", "", "")
              .is_around);
}

static void a_method_called_on_its_class_waits_too(void)
{
    const char *name = "<built-in method exec of type object>";
    const char *class = "PySide6.QtWidgets.QApplication";

    CHECK_INT(waiter_of(VST_DEF_NATIVE, name, class, "").reason, VST_WAIT_IO);
    CHECK(waiter_of(VST_DEF_NATIVE, name, class, "").is_around);
    CHECK_INT(waiter_of(VST_DEF_NATIVE, name, "Plan", "").reason,
              VST_WAIT_NONE);
    CHECK_INT(waiter_of(VST_DEF_NATIVE, name, "", "").reason, VST_WAIT_NONE);
}

static void a_project_adds_functions_that_wait(void)
{
    const char *more = "io own.Bus recv;spin ring/buffer.py Ring.get;nonsense;"
                       ";lock take;gil sleep;sleep a.py";
    const char *recv = "<built-in method recv of own.Bus object>";

    CHECK_INT(waiter_of(VST_DEF_NATIVE, recv, "", more).reason, VST_WAIT_IO);
    CHECK_INT(waiter_of(VST_DEF_NATIVE, recv, "", "").reason, VST_WAIT_NONE);
    CHECK_INT(
        waiter_of(VST_DEF_PYTHON, "Ring.get", "/a/ring/buffer.py", more).reason,
        VST_WAIT_SPIN);
    CHECK_INT(
        waiter_of(VST_DEF_NATIVE, "<built-in function take>", "", more).reason,
        VST_WAIT_LOCK);
    CHECK_INT(
        waiter_of(VST_DEF_NATIVE, "<built-in function sleep>", "", more).reason,
        VST_WAIT_SLEEP);
    CHECK_INT(waiter_of(VST_DEF_PYTHON, "take", "own.py", more).reason,
              VST_WAIT_NONE);
}

int main(void)
{
    TEST(many_looks_are_one_wait_with_its_holder);
    TEST(a_thread_that_never_recorded_keeps_its_wait);
    TEST(a_full_chunk_keeps_it_for_the_next_record);
    TEST(a_long_call_keeps_many);
    TEST(other_waits_pass);
    TEST(who_gives_the_lock_away_waits_until_another_has_it);
    TEST(a_wait_that_goes_on_lasts_until_the_stop);
    TEST(it_finds_room_in_a_full_chunk);
    TEST(what_a_long_call_kept_is_stored_at_the_stop);
    TEST(a_wait_that_ended_after_the_watch_is_no_longer);
    TEST(hooks_are_gone_after_the_stop);
    TEST(threads_keep_apart);
    TEST(functions_that_wait_are_known_by_name);
    TEST(only_own_time_around_other_calls_is_waiting);
    TEST(a_method_called_on_its_class_waits_too);
    TEST(a_project_adds_functions_that_wait);
    return checks_end();
}
