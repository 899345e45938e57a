/* The result that symbolize.c builds and symbols.c reads. */
#ifndef VST_TRACEBACK_SYMBOLS_H
#define VST_TRACEBACK_SYMBOLS_H

#include <vestige/traceback.h>

#include "traceback/arena.h"

/* A part of an array. */
typedef struct vst__span_of {
    size_t first, count;
} vst__span_of;

struct vst_symbols {
    vst_named_frame *frames; /* distinct frames */
    size_t frames_count, frames_capacity;
    vst__arena strings;
    uint32_t *indexes; /* indexes of frames, traceback after traceback */
    size_t indexes_count, indexes_capacity;
    vst__span_of *distinct; /* distinct tracebacks: parts of `indexes` */
    size_t distinct_count, distinct_capacity;
    uint32_t *places; /* for each given traceback: which distinct one it is */
    size_t given;
};

#endif
