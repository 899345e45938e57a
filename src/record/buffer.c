/* The record path behind its inline front: getting the calling thread's buffer
 * ready, and records that are rare or carry a payload. Any thread, each on its
 * own buffer; the lock is taken only to get, change or give back a chunk. */
#include <string.h>

#include "base/heap.h"
#include "os/os.h"
#include "record/lock_waits.h"
#include "record/recording.h"
#include "record/switches.h"

enum {
    HEADS_MAX = 2, /* words of an escape before its bytes */
    ARGS_MAX = (VST_ESCAPE_WORDS_MAX - HEADS_MAX) * 8
};

/* Every thread begins with this writer. It is never ready, so the inline front
 * needs no extra check for a thread that has not recorded yet. */
static vst__writer nobody = {.hot = VST_BUFFER_NONE,
                             .memory_epoch = VST_EPOCH_NONE};
#define no_buffer nobody.hot

VST_THREAD_LOCAL vst_buffer *vst_thread_buffer VST_TLS_MODEL = &no_buffer;

/* Returns the epoch. A thread that gets ready calls this before it looks
 * whether its chunk is gone, so that look is never older than the epoch. Pairs
 * with vst__recording_chunks_are_gone. */
static uint64_t epoch_first(void)
{
    return __atomic_load_n(&vst_recording_epoch, __ATOMIC_ACQUIRE);
}

/* ---- the calling thread's writer ----------------------------------------- */

static vst__os_exit exit_hook;

static void buffer_thread_ends(void *writer)
{
    (void)writer;
    vst_thread_release();
}

__attribute__((constructor)) static void watch_thread_ends(void)
{
    vst__os_thread_exit_hook(&exit_hook, buffer_thread_ends);
}

static vst__writer *own_writer(void)
{
    vst__writer *writer;
    char *block;

    if (vst_thread_buffer != &no_buffer)
        return (vst__writer *)vst_thread_buffer;
    block = vst__calloc(1, sizeof *writer + VST_CACHE_LINE);
    if (block == NULL)
        return NULL;
    writer = (void *)(block + (-(uintptr_t)block & (VST_CACHE_LINE - 1)));
    writer->block = block;
    vst__writer_unready(writer);
    vst_thread_buffer = &writer->hot;
    vst__os_thread_exit_arg(exit_hook, writer);
    return writer;
}

void vst_thread_release(void)
{
    vst__writer *writer = (vst__writer *)vst_thread_buffer;

    if (vst_thread_buffer == &no_buffer)
        return;
    vst_thread_buffer = &no_buffer;
    vst__os_thread_exit_arg(exit_hook, NULL);
    vst__recorder_take();
    vst__lock_waits_leave(writer);
    if (writer->recording != NULL)
        vst__writer_write_left_out(writer);
    writer->thread = NULL;
    if (writer->recording != NULL) {
        vst__recording_forget_thread(writer->recording,
                                     vst__os_thread_handle());
        vst__writer_detach(writer, true);
    } else {
        vst__writer_abandon(writer);
    }
    vst__recorder_give();
    vst__free(writer->recent);
    vst__scope_free(writer->scope);
    vst__free(writer->block);
}

uint64_t vst_thread_handle(void)
{
    return vst__os_thread_handle();
}

/* Links the calling thread into the recording and gives it a chunk if there is
 * room. `asked`: when the thread asked for the recorder's lock. Returns false
 * if nothing is recorded now. */
static bool join_recording(vst__writer *writer, vst_ticks asked)
{
    vst_recording *recording = vst__recording_now;
    vst__thread *thread;
    uint64_t tid;

    if (recording == NULL) {
        vst__writer_abandon(writer);
        return false;
    }
    if (writer->recording == recording) {
        vst__writer_leave_what_is_gone(writer);
        return true;
    }
    vst__writer_abandon(writer);
    tid = vst__os_thread_id();
    thread = vst__recording_thread(recording, vst__os_thread_handle(), tid);
    if (thread == NULL)
        return false;
    thread->own_tid = tid;
    if (!thread->system_tid) {
        thread->system_tid = tid;
        vst__recording_define_thread(recording, thread, "", 0);
    }
    if (!vst__writer_begin_scope(writer, recording, thread))
        return false;
    writer->number = thread->number;
    writer->thread = thread;
    vst__writer_attach(writer, recording);
    vst__switches_watch_here(recording, thread, writer->joins_at, asked);
    if (recording->switches.wanted)
        vst__lock_waits_join(writer);
    return true;
}

/* Makes the calling thread ready for the recording in progress, and calls the
 * tracer's attention function. */
static bool get_ready(vst__writer *writer, bool free_running)
{
    void (*attention)(void *ctx) = NULL;
    void *ctx = NULL;
    vst_ticks asked = vst_clock_ticks();
    uint64_t epoch;
    bool ready;

    vst__recorder_take();
    epoch = epoch_first();
    ready = join_recording(writer, asked);
    if (!ready && !free_running && vst__recording_now != NULL)
        vst__recording_now->lost++; /* out of memory: the record is lost */
    if (ready) {
        writer->hot.epoch = epoch;
        writer->free_running |= free_running;
        if (writer->free_running)
            writer->hot.free_epoch = epoch;
        vst__writer_begin_pace(writer);
        attention = writer->recording->attention;
        ctx = writer->recording->attention_ctx;
    }
    vst__recorder_give();
    vst__switches_help();
    if (attention != NULL)
        attention(ctx);
    return ready;
}

