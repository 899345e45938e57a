/* malloc and its family for the processes that counts.py counts, which preload
 * it. An allocation takes the same instructions whatever was allocated before,
 * and a block lies at the same distance from a cache line: the C library's own
 * takes more or fewer by the state of its lists, which depends on every path
 * and package that the interpreter has seen. Memory is not given back. Any
 * thread may enter. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64, CLASSES = 48 }; /* a header takes a line, too */
static const size_t region_size = (size_t)1 << 30;

/* The header in front of every block. A block of class i has LINE << i bytes.
 * Where `aligned` moved the beginning, another header stands there, and `block`
 * is the first one. */
struct header {
    size_t class;
    struct header *block;
    struct header *next; /* while the block is free */
};

static atomic_flag lock = ATOMIC_FLAG_INIT;
static struct header *free_blocks[CLASSES]; /* guarded by lock */
static char *rest;                          /* guarded by lock */
static size_t rest_size;                    /* guarded by lock */

static void take_lock(void)
{
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) {
        sched_yield();
    }
}

static void release_lock(void)
{
    atomic_flag_clear_explicit(&lock, memory_order_release);
}

static struct header *header_of(void *data)
{
    return (struct header *)((char *)data - LINE);
}

static size_t class_of(size_t size)
{
    unsigned long long lines = size == 0 ? 0 : (size - 1) / LINE;

    return lines == 0 ? 0 : (size_t)(64 - __builtin_clzll(lines));
}

/* Takes memory that was never used. Call with the lock held. */
static struct header *carve(size_t class)
{
    size_t size = LINE + ((size_t)LINE << class);
    struct header *made;

    if (size > rest_size) {
        size_t wanted = size > region_size ? size : region_size;
        void *region = mmap(NULL, wanted, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (region == MAP_FAILED) {
            return NULL;
        }
        rest = region;
        rest_size = wanted;
    }
    made = (struct header *)rest;
    rest += size;
    rest_size -= size;
    made->class = class;
    made->block = made;
    return made;
}

void *malloc(size_t size)
{
    size_t class = class_of(size);
    struct header *header;

    if (class >= CLASSES) {
        errno = ENOMEM;
        return NULL;
    }
    take_lock();
    header = free_blocks[class];
    if (header != NULL) {
        free_blocks[class] = header->next;
    } else {
        header = carve(class);
    }
    release_lock();
    if (header == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    return (char *)header + LINE;
}

void free(void *data)
{
    struct header *header;

    if (data == NULL) {
        return;
    }
    header = header_of(data)->block;
    take_lock();
    header->next = free_blocks[header->class];
    free_blocks[header->class] = header;
    release_lock();
}

void *calloc(size_t count, size_t size)
{
    size_t bytes;
    void *data;

    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    data = malloc(bytes);
    return data == NULL ? NULL : memset(data, 0, bytes);
}

size_t malloc_usable_size(void *data)
{
    struct header *block;

    if (data == NULL) {
        return 0;
    }
    block = header_of(data)->block;
    return (size_t)((char *)block + LINE + ((size_t)LINE << block->class) -
                    (char *)data);
}

void *realloc(void *data, size_t size)
{
    size_t usable = malloc_usable_size(data);
    void *moved;

    if (data != NULL && size != 0 && size <= usable) {
        return data;
    }
    moved = malloc(size);
    if (moved != NULL && data != NULL) {
        memcpy(moved, data, size < usable ? size : usable);
        free(data);
    }
    return moved;
}

static void *aligned(size_t alignment, size_t size)
{
    struct header *header;
    char *data;
    char *moved;

    if (alignment <= LINE) {
        return malloc(size);
    }
    if (size > SIZE_MAX - alignment) {
        errno = ENOMEM;
        return NULL;
    }
    data = malloc(size + alignment);
    if (data == NULL) {
        return NULL;
    }
    moved = (char *)(((uintptr_t)data + alignment - 1) &
                     ~(uintptr_t)(alignment - 1));
    header = header_of(moved);
    header->block = header_of(data); /* the block itself, if its beginning did
                                      * not move */
    return moved;
}

void *memalign(size_t alignment, size_t size)
{
    return aligned(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return aligned(alignment, size);
}

void *valloc(size_t size)
{
    return aligned(4096, size);
}

void *pvalloc(size_t size)
{
    return aligned(4096, (size + 4095) & ~(size_t)4095);
}

int posix_memalign(void **data, size_t alignment, size_t size)
{
    void *made = aligned(alignment, size);

    if (made == NULL) {
        return ENOMEM;
    }
    *data = made;
    return 0;
}
