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
#include "store/mirror_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"

_Static_assert(VST_COPY_NOTE_AT >= sizeof(vst_file_header) &&
                   VST_COPY_NOTE_AT + sizeof(vst__copy_note) <=
                       VST_FILE_HEADER_SIZE,
               "the note has room behind the header");

static int mirror_each(vst__mirror *self,
                       int (*fn)(vst__mirror *, vst__mirror_part *),
                       bool definitions)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < self->count; i++) {
        vst__mirror_part *of = &self->parts[i];
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
    failed = vst__mirror_write(self, &header, sizeof header, 0);
    if (failed == 0)
        self->written = header;
    return failed;
}

/* ---- giving local storage back ------------------------------------------- */

static void free_part(vst__mirror *self, const vst__mirror_part *of)
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
    int failed = vst__mirror_read(self, &self->header, sizeof self->header, 0);

    if (failed != 0)
        return failed;
    if (memcmp(self->header.magic, VST_FILE_MAGIC, sizeof self->header.magic) !=
        0)
        return 0; /* nothing was written yet */
    failed = notice_shorter_target(self);
    self->slot_size = vst__sane_slot_size(self->header.slot_size);
    if (failed == 0)
        failed = vst__mirror_find(self);
    if (failed == 0)
        failed = mirror_each(self, vst__mirror_look, false);
    if (failed == 0)
        failed = mirror_each(self, vst__mirror_look, true);
    if (failed == 0)
        failed = mirror_each(self, vst__mirror_copy, true);
    if (failed == 0)
        failed = mirror_each(self, vst__mirror_copy, false);
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
    return failed == 0 ? vst__mirror_check_target(self) : failed;
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
    self->block = malloc(VST_MIRROR_BLOCK);
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
