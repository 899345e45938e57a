/* The reader of values.h. Bytes are cut where they stop making sense; values
 * that were read before stay. One thread at a time. */
#include "graph/values.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

typedef struct source {
    const unsigned char *at, *end;
    vst__graph_values *values;
    bool broken;
    bool no_memory;
} source;

/* ---- parts --------------------------------------------------------------- */

static uint64_t take_count(source *from)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && from->at < from->end; shift += 7) {
        unsigned char byte = *from->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    from->broken = true;
    return 0;
}

static int64_t take_integer(source *from)
{
    uint64_t value = take_count(from);

    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

/* Takes a count of items that have at least a byte each. */
static size_t take_length(source *from)
{
    uint64_t count = take_count(from);

    if (count > (uint64_t)(from->end - from->at))
        from->broken = true;
    return from->broken ? 0 : (size_t)count;
}

static vst__graph_text take_text(source *from)
{
    vst__graph_text text;

    text.count = take_length(from);
    text.at = (const char *)from->at;
    from->at += text.count;
    return text;
}

static double take_double(source *from)
{
    double value = 0;

    if ((size_t)(from->end - from->at) < sizeof value) {
        from->broken = true;
        return 0;
    }
    memcpy(&value, from->at, sizeof value);
    from->at += sizeof value;
    return value;
}

static unsigned take_byte(source *from)
{
    if (from->at == from->end) {
        from->broken = true;
        return 0;
    }
    return *from->at++;
}

/* Takes a count and that many integers. */
static void take_integers(source *from)
{
    vst__graph_values *values = from->values;
    size_t count = take_length(from);
    int64_t *numbers;

    if (!VST_RESERVE(values->numbers, values->number_count + count + 1,
                     values->number_capacity)) {
        from->no_memory = from->broken = true;
        return;
    }
    numbers = &values->numbers[values->number_count];
    *numbers++ = (int64_t)count;
    for (size_t i = 0; i < count; i++)
        numbers[i] = take_integer(from);
    values->number_count += count + 1;
}

/* ---- values -------------------------------------------------------------- */

static vst__graph_value *values_add(source *from)
{
    vst__graph_values *values = from->values;

    if (values->count == VST_GRAPH_VALUES_MAX) {
        from->broken = true;
        return NULL;
    }
    if (!VST_RESERVE(values->items, values->count + 1, values->capacity)) {
        from->no_memory = from->broken = true;
        return NULL;
    }
    return &values->items[values->count++];
}

static void take_tensor(source *from, vst_value tag, vst__graph_value *value)
{
    vst__graph_tensor *tensor = &value->tensor;
    size_t rows = 1;

    tensor->identity = take_count(from);
    tensor->storage = take_count(from);
    tensor->offset = take_integer(from);
    tensor->elements = take_integer(from);
    tensor->element_size = take_count(from);
    tensor->device = take_text(from);
    tensor->type = take_text(from);
    tensor->numbers = from->values->number_count;
    if (tag == VST_VALUE_TENSOR_NESTED)
        rows = take_length(from);
    value->items = (uint32_t)rows;
    for (size_t i = 0; i < rows && !from->broken; i++) {
        take_integers(from);
        take_integers(from);
    }
}

/* Takes a value that contains no other values. Returns false if it cannot be
 * read. */
static bool take_plain(source *from, vst_value tag)
{
    vst__graph_value value = {.tag = tag};
    vst__graph_value *place;

    switch (tag) {
    case VST_VALUE_NONE:
        break;
    case VST_VALUE_INTEGER:
        value.integer = take_integer(from);
        break;
    case VST_VALUE_DOUBLE:
        value.number = take_double(from);
        break;
    case VST_VALUE_BOOL:
        value.truth = take_byte(from) != 0;
        break;
    case VST_VALUE_STRING:
    case VST_VALUE_DEVICE:
    case VST_VALUE_OTHER:
        value.text = take_text(from);
        break;
    case VST_VALUE_TENSOR:
    case VST_VALUE_TENSOR_NESTED:
        take_tensor(from, tag, &value);
        break;
    case VST_VALUE_TENSOR_UNDEFINED:
        value.tensor = (vst__graph_tensor){.device = {"", 0}};
        break;
    default:
        from->broken = true;
    }
    if (from->broken)
        return false;
    place = values_add(from);
    if (place == NULL)
        return false;
    *place = value;
    return true;
}

/* Takes a value with everything in it. Returns false if nothing was added. */
static bool take_value(source *from, vst_value tag, unsigned depth)
{
    size_t index = from->values->count;
    vst__graph_value *list;
    uint32_t items = 0;
    size_t count;

    if (tag != VST_VALUE_LIST && tag != VST_VALUE_TUPLE)
        return take_plain(from, tag);
    count = take_length(from);
    if (depth == VST_GRAPH_DEPTH_MAX)
        from->broken = true;
    list = from->broken ? NULL : values_add(from);
    if (list == NULL)
        return false;
    *list = (vst__graph_value){.tag = tag};
    for (size_t i = 0; i < count && !from->broken; i++)
        items += take_value(from, (vst_value)take_byte(from), depth + 1);
    from->values->items[index].items = items;
    return true;
}

/* Takes a fact about the node itself. Returns false if the tag is that of a
 * value. */
static bool take_attribute(source *from, vst_value tag)
{
    vst__graph_values *values = from->values;
    vst__graph_text text;

    if (tag == VST_VALUE_SCHEMA || tag == VST_VALUE_THREAD) {
        uint64_t number = take_count(from);
        if (!from->broken && tag == VST_VALUE_THREAD)
            values->thread = number;
        else if (!from->broken && number <= VST_ID_MAX)
            values->schema = (vst_id)number;
        return true;
    }
    if (tag != VST_VALUE_BACKEND && tag != VST_VALUE_FILE &&
        tag != VST_VALUE_RANGE)
        return false;
    text = take_text(from);
    if (from->broken)
        return true;
    if (tag == VST_VALUE_BACKEND)
        values->backend = text;
    else if (tag == VST_VALUE_FILE)
        values->file = text;
    else
        values->range = text;
    return true;
}

vst_status vst__graph_values_read(vst__graph_values *values,
                                  const unsigned char *bytes, size_t count)
{
    static const vst__graph_text none = {"", 0};
    source from = {.at = bytes, .end = bytes + count, .values = values};

    values->count = values->number_count = values->top = 0;
    values->schema = 0;
    values->thread = 0;
    values->backend = values->file = values->range = none;
    while (!from.broken && from.at < from.end && *from.at != VST_VALUE_END) {
        vst_value tag = (vst_value)*from.at++;

        if (!take_attribute(&from, tag))
            values->top += take_value(&from, tag, 0);
    }
    values->cut = from.broken;
    return from.no_memory ? VST_E_NOMEM : VST_OK;
}

void vst__graph_values_free(vst__graph_values *values)
{
    free(values->items);
    free(values->numbers);
    memset(values, 0, sizeof *values);
}
