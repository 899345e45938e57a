/* The lines of calls: see lines.c. */
#ifndef VPY_CALLS_LINES_H
#define VPY_CALLS_LINES_H

#include "calls/tracer.h"

#pragma GCC visibility push(hidden)

/* Call before the hooks of a recording are placed: its threads record the lines
 * of their calls, if the interpreter's frames are known. */
void vpy_lines_begin(vst_recording *recording);
/* The interpreter calls this when a code object with a value ends, and when a
 * value is replaced. */
void vpy_lines_code_freed(void *value);

#pragma GCC visibility pop
#endif
