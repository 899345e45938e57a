/* Which threads are watched for switches, and which words go to the stream: see
 * switches.h. With the recorder's lock held. */
#include "record/switches.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"

enum {
    /* Pages of a ring: for the first threads, and for the others, because the
     * system may limit the pages of all rings. */
    MANY_PAGES = 8,
    FEW_PAGES = 1,
    THREADS_WITH_MANY = 16,
    /* How often rings are read (USUAL_NS), and the fill level that makes
     * reading more frequent. */
    USUAL_NS = 20 * 1000000,
    LEAST_NS = 1000000,
    /* with many threads: between two readings, this long for each thread */
    EACH_NS = 50000,
    MOST_NS = 100 * 1000000, /* limit for the time between two readings */
    /* per cent of a ring that are filled: above FULL rings are read more often,
     * below EMPTY less often */
    FULL = 25,
    EMPTY = 5,
    /* A thread is assumed to have run for this long before its first record;
     * the system's time for that may be slightly earlier than ours. */
    BEFORE_NS = 20000,
    TIME_EVERY_NS = 100 * 1000000, /* how often the stream gets the time */
    /* With checkpoints, every thread's last word is written again where a
     * chunk begins, as long as these words take no more than this share of
     * the chunk. */
    AGAIN_WORDS = 3,
    AGAIN_PART = 4,
};

#define METADATA_KEY "vestige.switches"

/* Words for one thread that are written together. */
typedef struct words {
    uint64_t payload[VST_ESCAPE_WORDS_MAX];
    uint32_t count;
    vst_recording *recording;
    vst__watch *watch;
} words;

static words scratch; /* guarded by the recorder's lock */

/* ---- the stream ---------------------------------------------------------- */

static void switches_repeat_words(vst_recording *recording)
{
    vst__writer *writer = &recording->switches.writer;

    if (!recording->checkpoints ||
        recording->switches.count * AGAIN_WORDS * AGAIN_PART >
            writer->chunk.capacity)
        return;
    for (vst__watch *w = recording->switches.watches; w != NULL; w = w->next) {
        const uint64_t payload[2] = {w->number, w->last};

        if (w->has_word && vst__writer_has_room(writer, AGAIN_WORDS))
            vst__writer_escape(writer, VST_ESCAPE_SWITCHES, payload, 2);
    }
}

/* Returns false if there is no room in the file. */
static bool switches_make_room(vst_recording *recording, size_t need)
{
    vst__writer *writer = &recording->switches.writer;
    const uint64_t *chunk = writer->chunk.words;
    size_t more = need;

    if (recording->checkpoints)
        more += recording->switches.count * AGAIN_WORDS;
    if (writer->recording == NULL) {
        writer->number = VST_THREAD_SWITCHES;
        vst__writer_attach(writer, recording);
    } else {
        vst__writer_leave_what_is_gone(writer);
        if (writer->chunk.words == NULL)
            vst__writer_ask_again(writer, more);
    }
    if (writer->chunk.words != NULL && !vst__writer_has_room(writer, need))
        vst__writer_change_chunk(writer, more);
    if (writer->chunk.words != NULL && writer->chunk.words != chunk)
        switches_repeat_words(recording);
    return writer->chunk.words != NULL && vst__writer_has_room(writer, need);
}

static bool switches_store(vst_recording *recording, const uint64_t *payload,
                           uint32_t count)
{
    if (!switches_make_room(recording, (size_t)count + 1))
        return false;
    vst__writer_escape(&recording->switches.writer, VST_ESCAPE_SWITCHES,
                       payload, count);
    recording->switches.has_written = true;
    return true;
}

static void switches_write_time(vst_recording *recording, uint32_t what,
                                uint64_t ns)
{
    const uint64_t payload[2] = {0, vst_switch_word(what, ns)};

    if (switches_store(recording, payload, 2)) {
        recording->switches.written_ns = ns;
        recording->switches.has_written = false;
    }
}

