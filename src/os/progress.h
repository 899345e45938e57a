/* Reports to a caller how far a long reading or writing has come, at most every
 * 50 ms. */
#ifndef VST_OS_PROGRESS_H
#define VST_OS_PROGRESS_H

#include <vestige/trace.h>

/* `fn` may be NULL. *next_ns is the time of the next call, 0 at first. `done`
 * is between 0 and 1. Returns VST_E_CANCELLED if `fn` asks to stop. */
vst_status vst__progress_report(vst_progress_fn fn, void *ctx, int64_t *next_ns,
                                double done);

#endif
