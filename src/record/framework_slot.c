/* Exchanges one function that a framework's library calls within itself for
 * another: vst_call_instead() of <vestige/operator.h>. One thread at a time. */
#include <vestige/operator.h>

#include "record/slots.h"

static vst__hook hook;
static vst__slots slots = {.hooks = &hook, .count = 1, .is_own = true};

bool vst_call_instead(const char *name, void *original, void *instead)
{
    if (instead == NULL) {
        vst__slots_unhook(&slots);
        return true;
    }
    hook = (vst__hook){name, instead, original};
    return vst__slots_hook(&slots, original) == VST_OK;
}
