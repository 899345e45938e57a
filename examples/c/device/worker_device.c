/* The device of worker_device.h: first the collector, which is the part that
 * you write for a device of your own, then the runtime and the workers. */
#include "worker_device.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    QUEUE = 1024,        /* jobs that may wait in a stream's queue */
    BUFFER = 128,        /* activities that are delivered together */
    NAMES = 32,          /* names of kernels and calls */
    CORRELATIONS = 4096, /* ids that a thread reserves together */
    CONTEXT = 1
};

/* A job of a stream. */
typedef struct job {
    uint32_t kind; /* vst_activity_kind; 0: end the worker */
    const char *name;
    void (*kernel)(void *argument);
    void *argument;
    const void *from;
    size_t bytes;
    int value;
    worker_event *record, *wait;
    uint64_t correlation;
} job;

typedef struct stream {
    pthread_t worker;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Guarded by the lock: */
    job queue[QUEUE];
    uint64_t given, done; /* how many jobs so far */
    vst_activity buffer[BUFFER];
    size_t count; /* activities in the buffer */
} stream;

static stream streams[WORKER_STREAMS_MAX];
static unsigned stream_count;
static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t event_changed = PTHREAD_COND_INITIALIZER;

/* ---- the collector ------------------------------------------------------- */

/* The recording, for calls and workers. NULL: nothing is collected, and reading
 * this variable is the only cost. Atomic. */
static vst_recording *collecting;
static vst_recording
    *recording;         /* the recording for which the collector was made */
static uint32_t device; /* the device's number in the recording */

/* Names that already have an id in this recording. */
static struct {
    const char *name; /* atomic: stored after the id */
    vst_id id;
} names[NAMES];
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;

/* The device's clock makes three ticks while our clock makes seven. */
uint64_t worker_clock_at(vst_ticks ours)
{
    return ours / 7 * 3 + ours % 7 * 3 / 7 + 1000000;
}

static uint64_t read_clock(void *ctx)
{
    (void)ctx;
    return worker_clock_at(vst_clock_ticks());
}

static vst_id define(const char *name)
{
    const vst_definition definition = {
        .kind = (vst_definition_kind)VST_DEF_ACTIVITY,
        .name = name,
        .name_len = (uint32_t)strlen(name),
        .file = "",
    };
    vst_id id = 0;

    pthread_mutex_lock(&names_lock);
    for (size_t i = 0; i < NAMES; i++) {
        if (names[i].name == name) {
            id = names[i].id;
            break;
        }
        if (names[i].name == NULL) {
            vst_recording_define_id(recording, &definition, &id);
            names[i].id = id;
            __atomic_store_n(&names[i].name, name, __ATOMIC_RELEASE);
            break;
        }
    }
    pthread_mutex_unlock(&names_lock);
    return id;
}

/* Returns the id of a name, without a lock if it has one already. */
static vst_id id_of(const char *name)
{
    for (size_t i = 0; i < NAMES; i++) {
        const char *there = __atomic_load_n(&names[i].name, __ATOMIC_ACQUIRE);

        if (there == name)
            return names[i].id;
        if (there == NULL)
            break;
    }
    return define(name);
}

/* Delivers the newest activity first, since buffers of real devices are not in
 * order either. Call with the stream's lock held; vestige takes no lock that
 * could be held meanwhile. */
static void hand_over(stream *self)
{
    while (self->count != 0)
        vst_device_deliver(recording, &self->buffer[--self->count]);
}

static void flush(vst_collector *collector)
{
    (void)collector;
    for (unsigned i = 0; i < stream_count; i++) {
        pthread_mutex_lock(&streams[i].lock);
        hand_over(&streams[i]);
        pthread_mutex_unlock(&streams[i].lock);
    }
}

static vst_status start(vst_collector *collector)
{
    (void)collector;
    __atomic_store_n(&collecting, recording, __ATOMIC_RELEASE);
    return VST_OK;
}

static void stop(vst_collector *collector)
{
    worker_synchronize();
    __atomic_store_n(&collecting, NULL, __ATOMIC_RELEASE);
    flush(collector);
}

static void destroy(vst_collector *collector)
{
    (void)collector;
}

static const vst_collector_ops ops = {start, flush, stop, destroy};
static vst_collector the_collector = {&ops};

