/* Writes a large memory history for bench/memory_report.py:
 *
 *   memory_history PATH RECORDS STACKS LIVE
 *
 * STACKS stacks of up to 40 frames that share their outer ones; THREADS threads
 * allocate and free, and LIVE blocks are live at a time. Addresses are made up,
 * nothing is measured in here. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <vestige/vestige.h>

enum { THREADS = 4, FUNCTIONS = 2000, DEPTH = 40 };

static vst_stack_id *stacks;
static uint64_t records, stack_count, live;

static void fail(const char *what)
{
    fprintf(stderr, "memory_history: %s\n", what);
    exit(2);
}

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void define(vst_recording *recording)
{
    vst_id functions[FUNCTIONS];
    uint64_t seed = 88172645463325252u;

    for (int i = 0; i < FUNCTIONS; i++) {
        char name[32], file[32];
        vst_definition d = {.kind = VST_DEF_PYTHON, .line = i};

        d.name_len = (uint32_t)snprintf(name, sizeof name, "function_%d", i);
        d.file_len =
            (uint32_t)snprintf(file, sizeof file, "/src/part_%d.py", i % 50);
        d.name = name;
        d.file = file;
        if (vst_recording_define_id(recording, &d, &functions[i]) != VST_OK)
            fail("a function could not be defined");
    }
    for (uint64_t i = 0; i < stack_count; i++) {
        /* Makes stacks with depths of 1 to DEPTH: each on top of a recent
         * stack. */
        vst_stack stack = {
            .kind = VST_STACK_LANGUAGE,
            .parent = i % DEPTH != 0 ? stacks[i - 1] : 0,
            .function =
                functions[next(&seed) % (i % DEPTH < 5 ? 5 : FUNCTIONS)],
            .line = (int32_t)(next(&seed) % 300 + 1)};
        if (vst_recording_define_stack(recording, &stack, &stacks[i]) != VST_OK)
            fail("a stack could not be defined");
    }
}

static void *record(void *number)
{
    uint64_t seed = 0x9e3779b97f4a7c15u + (uintptr_t)number;
    uint64_t slots = live / THREADS;
    unsigned char *used = calloc(slots, 1);
    uintptr_t base = 0x7f0000000000u + ((uintptr_t)number << 32);

    if (used == NULL || !vst_thread_enter_free())
        fail("a thread could not begin");
    for (uint64_t i = 0; i < records / THREADS; i++) {
        uint64_t r = next(&seed);
        /* Most blocks are short-lived: half of the frees take one of the newest
         * blocks. */
        uint64_t slot = r & 1 ? i / 16 % slots : (r >> 8) % slots;
        uintptr_t address = base + slot * 64;

        if (used[slot])
            vst_record_free(VST_MEMORY_PY_OBJECT_FREE, address, 0,
                            vst_clock_ticks());
        else
            vst_record_alloc(
                VST_MEMORY_PY_OBJECT_MALLOC, address, 16 + (r >> 40) % 600,
                stacks[(r >> 20) % stack_count], 0, vst_clock_ticks());
        used[slot] = !used[slot];
    }
    free(used);
    return NULL;
}

int main(int argc, char **argv)
{
    vst_session_options options = {.overwrite = true};
    pthread_t threads[THREADS];
    vst_session *session;
    vst_error error;

    if (argc != 5)
        fail("usage: memory_history PATH RECORDS STACKS LIVE");
    options.path = argv[1];
    records = strtoull(argv[2], NULL, 10);
    stack_count = strtoull(argv[3], NULL, 10);
    live = strtoull(argv[4], NULL, 10);
    stacks = calloc(stack_count + 1, sizeof *stacks);
    if (stacks == NULL || stack_count == 0 || live < THREADS)
        fail("too few stacks or blocks");
    if (vst_session_create(&options, &session, &error) != VST_OK ||
        vst_session_start(session, &error) != VST_OK)
        fail(vst_status_string(error.status));
    define(vst_session_recording(session));
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, record, (void *)i) != 0)
            fail("a thread could not be made");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (vst_session_finish(session, &error) != VST_OK)
        fail(vst_status_string(error.status));
    printf("%llu lost\n", (unsigned long long)vst_session_lost(session));
    vst_session_destroy(session);
    free(stacks);
    return 0;
}
