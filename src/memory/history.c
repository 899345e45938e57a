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

#include "memory/cursor.h"
#include "memory/live.h"

enum {
    PROGRESS_NS = 50000000,
    PROGRESS_RECORDS = 16384,
    BLOCKS_SIZE = 64 * 1024 * 1024, /* of all threads together, about */
    BLOCK_LEAST = 16 * 1024,
    /* How many records waiting allocations may look at, in all. */
    LOOK_AHEAD_MAX = 200000000,
};

/* A framework's blocks lie in blocks of the system's: they are counted apart.
 */
typedef struct group {
    vst__live live;
    uint64_t bytes, count;
} group;

typedef enum order { FREE_FIRST, THEN_ALLOC, UNKNOWN_LAST } order;

/* A thread of the window. */
typedef struct stream {
    vst__memory_cursor cursor;
    vst__block block;
    uint64_t *recent;
    const vst__segment *segments;
    size_t segment_count;
    vst_ticks time; /* when its record is due, and in which order then */
    order order;
    uint32_t thread;
} stream;

typedef struct history {
    vst_trace *trace;
    const vst__window *window;
    const vst_memory_sink *sink;
    vst_time_converter converter;
    group groups[2];
    uint64_t serial;
    double sample_bytes; /* 0: all */

    stream *streams; /* sorted by their first word's time */
    size_t stream_count, opened;
    stream **heap; /* those that have a record, the first one on top */
    size_t heap_count;
    size_t block_size;
    vst_ticks early; /* a thread is opened so much before its first chunk */
    vst_ticks wait_max;

    vst__block ahead; /* for who looks ahead */
    uint64_t ahead_recent[VST_RECENT_PLACES];
    uint64_t looked;

    uint64_t words_total, words_done;
    uint32_t until_progress;
    int64_t next_progress_ns;
} history;

/* ---- the heap ----------------------------------------------------------- */

static bool comes_before(const stream *a, const stream *b)
{
    if (a->time != b->time)
        return a->time < b->time;
    if (a->order != b->order)
        return a->order < b->order;
    return a->thread < b->thread;
}

static void sift_down(history *self, size_t at)
{
    stream *moved = self->heap[at];
    size_t child;

    while ((child = 2 * at + 1) < self->heap_count) {
        if (child + 1 < self->heap_count &&
            comes_before(self->heap[child + 1], self->heap[child]))
            child++;
        if (!comes_before(self->heap[child], moved))
            break;
        self->heap[at] = self->heap[child];
        at = child;
    }
    self->heap[at] = moved;
}

