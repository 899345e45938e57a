/* The flight recorder: each request writes one file, from any thread or signal
 * handler; arming and disarming lose no request and wait for none. Also built
 * for the thread sanitizer. */

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "flight.h"

enum { REASONS = 3, ROUNDS = 30, BIG = 64 << 20 };

static char folder[] = "/tmp/vestige-flight-XXXXXX";
static char stem[64];
static vst_session *session;

static void remove_files(void)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    char path[400];

    while ((entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            remove(path);
    }
    closedir(dir);
}

static vst_flight *create(uint32_t max_snapshots, uint64_t rss_limit)
{
    vst_flight_reason reasons[REASONS] = {
        {.text = "one"}, {.text = "a \"second\"\n"}, {.text = "three"}};
    vst_flight_options options = {.stem = stem,
                                  .max_snapshots = max_snapshots,
                                  .reasons = reasons,
                                  .reason_count = REASONS};
    vst_flight *flight = NULL;

    reasons[2].rss_limit = rss_limit;
    CHECK_INT(vst__flight_create(&options, &flight), VST_OK);
    return flight;
}

static vst_flight *armed(uint32_t max_snapshots, uint64_t rss_limit)
{
    vst_flight *flight = create(max_snapshots, rss_limit);

    CHECK_INT(vst__flight_arm(flight, session), VST_OK);
    return flight;
}

static void wait_for(const vst_flight *flight, size_t count)
{
    while (vst__flight_count(flight) < count)
        usleep(200);
}

static char *note_of(const char *path)
{
    static char text[256];
    vst_trace *trace;

    text[0] = 0;
    if (CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK)) {
        snprintf(text, sizeof text, "%s",
                 vst_trace_metadata(trace, "vestige.snapshot"));
        vst_trace_close(trace);
    }
    return text;
}

static bool is_clean(const char *path)
{
    vst_trace_info info = {0};
    vst_trace *trace;

    if (vst_trace_open(path, &trace, NULL) != VST_OK)
        return false;
    vst_trace_get_info(trace, &info);
    vst_trace_close(trace);
    return info.clean;
}

/* ---- tests --------------------------------------------------------------- */

static void a_request_becomes_a_file(void)
{
    vst_flight *flight = armed(10, 0);
    const vst_flight_snapshot *snapshot;

    vst__flight_request(flight, 1);
    wait_for(flight, 1);
    snapshot = vst__flight_at(flight, 0);
    CHECK_TEXT(snapshot->reason, "a \"second\"\n");
    CHECK_INT(snapshot->error.status, VST_OK);
    CHECK_INT(strncmp(snapshot->path, stem, strlen(stem)), 0);
    CHECK_TEXT(snapshot->path + strlen(stem), "-snapshot1.vst");
    CHECK_TEXT(note_of(snapshot->path),
               "{\"reason\": \"a \\\"second\\\"\\n\", \"number\": 1}");
    CHECK(is_clean(snapshot->path));
    vst__flight_request(flight, 0);
    wait_for(flight, 2);
    CHECK_TEXT(note_of(vst__flight_at(flight, 1)->path),
               "{\"reason\": \"one\", \"number\": 2}");
    CHECK(vst__flight_at(flight, 2) == NULL);
    CHECK_INT(vst__flight_refused(flight), 0);
    vst__flight_destroy(flight);
    remove_files();
}

static void disarming_writes_what_was_asked_for(void)
{
    vst_flight *flight = armed(10, 0);

    for (uint32_t i = 0; i < REASONS; i++)
        vst__flight_request(flight, i);
    vst__flight_disarm(flight);
    CHECK_INT(vst__flight_count(flight), REASONS);
    vst__flight_request(flight, 0); /* nobody listens */
    vst__flight_disarm(flight);
    CHECK_INT(vst__flight_count(flight), REASONS);
    /* Armed again it goes on, and what nobody heard is not remembered. */
    CHECK_INT(vst__flight_arm(flight, session), VST_OK);
    CHECK_INT(vst__flight_arm(flight, session), VST_E_STATE);
    vst__flight_disarm(flight);
    CHECK_INT(vst__flight_count(flight), REASONS);
    CHECK_INT(vst__flight_arm(flight, session), VST_OK);
    vst__flight_request(flight, 2);
    vst__flight_disarm(flight);
    CHECK_INT(vst__flight_count(flight), REASONS + 1);
    CHECK_TEXT(vst__flight_at(flight, REASONS)->path + strlen(stem),
               "-snapshot4.vst");
    vst__flight_destroy(flight);
    remove_files();
}

