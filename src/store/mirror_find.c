/* The chunks of the local file, and what is new in them: see mirror_parts.h. In
 * a bounded file, chunks are used again, so each pass finds all of them. */
#include "store/mirror_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "os/os.h"

enum { LOOK = 16 * 1024 }; /* so many zeros end the words of an open chunk */

/* ---- bytes --------------------------------------------------------------- */

int vst__mirror_read(const vst__mirror *self, void *bytes, size_t count,
                     uint64_t offset)
{
    size_t got;
    int failed = vst__os_file_read(self->from, bytes, count, offset, &got);

    if (failed == 0)
        memset((char *)bytes + got, 0, count - got);
    return failed;
}

int vst__mirror_read_chunk(int fd, uint64_t place, vst_chunk_header *header,
                           bool *valid)
{
    int failed, tries = 2;
    size_t got;

    do {
        memset(header, 0, sizeof *header);
        failed = vst__os_file_read(fd, header, sizeof *header, place, &got);
        *valid =
            failed == 0 && got == sizeof *header && vst__chunk_is_valid(header);
    } while (failed == 0 && !*valid && header->magic != 0 && --tries != 0);
    return failed;
}

/* ---- finding chunks ------------------------------------------------------ */

static int mirror_add(vst__mirror *self, const vst__mirror_part *found)
{
    vst__mirror_part *parts =
        vst__grow(self->parts, &self->capacity, self->count + 1, sizeof *parts);

    if (parts == NULL)
        return ENOMEM;
    self->parts = parts;
    parts[self->count++] = *found;
    return 0;
}

/* Finds out whether the target of an earlier copier has the chunk. Its header
 * was written after its words. */
static int look_at_target(const vst__mirror *self, vst__mirror_part *found)
{
    vst_chunk_header there;
    bool valid;
    int failed;

    if (found->header.used == 0 ||
        found->place + vst__chunk_extent(&found->header) > self->resumed)
        return 0;
    failed = vst__mirror_read_chunk(self->to, found->place, &there, &valid);
    found->is_whole = failed == 0 && valid &&
                      there.sequence == found->header.sequence &&
                      there.used == found->header.used;
    return failed;
}

static int find_appended(vst__mirror *self)
{
    int failed = 0;

    while (failed == 0) {
        vst__mirror_part found = {.place = self->walked,
                                  .copied = VST_MIRROR_HEAD,
                                  .end = VST_MIRROR_HEAD};
        bool valid;

        failed = vst__mirror_read_chunk(self->from, found.place, &found.header,
                                        &valid);
        if (failed != 0 || !valid)
            break;
        failed = look_at_target(self, &found);
        if (failed == 0)
            failed = mirror_add(self, &found);
        if (failed == 0)
            self->walked += found.header.size;
    }
    return failed;
}

/* Returns the old part at this place if it is about this chunk; erases in the
 * target those that are gone. */
static int match_old(vst__mirror *self, const vst__mirror_part *old,
                     size_t count, size_t *at, vst__mirror_part *found)
{
    int failed = 0;

    while (failed == 0 && *at < count && old[*at].place <= found->place) {
        const vst__mirror_part *was = &old[(*at)++];
        if (was->place == found->place &&
            was->header.sequence == found->header.sequence)
            *found = *was;
        else if (was->is_written)
            failed = vst__mirror_erase(self, was->place);
    }
    return failed;
}

