/* What the files of the history share: the groups in which what is live is
 * counted, telling the sink of events (history_tell.c), and mappings
 * (history_maps.c). One thread at a time. */
#ifndef VST_MEMORY_HISTORY_PARTS_H
#define VST_MEMORY_HISTORY_PARTS_H

#include "memory/history.h"
#include "memory/live.h"
#include "memory/merge.h"

/* Counted apart: a framework's blocks lie in blocks of the system's, and what
 * is reserved is no memory. */
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
    double sample_bytes;                /* 0: all */
    bool has_all_mappings;              /* samples are of blocks alone */
    vst_id resident_id, files_id;       /* counters; 0: there is none */
    double files;                       /* what the second one told last */
    uint64_t words_total, words_before; /* the windows that are done */
    int64_t next_progress_ns;
    const vst__window *window, *last_window; /* behind the last one */
    bool in_window;
};

static inline bool vst__history_is_framework(uint32_t kind)
{
    return kind == VST_MEMORY_FRAMEWORK || kind == VST_MEMORY_FRAMEWORK_FREE;
}

static inline vst__history_group *vst__history_group_of(vst__history *self,
                                                        uint32_t kind)
{
    return &self->groups[vst__history_is_framework(kind) ? VST_GROUP_FRAMEWORK
                                                         : VST_GROUP_SYSTEM];
}

static inline int64_t vst__history_time(vst__history *self,
                                        const vst__merge_stream *from)
{
    return self->converter.to_ns(self->converter.ctx, from->time);
}

/* The size of a range that ends where addresses do, or before. */
static inline uint64_t vst__history_size(const vst__memory_record *record)
{
    uint64_t most = UINT64_MAX - record->address;

    return record->size < most ? record->size : most;
}

/* ---- history_tell.c ----------------------------------------------------- */

/* What the trace says of itself, and which counters are of memory. */
void vst__history_read_facts(vst__history *self);
/* Tell of a block that was added to its group, or taken out of it. */
vst_status vst__history_tell_alloc(vst__history *self,
                                   const vst__merge_stream *from,
                                   vst__history_group *of, uint32_t flags,
                                   uint32_t kind, const vst__block_info *block);
vst_status vst__history_tell_free(vst__history *self,
                                  const vst__merge_stream *from,
                                  vst__history_group *of, uint32_t flags,
                                  uint32_t kind, const vst__block_info *freed);
vst_status vst__history_tell_unknown(vst__history *self,
                                     const vst__merge_stream *from);
/* flags: VST_MEMORY_FREES if it is not reserved any more. */
vst_status vst__history_tell_reserved(vst__history *self,
                                      const vst__merge_stream *from,
                                      uint32_t flags,
                                      const vst__block_info *range);
vst_status vst__history_tell_loss(vst__history *self,
                                  const vst__merge_stream *from);
vst_status vst__history_tell_counter(vst__history *self,
                                     const vst__merge_stream *from);

/* ---- history_maps.c; of the record that `from` is at --------------------- */

/* A new mapping takes the place of whatever was mapped there. */
vst_status vst__history_map(vst__history *self, const vst__merge_stream *from,
                            vst__block_info *block);
vst_status vst__history_unmap(vst__history *self,
                              const vst__merge_stream *from);
vst_status vst__history_change(vst__history *self,
                               const vst__merge_stream *from);

#endif