static void no_more_are_written_than_allowed(void)
{
    vst_flight *flight = armed(4, 0);

    /* One reason may fill only its share; the last two places stay free for
     * other reasons. */
    for (size_t i = 0; i < 5; i++) {
        vst__flight_request(flight, 0);
        while (vst__flight_count(flight) + vst__flight_refused(flight) <= i)
            usleep(200);
    }
    CHECK_INT(vst__flight_count(flight), 2);
    CHECK_INT(vst__flight_refused(flight), 3);
    for (uint32_t i = 0; i < REASONS; i++) {
        vst__flight_request(flight, REASONS - 1 - i);
        while (vst__flight_count(flight) + vst__flight_refused(flight) <= 5 + i)
            usleep(200);
    }
    CHECK_INT(vst__flight_count(flight), 4);
    CHECK_INT(vst__flight_refused(flight), 4);
    vst__flight_destroy(flight);
    flight = armed(0, 0);
    vst__flight_request(flight, 0);
    vst__flight_disarm(flight);
    CHECK_INT(vst__flight_count(flight), 0);
    CHECK_INT(vst__flight_refused(flight), 1);
    vst__flight_destroy(flight);
    remove_files();
}

static void files_of_an_earlier_run_are_passed_over(void)
{
    vst_flight *flight = armed(10, 0);
    char path[100];

    for (int i = 1; i <= 3; i++) {
        snprintf(path, sizeof path, "%s-snapshot%d.vst", stem, i);
        fclose(fopen(path, "wb"));
    }
    vst__flight_request(flight, 0);
    vst__flight_disarm(flight);
    CHECK_TEXT(vst__flight_at(flight, 0)->path + strlen(stem),
               "-snapshot4.vst");
    CHECK_INT(vst__flight_at(flight, 0)->error.status, VST_OK);
    vst__flight_destroy(flight);
    remove_files();
}

static void what_cannot_be_written_is_told(void)
{
    vst_flight_reason reason = {.text = "why"};
    vst_flight_options options = {.stem = "/dev/null/x",
                                  .max_snapshots = 1,
                                  .reasons = &reason,
                                  .reason_count = 1};
    vst_flight *flight;

    CHECK_INT(vst__flight_create(&options, &flight), VST_OK);
    CHECK_INT(vst__flight_arm(flight, session), VST_OK);
    vst__flight_request(flight, 0);
    vst__flight_request(flight, 1); /* no reason has this number */
    vst__flight_disarm(flight);
    CHECK_INT(vst__flight_count(flight), 1);
    CHECK_INT(vst__flight_at(flight, 0)->error.status, VST_E_IO);
    CHECK_INT(vst__flight_at(flight, 0)->error.sys_errno, ENOTDIR);
    CHECK_TEXT(vst__flight_at(flight, 0)->path, "/dev/null/x-snapshot1.vst");
    vst__flight_destroy(flight);
    options.reason_count = VST_FLIGHT_REASONS_MAX + 1;
    CHECK_INT(vst__flight_create(&options, &flight), VST_E_ARGUMENT);
}

/* ---- requests from everywhere -------------------------------------------- */

static vst_flight *shared;
static atomic_bool asking;

static void *ask_all_the_time(void *argument)
{
    for (int i = 0; atomic_load(&asking); i++) {
        vst__flight_request(shared, (uint32_t)(uintptr_t)argument);
        if (i % 100 == 0)
            usleep(100);
    }
    return NULL;
}

static void threads_may_ask_while_it_is_armed_and_disarmed(void)
{
    pthread_t threads[REASONS];

    shared = create(20, 0);
    atomic_store(&asking, true);
    for (uintptr_t i = 0; i < REASONS; i++)
        pthread_create(&threads[i], NULL, ask_all_the_time, (void *)i);
    for (int i = 0; i < ROUNDS || vst__flight_count(shared) == 0; i++) {
        CHECK_INT(vst__flight_arm(shared, session), VST_OK);
        usleep(500);
        vst__flight_disarm(shared);
    }
    atomic_store(&asking, false);
    for (size_t i = 0; i < REASONS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < vst__flight_count(shared); i++)
        CHECK_INT(vst__flight_at(shared, i)->error.status, VST_OK);
    vst__flight_destroy(shared);
    remove_files();
}

static void on_signal(int number)
{
    int before = errno;

    (void)number;
    vst__flight_request(shared, 1);
    errno = before;
}

/* The helper's thread blocks the signal: only the program's threads are
 * interrupted. */
static void a_signal_handler_may_ask(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    shared = armed(10, 0);
    sigaction(SIGUSR2, &action, NULL);
    for (size_t i = 1; i <= 3; i++) {
        kill(getpid(), SIGUSR2);
        wait_for(shared, i);
    }
    vst__flight_destroy(shared);
    action.sa_handler = SIG_DFL;
    sigaction(SIGUSR2, &action, NULL);
    remove_files();
}

