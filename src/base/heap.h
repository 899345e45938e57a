/* A heap of the core's own, and the rule for it:
 *
 *     Whatever is allocated while the recorder's lock is held, or on the way to
 *     it from a record, comes from here and never from malloc.
 *
 * A hook of an allocator records, and may have to wait for the recorder's lock;
 * it may run inside the program's malloc, under a lock of that. If the holder
 * of the recorder's lock called malloc, each could wait for the other. The lock
 * in here is a leaf: nothing is called under it but mmap and its like, and
 * fork() waits for it.
 *
 * Small blocks come from slabs, by sizes, and are used again; large ones are
 * mappings of their own, and growing one moves no bytes. Meant for few blocks:
 * each costs 16 bytes, and slabs are never given back.
 *
 * In builds for sanitizers it is malloc all the same, for them to see what is
 * lost or overrun, and where tests want to see it fail. Any thread. */
#ifndef VST_BASE_HEAP_H
#define VST_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* As malloc and the others, except that a size of 0 gives one byte. */
void *vst__alloc(size_t size);
void *vst__calloc(size_t count, size_t size);
void *vst__realloc(void *memory, size_t size);
void vst__free(void *memory);

/* It is malloc; to be set before the first block is asked for. */
extern bool vst__heap_is_malloc;

#endif
