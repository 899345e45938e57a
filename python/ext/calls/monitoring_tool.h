/* Our tool id of sys.monitoring, and calls of its functions (3.12 and later).
 * With the GIL. */
#ifndef VPY_CALLS_MONITORING_TOOL_H
#define VPY_CALLS_MONITORING_TOOL_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

/* Calls a function of sys.monitoring: a new reference to what it returns; NULL:
 * it refuses. No error stays set: it would be set in the next call. */
PyObject *vpy_monitoring_ask(const char *function, const char *format, ...);

/* Takes a free id. False: there is none. */
bool vpy_tool_take(void);
bool vpy_tool_is_taken(void);
/* Whether our tool id is ours still, or again. The program may have freed it.
 */
bool vpy_tool_hold(void);
bool vpy_tool_set_events(unsigned long events);
/* Adds events for one code object, until the id is given back. */
void vpy_tool_set_local_events(PyObject *code, unsigned long events);
/* A new reference to the callback that was there; NULL: it is refused. */
PyObject *vpy_tool_register(long event, PyObject *function);
/* Callbacks are called again at all places that were disabled. */
void vpy_tool_enable_all(void);
/* The id is free after that, if it was ours. */
void vpy_tool_give_back(bool ours);

#pragma GCC visibility pop
#endif
