/* Walks the words of one segment: the only place that knows where a stream of
 * records ends. A word is given out when the word and its whole payload are in
 * view, so readers of a payload need no bounds of their own.
 *
 *     while (vst__stream_fill(&stream))
 *         while ((word = vst__stream_next(&stream)) != NULL)
 *             ...
 *
 * Pointers are valid until the next fill. One thread at a time. */
#ifndef VST_STORE_STREAM_H
#define VST_STORE_STREAM_H

#include <stdbool.h>

#include <vestige/wire.h>

#include "store/block.h"

typedef struct vst__stream {
    vst__block *block;
    const uint64_t *at;  /* the word to give out next */
    const uint64_t *end; /* end of the words in view */
    /* position in the file of the first word not in view */
    uint64_t offset;
    /* number of words that are not in view yet; at the end, the words that were
     * not read */
    uint64_t left;
    vst_ticks now;  /* time of the last word that was given out */
    uint64_t guard; /* see vst__stream_guard; 0 if none */
    uint32_t sequence;
    bool may_change;       /* see vst__stream_read_twice */
    const uint64_t *first; /* first of the words in view */
    /* The last words given out that may be taken back: position of the first of
     * them in the file, and their hash. */
    uint64_t tail, tail_hash;
    bool ended;
    /* why the stream ended: VST_OK, or the error of a read */
    vst_status status;
} vst__stream;

void vst__stream_open(vst__stream *stream, vst__block *block, uint64_t offset,
                      uint64_t words, vst_ticks start);

/* From now on the stream ends where the chunk with this header was given to
 * other records. */
void vst__stream_guard(vst__stream *stream, uint64_t header, uint32_t sequence);

/* From now on words are read twice, because they may be stored or taken back
 * during a read. The stream ends before the first record that changed (see
 * format.h). */
void vst__stream_read_twice(vst__stream *stream);

/* Brings more words into view; returns false at the end of the stream. */
bool vst__stream_fill(vst__stream *stream);

/* Returns how many words a record has, from its first word. */
static inline size_t vst__stream_words(uint64_t word)
{
    return vst_word_kind(word) == VST_ESCAPE
               ? 1 + (size_t)vst_word_escape_words(word)
               : 1;
}

/* Returns how many words were neither given out nor skipped. */
static inline uint64_t vst__stream_remaining(const vst__stream *stream)
{
    return stream->ended ? 0
                         : stream->left + (uint64_t)(stream->end - stream->at);
}

/* Returns the next word, whose payload follows it; NULL if no word is in
 * view. */
static inline const uint64_t *vst__stream_next(vst__stream *stream)
{
    while (stream->at != stream->end) {
        const uint64_t *word = stream->at;
        uint64_t size = 1;

        if (*word == 0)
            return NULL;
        if (vst_word_kind(*word) == VST_ESCAPE) {
            size += vst_word_escape_words(*word);
            if (size > (uint64_t)(stream->end - word) ||
                size > VST_ESCAPE_WORDS_MAX + 1)
                return NULL;
        }
        stream->at += size;
        stream->now += vst_word_delta(*word);
        if (vst_word_kind(*word) != VST_ESCAPE ||
            vst_word_escape_type(*word) != VST_ESCAPE_TIME)
            return word;
        if (size > 1)
            stream->now = word[1];
    }
    return NULL;
}

#endif
