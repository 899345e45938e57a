/* The trace file (.vst), version 1: its specification. With wire.h (the words
 * of a record) and device.h (what devices did) it is all that a reader needs.
 *
 * FILE. A header of VST_FILE_HEADER_SIZE bytes, then chunks one after the other
 * without gaps. All numbers are in the byte order of the machine that wrote the
 * file. The header's `byte_order` reads as VST_FILE_BYTE_ORDER on a machine of
 * the same order. A writer stores through shared mappings, so a record is in
 * the file the moment it is stored, and the sudden death of the process loses
 * no committed record. A file may end anywhere.
 *
 * FILE HEADER. Valid if and only if magic, byte_order, version, checksum and
 * header_size are right. The checksum covers the bytes before it. The fields
 * behind the checksum change while recording: a reader uses them as hints,
 * never as bounds.
 *
 * CHUNK. A header of 64 bytes, then its payload; `size` counts both. Valid if
 * and only if magic, checksum and size are right: size is a multiple of
 * VST_CHUNK_ALIGN and at most VST_CHUNK_SIZE_MAX. The first chunk follows the
 * file header, the next chunk begins `size` bytes behind the beginning of the
 * one before. The end of the file may cut the last chunk, which is read up to
 * there (a finished file ends behind the last used word). An invalid chunk
 * header ends the file. The writer stores the magic last: if the magic is 0,
 * the process died before it stored the chunk, otherwise the file is damaged.
 *
 * BOUNDED FILE (slot_size != 0). The writer reuses sealed chunks. Every chunk
 * is a whole number of slots long, and a chunk that is being reused has magic 0
 * for a moment. An invalid chunk header does not end a bounded file: the reader
 * looks for the next header slot_size bytes further. Until the file is
 * finished, bytes behind a header without magic may be those of an older chunk.
 *
 * RECORDS CHUNK. Payload: words of wire.h, written by one thread at a time. The
 * first words belong to the thread `thread`; an escape SEGMENT hands the rest
 * of the chunk to another thread. The first delta counts from sample.ticks. The
 * words end at `used` words if the chunk is sealed (used != 0), otherwise at
 * the first all-zero word or at the end of the chunk.
 *
 * SHORT CALLS LEFT OUT (min_duration_ns != 0). The writer of a chunk that is
 * not sealed may take back its last word if that word is an ENTER: the word
 * becomes zero, then another word. Words up to the last word that is not an
 * ENTER never change. A reader of a file that is still written therefore reads
 * such a chunk twice, and ignores the first word that differs and all words
 * behind it. (A replaced word always differs, because its successor has a later
 * time.) The header's left_out is the number of calls left out. The number is
 * exact after a stop; until then, and after the death of the process, it may
 * lack up to VST_LEFT_OUT_TOLD - 1 calls of each thread that was recording. A
 * THREAD entry has the number of its thread, written when the thread ends and
 * at the stop.
 *
 * DEFINITIONS CHUNK. Payload: vst_file_entry and vst_file_stack, each padded to
 * 8 bytes. A size of 0, or a size that does not fit the chunk, ends the
 * entries. The writer stores an entry's size last. A definition precedes the
 * first record that uses it. A later entry of the same kind and id (or key)
 * replaces the earlier one. Ids of definitions and of stacks are 1, 2, 3 …: an
 * id larger than the number of entries for which the file has room is damage,
 * and the reader leaves its entry out.
 *
 * SWITCHES. RECORDS chunks with `thread` VST_THREAD_SWITCHES hold the escapes
 * SWITCHES of all threads of the window, and no calls; no other chunk holds
 * SWITCHES. The switches of one thread are in order of time. In a file that may
 * drop chunks, each of these chunks begins with the last word of every thread,
 * unless those words would take more than a quarter of the chunk.
 *
 * VERSIONS. A reader refuses any version but its own. Within a version a reader
 * passes over escape types below VST_ESCAPE_FIXED, kinds of entries and kinds
 * of chunks that it does not know: their sizes are known without their meaning.
 * So a new kind needs no new version, unless a reader that passes over it would
 * read the rest of the file to a wrong result. Escape types from
 * VST_ESCAPE_FIXED on have no size of their own: a new one needs a new version.
 *
 * CLOCK. Every chunk header and every CLOCK entry is a sample of three clocks.
 * Sorted by ticks, the samples make ticks -> MONOTONIC piecewise linear; a
 * sample less than 1 ms behind the one before is left out, because its error
 * would become slope. Before the first sample, behind the last one, and with a
 * single one, ticks_per_second is the slope. Wall time is MONOTONIC plus the
 * difference (realtime - monotonic) of the file header's sample.
 *
 * PACKED FILE. Any file from above, at rest: a vst_pack_header, then frames. A
 * frame is a vst_pack_frame and packed_size bytes, which unpack to raw_size
 * bytes. The unpacked frames, one behind the other, are the original file of
 * `size` bytes. The header is valid if and only if magic, byte_order, version
 * and checksum are right. A frame is valid if and only if its checksum is
 * right, its sizes are from 1 to VST_PACK_RAW_MAX and VST_PACK_PACKED_MAX,
 * raw_size is at most what is left of `size`, and transform is known. An
 * invalid frame ends the file, which then is the original up to there.
 *
 * The packed bytes of a frame are one zstd frame without a dictionary. It holds
 * the original bytes (VST_PACK_PLAIN), or for words (VST_PACK_SPLIT) first the
 * low four bytes of each word; then the fifth byte of each word, the sixth of
 * each, the seventh, the eighth; then the bytes behind the last whole word. */
