/* Reports the history to its sink: allocations and frees with the live memory
 * after them, reserved space, resident memory, losses. One thread at a time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory/history_state.h"

/* ---- events -------------------------------------------------------------- */

/* Returns how many allocations a sampled one stands for. */
static double weight_of(const vst__history *self, uint64_t size,
                        vst_memory_kind kind)
{
    double chance;

    if (self->sample_bytes <= 0 ||
        (self->has_all_mappings &&
         (kind == VST_MEMORY_MMAP || kind == VST_MEMORY_MUNMAP)))
        return 1;
    chance = -expm1(-(double)size / self->sample_bytes);
    return chance > 0 ? 1 / chance : 1;
}

static vst_status history_report(vst__history *self,
                                 const vst__history_group *of,
                                 vst_memory_event *event)
{
    event->live_bytes = of->bytes;
    event->live_count = of->count;
    event->weight = weight_of(self, event->size, event->kind);
    return self->sink.event != NULL ? self->sink.event(self->sink.ctx, event)
                                    : VST_OK;
}

vst_status vst__history_report_free(vst__history *self,
                                    const vst__merge_stream *from,
                                    vst__history_group *of, uint32_t flags,
                                    uint32_t kind, const vst__block_info *freed)
{
    of->bytes -= freed->size;
    of->count = of->live.slot_used + of->live.map_count;
    return history_report(self, of,
                          &(vst_memory_event){
                              .time_ns = vst__history_time(self, from),
                              .thread = from->thread,
                              .kind = (vst_memory_kind)kind,
                              .flags = VST_MEMORY_FREES | flags,
                              .stack = freed->stack,
                              .address = freed->address,
                              .size = freed->size,
                              .serial = freed->serial,
                              .allocated_ns = freed->time_ns,
                          });
}

vst_status vst__history_report_alloc(vst__history *self,
                                     const vst__merge_stream *from,
                                     vst__history_group *of, uint32_t flags,
                                     uint32_t kind,
                                     const vst__block_info *block)
{
    of->bytes += block->size;
    of->count = of->live.slot_used + of->live.map_count;
    return history_report(self, of,
                          &(vst_memory_event){
                              .time_ns = block->time_ns,
                              .thread = from->thread,
                              .kind = (vst_memory_kind)kind,
                              .flags = flags,
                              .stack = block->stack,
                              .address = block->address,
                              .size = block->size,
                              .serial = block->serial,
                          });
}

vst_status vst__history_report_unknown(vst__history *self,
                                       const vst__merge_stream *from)
{
    const vst__memory_record *record = &from->cursor.record;

    return history_report(self, vst__history_group_of(self, record->kind),
                          &(vst_memory_event){
                              .time_ns = vst__history_time(self, from),
                              .thread = from->thread,
                              .kind = (vst_memory_kind)record->kind,
                              .flags = VST_MEMORY_FREES | VST_MEMORY_UNKNOWN,
                              .address = record->address,
                              .size = record->size,
                          });
}

/* flags: VST_MEMORY_FREES if the range is not reserved any more. */
vst_status vst__history_report_reserved(vst__history *self,
                                        const vst__merge_stream *from,
                                        uint32_t flags,
                                        const vst__block_info *range)
{
    vst__history_group *of = &self->groups[VST_GROUP_RESERVED];
    bool ends = (flags & VST_MEMORY_FREES) != 0;

    of->bytes = ends ? of->bytes - range->size : of->bytes + range->size;
    of->count = of->live.map_count;
    if (self->sink.reserved == NULL)
        return VST_OK;
    return self->sink.reserved(self->sink.ctx,
                               &(vst_memory_event){
                                   .time_ns = vst__history_time(self, from),
                                   .thread = from->thread,
                                   .kind = VST_MEMORY_RESERVE,
                                   .flags = flags,
                                   .stack = range->stack,
                                   .address = range->address,
                                   .size = range->size,
                                   .serial = range->serial,
                                   .allocated_ns = ends ? range->time_ns : 0,
                                   .live_bytes = of->bytes,
                                   .live_count = of->count,
                                   .weight = 1,
                               });
}

/* ---- counters and losses ------------------------------------------------- */

/* A sample of the resident set is two counters; the files counter comes
 * first. */
vst_status vst__history_report_counter(vst__history *self,
                                       const vst__merge_stream *from)
{
    const vst__memory_record *record = &from->cursor.record;
    vst_id id = (vst_id)(record->address & VST_ID_MAX);
    double value;

    memcpy(&value, &record->size, sizeof value);
    if (id == 0 || !(value >= 0 && value < 0x1p63))
        return VST_OK;
    if (id == self->files_id)
        self->files = value;
    if (id != self->resident_id || self->sink.resident == NULL)
        return VST_OK;
    return self->sink.resident(self->sink.ctx,
                               &(vst_memory_resident){
                                   .time_ns = vst__history_time(self, from),
                                   .bytes = (uint64_t)value,
                                   .file_bytes = (uint64_t)self->files,
                               });
}

vst_status vst__history_report_loss(vst__history *self,
                                    const vst__merge_stream *from)
{
    const vst__memory_record *record = &from->cursor.record;
    vst_loss loss = {
        .kind = (vst_loss_kind)record->kind,
        .thread = from->thread,
        .start_ns = self->converter.to_ns(self->converter.ctx, record->address),
        .end_ns = self->converter.to_ns(self->converter.ctx, record->time),
        .records = record->size,
    };

    return self->sink.loss != NULL ? self->sink.loss(self->sink.ctx, &loss)
                                   : VST_OK;
}

/* ---- metadata of the trace ----------------------------------------------- */

/* vestige.memory: {"sample_bytes": N, ...} */
static double sample_bytes_of(const vst_trace *trace)
{
    const char *json = vst_trace_metadata(trace, "vestige.memory");
    const char *key = json != NULL ? strstr(json, "\"sample_bytes\"") : NULL;
    const char *colon = key != NULL ? strchr(key, ':') : NULL;
    double value = colon != NULL ? strtod(colon + 1, NULL) : 0;

    return value > 0 && value < 1e18 ? value : 0;
}

static bool has_all_mappings(const vst_trace *trace)
{
    const char *json = vst_trace_metadata(trace, "vestige.memory");

    return json != NULL && strstr(json, "\"all_mappings\": true") != NULL;
}

static vst_id find_counter(const vst_trace *trace, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < trace->definition_count; i++) {
        const vst_definition *d = &trace->definitions[i];

        if (d->kind == VST_DEF_COUNTER && d->name_len == length &&
            memcmp(d->name, name, length) == 0)
            return trace->definition_ids[i];
    }
    return 0;
}

void vst__history_read_facts(vst__history *self)
{
    self->sample_bytes = sample_bytes_of(self->trace);
    self->has_all_mappings = has_all_mappings(self->trace);
    if (self->sink.resident == NULL)
        return;
    self->resident_id = find_counter(self->trace, VST_COUNTER_RESIDENT);
    self->files_id = find_counter(self->trace, VST_COUNTER_RESIDENT_FILES);
}
