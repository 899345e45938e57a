/* The cost of getting room for records, measured when a thread has filled
 * its chunk, for readers that compensate (costs.h). In CPU time, because the
 * thread does not work longer when other threads run. With the recorder's
 * lock held. */
#include "os/os.h"
#include "record/recording.h"

void vst__writer_change_chunk_timed(vst__writer *writer, size_t words)
{
    vst_recording *recording = writer->recording;
    uint64_t tid = vst__os_thread_id(), began = vst__os_thread_cpu_ns(tid);

    vst__writer_change_chunk(writer, words);
    if (writer->chunk.words == NULL)
        return;
    recording->chunk_ns += vst__os_thread_cpu_ns(tid) - began;
    recording->chunk_words += writer->chunk.capacity;
}

double vst__recording_storage_ns(vst_recording *recording)
{
    double ns = 0;

    vst__recorder_take();
    if (recording->chunk_words != 0)
        ns = (double)recording->chunk_ns / (double)recording->chunk_words;
    vst__recorder_give();
    return ns;
}
