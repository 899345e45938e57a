/* A program at a fixed address that takes the address of malloc: the loader
 * then resolves malloc to a jump in the program, through the program's slot of
 * malloc. This jump is not the original malloc. The argument is the library
 * that makes all calls, see memory_oracle.h. */
#include "objects/objects.h"
#include "oracle_session.h"

enum { CALLS = 5000, SKIPPED = 77 };

static const oracle *o;
static const void *taken;

static void what_stands_in_for_a_function_is_not_taken_for_it(void)
{
    static oracle_event noted[4 * CALLS];
    const vst_memory_options all = {.native_allocators = true};
    oracle_log log = {noted, 0, sizeof noted / sizeof *noted, false};
    void *original = vst__objects_find("malloc");

    CHECK(dlsym(RTLD_DEFAULT, "malloc") == taken); /* the program's jump, so the
                                                    * test tests something */
    CHECK(original != NULL && original != taken);
    memory_begin(&all);
    o->run(8, CALLS, &log);
    memory_end();
    oracle_check(&log, CALLS / 4);
}

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void *(*address)(size_t) = malloc;

    if (library == NULL)
        return 2;
    if (SANITIZED) {
        printf("skipped: the sanitizers have a malloc\n");
        return SKIPPED;
    }
    __asm__ volatile(""
                     : "+r"(address)); /* takes the address, instead of only
                                        * calling malloc */
    memcpy(&taken, &address, sizeof taken);
    o = oracle_in(library);
    TEST(what_stands_in_for_a_function_is_not_taken_for_it);
    memory_forget();
    return checks_end();
}
