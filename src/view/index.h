/* The index of a trace: the data from which pictures are drawn without reading
 * the records. This header is the specification of its file (t.vst.view).
 *
 * Checkpoints. About every VST_CHECKPOINT_RECORDS records of a thread, a
 * checkpoint says where a walk can begin, and what is open there. It stores
 * only those frames that the previous checkpoint does not have.
 *
 * Levels. A thread of more than VST_PYRAMID_RECORDS records has levels. Each
 * level has, for each row (a depth of the stack, or a lane of spans off the
 * stack), the row's spans merged into runs (run.h): neighbours go into one run
 * as long as the run is no longer than the level's threshold, so longer spans
 * stay as they were. Level 1 has the thread's threshold, and each further level
 * has four times the threshold of the level before, from whose runs it is made.
 * Level 0 has every span; only lanes have it.
 *
 * The runs of a level and row lie in blocks. A run is five numbers of seven
 * bits per byte, low bits first: start minus the end of the previous run
 * (zigzag; the block's first: 0), width, width that no span fills, id << 1 | is
 * single, and the count, or for a single span its flags.
 *
 * Moves. A span that BEGIN opened is on the stack until it ends, or until the
 * call around it is left: then it continues off the stack, and is drawn only in
 * a lane. The index says how long each such span was on the stack, so that a
 * walk that ends meanwhile knows that the span does not belong to its row.
 *
 * The file: vst__index_header, blocks, then the tables, each at a multiple of
 * 8. The file is valid if magic, version, byte order, size and checksum are
 * right. It belongs to the trace if its whole identity is equal. It is written
 * under another name and renamed when it is complete. */
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
    VST_ROWS_MAX = 4096, /* deeper rows are not drawn from levels */
    VST_LANES_MAX = 64,
    VST_INDEX_BLOCK = 4096
};

/* Identifies the trace that an index belongs to. */
typedef struct vst__index_identity {
    uint8_t trace_id[16];
    uint64_t file_size;
    int64_t modified_ns;
    uint64_t words;
    uint64_t segments; /* hash of the segments' positions */
    uint32_t checksum; /* checksum of the trace's header */
    uint32_t state;    /* state of the trace */
    uint64_t clip;     /* the bound in time that the file asks for */
} vst__index_identity;

typedef struct vst__index_block {
    int64_t start_ns; /* start of the block's first run */
    uint64_t offset;
    uint32_t bytes, runs;
} vst__index_block;

#define VST_ROW_OFF_STACK 0x80000000u

typedef struct vst__index_stream {
    uint32_t row; /* depth, or VST_ROW_OFF_STACK + the lane's number */
    uint32_t level;
    uint64_t first_block, blocks;
} vst__index_stream;

typedef struct vst__index_thread {
    uint32_t number;
    uint32_t levels, off_stack;
    /* number of levels of the thread's pyramid; 0: no pyramid */
    uint32_t level_count;
    uint64_t spans, records;
    int64_t start_ns, end_ns;
    int64_t threshold_ns;           /* threshold of level 1 */
    uint64_t has_tasks;             /* 1: it has steps of tasks */
    uint64_t first_stream, streams; /* sorted by row, then level */
    uint64_t first_move, moves;     /* sorted by start */
} vst__index_thread;

typedef struct vst__index_move {
    int64_t start_ns; /* start of the frame; the lane may show another start */
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
    uint64_t words;       /* words of the stretch before this place */
    uint64_t first_frame; /* index of the checkpoint's first new frame */
    uint32_t kept;        /* frames that the previous checkpoint has too */
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
    uint64_t window; /* index among the trace's windows */
    uint64_t pair;
    int64_t end_ns;
} vst__index_far_end;

typedef struct vst__index_table {
    uint64_t offset, count;
} vst__index_table;

