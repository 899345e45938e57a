/* Hooks of functions, placed in the slots through which one object calls these
 * functions. lock_waits.c, parked_waits.c and framework_slot.c have such hooks.
 * One thread at a time. */
#ifndef VST_RECORD_SLOTS_H
#define VST_RECORD_SLOTS_H

#include <stdbool.h>

#include <vestige/status.h>

#include "objects/objects.h"

typedef struct vst__slots {
    vst__hook *hooks;
    size_t count;
    /* whether the one hooked function belongs to the object itself */
    bool is_own;
    const ElfW(Rela) * place; /* the function's slot, once found */
    /* an address in the object that has the hooks; NULL if none has */
    const void *hooked;
    bool was_hooked; /* hooks were placed before, so every thread sees the
                        originals */
} vst__slots;

/* Finds the originals of all hooks; a function that the C library lacks stays
 * NULL. The caller stores the originals where its hooks find them, and then
 * calls vst__slots_hook. */
void vst__slots_find(vst__slots *self);
/* Puts the hooks into the object that contains this address. Returns
 * VST_E_UNSUPPORTED if the object calls none of the functions through a
 * slot. */
vst_status vst__slots_hook(vst__slots *self, const void *address);
void vst__slots_unhook(vst__slots *self);

#endif
