/* The heap of heap.h. Every block has a head of 16 bytes with its size class;
 * free blocks of a class are chained. Any thread. */
#include "base/heap.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/at_fork.h"

enum {
    HEAD = 16,
    SLAB = 256 * 1024,
    CLASSES = 22, /* 32, 48, 64, 96, ... bytes, including the head */
    SMALL_MAX = 48 << 10,
    PAGE = 4096
};

typedef union head {
    struct {
        size_t size; /* size of the whole block */
        /* 1 + index of the class; 0 for a mapping of its own */
        size_t class_of;
    } used;
    union head *next;
    char bytes[HEAD];
} head;

_Static_assert(sizeof(head) == HEAD, "blocks are aligned to 16 bytes");

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
bool vst__heap_is_malloc = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||     \
    __has_feature(memory_sanitizer)
bool vst__heap_is_malloc = true;
#else
bool vst__heap_is_malloc;
#endif
#else
bool vst__heap_is_malloc;
#endif

static VST_AT_FORK pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by the lock: */
static VST_AT_FORK head *free_blocks[CLASSES];
static VST_AT_FORK char *slab, *slab_end;

static void heap_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void heap_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* Register these handlers before all other handlers of vestige: before a fork,
 * handlers run in reverse order, so this lock, which is taken inside the
 * others, is taken last. */
__attribute__((constructor(101))) static void watch_forks(void)
{
    pthread_atfork(heap_before_fork, heap_after_fork, heap_after_fork);
}

static void *heap_map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory != MAP_FAILED ? memory : NULL;
}

/* ---- blocks -------------------------------------------------------------- */

static size_t class_size(size_t class_of)
{
    return (class_of & 1 ? (size_t)48 : (size_t)32) << class_of / 2;
}

/* Call with the lock held. The unused end of the old slab is lost when a new
 * slab begins. */
static head *take_small(size_t class_of)
{
    size_t size = class_size(class_of);
    head *block = free_blocks[class_of];

    if (block != NULL) {
        free_blocks[class_of] = block->next;
        return block;
    }
    if ((size_t)(slab_end - slab) < size) {
        char *fresh = heap_map(SLAB);
        if (fresh == NULL)
            return NULL;
        slab = fresh;
        slab_end = fresh + SLAB;
    }
    block = (head *)(void *)slab;
    slab += size;
    return block;
}

static size_t round_up(size_t size)
{
    return (size + HEAD + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static head *heap_take(size_t size)
{
    size_t class_of = 0;
    head *block;

    if (size > SIZE_MAX / 2)
        return NULL;
    if (size + HEAD > SMALL_MAX) {
        block = heap_map(round_up(size));
        if (block != NULL) {
            block->used.size = round_up(size);
            block->used.class_of = 0;
        }
        return block;
    }
    while (class_size(class_of) < size + HEAD)
        class_of++;
    pthread_mutex_lock(&lock);
    block = take_small(class_of);
    pthread_mutex_unlock(&lock);
    if (block != NULL) {
        block->used.size = class_size(class_of);
        block->used.class_of = class_of + 1;
    }
    return block;
}

static void heap_give_back(head *block)
{
    size_t class_of = block->used.class_of;

    if (class_of == 0) {
        munmap(block, block->used.size);
        return;
    }
    pthread_mutex_lock(&lock);
    block->next = free_blocks[class_of - 1];
    free_blocks[class_of - 1] = block;
    pthread_mutex_unlock(&lock);
}

/* ---- heap.h -------------------------------------------------------------- */

void *vst__alloc(size_t size)
{
    head *block;

    if (vst__heap_is_malloc)
        return malloc(size ? size : 1);
    block = heap_take(size);
    return block != NULL ? block + 1 : NULL;
}

void *vst__calloc(size_t count, size_t size)
{
    head *block;

    if (vst__heap_is_malloc)
        return calloc(count ? count : 1, size ? size : 1);
    if (size && count > SIZE_MAX / 2 / size)
        return NULL;
    block = heap_take(count * size);
    if (block == NULL)
        return NULL;
    if (block->used.class_of)
        memset(block + 1, 0, count * size);
    return block + 1;
}

void *vst__realloc(void *memory, size_t size)
{
    head *block;
    void *copy;

    if (vst__heap_is_malloc)
        return realloc(memory, size ? size : 1);
    if (memory == NULL)
        return vst__alloc(size);
    block = (head *)memory - 1;
    if (size <= block->used.size - HEAD)
        return memory;
    if (block->used.class_of == 0 && size <= SIZE_MAX / 2) {
        head *moved =
            mremap(block, block->used.size, round_up(size), MREMAP_MAYMOVE);
        if (moved == MAP_FAILED)
            return NULL;
        moved->used.size = round_up(size);
        return moved + 1;
    }
    copy = vst__alloc(size);
    if (copy != NULL) {
        memcpy(copy, memory, block->used.size - HEAD);
        heap_give_back(block);
    }
    return copy;
}

void vst__free(void *memory)
{
    if (vst__heap_is_malloc)
        free(memory);
    else if (memory != NULL)
        heap_give_back((head *)memory - 1);
}
