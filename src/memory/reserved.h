/* The reserved address space of the process, as far as hooks of mappings know
 * it: which of it is accessible, and so may come into use without a call. Any
 * thread, inside an allocator (vst_memory_enter). */
#ifndef VST_MEMORY_RESERVED_H
#define VST_MEMORY_RESERVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vst__range {
    uintptr_t start, end;
    bool is_open; /* accessible, so it must be looked at */
} vst__range;

/* Returns false if nothing is reserved; cheap. */
bool vst__reserved_any(void);

/* Adds whole pages, none of which was reserved before. */
void vst__reserved_add(uintptr_t start, size_t size, bool is_open);
/* Removes a range: nothing in it is reserved any more. */
void vst__reserved_remove(uintptr_t start, size_t size);
/* Finds the first part of a reservation in [start, end). Returns false if there
 * is none. */
bool vst__reserved_find(uintptr_t start, uintptr_t end, vst__range *part);

/* Finds resident pages of open reservations in a range. Removes them from the
 * reservations, and reports them to `touched`, one run at a time. */
void vst__reserved_look(uintptr_t start, uintptr_t end,
                        void (*touched)(uintptr_t start, size_t size));

/* Removes everything; call before or after tracing. */
void vst__reserved_forget(void);
void vst__reserved_after_fork(void);

/* Returns the end of the last page that a range touches. */
uintptr_t vst__reserved_end(uintptr_t start, size_t size);

#endif
