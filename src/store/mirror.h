/* Copies a trace file to another file while it is written, or after its process
 * died: each pass copies what is new. The copy is a valid trace after each
 * write; its header says that the recording has finished only when nothing is
 * missing. One thread at a time uses a mirror. The recorder may write the
 * original meanwhile; it is neither asked nor delayed. */
#ifndef VST_STORE_MIRROR_H
#define VST_STORE_MIRROR_H

#include <stdbool.h>
#include <stdint.h>

/* ---- the note in the local file ------------------------------------------ */

#define VST_COPY_NOTE_AT 512u
#define VST_COPY_NOTE_MAGIC 0x79706f63u /* "copy" */
#define VST_COPY_TARGET_MAX 3400u

/* A local file whose records are copied to a slow disk has this note in its
 * header page, behind the header. The recorder, the copier and readers share
 * it; the target does not get it. */
typedef struct vst__copy_note {
    uint32_t magic;
    uint32_t stage; /* vst__copy_stage; atomic */
    /* why the target could not be written last; 0: it could; atomic */
    uint32_t sys_errno;
    uint32_t overwrite; /* the target may replace a file */
    uint64_t limit;     /* bytes that the local file may take */
    /* bytes of the local file that were copied and given back; atomic */
    uint64_t freed;
    uint32_t passes; /* without a failure so far; atomic */
    uint32_t reserved;
    uint64_t lost; /* words that the target lost after they were freed */
    char target[VST_COPY_TARGET_MAX];
} vst__copy_note;

typedef enum vst__copy_stage {
    VST_COPY_WAITS = 0,    /* the target does not exist yet */
    VST_COPY_IS_MADE = 1,  /* the target exists */
    VST_COPY_COMPLETE = 2, /* the target lacks nothing, and is on the disk */
} vst__copy_stage;

/* ---- the mirror ---------------------------------------------------------- */

typedef struct vst__mirror vst__mirror;

/* `note` may be NULL; then nothing of the local file is given back. The caller
 * closes the descriptors. */
int vst__mirror_create(int from, int to, vst__copy_note *note,
                       vst__mirror **mirror);
/* Copies what is new. Returns 0 or the errno value of the target's failure;
 * the next pass tries again. */
int vst__mirror_pass(vst__mirror *mirror);
/* Copies all that is missing, when nobody writes the local file any more.
 * Returns 0 when all of it is on the disk. */
int vst__mirror_complete(vst__mirror *mirror);
/* Returns whether the local file is finished. */
bool vst__mirror_is_finished(const vst__mirror *mirror);
void vst__mirror_destroy(vst__mirror *mirror);

#endif
