/* What symbolize.c builds and symbols.c shows. */
#ifndef VST_TRACEBACK_SYMBOLS_H
#define VST_TRACEBACK_SYMBOLS_H

#include <vestige/traceback.h>

#include "traceback/arena.h"

/* A part of an array. */
typedef struct vst__span_of {
    size_t first, count;
} vst__span_of;

struct vst_symbols {
    vst_named_frame *frames; /* each distinct one */
    size_t frames_count, frames_capacity;
    vst__arena strings;
    uint32_t *indexes; /* of frames: those of one traceback after another's */
    size_t indexes_count, indexes_capacity;
    vst__span_of *distinct; /* tracebacks: their indexes */
    size_t distinct_count, distinct_capacity;
    uint32_t *places; /* of each traceback given: the distinct one it is */
    size_t given;
};

#endif
