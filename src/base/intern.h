/* A set of byte strings that gives each string a number; equal strings get the
 * same number. The caller makes sure that only one thread uses a set. */
#ifndef VST_BASE_INTERN_H
#define VST_BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include <vestige/status.h>

typedef struct vst__intern vst__intern;

vst__intern *vst__intern_create(void); /* Returns NULL if memory runs out. */
void vst__intern_destroy(vst__intern *set);

/* Returns the number of a string, 0 if the string is new. */
uint32_t vst__intern_find(const vst__intern *set, const void *key, size_t size);
/* Adds a new string under a number that the caller chooses (not 0). */
vst_status vst__intern_add(vst__intern *set, const void *key, size_t size,
                           uint32_t number);
/* Calls fn for each string, in no particular order. */
void vst__intern_each(const vst__intern *set,
                      void (*fn)(void *ctx, const void *key, size_t size,
                                 uint32_t number),
                      void *ctx);

#endif
