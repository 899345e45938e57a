/* The history of memory: every thread's records merged by time, each free with
 * the allocation that it ends.
 *
 * Order. Within a thread that of its words; between threads that of their
 * times, which are taken before a free and after an allocation, so that no
 * address is given out while it is live. Where the clocks of two processors
 * differ by a little it seems to be: then an allocation at an address that is
 * live waits for its free, if another thread has it within a millisecond. If
 * none has it, it was lost, and one is made up (VST_MEMORY_LOST_FREE).
 *
 * Memory is bounded by what is live, and by a block of words for each thread
 * that runs at that time of the trace. One thread at a time uses a trace. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory/history.h"
#include "memory/live.h"
#include "memory/merge.h"

enum { PROGRESS_NS = 50000000, RECORDS_A_STEP = 4096 };

/* A framework's blocks lie in blocks of the system's: they are counted apart.
 */
typedef struct group {
    vst__live live;
    uint64_t bytes, count;
} group;

typedef struct vst__history {
    vst_trace *trace;
    vst_memory_sink sink;
    vst_time_converter converter;
    vst__merge merge;
    group groups[2];
    uint64_t serial;
    double sample_bytes;                /* 0: all */
    uint64_t words_total, words_before; /* the windows that are done */
    int64_t next_progress_ns;
    const vst__window *window, *last_window; /* behind the last one */
    bool in_window;
} history;

/* ---- events ------------------------------------------------------------- */

static bool is_framework(uint32_t kind)
{
    return kind == VST_MEMORY_FRAMEWORK || kind == VST_MEMORY_FRAMEWORK_FREE;
}

static group *group_of(history *self, uint32_t kind)
{
    return &self->groups[is_framework(kind)];
}

static int64_t time_of(history *self, const vst__merge_stream *from)
{
    return self->converter.to_ns(self->converter.ctx, from->time);
}

/* What is chosen once in so many bytes, by chance, stands for those that were
 * not. */
static double weight_of(const history *self, uint64_t size)
{
    double chance;

    if (self->sample_bytes <= 0)
        return 1;
    chance = -expm1(-(double)size / self->sample_bytes);
    return chance > 0 ? 1 / chance : 1;
}

static vst_status tell(history *self, const group *of, vst_memory_event *event)
{
    event->live_bytes = of->bytes;
    event->live_count = of->count;
    event->weight = weight_of(self, event->size);
    return self->sink.event != NULL ? self->sink.event(self->sink.ctx, event)
                                    : VST_OK;
}

static vst_status tell_free(history *self, const vst__merge_stream *from,
                            group *of, uint32_t flags, uint32_t kind,
                            const vst__block_info *freed)
{
    of->bytes -= freed->size;
    of->count = of->live.slot_used + of->live.map_count;
    return tell(self, of,
                &(vst_memory_event){
                    .time_ns = time_of(self, from),
                    .thread = from->thread,
                    .kind = (vst_memory_kind)kind,
                    .flags = VST_MEMORY_FREES | flags,
                    .stack = freed->stack,
                    .address = freed->address,
                    .size = freed->size,
                    .serial = freed->serial,
                    .allocated_ns = freed->time_ns,
                });
}

static vst_status tell_unknown(history *self, const vst__merge_stream *from)
{
    const vst__memory_record *record = &from->cursor.record;

    return tell(self, group_of(self, record->kind),
                &(vst_memory_event){
                    .time_ns = time_of(self, from),
                    .thread = from->thread,
                    .kind = (vst_memory_kind)record->kind,
                    .flags = VST_MEMORY_FREES | VST_MEMORY_UNKNOWN,
                    .address = record->address,
                    .size = record->size,
                });
}

/* Every part of a mapping that lies in the range; how many there were. */
static vst_status unmap(history *self, const vst__merge_stream *from,
                        uint64_t size, uint32_t flags, uint32_t kind,
                        size_t *parts)
{
    const vst__memory_record *record = &from->cursor.record;
    group *of = group_of(self, record->kind);
    vst__block_info part;
    bool found;

    for (*parts = 0;; ++*parts) {
        vst_status status =
            vst__live_unmap(&of->live, record->address, size, &part, &found);

        if (status == VST_OK && found)
            status = tell_free(self, from, of, flags, kind, &part);
        if (status != VST_OK || !found)
            return status;
    }
}

