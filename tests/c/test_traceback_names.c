/* Names of native frames, and where the language's frames stand among them. The
 * argument is the plugin, a library with C++ in it. Tests skip native frames or
 * names that the build does not support. */
#include <dlfcn.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "check.h"
#include "fake_unwinder.h"
#include "traceback/traceback.h"

#define NOINLINE __attribute__((noinline))
/* Put after a call, so that the call is not a tail call. */
#define STAY() __asm__ volatile("" ::: "memory")

enum { NATIVE = VST_TRACEBACK_NATIVE, LANGUAGE = VST_TRACEBACK_LANGUAGE };

static const char *plugin_path;

/* ---- what is expected --------------------------------------------------- */

static vst_symbols *symbols_of(vst_traceback *const *tracebacks, size_t count)
{
    vst_symbols *symbols = NULL;
    vst_error error;

    CHECK_INT(vst_traceback_symbolize(tracebacks, count, 0, &symbols, &error),
              VST_OK);
    return symbols;
}

/* Returns the names of a traceback, one per line, at most `wanted` names. */
static const char *names_of(vst_traceback *traceback, size_t wanted)
{
    static char text[1 << 14];
    vst_symbols *symbols = symbols_of(&traceback, 1);
    size_t count, at = 0;
    const uint32_t *indexes = vst_symbols_of(symbols, 0, &count, NULL);

    text[0] = '\0';
    for (size_t i = 0; i < count && i < wanted; i++) {
        const vst_named_frame *f = vst_symbols_frame(symbols, indexes[i]);
        at += (size_t)snprintf(text + at, sizeof text - at, "%.*s\n",
                               (int)f->name_len, f->name);
    }
    vst_symbols_free(symbols);
    return text;
}

static bool is_at(const vst_named_frame *frame, const char *file, int line)
{
    size_t length = strlen(file);

    return frame->file_len >= length && frame->line == (uint32_t)line &&
           memcmp(frame->file + frame->file_len - length, file, length) == 0;
}

/* ---- native names ------------------------------------------------------- */

static int taken_line, inlined_line, middle_line, outer_line;

static NOINLINE vst_traceback *taken(void)
{
    vst_traceback *traceback;

    taken_line = __LINE__ + 1;
    traceback = vst_traceback_capture(NATIVE, 0);
    STAY();
    return traceback;
}

static inline __attribute__((always_inline)) vst_traceback *inlined(void)
{
    vst_traceback *traceback;

    inlined_line = __LINE__ + 1;
    traceback = taken();
    STAY();
    return traceback;
}

static NOINLINE vst_traceback *middle(void)
{
    vst_traceback *traceback;

    middle_line = __LINE__ + 1;
    traceback = inlined();
    STAY();
    return traceback;
}

static NOINLINE vst_traceback *outer(void)
{
    vst_traceback *traceback;

    outer_line = __LINE__ + 1;
    traceback = middle();
    STAY();
    return traceback;
}

static void native_frames_have_names_files_and_lines(void)
{
    vst_traceback *traceback = outer();
    vst_symbols *symbols = symbols_of(&traceback, 1);
    const char *expected[] = {"taken", "inlined", "middle", "outer", __func__};
    int lines[] = {taken_line, inlined_line, middle_line, outer_line,
                   __LINE__ - 4};
    size_t count;
    const uint32_t *indexes = vst_symbols_of(symbols, 0, &count, NULL);

    CHECK(count > 6); /* check_run, main */
    for (size_t i = 0; i < 5 && i < count; i++) {
        const vst_named_frame *f = vst_symbols_frame(symbols, indexes[i]);
        CHECK_TEXT(f->name, expected[i]);
        CHECK(is_at(f, "/tests/c/test_traceback_names.c", lines[i]));
        CHECK(f->file[0] == '/');
    }
    vst_symbols_free(symbols);
    vst_traceback_release(traceback);
}

static void skipped_native_frames_are_the_innermost(void)
{
    vst_traceback *traceback = vst_traceback_capture(NATIVE, 1);
    CHECK_TEXT(names_of(traceback, 1), "check_run\n");
    vst_traceback_release(traceback);
    traceback = vst_traceback_capture(NATIVE, 1000);
    CHECK_TEXT(names_of(traceback, 1), "");
    vst_traceback_release(traceback);
}

static __attribute__((noipa)) vst_traceback *recurse(int depth)
{
    vst_traceback *traceback =
        depth == 0 ? vst_traceback_capture(NATIVE, 0) : recurse(depth - 1);
    STAY();
    return traceback;
}

static void a_deep_native_stack_is_taken_whole(void)
{
    vst_traceback *traceback = recurse(5000);
    size_t count;
    vst_traceback_native(traceback, &count);
    CHECK(count > 5000);
    CHECK(recurse(5000) != traceback); /* called from another line */
    vst_traceback_release(traceback);
    vst_traceback_free_dead();
}

