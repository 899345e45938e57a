/* A preloaded allocator is hooked like the system's. The test runs itself again
 * with jemalloc, if the library is installed; the argument is the library that
 * makes all calls, see memory_oracle.h. */
#include <dlfcn.h>
#include <unistd.h>

#include "oracle_session.h"

enum { CALLS = 20000, SKIPPED = 77 };

static const char *const preloaded = "libjemalloc.so.2";
static const oracle *o;

static bool is_in_use(void)
{
    void *in_use = dlsym(RTLD_DEFAULT, "malloc");
    Dl_info info;

    return dladdr(in_use, &info) && strstr(info.dli_fname, "jemalloc") != NULL;
}

static void jemalloc_is_recorded_call_by_call(void)
{
    static oracle_event noted[4 * CALLS];
    const vst_memory_options all = {.native_allocators = true};
    oracle_log log = {noted, 0, sizeof noted / sizeof *noted, true};

    memory_begin(&all);
    o->run(6, CALLS, &log);
    memory_end();
    oracle_check(&log, CALLS / 4);
}

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

    if (library == NULL)
        return 2;
    if (!SANITIZED && getenv("LD_PRELOAD") == NULL) {
        setenv("LD_PRELOAD", preloaded, 1);
        execv("/proc/self/exe", argv);
    }
    if (SANITIZED || !is_in_use()) {
        printf("skipped: %s\n", SANITIZED ? "the sanitizers have a malloc"
                                          : "jemalloc is not here");
        return SKIPPED;
    }
    o = oracle_in(library);
    TEST(jemalloc_is_recorded_call_by_call);
    memory_forget();
    return checks_end();
}
