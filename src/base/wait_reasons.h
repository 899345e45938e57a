/* Waits that are recognised by the name of the waiting function. Any thread. */
#ifndef VST_BASE_WAIT_REASONS_H
#define VST_BASE_WAIT_REASONS_H

#include <stdbool.h>
#include <stddef.h>

#include <vestige/record.h>
#include <vestige/wire.h>

/* Returns whether the language itself makes threads wait for this reason. */
static inline bool vst__wait_is_of_language(uint32_t reason)
{
    return reason == VST_WAIT_GIL || reason == VST_WAIT_WORLD ||
           reason == VST_WAIT_OBJECT;
}

/* How the calls of a function wait. */
typedef struct vst__waiter {
    vst_wait_reason reason;
    /* Other calls may run inside, such as callbacks of an event loop, so only
     * its own time is waiting. Without this flag, all of its time is waiting.
     */
    bool is_around;
} vst__waiter;

/* A call of a Python function with less own time did not wait by itself: the
 * call in C that waits was recorded, or there was nothing to wait for. */
enum { VST_WAITED_NS = 1000000 };

/* Returns for which reason a function waits, by its definition in a trace. A
 * function waits if its thread has nothing else to do until the function
 * returns. Functions that compute and may wait a little (a file object's
 * read(), any write) have no reason: leaving them out would hide work. `more`
 * has entries that a project adds (VST_MORE_WAITS_METADATA). */
vst__waiter vst__waiter_of(const vst_definition *function, const char *more,
                           size_t more_length);

#endif
