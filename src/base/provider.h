/* The chunk provider: gives buffers their memory, and takes definitions. The
 * recorder and the file know each other only through this table. Providers are
 * called with the recorder's lock held, so by one thread at a time. */
#ifndef VST_BASE_PROVIDER_H
#define VST_BASE_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/status.h>
#include <vestige/wire.h>

/* Zeroed words to write records into. */
typedef struct vst_chunk {
    uint64_t *words;
    size_t capacity; /* in words */
    vst_ticks start; /* the time from which the first delta counts */
    /* Gives the memory back without reporting how much was used. Works even
     * after the provider is gone. */
    void (*release)(struct vst_chunk *chunk);
    void *memory; /* for the provider's own use, like `place` and `sequence` */
    size_t memory_size;
    void *storage;
    uint64_t place;    /* position in the file */
    uint32_t sequence; /* number that no other chunk of the file has */
    /* A chunk with has_waiting was dropped since the last acquire. */
    bool dropped_waiting;
    /* Set by the recorder: the chunk has runs of threads that wait in a call,
     * which must be written again when the chunk is dropped. */
    bool has_waiting;
    /* Set when the chunk is sealed: the thread's next chunk need not be
     * larger. */
    bool is_slow;
    /* words in the chunk that are no records, as the recorder counts them */
    size_t overhead;
} vst_chunk;

typedef enum vst_entry_kind {
    /* 1 .. 15: a vst_definition_kind; id, line, a = name, b = file,
     * x = file_skip */
    VST_ENTRY_THREAD = 16,   /* id = number, a = name, x = system tid,
                              * y = calls left out so far */
    VST_ENTRY_METADATA = 17, /* a = key, b = JSON */
    /* id = window, x = first ticks, y = last ticks (0 while the window is
     * open), z = records lost in the window */
    VST_ENTRY_WINDOW = 18,
    VST_ENTRY_CLOCK = 19, /* x = ticks, y = monotonic, z = realtime */
    /* x = parent, y = address (for LANGUAGE: line | function << 32),
     * z = kind | flags << 8 */
    VST_ENTRY_STACK = 20,
    VST_ENTRY_MODULE = 21, /* id = number, a = path, b = build id; x = bias,
                            * y = start, z = end */
    VST_ENTRY_MEMORY = 22, /* the file may have records of memory */
    /* 23 (costs of records) and 24 (a task) are reserved */
    VST_ENTRY_DEVICE = 25 /* see <vestige/device.h> */
} vst_entry_kind;

/* One definition, on its way to the file. */
typedef struct vst_entry {
    uint16_t kind;
    uint32_t id;
    int32_t line;
    const char *a, *b;
    size_t a_len, b_len;
    uint64_t x, y, z;
} vst_entry;

typedef struct vst_chunk_provider {
    void *ctx;
    /* Gives a chunk of about `words` words for a thread, at least `least`,
     * whose times count from now. May fail now and succeed later. */
    vst_status (*acquire)(void *ctx, uint32_t thread, size_t words,
                          size_t least, vst_chunk *chunk);
    /* Releases the chunk, whose first `used` words are final. Returns how many
     * of these could not be kept. */
    size_t (*seal)(void *ctx, vst_chunk *chunk, size_t used, uint32_t segments);
    vst_status (*define)(void *ctx, const vst_entry *entry);
    /* Reports how many records were lost since the first start. */
    void (*lost)(void *ctx, uint64_t total);
    /* Reports that `more` calls were left out because they were short. Any
     * thread, also without the lock, several threads at a time. May be NULL. */
    void (*left_out)(void *ctx, uint64_t more);
    /* Returns whether the chunk with this place and sequence still exists. NULL
     * if the provider never drops chunks. */
    bool (*is_kept)(void *ctx, uint64_t place, uint32_t sequence);
    /* Returns whether the storage behind the chunks is gone: no new chunk will
     * come, and words written into old chunks are lost. May be NULL. */
    bool (*is_gone)(void *ctx);
} vst_chunk_provider;

#endif
