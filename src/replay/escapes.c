/* Walks segments for escapes of one type, see escapes.h. */
#include "replay/escapes.h"

static bool escapes_is_wanted(uint64_t word, uint32_t type, uint32_t words_min)
{
    return vst_word_kind(word) == VST_ESCAPE &&
           vst_word_escape_type(word) == type &&
           vst_word_escape_words(word) >= words_min;
}

vst_status vst__escapes_behind(vst_trace *trace, const vst__segment *segments,
                               uint32_t number, uint64_t *words,
                               const vst__escape_visit *visit)
{
    vst__segment segment = segments[number];
    uint64_t end = segment.offset + segment.words * sizeof(uint64_t);
    vst__escape_found found = {.segment = number};
    vst_status status = VST_OK;
    vst__stream stream;

    if (*words != 0) {
        segment.offset += *words * sizeof(uint64_t);
        segment.words -= *words;
        segment.checkpoint = 0;
    }
    *words += segment.words;
    vst__segment_open(&segment, &trace->block, &stream);
    while (status == VST_OK && vst__stream_fill(&stream))
        while (status == VST_OK &&
               (found.word = vst__stream_next(&stream)) != NULL)
            if (escapes_is_wanted(*found.word, visit->type, visit->words_min)) {
                found.offset = end - (vst__stream_remaining(&stream) +
                                      vst__stream_words(*found.word)) *
                                         sizeof(uint64_t);
                status = visit->fn(visit->ctx, &found);
            }
    *words -= vst__stream_remaining(&stream);
    return status == VST_OK ? stream.status : status;
}

vst_status vst__escapes_each(vst_trace *trace, const vst__segment *segments,
                             uint32_t number, const vst__escape_visit *visit)
{
    uint64_t words = 0;

    return vst__escapes_behind(trace, segments, number, &words, visit);
}
