/* Remembers where the calling thread's next record goes, and finds out what the
 * thread recorded since: see language.h. Any thread, each on its own buffer. */
#include "record/recording.h"

vst_record_place vst__record_here(void)
{
    const vst_buffer *buffer = vst_thread_buffer;

    return (vst_record_place){buffer->cursor, buffer->chunks};
}

bool vst__record_went_on(vst_record_place since)
{
    const vst_buffer *buffer = vst_thread_buffer;
    const uint64_t *at = since.at;

    if (at == NULL || buffer->chunks != since.chunk)
        return false;
    while (at < buffer->cursor) {
        vst_kind kind = vst_word_kind(*at);
        if (kind == VST_ENTER || kind == VST_EXIT)
            return true;
        at += kind == VST_ESCAPE ? 1 + vst_word_escape_words(*at) : 1;
    }
    return false;
}
