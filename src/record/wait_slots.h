/* Hooks of functions that wait, in the slots through which one object calls
 * them: lock_waits.c and parked_waits.c each have some. One thread at a time.
 */
#ifndef VST_RECORD_WAIT_SLOTS_H
#define VST_RECORD_WAIT_SLOTS_H

#include <stdbool.h>

#include <vestige/status.h>

#include "objects/objects.h"

typedef struct vst__wait_slots {
    vst__hook *hooks;
    size_t count;
    const void *hooked; /* an address in what has the hooks; NULL: nothing */
    bool was_hooked;    /* all threads see the originals */
} vst__wait_slots;

/* Finds the originals of all hooks. One that the C library has not stays NULL.
 * The caller keeps them where its hooks find them, and then hooks. */
void vst__wait_slots_find(vst__wait_slots *self);
/* Puts the hooks into the object that has this address. VST_E_UNSUPPORTED: it
 * calls none of the functions through a slot. */
vst_status vst__wait_slots_hook(vst__wait_slots *self, const void *address);
void vst__wait_slots_unhook(vst__wait_slots *self);

#endif
