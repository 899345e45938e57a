/* Shared by index_build.c, which indexes the threads of a trace, and
 * index_write.c, which writes the result. */
#ifndef VST_VIEW_INDEX_BUILD_H
#define VST_VIEW_INDEX_BUILD_H

#include <pthread.h>

#include "view/index.h"
#include "view/pyramid.h"

/* Appends to the index. Several threads append, each under the lock. */
typedef struct vst__index_writer {
    pthread_mutex_t lock;
    int fd;
    uint64_t offset; /* where the next bytes go */
    uint64_t limit;  /* largest file size: more is VST_E_OUTPUT */
    unsigned char *buffer;
    size_t count;
    vst_status status; /* the first error */
    int sys_errno;
} vst__index_writer;

vst_status vst__index_writer_init(vst__index_writer *writer, int fd,
                                  const vst_trace *trace);
void vst__index_writer_free(vst__index_writer *writer);
vst_status vst__index_append(void *writer, const void *bytes, size_t count,
                             uint64_t *offset);

/* The index of one stretch. */
typedef struct vst__stretch_part {
    vst__checkpoint *checkpoints;
    size_t count, capacity;
    /* checkpoints' first_frame counts within these until written */
    vst__open *frames;
    size_t frame_count, frame_capacity;
} vst__stretch_part;

/* The index of one thread. */
typedef struct vst__thread_part {
    vst__index_thread thread;
    vst__block_of *blocks; /* sorted by row, level and time */
    size_t block_count;
    vst__tracks tracks;
    vst__index_loss *losses;
    size_t loss_count, loss_capacity;
    vst__index_move *moves; /* in the order of time */
    size_t move_count, move_capacity;
} vst__thread_part;

/* The frames that were open at the last checkpoint of a stretch. */
typedef struct vst__last_open {
    vst__open *frames;
    size_t count, capacity;
} vst__last_open;

/* index_part.c */
vst_status vst__index_add_checkpoint(vst__stretch_part *part,
                                     vst__last_open *last,
                                     const vst__place *place, uint64_t words);
/* Adds the spans of a walk's last batch. */
vst_status vst__index_add_spans(vst__thread_part *part, vst__pyramid *pyramid,
                                const vst__walk *walk);
/* Returns a sink for losses, counters and moves. */
vst_sink vst__index_sink(vst__thread_part *part);
void vst__index_sort_moves(vst__index_move *moves, size_t count);
void vst__thread_part_free(vst__thread_part *part);
void vst__stretch_part_free(vst__stretch_part *part);

typedef struct vst__index_parts {
    const vst__index_job *job;
    vst__thread_part *threads;
    size_t thread_count;
    vst__stretch_part *stretches; /* as many as the job has */
} vst__index_parts;

/* index_levels.c: chooses the thread's threshold and number of levels. */
void vst__index_choose_levels(const vst__index_job *job, vst__walk *walk,
                              vst__index_thread *thread);
/* Returns the first threshold for the records of a stretch, or 0 if memory ran
 * out. */
int64_t vst__index_find_threshold(vst__walk *walk, const vst__stretch *stretch);
/* Writes the tables, and at last the header. */
vst_status vst__index_write(vst__index_writer *writer,
                            const vst__index_parts *parts);

#endif
