/* Builds a short text of words and numbers, such as a name of a file or an
 * object of JSON. Unlike printf it needs no page of the C library that a forked
 * child does not have yet. Text that does not fit is cut. */
#ifndef VST_BASE_SHORT_TEXT_H
#define VST_BASE_SHORT_TEXT_H

#include <stddef.h>
#include <stdint.h>

typedef struct vst__short_text {
    char *at;
    const char *end; /* the last byte, which stays free for the 0 */
} vst__short_text;

static inline vst__short_text vst__short_text_in(char *room, size_t size)
{
    room[0] = 0;
    return (vst__short_text){room, room + size - 1};
}

static inline void vst__put_bytes(vst__short_text *text, const char *bytes,
                                  size_t count)
{
    while (count-- != 0 && text->at < text->end)
        *text->at++ = *bytes++;
    *text->at = 0;
}

static inline void vst__put_word(vst__short_text *text, const char *word)
{
    while (*word != 0 && text->at < text->end)
        *text->at++ = *word++;
    *text->at = 0;
}

static inline void vst__put_number(vst__short_text *text, int64_t number)
{
    char digits[24];
    size_t first = sizeof digits - 1;
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;

    digits[first] = 0;
    do {
        digits[--first] = (char)('0' + left % 10);
        left /= 10;
    } while (left != 0);
    if (number < 0)
        digits[--first] = '-';
    vst__put_word(text, digits + first);
}

#endif
