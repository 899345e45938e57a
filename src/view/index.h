/* The index of a trace: what is kept of it to draw pictures without reading the
 * records. This header is the specification of its file (t.vst.view).
 *
 * Checkpoints. About every VST_CHECKPOINT_RECORDS records of a thread there is
 * one: where a walk can begin, and what is open there. Only those frames are
 * kept that the checkpoint before it has not got.
 *
 * Levels. A thread of more than VST_PYRAMID_RECORDS records has, for each row
 * (a depth of its stack, or a lane of what lies beside it) and each level, the
 * row's spans merged into runs (run.h): neighbours go into one run as long as
 * it is no longer than the level's threshold, so what is longer is there as it
 * was. Level 1 has the thread's threshold, each further one four times that of
 * the one before it, which it is made from. Level 0 has every span, and only
 * lanes have it.
 *
 * The runs of a level and row lie in blocks; a run is five numbers of seven
 * bits a byte, low first: start less the end of the run before it (zigzag; the
 * block's first: 0), width, width that no span fills, id << 1 | is single, and
 * the count, or of a single one its flags.
 *
 * Moves. A span that BEGIN opened is on the stack until it ends, or until the
 * call around it is left: then it goes on beside the stack, and is drawn in a
 * lane alone. Of each such span the index has how long it was on the stack, so
 * that a walk that ends meanwhile knows that it is no span of its row.
 *
 * The file: vst__index_header, blocks, then the tables, each at a multiple of
 * 8. It is valid if magic, version, byte order, size and checksum are right,
 * and of the trace if all that identifies that is the same. It is written under
 * another name and renamed when it is whole. */
#ifndef VST_VIEW_INDEX_H
#define VST_VIEW_INDEX_H

#include "replay/matcher_stack.h"
#include "view/run.h"
#include "view/track.h"
#include "view/walk.h"

#define VST_INDEX_MAGIC "vstview\n"
#define VST_INDEX_VERSION 5u

enum {
    VST_CHECKPOINT_RECORDS = 8192,
    VST_PYRAMID_RECORDS = 4096,
    VST_LEVELS_MAX = 24,
    VST_ROWS_MAX = 4096, /* deeper ones are not drawn from levels */
    VST_LANES_MAX = 64,
    VST_INDEX_BLOCK = 4096
};

/* What an index is of. */
typedef struct vst__index_identity {
    uint8_t trace_id[16];
    uint64_t file_size;
    int64_t modified_ns;
    uint64_t words;
    uint64_t segments; /* a hash of where they lie */
    uint32_t checksum; /* of the trace's header */
    uint32_t state;    /* of the trace */
    uint64_t clip;     /* as the file asks for it */
} vst__index_identity;

typedef struct vst__index_block {
    int64_t start_ns; /* of its first run */
    uint64_t offset;
    uint32_t bytes, runs;
} vst__index_block;

#define VST_ROW_BESIDE 0x80000000u

typedef struct vst__index_stream {
    uint32_t row; /* a lane: VST_ROW_BESIDE + its number */
    uint32_t level;
    uint64_t first_block, blocks;
} vst__index_stream;

typedef struct vst__index_thread {
    uint32_t number;
    uint32_t levels, beside;
    uint32_t level_count; /* of its pyramid, 0: it has none */
    uint64_t spans, records;
    int64_t start_ns, end_ns;
    int64_t threshold_ns;           /* of level 1 */
    uint64_t has_tasks;             /* 1: steps of tasks */
    uint64_t first_stream, streams; /* sorted by row, then level */
    uint64_t first_move, moves;     /* sorted by start */
} vst__index_thread;

typedef struct vst__index_move {
    int64_t start_ns; /* as the frame has it; that of its lane may differ */
    int64_t moved_ns;
} vst__index_move;

typedef struct vst__index_stretch {
    uint64_t first_checkpoint, checkpoints;
    uint64_t words;
} vst__index_stretch;

typedef struct vst__checkpoint {
    uint64_t segment, word;
    uint64_t ticks, records;
    int64_t last_ns;
    uint64_t bytes, allocations;
    uint64_t words;       /* of the stretch before it */
    uint64_t first_frame; /* of those that are new */
    uint32_t kept;        /* frames that the one before it has too */
    uint32_t open_count;
    uint32_t delivered;
    uint32_t reserved;
} vst__checkpoint;

typedef struct vst__index_loss {
    uint32_t kind, thread;
    int64_t start_ns, end_ns;
    uint64_t records;
} vst__index_loss;

typedef struct vst__index_track {
    uint32_t kind, id, thread, reserved;
    uint64_t first_point, points;
} vst__index_track;

typedef struct vst__index_far_end {
    uint64_t window; /* place among the trace's */
    uint64_t pair;
    int64_t end_ns;
} vst__index_far_end;

typedef struct vst__index_table {
    uint64_t offset, count;
} vst__index_table;

