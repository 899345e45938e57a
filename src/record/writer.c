/* A writer is a thread's buffer on its chunk. This file gets a chunk and leaves
 * it, with the recorder's lock held; between these, only the owner stores words
 * (words.c).
 *
 * Checkpoints. If chunks may be dropped, each must be readable without the
 * chunks before it: a run of a thread's words begins with an escape CHECKPOINT
 * and the calls that the runs before left open. To know these calls, the words
 * of a run are folded when the writer leaves the run; writing words costs no
 * more than without checkpoints. */
#include <string.h>

#include "base/heap.h"
#include "record/recording.h"

enum {
    /* words of the provider's header, so that chunks are whole pages */
    HEADER_WORDS = 8,
    FIRST_CHUNK_WORDS = 16 * 1024 / 8 - HEADER_WORDS,
    /* A thread's first chunk with checkpoints is small, because other threads
     * cannot have what one thread holds. */
    FIRST_OF_FEW_WORDS = 4 * 1024 / 8 - HEADER_WORDS,
    LAST_CHUNK_WORDS = 1024 * 1024 / 8 - HEADER_WORDS,
    /* Words kept free behind `limit`: a TIME escape and the word that needed
     * it, then another TIME and the GAP that ends a thread's last chunk. */
    SLACK_WORDS = 8,
    /* Unused parts of chunks smaller than this are not worth keeping. */
    SPARE_WORDS = 64,
    /* With checkpoints: a chunk with a spare part cannot be reused
     * meanwhile. */
    SPARES_MAX = 16,
    CHECKPOINT_WORDS = 4, /* words of the CHECKPOINT escape itself */
    /* Words that precede the first record after a loss. */
    GAP_WORDS = 16,
    /* A thread without a chunk loses this many records before it asks again. */
    ASK_AFTER = 1024,
};

/* ---- runs ---------------------------------------------------------------- */

/* Begins a run. The escape's own word is stored last, so a checkpoint is in the
 * file completely or not at all. Its time is that of the word before, or of the
 * chunk. */
static void begin_run(vst__writer *writer, vst_recording *recording,
                      size_t room)
{
    vst__thread *thread = writer->thread;
    uint64_t *at = writer->hot.cursor;
    size_t words;

    writer->run = NULL;
    if (!recording->checkpoints || thread == NULL)
        return;
    words = vst__fold_emit(&thread->fold, at + CHECKPOINT_WORDS, room);
    vst_store_word(at + 1, words);
    vst_store_word(at + 2, thread->runs++);
    vst_store_word(at + 3, thread->words);
    vst_store_word(at, vst_word_escape(VST_ESCAPE_CHECKPOINT, 3, 0));
    writer->hot.cursor = writer->run = at + CHECKPOINT_WORDS + words;
    writer->chunk.overhead += CHECKPOINT_WORDS + words;
    thread->place = writer->chunk.place;
    thread->sequence = writer->chunk.sequence;
    if (writer->hot.limit < writer->hot.cursor)
        writer->hot.limit = writer->hot.cursor;
}

/* Returns whether the storage is gone; the words may have any value then. */
static bool is_gone(const vst_recording *recording)
{
    const vst_chunk_provider *provider = recording->provider;

    return provider->is_gone != NULL && provider->is_gone(provider->ctx);
}

/* Makes sure that no later word refers to an earlier one. */
static void forget_recent(vst__writer *writer)
{
    writer->first = writer->hot.floor = writer->hot.cursor;
    if (writer->recent != NULL)
        memset(writer->recent, 0, VST_RECENT_PLACES * sizeof *writer->recent);
}

static void leave_run(vst__writer *writer)
{
    vst__thread *thread = writer->thread;
    size_t count;

    if (writer->run == NULL || thread == NULL || is_gone(writer->recording))
        return;
    count = (size_t)(writer->hot.cursor - writer->run);
    vst__fold_words(&thread->fold, writer->run, count);
    thread->words += count;
    writer->run = NULL;
}

/* From here on nothing is known of the thread, and there is no chunk to say so.
 * The next checkpoint says so, as if words had been dropped. */
static void lose_track(vst__thread *thread)
{
    const uint64_t gap[2] = {vst_word_escape(VST_ESCAPE_GAP, 1, 0), 0};

    if (thread == NULL)
        return;
    vst__fold_words(&thread->fold, gap, 2);
    thread->words += 2;
}

/* ---- chunks -------------------------------------------------------------- */

