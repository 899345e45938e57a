/* Writes values in the format of torch's observer: four parallel lists of
 * values, dimensions, types and strides. Values other than tensors have no
 * dimensions; the type of a list is one string, "GenericList[Int,Int]".
 *
 * Doubles have six decimals, like torch's, if these are exact, and otherwise as
 * many digits as needed to read the number back. Lists are read only to the
 * depth VST_GRAPH_DEPTH_MAX, so recursion is bounded. One thread at a time. */
#include "export/graph/execution_trace.h"

#include <math.h>
#include <string.h>

#include "export/output/json.h"

typedef enum part { VALUES, SHAPES, TYPES, STRIDES } part;

enum { ROOM = 256 }; /* the longest value without text */

/* ---- text ---------------------------------------------------------------- */

static void values_put_escaped(vst__text *text, vst__graph_text from)
{
    vst__text_escaped(text, from.at, from.count);
}

static void put_quoted(vst__text *text, vst__graph_text from)
{
    vst__text_put(text, "\"");
    values_put_escaped(text, from);
    vst__text_put(text, "\"");
}

/* ---- numbers ------------------------------------------------------------- */

/* Writes six decimals. Returns false if they are not exact. */
static bool put_decimals(char **at, double value)
{
    double scaled = fabs(value) * 1e6;
    uint64_t whole, rest;

    if (!(scaled < 9007199254740992.0) || scaled != floor(scaled))
        return false;
    whole = (uint64_t)scaled;
    if ((double)whole / 1e6 != fabs(value))
        return false;
    rest = whole % 1000000;
    if (signbit(value))
        *(*at)++ = '-';
    *at = vst__json_u64(*at, whole / 1000000);
    *(*at)++ = '.';
    memcpy(*at, vst__json_pairs + 2 * (rest / 10000), 2);
    memcpy(*at + 2, vst__json_pairs + 2 * (rest / 100 % 100), 2);
    memcpy(*at + 4, vst__json_pairs + 2 * (rest % 100), 2);
    *at += 6;
    return true;
}

static char *put_double(char *at, double value)
{
    if (isnan(value))
        return VST_JSON_PUT(at, "\"nan\"");
    if (isinf(value))
        return value > 0 ? VST_JSON_PUT(at, "\"inf\"")
                         : VST_JSON_PUT(at, "\"-inf\"");
    return put_decimals(&at, value) ? at : vst__json_finite(at, value);
}

/* Writes [1,2]; `numbers` begins with the count. */
static void put_integers(vst__text *text, const int64_t *numbers)
{
    size_t count = (size_t)numbers[0];
    char *at = vst__text_room(text, (count + 1) * VST_JSON_NUMBER_MAX);

    if (at == NULL)
        return;
    *at++ = '[';
    for (size_t i = 1; i <= count; i++) {
        if (i != 1)
            *at++ = ',';
        at = vst__json_i64(at, numbers[i]);
    }
    *at++ = ']';
    vst__text_commit(text, at);
}

/* ---- values -------------------------------------------------------------- */

/* A tensor without a storage has the storage number 0. */
static void put_tensor(vst__text *text, const vst__graph_tensor *tensor)
{
    char *at = vst__text_room(text, ROOM);

    if (at == NULL)
        return;
    *at++ = '[';
    at = vst__json_u64(at, tensor->id);
    *at++ = ',';
    at = vst__json_u64(at, tensor->storage_id);
    *at++ = ',';
    at = vst__json_i64(at, tensor->offset);
    *at++ = ',';
    at = vst__json_i64(at, tensor->elements);
    *at++ = ',';
    at = vst__json_u64(at, tensor->element_size);
    *at++ = ',';
    vst__text_commit(text, at);
    put_quoted(text, tensor->device);
    vst__text_put(text, "]");
}

static void values_put_value(vst__text *text, const vst__graph_value *value)
{
    char *at;

    switch (value->tag) {
    case VST_VALUE_TENSOR:
    case VST_VALUE_TENSOR_NESTED:
    case VST_VALUE_TENSOR_UNDEFINED:
        put_tensor(text, &value->tensor);
        return;
    case VST_VALUE_STRING:
    case VST_VALUE_DEVICE:
        put_quoted(text, value->text);
        return;
    case VST_VALUE_OTHER:
        vst__text_put(text, "\"<");
        values_put_escaped(text, value->text);
        vst__text_put(text, ">\"");
        return;
    case VST_VALUE_BOOL:
        vst__text_put(text, value->truth ? "true" : "false");
        return;
    case VST_VALUE_INTEGER:
    case VST_VALUE_DOUBLE:
        at = vst__text_room(text, ROOM);
        if (at != NULL)
            vst__text_commit(text, value->tag == VST_VALUE_INTEGER
                                       ? vst__json_i64(at, value->integer)
                                       : put_double(at, value->number));
        return;
    default:
        vst__text_put(text, "\"<None>\"");
    }
}

