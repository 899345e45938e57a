/* Room for the chunks of a file that is being written: storage, mappings and
 * headers. A chunk gets its storage before it is mapped, and is mapped with its
 * pages present, so the record path meets neither a full disk nor a missing
 * page. A sealed chunk is unmapped. Measured with 1 MiB chunks on ext4: storing
 * a record costs 14 ns this way, 17 ns in fresh anonymous memory, 29 ns in a
 * plain mapping; 11 ns of each are the clock.
 *
 * Other programs may truncate the file meanwhile. A store into the missing part
 * would end the program, unless the handler of SIGBUS asks os.h about it. A cut
 * is also noticed here, before a chunk is mapped; from then on nothing is
 * written to the file.
 *
 * In a bounded file (slots.h), chunks are slots or parts of slots, and the
 * oldest sealed ones are emptied and used again. A process that dies in the
 * middle of that leaves an empty chunk. Free parts contain only zeros. */
#include "store/writer_chunks.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <zlib.h>

#include "base/fence.h"
#include "os/os.h"

/* EFAULT means that pages which were given storage have none after all. */
static vst_status chunks_fail(vst__file *file, int sys_errno)
{
    file->sys_errno = sys_errno;
    switch (sys_errno) {
    case ENOSPC:
    case EFBIG:
    case EDQUOT:
    case EFAULT:
        return VST_E_NOSPACE;
    case ENOMEM:
        return VST_E_NOMEM;
    default:
        return VST_E_IO;
    }
}

bool vst__file_was_cut(const vst__file *file)
{
    /* Pairs with the exchange in os/storage.c. */
    return __atomic_load_n(&file->is_cut, __ATOMIC_ACQUIRE);
}

bool vst__file_is_cut(vst__file *file)
{
    uint64_t size;

    if (vst__os_file_is(file->fd, &file->identity, &size) &&
        size < file->allocated)
        vst__os_storage_found_cut(&file->is_cut);
    return vst__file_was_cut(file);
}

vst_status vst__file_map(vst__file *file, uint64_t offset, uint64_t size,
                         void **memory, vst__os_storage **storage)
{
    uint64_t need = offset + size, has;
    int failed = 0;

    if (!vst__os_file_is(file->fd, &file->identity, &has))
        return chunks_fail(file, EBADF);
    if (has < file->allocated)
        vst__os_storage_found_cut(&file->is_cut);
    if (vst__file_was_cut(file))
        return chunks_fail(file, EIO);
    if (file->is_copied && vst__file_is_full(file, need))
        return chunks_fail(file, ENOSPC);
    if (need > file->allocated) {
        vst__os_file_reserve(file->fd, file->allocated, need, &file->reserved);
        failed = vst__os_file_allocate(file->fd, file->allocated,
                                       need - file->allocated);
    }
    if (failed)
        return chunks_fail(file, failed);
    if (need > file->allocated)
        file->allocated = need;
    failed = vst__os_storage_map(file->fd, offset, (size_t)size, &file->is_cut,
                                 memory, storage);
    return failed ? chunks_fail(file, failed) : VST_OK;
}

/* The room that a chunk gets. */
typedef struct mapped_room {
    uint64_t place, size;
    void *memory;
    vst__os_storage *storage;
} mapped_room;

static void release_chunk(vst_chunk *chunk)
{
    vst__os_storage_unmap(chunk->storage);
    chunk->words = NULL;
}

uint32_t vst__file_checksum(const void *bytes, size_t size)
{
    return (uint32_t)crc32(0, bytes, (uInt)size);
}

static uint64_t whole_pages(uint64_t size)
{
    return (size + VST_CHUNK_ALIGN - 1) & ~(uint64_t)(VST_CHUNK_ALIGN - 1);
}

/* Stores the magic last: a chunk has its whole header or none. Pairs with a
 * reader that takes a header without a magic for the end, and reads any other
 * header twice (the fence in source.c). */
static void write_chunk_header(vst_chunk_header *at, vst_chunk_header header)
{
    header.magic = VST_CHUNK_MAGIC;
    header.checksum =
        vst__file_checksum(&header, offsetof(vst_chunk_header, checksum));
    header.magic = 0;
    *at = header;
    __atomic_store_n(&at->magic, VST_CHUNK_MAGIC, __ATOMIC_RELEASE);
}

/* ---- room ---------------------------------------------------------------- */

/* Removes the magic, with a full barrier: no later store is seen before the
 * magic is gone, not even stores of a memset that bypass the caches. Pairs with
 * a reader that reads the header again after it read words (the fence in
 * source.c). An exchange alone would not be enough: where aarch64 makes a loop
 * of it, later stores may be seen before the exchange's own. */
static void remove_magic(vst_chunk_header *at)
{
    __atomic_store_n(&at->magic, 0, __ATOMIC_RELAXED);
    vst__fence_full();
}

