/* The trace file (.vst): its specification.
 *
 * A file is a header of VST_FILE_HEADER_SIZE bytes, then chunks one after the
 * other without gaps. All numbers are in the byte order of the machine that
 * wrote it, which `byte_order` tells. A file is written through shared
 * mappings, so what a program recorded is in it the moment it is recorded, and
 * the death of the process, however sudden, loses nothing that was committed.
 * A torn tail is normal.
 *
 * File header. Valid if and only if magic, byte_order and checksum are right
 * (the checksum covers the bytes before it) and version is not newer than the
 * reader's. The fields after the checksum change while recording: a reader
 * takes them as hints, never as bounds.
 *
 * Chunk. A header of 64 bytes, then its payload. Valid if and only if magic,
 * checksum and size are right: size is a multiple of 4096. The last chunk may
 * be cut by the end of the file (a finished file ends with the words it used);
 * it is read up to there. The first chunk lies right after the file header, the
 * next one `size` bytes further. An invalid chunk header ends the file: if its
 * magic, which is stored last, is 0 that is the ordinary end of a file whose
 * process died, else it is damage.
 *
 * Bounded file (slot_size != 0). Chunks that were sealed may be given to other
 * records: every chunk is a whole number of slots long, and one that is being
 * reused has no magic for a moment. There an invalid chunk header ends nothing;
 * the next one is looked for slot_size bytes further. Until the file is
 * finished, what follows a header without a magic may be what was there before.
 *
 * RECORDS chunk. payload: the words of wire.h, written by one thread at a
 * time; the first belong to `thread`, an escape SEGMENT hands over to another.
 * Time starts at sample.ticks. They end at `used` words if the chunk is sealed
 * (used != 0), else at the first all-zero word or at the end of the chunk.
 *
 * Short calls left out (min_duration_ns != 0). The writer of a chunk that is
 * not sealed may take its last word back if it is an ENTER: the word is zero
 * again, then another one. Words up to the last one that is no ENTER stay what
 * they are. A reader of a chunk that is still written therefore reads it twice,
 * and ignores the first word that differs and all words behind it. (A word that
 * was replaced always differs, because the new one has a later time.) left_out
 * is the number of calls that were left out. It is exact after a stop. Until
 * then, and after the process died, it may lack up to VST_LEFT_OUT_TOLD - 1
 * calls of each thread that was recording. THREAD entries have the number of
 * one thread; they are written when the thread ends, and at the stop.
 *
 * DEFINITIONS chunk. payload: entries of vst_file_entry, each padded to 8
 * bytes, and vst_file_stack; a size of 0, or one that does not fit, ends them.
 * An entry's size is stored last. Every definition precedes, in time, the first
 * record that uses it. A later entry of the same kind and id (or key) replaces
 * an earlier one. Ids of definitions, and those of stacks, are given out one
 * after the other from 1: one that is larger than the number of entries that
 * the file has room for is damage, and a reader leaves it out.
 *
 * Versions. A file has the lowest that holds what is in it, and 3 where it is
 * not known beforehand. Version 3 has records of memory (types of wire.h from
 * VST_ESCAPE_FIXED on) and the entries STACK, MODULE and MEMORY; else it is
 * version 2. Version 4 has types of wire.h from VST_ESCAPE_SWITCHES on, chunks
 * of VST_THREAD_SWITCHES and the entry DEVICE; but VST_ESCAPE_TASK, _EXCEPTION,
 * _REPORTED and _IMPORT are in any version, since readers of all versions pass
 * over them. A reader of version 4 passes over types below VST_ESCAPE_FIXED,
 * kinds of entries and kinds of chunks that it does not know.
 *
 * Switches. RECORDS chunks whose thread is VST_THREAD_SWITCHES hold escapes
 * SWITCHES of all threads of the window, each thread's in order of time, and no
 * calls; no other thread writes to them. Where chunks may be dropped, each of
 * them begins with the last word of every thread, unless there are so many that
 * these would take more than a quarter of it.
 *
 * Clock. Every chunk header and every CLOCK entry is a sample of three clocks.
 * Sorted by ticks they make ticks -> MONOTONIC piecewise linear (a sample less
 * than 1 ms after the one before is left out: its error would be slope);
 * outside of them, and with a single one, ticks_per_second gives the slope.
 * Wall time is MONOTONIC plus the difference (realtime - monotonic) of the file
 * header.
 *
 * Packed file. Any of the above, at rest: vst_pack_header, then frames one
 * after the other. A frame is vst_pack_frame and packed_size bytes, which make
 * raw_size bytes of the original; the first holds its beginning, each one goes
 * on where the one before ends, together they are `size` bytes. The header is
 * valid if and only if magic, byte_order, version and checksum are right, a
 * frame if its checksum is, its sizes are from 1 to their most, raw_size is not
 * more than what is left of `size`, and transform is known. A frame that is not
 * valid ends the file, which then is the original up to there.
 *
 * The bytes of a frame are one zstd frame, without a dictionary. What that
 * holds is the original's bytes (VST_PACK_PLAIN), or for words (VST_PACK_SPLIT)
 * first the low four bytes of each word, then of the high four bytes the lowest
 * of each word, the second of each, the third, the fourth, then the bytes past
 * the last whole word. */
#ifndef VST_STORE_FORMAT_H
#define VST_STORE_FORMAT_H

