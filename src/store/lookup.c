/* Answers questions about definitions of an open trace, from the sorted arrays
 * that entries.c made. One thread at a time. */
#include <string.h>

#include "store/reader.h"

size_t vst__trace_definition_index(const vst_trace *trace, vst_id id)
{
    const vst_id *ids = trace->definition_ids;
    size_t low = 0, high = trace->definition_count;

    if (high == 0 || id < ids[0])
        return VST_NO_DEFINITION;
    /* Ids are given out in order, so this is the id's place, unless the file
     * lost some ids. */
    if (id - ids[0] < high && ids[id - ids[0]] == id)
        return id - ids[0];
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (ids[middle] <= id)
            low = middle;
        else
            high = middle;
    }
    return ids[low] == id ? low : VST_NO_DEFINITION;
}

const vst_definition *vst_trace_definition(const vst_trace *trace, vst_id id)
{
    size_t index = vst__trace_definition_index(trace, id);

    return index != VST_NO_DEFINITION ? &trace->definitions[index] : NULL;
}

vst_id vst_trace_definition_max(const vst_trace *trace)
{
    return trace->definition_count != 0
               ? trace->definition_ids[trace->definition_count - 1]
               : 0;
}

size_t vst_trace_thread_count(const vst_trace *trace)
{
    return trace->thread_count;
}

const vst_trace_thread *vst_trace_thread_at(const vst_trace *trace,
                                            size_t index)
{
    return index < trace->thread_count ? &trace->threads[index] : NULL;
}

const vst_trace_thread *vst_trace_thread_find(const vst_trace *trace,
                                              uint32_t number)
{
    size_t low = 0, high = trace->thread_count;

    while (high > low) {
        size_t middle = low + (high - low) / 2;
        if (trace->threads[middle].number == number)
            return &trace->threads[middle];
        if (trace->threads[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const char *vst_trace_metadata(const vst_trace *trace, const char *key)
{
    for (size_t i = 0; i < trace->metadata_count; i++)
        if (strcmp(trace->metadata[i].key, key) == 0)
            return trace->metadata[i].json;
    return NULL;
}

const char *vst_trace_metadata_at(const vst_trace *trace, size_t index,
                                  const char **key)
{
    if (index >= trace->metadata_count)
        return NULL;
    if (key != NULL)
        *key = trace->metadata[index].key;
    return trace->metadata[index].json;
}
