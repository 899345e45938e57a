/* A recording to compare with a library's own notes, see memory_oracle.h. */
#ifndef VST_TESTS_ORACLE_SESSION_H
#define VST_TESTS_ORACLE_SESSION_H

#include <dlfcn.h>

#include "memory_oracle.h"
#include "memory_session.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static inline const oracle *oracle_in(void *library)
{
    void *symbol = dlsym(library, "oracle_get");
    oracle_get_fn *get;

    if (symbol == NULL)
        abort();
    memcpy(&get, &symbol, sizeof symbol);
    return get();
}

static inline bool oracle_is_same(const vst_memory_event *event,
                                  const oracle_event *wanted)
{
    return (int)event->kind == wanted->kind &&
           ((event->flags & VST_MEMORY_FREES) != 0) == wanted->frees &&
           event->address == wanted->address &&
           (event->size == wanted->size ||
            (wanted->frees && wanted->kind != VST_MEMORY_MUNMAP)) &&
           !(event->flags & (VST_MEMORY_LOST_FREE | VST_MEMORY_UNKNOWN));
}

/* Checks that the events are exactly the noted calls, and at least `least`
 * calls. */
static inline void oracle_check(const oracle_log *log, size_t least)
{
    CHECK(log->count > least);
    CHECK_INT(memory_count, log->count);
    for (size_t i = 0; i < log->count && i < memory_count; i++)
        if (!oracle_is_same(&memory_events[i], &log->events[i])) {
            printf("# event %zu: kind %d, not %d\n", i, memory_events[i].kind,
                   log->events[i].kind);
            CHECK(!"the same event");
            return;
        }
}

#endif
