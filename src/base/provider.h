/* The chunk provider: where buffers get memory, and where definitions go. The
 * recorder and the file know each other only through this table. Providers are
 * called under the recorder's lock, by one thread at a time. */
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
    vst_ticks start; /* what the first delta counts from */
    /* Gives the memory back without reporting how much of it was used. Works
     * after the provider is gone. */
    void (*release)(struct vst_chunk *chunk);
    void *memory; /* the provider's own, as the next two */
    size_t memory_size;
    void *storage;
    uint64_t place;    /* where it lies in the file, the provider's own */
    uint32_t sequence; /* and what no other chunk of the file has */
    /* Since the one before was acquired, one that has_waiting was dropped. */
    bool dropped_waiting;
    /* Set by the recorder: it has runs of threads that wait, which must be
     * written again when it is dropped. */
    bool has_waiting;
    /* Set when it is sealed: the next one of its thread needs not be larger. */
    bool is_slow;
    size_t overhead; /* words in it that are no records, as the
                      * recorder counts them */
} vst_chunk;

typedef enum vst_entry_kind {
    /* 1 .. 15: a vst_definition_kind; id, line, a = name, b = file,
     * x = file_skip */
    VST_ENTRY_THREAD = 16,   /* id = number, a = name, x = system tid,
                              * y = calls left out so far */
    VST_ENTRY_METADATA = 17, /* a = key, b = JSON */
    VST_ENTRY_WINDOW = 18,   /* id = window, x = first ticks, y = last ticks,
                              * 0 while it is open; z = lost in it */
    VST_ENTRY_CLOCK = 19,    /* x = ticks, y = monotonic, z = realtime */
    VST_ENTRY_STACK = 20,    /* id; x = parent, y = address (of a LANGUAGE one
                              * line | function << 32), z = kind | flags << 8 */
    VST_ENTRY_MODULE = 21,   /* id = number, a = path, b = build id; x = bias,
                              * y = start, z = end */
    VST_ENTRY_MEMORY = 22,   /* there may be records of memory */
    /* 23: what records cost; 24: a task. Given out here, specified by the
     * version that writes them */
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
    /* About `words` words for a thread, and not less than `least`, timed from
     * now. May fail now and work later. */
    vst_status (*acquire)(void *ctx, uint32_t thread, size_t words,
                          size_t least, vst_chunk *chunk);
    /* Releases the chunk; its first `used` words are final. Returns how many of
     * them could not be kept. */
    size_t (*seal)(void *ctx, vst_chunk *chunk, size_t used, uint32_t segments);
    vst_status (*define)(void *ctx, const vst_entry *entry);
    /* So many records could not be kept since the first start. */
    void (*lost)(void *ctx, uint64_t total);
    /* So many more calls were left out because they were short. By any thread,
     * also without the lock, several at once. May be NULL. */
    void (*left_out)(void *ctx, uint64_t more);
    /* Whether the chunk that had this place and sequence was not dropped. May
     * be NULL: none ever is. */
    bool (*is_kept)(void *ctx, uint64_t place, uint32_t sequence);
    /* Whether the storage behind the chunks is gone: there will be no new
     * chunk, and what is written into the others is lost. May be NULL. */
    bool (*is_gone)(void *ctx);
} vst_chunk_provider;

#endif
