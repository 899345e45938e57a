/* The core's own heap, and the rule for its use: everything allocated while the
 * recorder's lock is held, or on the way to that lock from a record, comes from
 * this heap and never from malloc.
 *
 * The reason: a hook of an allocator records, and may have to wait for the
 * recorder's lock. The hook may run inside the program's malloc, with a lock of
 * malloc held. If the holder of the recorder's lock called malloc, the two
 * threads could wait for each other. The heap's own lock is a leaf: its holder
 * calls only mmap and similar functions, and fork() waits for it.
 *
 * Small blocks come from slabs by size class and are reused. A large block is a
 * mapping of its own, and growing it copies nothing. The heap is meant for few
 * blocks: each costs 16 bytes, and slabs are never given back.
 *
 * Builds for sanitizers use malloc instead, so that sanitizers see leaks and
 * overruns; so do tests that make malloc fail. Any thread. */
#ifndef VST_BASE_HEAP_H
#define VST_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* Like malloc, calloc, realloc and free, except that a size of 0 gives one
 * byte. */
void *vst__alloc(size_t size);
void *vst__calloc(size_t count, size_t size);
void *vst__realloc(void *memory, size_t size);
void vst__free(void *memory);

/* Makes the heap use malloc; set it before the first allocation. */
extern bool vst__heap_is_malloc;

#endif
