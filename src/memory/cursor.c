/* Walks the words of a thread for cursor.h. Skips words that are not about
 * memory, and checkpoints. One thread at a time. */
#include "memory/cursor.h"

#include <string.h>

static void open_segment(vst__memory_cursor *cursor)
{
    const vst__segment *segment = cursor->segment;

    vst__segment_open(segment, cursor->block, &cursor->stream);
    memset(cursor->recent, 0, VST_RECENT_PLACES * sizeof *cursor->recent);
    cursor->at_head = true;
    cursor->run_left = cursor->skip_to = segment->words;
}

void vst__memory_cursor_open(vst__memory_cursor *cursor, vst_trace *trace,
                             const vst__window *window,
                             const vst__segment *segments, size_t count,
                             vst__block *block, uint64_t *recent)
{
    memset(cursor, 0, sizeof *cursor);
    cursor->trace = trace;
    cursor->clip = trace->clip;
    cursor->until = trace->until;
    cursor->window_ends = window->last;
    cursor->segment = segments;
    cursor->end = segments + count;
    cursor->block = block;
    cursor->recent = recent;
    cursor->known = window->began;
    open_segment(cursor);
}

static uint64_t cursor_words_left(const vst__memory_cursor *cursor)
{
    const vst__stream *stream = &cursor->stream;

    return stream->left + (uint64_t)(stream->end - stream->at);
}

uint64_t vst__memory_cursor_words(const vst__memory_cursor *cursor)
{
    if (cursor->segment == cursor->end)
        return cursor->words;
    return cursor->words + cursor->segment->words -
           vst__stream_remaining(&cursor->stream);
}

/* ---- losses -------------------------------------------------------------- */

static bool cursor_lose(vst__memory_cursor *cursor, vst_loss_kind kind,
                        vst_ticks since, vst_ticks until, uint64_t records)
{
    cursor->record = (vst__memory_record){
        .time = until > since ? until : since,
        .type = VST_RECORD_LOSS,
        .kind = (uint8_t)kind,
        .address = since,
        .size = records,
    };
    return true;
}

static bool cursor_gap(vst__memory_cursor *cursor, bool ends, vst_ticks now)
{
    if (ends == !cursor->in_gap)
        return false; /* the other half of the pair was lost */
    cursor->in_gap = !ends;
    if (ends)
        return cursor_lose(cursor, VST_LOSS_GAP, cursor->gap, now, 0);
    cursor->gap = now;
    return false;
}

/* Handles the checkpoint at the head of a run. Here its words only say whether
 * earlier runs were dropped. */
static bool cursor_checkpoint(vst__memory_cursor *cursor, const uint64_t *word)
{
    uint64_t left = cursor_words_left(cursor);
    uint64_t told = word[1] < left ? word[1] : left;
    uint64_t missing =
        word[3] > cursor->records ? word[3] - cursor->records : 0;
    bool follows = word[3] == cursor->records;

    cursor->run_left = cursor->skip_to = left - told;
    cursor->records = word[3];
    if (follows || cursor->stream.now < cursor->clip) {
        cursor->hidden += missing;
        return false;
    }
    missing += cursor->hidden;
    cursor->hidden = 0;
    return cursor_lose(cursor, VST_LOSS_DROPPED, cursor->known,
                       cursor->stream.now < cursor->until ? cursor->stream.now
                                                          : cursor->until,
                       missing);
}

static bool is_checkpoint(const uint64_t *word)
{
    return vst_word_kind(*word) == VST_ESCAPE &&
           vst_word_escape_type(*word) == VST_ESCAPE_CHECKPOINT &&
           vst_word_escape_words(*word) >= 3;
}

/* ---- records ------------------------------------------------------------- */

/* Sets the flags of a mapping; blocks have none. */
static void decode_range(vst__memory_record *record, uint32_t head)
{
    record->range = (uint8_t)vst_range_of_head(head);
    if ((record->range & VST_RANGE_CHANGES) != 0)
        record->type = VST_RECORD_CHANGE;
}

/* Returns false if the word is not about memory. */
static bool cursor_decode(vst__memory_cursor *cursor, const uint64_t *word)
{
    uint32_t head = vst_word_escape_head(*word);
    vst__memory_record *record = &cursor->record;

    record->type = VST_RECORD_FREE;
    record->kind = (uint8_t)vst_head_kind(head);
    record->flags = 0;
    record->range = 0;
    record->stack = 0;
    record->size = 0;
    switch (vst_word_escape_type(*word)) {
    case VST_ESCAPE_ALLOC:
        record->type = VST_RECORD_ALLOC;
        record->flags = head >> 5 & 3u;
        record->size = vst_head_size(head);
        record->address = vst_alloc_address(word[1]);
        record->stack = (vst_stack_id)(word[1] >> 44);
        break;
    case VST_ESCAPE_ALLOC_LARGE:
        record->type = VST_RECORD_ALLOC;
        record->flags = head >> 5 & 3u;
        record->address = word[1];
        record->size = word[2];
        record->stack = (vst_stack_id)word[3];
        decode_range(record, head);
        break;
    case VST_ESCAPE_FREE:
        record->address = word[1];
        return record->address != 0;
    case VST_ESCAPE_FREE_RANGE:
        /* a framework reports the size of a block that it frees */
        if (record->kind != VST_MEMORY_FRAMEWORK_FREE)
            record->type = VST_RECORD_FREE_RANGE;
        record->address = word[1];
        record->size = word[2];
        return record->address != 0;
    case VST_ESCAPE_FREE_RECENT:
        /* in a valid file, the allocation is among the words before */
        record->address = cursor->recent[head >> 5 & (VST_RECENT_PLACES - 1)];
        return record->address != 0;
    default:
        return false;
    }
    cursor->recent[vst_recent_place(record->address)] = record->address;
    return record->address != 0;
}

