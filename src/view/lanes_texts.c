/* Texts of lanes, see lanes_kind.h: equal texts are kept once, because most
 * items of a name have equal texts. One thread adds, any thread may ask. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "view/lanes_kind.h"

static uint64_t texts_hash_of(const char *text, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

const char *vst__lanes_text(const vst__lanes *lanes, uint64_t number,
                            size_t *length)
{
    const vst__lane_text *text;

    *length = 0;
    if (number == 0)
        return "";
    if (number > lanes->texts.count)
        return NULL;
    text = &lanes->texts.all[number - 1];
    *length = text->length;
    return lanes->texts.bytes + text->offset;
}

static bool texts_is_text(const vst__lanes *lanes, uint64_t number,
                          const char *text, size_t length)
{
    size_t size;
    const char *known = vst__lanes_text(lanes, number, &size);

    return number != 0 && size == length && memcmp(known, text, length) == 0;
}

static vst_status texts_add(vst__lane_texts *to, const char *text,
                            size_t length)
{
    if (!VST_RESERVE(to->all, to->count + 1, to->capacity))
        return VST_E_NOMEM;
    if (!VST_RESERVE(to->bytes, to->size + length, to->bytes_capacity))
        return VST_E_NOMEM;
    memcpy(to->bytes + to->size, text, length);
    to->all[to->count++] = (vst__lane_text){to->size, (uint32_t)length};
    to->size += length;
    return VST_OK;
}

vst_status vst__lanes_keep_text(vst__lanes *lanes, const char *text,
                                size_t length, size_t most, uint32_t *number)
{
    uint64_t *known;

    *number = 0;
    if (text == NULL || length == 0)
        return VST_OK;
    known = vst__map64_put(&lanes->texts.known, texts_hash_of(text, length));
    if (known == NULL)
        return VST_E_NOMEM;
    if (!texts_is_text(lanes, *known, text, length)) {
        if (lanes->texts.size + length > most) {
            lanes->texts_left_out++;
            return VST_OK;
        }
        if (texts_add(&lanes->texts, text, length) != VST_OK)
            return VST_E_NOMEM;
        *known = lanes->texts.count;
    }
    *number = (uint32_t)*known;
    return VST_OK;
}

void vst__lane_texts_free(vst__lane_texts *texts)
{
    vst__map64_free(&texts->known);
    free(texts->all);
    free(texts->bytes);
}
