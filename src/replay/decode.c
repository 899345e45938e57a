/* The decoder of decode.h: it knows the layout of words and nothing of what
 * they mean together. One thread at a time. */
#include "replay/decode.h"

static void open_segment(vst__decoder *decoder)
{
    const vst__segment *segment = decoder->segment;

    vst__stream_open(&decoder->stream, &decoder->trace->block, segment->offset,
                     segment->words, segment->start);
}

void vst__decoder_open(vst__decoder *decoder, vst_trace *trace,
                       const vst__segment *segments, size_t count)
{
    const vst_trace_thread *thread =
        vst_trace_thread_find(trace, segments->thread);
    vst_compressed_event event = {
        .system_tid = thread != NULL ? thread->system_tid : 0,
        .where = {(int32_t)trace->header.pid, segments->thread},
    };

    decoder->trace = trace;
    decoder->segment = segments;
    decoder->end = segments + count;
    decoder->words = 0;
    /* What is the same in all events is written once, not once an event. */
    for (size_t i = 0; i < VST_BATCH; i++)
        decoder->events[i] = event;
    open_segment(decoder);
}

/* False if the word ends what belongs to this thread. */
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
        if (event->payload_words != 0)
            id = (vst_id)(word[1] & VST_ID_MAX);
        break;
    default:
        break;
    }
    event->key = vst_trace_key_make(vst_trace_key_kind_of_escape(type), id);
    return true;
}

/* Decodes what is in view; true if the segment's words end here. */
static bool decode_view(vst__decoder *decoder, size_t *count)
{
    vst__stream *stream = &decoder->stream;
    vst_compressed_event *event = decoder->events + *count;
    vst_compressed_event *end = decoder->events + VST_BATCH;
    const uint64_t *word;

    while (event != end && (word = vst__stream_next(stream)) != NULL) {
        vst_kind kind = vst_word_kind(*word);

        event->enter_t = stream->now;
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

static bool next_segment(vst__decoder *decoder)
{
    decoder->words += decoder->segment->words;
    if (++decoder->segment == decoder->end)
        return false;
    open_segment(decoder);
    return true;
}

vst_status vst__decoder_next(vst__decoder *decoder, size_t *count, bool *last)
{
    *count = 0;
    *last = false;
    if (decoder->segment == decoder->end) {
        *last = true;
        return VST_OK;
    }
    /* Bringing words into view would pull the payloads from under the events
     * of this batch, so it is only done while there are none. */
    for (;;) {
        bool more = vst__stream_fill(&decoder->stream);

        if (decoder->stream.status != VST_OK)
            return decoder->stream.status;
        if (!more || decode_view(decoder, count)) {
            if (!next_segment(decoder)) {
                *last = true;
                return VST_OK;
            }
        }
        if (*count != 0)
            return VST_OK;
    }
}

uint64_t vst__decoder_words(const vst__decoder *decoder)
{
    if (decoder->segment == decoder->end)
        return decoder->words;
    return decoder->words + decoder->segment->words -
           vst__stream_remaining(&decoder->stream);
}
