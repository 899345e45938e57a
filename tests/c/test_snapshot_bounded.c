/* Snapshots of recordings that keep only the newest records, and snapshots of
 * the last part of any recording: a reader needs no dropped record to read the
 * rest. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vestige/vestige.h>

#include "check.h"

enum { THREADS = 4, DEPTH = 3, SNAPSHOTS = 12 };

static char folder[] = "/tmp/vestige-bounded-XXXXXX";
static char path[64];
static vst_id outer_id, inner_id;
static atomic_bool stopping;
static atomic_ullong calls[THREADS];

static vst_id define(vst_recording *recording, const char *name)
{
    vst_definition definition = {.kind = VST_DEF_NATIVE,
                                 .name = name,
                                 .name_len = (uint32_t)strlen(name)};
    vst_id id;

    CHECK_INT(vst_recording_define_id(recording, &definition, &id), VST_OK);
    return id;
}

/* Records inside DEPTH open calls, with short calls in the innermost call. */
static void *work(void *argument)
{
    size_t self = (size_t)(uintptr_t)argument;

    if (!vst_thread_enter_free())
        return NULL;
    for (int i = 0; i < DEPTH; i++)
        vst_record(VST_ENTER, outer_id);
    while (!atomic_load(&stopping) && vst_thread_enter_free()) {
        for (int i = 0; i < 100; i++) {
            vst_record(VST_ENTER, inner_id);
            vst_record(VST_EXIT, inner_id);
        }
        atomic_fetch_add(&calls[self], 100);
    }
    for (int i = 0; i < DEPTH; i++)
        vst_record(VST_EXIT, outer_id);
    return NULL;
}

typedef struct reading {
    vst_trace_info info;
    uint64_t size;
    unsigned outer, inner, odd;
} reading;

static vst_status count_span(void *ctx, const vst_span *span)
{
    reading *self = ctx;

    if (span->id == outer_id && span->depth < DEPTH)
        self->outer++;
    else if (span->id == inner_id && span->depth == DEPTH)
        self->inner++;
    else
        self->odd++;
    return VST_OK;
}

static reading read_snapshot(void)
{
    reading self = {.outer = 0};
    vst_sink sink = {.ctx = &self, .span = count_span};
    vst_error error = {VST_OK, 0, 0};
    struct stat st;
    vst_trace *trace;

    CHECK_INT(stat(path, &st), 0);
    self.size = (uint64_t)st.st_size;
    if (!CHECK_INT(vst_trace_open(path, &trace, &error), VST_OK))
        return self;
    CHECK_INT(error.status, VST_OK);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    CHECK_INT(vst_trace_unmatched_exits(trace), 0);
    vst_trace_get_info(trace, &self.info);
    CHECK(self.info.clean);
    CHECK_TEXT(vst_trace_definition(trace, outer_id)->name, "outer");
    CHECK_TEXT(vst_trace_definition(trace, inner_id)->name, "inner");
    vst_trace_close(trace);
    return self;
}

static void record_and_take(const vst_session_options *options,
                            uint64_t window_ns, void (*check)(const reading *))
{
    pthread_t threads[THREADS];
    vst_session *session;
    int all = 0;

    CHECK_INT(vst_session_create(options, &session, NULL), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    outer_id = define(vst_session_recording(session), "outer");
    inner_id = define(vst_session_recording(session), "inner");
    atomic_store(&stopping, false);
    for (size_t i = 0; i < THREADS; i++) {
        atomic_store(&calls[i], 0);
        pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i);
    }
    /* Each thread records far more than the bound. */
    for (size_t i = 0; i < THREADS; i++)
        while (atomic_load(&calls[i]) < 200000)
            usleep(100);
    for (int i = 0; i < SNAPSHOTS; i++) {
        vst_clock_sample asked;
        reading got;

        vst_clock_sample_now(&asked);
        CHECK_INT(
            vst_session_snapshot(session, path, true, window_ns, NULL, NULL),
            VST_OK);
        got = read_snapshot();
        CHECK_INT(got.odd, 0);
        /* If threads overwrote chunks during the copy, a thread may have a hole
         * or be missing. */
        CHECK(got.outer > 0 && got.outer % DEPTH == 0);
        all += got.outer >= DEPTH * THREADS && got.inner > 0;
        CHECK(got.info.end_ns >= asked.realtime_ns - 1000000);
        check(&got);
    }
    CHECK(all > 0);
    atomic_store(&stopping, true);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    vst_session_destroy(session);
    remove(path);
}

static void is_small(const reading *got)
{
    /* Chunks that were begun during the copy may be in the snapshot, too. */
    CHECK(got->size < (16 << 20));
    CHECK(got->info.dropped > 0);
    CHECK(got->info.start_ns <= got->info.complete_ns);
}

static void a_bounded_recording_is_copied_while_its_chunks_are_reused(void)
{
    record_and_take(&(vst_session_options){.max_size = 1 << 20}, 0, is_small);
}

static void is_short(const reading *got)
{
    /* The clip counts back from the last record; the snapshot ends when it was
     * taken. */
    CHECK(got->info.dropped > 0);
    CHECK(got->info.end_ns - got->info.start_ns < 1000000000);
}

static void the_last_stretch_of_a_recording_can_be_read_alone(void)
{
    record_and_take(&(vst_session_options){.checkpoints = true}, 1000000,
                    is_short);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 2;
    snprintf(path, sizeof path, "%s/s.vst", folder);
    TEST(a_bounded_recording_is_copied_while_its_chunks_are_reused);
    TEST(the_last_stretch_of_a_recording_can_be_read_alone);
    CHECK_INT(rmdir(folder), 0);
    return checks_end();
}
