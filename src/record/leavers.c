/* Free-running threads whose window ended while they had a chunk. Such a thread
 * may be in the middle of a store, so its chunk stays mapped and in use until
 * the thread makes its next record or ends. Only then is the chunk sealed, and
 * a bounded file may drop it. All functions are called with the recorder's lock
 * held. */
#include "record/recording.h"

void vst__recording_begin_leaving(vst_recording *recording)
{
    while (recording->writers != NULL) {
        vst__writer *writer = recording->writers;

        vst__writer_write_left_out(writer);
        recording->lost +=
            __atomic_exchange_n(&writer->lost, 0, __ATOMIC_RELAXED);
        recording->writers = writer->next;
        writer->recording = NULL;
        writer->thread = NULL;
        if (writer->chunk.words == NULL)
            continue;
        writer->left = recording;
        writer->next = recording->leavers;
        recording->leavers = writer;
    }
}

static void leavers_take_out(vst_recording *recording,
                             const vst__writer *writer)
{
    vst__writer **link = &recording->leavers;

    while (*link != writer)
        link = &(*link)->next;
    *link = writer->next;
}

void vst__writer_give_back(vst__writer *writer)
{
    vst_recording *left = writer->left;
    vst_chunk *chunk = &writer->chunk;

    if (left != NULL)
        leavers_take_out(left, writer);
    writer->left = NULL;
    if (chunk->words == NULL)
        return;
    if (left != NULL && vst__recording_is_ours(left))
        left->lost += left->provider->seal(
            left->provider->ctx, chunk,
            (size_t)(writer->hot.cursor - chunk->words), writer->segments);
    else
        chunk->release(chunk);
}

void vst__recording_forget_leavers(vst_recording *recording)
{
    vst__recorder_take();
    while (recording->leavers != NULL) {
        vst__writer *writer = recording->leavers;

        recording->leavers = writer->next;
        writer->left = NULL;
    }
    vst__recorder_give();
}
