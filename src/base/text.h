/* Text that grows as it is written. One thread at a time. */
#ifndef VST_BASE_TEXT_H
#define VST_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* All zero: empty. The owner frees `bytes`. */
typedef struct vst__text {
    char *bytes;
    size_t count, capacity;
    size_t head; /* for an operator: which of its numbers are there */
    bool failed; /* memory ran out; the text is incomplete */
} vst__text;

/* Returns the place behind the text, with room for `more` bytes; NULL if memory
 * ran out. vst__text_commit says how far the room was used. */
char *vst__text_room(vst__text *text, size_t more);

static inline void vst__text_commit(vst__text *text, const char *end)
{
    text->count = (size_t)(end - text->bytes);
}

void vst__text_add(vst__text *text, const char *bytes, size_t count);
void vst__text_put(vst__text *text, const char *bytes);
/* The formatted text has at most 47 characters. */
__attribute__((format(printf, 2, 3))) void
vst__text_format(vst__text *text, const char *format, ...);
/* Writes the bytes escaped, as they stand between the quotes of a JSON
 * string. */
void vst__text_escaped(vst__text *text, const char *bytes, size_t count);

#endif
