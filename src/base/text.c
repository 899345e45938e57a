/* Growing text, see text.h. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/grow.h"

char *vst__text_room(vst__text *text, size_t more)
{
    if (VST_RESERVE(text->bytes, text->count + more, text->capacity))
        return text->bytes + text->count;
    text->failed = true;
    return NULL;
}

void vst__text_add(vst__text *text, const char *bytes, size_t count)
{
    char *at = vst__text_room(text, count);

    if (at != NULL && count != 0) {
        memcpy(at, bytes, count);
        text->count += count;
    }
}

void vst__text_put(vst__text *text, const char *bytes)
{
    vst__text_add(text, bytes, strlen(bytes));
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
    char *at = vst__text_room(text, room);

    if (at != NULL)
        vst__text_commit(
            text, vst__json_escape(at, at + room, &bytes, bytes + count));
}
