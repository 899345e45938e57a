/* Room for the chunks of a file that is being written: storage, mappings and
 * headers. Chunks are given storage before they are mapped, with their pages
 * present, so that neither a full disk nor a fresh page is met on the record
 * path. A sealed chunk leaves the process.
 *
 * Measured with 1 MiB chunks on ext4: storing records costs 14 ns each this
 * way, 17 in fresh anonymous memory, 29 in a plain mapping; 11 of them are the
 * clock.
 *
 * In a bounded file (slots.h) chunks of records are all one slot long, and the
 * oldest sealed one is emptied and used again. What dies in the middle of that
 * leaves a slot without a magic. */
#include "store/writer_chunks.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <zlib.h>

#include "os/os.h"

/* EFAULT: pages that were given storage have none after all. */
static vst_status fail(vst__file *file, int sys_errno)
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

vst_status vst__file_map(vst__file *file, uint64_t offset, uint64_t size,
                         void **memory)
{
    uint64_t need = offset + size;
    int failed = 0;

    if (!vst__os_file_is(file->fd, &file->identity))
        return fail(file, EBADF);
    if (need > file->allocated) {
        vst__os_file_reserve(file->fd, file->allocated, need, &file->reserved);
        failed = vst__os_file_allocate(file->fd, file->allocated,
                                       need - file->allocated);
    }
    if (failed)
        return fail(file, failed);
    if (need > file->allocated)
        file->allocated = need;
    failed = vst__os_map_shared(file->fd, offset, (size_t)size, memory);
    return failed ? fail(file, failed) : VST_OK;
}

static void release_chunk(vst_chunk *chunk)
{
    vst__os_unmap(chunk->memory, chunk->memory_size);
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

/* The magic comes last: a chunk is there with all of its header, or not at all.
 * Pairs with a reader that takes a header without one for the end. */
static void write_chunk_header(vst_chunk_header *at, vst_chunk_header header)
{
    header.magic = VST_CHUNK_MAGIC;
    header.checksum =
        vst__file_checksum(&header, offsetof(vst_chunk_header, checksum));
    header.magic = 0;
    *at = header;
    __atomic_store_n(&at->magic, VST_CHUNK_MAGIC, __ATOMIC_RELEASE);
}

/* Empties a slot that was sealed. The magic goes first and comes last, so that
 * neither a death in between nor somebody who reads meanwhile takes the new
 * words for the old ones'. The exchange is a full barrier: a memset may store
 * around the caches, but not before it. It pairs with a reader that looks at
 * the header again after it read words. */
static void empty_slot(vst__file *file, const vst__slot_sealed *slot,
                       void *memory)
{
    vst_chunk_header *header = memory;

    __atomic_exchange_n(&header->magic, 0, __ATOMIC_SEQ_CST);
    file->header->dropped += slot->words;
    memset(memory, 0, file->slots.size);
}

static vst_status reuse_oldest(vst__file *file, uint64_t *place, void **memory)
{
    vst__slot_sealed slot = *vst__slots_oldest(&file->slots);
    vst_status status =
        vst__file_map(file, slot.place, file->slots.size, memory);

    if (status != VST_OK)
        return status;
    vst__slots_take_oldest(&file->slots);
    empty_slot(file, &slot, *memory);
    *place = slot.place;
    return VST_OK;
}

/* At the end of the file. */
static vst_status grow(vst__file *file, uint64_t size, uint64_t *place,
                       void **memory)
{
    vst_status status = vst__file_map(file, file->end, size, memory);

    if (status != VST_OK)
        return status;
    *place = file->last = file->end;
    file->end += size;
    return VST_OK;
}

/* One slot for records. Where the disk is full there may still be an old one.
 */
static vst_status take_slot(vst__file *file, uint64_t *place, void **memory)
{
    vst__slots *slots = &file->slots;

    if (vst__slots_due(slots, file->end, vst_clock_ticks()))
        return reuse_oldest(file, place, memory);
    if (!vst__slots_may_grow(slots, file->end))
        return fail(file, ENOSPC);
    vst_status status = vst__slots_add(slots);
    if (status == VST_OK) {
        status = grow(file, slots->size, place, memory);
        if (status != VST_OK)
            slots->count--;
    }
    if (status != VST_OK && vst__slots_oldest(slots))
        return reuse_oldest(file, place, memory);
    return status;
}

/* Definitions are never dropped. As long as they take less than half of what
 * the file may hold, they take it from the records; beyond that it grows. */
static vst_status take_definitions(vst__file *file, uint64_t *size,
                                   uint64_t *place, void **memory)
{
    vst__slots *slots = &file->slots;
    vst_status status;

    *size = (*size + slots->size - 1) & ~(uint64_t)(slots->size - 1);
    if (*size == slots->size && !vst__slots_may_grow(slots, file->end) &&
        file->definitions_size < slots->max_size / 2 &&
        vst__slots_oldest(slots)) {
        status = reuse_oldest(file, place, memory);
        slots->count -= status == VST_OK;
    } else {
        status = grow(file, *size, place, memory);
    }
    return status;
}

static vst_status take_room(vst__file *file, vst_chunk_kind kind,
                            uint64_t *size, uint64_t *place, void **memory)
{
    if (file->slots.size == 0)
        return grow(file, *size, place, memory);
    if (kind == VST_CHUNK_DEFINITIONS)
        return take_definitions(file, size, place, memory);
    *size = file->slots.size;
    return take_slot(file, place, memory);
}

vst_status vst__file_new_chunk(vst__file *file, vst_chunk_kind kind,
                               uint32_t thread, size_t words, vst_chunk *chunk)
{
    uint64_t size = whole_pages(sizeof(vst_chunk_header) + words * 8), place;
    vst_clock_sample now;
    void *memory;

    if (size > VST_CHUNK_SIZE_MAX)
        return VST_E_NOSPACE;
    vst_clock_sample_now(&now);
    vst_status status = take_room(file, kind, &size, &place, &memory);
    if (status != VST_OK)
        return status;
    vst_chunk_header header = {
        .sample = now,
        .kind = (uint16_t)kind,
        .window = file->window,
        .size = (uint32_t)size,
        .thread = thread,
        .sequence = file->sequence++,
        .segments = 1,
    };
    write_chunk_header(memory, header);
    if (place == file->last)
        file->cut = 0;
    if (kind == VST_CHUNK_DEFINITIONS)
        file->definitions_size += size;
    *chunk = (vst_chunk){
        .words = (uint64_t *)memory + sizeof header / 8,
        .capacity = ((size_t)size - sizeof header) / 8,
        .start = header.sample.ticks,
        .release = release_chunk,
        .memory = memory,
        .memory_size = (size_t)size,
        .place = place,
    };
    return VST_OK;
}

/* What the last chunk of the file does not use is cut off when the file is
 * finished. An empty one cannot say that it is sealed, so all of it stays. */
void vst__file_seal_chunk(vst__file *file, vst_chunk *chunk, size_t used,
                          uint32_t segments)
{
    vst_chunk_header *header = chunk->memory;
    vst__slot_sealed slot = {chunk->place, vst_clock_ticks(),
                             used - chunk->overhead};

    header->segments = segments;
    header->last = slot.last;
    /* Seals it; pairs with a reader that scans a chunk while this is 0. */
    __atomic_store_n(&header->used, (uint32_t)used, __ATOMIC_RELEASE);
    if (used && slot.place == file->last)
        file->cut = slot.place + sizeof *header + used * 8;
    if (file->slots.size != 0 && header->kind == VST_CHUNK_RECORDS)
        vst__slots_seal(&file->slots, &slot);
    release_chunk(chunk);
}
