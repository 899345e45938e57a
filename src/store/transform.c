/* Implements VST_PACK_SPLIT of format.h. It moves bytes and only knows that the
 * two halves of a word differ: ids repeat as a program's loops do and stay
 * whole, so that zstd finds them again; ticks are noise except for their upper
 * bytes. Any thread. */
#include "store/transform.h"

#include <stdint.h>
#include <string.h>

void vst__transform_split(const void *bytes, size_t count, void *to)
{
    size_t words = count / 8;
    const unsigned char *from = bytes;
    unsigned char *low = to, *high = low + 4 * words;

    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        uint32_t id, ticks;

        memcpy(&word, from + 8 * i, sizeof word);
        id = (uint32_t)word;
        ticks = (uint32_t)(word >> 32);
        memcpy(low + 4 * i, &id, sizeof id);
        high[i] = (unsigned char)ticks;
        high[words + i] = (unsigned char)(ticks >> 8);
        high[2 * words + i] = (unsigned char)(ticks >> 16);
        high[3 * words + i] = (unsigned char)(ticks >> 24);
    }
    memcpy(low + 8 * words, from + 8 * words, count - 8 * words);
}

void vst__transform_join(const void *bytes, size_t count, void *to)
{
    size_t words = count / 8;
    const unsigned char *low = bytes, *high = low + 4 * words;
    unsigned char *at = to;

    for (size_t i = 0; i < words; i++) {
        uint32_t id, ticks = (uint32_t)high[i] |
                             (uint32_t)high[words + i] << 8 |
                             (uint32_t)high[2 * words + i] << 16 |
                             (uint32_t)high[3 * words + i] << 24;
        uint64_t word;

        memcpy(&id, low + 4 * i, sizeof id);
        word = (uint64_t)ticks << 32 | id;
        memcpy(at + 8 * i, &word, sizeof word);
    }
    memcpy(at + 8 * words, low + 8 * words, count - 8 * words);
}
