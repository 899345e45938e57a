/* Hooks in libraries: they record exactly the allocations that the library
 * noted itself. The libraries are bound when loaded, when first called, or
 * through tables, and loaded before or later. Other slots are not touched, and
 * afterwards all slots are as before. This program contains the core and
 * therefore gets no hooks: libraries make all calls. The build passes the
 * arguments, see meson.build. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory_session.h"
#include "objects/objects.h"
#include "oracle_session.h"

/* musl never unloads a library, and looks for a bare name only in the program's
 * own path. */
#ifdef __GLIBC__
enum { LOADER_KEEPS_ALL = 0 };
#else
enum { LOADER_KEEPS_ALL = 1 };
#endif

enum { LAZY, NOW, TABLE, OWN, DEEP, SIBLING, LIBRARIES, CALLS = 20000 };

static char **paths; /* indexed by the names above */
static const vst_memory_options all = {.native_allocators = true};
static oracle_event noted[4 * CALLS];

/* The library that registered last, see memory_oracle.c. */
static const oracle *last_registered;
void oracle_register(const oracle *library);
void oracle_register(const oracle *library)
{
    last_registered = library;
}

static void *open_library(const char *path)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);

    if (library == NULL) {
        printf("# %s\n", dlerror());
        abort();
    }
    return library;
}

static void check_library(const char *path)
{
    oracle_log log = {noted, 0, sizeof noted / sizeof *noted, false};
    void *library = open_library(path);
    const oracle *o = oracle_in(library);

    memory_begin(&all);
    o->run(1, CALLS, &log);
    memory_end();
    oracle_check(&log, CALLS / 4);
    dlclose(library);
}

static void a_library_that_is_bound_when_called_is_recorded_call_by_call(void)
{
    check_library(paths[LAZY]);
}

static void a_library_with_closed_relocations_is_recorded_call_by_call(void)
{
    check_library(paths[NOW]);
}

static void calls_through_a_closed_table_are_recorded(void)
{
    check_library(paths[TABLE]);
}

/* ---- later -------------------------------------------------------------- */

/* The program itself never calls dlsym. */
static void a_library_that_is_loaded_later_by_its_path_is_recorded_at_once(void)
{
    oracle_log log = {noted, 0, sizeof noted / sizeof *noted, false};
    void *library = open_library(paths[LAZY]);
    const oracle *o = oracle_in(library);
    void *later;

    memory_begin(&all);
    later = o->load(paths[NOW], RTLD_NOW | RTLD_LOCAL);
    CHECK(later != NULL);
    last_registered->run(2, CALLS, &log);
    memory_end();
    oracle_check(&log, CALLS / 4);
    o->unload(later);
    dlclose(library);
}

/* The loader searches the path that only the calling library has. */
static void a_library_finds_its_sibling_by_its_bare_name(void)
{
    oracle_log log = {noted, 0, sizeof noted / sizeof *noted, false};
    const char *name = strrchr(paths[TABLE], '/') + 1;
    void *library, *later;
    const oracle *o;

    if (SANITIZED || LOADER_KEEPS_ALL)
        return; /* the sanitizer defines dlopen, so the loader sees the
                 * sanitizer as the caller */
    library = open_library(paths[SIBLING]);
    o = oracle_in(library);
    CHECK(dlopen(name, RTLD_NOW) == NULL);
    memory_begin(&all);
    last_registered = NULL;
    later = o->load(name, RTLD_NOW | RTLD_LOCAL);
    if (later == NULL)
        printf("# %s\n", dlerror());
    if (CHECK(later != NULL && last_registered != NULL)) {
        CHECK(o->find(later, "oracle_get") != NULL);
        last_registered->run(3, CALLS, &log);
    }
    memory_end();
    oracle_check(&log, CALLS / 4);
    if (later != NULL)
        o->unload(later);
    dlclose(library);
}

static void errors_of_the_loader_are_those_of_the_loader(void)
{
    void *library = open_library(paths[LAZY]);
    const oracle *o = oracle_in(library);
    char without[256] = "", with[256] = "";
    const char *text;

    o->load("/nowhere/at/all.so", RTLD_NOW);
    if ((text = dlerror()) != NULL)
        snprintf(without, sizeof without, "%s", text);
    memory_begin(&all);
    CHECK(o->load("/nowhere/at/all.so", RTLD_NOW) == NULL);
    if ((text = dlerror()) != NULL)
        snprintf(with, sizeof with, "%s", text);
    CHECK(o->find(library, "no_such_function") == NULL);
    CHECK(dlerror() != NULL);
    /* RTLD_NEXT searches behind the library, not behind us. */
    CHECK(LOADER_KEEPS_ALL || o->find(RTLD_NEXT, "oracle_get") == NULL);
    CHECK(o->find(RTLD_DEFAULT, "malloc") != NULL);
    memory_end();
    CHECK(without[0]);
    CHECK_TEXT(with, without);
    dlclose(library);
}

