/* Watches sys.setprofile while the interpreter reports calls of C functions to
 * the safe engine. The interpreter would report the return of the call of
 * sys.setprofile itself to the function that was just set. Without vestige, the
 * function gets no such event: its first event belongs to a later call. Call
 * with the GIL held, or for the calling thread. */
#ifndef VPY_CALLS_SETPROFILE_H
#define VPY_CALLS_SETPROFILE_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

/* Call when the program has set a profile function on this thread, which had
 * none. If the function's first event is a return, the function does not see
 * that event. */
void vpy_setprofile_hide_return(PyThreadState *tstate);

/* While sys.setprofile is watched, each call of it hides its return. The
 * profile engine watches by itself. */
void vpy_setprofile_watch(void);
void vpy_setprofile_unwatch(void);

#pragma GCC visibility pop
#endif
