/* See kept.h. */
#include "export/timeline/kept.h"

#include <stdlib.h>

#include "base/grow.h"
#include "store/reader.h"

enum { SPANS_MORE = 1 << 18 };

size_t vst__kept_room(const vst_trace *trace)
{
    return trace->valid_end / sizeof(uint64_t) + SPANS_MORE;
}

vst_status vst__kept_add(vst__kept *kept, const vst_span *span,
                         uint32_t function)
{
    if (!VST_RESERVE(kept->spans, kept->count + 1, kept->capacity))
        return VST_E_NOMEM;
    if (*kept->room == 0)
        return VST_E_OUTPUT;
    --*kept->room;
    kept->spans[kept->count++] = (vst__kept_span){
        span->start_ns, span->end_ns, span->serial, function, span->depth};
    return VST_OK;
}

static int by_serial(const void *a, const void *b)
{
    const vst__kept_span *x = a, *y = b;

    return (x->serial > y->serial) - (x->serial < y->serial);
}

/* Closes the open spans at a depth and deeper. A missing depth belongs to a
 * span that was left out. */
static vst_status kept_close_from(vst__kept *kept, size_t *open, uint32_t depth,
                                  const vst__kept_walk *walk)
{
    vst_status status = VST_OK;

    while (status == VST_OK && *open != 0 &&
           kept->open[*open - 1]->depth >= depth)
        status = walk->close(walk->ctx, kept->open[--*open]);
    return status;
}

vst_status vst__kept_visit(vst__kept *kept, const vst__kept_walk *walk)
{
    size_t open = 0;
    vst_status status = VST_OK;

    if (kept->count > 1)
        qsort(kept->spans, kept->count, sizeof *kept->spans, by_serial);
    for (size_t i = 0; status == VST_OK && i < kept->count; i++) {
        const vst__kept_span *span = &kept->spans[i];

        if (!VST_RESERVE(kept->open, open + 1, kept->open_capacity))
            return VST_E_NOMEM;
        status = kept_close_from(kept, &open, span->depth, walk);
        if (status == VST_OK)
            status = walk->open(walk->ctx, span);
        kept->open[open++] = span;
    }
    return status == VST_OK ? kept_close_from(kept, &open, 0, walk) : status;
}

void vst__kept_clear(vst__kept *kept)
{
    if (kept->count != 0)
        *kept->room += kept->count;
    kept->count = 0;
}

void vst__kept_free(vst__kept *kept)
{
    vst__kept_clear(kept);
    free(kept->spans);
    free(kept->open);
    *kept = (vst__kept){.spans = NULL};
}
