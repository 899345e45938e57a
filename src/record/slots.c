#include "record/slots.h"

#include <dlfcn.h>

#include "os/os.h"

typedef struct change {
    const void *address;
    vst__patching patching;
    vst__protection protection;
} change;

static int change_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
    change *self = ctx;
    vst__object object;

    (void)size;
    vst__object_read(info, &object);
    if ((uintptr_t)self->address - object.start >= object.end - object.start)
        return 0;
    if (vst__protection_read(&self->protection))
        vst__patch_object(&object, &self->patching);
    vst__protection_free(&self->protection);
    return 1;
}

/* Writes `value` into the slots, and returns how many changed. */
static uint64_t change_slots(vst__slots *slots, const void *address,
                             bool takes_out)
{
    change self = {
        .address = address,
        .patching = {.hooks = slots->hooks,
                     .count = slots->count,
                     .takes_out = takes_out,
                     .is_own = slots->is_own,
                     .place = slots->place},
    };

    self.patching.protection = &self.protection;
    dl_iterate_phdr(change_object, &self);
    slots->place = self.patching.place;
    return self.patching.patched;
}

/* Keeps the library that has the hooks loaded for good, because threads may be
 * in a hook after the hook was taken out. */
static void slots_pin(const void *hook)
{
    Dl_info info;

    if (dladdr(hook, &info) != 0 && info.dli_fname != NULL)
        dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void vst__slots_find(vst__slots *self)
{
    for (size_t i = 0; !self->was_hooked && i < self->count; i++)
        if (self->hooks[i].original == NULL)
            self->hooks[i].original = vst__objects_find(self->hooks[i].name);
}

vst_status vst__slots_hook(vst__slots *self, const void *address)
{
    if (!self->was_hooked) {
        self->was_hooked = true;
        slots_pin(self->hooks[0].hook);
        /* As in memory/hooks.c: a thread that comes through a slot must see the
         * originals. */
        if (vst__os_barrier_prepare())
            vst__os_barrier();
    }
    if (change_slots(self, address, false) == 0)
        return VST_E_UNSUPPORTED;
    self->hooked = address;
    return VST_OK;
}

void vst__slots_unhook(vst__slots *self)
{
    if (self->hooked != NULL)
        change_slots(self, self->hooked, true);
    self->hooked = NULL;
}
