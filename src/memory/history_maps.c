/* Mappings in the history: usable memory, or reserved address space, or parts
 * of each. Reserved space is counted as a group of its own, and changes move
 * ranges between the two. One thread at a time. */
#include "memory/history_state.h"

static bool is_reserved(const vst__memory_record *record)
{
    return (record->range & VST_RANGE_RESERVED) != 0;
}

/* Unmaps every part of a mapping that lies in the range, and counts these
 * parts. */
static vst_status maps_unmap(vst__history *self, const vst__merge_stream *from,
                             uint64_t size, uint32_t flags, uint32_t kind,
                             size_t *parts)
{
    const vst__memory_record *record = &from->cursor.record;
    vst__history_group *of = vst__history_group_of(self, record->kind);
    vst__block_info part;
    bool found;

    for (*parts = 0;; ++*parts) {
        vst_status status =
            vst__live_unmap(&of->live, record->address, size, &part, &found);

        if (status == VST_OK && found)
            status =
                vst__history_report_free(self, from, of, flags, kind, &part);
        if (status != VST_OK || !found)
            return status;
    }
}

/* Unmaps every reserved part in the range, and counts these parts. */
static vst_status maps_unreserve(vst__history *self,
                                 const vst__merge_stream *from, uint64_t size,
                                 size_t *parts)
{
    vst__history_group *of = &self->groups[VST_GROUP_RESERVED];
    vst__block_info part;
    bool found;

    for (*parts = 0;; ++*parts) {
        vst_status status = vst__live_unmap(
            &of->live, from->cursor.record.address, size, &part, &found);

        if (status == VST_OK && found)
            status = vst__history_report_reserved(self, from, VST_MEMORY_FREES,
                                                  &part);
        if (status != VST_OK || !found)
            return status;
    }
}

/* Maps a range; a new mapping replaces everything that was mapped there. */
vst_status vst__history_map(vst__history *self, const vst__merge_stream *from,
                            vst__block_info *block)
{
    const vst__memory_record *record = &from->cursor.record;
    vst__history_group *of =
        &self->groups[is_reserved(record) ? VST_GROUP_RESERVED
                                          : VST_GROUP_SYSTEM];
    size_t lost, reserved;
    vst_status status;

    if (block->size == 0)
        return VST_OK;
    status = maps_unmap(self, from, block->size, VST_MEMORY_LOST_FREE,
                        VST_MEMORY_MUNMAP, &lost);
    if (status == VST_OK)
        status = maps_unreserve(self, from, block->size, &reserved);
    block->serial =
        is_reserved(record) ? ++self->reserved_serial : ++self->serial;
    if (status == VST_OK)
        status = vst__live_map(&of->live, block);
    if (status != VST_OK)
        return status;
    if (is_reserved(record))
        return vst__history_report_reserved(self, from, record->flags, block);
    return vst__history_report_alloc(
        self, from, of, record->flags | (lost != 0 ? VST_MEMORY_LOST_FREE : 0),
        record->kind, block);
}

vst_status vst__history_unmap(vst__history *self, const vst__merge_stream *from)
{
    const vst__memory_record *record = &from->cursor.record;
    uint64_t size = vst__history_size(record);
    size_t parts, reserved = 0;
    vst_status status = maps_unmap(self, from, size, 0, record->kind, &parts);

    if (status == VST_OK)
        status = maps_unreserve(self, from, size, &reserved);
    return status == VST_OK && parts + reserved == 0
               ? vst__history_report_unknown(self, from)
               : status;
}

/* ---- changes of mappings ------------------------------------------------- */

/* Reserves a usable part that was given back: its address space stays
 * reserved. */
static vst_status reserve_part(vst__history *self,
                               const vst__merge_stream *from,
                               vst__block_info *part)
{
    vst_status status =
        vst__history_report_free(self, from, &self->groups[VST_GROUP_SYSTEM], 0,
                                 VST_MEMORY_MUNMAP, part);

    part->serial = ++self->reserved_serial;
    part->time_ns = vst__history_time(self, from);
    if (status == VST_OK)
        status = vst__live_map(&self->groups[VST_GROUP_RESERVED].live, part);
    return status == VST_OK ? vst__history_report_reserved(self, from, 0, part)
                            : status;
}

/* Makes a reserved part usable. The part belongs to the stack that made it
 * usable, or, if it was only found to be resident, to the stack that reserved
 * it. */
static vst_status use_part(vst__history *self, const vst__merge_stream *from,
                           vst__block_info *part)
{
    const vst__memory_record *record = &from->cursor.record;
    vst__history_group *of = &self->groups[VST_GROUP_SYSTEM];
    uint32_t flags = record->flags;
    vst_status status =
        vst__history_report_reserved(self, from, VST_MEMORY_FREES, part);

    part->serial = ++self->serial;
    part->time_ns = vst__history_time(self, from);
    if ((record->range & VST_RANGE_TOUCHED) != 0)
        flags |= VST_MEMORY_TOUCHED;
    else
        part->stack = record->stack;
    if (status == VST_OK)
        status = vst__live_map(&of->live, part);
    return status == VST_OK ? vst__history_report_alloc(self, from, of, flags,
                                                        VST_MEMORY_MMAP, part)
                            : status;
}

/* Makes everything mapped in the range reserved, or usable. Parts that are so
 * already do not change. */
vst_status vst__history_change(vst__history *self,
                               const vst__merge_stream *from)
{
    const vst__memory_record *record = &from->cursor.record;
    uint64_t size = vst__history_size(record);
    vst__history_group *of =
        &self->groups[is_reserved(record) ? VST_GROUP_SYSTEM
                                          : VST_GROUP_RESERVED];
    vst__block_info part;
    bool found = true;
    vst_status status = VST_OK;

    while (status == VST_OK && found) {
        status =
            vst__live_unmap(&of->live, record->address, size, &part, &found);
        if (status == VST_OK && found)
            status = is_reserved(record) ? reserve_part(self, from, &part)
                                         : use_part(self, from, &part);
    }
    return status;
}