#ifndef VST_STORE_FORMAT_H
#define VST_STORE_FORMAT_H

#include <stdint.h>

#include <vestige/clock.h>
#include <vestige/wire.h>

#include "base/provider.h"

#define VST_FILE_MAGIC "vestige\n"
#define VST_FILE_VERSION 1u
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

    /* The checksum does not cover the fields from here on. */
    uint32_t state; /* vst_file_state */
    uint32_t windows;
    uint64_t lost; /* records that could not be kept so far */
    /* bytes of the file that hold chunks, once the file is finished */
    uint64_t size;
    uint64_t dropped; /* words dropped to stay within the limits */
    /* records that are older than this, counted from the last record, are not
     * shown; 0: no such limit */
    uint64_t keep_ns;
    /* size of slots if chunks are reused (see above), else 0 */
    uint32_t slot_size;
    uint32_t reserved;
    /* calls that took less were left out; 0: no calls */
    uint64_t min_duration_ns;
    uint64_t left_out; /* how many calls were left out */
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
    uint32_t sequence; /* number of this chunk in the file */
    uint32_t checksum; /* CRC-32 of all bytes before it */

    /* The checksum does not cover the fields from here on. */
    uint32_t used;     /* words of payload, 0 until sealed */
    uint32_t segments; /* how many segments of threads the chunk holds */
    uint64_t last;     /* ticks when it was sealed, 0 until then */
} vst_chunk_header;

_Static_assert(sizeof(vst_chunk_header) == 64, "chunk header is 64 bytes");

/* `kind` is a vst_entry_kind; base/provider.h explains the other fields. */
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

/* The entry VST_ENTRY_STACK, which is short because a file may have very
 * many. */
typedef struct vst_file_stack {
    uint32_t size; /* size of this struct; stored last */
    uint16_t kind; /* VST_ENTRY_STACK */
    uint16_t what; /* vst_stack_kind, flags << 8 */
    uint32_t id;
    uint32_t parent;
    uint64_t value; /* address; for VST_STACK_LANGUAGE line, function << 32 */
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
    uint64_t size;       /* size of the original file */
    uint32_t reserved;   /* 0 */
    uint32_t checksum;   /* CRC-32 of all bytes before this field */
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
    /* CRC-32 of the bytes before this field and of the packed bytes */
    uint32_t checksum;
} vst_pack_frame;

_Static_assert(sizeof(vst_pack_frame) == 16, "a frame's head is 16 bytes");

#endif
