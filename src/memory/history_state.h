/* Declarations for the files of the history: the groups by which live memory is
 * counted, events for the sink (history_report.c), and mappings
 * (history_maps.c). One thread at a time. */
#ifndef VST_MEMORY_HISTORY_STATE_H
#define VST_MEMORY_HISTORY_STATE_H

#include "memory/history.h"
#include "memory/live.h"
#include "memory/merge.h"

/* These are counted separately: a framework's blocks lie inside the system's
 * blocks, and reserved space is not memory. */
enum { VST_GROUP_SYSTEM, VST_GROUP_FRAMEWORK, VST_GROUP_RESERVED, VST_GROUPS };

typedef struct vst__history_group {
    vst__live live;
    uint64_t bytes, count;
} vst__history_group;

struct vst__history {
    vst_trace *trace;
    vst_memory_sink sink;
    vst_time_converter converter;
    vst__merge merge;
    vst__history_group groups[VST_GROUPS];
    uint64_t serial, reserved_serial;
    double sample_bytes; /* 0: every allocation is recorded */
    /* only blocks are sampled, not mappings */
    bool has_all_mappings;
    /* ids of counters; 0 if the trace has none */
    vst_id resident_id, files_id;
    double files; /* last value of the files counter */
    /* words of all windows, and of the windows that are done */
    uint64_t words_total, words_before;
    int64_t next_progress_ns;
    const vst__window *window, *last_window; /* end of the windows */
    bool in_window;
};

static inline vst__history_group *vst__history_group_of(vst__history *self,
                                                        uint32_t kind)
{
    return &self->groups[vst_memory_is_framework(kind) ? VST_GROUP_FRAMEWORK
                                                       : VST_GROUP_SYSTEM];
}

static inline int64_t vst__history_time(vst__history *self,
                                        const vst__merge_stream *from)
{
    return self->converter.to_ns(self->converter.ctx, from->time);
}

/* Returns the size of a record's range, cut at the end of the address space. */
static inline uint64_t vst__history_size(const vst__memory_record *record)
{
    uint64_t most = UINT64_MAX - record->address;

    return record->size < most ? record->size : most;
}

/* ---- history_report.c ------------------------------------------------------ */

/* Reads from the trace's metadata how it was sampled, and which counters are
 * about memory. */
void vst__history_read_facts(vst__history *self);
/* Report to the sink a block that was added to its group, or removed from
 * it. */
vst_status vst__history_report_alloc(vst__history *self,
                                     const vst__merge_stream *from,
                                     vst__history_group *of, uint32_t flags,
                                     uint32_t kind,
                                     const vst__block_info *block);
vst_status vst__history_report_free(vst__history *self,
                                    const vst__merge_stream *from,
                                    vst__history_group *of, uint32_t flags,
                                    uint32_t kind,
                                    const vst__block_info *freed);
vst_status vst__history_report_unknown(vst__history *self,
                                       const vst__merge_stream *from);
/* flags: VST_MEMORY_FREES if the range is not reserved any more. */
vst_status vst__history_report_reserved(vst__history *self,
                                        const vst__merge_stream *from,
                                        uint32_t flags,
                                        const vst__block_info *range);
vst_status vst__history_report_loss(vst__history *self,
                                    const vst__merge_stream *from);
vst_status vst__history_report_counter(vst__history *self,
                                       const vst__merge_stream *from);

/* ---- history_maps.c; for the current record of `from` -------------------- */

/* Maps a range; a new mapping replaces everything that was mapped there. */
vst_status vst__history_map(vst__history *self, const vst__merge_stream *from,
                            vst__block_info *block);
vst_status vst__history_unmap(vst__history *self,
                              const vst__merge_stream *from);
vst_status vst__history_change(vst__history *self,
                               const vst__merge_stream *from);

#endif
