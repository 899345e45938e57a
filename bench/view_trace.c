/* Records a trace for bench/view.py through the recorder:
 *
 *   view_trace RECORDS THREADS PATH
 *
 * Each thread wanders through calls as a program does: it goes deep, comes
 * back, stays a while in loops of short calls. The first thread makes half of
 * the records, the others share the rest. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vestige/session.h>

enum { FUNCTIONS = 512, DEPTH_MAX = 40, THREADS_MAX = 64 };

typedef struct work {
    pthread_t thread;
    const vst_id *ids;
    uint64_t records;
    uint64_t seed;
} work;

static void fail(const char *what)
{
    fprintf(stderr, "view_trace: %s\n", what);
    exit(2);
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Every call computes a random number or two, so that durations differ. */
static void *record(void *arg)
{
    const work *w = arg;
    vst_id stack[DEPTH_MAX];
    uint64_t state = w->seed, left = w->records;
    unsigned depth = 0, aim = 8, part = 0;

    while (left > depth) {
        uint64_t dice = random_next(&state);

        if ((dice & 1023) == 0) /* moves to another part of the program */
            aim = 2 + (unsigned)(dice >> 20) % (DEPTH_MAX - 4),
            part = (unsigned)(dice >> 40) % 16 * 32;
        if (depth < DEPTH_MAX &&
            (depth == 0 ||
             (depth < aim ? (dice >> 10 & 7) < 6 : (dice >> 10 & 7) < 2))) {
            /* Each part of the program has its own path down, and a few
             * functions at the end of the path. */
            stack[depth] = w->ids[(depth < aim ? part + depth
                                               : part + 40 + (dice >> 32) % 8) %
                                  FUNCTIONS];
            vst_record(VST_ENTER, stack[depth++]);
        } else {
            vst_record(VST_EXIT, stack[--depth]);
        }
        left--;
    }
    while (depth != 0)
        vst_record(VST_EXIT, stack[--depth]);
    return NULL;
}

static void define_all(vst_recording *recording, vst_id *ids)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        char name[32];
        int length = snprintf(name, sizeof name, "function_%d", i);
        vst_definition definition = {.kind = VST_DEF_PYTHON,
                                     .name = name,
                                     .name_len = (uint32_t)length,
                                     .file = "program.py",
                                     .file_len = 10,
                                     .line = i + 1};

        if (vst_recording_define_id(recording, &definition, &ids[i]) != VST_OK)
            fail("no id");
    }
}

int main(int argc, char **argv)
{
    static vst_id ids[FUNCTIONS];
    work all[THREADS_MAX];
    vst_session *session;
    vst_error error;
    uint64_t records;
    vst_session_options options;
    unsigned threads;

    if (argc < 4)
        fail("RECORDS THREADS PATH");
    records = strtoull(argv[1], NULL, 10);
    threads = (unsigned)strtoul(argv[2], NULL, 10);
    options = (vst_session_options){.path = argv[3], .overwrite = true};

    if (threads < 1 || threads > THREADS_MAX)
        fail("1 to 64 threads");
    if (vst_session_create(&options, &session, &error) != VST_OK ||
        vst_session_start(session, &error) != VST_OK)
        fail(error.sys_errno ? strerror(error.sys_errno)
                             : vst_status_string(error.status));
    define_all(vst_session_recording(session), ids);
    for (unsigned i = 0; i < threads; i++) {
        uint64_t share = threads == 1 ? records
                         : i == 0     ? records / 2
                                      : records / 2 / (threads - 1);
        all[i] = (work){
            .ids = ids, .records = share, .seed = 88172645463325252u + i};
        if (pthread_create(&all[i].thread, NULL, record, &all[i]) != 0)
            fail("no thread");
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(all[i].thread, NULL);
    if (vst_session_finish(session, &error) != VST_OK)
        fail(vst_status_string(error.status));
    printf("{\"lost\": %llu}\n", (unsigned long long)vst_session_lost(session));
    vst_session_destroy(session);
    return 0;
}