static int (*backtrace_here)(void **addresses, int max);

static int backtrace_one_before(void **addresses, int max)
{
    int count = backtrace_here(addresses, max);

    for (int i = 0; i < count; i++)
        addresses[i] = (char *)addresses[i] - 1;
    return count;
}

static void an_older_libunwind_gives_the_same_stack(void)
{
    vst_traceback *taken[2];
    size_t count;

    backtrace_here = vst__native_backtrace;
    for (int i = 0; i < 2; i++) {
        vst__native_backtrace = i != 0 ? backtrace_one_before : backtrace_here;
        taken[i] = vst_traceback_capture(NATIVE, 0);
        vst__native_backtrace = backtrace_here;
        vst_traceback_native(taken[i], &count);
        CHECK(count > 2);
    }
    CHECK(taken[0] == taken[1]); /* equal stacks share a traceback */
    vst_traceback_release(taken[0]);
    vst_traceback_release(taken[1]);
}

/* ---- a library that comes and goes -------------------------------------- */

static int capture_back(void *ctx)
{
    *(vst_traceback **)ctx = vst_traceback_capture(NATIVE, 0);
    STAY();
    return 0;
}

/* Returns the traceback of a call through the plugin; the plugin stays
 * loaded. */
static vst_traceback *enter_plugin(void **plugin)
{
    int (*enter)(int (*)(void *), void *) = NULL;
    vst_traceback *traceback = NULL;
    void *symbol;

    *plugin = dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL);
    if (!CHECK(*plugin != NULL)) {
        printf("# %s\n", dlerror());
        exit(1);
    }
    symbol = dlsym(*plugin, "plugin_enter");
    memcpy(&enter, &symbol, sizeof enter);
    enter(capture_back, &traceback);
    return traceback;
}

static const char plugin_names[] =
    "capture_back\ndemo::Box<int>::call(int (*)(void*), void*)\n"
    "demo::through(demo::Box<int>&, int (*)(void*), void*)\nplugin_enter\n";

static void names_of_cpp_are_readable(void)
{
    void *plugin;
    vst_traceback *traceback = enter_plugin(&plugin);
    vst_symbols *symbols = symbols_of(&traceback, 1);
    size_t count;
    const uint32_t *indexes = vst_symbols_of(symbols, 0, &count, NULL);

    CHECK_TEXT(names_of(traceback, 4), plugin_names);
    for (size_t i = 1; i < 4; i++) {
        static const int lines[] = {0, 11, 20, 31};
        CHECK(is_at(vst_symbols_frame(symbols, indexes[i]),
                    "/traceback_plugin.cpp", lines[i]));
    }
    vst_symbols_free(symbols);
    vst_traceback_release(traceback);
    dlclose(plugin);
}

static void an_unloaded_library_is_an_address(void)
{
    void *plugin;
    vst_traceback *traceback = enter_plugin(&plugin);
    size_t count;
    const uintptr_t *native = vst_traceback_native(traceback, &count);
    char expected[64];
    vst_symbols *symbols;

    names_of(traceback, 9); /* now the names are cached; unloading must remove
                             * them */
    dlclose(plugin);
    if (dlopen(plugin_path, RTLD_NOW | RTLD_NOLOAD) != NULL)
        return; /* a sanitizer keeps the plugin loaded */
    snprintf(expected, sizeof expected, "capture_back\n0x%llx\n0x%llx\n",
             (unsigned long long)native[1], (unsigned long long)native[2]);
    CHECK_TEXT(names_of(traceback, 3), expected);
    symbols = symbols_of(&traceback, 1);
    CHECK_TEXT(vst_symbols_frame(symbols, 1)->file, "[no library]");
    vst_symbols_free(symbols);
    vst_traceback_release(traceback);
}

static void a_library_that_comes_later_has_names(void)
{
    void *plugin;
    vst_traceback *before = outer();
    vst_traceback *traceback;

    names_of(before, 9);
    traceback = enter_plugin(&plugin);
    CHECK_TEXT(names_of(traceback, 4), plugin_names);
    vst_traceback_release(before);
    vst_traceback_release(traceback);
    dlclose(plugin);
}

/* ---- a library that is being loaded ------------------------------------- */

static sem_t constructing, may_go_on;
static bool is_watched;

void plugin_constructs(void);
void plugin_constructs(void)
{
    if (!is_watched)
        return;
    sem_post(&constructing);
    sem_wait(&may_go_on);
}

static void *load_plugin(void *arg)
{
    (void)arg;
    return dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL);
}

static NOINLINE vst_traceback *never_here_before(void)
{
    vst_traceback *traceback = vst_traceback_capture(NATIVE, 0);
    STAY();
    return traceback;
}

