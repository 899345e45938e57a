/* Takes back calls that a recording leaves out because they were short, on the
 * thread that made them, and counts them. The count goes into the trace after
 * every VST_LEFT_OUT_TOLD calls, so it is nearly right in the file of a process
 * that dies; the remainder is written when the thread leaves the recording. */
#include "record/recording.h"

static void left_out_write(vst__writer *writer, const vst_recording *recording,
                           uint64_t count)
{
    const vst_chunk_provider *provider = recording->provider;
    uint64_t more = count - writer->left_out_written;

    writer->left_out_written = count;
    if (more && provider->left_out != NULL)
        provider->left_out(provider->ctx, more);
}

/* Writes the count to the trace. Called by the owner inside a hook, so the
 * recording cannot end meanwhile. */
static VST_COLD void left_out_write_some(vst_buffer *buffer)
{
    vst__writer *writer = (vst__writer *)buffer;

    if (writer->recording != NULL)
        left_out_write(writer, writer->recording, buffer->left_out);
}

/* Takes back the ENTER of this id if it is the chunk's last word: time then
 * goes on from the word before, as if the ENTER had never been stored. After
 * that the caller of this call has no word behind its own ENTER either, and may
 * be taken back too. Words up to the floor are not looked at, because a payload
 * may look like an ENTER. */
static bool take_back(vst_buffer *buffer, vst_id id)
{
    uint64_t *last, word, left_out;

    if (buffer->cursor == buffer->floor || buffer->epoch != vst_record_epoch())
        return false;
    last = buffer->cursor - 1;
    word = *last;
    if ((uint32_t)word != (uint32_t)vst_word(VST_ENTER, id, 0))
        return false;
    buffer->last -= vst_word_delta(word);
    if (buffer->due > buffer->last + UINT32_MAX)
        buffer->due = buffer->last + UINT32_MAX;
    buffer->cursor = last;
    vst_store_word(last, 0);
    left_out = buffer->left_out + 1;
    __atomic_store_n(&buffer->left_out, left_out, __ATOMIC_RELAXED);
    if (!VST_LIKELY(left_out % VST_LEFT_OUT_TOLD))
        left_out_write_some(buffer);
    return true;
}

/* The chunk's last word may be the enter of an outer call with this id that
 * still runs, if the scope left the inner one out. */
static void end_in_scope(vst_buffer *buffer, vst_kind kind, vst_id id,
                         vst_ticks now)
{
    vst__writer *writer = (vst__writer *)buffer;

    if (buffer->epoch != vst_record_epoch())
        vst_record_slow(kind, id, now);
    else if (!vst__scope_takes(writer->scope, kind, id))
        return;
    else if (!take_back(buffer, id))
        vst__record_taken(kind, id, now);
    else if (buffer->cursor < buffer->limit)
        vst__writer_set_limit(writer);
}

void vst_record_end_of_short_call(vst_kind kind, vst_id id, vst_ticks now)
{
    vst_buffer *buffer = vst_thread_buffer;

    if (((vst__writer *)buffer)->scope != NULL)
        end_in_scope(buffer, kind, id, now);
    else if (!take_back(buffer, id))
        vst_record_word(buffer, kind, id, now);
}

void vst__writer_write_left_out(vst__writer *writer)
{
    uint64_t count =
        __atomic_exchange_n(&writer->hot.left_out, 0, __ATOMIC_RELAXED);

    if (!count)
        return;
    left_out_write(writer, writer->recording, count);
    writer->left_out_written = 0;
    if (writer->thread != NULL) {
        writer->thread->left_out += count;
        vst__recording_define_thread(writer->recording, writer->thread, "", 0);
    }
}
