/* Records through the recorder into what HOW names, and prints the memory that
 * this took:
 *
 *   record_file file|ring|crowd|torn|fresh|kept RECORDS THREADS [PATH]
 *
 *   file   a trace file, stopped and finished
 *   ring   the same, bounded to RING_SIZE
 *   crowd  the same, by the main thread alone, while THREADS others that have
 *          recorded a little wait
 *   torn   the same, killed as soon as all is recorded, its threads alive
 *   fresh  anonymous memory, given back to the system chunk by chunk
 *   kept   anonymous memory, kept to the end
 *
 * One thread is the main one; of more, up to ALIVE run at a time, and each that
 * ends is followed by the next. bench/store.py runs this program and takes its
 * CPU time; nothing is measured in here but memory. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vestige/session.h>

#include "record/recording.h"

enum {
    ALIVE = 8,
    CROWD_MAX = 10000,
    CROWD_STACK = 64 * 1024,
    CROWD_RECORDS = 100, /* records of each thread of a crowd */
    RING_SIZE = 64 << 20,
};

static void fail(const char *what)
{
    fprintf(stderr, "record_file: %s\n", what);
    exit(2);
}

/* ---- memory in place of a file ------------------------------------------ */

static void release_memory(vst_chunk *chunk)
{
    munmap(chunk->memory, chunk->memory_size);
    chunk->words = NULL;
}

static void keep_memory(vst_chunk *chunk)
{
    chunk->words = NULL;
}

static void (*release)(vst_chunk *chunk);

/* As large as the file's chunks, header included. */
static vst_status acquire(void *ctx, uint32_t thread, size_t words,
                          size_t least, vst_chunk *chunk)
{
    size_t size = (words * 8 + 64 + 4095) & ~(size_t)4095;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)ctx, (void)thread, (void)least;
    if (memory == MAP_FAILED)
        return VST_E_NOMEM;
    *chunk = (vst_chunk){
        .words = (uint64_t *)memory + 8,
        .capacity = size / 8 - 8,
        .start = vst_clock_ticks(),
        .release = release,
        .memory = memory,
        .memory_size = size,
    };
    return VST_OK;
}

static size_t seal(void *ctx, vst_chunk *chunk, size_t used, uint32_t segments)
{
    (void)ctx, (void)used, (void)segments;
    chunk->release(chunk);
    return 0;
}

static vst_status define(void *ctx, const vst_entry *entry)
{
    (void)ctx, (void)entry;
    return VST_OK;
}

static void set_lost(void *ctx, uint64_t total)
{
    (void)ctx, (void)total;
}

static const vst_chunk_provider memory = {
    .acquire = acquire, .seal = seal, .define = define, .lost = set_lost};

/* ---- recording ---------------------------------------------------------- */

typedef struct work {
    pthread_t thread;
    vst_id ids[4];
    uint64_t records;
    bool stays; /* stays alive until the process is killed */
} work;

static sem_t recorded;

static void *record(void *arg)
{
    const work *w = arg;

    for (uint64_t i = 0; i < w->records / 2; i++) {
        vst_record(VST_ENTER, w->ids[i & 3]);
        vst_record(VST_EXIT, w->ids[i & 3]);
    }
    if (w->stays) {
        sem_post(&recorded);
        pause();
    }
    return NULL;
}

static void define_ids(vst_recording *recording, work *w)
{
    for (int i = 0; i < 4; i++) {
        char name[2] = {(char)('a' + i), 0};
        vst_definition definition = {
            .kind = VST_DEF_NATIVE, .name = name, .name_len = 1, .file = ""};

        if (vst_recording_define_id(recording, &definition, &w->ids[i]) !=
            VST_OK)
            fail("no id");
    }
}

static void record_in_threads(work each, unsigned threads, bool dies)
{
    work all[ALIVE];

    for (unsigned i = 0; i < threads; i++) {
        work *w = &all[i % ALIVE];

        if (i >= ALIVE)
            pthread_join(w->thread, NULL);
        *w = each;
        w->stays = dies && i + ALIVE >= threads;
        if (pthread_create(&w->thread, NULL, record, w) != 0)
            fail("no thread");
    }
    for (unsigned i = 0; i < ALIVE && i < threads; i++) {
        if (dies)
            sem_wait(&recorded);
        else
            pthread_join(all[i].thread, NULL);
    }
}

