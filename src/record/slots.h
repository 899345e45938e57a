/* Hooks of functions in the slots through which one object calls them:
 * lock_waits.c, parked_waits.c and framework_slot.c each have some. One thread
 * at a time. */
#ifndef VST_RECORD_SLOTS_H
#define VST_RECORD_SLOTS_H

#include <stdbool.h>

#include <vestige/status.h>

#include "objects/objects.h"

typedef struct vst__slots {
    vst__hook *hooks;
    size_t count;
    bool is_own;              /* one hook, of a function of the object itself */
    const ElfW(Rela) * place; /* its slot, once it was found */
    const void *hooked; /* an address in what has the hooks; NULL: nothing */
    bool was_hooked;    /* all threads see the originals */
} vst__slots;

/* Finds the originals of all hooks. One that the C library has not stays NULL.
 * The caller keeps them where its hooks find them, and then hooks. */
void vst__slots_find(vst__slots *self);
/* Puts the hooks into the object that has this address. VST_E_UNSUPPORTED: it
 * calls none of the functions through a slot. */
vst_status vst__slots_hook(vst__slots *self, const void *address);
void vst__slots_unhook(vst__slots *self);

#endif
