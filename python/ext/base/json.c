/* Writes JSON members for the arguments of a span into a bounded buffer,
 * without running Python code. A member that does not fit is left out whole, so
 * the text is always valid. */
#include "base/json.h"

#include <stdio.h>
#include <string.h>

enum { ESCAPED_MAX = 6 }; /* the most bytes that one escaped byte takes */

static void json_put(vpy_json *json, const char *bytes, size_t length)
{
    memcpy(json->bytes + json->length, bytes, length);
    json->length += length;
}

static void json_put_escaped(vpy_json *json, const char *s, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)s[i];
        char escape[8] = {(char)c};
        if (c == '"' || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", c);
        else if (c < 0x20)
            snprintf(escape, sizeof escape, "\\u%04x", c);
        json_put(json, escape, strlen(escape));
    }
}

/* Keeps one byte free for the brace that vpy_json_end puts. */
static bool json_fits(const vpy_json *json, size_t escaped, size_t more)
{
    return json->length + escaped * ESCAPED_MAX + more < sizeof json->bytes;
}

void vpy_json_text(vpy_json *json, const char *s, size_t length)
{
    if (!json_fits(json, length, 1))
        json->full = true;
    else
        json_put_escaped(json, s, length);
}

void vpy_json_key(vpy_json *json, const char *key, size_t length)
{
    json->key_at = json->length;
    json->full = !json_fits(json, length, 6);
    if (json->full)
        return;
    if (json->length && json->bytes[json->length - 1] != '{')
        json_put(json, ", ", 2);
    json_put(json, "\"", 1);
    json_put_escaped(json, key, length);
    json_put(json, "\": ", 3);
}

void vpy_json_begin(vpy_json *json, const char *key)
{
    vpy_json_key(json, key, strlen(key));
    json_put(json, "{", 1);
}

void vpy_json_end(vpy_json *json)
{
    json_put(json, "}", 1);
}

/* Cuts a long string between two characters and adds an ellipsis. */
void vpy_json_string(vpy_json *json, const char *s, size_t length, size_t max)
{
    bool cut = length > max;

    if (cut) {
        length = max;
        while (length && ((unsigned char)s[length] & 0xc0) == 0x80)
            length--;
    }
    if (json->full || !json_fits(json, length, 5)) {
        json->length = json->key_at;
        return;
    }
    json_put(json, "\"", 1);
    json_put_escaped(json, s, length);
    json_put(json, cut ? "\xe2\x80\xa6\"" : "\"", cut ? 4 : 1);
}

void vpy_json_ready(vpy_json *json, const char *escaped, size_t length)
{
    if (json->full || json->length + length + 3 > sizeof json->bytes) {
        json->length = json->key_at;
        return;
    }
    json_put(json, "\"", 1);
    json_put(json, escaped, length);
    json_put(json, "\"", 1);
}