static sem_t told;

static void *record_and_wait(void *arg)
{
    record(arg);
    sem_post(&recorded);
    sem_wait(&told);
    return NULL;
}

static void record_in_a_crowd(work main_work, unsigned threads)
{
    static pthread_t crowd[CROWD_MAX];
    work little = main_work;
    pthread_attr_t attributes;

    if (threads > CROWD_MAX)
        fail("too many threads");
    little.records = CROWD_RECORDS;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, CROWD_STACK);
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&crowd[i], &attributes, record_and_wait, &little))
            fail("no thread");
    for (unsigned i = 0; i < threads; i++)
        sem_wait(&recorded);
    record(&main_work);
    for (unsigned i = 0; i < threads; i++)
        sem_post(&told);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(crowd[i], NULL);
    pthread_attr_destroy(&attributes);
}

static void record_all(vst_recording *recording, uint64_t records,
                       unsigned threads, bool dies, bool in_a_crowd)
{
    work each = {.records = in_a_crowd ? records : records / threads};

    define_ids(recording, &each);
    if (in_a_crowd)
        record_in_a_crowd(each, threads);
    else if (threads == 1)
        record(&each);
    else
        record_in_threads(each, threads, dies);
    if (dies)
        kill(getpid(), SIGKILL);
}

static uint64_t record_to_file(const char *how, const char *path,
                               uint64_t records, unsigned threads)
{
    bool dies = strcmp(how, "torn") == 0, crowd = strcmp(how, "crowd") == 0;
    vst_session_options options = {.path = path};
    vst_session *session;
    vst_error error;
    uint64_t lost;

    if (crowd || strcmp(how, "ring") == 0)
        options.max_size = RING_SIZE;
    if (vst_session_create(&options, &session, &error) != VST_OK ||
        vst_session_start(session, &error) != VST_OK)
        fail(error.sys_errno ? strerror(error.sys_errno)
                             : vst_status_string(error.status));
    record_all(vst_session_recording(session), records, threads, dies, crowd);
    if (vst_session_finish(session, &error) != VST_OK)
        fail(vst_status_string(error.status));
    lost = vst_session_lost(session);
    vst_session_destroy(session);
    return lost;
}

static uint64_t record_to_memory(uint64_t records, unsigned threads)
{
    vst_recording *recording;
    uint64_t lost;

    if (vst__recording_create(&memory, &recording) != VST_OK ||
        vst__recording_start(recording) != VST_OK)
        fail("no recording");
    record_all(recording, records, threads, false, false);
    vst__recording_stop(recording);
    lost = vst__recording_lost(recording);
    vst__recording_destroy(recording);
    return lost;
}

/* ---- memory of the process ---------------------------------------------- */

/* Returns a field of /proc/self/status, in KiB. */
static long status_kib(const char *field)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    long kib = -1;

    while (file != NULL && kib < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            kib = strtol(line + strlen(field), NULL, 10);
    if (kib < 0)
        fail("/proc/self/status tells no memory");
    fclose(file);
    return kib;
}

int main(int argc, char **argv)
{
    const char *how, *path;
    uint64_t records, lost;
    bool is_kept;
    unsigned threads;
    long before;

    if (argc < 4)
        fail("HOW RECORDS THREADS [PATH]");
    how = argv[1];
    path = argc > 4 ? argv[4] : NULL;
    records = strtoull(argv[2], NULL, 10);
    threads = (unsigned)strtoul(argv[3], NULL, 10);
    is_kept = strcmp(how, "kept") == 0;

    if (threads < 1)
        fail("no thread is no recording");
    sem_init(&recorded, 0, 0);
    sem_init(&told, 0, 0);
    before = status_kib("VmRSS:");
    if (is_kept || strcmp(how, "fresh") == 0) {
        release = is_kept ? keep_memory : release_memory;
        lost = record_to_memory(records, threads);
    } else {
        if (path == NULL)
            fail("a file has a path");
        lost = record_to_file(how, path, records, threads);
    }
    printf("{\"before_kib\": %ld, \"after_kib\": %ld, \"peak_kib\": %ld, "
           "\"lost\": %llu}\n",
           before, status_kib("VmRSS:"), status_kib("VmHWM:"),
           (unsigned long long)lost);
    return 0;
}
