/* memory_oracle.h. ORACLE_TABLE: the library calls through a read-only table of
 * pointers. ORACLE_OWN: the library has a malloc of its own. */
#include "memory_oracle.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <vestige/memory.h>

#ifdef __GLIBC__
#define PVALLOC pvalloc
#else
#define PVALLOC valloc /* musl has no pvalloc */
#endif

#ifdef ORACLE_OWN
static char own_memory[1 << 16];
static size_t own_used;

void *malloc(size_t size)
{
    void *block = own_memory + own_used;

    own_used += (size + 15) & ~(size_t)15;
    return own_used <= sizeof own_memory ? block : NULL;
}

void free(void *block)
{
    (void)block;
}
#endif

#ifdef ORACLE_TABLE
static const struct {
    __typeof__(&malloc) malloc;
    __typeof__(&calloc) calloc;
    __typeof__(&realloc) realloc;
    __typeof__(&free) free;
} table = {malloc, calloc, realloc, free};
/* Keeps the compiler from replacing the table's entries by constants. */
static const void *volatile escaped = &table;
#define CALL(name) (((const __typeof__(table) *)escaped)->name)
#else
#define CALL(name) name
#endif

enum { LIVE = 64, OPERATIONS = 16 };

typedef struct block {
    void *address;
    size_t size;
    bool is_mapping;
} block;

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void note(oracle_log *log, vst_memory_kind kind, bool frees,
                 const void *address, size_t size)
{
    if (log->count < log->capacity)
        log->events[log->count++] =
            (oracle_event){(int)kind, frees, (uintptr_t)address, size};
}

static void take(oracle_log *log, block *b, vst_memory_kind kind, void *address,
                 size_t size)
{
    *b = (block){address, size, false};
    if (address != NULL)
        note(log, kind, false, address, size);
}

static void resize(oracle_log *log, block *b, size_t size, bool as_array)
{
    /* Keep the address as a number: the block may be freed before it is
     * noted. */
    uintptr_t old = (uintptr_t)b->address;
    void *grown = as_array ? reallocarray(b->address, size, 3)
                           : CALL(realloc)(b->address, size);
    size_t now = as_array ? size * 3 : size;

    if (grown == NULL && now != 0)
        return;
    note(log, VST_MEMORY_REALLOC, true, (const void *)old, 0);
    take(log, b, VST_MEMORY_REALLOC, grown, now);
}

static void remap(oracle_log *log, block *b, size_t size)
{
    void *moved = mremap(b->address, b->size, size, MREMAP_MAYMOVE);

    if (moved == MAP_FAILED)
        return;
    note(log, VST_MEMORY_MUNMAP, true, b->address, b->size);
    note(log, VST_MEMORY_MMAP, false, moved, size);
    *b = (block){moved, size, true};
}

static void give_back(oracle_log *log, block *b)
{
    if (b->is_mapping) {
        note(log, VST_MEMORY_MUNMAP, true, b->address, b->size);
        munmap(b->address, b->size);
    } else if (b->address != NULL) {
        note(log, VST_MEMORY_FREE, true, b->address, 0);
        CALL(free)(b->address);
    } else {
        CALL(free)(NULL);
    }
    *b = (block){NULL, 0, false};
}

/* Each of these calls fails and returns no block. */
static void fail(uint64_t which)
{
    static volatile size_t huge = SIZE_MAX / 2;
    void *none = NULL;

    if (which % 4 == 0)
        none = CALL(malloc)(huge);
    else if (which % 4 == 1)
        none = CALL(calloc)(huge, 16);
    else if (which % 4 == 2)
        none = reallocarray(NULL, huge, 16);
    else
        munmap((void *)(uintptr_t)1, 4096);
    CALL(free)(none);
}

