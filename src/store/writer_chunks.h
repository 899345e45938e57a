/* The state of a file that is being written, shared by writer.c (the file, its
 * definitions and windows) and writer_chunks.c (room for chunks). writer.h says
 * which threads call these functions. */
#ifndef VST_STORE_WRITER_CHUNKS_H
#define VST_STORE_WRITER_CHUNKS_H

#include "os/os.h"
#include "store/copying.h"
#include "store/format.h"
#include "store/slots.h"
#include "store/writer.h"

struct vst__file {
    vst_chunk_provider provider;
    int fd;
    vst__os_identity identity; /* identity of the file that fd was opened for */
    vst_file_header *header;   /* the mapped header */
    vst__os_storage *header_storage;
    /* another process made the file shorter; any thread, atomic */
    bool is_cut;
    bool is_copied;          /* fd is a local file, `copying` copies it */
    const char *file_system; /* of the target; "" if nobody asked */
    vst__copying copying;
    uint32_t window_pid; /* process that has a window open; 0 if none */
    uint64_t end;        /* where the next chunk goes */
    uint64_t last;       /* place of the last chunk or slot */
    uint64_t allocated;  /* bytes of the file that have storage */
    uint64_t reserved;   /* bytes up to which storage was reserved */
    int sys_errno;       /* errno of the last failure */
    uint32_t sequence;
    uint16_t window;
    vst_ticks window_start;
    uint64_t lost;
    vst__slots slots;
    /* vst_chunk.dropped_waiting of the next chunk of records */
    bool dropped_waiting;
    uint64_t keep_ns;
    uint64_t min_duration_ns;
    vst_chunk definitions; /* the open chunk of definitions */
    size_t definitions_used;
    size_t definitions_next;
    uint64_t definitions_size; /* bytes of all chunks of definitions */
};

/* Decides whether a file is copied. */
void vst__file_choose_storage(vst__file *file, const char *path,
                              vst_storage_mode mode);
/* Creates the local file; then, when it has its header, starts the copier. */
vst_status vst__file_begin_copy(vst__file *file, const char *path,
                                const char *copier, vst_error *error);
vst_status vst__file_start_copy(vst__file *file, bool overwrite,
                                vst_error *error);
/* Returns whether a file that is copied may not take more bytes. */
bool vst__file_is_full(const vst__file *file, uint64_t need);

/* Maps a part of the file, and makes sure that the file has it. */
vst_status vst__file_map(vst__file *file, uint64_t offset, uint64_t size,
                         void **memory, vst__os_storage **storage);
/* Checks whether another process made the file shorter than it must be. */
bool vst__file_is_cut(vst__file *file);
vst_status vst__file_new_chunk(vst__file *file, vst_chunk_kind kind,
                               uint32_t thread, size_t words, size_t least,
                               vst_chunk *chunk);
/* Returns where the used words of the last chunk end. */
uint64_t vst__file_used_end(const vst__file *file);
/* Returns how many of the used words are not in the file because it was cut. */
size_t vst__file_seal_chunk(vst__file *file, vst_chunk *chunk, size_t used,
                            uint32_t segments);
uint32_t vst__file_checksum(const void *bytes, size_t size);

#endif
