/* The decoder of decode.h. It knows the layout of words and how the runs of
 * a thread fit together, but not what words mean together. One thread at a
 * time. */
#include "replay/decode.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { DROPPED_WORDS = 3 }; /* words of a DROPPED, with its payload */

/* ---- segments ------------------------------------------------------------ */

static void open_segment(vst__decoder *decoder)
{
    const vst__segment *segment = decoder->segment;

    vst__segment_open(segment, decoder->block, &decoder->stream);
    decoder->at_head = true;
    decoder->run_left = segment->words;
    decoder->skip_to = segment->words;
}

/* Returns how many words of the segment were not taken, also after it ended. */
static uint64_t decode_words_left(const vst__decoder *decoder)
{
    const vst__stream *stream = &decoder->stream;

    return stream->left + (uint64_t)(stream->end - stream->at);
}

vst__decoder *vst__decoder_create(void)
{
    vst__decoder *decoder = malloc(sizeof *decoder);

    if (decoder != NULL)
        memset(decoder, 0, offsetof(vst__decoder, events));
    return decoder;
}

void vst__decoder_destroy(vst__decoder *decoder)
{
    if (decoder != NULL)
        vst__decoder_close(decoder);
    free(decoder);
}

void vst__decoder_open(vst__decoder *decoder, vst_trace *trace,
                       const vst__window *window, const vst__segment *segments,
                       size_t count)
{
    const vst_trace_thread *thread =
        vst_trace_thread_find(trace, segments->thread);

    decoder->trace = trace;
    if (decoder->block == NULL)
        decoder->block = &trace->block;
    decoder->segment = segments;
    decoder->end = segments + count;
    decoder->words = 0;
    decoder->known = window->began;
    decoder->records = decoder->hidden = decoder->before_shown = 0;
    decoder->folding = trace->clip > window->began;
    decoder->shown = trace->clip;
    decoder->pending_at = decoder->pending_count = 0;
    vst__fold_reset(&decoder->fold);
    decoder->system_tid = thread != NULL ? thread->system_tid : 0;
    decoder->where =
        (vst_device_resource){(int32_t)trace->header.pid, segments->thread};
    decoder->filled = 0;
    /* the segment's checkpoint says what the runs before it would say */
    while (decoder->folding && decoder->segment + 1 != decoder->end &&
           decoder->segment[1].checkpoint != 0 &&
           decoder->segment[1].start <= trace->clip)
        decoder->words += decoder->segment++->words;
    open_segment(decoder);
}

void vst__decoder_close(vst__decoder *decoder)
{
    vst__fold_free(&decoder->fold);
    free(decoder->pending);
    decoder->pending = NULL;
}

static bool next_segment(vst__decoder *decoder)
{
    decoder->records += decoder->run_left - decode_words_left(decoder);
    if (!decoder->folding)
        decoder->known = decoder->stream.now;
    decoder->words += decoder->segment->words;
    if (++decoder->segment == decoder->end)
        return false;
    open_segment(decoder);
    return true;
}

/* ---- events -------------------------------------------------------------- */

/* Leaves out all further words of the thread. */
static void decode_end_thread(vst__decoder *decoder)
{
    while (decoder->segment + 1 != decoder->end)
        decoder->words += decoder->segment++->words;
    decoder->stream.ended = true;
}

/* Returns false if the word ends the thread's words. */
static bool decode_escape(const uint64_t *word, vst_compressed_event *event)
{
    uint32_t type = vst_word_escape_type(*word);
    vst_id id = 0;

    event->payload = word + 1;
    event->payload_words = vst_word_escape_words(*word);
    switch (type) {
    case VST_ESCAPE_SEGMENT:
        return false;
    case VST_ESCAPE_BEGIN:
    case VST_ESCAPE_END:
    case VST_ESCAPE_INSTANT:
    case VST_ESCAPE_COUNTER:
    case VST_ESCAPE_EXCEPTION:
    case VST_ESCAPE_IMPORT:
        if (event->payload_words != 0)
            id = (vst_id)(word[1] & VST_ID_MAX);
        break;
    default:
        if (type >= VST_ESCAPE_FIXED)
            id = vst_word_escape_head(*word);
        break;
    }
    event->key = vst_trace_key_make(vst_trace_key_kind_of_escape(type), id);
    return true;
}

/* Handles the checkpoint at the head of a run. If the run before it was read,
 * the checkpoint adds nothing; otherwise its words are decoded like any others,
 * behind a DROPPED. Returns the number of events: 0 or 1. */
