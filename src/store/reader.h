/* The state of a vst_trace, for the files that read a trace (reader.c,
 * segments.c, entries.c), for replay and for the exporters. One thread at a
 * time. */
#ifndef VST_STORE_READER_H
#define VST_STORE_READER_H

#include <vestige/memory.h>
#include <vestige/trace.h>

#include "store/block.h"
#include "store/chunk.h"
#include "store/clockmap.h"
#include "store/devices.h"
#include "store/source.h"
#include "store/stream.h"

/* A run of words in the file that belong to one thread and one window. */
typedef struct vst__segment {
    uint64_t offset; /* position of its first word in the file */
    uint64_t words;
    vst_ticks start;
    vst_ticks last; /* time of its last word; 0 if not known yet */
    uint32_t thread;
    uint32_t window;
    uint64_t header;   /* position of its chunk in the file */
    uint32_t sequence; /* sequence number of its chunk */
    bool guarded;      /* the chunk may be reused while it is read */
    /* the segment's last words may change while they are read */
    bool may_change;
    uint32_t checkpoint; /* how many words of it are a checkpoint */
    /* words that the thread stored before it, from the checkpoint */
    uint64_t records;
} vst__segment;

typedef struct vst__window {
    uint32_t number;
    bool closed; /* the file says when its last record was */
    vst_ticks began;
    vst_ticks kept;     /* the records that were kept begin here, or later */
    vst_ticks complete; /* from here on, no record was dropped */
    vst_ticks ended;
    vst_ticks first;      /* the shown range begins here */
    vst_ticks last;       /* the shown range ends here */
    size_t segments;      /* index of its first segment */
    size_t segment_count; /* sorted by thread, then time */
    /* Segments of VST_THREAD_SWITCHES, which follow the others, sorted by
     * time. */
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
    uint32_t order; /* position among the entries of the file */
    vst_stack stack;
} vst__stack_entry;

/* A chunk of a growing trace (grow.c). */
typedef struct vst__known_chunk {
    uint64_t offset;
    uint32_t sequence;
    uint16_t kind;
    bool sealed; /* everything in it was read */
    /* for DEFINITIONS: how many bytes of entries were read */
    uint64_t entries;
    /* for RECORDS: its last segment, as far as it was read */
    vst__segment tail;
} vst__known_chunk;

struct vst_trace {
    vst__source source;
    vst__block block; /* a view of the source */
    vst_file_header header;
    uint32_t slot_size; /* from the header if that value is possible, else 0 */
    uint64_t found_at;  /* position of the chunk found last; 0 if none */
    uint32_t found_sequence;
    uint64_t valid_end; /* bytes up to here are chunks */
    /* the file has bytes that are neither chunks nor zeros */
    bool damaged;
    /* where the damaged bytes begin; in a bounded file, chunks may follow */
    uint64_t damaged_at;
    vst_ticks clip;      /* earlier records are not shown; 0 if all are */
    vst_ticks keep_clip; /* the clip that the file itself asks for */
    vst_ticks until;     /* later records are not shown */

    vst__segment *segments;
    size_t segment_count, segment_capacity;
    vst__window *windows; /* windows, sorted by number */
    size_t window_count, window_capacity;

    /* definitions, sorted by id like definition_ids */
    vst_definition *definitions;
    vst_id *definition_ids;
    size_t definition_count, definition_capacity, definition_id_capacity;
    vst_trace_thread *threads; /* threads, sorted by number */
    size_t thread_count, thread_capacity;
    vst__metadata *metadata;
    size_t metadata_count, metadata_capacity;
    vst__strings strings;

    bool has_memory;          /* the trace may have records of memory */
    vst__stack_entry *stacks; /* stacks, sorted by id */
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

    /* For a growing trace (grow.c): chunks that may change, by their place. For
     * a bounded file, all its chunks. */
    bool growing;
    uint64_t grow_at; /* where the next chunk is expected */
    vst__known_chunk *known;
    size_t known_count, known_capacity;
    size_t sorted; /* how many segments are in reading order */
};

/* Finds the chunk at *offset or, in a bounded file, the first chunk behind it.
 * Sets *offset to its place and *room to how much of it the file has. Sets
 * *found to false if there is none. */
vst_status vst__trace_find_chunk(vst_trace *trace, uint64_t *offset,
                                 vst_chunk_header *chunk, uint64_t *room,
                                 bool *found);
/* Reads the header of a chunk; twice if it may be changing. */
vst_status vst__trace_read_chunk(vst_trace *trace, uint64_t offset,
                                 vst_chunk_header *chunk, bool *valid);
/* Reads and checks the header of the file. */
vst_status vst__trace_read_header(vst_trace *trace, vst_error *error);
/* Shows the whole trace, except records that are older than the file is asked
 * to keep. */
