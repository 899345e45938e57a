/* Stores words in a writer's chunk, for the cases that the inline front and the
 * records of memory leave to others. Called by the writer's owner, or with the
 * lock held for a writer without an owner. writer.c gets the chunks. */
#include "record/recording.h"

void vst__writer_count_lost(vst__writer *writer)
{
    __atomic_store_n(&writer->lost, writer->lost + 1, __ATOMIC_RELAXED);
}

/* Stores the payload, then the word. */
static void words_store(vst__writer *writer, uint64_t word,
                        const uint64_t *payload, uint32_t words)
{
    uint64_t *at = writer->hot.cursor;

    for (uint32_t i = 0; i < words; i++)
        vst_store_word(at + 1 + i, payload[i]);
    vst_store_word(at, word);
    writer->hot.cursor = writer->hot.floor = at + 1 + words;
}

/* Returns the delta of a word stored now; writes a TIME escape first if the
 * delta does not fit. */
static uint32_t advance_time(vst__writer *writer, vst_ticks now)
{
    uint64_t delta = now - writer->hot.last;

    writer->hot.last = now;
    if (delta >> 32 == 0)
        return (uint32_t)delta;
    words_store(writer, vst_word_escape(VST_ESCAPE_TIME, 1, 0), &now, 1);
    return 0;
}

void vst__writer_word(vst__writer *writer, vst_kind kind, vst_id id,
                      vst_ticks now)
{
    uint32_t delta = advance_time(writer, now);

    vst_store_word(writer->hot.cursor++, vst_word(kind, id, delta));
}

void vst__writer_escape(vst__writer *writer, vst_escape type,
                        const uint64_t *payload, uint32_t words)
{
    uint32_t delta = advance_time(writer, vst_clock_ticks());

    words_store(writer, vst_word_escape(type, words, delta), payload, words);
}

/* A chunk begins after the record that asked for it, so the time may go back to
 * that record at the chunk's start, and nowhere else. */
void vst__writer_fixed(vst__writer *writer, uint64_t word,
                       const uint64_t *payload, vst_ticks now)
{
    vst_ticks last = writer->hot.cursor == writer->first ? writer->left_at
                                                         : writer->hot.last;
    uint32_t delta = advance_time(writer, now > last ? now : last);

    words_store(writer, word | (uint64_t)delta << 32, payload,
                vst_word_escape_words(word));
}

/* Call with the lock held. A long stack continues in further escapes, and in
 * further chunks. */
void vst__writer_stack(vst__writer *writer, const vst_id *ids, size_t count)
{
    uint64_t payload[VST_ESCAPE_WORDS_MAX];
    vst_escape type = VST_ESCAPE_STACK;

    do {
        uint32_t part = 0;
        while (part < VST_ESCAPE_WORDS_MAX && part < count) {
            payload[part] = ids[part];
            part++;
        }
        if (writer->chunk.words != NULL &&
            !vst__writer_has_room(writer, 1 + (size_t)part))
            vst__writer_change_chunk(writer, 1 + (size_t)part);
        if (writer->chunk.words == NULL) {
            vst__writer_count_lost(writer);
            return;
        }
        vst__writer_escape(writer, type, payload, part);
        ids += part;
        count -= part;
        type = VST_ESCAPE_STACK_MORE;
    } while (count);
}
