/* The copy of a file that is being written: see mirror.h. The target has each
 * byte at the same place as the original.
 *
 * - A chunk's header is written after its words, and says only what was true
 *   when the words were read.
 * - In a pass, the ends of records are noted first, then definitions are
 *   copied, then records up to the noted ends: so the target has every
 *   definition that its records use.
 * - In a chunk that is not sealed, words behind the copied ones may still be
 *   stored in any order, so the next pass copies the last OVERLAP bytes again.
 *   Where short calls are left out, words may also be taken back; such chunks
 *   are copied again as a whole when they are sealed.
 * - In a bounded file, chunks are reused. Before a chunk of the target is
 *   replaced, its magic is removed.
 * - If somebody makes the target shorter, what is missing is copied again. What
 *   the local file does not have any more is counted as lost.
 *
 * Functions return 0 or an errno value. */
#include "store/mirror.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "os/os.h"
#include "store/chunk.h"

enum {
    BLOCK = 256 * 1024,
    LOOK = 16 * 1024, /* so many zeros end the words of an open chunk */
    OVERLAP = 16 * 1024,
    HEAD = sizeof(vst_chunk_header),
};

_Static_assert(VST_COPY_NOTE_AT >= sizeof(vst_file_header) &&
                   VST_COPY_NOTE_AT + sizeof(vst__copy_note) <=
                       VST_FILE_HEADER_SIZE,
               "the note has room behind the header");

typedef struct part {
    uint64_t place;
    vst_chunk_header header; /* as it was when `end` was found */
    uint64_t copied;         /* offset from which bytes must be copied */
    uint64_t end;            /* offset behind the last words */
    uint64_t stop;           /* where this pass ends */
    bool is_written;         /* the target has a header here */
    bool is_quiet;           /* copied again since the end stopped moving */
    bool is_whole;           /* sealed, and copied */
} part;

struct vst__mirror {
    int from, to;
    vst__copy_note *note;
    vst_file_header header, written; /* the original's and the target's */
    uint32_t slot_size;
    uint64_t walked;  /* chunks before this offset are known */
    uint64_t reached; /* the target has had so many bytes */
    uint64_t resumed; /* bytes that the target had when the walk began */
    bool keeps_all;   /* the local file's storage cannot be given back */
    bool is_last;     /* nobody writes the local file any more */
    part *parts;
    size_t count, capacity;
    unsigned char *block;
};

/* ---- bytes --------------------------------------------------------------- */

/* Bytes behind the end of the file are zeros. */
static int mirror_read(const vst__mirror *self, void *bytes, size_t count,
                       uint64_t offset)
{
    size_t got;
    int failed = vst__os_file_read(self->from, bytes, count, offset, &got);

    if (failed == 0)
        memset((char *)bytes + got, 0, count - got);
    return failed;
}

/* EIO if somebody cut the target: a later write would hide that by a hole. */
static int target_is_whole(const vst__mirror *self)
{
    uint64_t size;
    int failed = vst__os_file_size(self->to, &size);

    return failed == 0 && size < self->reached ? EIO : failed;
}

static int mirror_write(vst__mirror *self, const void *bytes, size_t count,
                        uint64_t offset)
{
    int failed = vst__os_file_may_reach(offset + count);

    if (failed == 0)
        failed = target_is_whole(self);
    if (failed == 0)
        failed = vst__os_file_write(self->to, bytes, count, offset);
    if (failed == 0 && offset + count > self->reached)
        self->reached = offset + count;
    return failed;
}