static void begin(oracle_log *log, block *b, uint64_t operation, size_t size)
{
    void *address = NULL;

    switch (operation) {
    case 0:
        take(log, b, VST_MEMORY_CALLOC, CALL(calloc)(size, 3), size * 3);
        break;
    case 1:
        take(log, b, VST_MEMORY_REALLOC, CALL(realloc)(NULL, size), size);
        break;
    case 2:
        if (posix_memalign(&address, 64, size) == 0)
            take(log, b, VST_MEMORY_POSIX_MEMALIGN, address, size);
        break;
    case 3:
        take(log, b, VST_MEMORY_ALIGNED_ALLOC, aligned_alloc(64, size * 64),
             size * 64);
        break;
    case 4:
        take(log, b, VST_MEMORY_MEMALIGN, memalign(32, size), size);
        break;
    case 5:
        take(log, b, VST_MEMORY_VALLOC, valloc(size), size);
        break;
    case 6:
        take(log, b, VST_MEMORY_VALLOC,
             log->has_no_pvalloc ? valloc(size) : PVALLOC(size), size);
        break;
    case 7:
        *b = (block){mmap(NULL, size + 1, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                     size + 1, true};
        note(log, VST_MEMORY_MMAP, false, b->address, b->size);
        break;
    default:
        take(log, b, VST_MEMORY_MALLOC, CALL(malloc)(size), size);
        break;
    }
}

void oracle_run(uint64_t seed, int calls, oracle_log *log);
void oracle_run(uint64_t seed, int calls, oracle_log *log)
{
    block live[LIVE] = {{NULL, 0, false}};

    for (int i = 0; i < calls; i++) {
        block *b = &live[next(&seed) % LIVE];
        uint64_t operation = next(&seed) % OPERATIONS;
        size_t size = next(&seed) % (next(&seed) % 50 == 0 ? 300000 : 500);

        if (operation == OPERATIONS - 1)
            fail(next(&seed));
        else if (b->address == NULL)
            begin(log, b, operation, size);
        else if (operation < 4 && !b->is_mapping)
            resize(log, b, size, operation == 3);
        else if (operation < 2 && b->is_mapping)
            remap(log, b, size + 1);
        else
            give_back(log, b);
    }
    for (int i = 0; i < LIVE; i++)
        if (live[i].address != NULL)
            give_back(log, &live[i]);
}

static void *take_one(size_t size)
{
    return CALL(malloc)(size);
}

static void free_one(void *given)
{
    CALL(free)(given);
}

static void *load(const char *name, int mode)
{
    void *library = dlopen(name, mode);

    /* Prevents a tail call, which would hide this library as the caller. */
    __asm__ volatile("" : "+r"(library));
    return library;
}

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);

    __asm__ volatile("" : "+r"(found));
    return found;
}

static int unload(void *library)
{
    return dlclose(library);
}

static void map(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at != MAP_FAILED)
        munmap(at, size);
}

static void *map_pages(void *at, size_t size, int access, int flags)
{
    return mmap(at, size, access, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static int unmap_pages(void *at, size_t size)
{
    return munmap(at, size);
}

static void *move_pages(void *at, size_t size, size_t new_size)
{
    return mremap(at, size, new_size, MREMAP_MAYMOVE);
}

static int protect_pages(void *at, size_t size, int access)
{
    return mprotect(at, size, access);
}

static int advise_pages(void *at, size_t size, int advice)
{
    return madvise(at, size, advice);
}

static const oracle self = {
    oracle_run, take_one,  free_one,    load,       find,          unload,
    map,        map_pages, unmap_pages, move_pages, protect_pages, advise_pages,
};

const oracle *oracle_get(void);
const oracle *oracle_get(void)
{
    return &self;
}

__attribute__((weak)) void oracle_register(const oracle *library);

__attribute__((constructor)) static void construct(void)
{
    CALL(free)(CALL(malloc)(77)); /* an allocation before any code of ours could
                                   * see it */
    if (oracle_register != NULL)
        oracle_register(&self);
}
