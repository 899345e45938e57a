/* Calls that a recording leaves out because they were short: how many, and of
 * which thread. They are counted where they are taken back (record.h); the
 * trace is told every VST_LEFT_OUT_TOLD of them, so that the sum is nearly
 * right in the file of a process that dies, and of the rest when a thread lets
 * go of the recording. */
#include "record/queue.h"

static void tell(vst__writer *writer, const vst_queue *queue, uint64_t count)
{
    const vst_chunk_provider *provider = queue->provider;
    uint64_t more = count - writer->left_out_told;

    writer->left_out_told = count;
    if (more && provider->left_out)
        provider->left_out(provider->ctx, more);
}

/* By the owner, from inside a hook: the recording waits for it with its end. */
void vst_record_left_out(void)
{
    vst__writer *writer = (vst__writer *)vst_thread_buffer;

    if (writer->queue)
        tell(writer, writer->queue, writer->hot.left_out);
}

void vst__writer_tell_left_out(vst__writer *writer)
{
    uint64_t count =
        __atomic_exchange_n(&writer->hot.left_out, 0, __ATOMIC_RELAXED);

    if (!count)
        return;
    tell(writer, writer->queue, count);
    writer->left_out_told = 0;
    if (writer->thread) {
        writer->thread->left_out += count;
        vst__queue_define_thread(writer->queue, writer->thread, "", 0);
    }
}