/* ---- one thread ---------------------------------------------------------- */

static void switches_flush(words *self)
{
    vst__watch *watch = self->watch;

    if (self->count > 1 &&
        !switches_store(self->recording, self->payload, self->count)) {
        watch->lost += self->count - 1;
        watch->has_lost = true;
    }
    self->count = 1;
}

static void switches_add(words *self, uint64_t word)
{
    if (self->count == VST_ESCAPE_WORDS_MAX)
        switches_flush(self);
    self->payload[self->count++] = word;
}

/* Adds the state of a thread before its first switch, which is the state that
 * this switch ended. */
static void add_first(words *self, bool runs)
{
    vst__watch *watch = self->watch;

    watch->has_word = true;
    watch->last =
        vst_switch_word(runs ? VST_SWITCH_IN : VST_SWITCH_OUT, watch->since_ns);
    switches_add(self, watch->last);
    if (!runs || watch->waited_until_ns == 0)
        return;
    switches_add(self, vst_switch_word(VST_SWITCH_OUT, watch->waited_from_ns));
    watch->last = vst_switch_word(VST_SWITCH_IN, watch->waited_until_ns);
    switches_add(self, watch->last);
}

/* Adds that switches were lost: the thread's last state is unknown, and stays
 * unknown where the last word is written again. */
static void add_lost(words *self)
{
    vst__watch *watch = self->watch;

    switches_add(self, vst_switch_word(VST_SWITCH_LOST, watch->lost));
    watch->has_word = true;
    watch->last = vst_switch_word(VST_SWITCH_LOST, 0);
    watch->has_lost = false;
    watch->lost = 0;
}

static void add_switch(void *ctx, vst_switch what, uint64_t value)
{
    words *self = ctx;
    vst__watch *watch = self->watch;

    if (what == VST_SWITCH_LOST) {
        watch->lost += value;
        watch->has_lost = true;
        return;
    }
    if (!watch->has_word && !watch->has_lost)
        add_first(self, what != VST_SWITCH_IN);
    if (watch->has_lost)
        add_lost(self);
    watch->has_word = true;
    watch->last = vst_switch_word(what, value);
    switches_add(self, watch->last);
}

/* Writes the new switches of one thread, and returns how full its ring was, in
 * per cent. */
static unsigned switches_write_thread(vst_recording *recording,
                                      vst__watch *watch)
{
    words *self = &scratch;
    unsigned full;

    self->recording = recording;
    self->watch = watch;
    self->payload[0] = watch->number;
    self->count = 1;
    full = vst__os_switches_read(&watch->ring, add_switch, self);
    if (!watch->has_word && !watch->has_lost)
        add_first(self,
                  vst__os_thread_cpu_ns(watch->system_tid) != watch->cpu_ns);
    if (watch->has_lost) /* there may be no switch after the loss */
        add_lost(self);
    switches_flush(self);
    return full;
}

static bool switches_runs(const vst__watch *watch)
{
    return watch->has_word && vst_switch_what(watch->last) == VST_SWITCH_IN;
}

/* ---- watching threads ---------------------------------------------------- */

/* Writes to the trace how many threads could not be watched, and why. */
static void switches_write_refused(vst_recording *recording)
{
    const vst__switches *self = &recording->switches;
    char json[96];
    vst_entry entry = {
        .kind = VST_ENTRY_METADATA,
        .a = METADATA_KEY,
        .a_len = strlen(METADATA_KEY),
        .b = json,
    };

    entry.b_len = (size_t)snprintf(
        json, sizeof json,
        "{\"threads\": %llu, \"refused\": %llu, \"errno\": %d}",
        (unsigned long long)self->threads, (unsigned long long)self->refused,
        self->error);
    recording->provider->define(recording->provider->ctx, &entry);
}

