/* Reads a file that may be written at this moment, or was when its process
 * died. The writer first stores the data and then the value that commits it (a
 * word, an entry's size, a chunk's magic or `used`). A reader that saw the
 * commit finds the data in a later read, but not necessarily in the same read,
 * because one read has no order (see source.c). So everything that is not
 * sealed is read twice. One thread at a time. */
#ifndef VST_STORE_LIVE_H
#define VST_STORE_LIVE_H

#include "store/reader.h"

/* Returns whether the file may be written at this moment. */
static inline bool vst__trace_is_live(const vst_trace *trace)
{
    return trace->header.state != VST_FILE_FINISHED &&
           trace->source.packed == NULL;
}

/* Takes the fields that `used` commits from a later look at the header. Returns
 * false if the two looks show different chunks. */
bool vst__live_header(vst_chunk_header *chunk, const vst_chunk_header *later);

/* Shortens the room of a chunk of definitions to the entries that exist; later
 * reads find these complete. */
vst_status vst__live_entries(vst_trace *trace, uint64_t offset, uint64_t *room);

/* Finds out whether the segment's chunk was given to other records since it was
 * found. If so, ignore the words that were read just now. */
vst_status vst__live_is_reused(vst_trace *trace, const vst__segment *segment,
                               bool *reused);

/* Returns how many bytes a record or an entry has, from its first 8 bytes; 0 if
 * there is none. */
uint64_t vst__live_size(const vst_chunk_header *chunk, const void *first);

#endif
