/* Measures records of memory: nanoseconds compared with a plain record, bytes
 * in the file, packed and plain, and the time to replay them.
 *
 *     record_memory [millions] [file]
 *
 * The mix is made up: calls that allocate temporaries of a few sizes and free
 * them in reverse, results that live for a while, buffers that grow, some of it
 * kept; real addresses of malloc, so that their patterns are real ones too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <vestige/vestige.h>

#include "record/recording.h"

enum { KEPT = 20000, CALLS = 300, PARTS = 6 };
#ifndef ROUNDS_MAX
#define ROUNDS_MAX 400
#endif

static uint64_t seed = 88172645463325252u;

static uint32_t pick(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32) % n;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Sizes that a call allocates. */
typedef struct call {
    uint32_t sizes[PARTS];
    vst_stack_id stacks[PARTS];
    uint32_t count;
    bool grows, keeps;
} call;

static call calls[CALLS];
static void *kept[KEPT];
static uint64_t records;

static const uint32_t usual[] = {32, 48,  56,  64,  64,  72,  88,
                                 96, 112, 160, 232, 256, 400, 520};

static void make_calls(void)
{
    for (int i = 0; i < CALLS; i++) {
        calls[i].count = 1 + pick(PARTS);
        calls[i].grows = pick(10) == 0;
        calls[i].keeps = pick(4) == 0;
        for (uint32_t j = 0; j < calls[i].count; j++) {
            calls[i].sizes[j] = usual[pick(14)];
            calls[i].stacks[j] = 1 + pick(2000);
        }
    }
}

static void *take(vst_memory_kind kind, size_t size, vst_stack_id stack)
{
    void *block = malloc(size);

    vst_record_alloc(kind, (uintptr_t)block, size, stack, 0, vst_clock_ticks());
    records++;
    return block;
}

static void give(vst_memory_kind kind, void *block)
{
    vst_record_free(kind, (uintptr_t)block, 0, vst_clock_ticks());
    free(block);
    records++;
}

static void make(const call *c)
{
    void *blocks[PARTS];

    for (uint32_t i = 0; i < c->count; i++)
        blocks[i] =
            take(VST_MEMORY_PY_OBJECT_MALLOC,
                 c->sizes[i] + (pick(8) == 0 ? pick(200) : 0), c->stacks[i]);
    if (c->grows)
        for (size_t size = 64; size < 64u << pick(8); size += size / 2) {
            void *buffer = take(VST_MEMORY_PY_MEM_REALLOC, size, c->stacks[0]);
            give(VST_MEMORY_PY_MEM_REALLOC, buffer);
        }
    for (uint32_t i = c->count; i-- != 0;) {
        if (c->keeps && i == 0) {
            void **place = &kept[pick(KEPT)];
            if (*place != NULL)
                give(VST_MEMORY_PY_OBJECT_FREE, *place);
            *place = blocks[0];
        } else {
            give(VST_MEMORY_PY_OBJECT_FREE, blocks[i]);
        }
    }
}

/* Loops over a few calls, as programs do. */
static void run(uint64_t wanted)
{
    while (records < wanted) {
        uint32_t first = pick(CALLS), count = 1 + pick(5);
        uint32_t rounds = 1 + pick(ROUNDS_MAX);

        for (uint32_t i = 0; i < rounds; i++)
            for (uint32_t j = 0; j < count; j++)
                make(&calls[(first + j * 7) % CALLS]);
    }
}

/* ---- one record --------------------------------------------------------- */

/* Uses the same memory again and again, to measure only the record. */
static uint64_t words[16384];

static void release_words(vst_chunk *chunk)
{
    chunk->words = NULL;
}

static vst_status acquire_words(void *ctx, uint32_t thread, size_t count,
                                size_t least, vst_chunk *chunk)
{
    (void)ctx, (void)thread, (void)count, (void)least;
    *chunk = (vst_chunk){.words = words,
                         .capacity = sizeof words / sizeof *words,
                         .start = vst_clock_ticks(),
                         .release = release_words};
    return VST_OK;
}

static size_t seal_words(void *ctx, vst_chunk *chunk, size_t used,
                         uint32_t segments)
{
    (void)ctx, (void)used, (void)segments;
    release_words(chunk);
    return 0;
}