/* A header that is being written is read again. */
static int read_chunk(int fd, uint64_t place, vst_chunk_header *header,
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

static int erase_header(vst__mirror *self, uint64_t place)
{
    static const vst_chunk_header none;

    return place + HEAD <= self->reached
               ? mirror_write(self, &none, sizeof none, place)
               : 0;
}

/* ---- finding chunks ------------------------------------------------------ */

static int mirror_add(vst__mirror *self, const part *found)
{
    part *parts =
        vst__grow(self->parts, &self->capacity, self->count + 1, sizeof *parts);

    if (parts == NULL)
        return ENOMEM;
    self->parts = parts;
    parts[self->count++] = *found;
    return 0;
}

/* Finds out whether the target of an earlier copier has the chunk. Its header
 * was written after its words. */
static int look_at_target(const vst__mirror *self, part *found)
{
    vst_chunk_header there;
    bool valid;
    int failed;

    if (found->header.used == 0 ||
        found->place + vst__chunk_extent(&found->header) > self->resumed)
        return 0;
    failed = read_chunk(self->to, found->place, &there, &valid);
    found->is_whole = failed == 0 && valid &&
                      there.sequence == found->header.sequence &&
                      there.used == found->header.used;
    return failed;
}

static int find_appended(vst__mirror *self)
{
    int failed = 0;

    while (failed == 0) {
        part found = {.place = self->walked, .copied = HEAD, .end = HEAD};
        bool valid;

        failed = read_chunk(self->from, found.place, &found.header, &valid);
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
static int match_old(vst__mirror *self, const part *old, size_t count,
                     size_t *at, part *found)
{
    int failed = 0;

    while (failed == 0 && *at < count && old[*at].place <= found->place) {
        const part *was = &old[(*at)++];
        if (was->place == found->place &&
            was->header.sequence == found->header.sequence)
            *found = *was;
        else if (was->is_written)
            failed = erase_header(self, was->place);
    }
    return failed;
}

static int find_slots(vst__mirror *self)
{
    part *old = self->parts;
    size_t old_count = self->count, at = 0;
    part end = {.place = UINT64_MAX};
    uint64_t size;
    int failed = vst__os_file_size(self->from, &size);

    self->parts = NULL;
    self->count = self->capacity = 0;
    for (uint64_t place = VST_FILE_HEADER_SIZE; failed == 0 && place < size;) {
        part found = {.place = place, .copied = HEAD, .end = HEAD};
        bool valid;

        failed = read_chunk(self->from, place, &found.header, &valid);
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
static int find_entries_end(const vst__mirror *self, part *of)
{
    uint64_t at = of->end;
    uint32_t size;
    int failed = 0;

    while (failed == 0 && at + sizeof size <= of->header.size) {
        failed = mirror_read(self, &size, sizeof size, of->place + at);
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
static int find_words_end(const vst__mirror *self, part *of)
{
    uint64_t at = of->end, end = of->end;
    size_t used = LOOK;

    for (; used != 0 && at < of->header.size; at += LOOK) {
        uint64_t left = of->header.size - at;
        size_t count = left < LOOK ? (size_t)left : LOOK;
        int failed = mirror_read(self, self->block, count, of->place + at);

        if (failed != 0)
            return failed;
        used = behind_last_word(self->block, count);
        if (used != 0)
            end = at + used;
    }
    of->end = end;
    return 0;
}

static int find_end(const vst__mirror *self, part *of)
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
static int mirror_look(vst__mirror *self, part *of)
{
    vst_chunk_header now;
    bool valid, was_quiet = of->is_quiet;
    int failed;

    of->stop = of->copied;
    if (of->is_whole)
        return 0;
    failed = read_chunk(self->from, of->place, &now, &valid);
    if (failed != 0 || !valid || now.sequence != of->header.sequence)
        return failed; /* a bounded file: the next pass finds what is here */
    of->header = now;
    if (now.used != 0 || self->is_last) {
        if (self->header.min_duration_ns != 0 || self->is_last)
            of->copied = HEAD;
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

/* ---- copying ------------------------------------------------------------- */

/* A reader takes an open chunk that the end of the file cuts for damaged. */
static int reach_end(vst__mirror *self, const part *of)
{
    uint64_t end = of->place + of->header.size;
    int failed;

    if (of->header.used != 0 || end <= self->reached)
        return 0;
    failed = vst__os_file_truncate(self->to, end);
    if (failed == 0)
        self->reached = end;
    return failed;
}

static int copy_bytes(vst__mirror *self, uint64_t from, uint64_t to)
{
    int failed = 0;

    while (failed == 0 && from < to) {
        size_t count = to - from < BLOCK ? (size_t)(to - from) : BLOCK;

        failed = mirror_read(self, self->block, count, from);
        if (failed == 0)
            failed = mirror_write(self, self->block, count, from);
        from += count;
    }
    return failed;
}

/* Returns whether the local file does not have the chunk's words any more. */
static bool is_freed(const vst__mirror *self, const part *of)
{
    return self->note != NULL && self->note->freed != 0 &&
           of->header.used != 0 && of->header.size > VST_CHUNK_ALIGN &&
           vst__os_file_is_hole(self->from, of->place + VST_CHUNK_ALIGN,
                                of->header.size - VST_CHUNK_ALIGN);
}

/* Words of a sealed chunk that the local file has given back are gone in the
 * target, too, except those of the first page. Both headers say then how many
 * are left. */
static int copy_rest(vst__mirror *self, part *of)
{
    uint64_t begin = of->place + HEAD, kept = of->place + VST_CHUNK_ALIGN;
    uint64_t end = self->resumed > kept ? self->resumed : kept;
    uint64_t left = (end - begin) / 8;
    uint32_t used = of->header.used;
    int failed = copy_bytes(self, begin, kept);

    if (left > used)
        left = used;
    of->header.used = (uint32_t)left;
    if (failed == 0)
        failed = vst__os_file_write(
            self->from, &of->header.used, sizeof of->header.used,
            of->place + offsetof(vst_chunk_header, used));
    if (failed != 0)
        return failed;
    self->note->lost += used - left;
    of->is_whole = true;
    return mirror_write(self, &of->header, sizeof of->header, of->place);
}

/* Returns whether the chunk was reused while it was copied. */
static int was_reused(const vst__mirror *self, const part *of, bool *reused)
{
    vst_chunk_header now;
    bool valid;
    int failed = read_chunk(self->from, of->place, &now, &valid);

    *reused = !valid || now.sequence != of->header.sequence;
    return failed;
}

static int mirror_copy(vst__mirror *self, part *of)
{
    bool sealed = of->header.used != 0, reused = false;
    int failed = 0;

    if (of->is_whole || (of->stop <= of->copied && of->is_written && !sealed))
        return 0;
    if (is_freed(self, of))
        return copy_rest(self, of);
    if (self->slot_size != 0 && !of->is_written)
        failed = erase_header(self, of->place);
    if (failed == 0)
        failed = copy_bytes(self, of->place + of->copied, of->place + of->stop);
    if (failed == 0 && self->slot_size != 0)
        failed = was_reused(self, of, &reused);
    if (failed == 0 && reused && of->is_written)
        failed = erase_header(self, of->place);
    if (failed == 0 && !reused && (sealed || !of->is_written))
        failed = mirror_write(self, &of->header, sizeof of->header, of->place);
    if (failed == 0)
        failed = reach_end(self, of);
    if (failed != 0 || reused)
        return failed;
    of->is_written = true;
    of->is_whole = sealed;
    of->copied = of->end;
    if (of->header.kind != VST_CHUNK_DEFINITIONS)
        of->copied = of->end > HEAD + OVERLAP ? of->end - OVERLAP : HEAD;
    return 0;
}

static int mirror_each(vst__mirror *self, int (*fn)(vst__mirror *, part *),
                       bool definitions)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < self->count; i++) {
        part *of = &self->parts[i];
        if ((of->header.kind == VST_CHUNK_DEFINITIONS) == definitions)
            failed = fn(self, of);
    }
    return failed;
}

/* ---- the file header ----------------------------------------------------- */

static bool are_same_bytes(const void *a, const void *b, size_t size)
{
    return memcmp(a, b, size) == 0;
}

static int write_header(vst__mirror *self, bool complete)
{
    vst_file_header header = self->header;
    int failed;

    if (header.state == VST_FILE_FINISHED && !complete)
        header.state = VST_FILE_RECORDING;
    if (self->note != NULL)
        header.lost += self->note->lost;
    if (are_same_bytes(&header, &self->written, sizeof header))
        return 0;
    failed = mirror_write(self, &header, sizeof header, 0);
    if (failed == 0)
        self->written = header;
    return failed;
}

/* ---- giving local storage back ------------------------------------------- */

static void free_part(vst__mirror *self, const part *of)
{
    uint64_t count = of->header.size - VST_CHUNK_ALIGN;

    if (count != 0 &&
        vst__os_file_free(self->from, of->place + VST_CHUNK_ALIGN, count) != 0)
        self->keeps_all = true;
    else /* pairs with the load in writer_chunks.c */
        __atomic_fetch_add(&self->note->freed, count, __ATOMIC_RELEASE);
}

/* Frees chunks that the target's disk has, if the local file takes more than
 * half of what it may; the oldest first. Bounded files are not freed, because
 * their chunks are used again. */
static int mirror_free(vst__mirror *self)
{
    uint64_t most = self->note != NULL ? self->note->limit : 0;
    size_t kept = 0;
    int failed;

    if (most == 0 || self->slot_size != 0 || self->keeps_all ||
        self->walked - self->note->freed <= most / 2)
        return 0;
    failed = vst__os_file_sync(self->to);
    if (failed != 0)
        return failed;
    for (size_t i = 0; i < self->count; i++)
        if (self->parts[i].is_whole && !self->keeps_all &&
            self->walked - self->note->freed > most / 4)
            free_part(self, &self->parts[i]);
        else
            self->parts[kept++] = self->parts[i];
    self->count = kept;
    return 0;
}

/* ---- passes -------------------------------------------------------------- */

/* Forgets what the target has; the next pass looks. */
static void walk_again(vst__mirror *self, uint64_t size)
{
    self->reached = self->resumed = size;
    self->walked = VST_FILE_HEADER_SIZE;
    self->count = 0;
    memset(&self->written, 0, sizeof self->written);
}

static int notice_shorter_target(vst__mirror *self)
{
    uint64_t size;
    int failed = vst__os_file_size(self->to, &size);

    if (failed == 0 && size < self->reached)
        walk_again(self, size);
    return failed;
}

static int copy_new(vst__mirror *self)
{
    int failed = mirror_read(self, &self->header, sizeof self->header, 0);

    if (failed != 0)
        return failed;
    if (memcmp(self->header.magic, VST_FILE_MAGIC, sizeof self->header.magic) !=
        0)
        return 0; /* nothing was written yet */
    failed = notice_shorter_target(self);
    self->slot_size = vst__sane_slot_size(self->header.slot_size);
    if (failed == 0)
        failed = self->slot_size != 0 ? find_slots(self) : find_appended(self);
    if (failed == 0)
        failed = mirror_each(self, mirror_look, false);
    if (failed == 0)
        failed = mirror_each(self, mirror_look, true);
    if (failed == 0)
        failed = mirror_each(self, mirror_copy, true);
    if (failed == 0)
        failed = mirror_each(self, mirror_copy, false);
    return failed == 0 ? write_header(self, false) : failed;
}

int vst__mirror_pass(vst__mirror *self)
{
    int failed = copy_new(self);

    return failed == 0 ? mirror_free(self) : failed;
}

bool vst__mirror_is_finished(const vst__mirror *self)
{
    return self->header.state == VST_FILE_FINISHED;
}

static int finish_target(vst__mirror *self)
{
    int failed = vst__os_file_truncate(self->to, self->header.size);

    if (failed != 0)
        return failed;
    self->reached = self->header.size;
    return write_header(self, true);
}

int vst__mirror_complete(vst__mirror *self)
{
    int failed;

    self->is_last = true;
    failed = copy_new(self);
    walk_again(self, self->reached); /* to check each chunk */
    if (failed == 0)
        failed = copy_new(self);
    if (failed == 0 && vst__mirror_is_finished(self))
        failed = finish_target(self);
    if (failed == 0)
        failed = vst__os_file_sync(self->to);
    return failed == 0 ? target_is_whole(self) : failed;
}

int vst__mirror_create(int from, int to, vst__copy_note *note,
                       vst__mirror **mirror)
{
    vst__mirror *self = calloc(1, sizeof *self);
    int failed = 0;

    if (self == NULL)
        return ENOMEM;
    *self = (vst__mirror){.from = from, .to = to, .note = note};
    self->walked = VST_FILE_HEADER_SIZE;
    self->block = malloc(BLOCK);
    if (self->block == NULL)
        failed = ENOMEM;
    if (failed == 0)
        failed = vst__os_file_size(to, &self->resumed);
    self->reached = self->resumed;
    if (failed != 0)
        vst__mirror_destroy(self);
    else
        *mirror = self;
    return failed;
}

void vst__mirror_destroy(vst__mirror *self)
{
    if (self == NULL)
        return;
    free(self->block);
    free(self->parts);
    free(self);
}
