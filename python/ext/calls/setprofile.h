/* sys.setprofile, called while the safe engine has the interpreter report calls
 * of C functions. The interpreter reports the return of that very call to the
 * function that was set, which gets no such event without us: its first event
 * is of something that begins later. With the GIL, or for the calling thread.
 */
#ifndef VPY_CALLS_SETPROFILE_H
#define VPY_CALLS_SETPROFILE_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

/* Call when the program has set a profile function on this thread, which had
 * none: keeps a return from it that comes before everything else. */
void vpy_setprofile_hide_return(PyThreadState *tstate);

/* While watched, each call of sys.setprofile does so. The profile
 * engine watches for itself. */
void vpy_setprofile_watch(void);
void vpy_setprofile_unwatch(void);

#pragma GCC visibility pop
#endif
