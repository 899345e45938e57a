/* Finds which words of the file belong to which thread of which window. For a
 * sealed chunk of one thread, the header is enough. The words are read only
 * where the header is not enough: in chunks that were never sealed, and in
 * chunks that several threads wrote one after the other. So opening a trace
 * costs one read for each chunk, not for each record. One thread at a time. */
#include "store/live.h"

#include <stdlib.h>

#include "base/grow.h"
#include "os/os.h"

void vst__segment_open(const vst__segment *segment, vst__block *block,
                       vst__stream *stream)
{
    vst__stream_open(stream, block, segment->offset, segment->words,
                     segment->start);
    if (segment->guarded)
        vst__stream_guard(stream, segment->header, segment->sequence);
    if (segment->may_change)
        vst__stream_read_twice(stream);
}

static vst_status add_segment(vst_trace *trace, const vst__segment *segment)
{
    vst__segment *segments;

    if (segment->words == 0)
        return VST_OK;
    if (!VST_RESERVE(trace->segments, trace->segment_count + 1,
                     trace->segment_capacity))
        return VST_E_NOMEM;
    segments = &trace->segments[trace->segment_count++];
    *segments = *segment;
    if (segments->checkpoint > segments->words)
        segments->checkpoint = (uint32_t)segments->words;
    return VST_OK;
}