/* The loader's lock is held; a capture that needs this lock would never end. */
static void a_library_that_is_being_loaded_stops_no_capture(void)
{
    pthread_t thread;
    void *plugin = NULL;
    size_t count;
    vst_traceback *traceback;

    if (dlopen(plugin_path, RTLD_NOW | RTLD_NOLOAD) != NULL)
        return; /* a sanitizer keeps the plugin loaded */
    sem_init(&constructing, 0, 0);
    sem_init(&may_go_on, 0, 0);
    is_watched = true;
    pthread_create(&thread, NULL, load_plugin, NULL);
    sem_wait(&constructing);
    traceback = never_here_before();
    vst_traceback_native(traceback, &count);
    sem_post(&may_go_on);
    is_watched = false;
    pthread_join(thread, &plugin);
    CHECK(count > 3);
    CHECK_TEXT(names_of(traceback, 1), "never_here_before\n");
    vst_traceback_release(traceback);
    if (CHECK(plugin != NULL))
        dlclose(plugin);
}

/* ---- where unwinding is hard -------------------------------------------- */

#if defined(__aarch64__)
enum { IS_AARCH64 = 1 };
#else
enum { IS_AARCH64 = 0 };
#endif

static uintptr_t handled[64];
static size_t handled_count;

static void handle(int number)
{
    (void)number;
    handled_count = vst_traceback_addresses(handled, 64, 0);
}

static NOINLINE void interrupted(void)
{
    raise(SIGUSR1);
    STAY();
}

static void a_signal_handler_takes_addresses(void)
{
    struct sigaction action = {.sa_handler = handle};
    const char *names, *at;
    vst_traceback *traceback;

    sigaction(SIGUSR1, &action, NULL);
    interrupted();
    traceback = vst_traceback_of(handled, handled_count);
    names = names_of(traceback, 64);
    CHECK(strncmp(names, "handle\n", 7) == 0);
    at = strstr(names, "\ninterrupted\n");
    CHECK(at != NULL);
    /* On aarch64, libunwind 1.8 sometimes stops here. */
    if (at != NULL && !IS_AARCH64)
        CHECK(strstr(at, "\nmain\n") != NULL);
    vst_traceback_release(traceback);
}

static void as_few_addresses_as_there_is_room_for(void)
{
    uintptr_t few[4] = {0, 0, 0, 77};

    for (size_t max = 0; max < 4; max++)
        CHECK(vst_traceback_addresses(few, max, 0) <= max);
    CHECK_INT(few[3], 77);
    CHECK_INT(vst_traceback_addresses(handled, 64, 100), 0);
}

/* Code without unwind tables, like code of a compiler at run time. */
static void frames_without_unwind_information_end_it(void)
{
#ifdef __x86_64__
    static const unsigned char code[] = {
        0x48, 0x83, 0xec, 0x08, /* sub 8, rsp */
        0x48, 0x89, 0xf8,       /* mov rdi, rax */
        0x48, 0x89, 0xf7,       /* mov rsi, rdi */
        0xff, 0xd0,             /* call rax */
        0x48, 0x83, 0xc4, 0x08, /* add 8 */
        0xc3};
    vst_traceback *traceback = NULL;
    int (*made)(int (*)(void *), void *);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return; /* the system forbids executable memory */
    memcpy(page, code, sizeof code);
    memcpy(&made, &page, sizeof made);
    made(capture_back, &traceback);
    CHECK(strncmp(names_of(traceback, 9), "capture_back\n0x", 15) == 0);
    vst_traceback_release(traceback);
    munmap(page, 4096);
#endif
}

/* ---- among the language's frames ---------------------------------------- */

/* The test's interpreter: its code lies in its own section. */
#define EVALUATION __attribute__((section("evaluation_code"), noinline))
extern const char __start_evaluation_code[], __stop_evaluation_code[];

static bool lies_in_evaluation(uintptr_t address)
{
    return address >= (uintptr_t)__start_evaluation_code &&
           address <= (uintptr_t)__stop_evaluation_code;
}

static vst_traceback *nest(unsigned parts, size_t skip, int level);
static NOINLINE vst_traceback *function(unsigned parts, size_t skip);

EVALUATION static vst_traceback *evaluate(unsigned parts, size_t skip,
                                          int level)
{
    vst_traceback *traceback =
        level == 0 ? function(parts, skip) : nest(parts, skip, level);
    STAY();
    return traceback;
}

/* Native code between two evaluations, like sorted(). */
static NOINLINE vst_traceback *nest(unsigned parts, size_t skip, int level)
{
    vst_traceback *traceback = evaluate(parts, skip, level - 1);
    STAY();
    return traceback;
}

static NOINLINE vst_traceback *capture_inside(unsigned parts, size_t skip)
{
    vst_traceback *traceback = vst_traceback_capture(parts, skip);
    STAY();
    return traceback;
}

