/* Records of memory, from recording to the history that a reader gets: each
 * allocation keeps its size and stack, and each free finds its allocation. */
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory_model.h"
#include "record/memory.h"

static void what_is_recorded_is_read(void)
{
    vst_session *session = session_begin(NULL);
    heard all;

    allocate(1, 100, 7);
    allocate(2, 40000, 8); /* too large for the small record */
    release(1);
    release(2);
    release(3); /* a block whose allocation was not recorded */
    vst_session_stop(session);
    hear_session(session, &all);
    CHECK_INT(all.count, 5);
    if (all.count != 5)
        return;
    CHECK_INT(all.events[0].kind, VST_MEMORY_MALLOC);
    CHECK_INT(all.events[0].flags, 0);
    CHECK_INT(all.events[0].address, fake_address(1));
    CHECK_INT(all.events[0].size, 100);
    CHECK_INT(all.events[0].stack, 7);
    CHECK_INT(all.events[0].serial, 1);
    CHECK_INT(all.events[0].live_bytes, 100);
    CHECK_INT(all.events[1].size, 40000);
    CHECK_INT(all.events[1].stack, 8);
    CHECK_INT(all.events[1].live_bytes, 40100);
    CHECK_INT(all.events[1].live_count, 2);
    CHECK_INT(all.events[2].flags, VST_MEMORY_FREES);
    CHECK_INT(all.events[2].kind, VST_MEMORY_FREE);
    CHECK_INT(all.events[2].serial, 1);
    CHECK_INT(all.events[2].size, 100);
    CHECK_INT(all.events[2].stack, 7);
    CHECK_INT(all.events[2].allocated_ns, all.events[0].time_ns);
    CHECK_INT(all.events[3].live_bytes, 0);
    CHECK_INT(all.events[3].live_count, 0);
    CHECK_INT(all.events[4].flags, VST_MEMORY_FREES | VST_MEMORY_UNKNOWN);
    CHECK_INT(all.events[4].address, fake_address(3));
    for (size_t i = 1; i < all.count; i++)
        CHECK(all.events[i].time_ns >= all.events[i - 1].time_ns);
    heard_free(&all);
    vst_session_destroy(session);
}

static void stacks_and_modules_are_read(void)
{
    static const uint8_t build_id[] = {1, 2, 3};
    vst_session *session = session_begin(NULL);
    vst_recording *recording = vst_session_recording(session);
    vst_stack outer = {.kind = VST_STACK_LANGUAGE, .function = 3, .line = 10};
    vst_stack inner = {
        .kind = VST_STACK_LANGUAGE, .function = 4, .line = 11, .parent = 1};
    vst_stack native = {.kind = VST_STACK_NATIVE, .address = 0xffffffffff};
    vst_stack both = {.kind = VST_STACK_BOTH, .parent = 2, .address = 3};
    vst_module module = {.path = "/lib/x.so",
                         .bias = 0x1000,
                         .start = 0x2000,
                         .end = 0x3000,
                         .build_id = build_id,
                         .build_id_len = 3};
    vst_stack_id ids[6];
    vst_trace *trace;
    vst_error error;

    CHECK_INT(vst_recording_define_stack(recording, &outer, &ids[0]), VST_OK);
    CHECK_INT(vst_recording_define_stack(recording, &inner, &ids[1]), VST_OK);
    CHECK_INT(vst_recording_define_stack(recording, &native, &ids[2]), VST_OK);
    CHECK_INT(vst_recording_define_stack(recording, &both, &ids[3]), VST_OK);
    CHECK_INT(vst_recording_define_stack(recording, &inner, &ids[4]), VST_OK);
    CHECK_INT(vst__recording_define_module(recording, &module), VST_OK);
    inner.line = 12;
    CHECK_INT(vst_recording_define_stack(recording, &inner, &ids[5]), VST_OK);
    CHECK_INT(ids[0], 1);
    CHECK_INT(ids[1], 2);
    CHECK_INT(ids[2], 3);
    CHECK_INT(ids[3], 4);
    CHECK_INT(ids[4], 2);
    CHECK_INT(ids[5], 5);
    CHECK_INT(vst_session_open_trace(session, &trace, &error), VST_OK);
    CHECK(!vst_trace_has_memory(trace));
    vst_trace_close(trace);
    allocate(1, 1, 4);
    CHECK_INT(vst_session_open_trace(session, &trace, &error), VST_OK);
    CHECK(vst_trace_has_memory(trace));
    CHECK_INT(vst_trace_stack_max(trace), 5);
    CHECK(vst_trace_stack(trace, 0) == NULL);
    CHECK(vst_trace_stack(trace, 6) == NULL);
    CHECK_INT(vst_trace_stack(trace, 2)->parent, 1);
    CHECK_INT(vst_trace_stack(trace, 2)->function, 4);
    CHECK_INT(vst_trace_stack(trace, 2)->line, 11);
    CHECK_INT(vst_trace_stack(trace, 3)->kind, VST_STACK_NATIVE);
    CHECK_INT(vst_trace_stack(trace, 3)->address, 0xffffffffff);
    CHECK_INT(vst_trace_stack(trace, 4)->kind, VST_STACK_BOTH);
    CHECK_INT(vst_trace_stack(trace, 4)->address, 3);
    CHECK_INT(vst_trace_module_count(trace), 1);
    CHECK_TEXT(vst_trace_module(trace, 0)->path, "/lib/x.so");
    CHECK_INT(vst_trace_module(trace, 0)->end, 0x3000);
    CHECK_INT(vst_trace_module(trace, 0)->build_id_len, 3);
    CHECK_INT(vst_trace_module(trace, 0)->build_id[2], 3);
    CHECK(vst_trace_module(trace, 1) == NULL);
    vst_trace_close(trace);
    vst_session_destroy(session);
}