/* Like get_ready, for records of memory, which may come from inside an
 * allocator: the tracer's attention function is called later, at the thread's
 * next record of another kind. */
static bool get_ready_for_memory(vst__writer *writer)
{
    uint64_t epoch;
    bool ready;

    if (writer->recent == NULL)
        writer->recent = vst__calloc(VST_RECENT_PLACES, sizeof *writer->recent);
    vst__recorder_take();
    epoch = epoch_first();
    ready = writer->recent != NULL && join_recording(writer, 0);
    if (ready) {
        vst_recording *recording = writer->recording;
        if (!recording->has_memory) {
            const vst_entry entry = {.kind = VST_ENTRY_MEMORY};
            recording->has_memory =
                recording->provider->define(recording->provider->ctx, &entry) ==
                VST_OK;
        }
        writer->memory_epoch = epoch;
        writer->free_running = true;
    }
    vst__recorder_give();
    return ready;
}

bool vst_thread_enter_free(void)
{
    vst__writer *writer;

    if (VST_LIKELY(vst_thread_buffer->free_epoch == vst_record_epoch()))
        return true;
    if (vst_record_epoch() == 0 && vst_thread_buffer->epoch == VST_EPOCH_NONE)
        return false;
    writer = own_writer();
    return writer != NULL && get_ready(writer, true);
}

/* ---- records ------------------------------------------------------------- */

/* Counts a record lost by a thread that could not join the recording because
 * memory ran out. */
static void count_lost_outside(void)
{
    vst__recorder_take();
    if (vst__recording_now != NULL)
        vst__recording_now->lost++;
    vst__recorder_give();
}

/* Counts a lost record, unless the recording ended while the tracer's attention
 * function ran. The epoch alone does not show that: the epoch also changes when
 * the file was cut. */
static void count_lost(vst__writer *writer)
{
    vst__recorder_take();
    if (writer->recording != NULL && writer->recording == vst__recording_now)
        vst__writer_count_lost(writer);
    vst__recorder_give();
}

/* Makes room in a writer that is ready, and stores the waits that the thread
 * has kept. Returns NULL if there is no chunk; the record is lost then. */
static vst__writer *buffer_make_room(vst__writer *writer, size_t words)
{
    size_t kept = vst__lock_waits_kept();

    words += kept;
    if (writer->chunk.words != NULL && !vst__writer_has_room(writer, words)) {
        vst__recorder_take();
        vst__writer_change_chunk_timed(writer, words);
        vst__recorder_give();
    }
    if (writer->chunk.words == NULL && writer->asks_again &&
        writer->asks_in-- == 0) {
        vst__recorder_take();
        vst__writer_ask_again(writer, words);
        vst__recorder_give();
    }
    if (writer->chunk.words == NULL) {
        if (writer->hot.epoch == vst_record_epoch() ||
            writer->memory_epoch == vst_record_epoch())
            vst__writer_count_lost(writer);
        else
            count_lost(writer);
        return NULL;
    }
    if (kept != 0) {
        vst__lock_waits_store(writer);
        vst__writer_set_limit(writer);
    }
    return writer;
}

/* Returns the calling thread's writer, with room for an escape of `words`
 * payload words and the TIME escape before it. Returns NULL if the record is
 * lost; the loss is counted if a recording is in progress. */
static vst__writer *writer_with_room(size_t words)
{
    vst__writer *writer = own_writer();

    if (writer == NULL) {
        count_lost_outside();
        return NULL;
    }
    if (writer->hot.epoch != vst_record_epoch() && !get_ready(writer, false))
        return NULL;
    vst__switches_help();
    return buffer_make_room(writer, words);
}

vst__writer *vst__writer_for_memory(size_t words)
{
    vst__writer *writer = (vst__writer *)vst_thread_buffer;

    if (vst_record_epoch() == 0 && writer->memory_epoch == VST_EPOCH_NONE)
        return NULL;
    if (vst__is_forking)
        return NULL;
    writer = own_writer();
    if (writer == NULL || (writer->memory_epoch != vst_record_epoch() &&
                           !get_ready_for_memory(writer))) {
        count_lost_outside();
        return NULL;
    }
    return buffer_make_room(writer, words);
}

void vst__record_taken(vst_kind kind, vst_id id, vst_ticks now)
{
    vst__writer *ready = writer_with_room(0);

    if (ready != NULL)
        vst__writer_word(ready, kind, id, now);
}