/* With a scope, every record takes the slow path, which asks the scope. */
void vst__writer_set_limit(vst__writer *writer)
{
    writer->hot.limit = writer->end - SLACK_WORDS;
    vst__writer_limit_pace(writer);
    if (writer->scope != NULL || writer->hot.limit < writer->hot.cursor)
        writer->hot.limit = writer->hot.cursor;
}

static void set_chunk(vst__writer *writer, uint64_t *cursor)
{
    writer->uncounted = writer->hot.cursor = cursor;
    writer->hot.chunks++;
    writer->end = writer->chunk.words + writer->chunk.capacity;
    vst__writer_set_limit(writer);
}

static void clear_chunk(vst__writer *writer)
{
    memset(&writer->chunk, 0, sizeof writer->chunk);
    writer->hot.cursor = writer->hot.limit = writer->end = NULL;
    writer->hot.floor = NULL;
}

static void writer_seal(vst_recording *recording, vst_chunk *chunk,
                        const uint64_t *cursor, uint32_t segments)
{
    const vst_chunk_provider *provider = recording->provider;

    recording->lost += provider->seal(
        provider->ctx, chunk, (size_t)(cursor - chunk->words), segments);
}

/* Marks waiting threads whose last run was dropped. */
static void mark_gone(vst_recording *recording)
{
    const vst_chunk_provider *provider = recording->provider;

    for (vst__thread *t = recording->threads; t != NULL; t = t->next)
        if (!t->writes && t->place != 0 &&
            !provider->is_kept(provider->ctx, t->place, t->sequence)) {
            t->place = 0;
            t->gone = !vst__fold_is_empty(&t->fold);
            recording->has_gone |= t->gone;
        }
}

/* Returns the smallest fresh chunk with room for a record of `need` words
 * behind a checkpoint, which may be cut. */
static size_t least_words(size_t need)
{
    return CHECKPOINT_WORDS + need + 2 * SLACK_WORDS;
}

/* Returns the size that has room for a whole checkpoint and for the records
 * that follow. */
static size_t wanted_words(const vst__writer *writer,
                           const vst_recording *recording, size_t need)
{
    size_t words = least_words(need);

    if (recording->checkpoints && writer->thread != NULL)
        words += 2 * vst__fold_size(&writer->thread->fold);
    if (words > LAST_CHUNK_WORDS)
        words = LAST_CHUNK_WORDS;
    return words > writer->next_words ? words : writer->next_words;
}

static vst_status writer_acquire(const vst__writer *writer,
                                 vst_recording *recording, size_t need,
                                 vst_chunk *chunk)
{
    const vst_chunk_provider *provider = recording->provider;
    size_t words = wanted_words(writer, recording, need);

    vst_status status = provider->acquire(provider->ctx, writer->number, words,
                                          least_words(need), chunk);
    if (status != VST_OK && recording->checkpoints &&
        recording->spares != NULL) {
        /* Spares can be reused once they are sealed. */
        vst__spares_seal(recording);
        status = provider->acquire(provider->ctx, writer->number, words,
                                   least_words(need), chunk);
    }
    if (status == VST_OK && recording->checkpoints && chunk->dropped_waiting)
        mark_gone(recording);
    return status;
}

static void begin_chunk(vst__writer *writer, vst_recording *recording,
                        size_t need, const vst_chunk *chunk)
{
    size_t room;

    writer->chunk = *chunk;
    writer->segments = 1;
    writer->left_at = writer->hot.last;
    writer->hot.last = chunk->start;
    if (writer->next_words < LAST_CHUNK_WORDS)
        writer->next_words =
            (writer->next_words + HEADER_WORDS) * 2 - HEADER_WORDS;
    set_chunk(writer, chunk->words);
    room = chunk->capacity / 2;
    if (room > chunk->capacity - least_words(need))
        room = chunk->capacity - least_words(need);
    begin_run(writer, recording, room);
    forget_recent(writer);
}

/* Returns whether a spare has room for a whole checkpoint and the record that
 * follows. A spare whose chunk is gone is sealed, so that its words count as
 * lost. */
static bool is_worth_taking(const vst__writer *writer,
                            const vst_recording *recording,
                            const vst__spare *spare)
{
    const vst_chunk *chunk = &spare->chunk;
    size_t room = (size_t)(chunk->words + chunk->capacity - spare->cursor);

    if (is_gone(recording))
        return false;
    if (!recording->checkpoints || writer->thread == NULL)
        return true;
    return room >= SPARE_WORDS + 2 * vst__fold_size(&writer->thread->fold);
}

static vst__spare *pop_spare(vst_recording *recording)
{
    vst__spare *spare = recording->spares;

    if (spare != NULL) {
        recording->spares = spare->next;
        recording->spare_count--;
    }
    return spare;
}