static int find_slots(vst__mirror *self)
{
    vst__mirror_part *old = self->parts;
    size_t old_count = self->count, at = 0;
    vst__mirror_part end = {.place = UINT64_MAX};
    uint64_t size;
    int failed = vst__os_file_size(self->from, &size);

    self->parts = NULL;
    self->count = self->capacity = 0;
    for (uint64_t place = VST_FILE_HEADER_SIZE; failed == 0 && place < size;) {
        vst__mirror_part found = {
            .place = place, .copied = VST_MIRROR_HEAD, .end = VST_MIRROR_HEAD};
        bool valid;

        failed =
            vst__mirror_read_chunk(self->from, place, &found.header, &valid);
        place += valid ? found.header.size : self->slot_size;
        if (failed == 0 && valid)
            failed = look_at_target(self, &found);
        if (failed == 0 && valid)
            failed = match_old(self, old, old_count, &at, &found);
        if (failed == 0 && valid)
            failed = mirror_add(self, &found);
    }
    if (failed == 0)
        failed = match_old(self, old, old_count, &at, &end);
    free(old);
    return failed;
}

/* ---- what is new in a chunk ---------------------------------------------- */

/* Returns the offset behind the last committed entry. */
static int find_entries_end(const vst__mirror *self, vst__mirror_part *of)
{
    uint64_t at = of->end;
    uint32_t size;
    int failed = 0;

    while (failed == 0 && at + sizeof size <= of->header.size) {
        failed = vst__mirror_read(self, &size, sizeof size, of->place + at);
        if (failed != 0 || size == 0 || size % 8 != 0 ||
            size > of->header.size - at)
            break;
        at += size;
    }
    of->end = at;
    return failed;
}

static size_t behind_last_word(const unsigned char *bytes, size_t count)
{
    while (count >= 8 && memcmp(bytes + count - 8, "\0\0\0\0\0\0\0\0", 8) == 0)
        count -= 8;
    return count;
}

/* Finds the offset behind the last word that is not zero. Words that may be
 * missing before it are within OVERLAP. */
static int find_words_end(const vst__mirror *self, vst__mirror_part *of)
{
    uint64_t at = of->end, end = of->end;
    size_t used = LOOK;

    for (; used != 0 && at < of->header.size; at += LOOK) {
        uint64_t left = of->header.size - at;
        size_t count = left < LOOK ? (size_t)left : LOOK;
        int failed = vst__mirror_read(self, self->block, count, of->place + at);

        if (failed != 0)
            return failed;
        used = behind_last_word(self->block, count);
        if (used != 0)
            end = at + used;
    }
    of->end = end;
    return 0;
}

static int find_end(const vst__mirror *self, vst__mirror_part *of)
{
    uint64_t before = of->end;
    bool may_change = self->header.min_duration_ns != 0;
    int failed;

    if (of->header.kind == VST_CHUNK_DEFINITIONS)
        return find_entries_end(self, of);
    if (may_change)
        of->end = of->copied;
    failed = find_words_end(self, of);
    if (of->end < before)
        of->stop = before;
    of->is_quiet = !may_change && of->end == before;
    return failed;
}

/* Notes up to where the chunk is to be copied now. */
int vst__mirror_look(vst__mirror *self, vst__mirror_part *of)
{
    vst_chunk_header now;
    bool valid, was_quiet = of->is_quiet;
    int failed;

    of->stop = of->copied;
    if (of->is_whole)
        return 0;
    failed = vst__mirror_read_chunk(self->from, of->place, &now, &valid);
    if (failed != 0 || !valid || now.sequence != of->header.sequence)
        return failed; /* a bounded file: the next pass finds what is here */
    of->header = now;
    if (now.used != 0 || self->is_last) {
        if (self->header.min_duration_ns != 0 || self->is_last)
            of->copied = VST_MIRROR_HEAD;
        of->stop = of->end = vst__chunk_extent(&now);
        return 0;
    }
    failed = find_end(self, of);
    /* The target may have an older chunk's words here. */
    if (self->slot_size != 0 && !of->is_written)
        of->stop = now.size;
    if (of->is_quiet && was_quiet)
        of->stop = of->copied;
    else if (of->end > of->stop)
        of->stop = of->end;
    return failed;
}

int vst__mirror_find(vst__mirror *self)
{
    return self->slot_size != 0 ? find_slots(self) : find_appended(self);
}