/* Hundreds of thousands of stacks keep their numbers. */
static void many_stacks_keep_their_numbers(void)
{
    enum { MANY = 200000 };
    vst_session *session = session_begin(NULL);
    vst_recording *recording = vst_session_recording(session);
    vst_stack stack = {.kind = VST_STACK_NATIVE};
    size_t wrong = 0;

    for (int round = 0; round < 2; round++)
        for (unsigned i = 0; i < MANY; i++) {
            vst_stack_id id;
            stack.address = i * 64;
            stack.parent = i;
            vst_recording_define_stack(recording, &stack, &id);
            wrong += id != i + 1;
        }
    CHECK_INT(wrong, 0);
    CHECK_INT(vst_session_lost(session), 0);
    vst_session_destroy(session);
}

static void *free_them(void *count)
{
    for (unsigned i = 0; i < *(unsigned *)count; i++)
        release(i);
    return NULL;
}

static void another_thread_frees(void)
{
    unsigned count = 50000; /* several chunks */
    vst_session *session = session_begin(NULL);
    pthread_t thread;
    size_t wrong = 0;
    heard all;

    for (unsigned i = 0; i < count; i++)
        allocate(i, i, i % 1000);
    pthread_create(&thread, NULL, free_them, &count);
    pthread_join(thread, NULL);
    vst_session_stop(session);
    hear_session(session, &all);
    CHECK_INT(all.count, 2 * count);
    for (size_t i = 0; i < all.count; i++) {
        const vst_memory_event *event = &all.events[i];
        wrong += event->address != fake_address((unsigned)(i % count));
        wrong += event->size != i % count;
        wrong += event->serial != i % count + 1;
        wrong += event->flags != (i < count ? 0 : VST_MEMORY_FREES);
        wrong += event->thread != (i < count ? 1 : 2);
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(vst_session_lost(session), 0);
    heard_free(&all);
    vst_session_destroy(session);
}

/* Stacks and their numbers belong to the parent's recording; the child's
 * recording is another. */
static void a_forked_child_begins_anew(void)
{
    vst_stack stack = {.kind = VST_STACK_NATIVE, .address = 1};
    vst_session *session = session_begin(NULL);
    vst_stack_id id;
    heard all;
    int status;
    pid_t child;

    stack.address = 2;
    vst_recording_define_stack(vst_session_recording(session), &stack, &id);
    stack.address = 3;
    vst_recording_define_stack(vst_session_recording(session), &stack, &id);
    CHECK_INT(id, 2);
    allocate(1, 10, id);
    child = fork();
    if (child == 0) {
        vst_session *own;

        allocate(2, 20, id); /* goes nowhere */
        if (vst_recording_define_stack(vst_session_recording(session), &stack,
                                       &id) != VST_E_STATE)
            _exit(1);
        own = session_begin(NULL);
        if (vst_recording_define_stack(vst_session_recording(own), &stack,
                                       &id) != VST_OK ||
            id != 1)
            _exit(2);
        allocate(3, 30, id);
        release(1);
        vst_session_stop(own);
        hear_session(own, &all);
        _exit(all.count == 2 && all.events[0].size == 30 ? 0 : 3);
    }
    waitpid(child, &status, 0);
    CHECK_INT(status, 0);
    allocate(4, 40, id);
    vst_session_stop(session);
    hear_session(session, &all);
    CHECK_INT(all.count, 2);
    CHECK_INT(all.events[1].size, 40);
    heard_free(&all);
    vst_session_destroy(session);
}

/* A fork handler that allocates must not wait for the recorder. */
static unsigned handled;

static void allocate_at_fork(void)
{
    for (unsigned i = 0; i < 5000 && handled; i++) /* more records than fit into
                                                    * a chunk */
        allocate(100 + i, 16, 1);
}

/* Registered before the recorder's handler: runs after the recorder has locked,
 * and in the child before the recorder has unlocked. */
__attribute__((constructor(101))) static void handle_forks(void)
{
    pthread_atfork(allocate_at_fork, allocate_at_fork, allocate_at_fork);
}

static void handlers_that_allocate_at_a_fork_do_not_wait(void)
{
    vst_session *session = session_begin(NULL);
    heard all;
    int status;
    pid_t child;

    allocate(1, 10, 1);
    handled = 1;
    child = fork();
    if (child == 0)
        _exit(0);
    handled = 0;
    waitpid(child, &status, 0);
    CHECK_INT(status, 0);
    vst_session_stop(session);
    hear_session(session, &all);
    /* The parent's second handler may have records, since the recorder has left
     * the fork; the child's handler has none. */
    CHECK(all.count >= 1 && all.count <= 5001);
    for (size_t i = 0; i < all.count; i++)
        CHECK_INT(all.events[i].flags, 0);
    heard_free(&all);
    vst_session_destroy(session);
}

/* Killed while three threads record: the file is readable up to the last
 * word. */
static void *allocate_for_ever(void *first)
{
    unsigned number = *(unsigned *)first;

    for (unsigned i = 0;; i++) {
        allocate(number + i % 1000, i % 60000, i % 100);
        if (i % 1000 >= 10)
            release(number + i % 1000 - 10);
    }
    return NULL;
}

static void record_until_killed(const char *path)
{
    vst_session_options options = {.path = path, .overwrite = true};
    unsigned firsts[3] = {0, 100000, 200000};
    pthread_t thread;

    session_begin(&options);
    for (int i = 0; i < 2; i++)
        pthread_create(&thread, NULL, allocate_for_ever, &firsts[i]);
    allocate_for_ever(&firsts[2]);
}

static void a_killed_program_leaves_all_that_was_recorded(void)
{
    char path[] = "/tmp/vestige-killed-XXXXXX";

    close(mkstemp(path));
    for (int round = 0; round < 5; round++) {
        struct stat info = {0};
        vst_trace *trace;
        vst_error error;
        heard all;
        pid_t child = fork();
        if (child == 0)
            record_until_killed(path);
        while (info.st_size < 300000 + round * 1500000)
            stat(path, &info);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        if (!CHECK_INT(vst_trace_open(path, &trace, &error), VST_OK))
            break;
        CHECK_INT(hear_trace(trace, VST_WINDOW_LAST, &all), VST_OK);
        CHECK(all.count > 1000);
        /* Only each thread's last words may be missing. */
        for (size_t i = 0; i < all.count; i++)
            CHECK(!(all.events[i].flags & VST_MEMORY_UNKNOWN));
        heard_free(&all);
        vst_trace_close(trace);
        truncate(path, 0);
    }
    unlink(path);
}

static void kinds_have_names(void)
{
    CHECK_TEXT(vst_memory_kind_name(VST_MEMORY_MALLOC), "malloc");
    CHECK_TEXT(vst_memory_kind_name(VST_MEMORY_PY_OBJECT_CALLOC),
               "PyObject_Calloc");
    CHECK_TEXT(vst_memory_kind_name((vst_memory_kind)0), "?");
    CHECK_TEXT(vst_memory_kind_name((vst_memory_kind)31), "?");
    for (int i = VST_MEMORY_MALLOC; i <= VST_MEMORY_FRAMEWORK_FREE; i++)
        CHECK(strcmp(vst_memory_kind_name((vst_memory_kind)i), "?") != 0);
}

int main(void)
{
    TEST(what_is_recorded_is_read);
    TEST(stacks_and_modules_are_read);
    TEST(many_stacks_keep_their_numbers);
    TEST(another_thread_frees);
    TEST(a_forked_child_begins_anew);
    TEST(handlers_that_allocate_at_a_fork_do_not_wait);
    TEST(a_killed_program_leaves_all_that_was_recorded);
    TEST(kinds_have_names);
    return checks_end();
}