static vst_status define_nothing(void *ctx, const vst_entry *entry)
{
    (void)ctx, (void)entry;
    return VST_OK;
}

static void lose_nothing(void *ctx, uint64_t total)
{
    (void)ctx, (void)total;
}

static const vst_chunk_provider provider = {.acquire = acquire_words,
                                            .seal = seal_words,
                                            .define = define_nothing,
                                            .lost = lose_nothing};

enum { ROUNDS = 8000000 };

static void record_plain(void)
{
    for (int i = 0; i < ROUNDS / 2; i++) {
        vst_record(VST_ENTER, 1);
        vst_record(VST_EXIT, 1);
    }
}

/* Each block is freed `later` allocations later. */
static void record_pairs(uintptr_t later)
{
    for (uintptr_t i = 0; i < ROUNDS / 2; i++) {
        vst_record_alloc(VST_MEMORY_MALLOC, 0x7f0000000000u + i * 48, 48, 7, 0,
                         vst_clock_ticks());
        vst_record_free(VST_MEMORY_FREE, 0x7f0000000000u + (i - later) * 48, 0,
                        vst_clock_ticks());
    }
}

static void read_clock(void)
{
    for (int i = 0; i < ROUNDS; i++)
        words[i & 7] = vst_clock_ticks();
}

static void free_soon(void)
{
    record_pairs(1);
}

static void free_late(void)
{
    record_pairs(100000);
}

/* Takes the best of a few runs, because others use the machine, too. */
static void measure(const char *what, void (*run_it)(void))
{
    double best = 1e9;

    for (int i = 0; i < 5; i++) {
        double start = seconds();
        double took;
        run_it();
        took = (seconds() - start) * 1e9 / ROUNDS;
        if (took < best)
            best = took;
    }
    printf("%-40s %5.1f ns\n", what, best);
}

static void measure_records(void)
{
    vst_recording *recording;

    if (vst__recording_create(&provider, &recording) != VST_OK ||
        vst__recording_start(recording) != VST_OK)
        exit(1);
    measure("a clock reading", read_clock);
    measure("a plain record", record_plain);
    measure("an allocation or free, freed at once", free_soon);
    measure("an allocation or free, freed later", free_late);
    vst__recording_stop(recording);
    vst__recording_destroy(recording);
}

/* ---- all of them -------------------------------------------------------- */

static uint64_t events;

static vst_status count_event(void *ctx, const vst_memory_event *event)
{
    (void)ctx;
    (void)event;
    events++;
    return VST_OK;
}

static uint64_t size_of(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

static void replay(const char *path)
{
    const vst_memory_sink counting = {.event = count_event};
    double start = seconds();
    vst_trace *trace;
    vst_error error;

    events = 0;
    if (vst_trace_open(path, &trace, &error) != VST_OK ||
        vst_trace_replay_memory(trace, VST_WINDOW_LAST, &counting, &error) !=
            VST_OK)
        exit(1);
    vst_trace_close(trace);
    printf("%s: %.2f bytes a record, %.2f s to replay %llu\n", path,
           (double)size_of(path) / (double)records, seconds() - start,
           (unsigned long long)events);
}

int main(int argc, char **argv)
{
    uint64_t wanted =
        (argc > 1 ? strtoull(argv[1], NULL, 10) : 2) * UINT64_C(1000000);
    const char *path = argc > 2 ? argv[2] : "/tmp/record_memory.vst";
    vst_session_options options = {.path = path, .overwrite = true};
    vst_pack_options packing = {.overwrite = true};
    char packed[4096];
    vst_session *session;
    vst_error error;
    double start;

    snprintf(packed, sizeof packed, "%s.packed", path);
    measure_records();
    make_calls();
    if (vst_session_create(&options, &session, &error) != VST_OK ||
        vst_session_start(session, &error) != VST_OK)
        return 1;
    start = seconds();
    run(wanted);
    printf("%llu records in %.2f s, %llu lost\n", (unsigned long long)records,
           seconds() - start, (unsigned long long)vst_session_lost(session));
    vst_session_finish(session, &error);
    vst_session_destroy(session);
    replay(path);
    start = seconds();
    if (vst_trace_pack(path, packed, &packing, &error) != VST_OK)
        return 1;
    printf("packed in %.2f s\n", seconds() - start);
    replay(packed);
    return 0;
}