/* ---- one record --------------------------------------------------------- */

/* An address that is live is free once more: waits for that, or makes it up. */
static vst_status make_way(history *self, vst__merge_stream *from, group *of,
                           bool *waits)
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
    return tell_free(self, from, of, VST_MEMORY_LOST_FREE,
                     is_framework(record->kind) ? VST_MEMORY_FRAMEWORK_FREE
                                                : VST_MEMORY_FREE,
                     &lost);
}

static vst_status allocate(history *self, vst__merge_stream *from, bool *waits)
{
    const vst__memory_record *record = &from->cursor.record;
    group *of = group_of(self, record->kind);
    bool is_map = record->kind == VST_MEMORY_MMAP;
    uint32_t flags = record->flags;
    vst_status status = VST_OK;
    vst__block_info block = {
        .address = record->address,
        .size = record->size,
        .time_ns = time_of(self, from),
        .stack = record->stack,
        .kind = record->kind,
        .flags = record->flags,
    };

    if (block.size > UINT64_MAX - block.address) /* no machine's */
        block.size = UINT64_MAX - block.address;
    if (is_map && block.size == 0)
        return VST_OK;
    if (is_map) {
        size_t lost;
        status = unmap(self, from, block.size, VST_MEMORY_LOST_FREE,
                       VST_MEMORY_MUNMAP, &lost);
        flags |= lost != 0 ? VST_MEMORY_LOST_FREE : 0;
    } else if (vst__live_find(&of->live, block.address) != NULL) {
        status = make_way(self, from, of, waits);
        flags |= VST_MEMORY_LOST_FREE;
    }
    if (status != VST_OK || *waits)
        return status;
    block.serial = ++self->serial;
    status = is_map ? vst__live_map(&of->live, &block)
                    : vst__live_add(&of->live, &block);
    if (status != VST_OK)
        return status;
    of->bytes += block.size;
    of->count = of->live.slot_used + of->live.map_count;
    return tell(self, of,
                &(vst_memory_event){
                    .time_ns = block.time_ns,
                    .thread = from->thread,
                    .kind = (vst_memory_kind)record->kind,
                    .flags = flags,
                    .stack = block.stack,
                    .address = block.address,
                    .size = block.size,
                    .serial = block.serial,
                });
}

/* A free of what is not live may belong to an allocation of the same moment. */
static vst_status release(history *self, vst__merge_stream *from, bool *waits)
{
    const vst__memory_record *record = &from->cursor.record;
    group *of = group_of(self, record->kind);
    vst__block_info freed;

    if (vst__live_remove(&of->live, record->address, &freed))
        return tell_free(self, from, of, 0, record->kind, &freed);
    if (from->order == VST_ORDER_FREE && self->merge.heap_count > 1) {
        vst__merge_wait(&self->merge, from->time, VST_ORDER_UNKNOWN);
        *waits = true;
        return VST_OK;
    }
    return tell_unknown(self, from);
}

static vst_status release_range(history *self, vst__merge_stream *from)
{
    const vst__memory_record *record = &from->cursor.record;
    uint64_t size = record->size;
    size_t parts;
    vst_status status;

    if (size > UINT64_MAX - record->address)
        size = UINT64_MAX - record->address;
    status = unmap(self, from, size, 0, record->kind, &parts);
    return status == VST_OK && parts == 0 ? tell_unknown(self, from) : status;
}

static vst_status tell_loss(history *self, const vst__merge_stream *from)
{
    const vst__memory_record *record = &from->cursor.record;
    vst_loss loss = {
        .kind = (vst_loss_kind)record->kind,
        .thread = from->thread,
        .start_ns = self->converter.to_ns(self->converter.ctx, record->address),
        .end_ns = self->converter.to_ns(self->converter.ctx, record->time),
        .records = record->size,
    };

    return self->sink.loss != NULL ? self->sink.loss(self->sink.ctx, &loss)
                                   : VST_OK;
}