static bool cursor_counter(vst__memory_cursor *cursor, const uint64_t *word)
{
    cursor->record = (vst__memory_record){
        .time = cursor->stream.now,
        .type = VST_RECORD_COUNTER,
        .address = word[1],
        .size = word[2],
    };
    return true;
}

/* Handles a word that is no record of memory. Returns true if it made a LOSS or
 * COUNTER record. */
static bool cursor_other(vst__memory_cursor *cursor, const uint64_t *word)
{
    uint32_t words = vst_word_escape_words(*word);

    switch (vst_word_escape_type(*word)) {
    case VST_ESCAPE_SEGMENT:
        cursor->stream.ended = true;
        return false;
    case VST_ESCAPE_LOST:
        return words != 0 &&
               cursor_lose(cursor, VST_LOSS_RECORDS, cursor->known,
                           cursor->stream.now, word[1] != 0 ? word[1] : 1);
    case VST_ESCAPE_GAP:
        return words != 0 &&
               cursor_gap(cursor, word[1] != 0, cursor->stream.now);
    case VST_ESCAPE_DROPPED:
        return words != 0 &&
               cursor_lose(cursor, VST_LOSS_DROPPED, cursor->known,
                           cursor->stream.now, word[1]);
    case VST_ESCAPE_COUNTER:
        return words > 1 && cursor_counter(cursor, word);
    default:
        return false;
    }
}

/* Handles one word; returns true if it made a record. */
static bool cursor_take(vst__memory_cursor *cursor, const uint64_t *word)
{
    uint32_t type = vst_word_escape_type(*word);

    if (cursor->at_head) {
        cursor->at_head = false;
        if (is_checkpoint(word))
            return cursor_checkpoint(cursor, word);
    }
    if (vst_word_kind(*word) != VST_ESCAPE)
        return false;
    if (type < VST_ESCAPE_FIXED)
        return cursor_words_left(cursor) < cursor->skip_to &&
               cursor_other(cursor, word);
    return cursor_decode(cursor, word);
}

/* Returns whether a word lies behind the range. The words of a checkpoint have
 * no time of their own. */
static bool is_behind(const vst__memory_cursor *cursor, const uint64_t *word)
{
    return !(cursor->at_head && is_checkpoint(word)) &&
           cursor_words_left(cursor) < cursor->skip_to;
}

/* Handles the first word behind the range, which is the thread's last: only a
 * loss that it reports lies before it. */
static bool cursor_end_thread(vst__memory_cursor *cursor, const uint64_t *word)
{
    vst__stream *stream = &cursor->stream;

    while (cursor->segment + 1 != cursor->end)
        cursor->words += cursor->segment++->words;
    stream->ended = true;
    stream->at = stream->end;
    if (cursor->hidden != 0)
        return cursor_lose(cursor, VST_LOSS_DROPPED, cursor->known,
                           cursor->clip, cursor->hidden);
    return vst_word_kind(*word) == VST_ESCAPE &&
           vst_word_escape_type(*word) == VST_ESCAPE_LOST &&
           vst_word_escape_words(*word) != 0 &&
           cursor_lose(cursor, VST_LOSS_RECORDS, cursor->known, cursor->until,
                       word[1] != 0 ? word[1] : 1);
}

static bool take_view(vst__memory_cursor *cursor)
{
    vst__stream *stream = &cursor->stream;
    const uint64_t *word;

    while ((word = vst__stream_next(stream)) != NULL) {
        bool made;

        if (stream->now > cursor->until && is_behind(cursor, word))
            return cursor_end_thread(cursor, word);
        if (vst_word_kind(*word) != VST_ESCAPE && !cursor->at_head &&
            stream->now >= cursor->clip)
            continue;
        cursor->record.time = stream->now;
        made = cursor_take(cursor, word);
        if (stream->now < cursor->clip) { /* for a loss: its end is */
            cursor->hidden += (uint64_t)(stream->at - word);
            continue;
        }
        if (cursor->hidden != 0 &&
            (!made || cursor->record.type != VST_RECORD_LOSS)) {
            /* the next call takes this word again */
            stream->at = word;
            stream->now -= vst_word_delta(*word);
            made = cursor_lose(cursor, VST_LOSS_DROPPED, cursor->known,
                               cursor->clip, cursor->hidden);
            cursor->hidden = 0;
            return made;
        }
        if (made) {
            if (cursor->record.time < cursor->known)
                cursor->record.time = cursor->known;
            cursor->known = cursor->record.time;
            return true;
        }
        if (stream->ended)
            break;
    }
    return false;
}

/* At the end of the thread: reports a loss that is still open. */
static bool cursor_finish(vst__memory_cursor *cursor)
{
    if (!cursor->in_gap)
        return false;
    cursor->in_gap = false;
    return cursor_lose(cursor, VST_LOSS_GAP, cursor->gap, cursor->window_ends,
                       0);
}

vst_status vst__memory_cursor_next(vst__memory_cursor *cursor, bool *any)
{
    vst__stream *stream = &cursor->stream;

    while (cursor->segment != cursor->end) {
        *any = take_view(cursor);
        if (*any)
            return VST_OK;
        if (vst__stream_fill(stream))
            continue;
        if (stream->status != VST_OK)
            return stream->status;
        cursor->records += cursor->run_left - cursor_words_left(cursor);
        cursor->words += cursor->segment->words;
        if (++cursor->segment != cursor->end)
            open_segment(cursor);
    }
    *any = cursor_finish(cursor);
    return VST_OK;
}
