/* Tells a caller how far a long reading or writing is, at most every 50 ms. */
#ifndef VST_OS_PROGRESS_H
#define VST_OS_PROGRESS_H

#include <vestige/trace.h>

/* `fn` may be NULL; *next_ns is when it is called again, and 0 at first. `done`
 * is from 0 to 1. VST_E_CANCELLED if `fn` wants an end. */
vst_status vst__progress_tell(vst_progress_fn fn, void *ctx, int64_t *next_ns,
                              double done);

#endif