/* Takes over the unused part of a chunk, left by a thread that ended. */
static bool take_spare(vst__writer *writer, vst_recording *recording)
{
    vst__spare *spare = pop_spare(recording);
    uint64_t payload[2];

    if (spare == NULL)
        return false;
    if (!is_worth_taking(writer, recording, spare)) {
        writer_seal(recording, &spare->chunk, spare->cursor, spare->segments);
        vst__free(spare);
        return false;
    }
    writer->chunk = spare->chunk;
    writer->segments = spare->segments + 1;
    writer->next_words = spare->next_words;
    set_chunk(writer, spare->cursor);
    vst__free(spare);
    writer->left_at = writer->hot.last;
    writer->hot.last = vst_clock_ticks();
    payload[0] = writer->number;
    payload[1] = writer->hot.last;
    vst__writer_escape(writer, VST_ESCAPE_SEGMENT, payload, 2);
    writer->chunk.overhead += 3;
    begin_run(writer, recording,
              (size_t)(writer->end - writer->hot.cursor) / 2);
    forget_recent(writer);
    return true;
}

static void link_writer(vst__writer *writer, vst_recording *recording)
{
    writer->recording = recording;
    writer->previous = NULL;
    writer->next = recording->writers;
    if (writer->next != NULL)
        writer->next->previous = writer;
    recording->writers = writer;
    if (writer->thread != NULL)
        writer->thread->writes = true;
}

static void unlink_writer(vst__writer *writer)
{
    vst_recording *recording = writer->recording;

    if (writer->next != NULL)
        writer->next->previous = writer->previous;
    if (writer->previous != NULL)
        writer->previous->next = writer->next;
    else
        recording->writers = writer->next;
    writer->recording = NULL;
    if (writer->thread != NULL)
        writer->thread->writes = false;
    writer->thread = NULL;
}

static bool writer_attach(vst__writer *writer, vst_recording *recording)
{
    vst_chunk chunk;

    link_writer(writer, recording);
    writer->hot.shortest = recording->shortest;
    writer->hot.due = 0;
    writer->next_words =
        recording->checkpoints ? FIRST_OF_FEW_WORDS : FIRST_CHUNK_WORDS;
    writer->run = NULL;
    writer->asks_again = recording->checkpoints;
    writer->asks_in = 0;
    writer->lost_before = writer->lost;
    /* A writer that belongs to no thread has chunks of its own. */
    if (writer->thread != NULL && take_spare(writer, recording))
        return true;
    if (writer_acquire(writer, recording, 0, &chunk) != VST_OK)
        return false;
    begin_chunk(writer, recording, 0, &chunk);
    return true;
}

/* Between a thread's first store into a chunk that is gone and its next look
 * at the epoch, the thread may end. If such a chunk became a spare, what the
 * thread stored there would not be counted as lost before the recording
 * stops. */
static bool keep_as_spare(vst__writer *writer, vst_recording *recording)
{
    vst__spare *spare;

    if (is_gone(recording) || writer->end - writer->hot.cursor < SPARE_WORDS ||
        (recording->checkpoints && recording->spare_count >= SPARES_MAX))
        return false;
    spare = vst__alloc(sizeof *spare);
    if (spare == NULL)
        return false;
    *spare = (vst__spare){writer->chunk, writer->hot.cursor, writer->segments,
                          writer->next_words, recording->spares};
    recording->spares = spare;
    recording->spare_count++;
    return true;
}

void vst__spares_seal(vst_recording *recording)
{
    vst__spare *spare;

    while ((spare = pop_spare(recording)) != NULL) {
        writer_seal(recording, &spare->chunk, spare->cursor, spare->segments);
        vst__free(spare);
    }
}

void vst__spares_abandon(vst_recording *recording)
{
    vst__spare *spare;

    while ((spare = pop_spare(recording)) != NULL) {
        spare->chunk.release(&spare->chunk);
        vst__free(spare);
    }
}

void vst__writer_detach(vst__writer *writer, bool keep_for_others)
{
    vst_recording *recording = writer->recording;

    vst__writer_write_left_out(writer);
    if (keep_for_others)
        leave_run(writer);
    /* a thread that ended has no writer by now */
    if (keep_for_others && writer->thread != NULL)
        writer->chunk.has_waiting = true;
    if (writer->chunk.words != NULL &&
        !(keep_for_others && keep_as_spare(writer, recording)))
        writer_seal(recording, &writer->chunk, writer->hot.cursor,
                    writer->segments);
    recording->lost += __atomic_exchange_n(&writer->lost, 0, __ATOMIC_RELAXED);
    clear_chunk(writer);
    vst__writer_unready(writer);
    unlink_writer(writer);
}