/* Names of tables, the structs that they hold. */
#define VST_INDEX_TABLES(X)                                                    \
    X(blocks, vst__index_block)                                                \
    X(streams, vst__index_stream)                                              \
    X(threads, vst__index_thread)                                              \
    X(moves, vst__index_move)                                                  \
    X(stretches, vst__index_stretch)                                           \
    X(checkpoints, vst__checkpoint)                                            \
    X(frames, vst__open)                                                       \
    X(losses, vst__index_loss)                                                 \
    X(tracks, vst__index_track)                                                \
    X(points, vst__track_point)                                                \
    X(far_ends, vst__index_far_end)

typedef struct vst__index_header {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t size;     /* of the file */
    uint64_t checksum; /* of all bytes, with this being 0 */
    vst__index_identity identity;
    uint64_t spans;
#define VST_INDEX_FIELD(name, type) vst__index_table name;
    VST_INDEX_TABLES(VST_INDEX_FIELD)
#undef VST_INDEX_FIELD
} vst__index_header;

_Static_assert(sizeof(vst__index_header) % 8 == 0, "what follows is aligned");

/* An index that can be read. */
typedef struct vst__index {
    const unsigned char *bytes;
    size_t size;
    const vst__index_header *header;
#define VST_INDEX_POINTER(name, type) const type *name;
    VST_INDEX_TABLES(VST_INDEX_POINTER)
#undef VST_INDEX_POINTER
} vst__index;

/* ---- index_file.c ---------------------------------------------------------
 */

vst_status vst__index_identify(vst_trace *trace, const vst__stretch *stretches,
                               size_t count, vst__index_identity *identity);
/* A sum of bytes that come in parts: every part but the last is a multiple of
 * VST_INDEX_SUM_STEP long. */
enum { VST_INDEX_SUM_STEP = 32 };
typedef struct vst__index_sum_state {
    uint64_t lanes[4];
    uint64_t count;
} vst__index_sum_state;
void vst__index_sum_begin(vst__index_sum_state *state, uint64_t sum);
void vst__index_sum_add(vst__index_sum_state *state, const void *bytes,
                        size_t count);
uint64_t vst__index_sum_end(const vst__index_sum_state *state);
uint64_t vst__index_checksum(const void *bytes, size_t count, uint64_t sum);
/* Of a whole index, whatever its header says it is: begun with the sum of its
 * header, goes on with what follows that. */
uint64_t vst__index_header_sum(const vst__index_header *header);
uint64_t vst__index_sum(const unsigned char *bytes, size_t size);
/* Reads an index into memory, which nobody else can change or cut, and looks at
 * all that is in it; VST_E_DAMAGED: it is not one, or not of this trace. */
vst_status vst__index_load(vst__index *index, int fd, const vst_trace *trace,
                           const vst__index_identity *identity,
                           const vst__stretch *stretches, size_t count);
void vst__index_unload(vst__index *index);

/* ---- index_build.c --------------------------------------------------------
 */

typedef struct vst__index_job {
    vst_trace *trace;
    const vst__reading *reading;
    const vst__stretch *stretches;
    size_t stretch_count;
    const vst_far_ends *far_ends; /* by window, NULL: none */
    const vst__index_identity *identity;
    unsigned workers;
    vst_progress_fn progress;
    void *progress_ctx;
} vst__index_job;

/* Writes an index to fd. */
vst_status vst__index_build(const vst__index_job *job, int fd,
                            vst_error *error);

/* ---- reading (index_read.c) ------------------------------------------------
 */

/* A row at a level, from a time on. */
typedef struct vst__runs {
    const vst__index *index;
    const vst__index_block *block, *end;
    const unsigned char *at, *limit;
    uint32_t left; /* in this block */
    int64_t before_ns;
} vst__runs;

const vst__index_thread *vst__index_thread_find(const vst__index *index,
                                                uint32_t number);
/* At the last run that begins at from_ns or before; false if the row has none.
 */
bool vst__runs_open(vst__runs *runs, const vst__index *index,
                    const vst__index_thread *thread, uint32_t row,
                    uint32_t level, int64_t from_ns);
bool vst__runs_next(vst__runs *runs, vst__run *run);
/* How long runs of a level are at most. */
int64_t vst__index_threshold(const vst__index_thread *thread, uint32_t level);

/* Whether a frame that is open at time_ns, and began before that, will be moved
 * from the stack. */
bool vst__index_is_moved(const vst__index *index,
                         const vst__index_thread *thread, int64_t start_ns,
                         int64_t time_ns);

/* The last checkpoint of a stretch that is not after from_ns; its number, or
 * -1.
 */
int64_t vst__checkpoint_before(const vst__index *index, size_t stretch,
                               int64_t from_ns);
/* What is open there, in `open`, which grows. */
vst_status vst__checkpoint_place(const vst__index *index, size_t stretch,
                                 int64_t number, vst__place *place,
                                 vst__open **open, size_t *capacity);

#endif
