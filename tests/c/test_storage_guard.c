/* A file that another program truncates during the recording. The core installs
 * no signal handlers, so this program installs one, as os/storage_guard.h asks.
 * The program stays alive, the recording ends, lost records are counted, and
 * the file stays as it was left. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vestige/vestige.h>

#include "check.h"
#include "one_session.h"
#include "os/storage_guard.h"

enum { THREADS = 6, RECORDS = 20000 };

static vst_id leaf;
static char path[64];

/* Count calls of the watcher's functions and of the handler; any thread. */
static int faults, begun, ended, mappings, cuts;

/* ---- the handler -------------------------------------------------------- */

static void handle(int number, siginfo_t *info, void *context)
{
    (void)context;
    __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
    if (!vst_storage_rescue(info->si_addr))
        signal(number, SIG_DFL);
}

static void count_begin(void)
{
    __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
}

static void count_end(void)
{
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
}

static void count_mapping(void)
{
    __atomic_fetch_add(&mappings, 1, __ATOMIC_RELAXED);
}

static void count_cut(void)
{
    __atomic_fetch_add(&cuts, 1, __ATOMIC_RELAXED);
}

static void guard(void)
{
    static const vst_storage_watcher watcher = {count_begin, count_end,
                                                count_mapping, count_cut};
    struct sigaction action = {.sa_sigaction = handle,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};

    sigaction(SIGBUS, &action, NULL);
    vst__storage_watch(&watcher);
}

/* ---- recording ---------------------------------------------------------- */

static void begin(vst_session_options options)
{
    options.path = path;
    options.overwrite = true;
    faults = begun = ended = mappings = cuts = 0;
    snprintf(path, sizeof path, "/tmp/vestige-cut-%d.vst", (int)getpid());
    if (vst_session_create(&options, &session, NULL) != VST_OK ||
        vst_session_start(session, NULL) != VST_OK)
        abort();
    leaf = define("leaf");
}

static void record(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        vst_record(VST_ENTER, leaf);
        vst_record_end_of_call(VST_EXIT, leaf);
    }
}

static long long file_size(void)
{
    struct stat st;

    return stat(path, &st) == 0 ? (long long)st.st_size : -1;
}

/* Finishes the recording, after its file was cut to `size`. */
static void finish_cut(long long size)
{
    vst_error error;

    CHECK(vst_session_was_cut(session));
    CHECK_INT(vst_session_finish(session, &error), VST_OK);
    CHECK_INT(file_size(), size);
    CHECK_INT(cuts, 1);
    vst_session_destroy(session);
    CHECK_INT(ended, begun);
    unlink(path);
}

static void end_cut(long long size)
{
    CHECK(vst_session_was_cut(session));
    CHECK_INT(vst_session_stop(session), VST_OK);
    finish_cut(size);
}

/* ---- the tests ---------------------------------------------------------- */

static void a_file_that_is_cut_ends_the_recording_not_the_program(void)
{
    const vst_session_options kinds[] = {
        {.gc = false},        {.checkpoints = true},  {.max_size = 1 << 20},
        {.last_ns = 1000000}, {.min_duration_ns = 1},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        begin(kinds[i]);
        record(RECORDS);
        CHECK(!vst_session_was_cut(session));
        CHECK_INT(truncate(path, 0), 0);
        record(RECORDS);
        CHECK(faults > 0);
        CHECK(vst_session_lost(session) >= RECORDS);
        end_cut(0);
    }
}

/* The records before the cut are in the file, and the file says that it is
 * incomplete. */
static void what_is_left_of_it_can_be_read(void)
{
    const long long left = 100 * 1000;
    vst_trace_info info;
    vst_trace *trace;
    vst_error error;

    begin((vst_session_options){.gc = false});
    record(RECORDS);
    CHECK_INT(truncate(path, left), 0);
    record(RECORDS);
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    CHECK_INT(file_size(), left);
    if (CHECK_INT(vst_trace_open(path, &trace, &error), VST_OK)) {
        vst_trace_get_info(trace, &info);
        CHECK(!info.clean);
        CHECK(info.damaged_at != 0);
        CHECK(info.words > 1000 && info.words < (uint64_t)left / 8);
        CHECK(info.lost >= RECORDS);
        vst_trace_close(trace);
    }
    vst_session_destroy(session);
    unlink(path);
}

static int go; /* atomic */

static void *record_when_told(void *small)
{
    stack_t other = {.ss_size = 64 * 1024};

    if (small != NULL) { /* the thread has another stack for its handlers */
        other.ss_sp = malloc(other.ss_size);
        sigaltstack(&other, NULL);
    }
    record(10);
    __atomic_fetch_add(&go, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&go, __ATOMIC_ACQUIRE) <= THREADS)
        ;
    record(RECORDS);
    if (small != NULL) {
        other.ss_flags = SS_DISABLE;
        sigaltstack(&other, NULL);
        free(other.ss_sp);
    }
    return NULL;
}

