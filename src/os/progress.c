#include "os/progress.h"

#include <vestige/clock.h>

enum { PROGRESS_NS = 50000000 };

vst_status vst__progress_report(vst_progress_fn fn, void *ctx, int64_t *next_ns,
                                double done)
{
    vst_clock_sample now;

    if (fn == NULL)
        return VST_OK;
    vst_clock_sample_now(&now);
    if (now.monotonic_ns < *next_ns)
        return VST_OK;
    *next_ns = now.monotonic_ns + PROGRESS_NS;
    return fn(ctx, done) == 0 ? VST_OK : VST_E_CANCELLED;
}
