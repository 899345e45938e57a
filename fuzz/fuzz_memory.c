/* Reads the history of a trace's memory, and its summary. Checks each event:
 * live memory has been allocated and not freed, a free has the size of its
 * allocation, and time never goes back. The summary must equal the sum of the
 * events. */
#include <string.h>

#include "base/map64.h"
#include "memory/report.h"
#include "store/reader.h"
#include "target.h"
#include "trace_input.h"

/* Sums of one group: the system's blocks, a framework's blocks, or reserved
 * ranges. */
typedef struct group {
    uint64_t live_bytes;
    uint64_t allocated, bytes;
} group;

typedef struct history {
    group groups[3];
    uint64_t serial, reserved_serial;
    int64_t last_ns;
} history;

static bool is_framework(const vst_memory_event *event)
{
    return event->kind == VST_MEMORY_FRAMEWORK ||
           event->kind == VST_MEMORY_FRAMEWORK_FREE;
}

static void take(history *self, group *of, uint64_t *serial,
                 const vst_memory_event *event)
{
    MUST(event->time_ns >= self->last_ns);
    self->last_ns = event->time_ns;
    if (!(event->flags & VST_MEMORY_FREES)) {
        MUST(event->serial == *serial + 1);
        *serial = event->serial;
        of->live_bytes += event->size;
        of->allocated++;
        of->bytes += event->size;
    } else if (!(event->flags & VST_MEMORY_UNKNOWN)) {
        MUST(event->serial != 0 && event->serial <= *serial);
        MUST(event->allocated_ns <= event->time_ns);
        of->live_bytes -= event->size;
    }
    MUST(event->live_bytes == of->live_bytes);
}

static vst_status take_event(void *ctx, const vst_memory_event *event)
{
    history *self = ctx;

    take(self, &self->groups[is_framework(event)], &self->serial, event);
    return VST_OK;
}

static vst_status take_reserved(void *ctx, const vst_memory_event *event)
{
    history *self = ctx;

    MUST(event->kind == VST_MEMORY_RESERVE);
    take(self, &self->groups[2], &self->reserved_serial, event);
    return VST_OK;
}

static vst_status take_resident(void *ctx, const vst_memory_resident *resident)
{
    history *self = ctx;

    MUST(resident->time_ns >= self->last_ns);
    self->last_ns = resident->time_ns;
    return VST_OK;
}

static vst_status take_loss(void *ctx, const vst_loss *loss)
{
    (void)ctx;
    MUST(loss->end_ns >= loss->start_ns);
    return VST_OK;
}

static void replay_windows(vst_trace *trace)
{
    for (size_t i = 0; i < trace->window_count; i++) {
        history self = {.last_ns = INT64_MIN};
        vst_memory_sink sink = {.ctx = &self,
                                .event = take_event,
                                .loss = take_loss,
                                .reserved = take_reserved,
                                .resident = take_resident};

        MUST(vst_trace_replay_memory(trace, (int)trace->windows[i].number,
                                     &sink, NULL) == VST_OK);
    }
}

static void check_stacks(const vst_trace *trace)
{
    for (size_t i = 0; i < trace->stack_count; i++) {
        const vst__stack_entry *entry = &trace->stacks[i];

        MUST(vst_trace_stack(trace, entry->id) == &entry->stack);
        MUST(entry->stack.parent < entry->id);
    }
}

static void check_nodes(const vst_memory_summary *s)
{
    for (size_t i = 0; i < s->node_count; i++) {
        MUST(i == 0 || s->nodes[i].parent < i);
        MUST(i == 0 || s->nodes[i].frame < s->frame_count);
    }
    for (size_t i = 0; i < s->frame_count; i++)
        MUST(s->frames[i].file_skip <= s->frames[i].file_len);
    for (size_t i = 0; i < s->line_count; i++)
        MUST(s->lines[i].frame < s->frame_count);
    for (size_t i = 0; i < s->stack_count; i++)
        MUST(s->node_of_stack[i] == UINT32_MAX ||
             s->node_of_stack[i] < s->node_count);
}

static void check_summary(const vst_memory_summary *s)
{
    const vst_memory_amount *total = &s->views[VST_MEMORY_TOTAL];

    check_nodes(s);
    MUST(s->point_count <= VST_MEMORY_POINTS_MAX);
    MUST(s->is_sampled ||
         s->nodes[0].inclusive[VST_MEMORY_TOTAL].count == total->count);
    for (unsigned i = 0; i < VST_MEMORY_VIEWS && !s->is_sampled; i++) {
        MUST(s->views[i].count >= 0 && s->views[i].count <= total->count);
        MUST(s->views[i].bytes >= 0 && s->views[i].bytes <= total->bytes);
    }
}

static void summarize(vst_trace *trace, const trace_input *input)
{
    vst_memory_report_options options = {.window = input_window(input),
                                         .temporary = input->choices[1]};
    vst_memory_summary *s;

    if (!vst_trace_has_memory(trace))
        return;
    MUST(vst__trace_summarize_memory(trace, &options, &s, NULL) == VST_OK);
    check_summary(s);
    vst__memory_summary_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    vst_trace *trace = NULL;
    trace_input input;

    if (input_expand(&input, bytes, size))
        trace = input_open(&input);
    if (trace != NULL) {
        check_stacks(trace);
        replay_windows(trace);
        summarize(trace, &input);
    }
    vst_trace_close(trace);
    input_free(&input);
    return 0;
}
