/* The hooks of monitoring_hooks.c, which engine_monitoring.c places. */
#ifndef VPY_CALLS_MONITORING_HOOKS_H
#define VPY_CALLS_MONITORING_HOOKS_H

#include "calls/monitoring_callback.h"
#include "calls/state.h"

#pragma GCC visibility push(hidden)

/* The recordings for which a hook is placed. */
typedef enum vpy_monitoring_with {
    VPY_WITH_CALLS, /* all */
    VPY_WITH_NATIVE_CALLS,
    VPY_WITH_COUNTS, /* while exceptions are counted */
    VPY_WITH_EXCEPTIONS,
    VPY_WITH_MARKS /* while exceptions are recorded */
} vpy_monitoring_with;

typedef struct vpy_monitoring_hook {
    const char *event;
    vpy_callback_fn function;
    vpy_monitoring_with with;
    char mark; /* letter of the event in the self test */
} vpy_monitoring_hook;

extern const vpy_monitoring_hook vpy_monitoring_hooks[VPY_MONITORING_HOOKS];

#pragma GCC visibility pop
#endif
