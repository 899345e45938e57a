/* Threads that record on their own while recordings start and stop around them,
 * threads that come and go, and definitions from everywhere. Made for the
 * thread sanitizer; also checks that no record is lost or doubled. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

#include "check.h"
#include "memory_provider.h"
#include "record/recording.h"

enum { THREADS = 8, WINDOWS = 40, CALLS = 2000 };

static atomic_int stopping;
static atomic_ullong recorded; /* recorded pairs, of threads that saw a
                                * recording */

static void record_fifty(void)
{
    for (int i = 0; i < 50; i++) {
        vst_record(VST_ENTER, 1);
        vst_record(VST_EXIT, 1);
    }
}

/* Threads hold this lock while they record; who holds the lock has stopped all
 * threads. */
static pthread_mutex_t world = PTHREAD_MUTEX_INITIALIZER;
static int holds;

static void hold(bool begins)
{
    if (begins) {
        pthread_mutex_lock(&world);
        holds++;
    } else {
        pthread_mutex_unlock(&world);
    }
}

/* Starts and stops windows while threads run `record`. */
static void start_and_stop_beside(void *(*record)(void *), bool holding)
{
    pthread_t threads[THREADS];
    vst_recording *recording;

    atomic_store(&stopping, 0);
    holds = 0;
    provider_begin();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, record, NULL);
    for (int i = 0; i < WINDOWS; i++) {
        unsigned long long before;

        CHECK_INT(vst__recording_create(&provider.table, &recording), VST_OK);
        if (holding)
            vst__recording_set_hold(recording, hold);
        CHECK_INT(vst__recording_start(recording), VST_OK);
        before = atomic_load(&recorded);
        while (atomic_load(&recorded) == before)
            ;
        vst__recording_stop(recording);
        CHECK_INT(holds, holding ? i + 1 : 0);
        vst__recording_destroy(recording); /* stops the recording if it still
                                            * runs */
        CHECK_INT(holds, holding ? i + 1 : 0);
    }
    atomic_store(&stopping, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < provider.chunk_count; i++)
        CHECK(provider.chunks[i].released);
    provider_end();
}

static void *record_freely(void *unused)
{
    (void)unused;
    while (!atomic_load(&stopping))
        if (vst_thread_enter_free()) {
            record_fifty();
            atomic_fetch_add(&recorded, 50);
        }
    return NULL;
}

static void free_running_threads_survive_every_start_and_stop(void)
{
    start_and_stop_beside(record_freely, false);
}

static void *record_in_the_world(void *unused)
{
    (void)unused;
    while (!atomic_load(&stopping)) {
        pthread_mutex_lock(&world);
        record_fifty();
        pthread_mutex_unlock(&world);
        atomic_fetch_add(&recorded, 50);
    }
    return NULL;
}

static void threads_that_are_held_survive_every_start_and_stop(void)
{
    start_and_stop_beside(record_in_the_world, true);
}

static vst_recording *shared;

static void *come_and_go(void *argument)
{
    vst_definition definition = {.kind = VST_DEF_NATIVE, .name_len = 1};
    const char names[] = "abcdefgh";
    vst_id id;

    definition.name = &names[*(int *)argument];
    vst_recording_define_id(shared, &definition, &id);
    if (vst_thread_enter_free()) {
        for (int i = 0; i < CALLS; i++) {
            vst_record(VST_ENTER, id);
            vst_record(VST_EXIT, id);
        }
        atomic_fetch_add(&recorded, CALLS);
    }
    return NULL;
}

static uint64_t count_enters(const kept_chunk *chunk)
{
    uint64_t count = 0;

    for (size_t i = 0; i < chunk->used; i++) {
        uint64_t word = chunk->words[i];
        if (vst_word_kind(word) == VST_ESCAPE)
            i += vst_word_escape_words(word);
        else
            count += vst_word_kind(word) == VST_ENTER;
    }
    return count;
}