/* Some threads have the smallest possible stack. */
static void many_threads_may_find_it_cut_at_once(void)
{
    pthread_t threads[THREADS];
    pthread_attr_t attributes;

    for (unsigned round = 0; round < 10 / check_step(1, 2); round++) {
        begin((vst_session_options){.max_size = round % 2 ? 4 << 20 : 0});
        go = 0;
        for (int i = 0; i < THREADS; i++) {
            pthread_attr_init(&attributes);
            pthread_attr_setstacksize(&attributes, 64 * 1024);
            CHECK_INT(pthread_create(&threads[i], i % 2 ? &attributes : NULL,
                                     record_when_told, i % 2 ? &go : NULL),
                      0);
            pthread_attr_destroy(&attributes);
        }
        while (__atomic_load_n(&go, __ATOMIC_ACQUIRE) < THREADS)
            ;
        CHECK_INT(truncate(path, 0), 0);
        __atomic_fetch_add(&go, 1, __ATOMIC_ACQ_REL);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        CHECK(faults >= 1);
        CHECK(vst_session_lost(session) >= THREADS * RECORDS);
        end_cut(0);
    }
}

static void *record_as_told(void *count)
{
    for (long i = 0; i < (long)count; i++)
        vst_record(VST_ENTER, leaf);
    return NULL;
}

static void record_elsewhere(long count)
{
    pthread_t thread;

    CHECK_INT(pthread_create(&thread, NULL, record_as_told, (void *)count), 0);
    pthread_join(thread, NULL);
}

static void *record_around_a_cut(void *unused)
{
    (void)unused;
    record_as_told((void *)99L);
    CHECK_INT(truncate(path, 0), 0);
    record_as_told((void *)1L);
    return NULL;
}

/* The thread's first record lies behind the cut, so it faults before it checks
 * whether its chunk still exists. */
static void a_thread_that_ends_right_after_the_cut_is_counted(void)
{
    const vst_session_options kinds[] = {{.gc = false}, {.checkpoints = true}};
    pthread_t thread;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        begin(kinds[i]);
        CHECK_INT(pthread_create(&thread, NULL, record_around_a_cut, NULL), 0);
        pthread_join(thread, NULL);
        CHECK(faults > 0);
        CHECK(vst_session_lost(session) >= 100);
        end_cut(0);
    }
}

/* The chunk of an ended thread waits for the next thread. */
static void a_thread_does_not_go_on_in_a_chunk_that_is_gone(void)
{
    begin((vst_session_options){.gc = false});
    record_elsewhere(100);
    CHECK_INT(truncate(path, 0), 0);
    define("another"); /* finds it */
    CHECK(vst_session_was_cut(session));
    record_elsewhere(50);
    CHECK(vst_session_lost(session) >= 150);
    end_cut(0);
}

/* No thread stores there again, so no store faults. */
static void what_was_cut_off_behind_the_last_store_is_counted(void)
{
    long long left;

    begin((vst_session_options){.gc = false});
    record(900); /* into the first chunk, which has 16 KiB */
    left = file_size() - 8192;
    CHECK_INT(truncate(path, left), 0);
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(faults, 0);
    CHECK(vst_session_lost(session) >= 1800 - 1024);
    CHECK(vst_session_lost(session) < 1024);
    finish_cut(left);
}

/* If the program records nothing after the cut, only the end of the recording
 * touches the file. */
static void the_end_of_a_recording_may_be_what_finds_it(void)
{
    begin((vst_session_options){.gc = false});
    record(10);
    CHECK_INT(truncate(path, 0), 0);
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    CHECK(faults > 0);
    CHECK(vst_session_was_cut(session));
    CHECK_INT(file_size(), 0);
    vst_session_destroy(session);
    unlink(path);
}

/* The size of the file shows the cut before a part is mapped: the file is not
 * made longer again. */
static void a_new_chunk_may_be_what_finds_it(void)
{
    long long left;

    begin((vst_session_options){.gc = false});
    CHECK_INT(truncate(path, file_size() - 8192), 0); /* into the definitions */
    left = file_size();
    record(1); /* the first record: this thread has no chunk yet */
    CHECK(vst_session_was_cut(session));
    CHECK_INT(faults, 0);
    CHECK_INT(vst_session_lost(session), 2);
    end_cut(left);
}

static void a_definition_may_be_what_finds_it(void)
{
    begin((vst_session_options){.gc = false});
    record(10);
    CHECK_INT(truncate(path, 0), 0);
    define("another");
    CHECK(faults > 0);
    record(10);
    end_cut(0);
}