/* ---- memory -------------------------------------------------------------- */

static uint64_t resident(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    CHECK_INT(fscanf(file, "%*u %llu", &pages), 1);
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Allocates memory until the limit triggers a snapshot. Frees and allocates
 * again in case the helper has not yet seen the lower use. */
static void *cross(const vst_flight *flight, size_t count)
{
    for (;;) {
        void *memory = mmap(NULL, BIG, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        for (int i = 0; i < 1000 && vst__flight_count(flight) < count; i++)
            usleep(1000);
        if (vst__flight_count(flight) >= count)
            return memory;
        munmap(memory, BIG);
        usleep(250 * 1000);
    }
}

static void too_much_memory_asks_once_until_it_was_less(void)
{
    vst_flight *flight = armed(10, resident() + BIG / 2);

    for (size_t round = 1; round <= 2; round++) {
        void *memory;

        usleep(250 * 1000);
        CHECK_INT(vst__flight_count(flight), round - 1);
        memory = cross(flight, round);
        usleep(250 * 1000); /* memory use is still over the limit */
        CHECK_INT(vst__flight_count(flight), round);
        CHECK_TEXT(vst__flight_at(flight, round - 1)->reason, "three");
        munmap(memory, BIG);
    }
    vst__flight_destroy(flight);
    remove_files();
}

/* ---- fork ---------------------------------------------------------------- */

static void a_forked_child_has_no_helper_and_does_not_wait_for_it(void)
{
    vst_flight *flight = armed(10, 0);
    int ended = 0;
    pid_t child;

    vst__flight_request(flight, 0);
    child = fork();
    if (child == 0) {
        alarm(20);
        vst__flight_request(flight, 1);
        vst__flight_disarm(flight);
        vst__flight_destroy(flight);
        _exit(0);
    }
    CHECK_INT(waitpid(child, &ended, 0), child);
    CHECK_INT(ended, 0);
    vst__flight_request(flight, 2);
    vst__flight_disarm(flight);
    CHECK_INT(vst__flight_count(flight), 2);
    vst__flight_destroy(flight);
    remove_files();
}

/* Counts the helper threads of this process. */
static unsigned helpers(void)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    unsigned count = 0;

    while ((entry = readdir(dir)) != NULL) {
        char path[300], name[32] = "";
        FILE *file;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        file = fopen(path, "r");
        if (file == NULL)
            continue; /* the thread ended, or the entry is not a thread */
        count += fgets(name, sizeof name, file) != NULL &&
                 strcmp(name, "vestige-flight\n") == 0;
        fclose(file);
    }
    closedir(dir);
    return count;
}

/* The system may list a joined thread for a moment longer. */
static bool is_alone(void)
{
    for (int i = 0; i < 10000 && helpers() != 0; i++)
        usleep(1000);
    return helpers() == 0;
}

static void it_can_be_away_for_a_while(void)
{
    vst_flight *flight;

    CHECK(is_alone());
    flight = armed(10, 0);

    CHECK_INT(helpers(), 1);
    CHECK(vst__flight_pause(flight));
    CHECK(is_alone());
    CHECK(!vst__flight_pause(flight));
    vst__flight_request(flight, 0);
    vst__flight_resume(flight);
    vst__flight_resume(flight);
    wait_for(flight, 1);
    while (!vst__flight_pause(flight)) /* the helper may still be writing */
        usleep(100);
    vst__flight_request(flight, 1);
    vst__flight_disarm(flight);
    vst__flight_resume(flight);
    CHECK(is_alone());
    CHECK_INT(vst__flight_count(flight), 1);
    vst__flight_destroy(flight);
    remove_files();
}

int main(void)
{
    vst_session_options options = {.path = NULL};

    if (mkdtemp(folder) == NULL)
        return 2;
    snprintf(stem, sizeof stem, "%s/t", folder);
    CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    TEST(a_request_becomes_a_file);
    TEST(disarming_writes_what_was_asked_for);
    TEST(no_more_are_written_than_allowed);
    TEST(files_of_an_earlier_run_are_passed_over);
    TEST(what_cannot_be_written_is_told);
    TEST(threads_may_ask_while_it_is_armed_and_disarmed);
    TEST(a_signal_handler_may_ask);
    TEST(too_much_memory_asks_once_until_it_was_less);
    TEST(it_can_be_away_for_a_while);
    TEST(a_forked_child_has_no_helper_and_does_not_wait_for_it);
    vst_session_destroy(session);
    CHECK_INT(rmdir(folder), 0);
    return checks_end();
}