static NOINLINE vst_traceback *function(unsigned parts, size_t skip)
{
    vst_traceback *traceback = capture_inside(parts, skip);
    STAY();
    return traceback;
}

static fake_code inner1 = {.name = "inner1"}, inner0 = {.name = "inner0"},
                 mid0 = {.name = "mid0"}, outer2 = {.name = "outer2"},
                 outer1 = {.name = "outer1"}, outer0 = {.name = "outer0"};
static fake_code *const nested[] = {&inner1, &inner0, &mid0,
                                    &outer2, &outer1, &outer0};
static const uint32_t nested_numbers[] = {
    7, 6 | VST_FRAME_ENTRY, 5 | VST_FRAME_ENTRY, 4, 3, 2 | VST_FRAME_ENTRY};

static void order_is(unsigned parts, size_t skip, const char *expected)
{
    size_t lines = 0;
    vst_traceback *traceback;

    for (const char *c = expected; *c != '\0'; c++)
        lines += *c == '\n';
    vst_unwinder_install(&fake_unwinder);
    fake_evaluation = lies_in_evaluation;
    fake_frames = (fake_stack){nested, nested_numbers, 6};
    traceback = evaluate(parts, skip, 2);
    CHECK_TEXT(names_of(traceback, lines), expected);
    vst_traceback_release(traceback);
    vst_traceback_free_dead();
    vst_unwinder_install(NULL);
    CHECK_INT(inner0.references, 0);
}

static void frames_stand_where_they_were_evaluated(void)
{
    order_is(NATIVE | LANGUAGE, 0,
             "capture_inside\nfunction\ninner1\ninner0\nnest\nmid0\nnest\n"
             "outer2\nouter1\nouter0\norder_is\n");
}

static void skipped_frames_leave_the_others_in_place(void)
{
    order_is(NATIVE | LANGUAGE, 1,
             "function\ninner0\nnest\nmid0\nnest\nouter2\nouter1\nouter0\n"
             "order_is\n");
    order_is(NATIVE | LANGUAGE, 2,
             "evaluate\nnest\nmid0\nnest\nouter2\nouter1\nouter0\norder_is\n");
    order_is(NATIVE | LANGUAGE, 3,
             "nest\nevaluate\nnest\nouter2\nouter1\nouter0\norder_is\n");
}

static void native_frames_alone_show_the_interpreter(void)
{
    order_is(NATIVE, 0,
             "capture_inside\nfunction\nevaluate\nnest\nevaluate\nnest\n"
             "evaluate\norder_is\n");
}

static void frames_whose_evaluation_is_missing_come_last(void)
{
    vst_traceback *whole, *part;
    vst_language_frames language;
    size_t native;
    vst__frames cut;

    vst_unwinder_install(&fake_unwinder);
    fake_evaluation = lies_in_evaluation;
    fake_frames = (fake_stack){nested, nested_numbers, 6};
    whole = evaluate(NATIVE | LANGUAGE, 0, 2);
    language = vst_traceback_language(whole);
    cut = (vst__frames){.codes = language.codes,
                        .instructions = language.instructions,
                        .language = 6,
                        .addresses = vst_traceback_native(whole, &native),
                        .native = 4};
    part = vst__table_intern(&cut, true);

    CHECK_TEXT(names_of(part, 99),
               "capture_inside\nfunction\ninner1\ninner0\nnest\nmid0\nouter2\n"
               "outer1\nouter0\n");
    vst_traceback_release(whole);
    vst_traceback_release(part);
    vst_traceback_free_dead();
    vst_unwinder_install(NULL);
}

int main(int count, char **arguments)
{
    plugin_path = count > 1 ? arguments[1] : "";
    if (!vst_traceback_has_native()) {
        vst_traceback *none = vst_traceback_capture(NATIVE, 0);
        CHECK_TEXT(names_of(none, 9), "");
        vst_traceback_release(none);
        return checks_bad;
    }
    TEST(a_deep_native_stack_is_taken_whole);
    TEST(as_few_addresses_as_there_is_room_for);
    TEST(an_older_libunwind_gives_the_same_stack);
    if (!vst_traceback_has_symbols())
        return checks_end();
    TEST(native_frames_have_names_files_and_lines);
    TEST(skipped_native_frames_are_the_innermost);
    TEST(names_of_cpp_are_readable);
    TEST(an_unloaded_library_is_an_address);
    TEST(a_library_that_comes_later_has_names);
    TEST(a_library_that_is_being_loaded_stops_no_capture);
    TEST(a_signal_handler_takes_addresses);
    TEST(frames_without_unwind_information_end_it);
    TEST(frames_stand_where_they_were_evaluated);
    TEST(skipped_frames_leave_the_others_in_place);
    TEST(native_frames_alone_show_the_interpreter);
    TEST(frames_whose_evaluation_is_missing_come_last);
    return checks_end();
}