static void libraries_come_and_go(void)
{
    oracle_log log = {noted, 0, sizeof noted / sizeof *noted, false};
    void *library = open_library(paths[LAZY]);
    const oracle *o = oracle_in(library);

    memory_begin(&all);
    for (int i = 0; i < 20; i++) {
        void *later = o->load(paths[i % 2 ? NOW : TABLE], RTLD_NOW);
        oracle_in(later)->run((uint64_t)i, 100, &log);
        CHECK_INT(o->unload(later), 0);
    }
    o->run(4, CALLS, &log);
    memory_end();
    oracle_check(&log, CALLS / 4);
    dlclose(library);
}

static atomic_bool is_over;
static const oracle *loader; /* the library whose calls of dlopen are hooked */

static void *load_and_unload(void *path)
{
    while (!is_over) {
        void *later = loader->load(path, RTLD_NOW | RTLD_LOCAL);
        const oracle *o = oracle_in(later);
        for (int i = 0; i < 20; i++)
            o->free(o->malloc(100));
        loader->unload(later);
    }
    return NULL;
}

/* Libraries that are half loaded or just unloaded do no harm. */
static void libraries_come_and_go_while_tracing_starts_and_stops(void)
{
    void *library = open_library(paths[LAZY]);
    pthread_t threads[2];
    size_t heard = 0;

    loader = oracle_in(library);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, load_and_unload,
                       paths[i ? NOW : TABLE]);
    for (int i = 0; i < 20; i++) {
        memory_begin(&all);
        usleep(1000);
        loader->free(loader->malloc(33));
        memory_end();
        for (size_t j = 0; j < memory_count; j++)
            heard += memory_events[j].size == 33 &&
                     !(memory_events[j].flags & VST_MEMORY_FREES);
    }
    is_over = true;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(heard, 20);
    dlclose(library);
}

/* ---- what is left alone ------------------------------------------------- */

static void an_allocator_of_a_librarys_own_is_not_touched(void)
{
    void *library = open_library(paths[OWN]);
    const oracle *o = oracle_in(library);
    void *block;

    memory_begin(&all);
    block = o->malloc(100);
    o->free(block);
    memory_end();
    CHECK_INT(memory_count, 0);
    dlclose(library);
}

static void a_library_that_prefers_another_allocator_keeps_it(void)
{
#ifdef RTLD_DEEPBIND /* musl has no RTLD_DEEPBIND */
    void *library, *block;
    const oracle *o;

    if (SANITIZED)
        return; /* the sanitizers forbid RTLD_DEEPBIND */
    library = dlopen(paths[DEEP], RTLD_NOW | RTLD_DEEPBIND);
    o = oracle_in(library);

    memory_begin(&all);
    block = o->malloc(100);
    o->free(block);
    memory_end();
    CHECK_INT(memory_count, 0);
    dlclose(library);
#endif
}

/* ---- and after ---------------------------------------------------------- */

typedef struct slot {
    void **at;
    void *value;
    bool is_lazy; /* slots that are not bound yet */
    int access;
} slot;

static struct {
    slot slots[20000];
    size_t count;
    vst__protection protection;
} seen;

static int see_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
    vst__object object;

    (void)size, (void)ctx;
    vst__object_read(info, &object);
    for (int table = 0; table < 2; table++)
        for (size_t i = 0; i < object.relocation_counts[table]; i++) {
            const ElfW(Rela) *r = &object.relocations[table][i];
            unsigned type = (unsigned)ELF64_R_TYPE(r->r_info);
            void **at = (void **)(object.bias + r->r_offset);
            if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
                continue;
            seen.slots[seen.count++ % 20000] = (slot){
                at, *at,
                (uintptr_t)*at - object.start < object.end - object.start,
                vst__protection_at(&seen.protection, (uintptr_t)at)};
        }
    return 0;
}

static void see_slots(void)
{
    seen.count = 0;
    vst__protection_read(&seen.protection);
    dl_iterate_phdr(see_object, NULL);
    vst__protection_free(&seen.protection);
}

static void stop_leaves_every_slot_and_every_page_as_it_was(void)
{
    static slot before[20000];
    void *library = open_library(paths[NOW]);
    void *lazy = open_library(paths[LAZY]);
    oracle_log log = {noted, 0, sizeof noted / sizeof *noted, false};
    size_t changed = 0, differ = 0, count;

    see_slots();
    memcpy(before, seen.slots, sizeof before);
    count = seen.count;
    memory_begin(&all);
    oracle_in(lazy)->run(1, 100, &log);
    see_slots();
    CHECK_INT(seen.count, count);
    for (size_t i = 0; i < count; i++)
        changed += seen.slots[i].value != before[i].value && !before[i].is_lazy;
    CHECK(changed > 10);
    memory_end();
    see_slots();
    CHECK_INT(seen.count, count);
    for (size_t i = 0; i < count; i++)
        differ +=
            (seen.slots[i].value != before[i].value && !before[i].is_lazy) ||
            seen.slots[i].access != before[i].access;
    CHECK_INT(differ, 0);
    dlclose(lazy);
    dlclose(library);
}