static int open_ring(const vst__switches *self, uint64_t system_tid,
                     vst__os_switch_ring *ring)
{
    int failed = 1;

    if (self->count < THREADS_WITH_MANY)
        failed = vst__os_switches_open(system_tid, MANY_PAGES, ring);
    if (failed != 0)
        failed = vst__os_switches_open(system_tid, FEW_PAGES, ring);
    return failed;
}

static vst__watch *watch_thread(vst_recording *recording, vst__thread *thread,
                                uint64_t system_tid)
{
    vst__switches *self = &recording->switches;
    vst__watch *watch;
    int failed;

    if (!self->wanted || thread->watch != NULL || thread->is_refused)
        return NULL;
    self->threads++;
    watch = vst__calloc(1, sizeof *watch);
    failed = watch != NULL ? open_ring(self, system_tid, &watch->ring) : ENOMEM;
    if (failed != 0) {
        vst__free(watch);
        thread->is_refused = true;
        self->refused++;
        if (self->error == 0) {
            self->error = failed;
            switches_write_refused(recording);
        }
        return NULL;
    }
    watch->number = thread->number;
    watch->system_tid = system_tid;
    watch->next = self->watches;
    if (watch->next != NULL)
        watch->next->previous = watch;
    self->watches = watch;
    self->count++;
    self->pid = vst__os_process_id();
    thread->watch = watch;
    vst__switches_need_help(true);
    return watch;
}

/* The thread's state is found when its ring is first read. In a forked child,
 * the system may report a thread under the id it has in the parent. */
void vst__switches_watch(vst_recording *recording, vst__thread *thread)
{
    vst__watch *watch = NULL;

    if (recording->switches.wanted && thread->handle == vst__os_thread_handle())
        vst__switches_watch_here(recording, thread, 0, 0);
    else if (recording->switches.wanted &&
             vst__os_thread_is_here(thread->system_tid))
        watch = watch_thread(recording, thread, thread->system_tid);
    if (watch == NULL)
        return;
    watch->since_ns = vst_clock_ticks_portable();
    watch->cpu_ns = vst__os_thread_cpu_ns(watch->system_tid);
}

static uint64_t ns_between(vst_ticks since, vst_ticks now)
{
    if (since == 0 || since >= now)
        return 0;
    return (uint64_t)((double)(now - since) * 1e9 /
                      vst_clock_ticks_per_second());
}

/* The thread waited for the lock, and perhaps for the system while that opened
 * the ring. The time that it ran while it held the lock is not part of the
 * wait. */
static void note_wait(vst__watch *watch, uint64_t now_ns, uint64_t waited_ns,
                      uint64_t ran_ns)
{
    if (waited_ns <= ran_ns + BEFORE_NS)
        return;
    watch->waited_from_ns = now_ns - waited_ns;
    watch->waited_until_ns = now_ns - ran_ns;
}

void vst__switches_watch_here(vst_recording *recording, vst__thread *thread,
                              vst_ticks since, vst_ticks asked)
{
    uint64_t tid = vst__os_thread_id(), now_ns;
    uint64_t ran_ns =
        recording->switches.wanted ? vst__os_thread_cpu_ns(tid) : 0;
    vst__watch *watch = watch_thread(recording, thread, tid);
    vst_ticks now;

    if (watch == NULL)
        return;
    ran_ns = vst__os_thread_cpu_ns(tid) - ran_ns;
    /* Read the clock first: if the thread is preempted between the two reads,
     * `since` is too early rather than too late. */
    now_ns = vst_clock_ticks_portable();
    now = vst_clock_ticks();
    watch->since_ns = now_ns - BEFORE_NS - ns_between(since, now);
    watch->cpu_ns = UINT64_MAX;
    note_wait(watch, now_ns, ns_between(asked, now), ran_ns);
}

