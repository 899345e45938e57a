/* The record path behind its inline front: getting a buffer ready, getting a
 * new chunk, times that do not fit, records with a payload. Any thread, each on
 * its own buffer; the lock is taken only to get, change or give back a chunk. */
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "record/queue.h"

enum {
    HEADER_WORDS = 8, /* of the provider's, so that chunks are whole pages */
    FIRST_CHUNK_WORDS = 16 * 1024 / 8 - HEADER_WORDS,
    LAST_CHUNK_WORDS = 1024 * 1024 / 8 - HEADER_WORDS,
    /* Kept free behind `limit`: a TIME escape and the word that needed it, then
     * another TIME and the GAP that ends a thread's last chunk. */
    SLACK_WORDS = 8,
    /* A rest smaller than this is not worth handing on. */
    SPARE_WORDS = 64,
    ARGS_MAX = (VST_ESCAPE_WORDS_MAX - 1) * 8,
};

/* What every thread begins with: never ready, so that the front needs no check
 * for a thread it has not seen. */
static vst_buffer no_buffer = {NULL, NULL, 0, VST_EPOCH_NONE};

VST_THREAD_LOCAL vst_buffer *vst_thread_buffer VST_TLS_MODEL = &no_buffer;

static uint64_t current_epoch(void)
{
    return __atomic_load_n(&vst_recording_epoch, __ATOMIC_RELAXED);
}

/* Single-word stores, so that a reader of the file sees all of one or nothing.
 * x86-64 keeps their order; release keeps the compiler's. */
