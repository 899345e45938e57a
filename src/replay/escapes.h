/* Finds the escapes of one type in a segment, for readers that collect them
 * before a window is replayed: switches (running.c), activities of devices
 * (devices.c). One thread at a time. */
#ifndef VST_REPLAY_ESCAPES_H
#define VST_REPLAY_ESCAPES_H

#include "store/reader.h"

/* An escape: its word, followed by its payload, and the word's position in the
 * file. */
typedef struct vst__escape_found {
    const uint64_t *word;
    uint64_t offset;
    uint32_t segment; /* number of the segment, as the caller counts */
} vst__escape_found;

/* The wanted escapes: a type, and how many payload words they must have at
 * least. */
typedef struct vst__escape_visit {
    uint32_t type, words_min;
    /* A status other than VST_OK ends the visit. */
    vst_status (*fn)(void *ctx, const vst__escape_found *found);
    void *ctx;
} vst__escape_visit;

vst_status vst__escapes_each(vst_trace *trace, const vst__segment *segments,
                             uint32_t number, const vst__escape_visit *visit);
/* For a trace that grows: visits only escapes behind the first *words words,
 * and sets *words to how many were read by now. */
vst_status vst__escapes_behind(vst_trace *trace, const vst__segment *segments,
                               uint32_t number, uint64_t *words,
                               const vst__escape_visit *visit);

#endif