static void push(history *self, stream *added)
{
    size_t at = self->heap_count++;

    while (at != 0 && comes_before(added, self->heap[(at - 1) / 2])) {
        self->heap[at] = self->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    self->heap[at] = added;
}

/* ---- threads ------------------------------------------------------------ */

static void close_stream(history *self, stream *closed)
{
    self->words_done += vst__memory_cursor_words(&closed->cursor);
    vst__block_free(&closed->block);
    free(closed->recent);
    closed->recent = NULL;
}

/* Gets the stream's next record; closes it after the last. */
static vst_status advance(history *self, stream *moved, bool *any)
{
    const vst__memory_record *record = &moved->cursor.record;
    vst_status status = vst__memory_cursor_next(&moved->cursor, any);

    if (status != VST_OK)
        self->trace->block.sys_errno = moved->block.sys_errno;
    if (status != VST_OK || !*any)
        return status;
    if (record->time > moved->time)
        moved->time = record->time;
    moved->order = record->type == VST_RECORD_ALLOC ? THEN_ALLOC : FREE_FIRST;
    return VST_OK;
}

static vst_status open_stream(history *self, stream *opened)
{
    bool any;
    vst_status status;

    vst__block_init(&opened->block, &self->trace->source);
    opened->block.file_size = self->trace->block.file_size;
    opened->block.size = self->block_size;
    opened->recent = malloc(VST_RECENT_PLACES * sizeof *opened->recent);
    if (opened->recent == NULL)
        return VST_E_NOMEM;
    vst__memory_cursor_open(&opened->cursor, self->trace, self->window,
                            opened->segments, opened->segment_count,
                            &opened->block, opened->recent);
    status = advance(self, opened, &any);
    if (status == VST_OK && any)
        push(self, opened);
    else
        close_stream(self, opened);
    return status;
}

/* Opens all threads that may have a record that is due now. */
static vst_status open_due(history *self)
{
    vst_status status = VST_OK;

    while (status == VST_OK && self->opened < self->stream_count) {
        stream *next = &self->streams[self->opened];

        if (self->heap_count != 0 &&
            next->segments->start > self->heap[0]->time + self->early)
            break;
        self->opened++;
        status = open_stream(self, next);
    }
    return status;
}

static int by_start(const void *a, const void *b)
{
    const stream *x = a, *y = b;

    if (x->segments->start != y->segments->start)
        return x->segments->start < y->segments->start ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static vst_status find_streams(history *self)
{
    const vst__window *window = self->window;
    const vst__segment *segments = &self->trace->segments[window->segments];
    size_t count = 0;

    for (size_t i = 0; i < window->segment_count; i++)
        count += i == 0 || segments[i].thread != segments[i - 1].thread;
    self->streams = calloc(count + 1, sizeof *self->streams);
    self->heap = malloc((count + 1) * sizeof(stream *));
    if (self->streams == NULL || self->heap == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < window->segment_count; i++) {
        if (i == 0 || segments[i].thread != segments[i - 1].thread) {
            self->streams[self->stream_count].segments = &segments[i];
            self->streams[self->stream_count++].thread = segments[i].thread;
        }
        self->streams[self->stream_count - 1].segment_count++;
    }
    qsort(self->streams, count, sizeof *self->streams, by_start);
    self->block_size = BLOCKS_SIZE / (count + 1);
    if (self->block_size > VST_BLOCK_SIZE)
        self->block_size = VST_BLOCK_SIZE;
    if (self->block_size < BLOCK_LEAST)
        self->block_size = BLOCK_LEAST;
    self->block_size &= ~(size_t)7;
    return VST_OK;
}

static void free_streams(history *self)
{
    for (size_t i = 0; i < self->stream_count; i++)
        if (self->streams[i].recent != NULL)
            close_stream(self, &self->streams[i]);
    free(self->streams);
    free(self->heap);
    self->streams = NULL;
    self->heap = NULL;
    self->stream_count = self->opened = self->heap_count = 0;
}

/* ---- events ------------------------------------------------------------- */

static bool is_framework(uint32_t kind)
{
    return kind == VST_MEMORY_FRAMEWORK || kind == VST_MEMORY_FRAMEWORK_FREE;
}

static group *group_of(history *self, uint32_t kind)
{
    return &self->groups[is_framework(kind)];
}

static int64_t time_of(history *self, const stream *from)
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
    return self->sink->event != NULL ? self->sink->event(self->sink->ctx, event)
                                     : VST_OK;
}

static vst_status tell_free(history *self, const stream *from, group *of,
                            uint32_t flags, uint32_t kind,
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

static vst_status tell_unknown(history *self, const stream *from)
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
static vst_status unmap(history *self, const stream *from, uint64_t size,
                        uint32_t flags, uint32_t kind, size_t *parts)
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

/* The time of a thread's free of address within a moment from now, 0 if no
 * thread but `waits` has one. */
static vst_status look_ahead(history *self, const stream *waits,
                             uint64_t address, vst_ticks *when)
{
    vst_ticks most = waits->cursor.record.time + self->wait_max;
    vst_status status = VST_OK;

    *when = 0;
    for (size_t i = 0; i < self->heap_count && status == VST_OK; i++) {
        stream *other = self->heap[i];
        vst__memory_cursor ahead = other->cursor;
        bool any = other != waits;

        if (!any || self->looked > LOOK_AHEAD_MAX)
            continue;
        memcpy(self->ahead_recent, other->recent, sizeof self->ahead_recent);
        ahead.recent = self->ahead_recent;
        ahead.block = ahead.stream.block = &self->ahead;
        while (any && ahead.record.time <= most && status == VST_OK) {
            const vst__memory_record *record = &ahead.record;

            if (record->type == VST_RECORD_FREE && record->address == address &&
                is_framework(record->kind) ==
                    is_framework(waits->cursor.record.kind)) {
                vst_ticks due =
                    record->time > other->time ? record->time : other->time;
                if (*when == 0 || due < *when)
                    *when = due;
                break;
            }
            self->looked++;
            status = vst__memory_cursor_next(&ahead, &any);
        }
    }
    return status;
}

/* An address that is live is free once more: waits for that, or makes it up. */
static vst_status make_way(history *self, stream *from, group *of, bool *waits)
{
    const vst__memory_record *record = &from->cursor.record;
    vst__block_info lost;
    vst_ticks when;
    vst_status status = look_ahead(self, from, record->address, &when);

    *waits = status == VST_OK && when > from->time;
    if (*waits) {
        from->time = when;
        from->order = THEN_ALLOC;
    }
    if (*waits || status != VST_OK)
        return status;
    vst__live_remove(&of->live, record->address, &lost);
    return tell_free(self, from, of, VST_MEMORY_LOST_FREE,
                     is_framework(record->kind) ? VST_MEMORY_FRAMEWORK_FREE
                                                : VST_MEMORY_FREE,
                     &lost);
}

static vst_status allocate(history *self, stream *from, bool *waits)
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
static vst_status release(history *self, stream *from, bool *waits)
{
    const vst__memory_record *record = &from->cursor.record;
    group *of = group_of(self, record->kind);
    vst__block_info freed;
    size_t parts = 0;
    vst_status status = VST_OK;

    if (vst__live_remove(&of->live, record->address, &freed))
        return tell_free(self, from, of, 0, record->kind, &freed);
    if (record->kind == VST_MEMORY_MUNMAP)
        status = unmap(self, from, 1, 0, record->kind, &parts);
    if (status != VST_OK || parts != 0)
        return status;
    if (from->order == FREE_FIRST && self->heap_count > 1) {
        from->order = UNKNOWN_LAST;
        *waits = true;
        return VST_OK;
    }
    return tell_unknown(self, from);
}

static vst_status release_range(history *self, stream *from)
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

static vst_status tell_loss(history *self, const stream *from)
{
    const vst__memory_record *record = &from->cursor.record;
    vst_loss loss = {
        .kind = (vst_loss_kind)record->kind,
        .thread = from->thread,
        .start_ns = self->converter.to_ns(self->converter.ctx, record->address),
        .end_ns = self->converter.to_ns(self->converter.ctx, record->time),
        .records = record->size,
    };

    return self->sink->loss != NULL ? self->sink->loss(self->sink->ctx, &loss)
                                    : VST_OK;
}

/* *waits: it is not its turn yet. */
static vst_status handle(history *self, stream *from, bool *waits)
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
    uint64_t words = self->words_done;
    vst_clock_sample now;

    self->until_progress = PROGRESS_RECORDS;
    if (trace->progress == NULL)
        return VST_OK;
    vst_clock_sample_now(&now);
    if (now.monotonic_ns < self->next_progress_ns)
        return VST_OK;
    self->next_progress_ns = now.monotonic_ns + PROGRESS_NS;
    for (size_t i = 0; i < self->heap_count; i++)
        words += vst__memory_cursor_words(&self->heap[i]->cursor);
    return trace->progress(trace->progress_ctx,
                           (double)words / (double)(self->words_total + 1)) == 0
               ? VST_OK
               : VST_E_CANCELLED;
}

static vst_status merge(history *self)
{
    vst_status status = open_due(self);

    while (status == VST_OK && self->heap_count != 0) {
        stream *first = self->heap[0];
        bool waits, any = true;

        status = handle(self, first, &waits);
        if (status == VST_OK && !waits)
            status = advance(self, first, &any);
        if (status != VST_OK)
            break;
        if (!any) {
            close_stream(self, first);
            self->heap[0] = self->heap[--self->heap_count];
        }
        if (self->heap_count != 0)
            sift_down(self, 0);
        if (self->opened != self->stream_count)
            status = open_due(self);
        if (status == VST_OK && --self->until_progress == 0)
            status = tell_progress(self);
    }
    return status;
}

static vst_status replay_window(history *self, const vst__window *window)
{
    vst_status status;

    for (int i = 0; i < 2; i++) {
        vst__live_clear(&self->groups[i].live);
        self->groups[i].bytes = self->groups[i].count = 0;
    }
    self->window = window;
    if (vst__window_is_gone(self->trace, window))
        return VST_OK;
    status = find_streams(self);
    if (status == VST_OK)
        status = merge(self);
    free_streams(self);
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

vst_status vst_trace_replay_memory(vst_trace *trace, int window,
                                   const vst_memory_sink *sink,
                                   vst_error *error)
{
    size_t first, count;
    vst_status status =
        vst__trace_select_windows(trace, window, &first, &count);
    double ticks = trace->header.ticks_per_second;
    history *self;

    vst_error_set(error, VST_OK, 0, 0);
    if (status != VST_OK)
        return vst_error_set(error, status, 0, 0);
    self = calloc(1, sizeof *self);
    if (self == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    self->trace = trace;
    self->sink = sink;
    self->converter = vst__clockmap_converter(&trace->clock);
    self->sample_bytes = sample_bytes_of(trace);
    self->early = (vst_ticks)(ticks / 100);
    self->wait_max = (vst_ticks)(ticks / 1000);
    self->until_progress = PROGRESS_RECORDS;
    vst__block_init(&self->ahead, &trace->source);
    self->ahead.file_size = trace->block.file_size;
    for (size_t i = first; i < first + count; i++)
        self->words_total += trace->windows[i].words;
    for (size_t i = first; status == VST_OK && i < first + count; i++)
        status = replay_window(self, &trace->windows[i]);
    vst__live_free(&self->groups[0].live);
    vst__live_free(&self->groups[1].live);
    vst__block_free(&self->ahead);
    free(self);
    if (status != VST_OK)
        vst_error_set(error, status,
                      status == VST_E_IO ? trace->block.sys_errno : 0, 0);
    return status;
}
