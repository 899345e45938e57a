/* The inside of a mirror (mirror.h), which three files share: mirror_find.c
 * finds the chunks and notes what is new, mirror_copy.c writes to the target,
 * mirror.c makes passes of both. The thread that uses the mirror calls these
 * functions, which return 0 or an errno value. */
#ifndef VST_STORE_MIRROR_PARTS_H
#define VST_STORE_MIRROR_PARTS_H

#include <stddef.h>

#include "store/chunk.h"
#include "store/mirror.h"

enum {
    VST_MIRROR_BLOCK = 256 * 1024,
    VST_MIRROR_HEAD = sizeof(vst_chunk_header),
};

/* A chunk of the local file. */
typedef struct vst__mirror_part {
    uint64_t place;
    vst_chunk_header header; /* as it was when `end` was found */
    uint64_t copied;         /* offset from which bytes must be copied */
    uint64_t end;            /* offset behind the last words */
    uint64_t stop;           /* where this pass ends */
    bool is_written;         /* the target has a header here */
    bool is_quiet;           /* copied again since the end stopped moving */
    bool is_whole;           /* sealed, and copied */
} vst__mirror_part;

struct vst__mirror {
    int from, to;
    vst__copy_note *note;
    vst_file_header header, written; /* the original's and the target's */
    uint32_t slot_size;
    uint64_t walked;  /* chunks before this offset are known */
    uint64_t reached; /* the target has had so many bytes */
    uint64_t resumed; /* bytes that the target had when the walk began */
    bool keeps_all;   /* the local file's storage cannot be given back */
    bool is_last;     /* nobody writes the local file any more */
    vst__mirror_part *parts;
    size_t count, capacity;
    unsigned char *block; /* of VST_MIRROR_BLOCK bytes */
};

/* Reads the local file. Bytes behind its end are zeros. */
int vst__mirror_read(const vst__mirror *mirror, void *bytes, size_t count,
                     uint64_t offset);
/* Finds the chunks that the local file has now. */
int vst__mirror_find(vst__mirror *mirror);
/* Notes up to where a chunk is to be copied in this pass. */
int vst__mirror_look(vst__mirror *mirror, vst__mirror_part *of);

/* Writes to the target, unless somebody has cut it. */
int vst__mirror_write(vst__mirror *mirror, const void *bytes, size_t count,
                      uint64_t offset);
/* EIO if somebody has cut the target: a later write would hide that by a
 * hole. */
int vst__mirror_check_target(const vst__mirror *mirror);
/* Removes a chunk's header from the target, if it is there. */
int vst__mirror_erase(vst__mirror *mirror, uint64_t place);
/* Copies what vst__mirror_look has noted. */
int vst__mirror_copy(vst__mirror *mirror, vst__mirror_part *of);

/* Reads a chunk's header of either file. A header that is being written is read
 * again. */
int vst__mirror_read_chunk(int fd, uint64_t place, vst_chunk_header *header,
                           bool *valid);

#endif