static oracle_malloc_fn *wrapped;
static int wrapper_calls;

static void *wrap_malloc(size_t size)
{
    wrapper_calls++;
    return wrapped(size);
}

/* Returns the library's slot of malloc, which the program may write. */
static void **slot_of_malloc(void *library, vst__object *object)
{
    struct link_map *map = library;

    for (size_t i = 0; i < object->relocation_counts[1]; i++) {
        const ElfW(Rela) *r = &object->relocations[1][i];
        const ElfW(Sym) *s = &object->symbols[ELF64_R_SYM(r->r_info)];
        if (strcmp(object->strings + s->st_name, "malloc") == 0)
            return (void **)(map->l_addr + r->r_offset);
    }
    return NULL;
}

static int read_if_named(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    vst__object_read(info, ctx);
    return strcmp(info->dlpi_name, paths[LAZY]) == 0;
}

static void a_hook_that_somebody_wrapped_stays_and_passes_through(void)
{
    void *library = open_library(paths[LAZY]);
    const oracle *o = oracle_in(library);
    vst__object object;
    void **place;
    oracle_malloc_fn *wrapper, *original;

    CHECK(dl_iterate_phdr(read_if_named, &object) == 1);
    place = slot_of_malloc(library, &object);
    if (!CHECK(place != NULL))
        return;
    memory_begin(&all);
    memcpy(&wrapped, place, sizeof wrapped);
    wrapper = wrap_malloc;
    memcpy(place, &wrapper, sizeof wrapper);
    o->free(o->malloc(10));
    memory_end();
    CHECK_INT(memory_count, 2);
    CHECK_INT(wrapper_calls, 1);
    o->free(o->malloc(10));
    CHECK_INT(wrapper_calls, 2);
    CHECK(memcmp(place, &wrapper, sizeof wrapper) == 0);
    /* Recorded again as soon as another recording starts. */
    memory_begin(&all);
    o->free(o->malloc(10));
    memory_end();
    CHECK_INT(wrapper_calls, 3);
    CHECK_INT(memory_count, 2);
    original = malloc;
    memcpy(place, &original, sizeof original);
    dlclose(library);
}

static void errno_is_the_programs(void)
{
    void *library = open_library(paths[NOW]);
    const oracle *o = oracle_in(library);
    void *block;

    memory_begin(&all);
    errno = 77;
    block = o->malloc(10);
    CHECK_INT(errno, 77);
    o->free(block);
    CHECK_INT(errno, 77);
    memory_end();
    dlclose(library);
}

static void memory_is_traced_once_at_a_time(void)
{
    memory_begin(&all);
    CHECK(vst_memory_is_tracing());
    CHECK_INT(
        vst_memory_start(vst_session_recording(memory_session), &all, NULL),
        VST_E_BUSY);
    memory_end();
    CHECK(!vst_memory_is_tracing());
    vst_memory_stop();
}

int main(int argc, char **argv)
{
    if (argc != 1 + LIBRARIES)
        return 2;
    if (getenv("LD_LIBRARY_PATH") !=
        NULL) { /* set by the build; with it, any library would find the
                 * sibling */
        unsetenv("LD_LIBRARY_PATH");
        execv("/proc/self/exe", argv);
    }
    paths = argv + 1;
    TEST(a_library_that_is_bound_when_called_is_recorded_call_by_call);
    TEST(a_library_with_closed_relocations_is_recorded_call_by_call);
    TEST(calls_through_a_closed_table_are_recorded);
    TEST(a_library_that_is_loaded_later_by_its_path_is_recorded_at_once);
    TEST(a_library_finds_its_sibling_by_its_bare_name);
    TEST(errors_of_the_loader_are_those_of_the_loader);
    TEST(libraries_come_and_go);
    TEST(libraries_come_and_go_while_tracing_starts_and_stops);
    TEST(an_allocator_of_a_librarys_own_is_not_touched);
    TEST(a_library_that_prefers_another_allocator_keeps_it);
    TEST(stop_leaves_every_slot_and_every_page_as_it_was);
    TEST(a_hook_that_somebody_wrapped_stays_and_passes_through);
    TEST(errno_is_the_programs);
    TEST(memory_is_traced_once_at_a_time);
    memory_forget();
    return checks_end();
}