/* A thread that joins the recording gets its scope in get_ready. */
void vst_record_slow(vst_kind kind, vst_id id, vst_ticks now)
{
    vst__writer *writer, *ready;
    bool joins = vst_thread_buffer->epoch != vst_record_epoch();

    if (vst_record_epoch() == 0 && vst_thread_buffer->epoch == VST_EPOCH_NONE)
        return;
    writer = own_writer();
    if (!joins && writer->scope != NULL &&
        !vst__scope_takes(writer->scope, kind, id))
        return;
    if (!joins && writer->pace_words != 0 &&
        !vst__writer_count_pace(writer, kind, id, &now))
        return;
    if (!joins && now >= writer->hot.due) {
        vst__writer_look(writer, kind, &now);
        joins = vst_thread_buffer->epoch != vst_record_epoch();
    }
    if (writer != NULL)
        writer->joins_at = now;
    ready = writer_with_room(0);
    if (writer != NULL)
        writer->joins_at = 0;
    if (joins && writer != NULL && writer->scope != NULL &&
        !vst__scope_takes(writer->scope, kind, id))
        return;
    if (ready != NULL)
        vst__writer_word(ready, kind, id, now);
}

void vst__record_escape(vst_escape type, const uint64_t *payload,
                        uint32_t words)
{
    vst__writer *writer = writer_with_room(1 + (size_t)words);
    vst__scope *scope = ((vst__writer *)vst_thread_buffer)->scope;

    if (scope != NULL && !vst__scope_takes_escape(scope, type, payload))
        return;
    if (writer != NULL)
        vst__writer_escape(writer, type, payload, words);
}

void vst__record_behind(vst_escape type, const uint64_t *payload,
                        uint32_t words)
{
    vst_buffer *buffer = vst_thread_buffer;
    uint64_t *at = buffer->cursor;

    if (buffer->epoch == VST_EPOCH_NONE || buffer->limit - at <= (int)words) {
        vst__record_escape(type, payload, words);
        return;
    }
    for (uint32_t i = 0; i < words; i++)
        vst_store_word(at + 1 + i, payload[i]);
    vst_store_word(at, vst_word_escape(type, words, 0));
    buffer->cursor = buffer->floor = at + 1 + words;
}

/* Records one or two head words, then bytes, padded with zeros to whole words.
 */
static void record_bytes(vst_escape type, const uint64_t *heads, size_t count,
                         const char *bytes, size_t length)
{
    uint64_t payload[VST_ESCAPE_WORDS_MAX];
    size_t words = count + (length + 7) / 8;

    payload[words - 1] = 0;
    memcpy(payload, heads, count * sizeof *heads);
    if (length)
        memcpy(&payload[count], bytes, length);
    vst__record_escape(type, payload, (uint32_t)words);
}

/* Returns the members, or a short note if they do not fit: JSON that is cut
 * would be invalid, and the note keeps the span. */
static const char *buffer_fitting(const char *json_members, size_t *length)
{
    const char *note;

    if (*length <= ARGS_MAX)
        return json_members;
    note = "\"args\": \"too long to record\"";
    *length = strlen(note);
    return note;
}

void vst_record_args(const char *json_members, size_t length)
{
    uint64_t head;

    json_members = buffer_fitting(json_members, &length);
    head = length;
    record_bytes(VST_ESCAPE_ARGS, &head, 1, json_members, length);
}

void vst_record_instant(vst_id id, const char *json_members, size_t length)
{
    uint64_t head;

    json_members = buffer_fitting(json_members, &length);
    head = (uint64_t)length << 32 | id;
    record_bytes(VST_ESCAPE_INSTANT, &head, 1, json_members, length);
}

void vst_record_counter(vst_id id, double value)
{
    uint64_t payload[2] = {id, 0};

    memcpy(&payload[1], &value, sizeof value);
    vst__record_escape(VST_ESCAPE_COUNTER, payload, 2);
}

void vst_record_begin(vst_id id, uint32_t instance)
{
    uint64_t payload = (uint64_t)instance << 32 | id;

    vst__record_escape(VST_ESCAPE_BEGIN, &payload, 1);
}

void vst_record_end(vst_id id, uint32_t instance)
{
    uint64_t payload = (uint64_t)instance << 32 | id;

    vst__record_escape(VST_ESCAPE_END, &payload, 1);
}

void vst_record_end_args(vst_id id, uint32_t instance, const char *json_members,
                         size_t length)
{
    uint64_t heads[HEADS_MAX] = {(uint64_t)instance << 32 | id, 0};

    json_members = buffer_fitting(json_members, &length);
    heads[1] = length;
    record_bytes(VST_ESCAPE_END, heads, HEADS_MAX, json_members, length);
}

void vst__record_end_inside(vst_id id, uint32_t instance)
{
    const uint64_t payload[2] = {(uint64_t)instance << 32 | id, 1};

    vst__record_escape(VST_ESCAPE_END, payload, 2);
}

void vst__record_switch(uint64_t stack)
{
    vst__record_escape(VST_ESCAPE_SWITCH, &stack, 1);
}

void vst__record_gap(bool ends)
{
    uint64_t payload = ends;

    vst__record_escape(VST_ESCAPE_GAP, &payload, 1);
}

void vst__record_stack(const vst_id *ids, size_t count)
{
    vst__writer *writer = writer_with_room(0);

    if (writer == NULL)
        return;
    vst__recorder_take();
    if (writer->recording != NULL)
        vst__record_open_calls(writer, ids, count);
    vst__recorder_give();
}
