/* See named_waits.h. One thread at a time. */
#include "replay/named_waits.h"

#include <stdlib.h>
#include <string.h>

size_t vst__named_waits_more(const vst_trace *trace, const char **more)
{
    const char *json = vst_trace_metadata(trace, VST_MORE_WAITS_METADATA);
    size_t length = json != NULL ? strlen(json) : 0;

    if (length < 2 || json[0] != '"' || json[length - 1] != '"')
        return 0;
    *more = json + 1;
    return length - 2;
}

vst__waiter *vst__named_waits(const vst_trace *trace, vst_id max)
{
    vst__waiter *waiters = calloc((size_t)max + 1, sizeof *waiters);
    const char *more = NULL;
    size_t length = vst__named_waits_more(trace, &more);

    for (vst_id id = 1; waiters != NULL && id <= max; id++) {
        const vst_definition *d = vst_trace_definition(trace, id);

        if (d != NULL)
            waiters[id] = vst__waiter_of(d, more, length);
    }
    return waiters;
}
