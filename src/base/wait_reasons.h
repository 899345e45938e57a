/* Waits that are known by the name of the function that waits. Any thread. */
#ifndef VST_BASE_WAIT_REASONS_H
#define VST_BASE_WAIT_REASONS_H

#include <stdbool.h>
#include <stddef.h>

#include <vestige/wire.h>

/* Whether the language itself makes threads wait for it. */
static inline bool vst__wait_is_of_language(uint32_t reason)
{
    return reason == VST_WAIT_GIL || reason == VST_WAIT_WORLD ||
           reason == VST_WAIT_OBJECT;
}

/* What a function in C waits for, by its name in a trace. A function waits if
 * its thread has nothing else to do until it returns. What computes and may
 * wait a little on the way (a file object's read(), any write) does not: to
 * leave it out would hide work. */
vst_wait_reason vst__wait_reason_of(const char *name, size_t length);

#endif