static vst_status make(vst_recording *made_for, vst_collector **collector)
{
    const vst_device declared = {
        .platform = "workers",
        .ordinal = 0,
        .name = "threads of this process",
        .attributes = "\"numSms\": 1, \"maxThreadsPerBlock\": 1",
        .clock = {.read = read_clock,
                  /* Real clocks have about this error. */
                  .ticks_per_second =
                      vst_clock_ticks_per_second() * 3 / 7 * 1.00005},
    };
    vst_status status;

    recording = made_for;
    memset(names, 0, sizeof names);
    status = vst_device_declare(recording, &declared, &device);
    for (unsigned i = 0; status == VST_OK && i < stream_count; i++) {
        char name[32];
        const vst_device_stream one = {.number = i, .name = name};

        snprintf(name, sizeof name, "worker %u", i);
        status = vst_device_declare_stream(recording, device, &one);
    }
    *collector = &the_collector;
    return status;
}

/* Gives each thread ids of its own, so that launching threads do not
 * contend. */
static uint64_t next_correlation(void)
{
    static uint64_t blocks;
    static VST_THREAD_LOCAL uint64_t next, end;

    if (next == end) {
        next = __atomic_fetch_add(&blocks, 1, __ATOMIC_RELAXED) * CORRELATIONS;
        end = next + CORRELATIONS;
        next += next == 0; /* 0 stands for no id */
    }
    return next++;
}

/* Records a call of the runtime that began at `began` and ends now. */
static void record_call(const char *name, uint64_t correlation, vst_ticks began)
{
    const vst_activity call = {
        .kind = VST_ACTIVITY_RUNTIME,
        .device = device,
        .context = CONTEXT,
        .id = id_of(name),
        .correlation = correlation,
        .start = began,
        .end = vst_clock_ticks(),
    };

    vst_device_deliver(recording, &call);
}

/* Called by the worker with its lock held. */
static void record_job(stream *self, const job *done, uint64_t began,
                       uint64_t ended)
{
    if (__atomic_load_n(&collecting, __ATOMIC_ACQUIRE) == NULL)
        return;
    if (self->count == BUFFER)
        hand_over(self);
    self->buffer[self->count++] = (vst_activity){
        .kind = done->kind,
        .device = device,
        .stream = (uint32_t)(self - streams),
        .context = CONTEXT,
        .id = id_of(done->name),
        .correlation = done->correlation,
        .bytes = done->bytes,
        .start = began,
        .end = ended,
    };
}

/* ---- the runtime --------------------------------------------------------- */

static void give(stream *self, const job *what)
{
    while (self->given - self->done == QUEUE)
        pthread_cond_wait(&self->changed, &self->lock);
    self->queue[self->given++ % QUEUE] = *what;
    if (self->given - self->done == 1) /* otherwise the worker is not waiting */
        pthread_cond_broadcast(&self->changed);
}

/* Records a call that gives a stream a job. The stream's lock is held, which
 * stop() also takes: nothing is delivered after stop(). */
static void call(const char *name, unsigned number, job *what)
{
    stream *self = &streams[number];
    bool collects = __atomic_load_n(&collecting, __ATOMIC_RELAXED) != NULL;
    vst_ticks began = collects ? vst_clock_ticks() : 0;

    pthread_mutex_lock(&self->lock);
    collects = collects && __atomic_load_n(&collecting, __ATOMIC_ACQUIRE);
    what->correlation = collects ? next_correlation() : 0;
    give(self, what);
    if (collects)
        record_call(name, what->correlation, began);
    pthread_mutex_unlock(&self->lock);
}

void worker_launch(unsigned number, const char *name,
                   void (*kernel)(void *argument), void *argument)
{
    job what = {.kind = VST_ACTIVITY_KERNEL,
                .name = name,
                .kernel = kernel,
                .argument = argument};

    call("workerLaunchKernel", number, &what);
}

void worker_copy(unsigned number, void *to, const void *from, size_t bytes)
{
    job what = {.kind = VST_ACTIVITY_COPY,
                .name = "Memcpy HtoD (Pageable -> Device)",
                .argument = to,
                .from = from,
                .bytes = bytes};

    call("workerMemcpyAsync", number, &what);
}