static void store_word(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static void count_lost(vst__writer *writer)
{
    __atomic_store_n(&writer->lost, writer->lost + 1, __ATOMIC_RELAXED);
}

/* ---- chunks, with the lock held ---------------------------------------- */

static void set_chunk(vst__writer *writer, uint64_t *cursor)
{
    vst_chunk *chunk = &writer->chunk;

    writer->hot.cursor = cursor;
    writer->end = chunk->words + chunk->capacity;
    writer->hot.limit = writer->end - SLACK_WORDS;
    if (writer->hot.limit < cursor)
        writer->hot.limit = cursor;
}

static void clear_chunk(vst__writer *writer)
{
    memset(&writer->chunk, 0, sizeof writer->chunk);
    writer->hot.cursor = writer->hot.limit = writer->end = NULL;
}

static vst_status acquire(const vst__writer *writer, vst_queue *queue,
                          vst_chunk *chunk)
{
    const vst_chunk_provider *provider = queue->provider;

    return provider->acquire(provider->ctx, writer->number, writer->next_words,
                             chunk);
}

static void begin_chunk(vst__writer *writer, const vst_chunk *chunk)
{
    writer->chunk = *chunk;
    writer->segments = 1;
    writer->hot.last = chunk->start;
    if (writer->next_words < LAST_CHUNK_WORDS)
        writer->next_words =
            (writer->next_words + HEADER_WORDS) * 2 - HEADER_WORDS;
    set_chunk(writer, chunk->words);
}

/* Takes over what a thread that ended left of its chunk. */
static bool take_spare(vst__writer *writer, vst_queue *queue)
{
    vst__spare *spare = queue->spares;

    if (!spare)
        return false;
    queue->spares = spare->next;
    writer->chunk = spare->chunk;
    writer->segments = spare->segments + 1;
    writer->next_words = spare->next_words;
    set_chunk(writer, spare->cursor);
    free(spare);
    writer->hot.last = vst_clock_ticks();
    uint64_t payload[2] = {writer->number, writer->hot.last};
    vst__writer_escape(writer, VST_ESCAPE_SEGMENT, payload, 2);
    return true;
}

static void link_writer(vst__writer *writer, vst_queue *queue)
{
    writer->queue = queue;
    writer->previous = NULL;
    writer->next = queue->writers;
    if (writer->next)
        writer->next->previous = writer;
    queue->writers = writer;
}

static void unlink_writer(vst__writer *writer)
{
    vst_queue *queue = writer->queue;

    if (writer->next)
        writer->next->previous = writer->previous;
    if (writer->previous)
        writer->previous->next = writer->next;
    else
        queue->writers = writer->next;
    writer->queue = NULL;
}

bool vst__writer_attach(vst__writer *writer, vst_queue *queue)
{
    vst_chunk chunk;

    link_writer(writer, queue);
    writer->next_words = FIRST_CHUNK_WORDS;
    if (take_spare(writer, queue))
        return true;
    if (acquire(writer, queue, &chunk) != VST_OK)
        return false;
    begin_chunk(writer, &chunk);
    return true;
}

static bool keep_as_spare(vst__writer *writer, vst_queue *queue)
{
    if (writer->end - writer->hot.cursor < SPARE_WORDS)
        return false;
    vst__spare *spare = malloc(sizeof *spare);
    if (!spare)
        return false;
    *spare = (vst__spare){writer->chunk, writer->hot.cursor, writer->segments,
                          writer->next_words, queue->spares};
    queue->spares = spare;
    return true;
}

static void seal(vst_queue *queue, vst_chunk *chunk, const uint64_t *cursor,
                 uint32_t segments)
{
    const vst_chunk_provider *provider = queue->provider;

    provider->seal(provider->ctx, chunk, (size_t)(cursor - chunk->words),
                   segments);
}

void vst__spares_seal(vst_queue *queue)
{
    while (queue->spares) {
        vst__spare *spare = queue->spares;
        queue->spares = spare->next;
        seal(queue, &spare->chunk, spare->cursor, spare->segments);
        free(spare);
    }
}

void vst__spares_abandon(vst_queue *queue)
{
    while (queue->spares) {
        vst__spare *spare = queue->spares;
        queue->spares = spare->next;
        spare->chunk.release(&spare->chunk);
        free(spare);
    }
}

void vst__writer_detach(vst__writer *writer, bool keep_for_others)
{
    vst_queue *queue = writer->queue;

    if (writer->chunk.words &&
        !(keep_for_others && keep_as_spare(writer, queue)))
        seal(queue, &writer->chunk, writer->hot.cursor, writer->segments);
    queue->lost += __atomic_exchange_n(&writer->lost, 0, __ATOMIC_RELAXED);
    clear_chunk(writer);
    writer->hot.epoch = VST_EPOCH_NONE;
    unlink_writer(writer);
}

void vst__writer_abandon(vst__writer *writer)
{
    if (writer->chunk.words)
        writer->chunk.release(&writer->chunk);
    clear_chunk(writer);
    writer->hot.epoch = VST_EPOCH_NONE;
    if (writer->queue)
        unlink_writer(writer);
}

/* ---- the calling thread's writer --------------------------------------- */

static void thread_ends(void *writer)
{
    (void)writer;
    vst_thread_release();
}

__attribute__((constructor)) static void watch_thread_ends(void)
{
    vst__os_thread_exit_hook(thread_ends);
}

static vst__writer *own_writer(void)
{
    if (vst_thread_buffer != &no_buffer)
        return (vst__writer *)vst_thread_buffer;
    vst__writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return NULL;
    writer->hot.epoch = VST_EPOCH_NONE;
    vst_thread_buffer = &writer->hot;
    vst__os_thread_exit_arg(writer);
    return writer;
}

void vst_thread_release(void)
{
    vst__writer *writer = (vst__writer *)vst_thread_buffer;

    if (vst_thread_buffer == &no_buffer)
        return;
    vst_thread_buffer = &no_buffer;
    vst__os_thread_exit_arg(NULL);
    pthread_mutex_lock(&vst__recorder_lock);
    if (writer->queue) {
        vst__queue_forget_thread(writer->queue, vst__os_thread_handle());
        vst__writer_detach(writer, true);
    } else {
        vst__writer_abandon(writer);
    }
    pthread_mutex_unlock(&vst__recorder_lock);
    free(writer);
}

uint64_t vst_thread_handle(void)
{
    return vst__os_thread_handle();
}

/* Links the calling thread into the recording, with a chunk if there is room.
 * False: nothing is recorded now. */
static bool join_recording(vst__writer *writer)
{
    vst_queue *queue = vst__recording;

    if (!queue) {
        vst__writer_abandon(writer);
        return false;
    }
    if (writer->queue == queue)
        return true;
    vst__writer_abandon(writer);
    vst__thread *thread = vst__queue_thread(queue, vst__os_thread_handle());
    if (!thread)
        return false;
    if (!thread->system_tid) {
        thread->system_tid = vst__os_thread_id();
        vst__queue_define_thread(queue, thread, "", 0);
    }
    writer->number = thread->number;
    vst__writer_attach(writer, queue);
    return true;
}

/* Brings the calling thread up to date with the recording in progress, and
 * lets the tracer look at it. */
static bool get_ready(vst__writer *writer, bool free_running)
{
    void (*attention)(void *ctx) = NULL;
    void *ctx = NULL;

    pthread_mutex_lock(&vst__recorder_lock);
    bool ready = join_recording(writer);
    if (ready) {
        writer->hot.epoch = vst_recording_epoch;
        writer->free_running |= free_running;
        attention = writer->queue->attention;
        ctx = writer->queue->attention_ctx;
    }
    pthread_mutex_unlock(&vst__recorder_lock);
    if (attention)
        attention(ctx);
    return ready;
}

bool vst_thread_enter_free(void)
{
    if (current_epoch() == 0 && vst_thread_buffer->epoch == VST_EPOCH_NONE)
        return false;
    vst__writer *writer = own_writer();
    if (!writer)
        return false;
    if (writer->hot.epoch == current_epoch() && writer->free_running)
        return true;
    return get_ready(writer, true);
}

/* ---- words ------------------------------------------------------------- */

/* With the lock held. Where there is no room for more, a gap says that nothing
 * is known of this thread from here on. */
static void change_chunk(vst__writer *writer)
{
    const uint64_t gap_begins = 0;
    vst_chunk chunk;

    if (!writer->queue)
        return;
    bool found = acquire(writer, writer->queue, &chunk) == VST_OK;
    if (!found)
        vst__writer_escape(writer, VST_ESCAPE_GAP, &gap_begins, 1);
    seal(writer->queue, &writer->chunk, writer->hot.cursor, writer->segments);
    clear_chunk(writer);
    if (found)
        begin_chunk(writer, &chunk);
}

static bool has_room(const vst__writer *writer, size_t words)
{
    return (size_t)(writer->end - writer->hot.cursor) >= words + SLACK_WORDS;
}

/* Of a thread that has no memory to join the recording with. */
static void count_lost_outside(void)
{
    pthread_mutex_lock(&vst__recorder_lock);
    if (vst__recording)
        vst__recording->lost++;
    pthread_mutex_unlock(&vst__recorder_lock);
}

/* The calling thread's writer, with room for an escape of `words` payload words
 * and the time before it. NULL: the record is lost, and counted where somebody
 * is recording. */
static vst__writer *writer_with_room(size_t words)
{
    vst__writer *writer = own_writer();

    if (!writer || (writer->hot.epoch != current_epoch() &&
                    !get_ready(writer, false))) {
        count_lost_outside();
        return NULL;
    }
    if (writer->chunk.words && !has_room(writer, words)) {
        pthread_mutex_lock(&vst__recorder_lock);
        change_chunk(writer);
        pthread_mutex_unlock(&vst__recorder_lock);
    }
    if (writer->chunk.words)
        return writer;
    count_lost(writer);
    return NULL;
}

/* The delta of a word stored now; writes a TIME escape first if it does not
 * fit. */
static uint32_t advance_time(vst__writer *writer, vst_ticks now)
{
    uint64_t delta = now - writer->hot.last;

    writer->hot.last = now;
    if (delta >> 32 == 0)
        return (uint32_t)delta;
    store_word(writer->hot.cursor + 1, now);
    store_word(writer->hot.cursor, vst_word_escape(VST_ESCAPE_TIME, 1, 0));
    writer->hot.cursor += 2;
    return 0;
}

void vst_record_slow(vst_kind kind, vst_id id, vst_ticks now)
{
    if (current_epoch() == 0 && vst_thread_buffer->epoch == VST_EPOCH_NONE)
        return;
    vst__writer *writer = writer_with_room(0);
    if (!writer)
        return;
    uint32_t delta = advance_time(writer, now);
    store_word(writer->hot.cursor++, vst_word(kind, id, delta));
}

void vst__writer_escape(vst__writer *writer, vst_escape type,
                        const uint64_t *payload, uint32_t words)
{
    uint32_t delta = advance_time(writer, vst_clock_ticks());

    for (uint32_t i = 0; i < words; i++)
        store_word(writer->hot.cursor + 1 + i, payload[i]);
    store_word(writer->hot.cursor, vst_word_escape(type, words, delta));
    writer->hot.cursor += 1 + words;
}

static void record_escape(vst_escape type, const uint64_t *payload,
                          uint32_t words)
{
    vst__writer *writer = writer_with_room(1 + (size_t)words);

    if (writer)
        vst__writer_escape(writer, type, payload, words);
}

/* `head` and then bytes, padded with zeros to whole words. */
static void record_bytes(vst_escape type, uint64_t head, const char *bytes,
                         size_t length)
{
    uint64_t payload[VST_ESCAPE_WORDS_MAX];
    size_t words = 1 + (length + 7) / 8;

    payload[words - 1] = 0;
    payload[0] = head;
    if (length)
        memcpy(&payload[1], bytes, length);
    record_escape(type, payload, (uint32_t)words);
}

/* Cutting JSON would break it; a note in its place keeps the span. */
static const char *fitting(const char *json_members, size_t *length)
{
    if (*length <= ARGS_MAX)
        return json_members;
    const char *note = "\"args\": \"too long to record\"";
    *length = strlen(note);
    return note;
}

void vst_record_args(const char *json_members, size_t length)
{
    json_members = fitting(json_members, &length);
    record_bytes(VST_ESCAPE_ARGS, length, json_members, length);
}

void vst_record_instant(vst_id id, const char *json_members, size_t length)
{
    json_members = fitting(json_members, &length);
    record_bytes(VST_ESCAPE_INSTANT, (uint64_t)length << 32 | id, json_members,
                 length);
}

void vst_record_counter(vst_id id, double value)
{
    uint64_t payload[2] = {id, 0};

    memcpy(&payload[1], &value, sizeof value);
    record_escape(VST_ESCAPE_COUNTER, payload, 2);
}

void vst_record_begin(vst_id id, uint32_t instance)
{
    uint64_t payload = (uint64_t)instance << 32 | id;

    record_escape(VST_ESCAPE_BEGIN, &payload, 1);
}

void vst_record_end(vst_id id, uint32_t instance)
{
    uint64_t payload = (uint64_t)instance << 32 | id;

    record_escape(VST_ESCAPE_END, &payload, 1);
}

void vst_record_switch(uint64_t stack)
{
    record_escape(VST_ESCAPE_SWITCH, &stack, 1);
}

void vst_record_gap(bool ends)
{
    uint64_t payload = ends;

    record_escape(VST_ESCAPE_GAP, &payload, 1);
}

/* With the lock held. Long stacks go on in further escapes. */
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
        if (writer->chunk.words && !has_room(writer, 1 + (size_t)part))
            change_chunk(writer);
        if (!writer->chunk.words) {
            count_lost(writer);
            return;
        }
        vst__writer_escape(writer, type, payload, part);
        ids += part;
        count -= part;
        type = VST_ESCAPE_STACK_MORE;
    } while (count);
}

void vst_record_stack(const vst_id *ids, size_t count)
{
    vst__writer *writer = writer_with_room(0);

    if (!writer)
        return;
    pthread_mutex_lock(&vst__recorder_lock);
    if (writer->queue)
        vst__writer_stack(writer, ids, count);
    pthread_mutex_unlock(&vst__recorder_lock);
}