static int in_reading_order(const void *a, const void *b)
{
    const vst__segment *x = a, *y = b;

    if (x->window != y->window)
        return x->window < y->window ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* In a growing trace, the segment may be there already, and shorter. */
static vst_status put_segment(vst_trace *trace, const vst__segment *segment)
{
    vst__segment *there = NULL;

    if (trace->sorted != 0)
        there = bsearch(segment, trace->segments, trace->sorted,
                        sizeof *segment, in_reading_order);
    if (there == NULL)
        return add_segment(trace, segment);
    *there = *segment;
    if (there->checkpoint > there->words)
        there->checkpoint = (uint32_t)there->words;
    return VST_OK;
}

/* Notes the checkpoint with which the segment begins, if it does. In a hostile
 * file, the payload may have any value. */
static void note_checkpoint(vst__segment *segment, const uint64_t *word,
                            uint64_t words)
{
    if (vst_word_kind(*word) != VST_ESCAPE ||
        vst_word_escape_type(*word) != VST_ESCAPE_CHECKPOINT ||
        vst_word_escape_words(*word) < 3 || words < 4)
        return;
    words -= 4;
    segment->checkpoint = 4 + (uint32_t)(word[1] < words ? word[1] : words);
    segment->records = word[3];
}

static bool is_handover(uint64_t word)
{
    return vst_word_kind(word) == VST_ESCAPE &&
           vst_word_escape_type(word) == VST_ESCAPE_SEGMENT &&
           vst_word_escape_words(word) >= 2;
}

/* The end of the walked words that cannot be taken back. */
typedef struct stable_end {
    uint64_t words;
    vst_ticks last;
} stable_end;

/* Walks the words behind those of `segment`, up to `end` in the file, and adds
 * each segment that is followed by another. Leaves the last segment in
 * `segment`, and its words that stay in `stays`. */
static vst_status segments_scan(vst_trace *trace, vst__segment *segment,
                                uint64_t end, bool may_change,
                                stable_end *stays)
{
    uint64_t from = segment->offset + segment->words * sizeof(uint64_t);
    vst__stream stream;
    const uint64_t *word;

    if (segment->words == 0)
        segment->last = segment->start;
    *stays = (stable_end){segment->words, segment->last};
    vst__stream_open(&stream, &trace->block, from,
                     (end - from) / sizeof(uint64_t), segment->last);
    if (may_change)
        vst__stream_read_twice(&stream);
    if (trace->growing && segment->guarded)
        vst__stream_guard(&stream, segment->header, segment->sequence);
    while (vst__stream_fill(&stream)) {
        while ((word = vst__stream_next(&stream)) != NULL) {
            uint64_t at = end - vst__stream_remaining(&stream) * sizeof *word;

            if (is_handover(*word)) {
                vst_status status = put_segment(trace, segment);
                if (status != VST_OK)
                    return status;
                segment->offset = at;
                segment->words = 0;
                segment->checkpoint = 0;
                segment->records = 0;
                segment->thread = (uint32_t)word[1];
                segment->start = segment->last = stream.now = word[2];
                *stays = (stable_end){0, segment->last};
                continue;
            }
            if (segment->words == 0)
                note_checkpoint(segment, word, UINT32_MAX);
            segment->words = (at - segment->offset) / sizeof *word;
            segment->last = stream.now;
            if (vst_word_kind(*word) != VST_ENTER)
                *stays = (stable_end){segment->words, segment->last};
        }
    }
    return stream.status;
}

/* Walks all words like scan, and adds the last segment too. */
static vst_status scan_all(vst_trace *trace, vst__segment *segment,
                           uint64_t words)
{
    uint64_t end = segment->offset + words * sizeof(uint64_t);
    stable_end stays;
    vst_status status =
        segments_scan(trace, segment, end, segment->may_change, &stays);

    return status == VST_OK ? add_segment(trace, segment) : status;
}

static uint64_t capacity_of(const vst_chunk_header *chunk, uint64_t room)
{
    return (room - sizeof *chunk) / sizeof(uint64_t);
}

/* Returns whether the chunk is sealed. The checksum does not cover `used`, so
 * only possible values are believed. */
static bool is_sealed(const vst_chunk_header *chunk, uint64_t capacity)
{
    return chunk->used != 0 && chunk->used <= capacity;
}

vst_status vst__segments_measure(vst_trace *trace, vst_chunk_header *chunk,
                                 uint64_t offset, uint64_t room)
{
    uint64_t capacity = capacity_of(chunk, room);
    vst__stream stream;
    const uint64_t *word;

    if (is_sealed(chunk, capacity))
        return VST_OK;
    chunk->segments = 1;
    vst__stream_open(&stream, &trace->block, offset + sizeof *chunk, capacity,
                     0);
    while (vst__stream_fill(&stream))
        while ((word = vst__stream_next(&stream)) != NULL)
            chunk->segments += is_handover(*word);
    chunk->used = (uint32_t)(capacity - stream.left);
    return stream.status;
}

/* Adds a sealed chunk of one thread; only its first words are read, for a
 * checkpoint. */
static vst_status add_sealed(vst_trace *trace, vst__segment *segment)
{
    uint64_t words[4];
    size_t got;
    vst_status status = vst__source_read(&trace->source, words, sizeof words,
                                         segment->offset, &got);

    if (status != VST_OK) {
        trace->block.sys_errno = trace->source.sys_errno;
        return status;
    }
    if (got == sizeof words)
        note_checkpoint(segment, words, segment->words);
    return add_segment(trace, segment);
}

static vst__segment first_segment(const vst_trace *trace,
                                  const vst_chunk_header *chunk,
                                  uint64_t offset)
{
    return (vst__segment){
        .offset = offset + sizeof *chunk,
        .start = chunk->sample.ticks,
        .thread = chunk->thread,
        .window = chunk->window,
        .header = offset,
        .sequence = chunk->sequence,
        .guarded =
            trace->slot_size != 0 && trace->header.state != VST_FILE_FINISHED,
    };
}

vst_status vst__segments_add(vst_trace *trace, const vst_chunk_header *chunk,
                             uint64_t offset, uint64_t room)
{
    uint64_t capacity = capacity_of(chunk, room);
    vst__segment segment = first_segment(trace, chunk, offset);

    if (!is_sealed(chunk, capacity)) {
        segment.may_change = vst__trace_is_live(trace);
        return scan_all(trace, &segment, capacity);
    }
    if (chunk->segments != 1)
        return scan_all(trace, &segment, chunk->used);
    segment.words = chunk->used;
    return add_sealed(trace, &segment);
}

/* Leaves words that may still change for the next look: ENTERs of short calls
 * may be taken back, and a checkpoint must be read whole. */
static void leave_changeable(const vst_trace *trace, vst__segment *segment,
                             const stable_end *stays)
{
    if (trace->header.min_duration_ns != 0) {
        segment->words = stays->words;
        segment->last = stays->last;
    }
    if (segment->words < segment->checkpoint)
        segment->words = 0;
}

vst_status vst__segments_grow(vst_trace *trace, const vst_chunk_header *chunk,
                              uint64_t room, vst__known_chunk *known)
{
    uint64_t capacity = capacity_of(chunk, room);
    bool sealed = is_sealed(chunk, capacity);
    uint64_t words = sealed ? chunk->used : capacity;
    vst__segment *tail = &known->tail;
    stable_end stays;
    vst_status status;

    if (tail->offset == 0)
        *tail = first_segment(trace, chunk, known->offset);
    if (sealed && chunk->segments == 1) {
        bool is_new = tail->words == 0;

        known->sealed = true;
        tail->words = words;
        tail->last = 0;
        return is_new ? add_sealed(trace, tail) : put_segment(trace, tail);
    }
    status = segments_scan(
        trace, tail, known->offset + sizeof *chunk + words * sizeof(uint64_t),
        !sealed && vst__trace_is_live(trace), &stays);
    if (!sealed)
        leave_changeable(trace, tail, &stays);
    known->sealed = sealed;
    return status == VST_OK ? put_segment(trace, tail) : status;
}

/* Reads a segment's stream to its end, to find the time of its last word. */
static vst_status find_last(vst_trace *trace, vst__segment *segment)
{
    vst__stream stream;

    if (segment->last != 0)
        return VST_OK;
    vst__segment_open(segment, &trace->block, &stream);
    while (vst__stream_fill(&stream))
        while (vst__stream_next(&stream) != NULL)
            continue;
    segment->last = stream.now;
    return stream.status;
}

/* Notes what a window has lost: where the kept records begin, and from when on
 * nothing is missing. `records` is how many words the thread had recorded
 * before the segment, as far as they are there. */
static void note_dropped(vst__window *window, const vst__segment *segment,
                         uint64_t *records)
{
    /* a run without words of its own only says that the thread waits in a
     * call */
    if (segment->checkpoint != 0 && segment->records != *records &&
        segment->words != segment->checkpoint &&
        segment->start > window->complete)
        window->complete = segment->start;
    *records = segment->records + segment->words - segment->checkpoint;
}

/* Gives a window its segments, and its times if the file does not say them. */
static vst_status finish_window(vst_trace *trace, vst__window *window)
{
    uint64_t records = 0;
    vst_ticks oldest = UINT64_MAX;

    for (size_t i = 0; i < window->segment_count; i++) {
        vst__segment *segment = &trace->segments[window->segments + i];
        bool ends_thread = i + 1 == window->segment_count ||
                           segment[1].thread != segment->thread;

        window->words += segment->words;
        if (segment->start < oldest)
            oldest = segment->start;
        note_dropped(window, segment, &records);
        if (ends_thread)
            records = 0;
        if (!window->closed && ends_thread) {
            vst_status status = find_last(trace, segment);
            if (status != VST_OK)
                return status;
            if (segment->last > window->last)
                window->last = segment->last;
        }
    }
    if (window->first == 0 && oldest != UINT64_MAX)
        window->first = oldest;
    window->began = window->kept = window->first;
    if (trace->header.dropped != 0 && oldest != UINT64_MAX &&
        oldest > window->first)
        window->kept = window->first = oldest;
    if (window->last < window->first)
        window->last = window->first;
    window->ended = window->last;
    if (window->complete < window->kept)
        window->complete = window->kept;
    return VST_OK;
}

vst_status vst__segments_last(vst_trace *trace, vst_ticks *last)
{
    size_t i = trace->window_count;
    const vst__window *window;

    *last = 0;
    while (i != 0 && trace->windows[i - 1].segment_count == 0)
        i--;
    if (i == 0)
        return VST_OK;
    window = &trace->windows[i - 1];
    for (size_t j = 0; j < window->segment_count; j++) {
        vst__segment *segment = &trace->segments[window->segments + j];
        bool ends_thread = j + 1 == window->segment_count ||
                           segment[1].thread != segment->thread;
        vst_status status = ends_thread ? find_last(trace, segment) : VST_OK;

        if (status != VST_OK)
            return status;
        if (ends_thread && segment->last > *last)
            *last = segment->last;
    }
    return VST_OK;
}

/* Adds windows and threads that have records but lost their own entry. */
static vst_status note_owners(vst_trace *trace)
{
    for (size_t i = 0; i < trace->segment_count; i++) {
        const vst__segment *segment = &trace->segments[i];
        bool first_of_window = i == 0 || segment->window != segment[-1].window;
        vst_status status = VST_OK;

        if (first_of_window)
            status = vst__entries_note_window(
                trace, &(vst__window){.number = segment->window});
        if (status == VST_OK && segment->thread != VST_THREAD_SWITCHES &&
            (first_of_window || segment->thread != segment[-1].thread))
            status = vst__entries_note_thread(trace, segment->thread);
        if (status != VST_OK)
            return status;
    }
    return VST_OK;
}

/* Makes arrays even for a trace without segments: readers keep pointers to the
 * first item and behind the last, which NULL does not allow. */
static vst_status make_arrays(vst_trace *trace)
{
    trace->segments = vst__grow(trace->segments, &trace->segment_capacity, 1,
                                sizeof *trace->segments);
    trace->windows = vst__grow(trace->windows, &trace->window_capacity, 1,
                               sizeof *trace->windows);
    return trace->segments != NULL && trace->windows != NULL ? VST_OK
                                                             : VST_E_NOMEM;
}

vst_status vst__segments_finish(vst_trace *trace)
{
    vst_status status;
    size_t next = 0;

    if (trace->segment_count > 1 && trace->sorted != trace->segment_count)
        qsort(trace->segments, trace->segment_count, sizeof *trace->segments,
              in_reading_order);
    if (trace->growing)
        trace->sorted = trace->segment_count;
    status = make_arrays(trace);
    if (status == VST_OK)
        status = note_owners(trace);
    if (status == VST_OK)
        status = vst__entries_finish(trace);
    for (size_t i = 0; status == VST_OK && i < trace->window_count; i++) {
        vst__window *window = &trace->windows[i];

        window->segments = next;
        while (next < trace->segment_count &&
               trace->segments[next].window == window->number &&
               trace->segments[next].thread != VST_THREAD_SWITCHES)
            next++;
        window->segment_count = next - window->segments;
        /* VST_THREAD_SWITCHES is the largest number, so these are sorted behind
         * the others */
        while (next < trace->segment_count &&
               trace->segments[next].window == window->number)
            next++;
        window->switches = next - window->segments - window->segment_count;
        status = finish_window(trace, window);
    }
    for (size_t i = 0; i < trace->segment_count; i++) {
        const vst__segment *segment = &trace->segments[i];
        /* we own the threads; only callers see them as const */
        vst_trace_thread *thread =
            (vst_trace_thread *)(uintptr_t)vst_trace_thread_find(
                trace, segment->thread);

        if (thread != NULL && segment->thread != VST_THREAD_SWITCHES)
            thread->words += segment->words - segment->checkpoint;
    }
    return status;
}

void vst__trace_shown_windows(const vst_trace *trace, size_t *first,
                              size_t *count)
{
    size_t end = trace->window_count;

    *first = 0;
    while (*first + 1 < end &&
           vst__window_is_gone(trace, &trace->windows[*first]))
        ++*first;
    while (end > *first + 1 && trace->windows[end - 1].kept > trace->until)
        end--;
    *count = end - *first;
}

vst_status vst__trace_select_windows(const vst_trace *trace, int window,
                                     size_t *first, size_t *count)
{
    *first = *count = 0;
    if (window == VST_WINDOW_ALL) {
        vst__trace_shown_windows(trace, first, count);
        return VST_OK;
    }
    if (window == VST_WINDOW_LAST) {
        *count = trace->window_count != 0;
        *first = trace->window_count - *count;
        return VST_OK;
    }
    if (window <= VST_WINDOW_SINCE(0)) {
        uint32_t since = (uint32_t)VST_WINDOW_SINCE(window);
        while (*first < trace->window_count &&
               trace->windows[*first].number < since)
            ++*first;
        *count = trace->window_count - *first;
        return VST_OK;
    }
    for (size_t i = 0; window >= 0 && i < trace->window_count; i++)
        if (trace->windows[i].number == (uint32_t)window) {
            *first = i;
            *count = 1;
            return VST_OK;
        }
    return VST_E_ARGUMENT;
}
