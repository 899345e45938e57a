/* Bytes on their way to the target: see mirror_parts.h. */
#include "store/mirror_parts.h"

#include <errno.h>
#include <stddef.h>

#include "os/os.h"

enum { OVERLAP = 16 * 1024 }; /* mirror.c says why */

/* ---- the target ---------------------------------------------------------- */

int vst__mirror_check_target(const vst__mirror *self)
{
    uint64_t size;
    int failed = vst__os_file_size(self->to, &size);

    return failed == 0 && size < self->reached ? EIO : failed;
}

int vst__mirror_write(vst__mirror *self, const void *bytes, size_t count,
                      uint64_t offset)
{
    int failed = vst__os_file_may_reach(offset + count);

    if (failed == 0)
        failed = vst__mirror_check_target(self);
    if (failed == 0)
        failed = vst__os_file_write(self->to, bytes, count, offset);
    if (failed == 0 && offset + count > self->reached)
        self->reached = offset + count;
    return failed;
}

int vst__mirror_erase(vst__mirror *self, uint64_t place)
{
    static const vst_chunk_header none;

    return place + VST_MIRROR_HEAD <= self->reached
               ? vst__mirror_write(self, &none, sizeof none, place)
               : 0;
}

/* ---- copying ------------------------------------------------------------- */

/* A reader takes an open chunk that the end of the file cuts for damaged. */
static int reach_end(vst__mirror *self, const vst__mirror_part *of)
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
        size_t count = to - from < VST_MIRROR_BLOCK ? (size_t)(to - from)
                                                    : VST_MIRROR_BLOCK;

        failed = vst__mirror_read(self, self->block, count, from);
        if (failed == 0)
            failed = vst__mirror_write(self, self->block, count, from);
        from += count;
    }
    return failed;
}

/* Returns whether the local file does not have the chunk's words any more. */
static bool is_freed(const vst__mirror *self, const vst__mirror_part *of)
{
    return self->note != NULL && self->note->freed != 0 &&
           of->header.used != 0 && of->header.size > VST_CHUNK_ALIGN &&
           vst__os_file_is_hole(self->from, of->place + VST_CHUNK_ALIGN,
                                of->header.size - VST_CHUNK_ALIGN);
}

/* Words of a sealed chunk that the local file has given back are gone in the
 * target, too, except those of the first page. Both headers say then how many
 * are left. */
static int copy_rest(vst__mirror *self, vst__mirror_part *of)
{
    uint64_t begin = of->place + VST_MIRROR_HEAD,
             kept = of->place + VST_CHUNK_ALIGN;
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
    return vst__mirror_write(self, &of->header, sizeof of->header, of->place);
}

/* Returns whether the chunk was reused while it was copied. */
static int was_reused(const vst__mirror *self, const vst__mirror_part *of,
                      bool *reused)
{
    vst_chunk_header now;
    bool valid;
    int failed = vst__mirror_read_chunk(self->from, of->place, &now, &valid);

    *reused = !valid || now.sequence != of->header.sequence;
    return failed;
}

int vst__mirror_copy(vst__mirror *self, vst__mirror_part *of)
{
    bool sealed = of->header.used != 0, reused = false;
    int failed = 0;

    if (of->is_whole || (of->stop <= of->copied && of->is_written && !sealed))
        return 0;
    if (is_freed(self, of))
        return copy_rest(self, of);
    if (self->slot_size != 0 && !of->is_written)
        failed = vst__mirror_erase(self, of->place);
    if (failed == 0)
        failed = copy_bytes(self, of->place + of->copied, of->place + of->stop);
    if (failed == 0 && self->slot_size != 0)
        failed = was_reused(self, of, &reused);
    if (failed == 0 && reused && of->is_written)
        failed = vst__mirror_erase(self, of->place);
    if (failed == 0 && !reused && (sealed || !of->is_written))
        failed =
            vst__mirror_write(self, &of->header, sizeof of->header, of->place);
    if (failed == 0)
        failed = reach_end(self, of);
    if (failed != 0 || reused)
        return failed;
    of->is_written = true;
    of->is_whole = sealed;
    of->copied = of->end;
    if (of->header.kind != VST_CHUNK_DEFINITIONS)
        of->copied = of->end > VST_MIRROR_HEAD + OVERLAP ? of->end - OVERLAP
                                                         : VST_MIRROR_HEAD;
    return 0;
}
