/* Escapes strings for JSON, see escape.h. Any thread. */
#include "base/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

size_t vst__json_utf8(const unsigned char *at, const unsigned char *end)
{
    size_t left = (size_t)(end - at), count;
    /* The range of the second byte rules out overlong forms, surrogates and
     * values beyond U+10FFFF. */
    unsigned char low = 0x80, high = 0xbf;

    if (left == 0)
        return 0;
    if (at[0] < 0x80)
        return 1;
    if (at[0] < 0xc2 || at[0] > 0xf4)
        return 0;
    count = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    if (at[0] == 0xe0)
        low = 0xa0;
    else if (at[0] == 0xed)
        high = 0x9f;
    else if (at[0] == 0xf0)
        low = 0x90;
    else if (at[0] == 0xf4)
        high = 0x8f;
    if (left < count || at[1] < low || at[1] > high)
        return 0;
    for (size_t i = 2; i < count; i++)
        if (at[i] < 0x80 || at[i] > 0xbf)
            return 0;
    return count;
}

static char *escape_byte(char *at, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char named[] = {'b', 't', 'n', 0, 'f', 'r'};

    *at++ = '\\';
    if (c == '"' || c == '\\') {
        *at++ = (char)c;
    } else if (c >= '\b' && c <= '\r' && c != '\v') {
        *at++ = named[c - '\b'];
    } else {
        memcpy(at, "u00", 3);
        at += 3;
        *at++ = hex[c >> 4];
        *at++ = hex[c & 15];
    }
    return at;
}

/* Returns whether eight bytes need no escape: printable ASCII without quotes
 * and backslashes. */
static bool is_plain(uint64_t bytes)
{
    const uint64_t ones = UINT64_MAX / 255, tops = ones << 7;
    uint64_t quotes = bytes ^ ones * '"', slashes = bytes ^ ones * '\\';
    uint64_t deletes = bytes ^ ones * 0x7f;

    /* Sets the top bit of each byte that is less than a blank, or that became
     * zero. */
    return (((bytes - ones * ' ') | ((quotes - ones) & ~quotes) |
             ((slashes - ones) & ~slashes) | ((deletes - ones) & ~deletes) |
             bytes) &
            tops) == 0;
}

char *vst__json_escape(char *at, const char *limit, const char **from,
                       const char *end)
{
    const unsigned char *c = (const unsigned char *)*from;
    const unsigned char *stop = (const unsigned char *)end;

    while (c != stop && limit - at >= VST_JSON_ESCAPE_MAX) {
        uint64_t eight;
        size_t count;

        if (stop - c >= 8 && limit - at >= 8) {
            memcpy(&eight, c, sizeof eight);
            if (is_plain(eight)) {
                memcpy(at, &eight, sizeof eight);
                at += sizeof eight;
                c += sizeof eight;
                continue;
            }
        }
        if (*c >= 0x20 && *c < 0x7f && *c != '"' && *c != '\\') {
            *at++ = (char)*c++;
        } else if (*c < 0x80) {
            at = escape_byte(at, *c++);
        } else if ((count = vst__json_utf8(c, stop)) != 0) {
            memcpy(at, c, count);
            at += count;
            c += count;
        } else {
            memcpy(at, "\xef\xbf\xbd", 3);
            at += 3;
            c++;
        }
    }
    *from = (const char *)c;
    return at;
}