#include <stdint.h>

#include <vestige/clock.h>
#include <vestige/wire.h>

#include "base/provider.h"

#define VST_FILE_MAGIC "vestige\n"
#define VST_FILE_VERSION 4u       /* the newest there is */
#define VST_FILE_VERSION_PLAIN 3u /* without what version 4 has */
#define VST_FILE_BYTE_ORDER 0x01020304u
#define VST_FILE_HEADER_SIZE 4096u
#define VST_CHUNK_MAGIC 0x6b6e6863u /* "chnk" */
#define VST_CHUNK_ALIGN 4096u
#define VST_CHUNK_SIZE_MAX (1u << 30)

typedef struct vst_file_header {
    char magic[8];
    uint32_t version;
    uint32_t byte_order;
    uint32_t header_size;
    uint32_t clock_kind; /* vst_clock_kind */
    double ticks_per_second;
    vst_clock_sample start;
    uint8_t trace_id[16];
    uint32_t pid;
    uint32_t checksum; /* CRC-32 (zlib's) of all bytes before it */

    /* Not covered by the checksum. */
    uint32_t state; /* vst_file_state */
    uint32_t windows;
    uint64_t lost;      /* records that could not be kept, so far */
    uint64_t size;      /* bytes of the file that hold chunks, once finished */
    uint64_t dropped;   /* words dropped to stay within the limits */
    uint64_t keep_ns;   /* what is older than this, counted from the last
                         * record, is not shown; 0: no such bound */
    uint32_t slot_size; /* not 0: chunks are reused, see above */
    uint32_t reserved;
    uint64_t min_duration_ns; /* calls that took less were left out; 0: none */
    uint64_t left_out;        /* so many */
} vst_file_header;

typedef enum vst_file_state {
    VST_FILE_RECORDING = 0, /* in progress, or torn */
    VST_FILE_STOPPED = 1,   /* stopped, may go on */
    VST_FILE_FINISHED = 2
} vst_file_state;

typedef enum vst_chunk_kind {
    VST_CHUNK_RECORDS = 1,
    VST_CHUNK_DEFINITIONS = 2
} vst_chunk_kind;

typedef struct vst_chunk_header {
    uint32_t magic;
    uint16_t kind;
    uint16_t window; /* 0, 1, 2 … */
    uint32_t size;   /* bytes, this header included */
    uint32_t thread; /* number of the first segment's thread */
    vst_clock_sample sample;
    uint32_t sequence; /* of this chunk in the file */
    uint32_t checksum; /* CRC-32 of all bytes before it */

    /* Not covered by the checksum. */
    uint32_t used;     /* words of payload, 0 until sealed */
    uint32_t segments; /* how many threads' segments it holds */
    uint64_t last;     /* ticks when it was sealed, 0 until then */
} vst_chunk_header;

_Static_assert(sizeof(vst_chunk_header) == 64, "chunk header is 64 bytes");

/* kind is a vst_entry_kind, the fields mean what base/provider.h says. */
typedef struct vst_file_entry {
    uint32_t size; /* bytes, padding included; stored last */
    uint16_t kind;
    uint16_t reserved;
    uint32_t id;
    int32_t line;
    uint32_t a_len;
    uint32_t b_len;
    uint64_t x, y, z;
    /* a's bytes, b's bytes, zeros up to a multiple of 8 */
} vst_file_entry;

_Static_assert(sizeof(vst_file_entry) == 48, "an entry's head is 48 bytes");

/* The entry VST_ENTRY_STACK, which there may be very many of. */
typedef struct vst_file_stack {
    uint32_t size; /* of this struct; stored last */
    uint16_t kind; /* VST_ENTRY_STACK */
    uint16_t what; /* vst_stack_kind, flags << 8 */
    uint32_t id;
    uint32_t parent;
    uint64_t value; /* address; of VST_STACK_LANGUAGE line, function << 32 */
} vst_file_stack;

_Static_assert(sizeof(vst_file_stack) == 24, "a stack's entry is 24 bytes");

/* ---- packed -------------------------------------------------------------- */

#define VST_PACK_MAGIC "vstpack\n"
#define VST_PACK_VERSION 1u
#define VST_PACK_RAW_MAX (1u << 20)
#define VST_PACK_PACKED_MAX (VST_PACK_RAW_MAX + VST_PACK_RAW_MAX / 128)

typedef struct vst_pack_header {
    char magic[8];
    uint32_t version;
    uint32_t byte_order; /* VST_FILE_BYTE_ORDER */
    uint64_t size;       /* of the original */
    uint32_t reserved;   /* 0 */
    uint32_t checksum;   /* CRC-32 of all bytes before it */
} vst_pack_header;

_Static_assert(sizeof(vst_pack_header) == 32, "pack header is 32 bytes");

typedef enum vst_pack_transform {
    VST_PACK_PLAIN = 0,
    VST_PACK_SPLIT = 1
} vst_pack_transform;

typedef struct vst_pack_frame {
    uint32_t raw_size;
    uint32_t packed_size;
    uint32_t transform; /* vst_pack_transform */
    uint32_t checksum;  /* CRC-32 of the bytes before it and the packed ones */
} vst_pack_frame;

_Static_assert(sizeof(vst_pack_frame) == 16, "a frame's head is 16 bytes");

#endif
