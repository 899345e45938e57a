/* The inside of a file being written, shared by writer.c (the file, its
 * definitions and windows) and writer_chunks.c (room for chunks). writer.h says
 * which threads call these. */
#ifndef VST_STORE_WRITER_CHUNKS_H
#define VST_STORE_WRITER_CHUNKS_H

#include "os/os.h"
#include "store/format.h"
#include "store/slots.h"
#include "store/writer.h"

struct vst__file {
    vst_chunk_provider provider;
    int fd;
    vst__os_identity identity; /* of what fd was opened for */
    vst_file_header *header;   /* mapped */
    vst__os_storage *header_storage;
    bool is_cut;         /* somebody else made it shorter; any thread, atomic */
    uint32_t window_pid; /* the process that has a window open, 0: none */
    uint64_t end;        /* where the next chunk goes */
    uint64_t last;       /* where the last one, or slot, lies */
    uint64_t allocated;  /* bytes with storage behind them */
    uint64_t reserved;   /* storage up to here was asked for */
    int sys_errno;       /* of what failed last */
    uint32_t sequence;
    uint16_t window;
    vst_ticks window_start;
    uint64_t lost;
    vst__slots slots;
    bool dropped_waiting; /* vst_chunk's, of the next chunk of records */
    uint64_t keep_ns;
    uint64_t min_duration_ns;
    vst_chunk definitions; /* the open chunk of definitions */
    size_t definitions_used;
    size_t definitions_next;
    uint64_t definitions_size; /* bytes of all such chunks */
};

/* Maps what lies at the offset, and makes sure that there is something. */
vst_status vst__file_map(vst__file *file, uint64_t offset, uint64_t size,
                         void **memory, vst__os_storage **storage);
/* Looks whether somebody else made the file shorter than it has to be. */
bool vst__file_is_cut(vst__file *file);
vst_status vst__file_new_chunk(vst__file *file, vst_chunk_kind kind,
                               uint32_t thread, size_t words, size_t least,
                               vst_chunk *chunk);
/* Where the words that the last chunk uses end. */
uint64_t vst__file_used_end(const vst__file *file);
/* How many of the used words are not in the file, because it was cut. */
size_t vst__file_seal_chunk(vst__file *file, vst_chunk *chunk, size_t used,
                            uint32_t segments);
uint32_t vst__file_checksum(const void *bytes, size_t size);

#endif
