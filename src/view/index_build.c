/* Builds the index of a trace: each thread by itself, several in parallel. The
 * caller waits, reports progress, and may cancel; workers share only the
 * writer, the list of threads and two counters. */
#include "view/index_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "os/os.h"

enum { WORKERS_MAX = 64, PROGRESS_NS = 50000000 };

typedef struct build {
    const vst__index_job *job;
    vst__index_writer writer;
    vst__index_parts parts;
    size_t *order;  /* threads, those with most records first */
    size_t next;    /* atomic: next index in order */
    uint64_t words; /* atomic: words read so far */
    int stop;       /* atomic */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned running;  /* guarded by the lock */
    vst_status status; /* guarded by the lock: the first error */
    int sys_errno;
} build;

/* ---- one thread ---------------------------------------------------------- */

static vst_status index_stretch(build *self, vst__walk *walk, size_t number,
                                vst__thread_part *part, vst__pyramid *pyramid,
                                vst__last_open *last)
{
    const vst__stretch *stretch = &self->job->stretches[number];
    uint64_t before = 0, next = VST_CHECKPOINT_RECORDS;
    vst_status status = vst__walk_open(walk, stretch, NULL, SIZE_MAX);
    bool ends = false;

    last->count = 0;
    while (status == VST_OK && !ends) {
        vst__place place;
        uint64_t words;

        status = vst__walk_next(walk, &ends);
        if (status == VST_OK)
            status = vst__index_add_spans(part, pyramid, walk);
        words = vst__walk_words(walk);
        __atomic_add_fetch(&self->words, words - before, __ATOMIC_RELAXED);
        before = words;
        if (__atomic_load_n(&self->stop, __ATOMIC_RELAXED))
            return VST_E_CANCELLED;
        if (status == VST_OK && words >= next && !ends &&
            walk->last_ns != INT64_MIN && vst__walk_place(walk, &place)) {
            status = vst__index_add_checkpoint(&self->parts.stretches[number],
                                               last, &place, words);
            next = words + VST_CHECKPOINT_RECORDS;
        }
    }
    return status;
}

static vst_status index_thread(build *self, vst__walk *walk, size_t index)
{
    vst__thread_part *part = &self->parts.threads[index];
    vst_sink event_sink = vst__index_sink(part);
    vst__pyramid pyramid;
    vst__last_open last = {NULL, 0, 0};
    vst_status status = VST_OK;

    vst__index_choose_levels(self->job, walk, &part->thread);
    vst__pyramid_init(&pyramid, part->thread.threshold_ns,
                      part->thread.level_count, vst__index_append,
                      &self->writer);
    walk->event_sink = &event_sink;
    walk->has_tasks = false;
    for (size_t i = 0; status == VST_OK && i < self->job->stretch_count; i++)
        if (self->job->stretches[i].thread == part->thread.number)
            status = index_stretch(self, walk, i, part, &pyramid, &last);
    walk->event_sink = NULL;
    if (status == VST_OK)
        status = vst__pyramid_finish(&pyramid);
    part->thread.off_stack = pyramid.lane_count;
    part->thread.has_tasks = walk->has_tasks;
    part->blocks = pyramid.blocks;
    part->block_count = pyramid.block_count;
    pyramid.blocks = NULL;
    vst__pyramid_free(&pyramid);
    free(last.frames);
    return status;
}

/* ---- workers ------------------------------------------------------------- */

static void index_note_error(build *self, vst_status status, int sys_errno)
{
    if (status == VST_OK)
        return;
    __atomic_store_n(&self->stop, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&self->lock);
    if (self->status == VST_OK) {
        self->status = status;
        self->sys_errno = sys_errno;
    }
    pthread_mutex_unlock(&self->lock);
}