void worker_set(unsigned number, void *at, int value, size_t bytes)
{
    job what = {.kind = VST_ACTIVITY_SET,
                .name = "Memset (Device)",
                .argument = at,
                .value = value,
                .bytes = bytes};

    call("workerMemsetAsync", number, &what);
}

void worker_event_record(unsigned number, worker_event *event)
{
    job what = {
        .kind = VST_ACTIVITY_SYNC, .name = "Event Record", .record = event};

    pthread_mutex_lock(&event_lock);
    event->recorded++;
    pthread_mutex_unlock(&event_lock);
    call("workerEventRecord", number, &what);
}

void worker_event_wait(unsigned number, worker_event *event)
{
    job what = {
        .kind = VST_ACTIVITY_SYNC, .name = "Stream Wait Event", .wait = event};

    call("workerStreamWaitEvent", number, &what);
}

void worker_synchronize(void)
{
    vst_ticks began = vst_clock_ticks();

    for (unsigned i = 0; i < stream_count; i++) {
        stream *self = &streams[i];

        pthread_mutex_lock(&self->lock);
        while (self->done != self->given)
            pthread_cond_wait(&self->changed, &self->lock);
        if (i + 1 == stream_count &&
            __atomic_load_n(&collecting, __ATOMIC_ACQUIRE) != NULL)
            record_call("workerDeviceSynchronize", next_correlation(), began);
        pthread_mutex_unlock(&self->lock);
    }
}

/* ---- the workers --------------------------------------------------------- */

static void reach(worker_event *event)
{
    pthread_mutex_lock(&event_lock);
    event->reached++;
    pthread_cond_broadcast(&event_changed);
    pthread_mutex_unlock(&event_lock);
}

static void wait_for(const worker_event *event)
{
    pthread_mutex_lock(&event_lock);
    while (event->reached != event->recorded)
        pthread_cond_wait(&event_changed, &event_lock);
    pthread_mutex_unlock(&event_lock);
}

static void run(const job *what)
{
    if (what->kernel != NULL)
        what->kernel(what->argument);
    else if (what->kind == VST_ACTIVITY_COPY)
        memcpy(what->argument, what->from, what->bytes);
    else if (what->kind == VST_ACTIVITY_SET)
        memset(what->argument, what->value, what->bytes);
    else if (what->record != NULL)
        reach(what->record);
    else if (what->wait != NULL)
        wait_for(what->wait);
}

static void *work(void *argument)
{
    stream *self = argument;
    bool ends = false, was_full;

    while (!ends) {
        uint64_t began, ended;
        job next;

        pthread_mutex_lock(&self->lock);
        while (self->done == self->given)
            pthread_cond_wait(&self->changed, &self->lock);
        next = self->queue[self->done % QUEUE];
        pthread_mutex_unlock(&self->lock);

        began = read_clock(NULL);
        run(&next);
        ended = read_clock(NULL);
        ends = next.kind == 0;

        pthread_mutex_lock(&self->lock);
        if (!ends)
            record_job(self, &next, began, ended);
        was_full = self->given - self->done == QUEUE;
        if (++self->done == self->given || was_full)
            pthread_cond_broadcast(&self->changed);
        pthread_mutex_unlock(&self->lock);
    }
    return NULL;
}

int worker_device_open(unsigned count)
{
    for (stream_count = 0; stream_count < count; stream_count++) {
        stream *self = &streams[stream_count];

        memset(self, 0, sizeof *self);
        pthread_mutex_init(&self->lock, NULL);
        pthread_cond_init(&self->changed, NULL);
        if (pthread_create(&self->worker, NULL, work, self) != 0) {
            worker_device_close();
            return -1;
        }
    }
    return vst_collector_register("workers", make) == VST_OK ? 0 : -1;
}

void worker_device_close(void)
{
    const job end = {0};

    vst_collector_unregister("workers");
    for (unsigned i = 0; i < stream_count; i++) {
        pthread_mutex_lock(&streams[i].lock);
        give(&streams[i], &end);
        pthread_mutex_unlock(&streams[i].lock);
        pthread_join(streams[i].worker, NULL);
        pthread_mutex_destroy(&streams[i].lock);
        pthread_cond_destroy(&streams[i].changed);
    }
    stream_count = 0;
}
