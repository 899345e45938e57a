/* The slow side of stream.h: brings words into view and finds the end. One
 * thread at a time. */
#include "store/stream.h"

#include <stddef.h>
#include <string.h>

#include "os/os.h"
#include "store/format.h"

void vst__stream_open(vst__stream *stream, vst__block *block, uint64_t offset,
                      uint64_t words, vst_ticks start)
{
    memset(stream, 0, sizeof *stream);
    stream->block = block;
    stream->offset = stream->tail = offset;
    stream->left = words;
    stream->now = start;
}

void vst__stream_guard(vst__stream *stream, uint64_t header, uint32_t sequence)
{
    stream->guard = header;
    stream->sequence = sequence;
}

void vst__stream_read_twice(vst__stream *stream)
{
    stream->may_change = true;
}

static bool stream_end(vst__stream *stream, vst_status status)
{
    stream->ended = true;
    stream->at = stream->end = NULL;
    stream->status = status;
    return false;
}

/* Takes a view of at least `least` words, if the file has them. */
static vst_status stream_view(vst__stream *stream, size_t least, size_t *count)
{
    const unsigned char *bytes;
    size_t got;
    vst_status status = vst__block_view(stream->block, stream->offset,
                                        least * sizeof(uint64_t), &bytes, &got);

    *count = got / sizeof(uint64_t);
    if (*count > stream->left)
        *count = (size_t)stream->left;
    /* the block aligns its bytes at multiples of 8 */
    stream->at = (const uint64_t *)(const void *)bytes;
    return status;
}

/* Returns whether the words in view still belong to the chunk that was opened.
 * The writer removes the magic before it reuses the words, so a reader that
 * still sees the magic after reading the words has read the right ones. */
static bool is_same_chunk(const vst__stream *stream)
{
    vst_chunk_header header;
    size_t got;

    if (stream->guard == 0)
        return true;
    return vst__source_read(stream->block->source, &header, sizeof header,
                            stream->guard, &got) == VST_OK &&
           got == sizeof header && header.magic == VST_CHUNK_MAGIC &&
           header.sequence == stream->sequence;
}

static uint64_t hash_words(uint64_t hash, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u + 1;
    return hash;
}

/* Notes the last words given out of this view if they are ENTERs, which may be
 * taken back. A payload that looks like an ENTER does not change, so noting it
 * does no harm. */
static void note_tail(vst__stream *stream)
{
    const uint64_t *word = stream->at;

    while (word != stream->first && vst_word_kind(word[-1]) == VST_ENTER)
        word--;
    if (word != stream->first) {
        stream->tail =
            stream->offset - (uint64_t)(stream->end - word) * sizeof *word;
        stream->tail_hash = 0;
    }
    stream->tail_hash =
        hash_words(stream->tail_hash, word, (size_t)(stream->at - word));
}

enum { PIECE = 512 };

static vst_status read_again(const vst__stream *stream, uint64_t offset,
                             uint64_t *words, size_t count, bool *whole)
{
    size_t got;
    vst_status status = vst__source_read(stream->block->source, words,
                                         count * sizeof *words, offset, &got);

    stream->block->sys_errno = stream->block->source->sys_errno;
    *whole = status == VST_OK && got == count * sizeof *words;
    return status;
}

/* Finds out whether the words that were given out are still there. */
static vst_status check_tail(const vst__stream *stream, bool *same)
{
    uint64_t words[PIECE], hash = 0, at = stream->tail;
    vst_status status = VST_OK;

    *same = true;
    while (*same && at < stream->offset) {
        uint64_t left = (stream->offset - at) / sizeof *words;
        size_t count = left < PIECE ? (size_t)left : PIECE;

        status = read_again(stream, at, words, count, same);
        if (*same)
            hash = hash_words(hash, words, count);
        at += count * sizeof *words;
    }
    *same = *same && hash == stream->tail_hash;
    return status;
}

/* Counts how many words in view the file still has. */
static vst_status count_same(const vst__stream *stream, size_t count,
                             size_t *same)
{
    uint64_t now[PIECE];
    bool whole = true;

    *same = 0;
    while (*same < count) {
        size_t i = 0, piece = count - *same < PIECE ? count - *same : PIECE;
        vst_status status = read_again(
            stream, stream->offset + *same * sizeof *now, now, piece, &whole);

        while (whole && i < piece && stream->at[*same + i] == now[i])
            i++;
        *same += i;
        if (status != VST_OK || i < piece)
            return status;
    }
    return VST_OK;
}

/* Ends the words in view before the first record that is different in the file
 * by now. The block is ours to write in, and a zero word ends a stream. */
static vst_status stream_cut_changed(vst__stream *stream, size_t count)
{
    uint64_t *seen = (uint64_t *)(uintptr_t)stream->at;
    size_t same = 0, at = 0;
    bool tail_is_same;
    vst_status status = check_tail(stream, &tail_is_same);

    if (status == VST_OK && tail_is_same)
        status = count_same(stream, count, &same);
    while (at < same && seen[at] != 0) {
        size_t words = vst__stream_words(seen[at]);

        if (words > same - at)
            break;
        at += words;
    }
    if (same < count)
        seen[at] = 0;
    return status;
}

bool vst__stream_fill(vst__stream *stream)
{
    uint64_t unread = (uint64_t)(stream->end - stream->at);
    size_t count, size = 1;
    vst_status status;

    if (stream->ended)
        return false;
    if (stream->may_change && stream->at != stream->first)
        note_tail(stream);
    stream->offset -= unread * sizeof(uint64_t);
    stream->left += unread;
    stream->at = stream->end = stream->first = NULL;
    if (stream->left == 0)
        return stream_end(stream, VST_OK);
    status = stream_view(stream, 1, &count);
    if (status != VST_OK || count == 0 || *stream->at == 0)
        return stream_end(stream, status);
    if (vst_word_kind(*stream->at) == VST_ESCAPE) {
        uint32_t words = vst_word_escape_words(*stream->at);
        /* No writer makes escapes this long, or the escape is longer than the
         * rest: the stream is torn here. */
        if (words > VST_ESCAPE_WORDS_MAX || words >= stream->left)
            return stream_end(stream, VST_OK);
        size += words;
        if (size > count) {
            status = stream_view(stream, size, &count);
            if (status != VST_OK || size > count)
                return stream_end(stream, status);
        }
    }
    if (!is_same_chunk(stream))
        return stream_end(stream, VST_OK);
    if (stream->may_change) {
        status = stream_cut_changed(stream, count);
        if (status != VST_OK || *stream->at == 0)
            return stream_end(stream, status);
    }
    stream->first = stream->at;
    stream->end = stream->at + count;
    stream->offset += count * sizeof(uint64_t);
    stream->left -= count;
    return true;
}