void vst__writer_abandon(vst__writer *writer)
{
    vst__writer_give_back(writer);
    clear_chunk(writer);
    vst__writer_unready(writer);
    writer->hot.left_out = writer->left_out_written = 0;
    if (writer->recording != NULL)
        unlink_writer(writer);
}

void vst__writer_leave_what_is_gone(vst__writer *writer)
{
    if (writer->chunk.words == NULL || !is_gone(writer->recording))
        return;
    writer_seal(writer->recording, &writer->chunk, writer->hot.cursor,
                writer->segments);
    clear_chunk(writer);
    writer->run = NULL;
    writer->asks_again = false;
}

/* Writes again the calls of threads that wait in a call and have no writer,
 * because they recorded nothing since their last checkpoint. Otherwise they
 * would be missing from the chunks that are kept. */
static void writer_repeat_calls(vst_recording *recording)
{
    if (recording->is_repeating || !recording->has_gone)
        return;
    recording->is_repeating = true;
    /* these writes may drop the chunks of other threads */
    recording->has_gone = false;
    for (vst__thread *t = recording->threads; t != NULL; t = t->next) {
        vst__writer writer = {
            .hot = VST_BUFFER_NONE, .number = t->number, .thread = t};
        if (!t->gone)
            continue;
        t->gone = false;
        writer_attach(&writer, recording);
        vst__writer_detach(&writer, true);
    }
    recording->is_repeating = false;
}

bool vst__writer_attach(vst__writer *writer, vst_recording *recording)
{
    bool attached = writer_attach(writer, recording);

    writer_repeat_calls(recording);
    return attached;
}

/* Seal the old chunk first: if chunks are few, the provider gives this one
 * back. */
static void change_run(vst__writer *writer, size_t need)
{
    vst_recording *recording = writer->recording;
    vst_chunk chunk;

    leave_run(writer);
    writer_seal(recording, &writer->chunk, writer->hot.cursor,
                writer->segments);
    if (writer->chunk.is_slow)
        writer->next_words = writer->chunk.capacity;
    clear_chunk(writer);
    if (writer_acquire(writer, recording, need, &chunk) == VST_OK) {
        begin_chunk(writer, recording, need, &chunk);
        writer_repeat_calls(recording);
        return;
    }
    lose_track(writer->thread);
    writer->asks_in = ASK_AFTER;
    writer->lost_before = writer->lost;
}

void vst__writer_ask_again(vst__writer *writer, size_t need)
{
    const uint64_t gap_ends = 1;
    vst_chunk chunk;
    uint64_t lost;

    writer->asks_in = ASK_AFTER;
    need += GAP_WORDS;
    if (writer->recording == NULL ||
        writer_acquire(writer, writer->recording, need, &chunk) != VST_OK)
        return;
    lost = writer->lost - writer->lost_before;
    begin_chunk(writer, writer->recording, need, &chunk);
    /* The calls that were open then are not known any more. */
    if (lost)
        vst__writer_escape(writer, VST_ESCAPE_LOST, &lost, 1);
    vst__writer_escape(writer, VST_ESCAPE_GAP, &gap_ends, 1);
    vst__writer_escape(writer, VST_ESCAPE_STACK, NULL, 0);
    writer_repeat_calls(writer->recording);
}

/* If there is no room for another chunk, a gap says that nothing is known of
 * this thread from here on. */
void vst__writer_change_chunk(vst__writer *writer, size_t need)
{
    const uint64_t gap_begins = 0;
    vst_chunk chunk;
    bool found;

    if (writer->recording == NULL) {
        /* The recording stopped before this thread had the lock. */
        vst__writer_abandon(writer);
        return;
    }
    if (writer->run != NULL ||
        (writer->thread == NULL && writer->recording->checkpoints)) {
        change_run(writer, need);
        return;
    }
    found = writer_acquire(writer, writer->recording, need, &chunk) == VST_OK;
    if (!found)
        vst__writer_escape(writer, VST_ESCAPE_GAP, &gap_begins, 1);
    writer_seal(writer->recording, &writer->chunk, writer->hot.cursor,
                writer->segments);
    clear_chunk(writer);
    if (found)
        begin_chunk(writer, writer->recording, need, &chunk);
}

bool vst__writer_has_room(const vst__writer *writer, size_t words)
{
    return (size_t)(writer->end - writer->hot.cursor) >= words + SLACK_WORDS;
}
