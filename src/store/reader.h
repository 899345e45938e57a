/* The inside of a vst_trace, shared by the files that read one (reader.c,
 * segments.c, entries.c) and by replay and the exporters. One thread at a
 * time. */
#ifndef VST_STORE_READER_H
#define VST_STORE_READER_H

#include <vestige/trace.h>

#include "store/block.h"
#include "store/clockmap.h"
#include "store/format.h"

/* A run of words in the file that belong to one thread of one window. */
typedef struct vst__segment {
    uint64_t offset; /* in the file, of its first word */
    uint64_t words;
    vst_ticks start;
    vst_ticks last; /* of its last word, 0 while nobody looked */
    uint32_t thread;
    uint32_t window;
} vst__segment;

typedef struct vst__window {
    uint32_t number;
    bool closed; /* its last ticks are what the file says */
    vst_ticks first;
    vst_ticks last;
    size_t segments;      /* index of its first one */
    size_t segment_count; /* sorted by thread, then time */
    uint64_t words;
} vst__window;

typedef struct vst__metadata {
    char *key;
    char *json;
    size_t order;
} vst__metadata;

/* Strings that live as long as the trace, in blocks. */
typedef struct vst__strings {
    struct vst__strings_block *blocks;
} vst__strings;

struct vst_trace {
    vst__block block; /* owns no descriptor: fd below */
    int fd;
    vst_file_header header;
    uint64_t valid_end; /* bytes up to here are whole chunks */
    bool damaged;       /* something other than zeros lies behind */

    vst__segment *segments;
    size_t segment_count, segment_capacity;
    vst__window *windows; /* sorted by number */
    size_t window_count, window_capacity;

    vst_definition *definitions; /* sorted by id, with definition_ids */
    vst_id *definition_ids;
    size_t definition_count, definition_capacity, definition_id_capacity;
    vst_trace_thread *threads; /* sorted by number */
    size_t thread_count, thread_capacity;
    vst__metadata *metadata;
    size_t metadata_count, metadata_capacity;
    vst__strings strings;

    vst__clockmap clock;
    vst_progress_fn progress;
    void *progress_ctx;
    uint64_t unmatched_exits;
};

/* Its magic, its checksum and its size are right. */
bool vst__chunk_is_valid(const vst_chunk_header *chunk);
/* How much of a chunk the file must hold for nothing to be missing. */
uint64_t vst__chunk_extent(const vst_chunk_header *chunk);

/* ---- segments.c --------------------------------------------------------- */

/* Adds what a RECORDS chunk at offset holds, given `room` bytes of it. */
vst_status vst__segments_add(vst_trace *trace, const vst_chunk_header *chunk,
                             uint64_t offset, uint64_t room);
/* Sets `used` and `segments` of a RECORDS chunk that was never sealed. */
vst_status vst__segments_measure(vst_trace *trace, vst_chunk_header *chunk,
                                 uint64_t offset, uint64_t room);
/* After the last chunk: sorts, and gives every window its segments and times,
 * every thread its words. */
vst_status vst__segments_finish(vst_trace *trace);

/* ---- entries.c ---------------------------------------------------------- */

/* The entry at offset, a's bytes and b's in strings until something else is
 * read. Its size is 0 where there is none. */
vst_status vst__entry_read(vst_trace *trace, uint64_t offset, uint64_t room,
                           vst_file_entry *entry, const char **strings);
vst_status vst__entries_add(vst_trace *trace, uint64_t offset, uint64_t room);
vst_status vst__entries_finish(vst_trace *trace);
void vst__entries_free(vst_trace *trace);
vst_status vst__entries_note_window(vst_trace *trace,
                                    const vst__window *window);
vst_status vst__entries_note_thread(vst_trace *trace, uint32_t number);

#define VST_NO_DEFINITION ((size_t)-1)
/* Where a definition stands among trace->definitions. */
size_t vst__trace_definition_index(const vst_trace *trace, vst_id id);

#endif
