/* The history of memory: merges the records of all threads by time, and pairs
 * each free with its allocation.
 *
 * Order. The records of one thread stay in the order of its words; those of
 * different threads are ordered by time. Times are taken before a free and
 * after an allocation, so no address should be allocated while it is live. If
 * the clocks of two processors differ slightly, it may look so. The allocation
 * then waits for the free of that address, if another thread has one within a
 * millisecond. If no thread has, the free was lost, and the history makes one
 * (VST_MEMORY_LOST_FREE).
 *
 * A mapping is usable memory, or reserved address space, or parts of each.
 * Reserved space is counted as a group of its own, and changes move ranges
 * between the two.
 *
 * Memory use is bounded by the live blocks, and by a block of words for each
 * thread that runs at that time of the trace. One thread at a time uses a
 * trace. */
#include <stdlib.h>
#include <string.h>

#include "memory/history_state.h"
#include "os/progress.h"

enum { RECORDS_A_STEP = 4096 };

/* ---- one record ---------------------------------------------------------- */

/* If an allocation's address is still live, waits for the address's free, or
 * makes one. */
static vst_status history_free_address(vst__history *self,
                                       vst__merge_stream *from,
                                       vst__history_group *of, bool *waits)
{
    const vst__memory_record *record = &from->cursor.record;
    vst__block_info lost;
    vst_ticks when;
    vst_status status = vst__merge_look_ahead(&self->merge, &when);

    *waits = status == VST_OK && when > from->time;
    if (*waits)
        vst__merge_wait(&self->merge, when, VST_ORDER_ALLOC);
    if (*waits || status != VST_OK)
        return status;
    vst__live_remove(&of->live, record->address, &lost);
    return vst__history_report_free(self, from, of, VST_MEMORY_LOST_FREE,
                                    vst_memory_is_framework(record->kind)
                                        ? VST_MEMORY_FRAMEWORK_FREE
                                        : VST_MEMORY_FREE,
                                    &lost);
}

static vst_status history_allocate(vst__history *self, vst__merge_stream *from,
                                   bool *waits)
{
    const vst__memory_record *record = &from->cursor.record;
    vst__history_group *of = vst__history_group_of(self, record->kind);
    uint32_t flags = record->flags;
    vst_status status = VST_OK;
    vst__block_info block = {
        .address = record->address,
        .size = vst__history_size(record),
        .time_ns = vst__history_time(self, from),
        .stack = record->stack,
    };

    if (record->kind == VST_MEMORY_MMAP)
        return vst__history_map(self, from, &block);
    if (vst__live_find(&of->live, block.address) != NULL) {
        status = history_free_address(self, from, of, waits);
        flags |= VST_MEMORY_LOST_FREE;
    }
    if (status != VST_OK || *waits)
        return status;
    block.serial = ++self->serial;
    status = vst__live_add(&of->live, &block);
    return status == VST_OK ? vst__history_report_alloc(self, from, of, flags,
                                                        record->kind, &block)
                            : status;
}

/* Handles a free. A free of an address that is not live may belong to an
 * allocation of the same moment. */
static vst_status history_release(vst__history *self, vst__merge_stream *from,
                                  bool *waits)
{
    const vst__memory_record *record = &from->cursor.record;
    vst__history_group *of = vst__history_group_of(self, record->kind);
    vst__block_info freed;

    if (vst__live_remove(&of->live, record->address, &freed))
        return vst__history_report_free(self, from, of, 0, record->kind,
                                        &freed);
    if (from->order == VST_ORDER_FREE && self->merge.heap_count > 1) {
        vst__merge_wait(&self->merge, from->time, VST_ORDER_UNKNOWN);
        *waits = true;
        return VST_OK;
    }
    return vst__history_report_unknown(self, from);
}

