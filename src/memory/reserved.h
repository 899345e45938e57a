/* Address space of the process that is reserved, as hooks of mappings know it:
 * which of it is accessible, and so may come into use without a call. Any
 * thread, inside an allocator (vst_memory_enter). */
#ifndef VST_MEMORY_RESERVED_H
#define VST_MEMORY_RESERVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vst__range {
    uintptr_t start, end;
    bool is_open; /* accessible: it is looked at */
} vst__range;

/* False, and cheap to ask: nothing is reserved. */
bool vst__reserved_any(void);

/* Whole pages from here on: reserved, which nothing of it was before. */
void vst__reserved_add(uintptr_t start, size_t size, bool is_open);
/* None of it is reserved any more. */
void vst__reserved_remove(uintptr_t start, size_t size);
/* The first part of a reservation in [start, end); false: there is none. */
bool vst__reserved_find(uintptr_t start, uintptr_t end, vst__range *part);

/* Finds the pages of open reservations in a range that are resident. They are
 * reserved no more, and told to `touched`, a run of them at a time. */
void vst__reserved_look(uintptr_t start, uintptr_t end,
                        void (*touched)(uintptr_t start, size_t size));

void vst__reserved_forget(void); /* all of it, before or after tracing */
void vst__reserved_after_fork(void);

/* Where the last page that a range touches ends. */
uintptr_t vst__reserved_end(uintptr_t start, size_t size);

#endif
