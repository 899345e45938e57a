/* Counts what threads record, for a tracer that limits its cost by this count
 * (see vst__recording_set_pace). The buffer of a thread whose records are
 * counted has its limit set near, so the inline front needs no check of its
 * own. */
#include "record/budget.h"
#include "record/recording.h"

static void pace_count(vst__writer *writer, const vst_pace *pace)
{
    const uint64_t *from = writer->uncounted, *to = writer->hot.cursor;

    writer->uncounted = to;
    if (pace->count != NULL && to != NULL && to > from)
        pace->count(pace->ctx, from, (size_t)(to - from));
}

void vst__writer_begin_pace(vst__writer *writer)
{
    size_t words = writer->recording->pace.words;

    if (writer->pace_words == words)
        return;
    writer->pace_words = words;
    if (writer->chunk.words != NULL)
        vst__writer_set_limit(writer);
}

bool vst__writer_count_pace(vst__writer *writer, vst_kind kind, vst_id id,
                            vst_ticks *now)
{
    const vst_recording *recording = writer->recording;
    vst_pace pace;

    if (recording == NULL)
        return true;
    pace = recording->pace;
    pace_count(writer, &pace);
    if (pace.after_count != NULL)
        pace.after_count(pace.ctx, kind, id);
    if (writer->recording != recording)
        return false;
    if (writer->chunk.words != NULL)
        vst__writer_set_limit(writer);
    if (*now < writer->hot.last) /* pace.after_count() recorded */
        *now = writer->hot.last;
    return true;
}

void vst__recording_set_pace(vst_recording *recording, const vst_pace *pace)
{
    vst__recorder_take();
    recording->pace = *pace;
    vst__recorder_give();
    vst__recording_request_attention(recording);
}

void vst__recording_count_all(vst_recording *recording)
{
    vst__recorder_take();
    for (vst__writer *w = recording->writers; w != NULL; w = w->next)
        if (!w->free_running)
            pace_count(w, &recording->pace);
    vst__recorder_give();
}

/* ---- time of calls that are left out ------------------------------------- */

enum {
    IDS_MAX = VST_ESCAPE_WORDS_MAX - VST_LEFT_OUT_HEAD,
    PASSING_MAX = (1 << (VST_LEFT_OUT_TAKEN - VST_LEFT_OUT_PASSING)) - 1
};

/* Returns the calling thread's writer if it has one, else another writer with
 * room, else NULL. */
static vst__writer *find_writer(const vst_recording *recording, size_t words)
{
    vst__writer *own = (vst__writer *)vst_thread_buffer;

    if (own->recording == recording && own->chunk.words != NULL) {
        if (!vst__writer_has_room(own, words))
            vst__writer_change_chunk(own, words);
        if (own->chunk.words != NULL)
            return own;
    }
    for (vst__writer *w = recording->writers; w != NULL; w = w->next)
        if (!w->free_running && w->thread != NULL && w->chunk.words != NULL &&
            vst__writer_has_room(w, words))
            return w;
    return NULL;
}

static bool pace_store(const vst_recording *recording, uint64_t *payload,
                       uint32_t words)
{
    vst__writer *writer = find_writer(recording, 1 + (size_t)words);

    if (writer == NULL)
        return false;
    if (writer != (vst__writer *)vst_thread_buffer) /* the record took no time
                                                     * of this thread */
        payload[0] &= (UINT64_C(1) << VST_LEFT_OUT_TAKEN) - 1;
    vst__writer_escape(writer, VST_ESCAPE_LEFT_OUT, payload, words);
    return true;
}

bool vst__recording_leave_out(vst_recording *recording,
                              const vst_left_out *left_out, const vst_id *ids,
                              size_t count)
{
    uint64_t payload[VST_ESCAPE_WORDS_MAX] = {
        left_out->flags |
            (uint64_t)(left_out->passing & PASSING_MAX)
                << VST_LEFT_OUT_PASSING |
            (uint64_t)left_out->taken_ns << VST_LEFT_OUT_TAKEN,
        left_out->cpu_ns, left_out->cost_ns, left_out->since,
        left_out->since_cpu_ns};
    bool done = true;

    vst__recorder_take();
    do {
        uint32_t part = count < IDS_MAX ? (uint32_t)count : IDS_MAX;

        for (uint32_t i = 0; i < part; i++)
            payload[VST_LEFT_OUT_HEAD + i] = ids[i];
        done = done && vst__recording_now == recording &&
               pace_store(recording, payload, VST_LEFT_OUT_HEAD + part);
        payload[0] = left_out->flags | VST_LEFT_OUT_MORE;
        ids += part;
        count -= part;
    } while (count != 0);
    vst__recorder_give();
    return done;
}