static void *index_work(void *arg)
{
    build *self = arg;
    vst__walk walk;
    vst_status status = vst__walk_init(&walk, self->job->reading);

    while (status == VST_OK) {
        size_t next = __atomic_fetch_add(&self->next, 1, __ATOMIC_RELAXED);

        if (next >= self->parts.thread_count)
            break;
        status = index_thread(self, &walk, self->order[next]);
    }
    index_note_error(self, status,
                     status == VST_E_IO ? walk.block.sys_errno : 0);
    vst__walk_free(&walk);
    pthread_mutex_lock(&self->lock);
    self->running--;
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static void index_report_progress(build *self, uint64_t total)
{
    uint64_t words = __atomic_load_n(&self->words, __ATOMIC_RELAXED);

    if (self->job->progress != NULL && total != 0 &&
        self->job->progress(self->job->progress_ctx,
                            (double)words / (double)total) != 0)
        index_note_error(self, VST_E_CANCELLED, 0);
}

static void index_wait(build *self)
{
    uint64_t total = 0;

    for (size_t i = 0; i < self->job->stretch_count; i++)
        total += self->job->stretches[i].words;
    pthread_mutex_lock(&self->lock);
    while (self->running != 0) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += PROGRESS_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        if (pthread_cond_timedwait(&self->changed, &self->lock, &until) ==
            ETIMEDOUT) {
            pthread_mutex_unlock(&self->lock);
            index_report_progress(self, total);
            pthread_mutex_lock(&self->lock);
        }
    }
    pthread_mutex_unlock(&self->lock);
}

/* If a worker cannot be started, the others do its work; if none can, the
 * caller does. */
static void run_workers(build *self)
{
    unsigned wanted = self->job->workers, started = 0;
    pthread_t threads[WORKERS_MAX];

    if (wanted == 0)
        wanted = vst__os_processors();
    if (self->job->trace->source.packed != NULL)
        wanted = 1;
    if (wanted > WORKERS_MAX)
        wanted = WORKERS_MAX;
    if (wanted > self->parts.thread_count)
        wanted = (unsigned)self->parts.thread_count;
    for (; started < wanted; started++) {
        pthread_mutex_lock(&self->lock);
        self->running++;
        pthread_mutex_unlock(&self->lock);
        if (pthread_create(&threads[started], NULL, index_work, self) != 0) {
            pthread_mutex_lock(&self->lock);
            self->running--;
            pthread_mutex_unlock(&self->lock);
            break;
        }
    }
    if (started == 0 && wanted != 0) {
        self->running = 1;
        index_work(self);
    }
    index_wait(self);
    while (started != 0)
        pthread_join(threads[--started], NULL);
}

/* ---- the whole index ----------------------------------------------------- */

static vst_status index_prepare(build *self)
{
    const vst_trace *trace = self->job->trace;
    vst__index_parts *parts = &self->parts;

    parts->job = self->job;
    parts->threads = calloc(trace->thread_count + 1, sizeof *parts->threads);
    parts->stretches =
        calloc(self->job->stretch_count + 1, sizeof *parts->stretches);
    self->order = calloc(trace->thread_count + 1, sizeof *self->order);
    if (parts->threads == NULL || parts->stretches == NULL ||
        self->order == NULL)
        return VST_E_NOMEM;
    parts->thread_count = trace->thread_count;
    for (size_t i = 0; i < parts->thread_count; i++) {
        size_t at = i;

        parts->threads[i].thread.number = trace->threads[i].number;
        while (at != 0 && trace->threads[self->order[at - 1]].words <
                              trace->threads[i].words) {
            self->order[at] = self->order[at - 1];
            at--;
        }
        self->order[at] = i;
    }
    return VST_OK;
}

static void free_all(build *self)
{
    vst__index_parts *parts = &self->parts;

    for (size_t i = 0; i < parts->thread_count; i++)
        vst__thread_part_free(&parts->threads[i]);
    for (size_t i = 0; parts->stretches != NULL && i < self->job->stretch_count;
         i++)
        vst__stretch_part_free(&parts->stretches[i]);
    free(parts->threads);
    free(parts->stretches);
    free(self->order);
    vst__index_writer_free(&self->writer);
    pthread_mutex_destroy(&self->lock);
    pthread_cond_destroy(&self->changed);
}

vst_status vst__index_build(const vst__index_job *job, int fd, vst_error *error)
{
    build self = {.job = job};
    vst_status status;

    pthread_mutex_init(&self.lock, NULL);
    pthread_cond_init(&self.changed, NULL);
    status = vst__index_writer_init(&self.writer, fd, job->trace);
    if (status == VST_OK)
        status = index_prepare(&self);
    if (status == VST_OK) {
        run_workers(&self);
        status = self.status;
    }
    if (status == VST_OK) {
        status = vst__index_write(&self.writer, &self.parts);
        self.sys_errno = self.writer.sys_errno;
    } else if (self.writer.status != VST_OK) {
        self.sys_errno = self.writer.sys_errno;
    }
    free_all(&self);
    return vst_error_set(error, status, self.sys_errno, 0);
}
