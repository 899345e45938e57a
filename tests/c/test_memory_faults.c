/* The system may refuse writable pages, memory or the list of mappings to
 * hooks. Then less is recorded, and the program runs as before. The argument is
 * a library whose slots are closed, see memory_oracle.h. */
#include <errno.h>
#include <sys/mman.h>

#include "faults.h"
#include "memory/funnel.h"
#include "oracle_session.h"

static const oracle *o;
static const vst_memory_options all = {.native_allocators = true};

static int closing_fails, opening_fails;

int __real_mprotect(void *at, size_t size, int access);
int __wrap_mprotect(void *at, size_t size, int access);
int __wrap_mprotect(void *at, size_t size, int access)
{
    if (access & PROT_WRITE ? opening_fails : closing_fails) {
        errno = EACCES;
        return -1;
    }
    return __real_mprotect(at, size, access);
}

static size_t recorded(void)
{
    o->free(o->malloc(10));
    memory_end();
    return memory_count;
}

static void pages_that_stay_closed_are_left_alone(void)
{
    opening_fails = 1;
    memory_begin(&all);
    opening_fails = 0;
    CHECK_INT(recorded(), 0);
    memory_begin(&all);
    CHECK_INT(recorded(), 2);
}

static void a_page_that_stays_open_is_a_page_that_works(void)
{
    closing_fails = 1;
    memory_begin(&all);
    closing_fails = 0;
    CHECK_INT(recorded(), 2);
}

/* Hooks that cannot be removed pass calls through, and are removed by the next
 * stop. */
static void a_stop_that_may_not_change_a_slot_still_stops(void)
{
    memory_begin(&all);
    opening_fails = 1;
    CHECK_INT(recorded(), 2);
    opening_fails = 0;
    o->free(o->malloc(10));
    memory_begin(&all);
    CHECK_INT(recorded(), 2);
}

static void without_the_list_of_mappings_nothing_is_changed(void)
{
    const vst_session_options session = {.path = NULL};

    if (vst_session_create(&session, &memory_session, NULL) != VST_OK ||
        vst_session_start(memory_session, NULL) != VST_OK)
        abort();
    faults_begin(FAULT_OPEN, 1, true, EMFILE);
    CHECK_INT(
        vst_memory_start(vst_session_recording(memory_session), &all, NULL),
        VST_OK);
    CHECK(faults_end());
    CHECK_INT(recorded(), 0);
}

static void native_stacks_need_memory(void)
{
    const vst_memory_options options = {.native_stacks = true};
    const vst_session_options session = {.path = NULL};

    if (!vst_traceback_has_native())
        return;
    if (vst_session_create(&session, &memory_session, NULL) != VST_OK ||
        vst_session_start(memory_session, NULL) != VST_OK)
        abort();
    faults_begin(FAULT_MMAP, 1, true, ENOMEM);
    CHECK_INT(
        vst_memory_start(vst_session_recording(memory_session), &options, NULL),
        VST_E_NOMEM);
    CHECK(faults_end());
    CHECK(!vst_memory_is_tracing());
    memory_end();
}

static void an_address_without_a_place_is_not_sampled(void)
{
    vst__sample_begin(1, 1);
    faults_begin(FAULT_MMAP, 1, true, ENOMEM);
    CHECK(!vst__sample_add(0x1000));
    CHECK(faults_end());
    CHECK(!vst__sample_remove(0x1000));
    CHECK(vst__sample_add(0x1000));
    CHECK(vst__sample_remove(0x1000));
}

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

    if (library == NULL)
        return 2;
    o = oracle_in(library);
    TEST(pages_that_stay_closed_are_left_alone);
    TEST(a_stop_that_may_not_change_a_slot_still_stops);
    TEST(without_the_list_of_mappings_nothing_is_changed);
    TEST(native_stacks_need_memory);
    TEST(an_address_without_a_place_is_not_sampled);
    TEST(a_page_that_stays_open_is_a_page_that_works);
    memory_forget();
    return checks_end();
}