/* Replaces a sealed chunk by an empty chunk of the same length, in which a
 * reader finds nothing. The magic is removed first and stored last, so no
 * reader takes new words for old ones, even if the process dies in between. */
static void empty_chunk(vst__file *file, const vst__slot_room *old,
                        vst_chunk_header header, void *memory)
{
    vst_chunk_header *at = memory;
    uint64_t *words = (uint64_t *)memory + sizeof header / 8;

    header.size = old->size;
    file->header->dropped += old->words;
    file->dropped_waiting |= old->has_waiting;
    remove_magic(at);
    /* before the magic is stored again; pairs with the fence in source.c */
    __atomic_store_n(words, 0, __ATOMIC_RELEASE);
    write_chunk_header(memory, header);
    memset(words, 0, old->size - sizeof header);
}

/* Turns an empty chunk into zeros. */
static void clear_header(vst_chunk_header *at)
{
    remove_magic(at);
    memset(at, 0, sizeof *at);
}

/* The functions from here to take_room() return whether they did all of it:
 * true means that *room is filled. Where they return false, file->sys_errno
 * says why. */

static bool map_room(vst__file *file, uint64_t place, uint64_t size,
                     mapped_room *room)
{
    room->place = place;
    room->size = size;
    return vst__file_map(file, place, size, &room->memory, &room->storage) ==
           VST_OK;
}

static bool chunks_prepare(vst__file *file, uint64_t place, uint32_t size)
{
    if (vst__slots_prepare(&file->slots, place, size) == VST_OK)
        return true;
    file->sys_errno = ENOMEM;
    return false;
}

/* Empties the oldest part and frees it. */
static bool chunks_drop(vst__file *file, const vst__slot_room *oldest,
                        uint32_t wanted, const vst_chunk_header *header)
{
    mapped_room room;

    if (!map_room(file, oldest->place, oldest->size, &room))
        return false;
    empty_chunk(file, oldest, *header, room.memory);
    clear_header(room.memory);
    vst__os_storage_unmap(room.storage);
    vst__slots_drop_oldest(&file->slots, wanted);
    return true;
}

static void note_taken(vst__file *file, const vst__slot_room *found,
                       const vst_chunk_header *header)
{
    if (header->kind == VST_CHUNK_RECORDS)
        vst__slots_take(&file->slots, found, header->sequence,
                        header->sample.ticks);
    else
        vst__slots_take_fixed(&file->slots, found);
}

/* Empties the chosen part, and takes it. */
static bool take_found(vst__file *file, const vst__slot_room *found,
                       const vst_chunk_header *header, mapped_room *room)
{
    if (!chunks_prepare(file, found->place, found->size) ||
        !map_room(file, found->place, found->size, room))
        return false;
    if (!found->is_free)
        empty_chunk(file, found, *header, room->memory);
    note_taken(file, found, header);
    return true;
}

/* Takes room at the end of the file. */
static bool chunks_grow(vst__file *file, uint64_t size, mapped_room *room)
{
    if (!map_room(file, file->end, size, room))
        return false;
    file->last = file->end;
    file->end += size;
    return true;
}

/* Adds a slot; only the part that is needed gets storage. */
static bool grow_by_slot(vst__file *file, uint32_t size,
                         const vst_chunk_header *header, mapped_room *room)
{
    vst__slots *slots = &file->slots;
    vst__slot_room fresh = {.place = file->end, .size = size, .is_free = true};

    if (!chunks_prepare(file, file->end, size) ||
        !chunks_grow(file, size, room))
        return false;
    file->end = fresh.place + slots->size;
    vst__slots_add(slots, fresh.place);
    note_taken(file, &fresh, header);
    return true;
}

/* If the disk is full, an old part may still be usable. */
static bool take_part(vst__file *file, uint32_t size, uint64_t least,
                      const vst_chunk_header *header, mapped_room *room)
{
    vst__slots *slots = &file->slots;
    vst__slot_wish wish = {.size = size,
                           .least = (uint32_t)least,
                           .now = vst_clock_ticks(),
                           .may_grow = vst__slots_may_grow(slots, file->end)};

    file->sys_errno =
        ENOSPC; /* reported if the loop ends without an error of the system */
    for (;;) {
        vst__slot_room found;

        switch (vst__slots_choose(slots, &wish, &found)) {
        case VST_SLOT_TAKE:
            if (take_found(file, &found, header, room))
                return true;
            if (!found.is_free)
                return false;
            wish.without_free = true;
            break;
        case VST_SLOT_DROP:
            if (!chunks_drop(file, &found, size, header))
                return false;
            break;
        case VST_SLOT_GROW:
            if (grow_by_slot(file, size, header, room))
                return true;
            wish.may_grow = false;
            break;
        case VST_SLOT_NONE:
            if (!vst__slots_stop_draining(slots))
                return false;
            break;
        }
    }
}

