/* The inside of a vst_trace, shared by the files that read one (reader.c,
 * segments.c, entries.c) and by replay and the exporters. One thread at a
 * time. */
#ifndef VST_STORE_READER_H
#define VST_STORE_READER_H

#include <vestige/memory.h>
#include <vestige/trace.h>

#include "store/block.h"
#include "store/clockmap.h"
#include "store/devices.h"
#include "store/format.h"
#include "store/source.h"
#include "store/stream.h"

/* A run of words in the file that belong to one thread of one window. */
typedef struct vst__segment {
    uint64_t offset; /* in the file, of its first word */
    uint64_t words;
    vst_ticks start;
    vst_ticks last; /* of its last word, 0 while nobody looked */
    uint32_t thread;
    uint32_t window;
    uint64_t header;     /* in the file, of its chunk */
    uint32_t sequence;   /* of its chunk */
    bool guarded;        /* the chunk may be reused while it is read */
    bool unsettled;      /* its last words may change while they are read */
    uint32_t checkpoint; /* words of the checkpoint it begins with */
    uint64_t records;    /* words of the thread before it; from there */
} vst__segment;

typedef struct vst__window {
    uint32_t number;
    bool closed; /* its last ticks are what the file says */
    vst_ticks began;
    vst_ticks kept;     /* what was not dropped begins here, or later */
    vst_ticks complete; /* from here on nothing was dropped */
    vst_ticks ended;
    vst_ticks first;      /* what is shown begins here */
    vst_ticks last;       /* and ends here */
    size_t segments;      /* index of its first one */
    size_t segment_count; /* sorted by thread, then time */
    /* Behind them those of VST_THREAD_SWITCHES, sorted by time. */
    size_t switches;
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

typedef struct vst__stack_entry {
    vst_stack_id id;
    uint32_t order; /* among the entries of the file */
    vst_stack stack;
} vst__stack_entry;

/* A chunk of a trace that is read while it grows (grow.c). */
typedef struct vst__known_chunk {
    uint64_t offset;
    uint32_t sequence;
    uint16_t kind;
    bool sealed;       /* all that it holds was read */
    uint64_t entries;  /* of DEFINITIONS: bytes of them that were read */
    vst__segment tail; /* of RECORDS: its last segment, as far as it goes */
} vst__known_chunk;

struct vst_trace {
    vst__source source;
    vst__block block; /* of the source */
    vst_file_header header;
    uint32_t slot_size; /* the header's if that can be, else 0 */
    uint64_t found_at;  /* the chunk that was found last, 0: none */
    uint32_t found_sequence;
    uint64_t valid_end;  /* bytes up to here are chunks */
    bool damaged;        /* something other than a chunk, or zeros */
    uint64_t damaged_at; /* is here; in a bounded file more may follow */
    vst_ticks clip;      /* what was before is not shown; 0: all is */
    vst_ticks keep_clip; /* the same, as the file asks for it */
    vst_ticks until;     /* what comes after is not shown */

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

    bool has_memory;          /* records of it, maybe */
    vst__stack_entry *stacks; /* sorted by id */
    size_t stack_count, stack_capacity;
    vst_module *modules;
    size_t module_count, module_capacity;

    vst__trace_devices devices;
    vst__clockmap clock;
    vst_progress_fn progress;
    void *progress_ctx;
    uint64_t unmatched_exits;
    bool by_running;  /* see vst_trace_set_by_running */
    bool compensated; /* see vst_trace_set_compensated */

    /* While it grows (grow.c): chunks that may change, by their place. In a
     * bounded file these are all that there are. */
    bool growing;
    uint64_t grow_at; /* the next chunk is expected here */
    vst__known_chunk *known;
    size_t known_count, known_capacity;
    size_t sorted; /* so many segments are in reading order */
};

/* The chunk at *offset or, in a bounded file, the first one behind it; false
 * where there is none. Leaves its place in *offset and how much of it the file
 * has in *room. */
vst_status vst__trace_find_chunk(vst_trace *trace, uint64_t *offset,
                                 vst_chunk_header *chunk, uint64_t *room,
                                 bool *found);
/* Reads a chunk's header twice where it may be changing. */
vst_status vst__trace_read_chunk(vst_trace *trace, uint64_t offset,
                                 vst_chunk_header *chunk, bool *valid);
/* The file's header, checked. */
vst_status vst__trace_read_header(vst_trace *trace, vst_error *error);
/* Shows all of it but what is older than the file is asked to keep. */
vst_status vst__trace_show_all(vst_trace *trace);
/* Whether it has switches of threads. */
bool vst__trace_has_switches(const vst_trace *trace);
bool vst__trace_has_gil_waits(const vst_trace *trace);
bool vst__trace_has_object_waits(const vst_trace *trace);
/* All of it was dropped, or lies outside of the range. */
bool vst__window_is_gone(const vst_trace *trace, const vst__window *window);

/* From the first window of which something is left to show to the last; one
 * where there is none. */
void vst__trace_shown_windows(const vst_trace *trace, size_t *first,
                              size_t *count);
/* The windows that a window number or VST_WINDOW_* names: `count` of
 * trace->windows from `first`. */
vst_status vst__trace_select_windows(const vst_trace *trace, int window,
                                     size_t *first, size_t *count);

/* A file's slot_size, 0 where it cannot be: no checksum covers it. */
uint32_t vst__sane_slot_size(uint32_t size);
/* Its magic, its checksum and its size are right. */
bool vst__chunk_is_valid(const vst_chunk_header *chunk);
/* How much of a chunk the file must hold for nothing to be missing. */
uint64_t vst__chunk_extent(const vst_chunk_header *chunk);

/* ---- grow.c ------------------------------------------------------------- */

/* As vst_trace_open, for a trace that is then read while it grows. Words that
 * may still change are not there yet. */
vst_status vst__trace_open_growing(const char *path, vst_trace **trace,
                                   vst_error *error);
/* Adds what was recorded since. Segments, windows, threads, definitions and the
 * pieces of the clock move; words that were there stay what and where they are,
 * unless a bounded file gave them to other records. VST_E_DAMAGED: the file was
 * cut, or is another one. */
vst_status vst__trace_grow(vst_trace *trace, vst_error *error);

/* ---- segments.c --------------------------------------------------------- */

/* Adds what a RECORDS chunk at offset holds, given `room` bytes of it. */
vst_status vst__segments_add(vst_trace *trace, const vst_chunk_header *chunk,
                             uint64_t offset, uint64_t room);
/* The same in a trace that grows: adds what a chunk holds behind known->tail,
 * of which all words are there to stay. */
vst_status vst__segments_grow(vst_trace *trace, const vst_chunk_header *chunk,
                              uint64_t room, vst__known_chunk *known);
/* Sets `used` and `segments` of a RECORDS chunk that was never sealed. */
vst_status vst__segments_measure(vst_trace *trace, vst_chunk_header *chunk,
                                 uint64_t offset, uint64_t room);
/* After the last chunk: sorts, and gives every window its segments and times,
 * every thread its words. */
vst_status vst__segments_finish(vst_trace *trace);
/* Opens a stream of its words. */
void vst__segment_open(const vst__segment *segment, vst__block *block,
                       vst__stream *stream);
/* The time of the last record. */
vst_status vst__segments_last(vst_trace *trace, vst_ticks *last);

/* ---- entries.c ---------------------------------------------------------- */

/* The entry at offset, a's bytes and b's in strings until something else is
 * read. Its size is 0 where there is none. */
vst_status vst__entry_read(vst_trace *trace, uint64_t offset, uint64_t room,
                           vst_file_entry *entry, const char **strings);
/* *read: so many bytes of them, if it is not NULL. */
vst_status vst__entries_add(vst_trace *trace, uint64_t offset, uint64_t room,
                            uint64_t *read);
vst_status vst__entries_finish(vst_trace *trace);
void vst__entries_free(vst_trace *trace);
vst_status vst__entries_note_window(vst_trace *trace,
                                    const vst__window *window);
vst_status vst__entries_note_thread(vst_trace *trace, uint32_t number);

/* ---- stacks.c ----------------------------------------------------------- */

vst_status vst__stacks_add(vst_trace *trace, const vst_file_entry *entry);
/* Strings that live as long as the trace; NULL: there was no memory. */
vst_status vst__modules_add(vst_trace *trace, const vst_file_entry *entry,
                            const char *path, const char *build_id);
void vst__stacks_finish(vst_trace *trace);
void vst__stacks_free_all(vst_trace *trace);

/* The largest id that the file can have defined, of entries that take at least
 * so many bytes: a writer gives ids out one after the other. A definition of a
 * larger one is damage and is left out when the trace is opened, so that arrays
 * by id are never larger than the file explains. */
static inline uint64_t vst__trace_id_bound(const vst_trace *trace,
                                           size_t entry_size)
{
    return trace->valid_end / entry_size;
}

#define VST_NO_DEFINITION ((size_t)-1)
/* Where a definition stands among trace->definitions. */
size_t vst__trace_definition_index(const vst_trace *trace, vst_id id);

#endif