static void close_watch(vst__switches *self, vst__watch *watch)
{
    if (watch->next != NULL)
        watch->next->previous = watch->previous;
    if (watch->previous != NULL)
        watch->previous->next = watch->next;
    else
        self->watches = watch->next;
    self->count--;
    vst__os_switches_close(&watch->ring);
    vst__free(watch);
}

/* Writes that the thread ran until now, and that nothing is known after
 * that. */
static void switches_write_end(vst_recording *recording,
                               const vst__watch *watch)
{
    const uint64_t payload[3] = {
        watch->number,
        vst_switch_word(VST_SWITCH_OUT, vst_clock_ticks_portable()),
        vst_switch_word(VST_SWITCH_LOST, 0),
    };

    if (switches_runs(watch))
        switches_store(recording, payload, 3);
}

void vst__switches_unwatch(vst_recording *recording, vst__thread *thread)
{
    if (thread->watch == NULL)
        return;
    if (vst__recording_now == recording) {
        switches_write_thread(recording, thread->watch);
        switches_write_end(recording, thread->watch);
    }
    close_watch(&recording->switches, thread->watch);
    thread->watch = NULL;
}

/* Threads that come back after a stop are watched anew. */
static void forget_threads(vst_recording *recording)
{
    for (vst__thread *t = recording->threads; t != NULL; t = t->next) {
        t->watch = NULL;
        t->is_refused = false;
    }
}

void vst__switches_stop(vst_recording *recording)
{
    vst__switches *self = &recording->switches;
    uint64_t now_ns = vst_clock_ticks_portable();

    if (!self->wanted)
        return;
    vst__switches_need_help(false);
    /* left over from a fork that vestige did not see */
    if (self->watches != NULL && self->pid != vst__os_process_id()) {
        vst__switches_forget(recording);
        return;
    }
    for (vst__watch *w = self->watches; w != NULL; w = w->next)
        switches_write_thread(recording, w);
    if (self->writer.recording != NULL)
        switches_write_time(recording, VST_SWITCHES_END, now_ns);
    while (self->watches != NULL)
        close_watch(self, self->watches);
    forget_threads(recording);
    if (self->refused != 0)
        switches_write_refused(recording);
}

void vst__switches_forget(vst_recording *recording)
{
    vst__switches *self = &recording->switches;

    for (vst__watch *w = self->watches; w != NULL; w = w->next)
        w->ring.memory = NULL;
    while (self->watches != NULL)
        close_watch(self, self->watches);
    forget_threads(recording);
}

/* ---- the helper's work --------------------------------------------------- */

static uint64_t next_interval(vst__switches *self, unsigned full)
{
    uint64_t usual = USUAL_NS;

    if (self->count * EACH_NS > usual)
        usual = self->count * EACH_NS;
    if (usual > MOST_NS)
        usual = MOST_NS;
    if (self->interval_ns == 0)
        self->interval_ns = usual;
    if (full > FULL)
        self->interval_ns /= 2;
    else if (full < EMPTY)
        self->interval_ns *= 2;
    if (self->interval_ns < LEAST_NS)
        self->interval_ns = LEAST_NS;
    if (self->interval_ns > usual)
        self->interval_ns = usual;
    return self->interval_ns;
}

uint64_t vst__switches_write(vst_recording *recording)
{
    vst__switches *self = &recording->switches;
    uint64_t now_ns = vst_clock_ticks_portable();
    unsigned most = 0;
    bool any_runs = false;

    for (vst__watch *w = self->watches; w != NULL; w = w->next) {
        unsigned full = switches_write_thread(recording, w);
        most = full > most ? full : most;
        any_runs |= switches_runs(w);
    }
    /* If every thread waits and none has switched, nothing is written, so the
     * file of an idle program does not grow. */
    if ((self->has_written || any_runs) &&
        now_ns - self->written_ns >= TIME_EVERY_NS)
        switches_write_time(recording, VST_SWITCHES_TOLD, now_ns);
    return self->watches != NULL ? next_interval(self, most) : 0;
}
