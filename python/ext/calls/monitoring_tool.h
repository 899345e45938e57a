/* Our tool id of sys.monitoring, and calls of its functions (3.12 and later).
 * With the GIL. */
#ifndef VPY_CALLS_MONITORING_TOOL_H
#define VPY_CALLS_MONITORING_TOOL_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

/* Calls a function of sys.monitoring. Returns a new reference to the result;
 * NULL if sys.monitoring refuses. Leaves no exception set, because the next
 * call would raise it. */
PyObject *vpy_monitoring_ask(const char *function, const char *format, ...);

/* Takes a free id. Returns false if there is none. */
bool vpy_tool_take(void);
bool vpy_tool_is_taken(void);
/* Returns whether our tool id still belongs to us, or again: the program may
 * have freed it. */
bool vpy_tool_hold(void);
bool vpy_tool_set_events(unsigned long events);
/* Adds events for one code object; they stay until the id is given back. */
void vpy_tool_set_local_events(PyObject *code, unsigned long events);
/* Returns a new reference to the previous callback; NULL if sys.monitoring
 * refuses the new one. */
PyObject *vpy_tool_register(long event, PyObject *function);
/* Enables all places that were disabled, so that callbacks are called there
 * again. */
void vpy_tool_enable_all(void);
/* Frees the id, if it was ours. */
void vpy_tool_give_back(bool ours);

#pragma GCC visibility pop
#endif
