/* Growing text, see text.h. */
#include "replay/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/grow.h"

static bool text_make_room(vst__text *text, size_t more)
{
    char *grown =
        vst__grow(text->bytes, &text->capacity, text->count + more, 1);

    if (grown == NULL)
        text->failed = true;
    else
        text->bytes = grown;
    return grown != NULL;
}

void vst__text_put(vst__text *text, const char *bytes)
{
    size_t count = strlen(bytes);

    if (text_make_room(text, count)) {
        memcpy(text->bytes + text->count, bytes, count);
        text->count += count;
    }
}

void vst__text_format(vst__text *text, const char *format, ...)
{
    char number[48];
    va_list list;

    va_start(list, format);
    vsnprintf(number, sizeof number, format, list);
    va_end(list);
    vst__text_put(text, number);
}

void vst__text_escaped(vst__text *text, const char *bytes, size_t count)
{
    size_t room = (count + 1) * VST_JSON_ESCAPE_MAX;

    if (text_make_room(text, room)) {
        char *at = text->bytes + text->count;
        text->count =
            (size_t)(vst__json_escape(at, at + room, &bytes, bytes + count) -
                     text->bytes);
    }
}
