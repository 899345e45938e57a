/* Waits on semaphores, recorded by hooks, where the language has many locks:
 * the hook asks before each wait which lock the wait is for. No test depends on
 * durations. */
#include <errno.h>
#include <semaphore.h>
#include <time.h>

#include <vestige/vestige.h>

#include "check.h"
#include "record/language_lock.h"

static vst_wait_reason reason; /* the reason of all waits */
static const void *asked;      /* the semaphore that the hook asked about */

static vst_wait_reason parked_for(const void *semaphore)
{
    asked = semaphore;
    return reason;
}

static const vst_lock locks = {.parked_for = parked_for};

static vst_wait last;
static size_t waits;
static int64_t paused_ns, gil_ns;

static vst_status add_wait(void *ctx, const vst_wait *wait)
{
    (void)ctx;
    waits++;
    last = *wait;
    return VST_OK;
}

static vst_status add_span(void *ctx, const vst_span *span)
{
    (void)ctx;
    paused_ns = span->paused_ns;
    gil_ns = span->gil_ns;
    return VST_OK;
}

/* Waits for a semaphore that nobody posts: the wait ends by its timeout. */
static void wait_in_vain(sem_t *semaphore)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += until.tv_nsec >= 999000000;
    until.tv_nsec = (until.tv_nsec + 1000000) % 1000000000;
    CHECK_INT(sem_timedwait(semaphore, &until), -1);
    CHECK_INT(errno, ETIMEDOUT);
}

/* Records a call that waits; returns the call's id. */
static vst_id record_wait(vst_wait_reason for_what)
{
    const vst_definition definition = {
        .kind = VST_DEF_PYTHON, .name = "call", .name_len = 4};
    const vst_sink sink = {.span = add_span, .wait = add_wait};
    vst_session *session = NULL;
    vst_recording *recording;
    vst_trace *trace = NULL;
    sem_t semaphore;
    vst_id id;

    reason = for_what;
    waits = 0;
    sem_init(&semaphore, 0, 0);
    CHECK_INT(vst_session_create(&(vst_session_options){.sched = true},
                                 &session, NULL),
              VST_OK);
    recording = vst_session_recording(session);
    CHECK_INT(vst_recording_define_id(recording, &definition, &id), VST_OK);
    vst_recording_set_metadata(recording, VST_OBJECT_WAITS_METADATA, "true");
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    CHECK_INT(vst__parking_hook((const void *)&locks), VST_OK);
    vst__lock_watch(&locks);
    vst_record(VST_ENTER, id);
    wait_in_vain(&semaphore);
    CHECK(asked == &semaphore);
    vst_record(VST_EXIT, id);
    vst__lock_watch(NULL);
    vst__parking_unhook();
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    vst_trace_close(trace);
    CHECK_INT(vst_session_lost(session), 0);
    vst_session_destroy(session);
    vst_thread_release();
    asked = NULL;
    wait_in_vain(&semaphore);
    CHECK(asked == NULL); /* the hook is gone */
    sem_destroy(&semaphore);
    return id;
}

static void a_wait_of_the_language_s_is_its_call_s(void)
{
    vst_id id = record_wait(VST_WAIT_OBJECT);

    CHECK_INT(waits, 1);
    CHECK_INT(last.reason, VST_WAIT_OBJECT);
    CHECK_INT(last.id, id);
    CHECK_INT(last.holder, 0);
    CHECK_INT(paused_ns, last.end_ns - last.start_ns);
    CHECK_INT(gil_ns, VST_RUNNING_UNKNOWN);
    record_wait(VST_WAIT_WORLD);
    CHECK_INT(waits, 1);
    CHECK_INT(last.reason, VST_WAIT_WORLD);
}

static void a_wait_of_the_program_s_passes_through(void)
{
    record_wait(VST_WAIT_NONE);
    CHECK_INT(waits, 0);
    CHECK_INT(paused_ns, 0);
}

int main(void)
{
    TEST(a_wait_of_the_language_s_is_its_call_s);
    TEST(a_wait_of_the_program_s_passes_through);
    return checks_end();
}
