/* Waits that are recognised by the name of the waiting function. Any thread. */
#ifndef VST_BASE_WAIT_REASONS_H
#define VST_BASE_WAIT_REASONS_H

#include <stdbool.h>
#include <stddef.h>

#include <vestige/wire.h>

/* Returns whether the language itself makes threads wait for this reason. */
static inline bool vst__wait_is_of_language(uint32_t reason)
{
    return reason == VST_WAIT_GIL || reason == VST_WAIT_WORLD ||
           reason == VST_WAIT_OBJECT;
}

/* Returns the reason for which a function in C waits, by its name in a trace. A
 * function waits if its thread has nothing else to do until it returns.
 * Functions that compute and may wait a little (a file object's read(), any
 * write) have no reason: leaving them out would hide work. */
vst_wait_reason vst__wait_reason_of(const char *name, size_t length);

#endif