/* Finds room for definitions, which are never dropped. As long as definitions
 * take less than half of what the file may hold, they take the room from
 * records, down to a single page. Beyond that, and if threads hold every page,
 * the file grows. */
static bool take_definitions(vst__file *file, uint64_t size, uint64_t least,
                             const vst_chunk_header *header, mapped_room *room)
{
    const vst__slots *slots = &file->slots;
    bool is_bounded = slots->max_size != 0;

    if (size <= slots->size &&
        (!is_bounded || file->definitions_size < slots->max_size / 2) &&
        take_part(file, vst__slots_size_of_fixed(slots, size), least, header,
                  room))
        return true;
    return chunks_grow(
        file, (size + slots->size - 1) & ~(uint64_t)(slots->size - 1), room);
}

static bool take_room(vst__file *file, uint64_t size, uint64_t least,
                      const vst_chunk_header *header, mapped_room *room)
{
    if (file->slots.size == 0)
        return chunks_grow(file, size, room);
    if (header->kind == VST_CHUNK_DEFINITIONS)
        return take_definitions(file, size, least, header, room);
    return take_part(file, vst__slots_size_for(&file->slots, size, least),
                     least, header, room);
}

static uint64_t bytes_of(size_t words)
{
    return whole_pages(sizeof(vst_chunk_header) + (uint64_t)words * 8);
}

vst_status vst__file_new_chunk(vst__file *file, vst_chunk_kind kind,
                               uint32_t thread, size_t words, size_t least,
                               vst_chunk *chunk)
{
    vst_chunk_header header = {
        .kind = (uint16_t)kind,
        .window = file->window,
        .thread = thread,
        .sequence = file->sequence,
        .segments = 1,
    };
    mapped_room room;

    if (bytes_of(words) > VST_CHUNK_SIZE_MAX)
        return VST_E_NOSPACE;
    vst_clock_sample_now(&header.sample);
    if (!take_room(file, bytes_of(words), bytes_of(least), &header, &room))
        return chunks_fail(file, file->sys_errno);
    file->sequence++;
    header.size = (uint32_t)room.size;
    write_chunk_header(room.memory, header);
    if (kind == VST_CHUNK_DEFINITIONS)
        file->definitions_size += room.size;
    *chunk = (vst_chunk){
        .words = (uint64_t *)room.memory + sizeof header / 8,
        .capacity = ((size_t)room.size - sizeof header) / 8,
        .start = header.sample.ticks,
        .release = release_chunk,
        .memory = room.memory,
        .memory_size = (size_t)room.size,
        .storage = room.storage,
        .place = room.place,
        .sequence = header.sequence,
    };
    if (kind == VST_CHUNK_RECORDS) {
        chunk->dropped_waiting = file->dropped_waiting;
        file->dropped_waiting = false;
    }
    return VST_OK;
}

/* Returns how many words of a chunk lie behind the end of a file that was
 * cut. */
static size_t words_cut_off(const vst__file *file, const vst_chunk *chunk,
                            size_t used)
{
    uint64_t words = chunk->place + sizeof(vst_chunk_header), size;

    if (!vst__os_file_is(file->fd, &file->identity, &size) || size <= words)
        return used;
    size = (size - words) / 8;
    return size < used ? used - (size_t)size : 0;
}

/* Checks the file's size: if the cut lies behind the last page that was stored
 * to, no store has failed. */
size_t vst__file_seal_chunk(vst__file *file, vst_chunk *chunk, size_t used,
                            uint32_t segments)
{
    vst_chunk_header *header = chunk->memory;
    vst_ticks now = vst_clock_ticks();
    size_t lost;

    header->segments = segments;
    header->last = now;
    /* Seals the chunk; pairs with a reader that scans a chunk while this is 0,
     * and takes the other fields from a later look (live.h). */
    __atomic_store_n(&header->used, (uint32_t)used, __ATOMIC_RELEASE);
    if (file->slots.size != 0 && header->kind == VST_CHUNK_RECORDS)
        chunk->is_slow =
            vst__slots_seal(&file->slots, chunk->place, now,
                            used - chunk->overhead, chunk->has_waiting);
    lost = vst__file_is_cut(file) ? words_cut_off(file, chunk, used) : 0;
    release_chunk(chunk);
    return lost;
}

/* Returns where the used part of the file ends. An empty last chunk cannot say
 * that it is sealed, so all of it stays. */
uint64_t vst__file_used_end(const vst__file *file)
{
    uint64_t place = file->last;
    vst_chunk_header header;
    size_t got;

    if (place != 0 && file->slots.size != 0)
        place = vst__slots_last_chunk(&file->slots, place);
    if (place == 0 ||
        vst__os_file_read(file->fd, &header, sizeof header, place, &got) != 0 ||
        got != sizeof header || header.magic != VST_CHUNK_MAGIC)
        return file->end;
    if (header.used == 0)
        return place + header.size;
    return place + sizeof header + (uint64_t)header.used * 8;
}
