/* Finds the escapes of one type in a segment, for what is collected before a
 * window is replayed: switches (running.c), activities of devices (devices.c).
 * One thread at a time. */
#ifndef VST_REPLAY_ESCAPES_H
#define VST_REPLAY_ESCAPES_H

#include "store/reader.h"

/* An escape: its word, behind which its payload lies, and where that word
 * stands in the file. */
typedef struct vst__escape_found {
    const uint64_t *word;
    uint64_t offset;
    uint32_t segment; /* as the caller numbers them */
} vst__escape_found;

/* What is looked for: escapes of a type with at least so many words of payload.
 */
typedef struct vst__escape_visit {
    uint32_t type, words_min;
    /* A status that is not VST_OK ends the visit. */
    vst_status (*fn)(void *ctx, const vst__escape_found *found);
    void *ctx;
} vst__escape_visit;

vst_status vst__escapes_each(vst_trace *trace, const vst__segment *segments,
                             uint32_t number, const vst__escape_visit *visit);
/* Only those behind the first so many words; *words becomes how many were read
 * by now, for a trace that grows. */
vst_status vst__escapes_behind(vst_trace *trace, const vst__segment *segments,
                               uint32_t number, uint64_t *words,
                               const vst__escape_visit *visit);

#endif
