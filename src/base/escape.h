/* Escapes text from outside for use inside a JSON string. In base/, because
 * exporters are not the only writers of JSON. Any thread. */
#ifndef VST_BASE_ESCAPE_H
#define VST_BASE_ESCAPE_H

#include <stddef.h>

enum {
    VST_JSON_ESCAPE_MAX = 6
}; /* bytes that one byte takes at most when
    * escaped */

/* Writes the inside of a JSON string: escaped, with bytes that are not UTF-8
 * replaced by U+FFFD. Reads from *from until `end`, or until fewer than
 * VST_JSON_ESCAPE_MAX bytes are left before `limit`. */
char *vst__json_escape(char *at, const char *limit, const char **from,
                       const char *end);
/* Returns how many bytes the UTF-8 character at `at` has, 0 if it is not
 * valid. */
size_t vst__json_utf8(const unsigned char *at, const unsigned char *end);

#endif