static size_t decode_checkpoint(vst__decoder *decoder, const uint64_t *word,
                                vst_compressed_event *event)
{
    uint64_t left = decode_words_left(decoder);
    uint64_t dropped_payload = word[1] < left ? word[1] : left;
    uint64_t missing =
        word[3] > decoder->records ? word[3] - decoder->records : 0;
    bool follows = word[3] == decoder->records;

    decoder->run_left = left - dropped_payload;
    decoder->records = word[3];
    if (follows) {
        decoder->skip_to = decoder->run_left;
        return 0;
    }
    if (decoder->folding) {
        decoder->hidden += missing;
        vst__fold_reset(&decoder->fold);
        if (decoder->stream.now > decoder->shown)
            decoder->shown = decoder->stream.now;
        return 0;
    }
    decoder->dropped_payload[0] = missing;
    decoder->dropped_payload[1] = decoder->known;
    if (event->ticks > decoder->trace->until)
        event->ticks = decoder->trace->until;
    event->key =
        vst_trace_key_make(vst_trace_key_kind_of_escape(VST_ESCAPE_DROPPED), 0);
    event->payload = decoder->dropped_payload;
    event->payload_words = 2;
    return 1;
}

static bool is_checkpoint(const uint64_t *word)
{
    return vst_word_kind(*word) == VST_ESCAPE &&
           vst_word_escape_type(*word) == VST_ESCAPE_CHECKPOINT &&
           vst_word_escape_words(*word) >= 3;
}

/* ---- before the clip ----------------------------------------------------- */

/* Starts to give out events: first a DROPPED for the hidden words, then the
 * open calls. */
static vst_status begin_showing(vst__decoder *decoder)
{
    size_t size = vst__fold_size(&decoder->fold);

    decoder->folding = false;
    decoder->before_shown = vst__decoder_words(decoder);
    if (decoder->fold.unknown)
        return VST_E_NOMEM;
    if (decoder->hidden == 0)
        return VST_OK;
    free(decoder->pending);
    decoder->pending = malloc((DROPPED_WORDS + size) * sizeof(uint64_t));
    if (decoder->pending == NULL)
        return VST_E_NOMEM;
    decoder->pending[0] = vst_word_escape(VST_ESCAPE_DROPPED, 2, 0);
    decoder->pending[1] = decoder->hidden;
    decoder->pending[2] = decoder->known;
    decoder->pending_at = 0;
    decoder->pending_count =
        DROPPED_WORDS +
        vst__fold_emit(&decoder->fold, decoder->pending + DROPPED_WORDS, size);
    return VST_OK;
}

static void decode_pending(vst__decoder *decoder, size_t *count)
{
    vst_compressed_event *event = decoder->events + *count;
    vst_compressed_event *end = decoder->events + VST_BATCH;

    while (event != end && decoder->pending_at != decoder->pending_count) {
        const uint64_t *word = decoder->pending + decoder->pending_at;

        decode_escape(word, event);
        event->ticks = decoder->shown;
        decoder->pending_at += 1 + (size_t)event->payload_words;
        event++;
    }
    *count = (size_t)(event - decoder->events);
}

/* Folds the words in view, up to the first word that is to be shown. Returns
 * true if the segment's words end here. */
static bool fold_view(vst__decoder *decoder, vst_status *status)
{
    vst__stream *stream = &decoder->stream;
    const uint64_t *word;

    while ((word = vst__stream_next(stream)) != NULL) {
        size_t size = 1;
        uint64_t left;

        if (vst_word_kind(*word) == VST_ESCAPE)
            size += vst_word_escape_words(*word);
        if (decoder->at_head && is_checkpoint(word)) {
            decoder->at_head = false;
            decode_checkpoint(decoder, word, NULL);
            if (decoder->shown <= decoder->trace->until)
                continue;
            decoder->shown = decoder->trace->until;
            *status = begin_showing(decoder);
            decode_end_thread(decoder);
            return true;
        }
        decoder->at_head = false;
        left = decode_words_left(decoder);
        if (left >= decoder->skip_to)
            continue;
        if (left >= decoder->run_left) { /* the word belongs to a checkpoint */
            vst__fold_words(&decoder->fold, word, size);
            continue;
        }
        if (stream->now >= decoder->shown) {
            stream->now -= vst_word_delta(*word);
            stream->at = word;
            *status = begin_showing(decoder);
            return false;
        }
        vst__fold_words(&decoder->fold, word, size);
        decoder->hidden += size;
    }
    return vst__stream_remaining(stream) == 0;
}