/* Handles one record. Sets *waits if the record must be handled later. */
static vst_status history_handle(vst__history *self, vst__merge_stream *from,
                                 bool *waits)
{
    *waits = false;
    switch (from->cursor.record.type) {
    case VST_RECORD_ALLOC:
        return history_allocate(self, from, waits);
    case VST_RECORD_FREE:
        return history_release(self, from, waits);
    case VST_RECORD_FREE_RANGE:
        return vst__history_unmap(self, from);
    case VST_RECORD_CHANGE:
        return vst__history_change(self, from);
    case VST_RECORD_COUNTER:
        return vst__history_report_counter(self, from);
    case VST_RECORD_LOSS:
        return vst__history_report_loss(self, from);
    }
    return VST_OK;
}

/* ---- all records --------------------------------------------------------- */

static vst_status history_report_progress(vst__history *self)
{
    vst_trace *trace = self->trace;
    uint64_t words = self->words_before + vst__merge_words(&self->merge);

    return vst__progress_report(
        trace->progress, trace->progress_ctx, &self->next_progress_ns,
        (double)words / (double)(self->words_total + 1));
}

/* Opens a window. Allocations between windows are not seen, so each window
 * begins with nothing live. */
static vst_status open_window(vst__history *self)
{
    for (int i = 0; i < VST_GROUPS; i++) {
        vst__live_clear(&self->groups[i].live);
        self->groups[i].bytes = self->groups[i].count = 0;
    }
    self->in_window = true;
    if (vst__window_is_gone(self->trace, self->window))
        return VST_OK;
    return vst__merge_open(&self->merge, self->trace, self->window);
}

static void close_window(vst__history *self)
{
    vst__merge_close(&self->merge);
    self->words_before += self->window->words;
    self->window++;
    self->in_window = false;
}

vst_status vst__history_step(vst__history *self, bool *done)
{
    vst__merge_stream *first = NULL;
    vst_status status = VST_OK;

    *done = !self->in_window && self->window == self->last_window;
    if (*done)
        return VST_OK;
    if (!self->in_window)
        status = open_window(self);
    for (size_t i = 0; status == VST_OK && i < RECORDS_A_STEP; i++) {
        bool waits;

        first = vst__merge_first(&self->merge);
        if (first == NULL)
            break;
        status = history_handle(self, first, &waits);
        if (status == VST_OK && !waits)
            status = vst__merge_next(&self->merge);
    }
    if (status == VST_OK)
        status = history_report_progress(self);
    if (status == VST_OK && first == NULL)
        close_window(self);
    return status;
}

vst_status vst__history_begin(vst_trace *trace, int window,
                              const vst_memory_sink *sink,
                              vst__history **result)
{
    size_t first, count;
    vst_status status =
        vst__trace_select_windows(trace, window, &first, &count);
    vst__history *self;

    *result = NULL;
    if (status != VST_OK)
        return status;
    self = calloc(1, sizeof *self);
    if (self == NULL)
        return VST_E_NOMEM;
    self->trace = trace;
    self->sink = *sink;
    self->converter = vst__clockmap_converter(&trace->clock);
    vst__history_read_facts(self);
    self->window = trace->windows + first;
    self->last_window = self->window + count;
    for (size_t i = first; i < first + count; i++)
        self->words_total += trace->windows[i].words;
    *result = self;
    return VST_OK;
}

void vst__history_end(vst__history *self)
{
    if (self == NULL)
        return;
    vst__merge_close(&self->merge);
    for (int i = 0; i < VST_GROUPS; i++)
        vst__live_free(&self->groups[i].live);
    free(self);
}

vst_status vst_trace_replay_memory(vst_trace *trace, int window,
                                   const vst_memory_sink *sink,
                                   vst_error *error)
{
    vst__history *self;
    bool done = false;
    vst_status status = vst__history_begin(trace, window, sink, &self);

    vst_error_set(error, VST_OK, 0, 0);
    while (status == VST_OK && !done)
        status = vst__history_step(self, &done);
    vst__history_end(self);
    if (status != VST_OK)
        vst_error_set(error, status,
                      status == VST_E_IO ? trace->source.sys_errno : 0, 0);
    return status;
}