static void short_threads_share_chunks_and_lose_nothing(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    uint64_t enters = 0;

    provider_begin();
    atomic_store(&recorded, 0);
    CHECK_INT(vst__recording_create(&provider.table, &shared), VST_OK);
    CHECK_INT(vst__recording_start(shared), VST_OK);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < THREADS; i++) {
            numbers[i] = i;
            pthread_create(&threads[i], NULL, come_and_go, &numbers[i]);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    vst__recording_stop(shared);
    for (size_t i = 0; i < provider.chunk_count; i++)
        enters += count_enters(&provider.chunks[i]);
    CHECK_INT(enters, (long long)atomic_load(&recorded));
    CHECK_INT(enters, 20 * THREADS * CALLS);
    vst__recording_destroy(shared);
    provider_end();
}

static sem_t has_recorded, may_end;

static void *record_and_wait(void *unused)
{
    (void)unused;
    if (vst_thread_enter_free()) {
        vst_record(VST_ENTER, 1);
        vst_record(VST_EXIT, 1);
    }
    sem_post(&has_recorded);
    sem_wait(&may_end);
    return NULL;
}

/* The C library gives a new thread the handle of an ended thread. */
static void a_thread_that_ends_between_windows_is_not_the_next_one(void)
{
    pthread_t one, next;
    uint32_t numbers[2];

    provider_begin();
    sem_init(&has_recorded, 0, 0);
    sem_init(&may_end, 0, 0);
    CHECK_INT(vst__recording_create(&provider.table, &shared), VST_OK);
    CHECK_INT(vst__recording_start(shared), VST_OK);
    pthread_create(&one, NULL, record_and_wait, NULL);
    sem_wait(&has_recorded);
    vst__recording_stop(shared);
    numbers[0] = provider.chunks[provider.chunk_count - 1].thread;
    sem_post(&may_end);
    pthread_join(one, NULL);
    CHECK_INT(vst__recording_start(shared), VST_OK);
    pthread_create(&next, NULL, record_and_wait, NULL);
    sem_wait(&has_recorded);
    vst__recording_stop(shared);
    numbers[1] = provider.chunks[provider.chunk_count - 1].thread;
    sem_post(&may_end);
    pthread_join(next, NULL);
    CHECK_INT(numbers[0], 1);
    CHECK_INT(numbers[1], 2);
    vst__recording_destroy(shared);
    provider_end();
}

/* ---- cache lines -------------------------------------------------------- */

static uintptr_t in_line(const volatile void *address)
{
    return (uintptr_t)address % VST_CACHE_LINE;
}

static void *find_buffer(void *unused)
{
    vst_record(VST_ENTER, 1);
    vst_record(VST_EXIT, 1);
    return in_line(vst_thread_buffer) == 0 ? vst_thread_buffer : unused;
}

static void what_one_thread_writes_is_in_no_line_that_another_reads(void)
{
    /* The linker defines these for a section. */
    extern char __start_vst_read_by_hooks[], __stop_vst_read_by_hooks[];
    const char *epoch = (const char *)&vst_recording_epoch;
    const char *clock = (const char *)&vst_clock_in_use;
    vst_recording *recording;
    pthread_t threads[THREADS];
    void *buffer;

    CHECK_INT(in_line(__start_vst_read_by_hooks), 0);
    CHECK(epoch >= __start_vst_read_by_hooks &&
          epoch < __stop_vst_read_by_hooks);
    CHECK(clock >= __start_vst_read_by_hooks &&
          clock < __stop_vst_read_by_hooks);
    CHECK_INT(in_line(&vst__recorder_lock), 0);
    CHECK_INT(sizeof vst__recorder_lock % VST_CACHE_LINE, 0);
    provider_begin();
    CHECK_INT(vst__recording_create(&provider.table, &recording), VST_OK);
    CHECK_INT(vst__recording_start(recording), VST_OK);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, find_buffer, NULL);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &buffer);
        CHECK(buffer != NULL);
    }
    vst__recording_stop(recording);
    vst__recording_destroy(recording);
    provider_end();
}

int main(void)
{
    TEST(free_running_threads_survive_every_start_and_stop);
    TEST(threads_that_are_held_survive_every_start_and_stop);
    TEST(short_threads_share_chunks_and_lose_nothing);
    TEST(a_thread_that_ends_between_windows_is_not_the_next_one);
    TEST(what_one_thread_writes_is_in_no_line_that_another_reads);
    return checks_end();
}