/* Names of tables, and the structs that they hold. */
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
    uint64_t size;     /* size of the file */
    uint64_t checksum; /* checksum of all bytes, computed with this field 0 */
    vst__index_identity identity;
    uint64_t spans;
#define VST_INDEX_FIELD(name, type) vst__index_table name;
    VST_INDEX_TABLES(VST_INDEX_FIELD)
#undef VST_INDEX_FIELD
} vst__index_header;

_Static_assert(sizeof(vst__index_header) % 8 == 0, "what follows is aligned");

/* A loaded index. */
typedef struct vst__index {
    const unsigned char *bytes;
    size_t size;
    const vst__index_header *header;
#define VST_INDEX_POINTER(name, type) const type *name;
    VST_INDEX_TABLES(VST_INDEX_POINTER)
#undef VST_INDEX_POINTER
} vst__index;

/* ---- index_file.c -------------------------------------------------------- */

vst_status vst__index_identify(vst_trace *trace, const vst__stretch *stretches,
                               size_t count, vst__index_identity *identity);
/* A checksum of bytes that come in parts: the length of every part but the last
 * is a multiple of VST_INDEX_SUM_STEP. */
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
/* Returns the checksum of a whole index: begins with the sum of its header, and
 * continues with the bytes that follow, as many as the header says. */
uint64_t vst__index_header_sum(const vst__index_header *header);
uint64_t vst__index_sum(const unsigned char *bytes, size_t size);
/* Reads an index into memory that no other process can change or cut, and
 * checks everything in it. Returns VST_E_DAMAGED if it is no valid index of
 * this trace. */
vst_status vst__index_load(vst__index *index, int fd, const vst_trace *trace,
                           const vst__index_identity *identity,
                           const vst__stretch *stretches, size_t count);
void vst__index_unload(vst__index *index);

/* ---- index_build.c ------------------------------------------------------- */

typedef struct vst__index_job {
    vst_trace *trace;
    const vst__reading *reading;
    const vst__stretch *stretches;
    size_t stretch_count;
    const vst_far_ends *far_ends; /* by window; NULL: none */
    const vst__index_identity *identity;
    unsigned workers;
    vst_progress_fn progress;
    void *progress_ctx;
} vst__index_job;

/* Writes an index to fd. */
vst_status vst__index_build(const vst__index_job *job, int fd,
                            vst_error *error);

/* ---- reading (index_read.c) ---------------------------------------------- */

/* A cursor through the runs of a row at a level. */
typedef struct vst__runs {
    const vst__index *index;
    const vst__index_block *block, *end;
    const unsigned char *at, *limit;
    uint32_t left; /* runs left in this block */
    int64_t before_ns;
} vst__runs;

const vst__index_thread *vst__index_thread_find(const vst__index *index,
                                                uint32_t number);
/* Moves to the last run that begins at from_ns or before. Returns false if the
 * row has no such runs. */
bool vst__runs_open(vst__runs *runs, const vst__index *index,
                    const vst__index_thread *thread, uint32_t row,
                    uint32_t level, int64_t from_ns);
bool vst__runs_next(vst__runs *runs, vst__run *run);
/* Returns the largest width of merged runs of a level. */
int64_t vst__index_threshold(const vst__index_thread *thread, uint32_t level);

/* Returns whether a frame that is open at time_ns, and began at start_ns, will
 * leave the stack before its end. */
bool vst__index_is_moved(const vst__index *index,
                         const vst__index_thread *thread, int64_t start_ns,
                         int64_t time_ns);

/* Returns the number of the stretch's last checkpoint at from_ns or before, or
 * -1. */
int64_t vst__checkpoint_before(const vst__index *index, size_t stretch,
                               int64_t from_ns);
/* Fills *place with a checkpoint, whose open frames go into `open`, which
 * grows. */
vst_status vst__checkpoint_place(const vst__index *index, size_t stretch,
                                 int64_t number, vst__place *place,
                                 vst__open **open, size_t *capacity);

#endif
