/* Text that grows as it is written: JSON members that are made while a trace is
 * read. One thread at a time. */
#ifndef VST_REPLAY_TEXT_H
#define VST_REPLAY_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* All zero is empty. The owner frees its bytes. */
typedef struct vst__text {
    char *bytes;
    size_t count, capacity;
    size_t head; /* of an operator: what is there of its numbers */
    bool failed; /* there was no memory for all of it */
} vst__text;

void vst__text_put(vst__text *text, const char *bytes);
/* What is formatted has at most 47 characters. */
__attribute__((format(printf, 2, 3))) void
vst__text_format(vst__text *text, const char *format, ...);
/* What stands between the quotes of a JSON string. */
void vst__text_escaped(vst__text *text, const char *bytes, size_t count);

#endif
