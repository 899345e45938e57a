/* A set of byte strings, each with a number: equal strings get the same one.
 * Not for several threads at once. */
#ifndef VST_BASE_INTERN_H
#define VST_BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include <vestige/status.h>

typedef struct vst__intern vst__intern;

vst__intern *vst__intern_create(void); /* NULL: out of memory */
void vst__intern_destroy(vst__intern *set);

/* The number of a string, 0 if it is new. */
uint32_t vst__intern_find(const vst__intern *set, const void *key, size_t size);
/* Adds a string that is new, under a number of the caller's (not 0). */
vst_status vst__intern_add(vst__intern *set, const void *key, size_t size,
                           uint32_t number);
/* Calls fn for each, in no order. */
void vst__intern_each(const vst__intern *set,
                      void (*fn)(void *ctx, const void *key, size_t size,
                                 uint32_t number),
                      void *ctx);

#endif
