/* A trace file that comes into being piece by piece, cut at any place a writer
 * can have reached: the file has some chunks, and each chunk has some of its
 * records. */
#ifndef VST_TESTS_GROWING_FILE_H
#define VST_TESTS_GROWING_FILE_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/stream.h"
#include "view_random.h"

typedef struct growing {
    view_random random;
    builder whole, now; /* `now` has the final file's size and chunks */
    size_t chunks[256]; /* offset of each chunk */
    size_t words[256];  /* words of each chunk that are in the file by now */
    size_t chunk_count, shown;
    char path[64];
    int fd;
} growing;

static inline vst_chunk_header *growing_chunk(builder *b, size_t offset)
{
    return (vst_chunk_header *)(void *)(b->bytes + offset);
}

static inline void growing_find_chunks(growing *self)
{
    size_t at = VST_FILE_HEADER_SIZE;

    while (at < self->whole.size) {
        self->chunks[self->chunk_count++] = at;
        at += growing_chunk(&self->whole, at)->size;
    }
}

/* Returns whether the thread of a chunk continues in a later chunk that is in
 * the file. */
static inline bool growing_was_left(growing *self, size_t chunk)
{
    const vst_chunk_header *left =
        growing_chunk(&self->whole, self->chunks[chunk]);

    for (size_t i = chunk + 1; i < self->shown; i++) {
        const vst_chunk_header *other =
            growing_chunk(&self->whole, self->chunks[i]);
        if (other->kind == left->kind && other->thread == left->thread)
            return true;
    }
    return false;
}

/* Makes some or all missing records of a chunk visible. Seals the chunk if its
 * thread has left the chunk. */
static inline void growing_records(growing *self, size_t chunk)
{
    const vst_chunk_header *whole =
        growing_chunk(&self->whole, self->chunks[chunk]);
    vst_chunk_header *now = growing_chunk(&self->now, self->chunks[chunk]);
    const uint64_t *from = (const uint64_t *)(const void *)(whole + 1);
    size_t capacity = (whole->size - sizeof *whole) / 8;
    size_t *words = &self->words[chunk];
    bool left =
        growing_was_left(self, chunk) || whole->kind != VST_CHUNK_RECORDS;
    size_t wanted = left ? capacity : random_number(&self->random) % 400;

    while (*words < capacity && from[*words] != 0 && wanted != 0) {
        *words += vst__stream_words(from[*words]);
        wanted -= wanted == capacity ? 0 : 1;
    }
    memcpy(now + 1, from, (left ? capacity : *words) * 8);
    if (left)
        *now = *whole;
}

static inline void growing_more(growing *self)
{
    size_t more = random_number(&self->random) % 4;

    while (more-- != 0 && self->shown < self->chunk_count) {
        vst_chunk_header *now =
            growing_chunk(&self->now, self->chunks[self->shown]);

        *now = *growing_chunk(&self->whole, self->chunks[self->shown++]);
        now->used = 0;
        now->last = 0;
    }
    for (size_t i = 0; i < self->shown; i++)
        growing_records(self, i);
}

static inline void growing_write(const growing *self, const builder *b)
{
    if (pwrite(self->fd, b->bytes, b->size, 0) != (ssize_t)b->size)
        abort();
}

static inline void growing_begin(growing *self, const view_random *random)
{
    memset(self, 0, sizeof *self);
    self->random = *random;
    random_trace(&self->whole, &self->random);
    growing_find_chunks(self);
    self->now = self->whole;
    self->now.bytes = calloc(1, self->whole.size);
    if (self->now.bytes == NULL)
        abort();
    memcpy(self->now.bytes, self->whole.bytes, VST_FILE_HEADER_SIZE);
    builder_header(&self->now)->state = VST_FILE_RECORDING;
    builder_header(&self->now)->size = 0;
    strcpy(self->path, "/tmp/vestige-follow-XXXXXX");
    self->fd = mkstemp(self->path);
    growing_more(self);
    growing_write(self, &self->now);
}

static inline void growing_end(growing *self)
{
    close(self->fd);
    unlink(self->path);
    builder_free(&self->whole);
    free(self->now.bytes);
}

#endif
