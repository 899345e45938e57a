/* Text that grows as it is written: JSON members that are made while a trace is
 * read. One thread at a time. */
#ifndef VST_REPLAY_TEXT_H
#define VST_REPLAY_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* All zero: empty. The owner frees `bytes`. */
typedef struct vst__text {
    char *bytes;
    size_t count, capacity;
    size_t head; /* for an operator: which of its numbers are there */
    bool failed; /* memory ran out; the text is incomplete */
} vst__text;

void vst__text_put(vst__text *text, const char *bytes);
/* The formatted text has at most 47 characters. */
__attribute__((format(printf, 2, 3))) void
vst__text_format(vst__text *text, const char *format, ...);
/* Writes the bytes escaped, as they stand between the quotes of a JSON
 * string. */
void vst__text_escaped(vst__text *text, const char *bytes, size_t count);

#endif