static void between_windows_it_is_found_too(void)
{
    begin((vst_session_options){.gc = false});
    record(10);
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(ended, begun);
    CHECK_INT(truncate(path, 0), 0);
    vst_recording_set_metadata(vst_session_recording(session), "key", "1");
    CHECK(vst_session_was_cut(session));
    CHECK(vst_session_start(session, NULL) == VST_OK);
    record(10);
    end_cut(0);
}

static void a_snapshot_of_it_is_refused(void)
{
    char copy[80];
    vst_error error;

    begin((vst_session_options){.checkpoints = true});
    record(RECORDS);
    CHECK_INT(truncate(path, 0), 0);
    snprintf(copy, sizeof copy, "%s.copy", path);
    CHECK_INT(vst_session_snapshot(session, copy, true, 0, NULL, &error),
              VST_E_DAMAGED);
    CHECK(access(copy, F_OK) != 0);
    record(RECORDS);
    end_cut(0);
}

static void the_next_recording_is_whole(void)
{
    begin((vst_session_options){.gc = false});
    record(RECORDS);
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    CHECK(!vst_session_was_cut(session));
    CHECK_INT(vst_session_lost(session), 0);
    CHECK_INT(faults, 0);
    CHECK(mappings > 3);
    vst_session_destroy(session);
    unlink(path);
}

/* A fault outside our mappings, or without our handler, acts as before. */
static void an_address_that_is_not_ours_is_left_alone(void)
{
    int here = 1;
    void *page;
    const void *cursor;

    begin((vst_session_options){.gc = false});
    record(10);
    page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(!vst_storage_rescue(&here));
    CHECK(!vst_storage_rescue(page));
    CHECK(!vst_storage_rescue(NULL));
    CHECK(!vst_storage_rescue((void *)~(uintptr_t)0));
    CHECK(!vst_storage_rescue(vst_thread_buffer));
    cursor = vst_thread_buffer->cursor;
    vst_session_destroy(session);
    CHECK(!vst_storage_rescue(cursor));
    munmap(page, 4096);
    unlink(path);
}

static void *record_and_wait(void *unused)
{
    (void)unused;
    record(1);
    __atomic_fetch_add(&go, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&go, __ATOMIC_ACQUIRE) < 1000)
        usleep(1000);
    record(100);
    return NULL;
}

/* More mappings than a part of the table holds. Each thread has ended, so its
 * records are counted, and the stop adds no losses. */
static void many_mappings_are_all_known(void)
{
    enum { MANY = 400 };
    static pthread_t threads[MANY];
    pthread_attr_t attributes;
    uint64_t lost;

    begin((vst_session_options){.gc = false});
    go = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    for (int i = 0; i < MANY; i++)
        CHECK_INT(
            pthread_create(&threads[i], &attributes, record_and_wait, NULL), 0);
    while (__atomic_load_n(&go, __ATOMIC_ACQUIRE) < MANY)
        usleep(1000);
    CHECK_INT(truncate(path, 0), 0);
    __atomic_store_n(&go, 1000, __ATOMIC_RELEASE);
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    lost = vst_session_lost(session);
    CHECK(lost >= MANY * 202);
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_lost(session), lost);
    finish_cut(0);
    pthread_attr_destroy(&attributes);
}

/* A child has its own mappings and none of its parent's. */
static void a_forked_child_goes_on(void)
{
    int status = -1;
    const void *cursor;
    pid_t child;

    begin((vst_session_options){.gc = false});
    record(10);
    cursor = vst_thread_buffer->cursor;
    CHECK_INT(truncate(path, 0), 0);
    child = fork();
    if (child == 0) {
        record(10);
        _exit(vst_storage_rescue(cursor) ? 1 : faults);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    record(10);
    end_cut(0);
}

int main(void)
{
    guard();
    TEST(a_file_that_is_cut_ends_the_recording_not_the_program);
    TEST(what_is_left_of_it_can_be_read);
    TEST(many_threads_may_find_it_cut_at_once);
    TEST(a_thread_that_ends_right_after_the_cut_is_counted);
    TEST(a_thread_does_not_go_on_in_a_chunk_that_is_gone);
    TEST(what_was_cut_off_behind_the_last_store_is_counted);
    TEST(the_end_of_a_recording_may_be_what_finds_it);
    TEST(a_new_chunk_may_be_what_finds_it);
    TEST(a_definition_may_be_what_finds_it);
    TEST(between_windows_it_is_found_too);
    TEST(a_snapshot_of_it_is_refused);
    TEST(the_next_recording_is_whole);
    TEST(an_address_that_is_not_ours_is_left_alone);
    TEST(many_mappings_are_all_known);
    TEST(a_forked_child_goes_on);
    return checks_end();
}
