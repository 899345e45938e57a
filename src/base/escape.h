/* Text that others made, as the inside of a JSON string: here, because what
 * writes JSON is not only the exporters. Any thread. */
#ifndef VST_BASE_ESCAPE_H
#define VST_BASE_ESCAPE_H

#include <stddef.h>

enum { VST_JSON_ESCAPE_MAX = 6 }; /* bytes of one escaped byte */

/* The inside of a JSON string: escaped, and what is not UTF-8 replaced by
 * U+FFFD. Takes from *from until `end`, or until less than VST_JSON_ESCAPE_MAX
 * bytes are left before `limit`. */
char *vst__json_escape(char *at, const char *limit, const char **from,
                       const char *end);
/* Bytes of the UTF-8 character at `at`, 0 if it is none. */
size_t vst__json_utf8(const unsigned char *at, const unsigned char *end);

#endif
