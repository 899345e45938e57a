/* The stretches of a trace, through which walks go. One thread at a time. */
#include "base/grow.h"
#include "view/walk.h"

static vst_status stretches_add(vst__stretch **stretches, size_t *count,
                                size_t *capacity, const vst__stretch *stretch)
{
    vst__stretch *grown =
        vst__grow(*stretches, capacity, *count + 1, sizeof *grown);

    if (grown == NULL)
        return VST_E_NOMEM;
    *stretches = grown;
    grown[(*count)++] = *stretch;
    return VST_OK;
}

vst_status vst__stretches_find(const vst_trace *trace, vst__stretch **stretches,
                               size_t *stretch_count)
{
    size_t capacity = 0, first, count;
    vst_status status =
        vst__trace_select_windows(trace, VST_WINDOW_ALL, &first, &count);

    *stretches = NULL;
    *stretch_count = 0;
    for (size_t i = first; status == VST_OK && i < first + count; i++) {
        const vst__window *window = &trace->windows[i];
        const vst__segment *segments = &trace->segments[window->segments];
        size_t left = window->segment_count;

        if (vst__window_is_gone(trace, window))
            left = 0;
        while (status == VST_OK && left != 0) {
            vst__stretch stretch = {.window = window,
                                    .segments = segments,
                                    .thread = segments->thread};
            do
                stretch.words += segments[stretch.segment_count++].words;
            while (stretch.segment_count < left &&
                   segments[stretch.segment_count].thread == stretch.thread);
            status =
                stretches_add(stretches, stretch_count, &capacity, &stretch);
            segments += stretch.segment_count;
            left -= stretch.segment_count;
        }
    }
    return status;
}
