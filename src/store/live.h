/* Reading a file that may be written at the same time, or was when its process
 * died. The writer stores what commits (a word, an entry's size, a chunk's
 * magic or `used`) after what it commits. A reader that saw the one finds the
 * other by a later read, and not in the same one, within which there is no
 * order (see source.c). So what is not sealed is read twice. One thread at a
 * time. */
#ifndef VST_STORE_LIVE_H
#define VST_STORE_LIVE_H

#include "store/reader.h"

/* Whether it may be. */
static inline bool vst__trace_is_live(const vst_trace *trace)
{
    return trace->header.state != VST_FILE_FINISHED &&
           trace->source.packed == NULL;
}

/* Takes from a later look at a chunk's header what `used` commits. False: they
 * are headers of two chunks. */
bool vst__live_header(vst_chunk_header *chunk, const vst_chunk_header *later);

/* Shortens the room of a chunk of definitions to the entries that are there,
 * which the next reads find complete. */
vst_status vst__live_entries(vst_trace *trace, uint64_t offset, uint64_t *room);

/* Whether the segment's chunk was given to other records since it was found:
 * what was read of it just now does not count. */
vst_status vst__live_is_reused(vst_trace *trace, const vst__segment *segment,
                               bool *reused);

/* The bytes of a record or an entry, by its first 8 bytes; 0: there is none. */
uint64_t vst__live_size(const vst_chunk_header *chunk, const void *first);

#endif
