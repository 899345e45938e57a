/* Facts about an open trace as a whole. One thread at a time. */
#include <string.h>

#include "store/reader.h"

/* Returns whether a finished file is shorter or longer than its header says. */
static bool has_wrong_size(const vst_trace *trace)
{
    return trace->header.state == VST_FILE_FINISHED &&
           trace->valid_end != trace->header.size;
}

bool vst__trace_has_switches(const vst_trace *trace)
{
    for (size_t i = 0; i < trace->window_count; i++)
        if (trace->windows[i].switches != 0)
            return true;
    return false;
}

static bool is_true(const vst_trace *trace, const char *key)
{
    const char *json = vst_trace_metadata(trace, key);

    return json != NULL && strcmp(json, "true") == 0;
}

bool vst__trace_has_gil_waits(const vst_trace *trace)
{
    return is_true(trace, VST_WAITS_METADATA);
}

bool vst__trace_has_object_waits(const vst_trace *trace)
{
    return is_true(trace, VST_OBJECT_WAITS_METADATA);
}

/* Returns whether the file is stopped, complete, and has no open window. */
static bool is_clean(const vst_trace *trace)
{
    const vst_file_header *header = &trace->header;

    for (size_t i = 0; i < trace->window_count; i++)
        if (!trace->windows[i].closed)
            return false;
    return header->state != VST_FILE_RECORDING && !trace->damaged &&
           !has_wrong_size(trace);
}

void vst_trace_get_info(const vst_trace *trace, vst_trace_info *info)
{
    /* The conversion remembers a piece of the map, which changes no result. */
    vst__clockmap *clock = (vst__clockmap *)(uintptr_t)&trace->clock;
    const vst_file_header *header = &trace->header;

    memset(info, 0, sizeof *info);
    info->version = header->version;
    info->pid = header->pid;
    memcpy(info->trace_id, header->trace_id, sizeof info->trace_id);
    info->clean = is_clean(trace);
    if (trace->damaged)
        info->damaged_at = trace->damaged_at;
    else if (has_wrong_size(trace))
        info->damaged_at = trace->valid_end;
    info->windows = (uint32_t)trace->window_count;
    info->lost = header->lost;
    info->dropped = header->dropped;
    info->min_duration_ns = header->min_duration_ns;
    info->left_out = header->left_out;
    info->bytes = trace->block.file_size;
    info->packed = trace->source.packed != NULL;
    if (info->packed)
        info->packed_bytes = trace->source.file_size;
    info->clock = header->clock_kind <= VST_CLOCK_CNTVCT
                      ? (vst_clock_kind)header->clock_kind
                      : VST_CLOCK_MONOTONIC;
    info->switches = vst__trace_has_switches(trace);
    info->gil_waits = vst__trace_has_gil_waits(trace);
    info->object_waits = vst__trace_has_object_waits(trace);
    for (size_t i = 0; i < trace->thread_count; i++) {
        info->words += trace->threads[i].words;
        info->threads += trace->threads[i].words != 0;
    }
    info->start_ns = info->end_ns =
        vst__clockmap_to_ns(clock, header->start.ticks);
    info->complete_ns = info->start_ns;
    if (trace->window_count != 0) {
        size_t at, count;
        const vst__window *first, *last;
        vst_ticks complete;
        vst__trace_shown_windows(trace, &at, &count);
        first = trace->windows + at;
        last = first + count - 1;
        complete = 0;

        for (const vst__window *w = first; w <= last; w++)
            if (w->complete > complete)
                complete = w->complete;
        if (complete < first->first)
            complete = first->first;
        info->start_ns = vst__clockmap_to_ns(clock, first->first);
        info->complete_ns = vst__clockmap_to_ns(clock, complete);
        info->end_ns = vst__clockmap_to_ns(clock, last->last);
    }
}
