/* Records of memory, which are made in every allocation and free: a few loads
 * and stores, with everything rare in buffer.c. Any thread calls them in any
 * state: inside an allocator, without the language's lock, with locks of the
 * program held. The slow path takes the recorder's lock; while that is held,
 * only base/heap.h allocates. */
#include <string.h>

#include <vestige/memory.h>

#include "record/memory.h"
#include "record/recording.h"

enum { KIND_MASK = 31, FLAGS_MASK = 3, FLAGS_SHIFT = 5, SIZE_SHIFT = 7 };

static inline vst__writer *memory_own(void)
{
    return (vst__writer *)vst_thread_buffer;
}

/* Returns whether `words` words can be stored here. If the time went back, or
 * far forward, the slow path stores them. */
static inline bool is_ready(const vst__writer *writer, ptrdiff_t words,
                            uint64_t delta)
{
    uint64_t epoch = __atomic_load_n(&vst_recording_epoch, __ATOMIC_RELAXED);

    return writer->memory_epoch == epoch &&
           writer->hot.limit - writer->hot.cursor >= words && delta >> 32 == 0;
}

/* Stores the payload before the word that announces it. */
static inline void store_two(vst__writer *writer, uint64_t word,
                             uint64_t payload)
{
    uint64_t *at = writer->hot.cursor;

    vst_store_word(at + 1, payload);
    vst_store_word(at, word);
    writer->hot.cursor = writer->hot.floor = at + 2;
}

/* ---- allocations --------------------------------------------------------- */

VST_COLD static void alloc_slow(uint32_t head, uintptr_t address, size_t size,
                                vst_stack_id stack, bool small, vst_ticks now)
{
    const uint64_t payload[3] = {address, size, stack};
    vst__writer *writer = vst__writer_for_memory(4);

    if (writer == NULL)
        return;
    writer->recent[vst_recent_place(address)] = address;
    if (small) {
        const uint64_t word = address >> 3 | (uint64_t)stack << 44;
        head |= (uint32_t)size << SIZE_SHIFT;
        vst__writer_fixed(writer, vst_word_fixed(VST_ESCAPE_ALLOC, head, 0),
                          &word, now);
        return;
    }
    vst__writer_fixed(writer, vst_word_fixed(VST_ESCAPE_ALLOC_LARGE, head, 0),
                      payload, now);
}

void vst_record_alloc(vst_memory_kind kind, uintptr_t address, size_t size,
                      vst_stack_id stack, unsigned flags, vst_ticks now)
{
    vst__writer *writer = memory_own();
    uint64_t delta = now - writer->hot.last;
    uint32_t head = ((uint32_t)kind & KIND_MASK) | (flags & FLAGS_MASK)
                                                       << FLAGS_SHIFT;
    bool small = size <= VST_ALLOC_SIZE_MAX && stack <= VST_ALLOC_STACK_MAX &&
                 (address & 7) == 0 && address >> 47 == 0;

    if (VST_LIKELY(small && is_ready(writer, 2, delta))) {
        writer->hot.last = now;
        writer->recent[vst_recent_place(address)] = address;
        store_two(writer,
                  vst_word_fixed(VST_ESCAPE_ALLOC,
                                 head | (uint32_t)size << SIZE_SHIFT,
                                 (uint32_t)delta),
                  address >> 3 | (uint64_t)stack << 44);
        return;
    }
    alloc_slow(head, address, size, stack, small, now);
}

/* ---- frees --------------------------------------------------------------- */

VST_COLD static void free_slow(uint32_t kind, uintptr_t address, size_t size,
                               vst_ticks now)
{
    const uint64_t payload[2] = {address, size};
    vst_escape type = size ? VST_ESCAPE_FREE_RANGE : VST_ESCAPE_FREE;
    vst__writer *writer = vst__writer_for_memory(3);

    if (writer != NULL)
        vst__writer_fixed(writer, vst_word_fixed(type, kind, 0), payload, now);
}

void vst_record_free(vst_memory_kind kind, uintptr_t address, size_t size,
                     vst_ticks now)
{
    vst__writer *writer = memory_own();
    uint64_t delta = now - writer->hot.last;
    uint32_t head = (uint32_t)kind & KIND_MASK;

    if (VST_LIKELY(size == 0 && is_ready(writer, 2, delta))) {
        uint32_t place = vst_recent_place(address);

        writer->hot.last = now;
        if (writer->recent[place] == address)
            vst_store_word(writer->hot.cursor++,
                           vst_word_fixed(VST_ESCAPE_FREE_RECENT,
                                          head | place << FLAGS_SHIFT,
                                          (uint32_t)delta));
        else
            store_two(writer,
                      vst_word_fixed(VST_ESCAPE_FREE, head, (uint32_t)delta),
                      address);
        return;
    }
    free_slow(head, address, size, now);
}

/* ---- mappings and counters of memory ------------------------------------- */

void vst__record_range(uintptr_t address, size_t size, vst_stack_id stack,
                       unsigned flags, unsigned range, vst_ticks now)
{
    uint32_t head = (uint32_t)VST_MEMORY_MMAP |
                    (flags & FLAGS_MASK) << FLAGS_SHIFT |
                    (uint32_t)range << VST_RANGE_SHIFT;

    alloc_slow(head, address, size, stack, false, now);
}

void vst__record_memory_counter(vst_id id, double value)
{
    uint64_t payload[2] = {id, 0};
    vst__writer *writer = vst__writer_for_memory(3);

    memcpy(&payload[1], &value, sizeof value);
    if (writer != NULL)
        vst__writer_escape(writer, VST_ESCAPE_COUNTER, payload, 2);
}