/* ---- batches ------------------------------------------------------------- */

/* Takes the first words of a run: a checkpoint, or words that are skipped. */
static size_t decode_head(vst__decoder *decoder, const uint64_t *word,
                          vst_compressed_event *event, bool *taken)
{
    *taken = true;
    if (decoder->at_head) {
        decoder->at_head = false;
        if (is_checkpoint(word))
            return decode_checkpoint(decoder, word, event);
    }
    *taken = decode_words_left(decoder) >= decoder->skip_to;
    return 0;
}

/* Handles the first word behind the range: only a loss that it reports lies
 * before it. Returns the number of events: 0 or 1. */
static size_t decode_behind(vst__decoder *decoder, const uint64_t *word,
                            vst_compressed_event *event)
{
    event->ticks = decoder->trace->until;
    decode_end_thread(decoder);
    return vst_word_kind(*word) == VST_ESCAPE &&
           vst_word_escape_type(*word) == VST_ESCAPE_LOST &&
           decode_escape(word, event);
}

/* Decodes the words in view. Returns true if the segment's words end here. */
static bool decode_view(vst__decoder *decoder, size_t *count)
{
    vst__stream *stream = &decoder->stream;
    vst_compressed_event *event = decoder->events + *count;
    vst_compressed_event *end = decoder->events + VST_BATCH;
    const uint64_t *word;
    vst_ticks until = decoder->trace->until;
    bool heading =
        decoder->at_head || decoder->skip_to < decoder->segment->words;

    while (event != end && (word = vst__stream_next(stream)) != NULL) {
        vst_kind kind = vst_word_kind(*word);

        event->ticks = stream->now;
        if (heading) {
            bool taken;
            event += decode_head(decoder, word, event, &taken);
            heading = taken;
            if (taken)
                continue;
        }
        if (stream->now > until) {
            event += decode_behind(decoder, word, event);
            break;
        }
        if (kind != VST_ESCAPE) {
            event->key = vst_trace_key_make((uint32_t)kind, vst_word_id(*word));
            event->payload = NULL;
            event->payload_words = 0;
            event += vst_word_id(*word) != 0;
        } else if (decode_escape(word, event)) {
            event++;
        } else {
            stream->ended = true;
            break;
        }
    }
    *count = (size_t)(event - decoder->events);
    return vst__stream_remaining(stream) == 0;
}

/* Loads more words only while the batch is empty, because loading invalidates
 * the payloads of a batch. */
static vst_status decode_more(vst__decoder *decoder, size_t *count)
{
    vst_status status = VST_OK;
    bool ends;

    if (decoder->segment == decoder->end) {
        if (!decoder->folding)
            return VST_OK;
        /* Everything lies before the clip: a thread that waits in a call is
         * still in it; a thread that ended is left out. */
        if (vst__fold_is_empty(&decoder->fold))
            decoder->hidden = 0;
        return begin_showing(decoder);
    }
    ends = !vst__stream_fill(&decoder->stream);
    if (decoder->stream.status != VST_OK)
        return decoder->stream.status;
    if (!ends)
        ends = decoder->folding ? fold_view(decoder, &status)
                                : decode_view(decoder, count);
    if (ends)
        next_segment(decoder);
    return status;
}

static void fill_events(vst__decoder *decoder, size_t count)
{
    for (; decoder->filled < count; decoder->filled++) {
        vst_compressed_event *event = &decoder->events[decoder->filled];

        event->system_tid = decoder->system_tid;
        event->where = decoder->where;
    }
}

static bool is_over(const vst__decoder *decoder)
{
    return decoder->segment == decoder->end && !decoder->folding &&
           decoder->pending_at == decoder->pending_count;
}

vst_status vst__decoder_next(vst__decoder *decoder, size_t *count, bool *last)
{
    vst_status status = VST_OK;

    *count = 0;
    while (status == VST_OK && *count == 0 && !is_over(decoder)) {
        if (decoder->pending_at != decoder->pending_count)
            decode_pending(decoder, count);
        else
            status = decode_more(decoder, count);
    }
    fill_events(decoder, *count);
    *last = is_over(decoder);
    return status;
}

uint64_t vst__decoder_words(const vst__decoder *decoder)
{
    if (decoder->segment == decoder->end)
        return decoder->words;
    return decoder->words + decoder->segment->words -
           vst__stream_remaining(&decoder->stream);
}
