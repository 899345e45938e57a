/* The functions of a trace that wait, with what its project adds to the table
 * of base/wait_reasons.h. One thread at a time. */
#ifndef VST_REPLAY_NAMED_WAITS_H
#define VST_REPLAY_NAMED_WAITS_H

#include <vestige/trace.h>

#include "base/wait_reasons.h"

/* Finds the entries that the trace's metadata adds; not NUL-terminated. Returns
 * their length, 0 if there are none. */
size_t vst__named_waits_more(const vst_trace *trace, const char **more);

/* Returns a vst__waiter for each definition id up to max, or NULL if memory ran
 * out; free it with free(). */
vst__waiter *vst__named_waits(const vst_trace *trace, vst_id max);

#endif