vst_status vst__trace_show_all(vst_trace *trace);
/* Returns whether the trace has switches of threads. */
bool vst__trace_has_switches(const vst_trace *trace);
bool vst__trace_has_gil_waits(const vst_trace *trace);
bool vst__trace_has_object_waits(const vst_trace *trace);
/* Returns whether all records of the window were dropped or lie outside the
 * range. */
bool vst__window_is_gone(const vst_trace *trace, const vst__window *window);

/* Gives the windows from the first to the last that has something to show:
 * `count` of trace->windows, from `first`. */
void vst__trace_shown_windows(const vst_trace *trace, size_t *first,
                              size_t *count);
/* Gives the windows that a window number or VST_WINDOW_* selects: `count` of
 * trace->windows, from `first`. */
vst_status vst__trace_select_windows(const vst_trace *trace, int window,
                                     size_t *first, size_t *count);

/* ---- grow.c -------------------------------------------------------------- */

/* Opens a trace like vst_trace_open, to read it while it grows. Words that may
 * still change are not shown yet. */
vst_status vst__trace_open_growing(const char *path, vst_trace **trace,
                                   vst_error *error);
/* Adds what was recorded since. Segments, windows, threads, definitions and the
 * pieces of the clock move in memory. Words stay where they are in the file,
 * unless a bounded file gave their place to other records. Returns
 * VST_E_DAMAGED if the file was cut or replaced. */
vst_status vst__trace_grow(vst_trace *trace, vst_error *error);

/* ---- segments.c ---------------------------------------------------------- */

/* Adds the segments of a RECORDS chunk at `offset`, of which the file has
 * `room` bytes. */
vst_status vst__segments_add(vst_trace *trace, const vst_chunk_header *chunk,
                             uint64_t offset, uint64_t room);
/* For a growing trace: adds the words of a chunk behind known->tail that cannot
 * change any more. */
vst_status vst__segments_grow(vst_trace *trace, const vst_chunk_header *chunk,
                              uint64_t room, vst__known_chunk *known);
/* Computes `used` and `segments` of a RECORDS chunk that was never sealed. */
vst_status vst__segments_measure(vst_trace *trace, vst_chunk_header *chunk,
                                 uint64_t offset, uint64_t room);
/* Call after the last chunk: sorts the segments, gives each window its segments
 * and times, and each thread its words. */
vst_status vst__segments_finish(vst_trace *trace);
/* Opens a stream of the segment's words. */
void vst__segment_open(const vst__segment *segment, vst__block *block,
                       vst__stream *stream);
/* Finds the time of the last record. */
vst_status vst__segments_last(vst_trace *trace, vst_ticks *last);

/* ---- entries.c ----------------------------------------------------------- */

/* Reads the entry at `offset`; its two strings are valid until something else
 * is read. The entry's size is 0 if there is none. */
vst_status vst__entry_read(vst_trace *trace, uint64_t offset, uint64_t room,
                           vst_file_entry *entry, const char **strings);
/* *read, if not NULL, gets the number of bytes that the entries take. */
vst_status vst__entries_add(vst_trace *trace, uint64_t offset, uint64_t room,
                            uint64_t *read);
vst_status vst__entries_finish(vst_trace *trace);
void vst__entries_free(vst_trace *trace);
vst_status vst__entries_note_window(vst_trace *trace,
                                    const vst__window *window);
vst_status vst__entries_note_thread(vst_trace *trace, uint32_t number);

/* ---- stacks.c ------------------------------------------------------------ */

vst_status vst__stacks_add(vst_trace *trace, const vst_file_entry *entry);
/* The strings must live as long as the trace; NULL if memory ran out for
 * them. */
vst_status vst__modules_add(vst_trace *trace, const vst_file_entry *entry,
                            const char *path, const char *build_id);
void vst__stacks_finish(vst_trace *trace);
void vst__stacks_free_all(vst_trace *trace);

/* Returns the largest id that the file can have defined, if an entry takes at
 * least `bytes` bytes; writers give ids out in order. A larger id is damage and
 * is left out when the trace is opened, so no array by id is larger than the
 * file justifies. */
static inline uint64_t vst__trace_id_bound(const vst_trace *trace,
                                           size_t entry_size)
{
    return trace->valid_end / entry_size;
}

#define VST_NO_DEFINITION ((size_t)-1)
/* Returns a definition's place among trace->definitions. */
size_t vst__trace_definition_index(const vst_trace *trace, vst_id id);

/* Returns whether vst_trace_set_compensated() turned compensation on. */
bool vst__trace_is_compensated(const vst_trace *trace);

#endif