/* A nested tensor has a list for each row. */
static void put_dimensions(vst__text *text, const vst__graph_values *values,
                           const vst__graph_value *value, bool strides)
{
    const int64_t *numbers = values->numbers + value->tensor.numbers;
    bool nested = value->tag == VST_VALUE_TENSOR_NESTED;

    if (value->tag != VST_VALUE_TENSOR && !nested) {
        vst__text_put(text, "[]");
        return;
    }
    if (nested)
        vst__text_put(text, "[");
    for (uint32_t i = 0; i < value->items; i++) {
        if (i != 0)
            vst__text_put(text, ",");
        if (!strides)
            put_integers(text, numbers);
        numbers += 1 + numbers[0];
        if (strides)
            put_integers(text, numbers);
        numbers += 1 + numbers[0];
    }
    if (nested)
        vst__text_put(text, "]");
}

static void put_type(vst__text *text, const vst__graph_value *value)
{
    static const char *const names[] = {
        [VST_VALUE_TENSOR_UNDEFINED] = "Tensor(nullptr (uninitialized))",
        [VST_VALUE_INTEGER] = "Int",
        [VST_VALUE_DOUBLE] = "Double",
        [VST_VALUE_BOOL] = "Bool",
        [VST_VALUE_STRING] = "String",
        [VST_VALUE_DEVICE] = "Device",
    };
    const size_t known = sizeof names / sizeof *names;

    if (value->tag == VST_VALUE_TENSOR ||
        value->tag == VST_VALUE_TENSOR_NESTED) {
        vst__text_put(text, "Tensor(");
        values_put_escaped(text, value->tensor.type);
        vst__text_put(text, ")");
    } else if (value->tag == VST_VALUE_OTHER) {
        values_put_escaped(text, value->text);
    } else {
        vst__text_put(text, value->tag < known && names[value->tag] != NULL
                                ? names[value->tag]
                                : "None");
    }
}

static void put_plain(vst__text *text, const vst__graph_values *values,
                      const vst__graph_value *value, part wanted)
{
    if (wanted == VALUES)
        values_put_value(text, value);
    else if (wanted == TYPES)
        put_type(text, value);
    else
        put_dimensions(text, values, value, wanted == STRIDES);
}

/* Writes a part of a value with everything inside. Returns the next value. */
static const vst__graph_value *put_part(vst__text *text,
                                        const vst__graph_values *values,
                                        const vst__graph_value *value,
                                        part wanted)
{
    const vst__graph_value *next = value + 1;
    bool list = value->tag == VST_VALUE_LIST;

    if (!list && value->tag != VST_VALUE_TUPLE) {
        put_plain(text, values, value, wanted);
        return next;
    }
    vst__text_put(text, wanted != TYPES ? "["
                        : list          ? "GenericList["
                                        : "Tuple[");
    for (uint32_t i = 0; i < value->items; i++) {
        if (i != 0)
            vst__text_put(text, ",");
        next = put_part(text, values, next, wanted);
    }
    vst__text_put(text, "]");
    return next;
}

static void put_parts(vst__text *text, const vst__graph_values *values,
                      part wanted)
{
    const vst__graph_value *value = values->items;

    vst__text_put(text, "[");
    for (size_t i = 0; i < values->top; i++) {
        if (i != 0)
            vst__text_put(text, ",");
        if (wanted == TYPES)
            vst__text_put(text, "\"");
        value = put_part(text, values, value, wanted);
        if (wanted == TYPES)
            vst__text_put(text, "\"");
    }
    vst__text_put(text, "]");
}

bool vst__execution_trace_values(vst__text *text,
                                 const vst__graph_values *values)
{
    vst__text_put(text, "{\"values\": ");
    put_parts(text, values, VALUES);
    vst__text_put(text, ", \"shapes\": ");
    put_parts(text, values, SHAPES);
    vst__text_put(text, ", \"types\": ");
    put_parts(text, values, TYPES);
    vst__text_put(text, ", \"strides\": ");
    put_parts(text, values, STRIDES);
    vst__text_put(text, "}");
    return !text->failed;
}