/* *waits: it is not its turn yet. */
static vst_status handle(history *self, vst__merge_stream *from, bool *waits)
{
    *waits = false;
    switch (from->cursor.record.type) {
    case VST_RECORD_ALLOC:
        return allocate(self, from, waits);
    case VST_RECORD_FREE:
        return release(self, from, waits);
    case VST_RECORD_FREE_RANGE:
        return release_range(self, from);
    case VST_RECORD_LOSS:
        return tell_loss(self, from);
    }
    return VST_OK;
}

/* ---- all of them -------------------------------------------------------- */

static vst_status tell_progress(history *self)
{
    vst_trace *trace = self->trace;
    uint64_t words = self->words_before + vst__merge_words(&self->merge);
    vst_clock_sample now;

    if (trace->progress == NULL)
        return VST_OK;
    vst_clock_sample_now(&now);
    if (now.monotonic_ns < self->next_progress_ns)
        return VST_OK;
    self->next_progress_ns = now.monotonic_ns + PROGRESS_NS;
    return trace->progress(trace->progress_ctx,
                           (double)words / (double)(self->words_total + 1)) == 0
               ? VST_OK
               : VST_E_CANCELLED;
}

/* Between windows blocks come and go unseen: each begins with nothing. */
static vst_status open_window(history *self)
{
    for (int i = 0; i < 2; i++) {
        vst__live_clear(&self->groups[i].live);
        self->groups[i].bytes = self->groups[i].count = 0;
    }
    self->in_window = true;
    if (vst__window_is_gone(self->trace, self->window))
        return VST_OK;
    return vst__merge_open(&self->merge, self->trace, self->window);
}

static void close_window(history *self)
{
    vst__merge_close(&self->merge);
    self->words_before += self->window->words;
    self->window++;
    self->in_window = false;
}

vst_status vst__history_step(history *self, bool *done)
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
        status = handle(self, first, &waits);
        if (status == VST_OK && !waits)
            status = vst__merge_next(&self->merge);
    }
    if (status == VST_OK)
        status = tell_progress(self);
    if (status == VST_OK && first == NULL)
        close_window(self);
    return status;
}

/* vestige.memory: {"sample_bytes": N, ...} */
static double sample_bytes_of(const vst_trace *trace)
{
    const char *json = vst_trace_metadata(trace, "vestige.memory");
    const char *key = json != NULL ? strstr(json, "\"sample_bytes\"") : NULL;
    const char *colon = key != NULL ? strchr(key, ':') : NULL;
    double value = colon != NULL ? strtod(colon + 1, NULL) : 0;

    return value > 0 && value < 1e18 ? value : 0;
}

vst_status vst__history_begin(vst_trace *trace, int window,
                              const vst_memory_sink *sink, history **result)
{
    size_t first, count;
    vst_status status =
        vst__trace_select_windows(trace, window, &first, &count);
    history *self;

    *result = NULL;
    if (status != VST_OK)
        return status;
    self = calloc(1, sizeof *self);
    if (self == NULL)
        return VST_E_NOMEM;
    self->trace = trace;
    self->sink = *sink;
    self->converter = vst__clockmap_converter(&trace->clock);
    self->sample_bytes = sample_bytes_of(trace);
    self->window = trace->windows + first;
    self->last_window = self->window + count;
    for (size_t i = first; i < first + count; i++)
        self->words_total += trace->windows[i].words;
    *result = self;
    return VST_OK;
}

void vst__history_end(history *self)
{
    if (self == NULL)
        return;
    vst__merge_close(&self->merge);
    vst__live_free(&self->groups[0].live);
    vst__live_free(&self->groups[1].live);
    free(self);
}

vst_status vst_trace_replay_memory(vst_trace *trace, int window,
                                   const vst_memory_sink *sink,
                                   vst_error *error)
{
    history *self;
    bool done = false;
    vst_status status = vst__history_begin(trace, window, sink, &self);

    vst_error_set(error, VST_OK, 0, 0);
    while (status == VST_OK && !done)
        status = vst__history_step(self, &done);
    vst__history_end(self);
    if (status != VST_OK)
        vst_error_set(error, status,
                      status == VST_E_IO ? trace->block.sys_errno : 0, 0);
    return status;
}
