/* Writes values in the format of torch's observer: four parallel lists of
 * values, dimensions, types and strides. Values other than tensors have no
 * dimensions; the type of a list is one string, "GenericList[Int,Int]".
 *
 * Doubles have six decimals, like torch's, if these are exact, and otherwise as
 * many digits as needed to read the number back. Lists are read only to the
 * depth VST_GRAPH_DEPTH_MAX, so recursion is bounded. One thread at a time. */
#include "export/graph/execution_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "export/output/json.h"

typedef enum part { VALUES, SHAPES, TYPES, STRIDES } part;

/* Copies a literal without its NUL. */
#define PUT(at, literal)                                                       \
    (memcpy((at), (literal), sizeof(literal) - 1), (at) + sizeof(literal) - 1)

enum { ROOM = 256 }; /* the longest value without text */

/* ---- text ---------------------------------------------------------------- */

/* Returns the place to continue, with room for `count` bytes; NULL if memory
 * ran out. */
static char *values_make_room(vst__text *text, size_t count)
{
    char *grown = text->bytes;

    if (text->capacity - text->count < count)
        grown = vst__grow(text->bytes, &text->capacity, text->count + count, 1);
    if (grown == NULL) {
        text->failed = true;
        return NULL;
    }
    text->bytes = grown;
    return grown + text->count;
}

static void values_commit(vst__text *text, const char *end)
{
    text->count = (size_t)(end - text->bytes);
}

bool vst__execution_trace_text(vst__text *text, const char *bytes, size_t count)
{
    char *at = values_make_room(text, count + 1);

    if (at == NULL)
        return false;
    if (count != 0)
        memcpy(at, bytes, count);
    text->count += count;
    return true;
}

bool vst__execution_trace_escaped(vst__text *text, const char *bytes,
                                  size_t count)
{
    size_t room = (count + 1) * VST_JSON_ESCAPE_MAX;
    char *at = values_make_room(text, room);

    if (at == NULL)
        return false;
    values_commit(text, vst__json_escape(at, at + room, &bytes, bytes + count));
    return true;
}

static void values_put(vst__text *text, const char *literal)
{
    vst__execution_trace_text(text, literal, strlen(literal));
}

static void values_put_escaped(vst__text *text, vst__graph_text from)
{
    vst__execution_trace_escaped(text, from.at, from.count);
}

static void put_quoted(vst__text *text, vst__graph_text from)
{
    values_put(text, "\"");
    values_put_escaped(text, from);
    values_put(text, "\"");
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
    int count;

    if (isnan(value))
        return PUT(at, "\"nan\"");
    if (isinf(value))
        return value > 0 ? PUT(at, "\"inf\"") : PUT(at, "\"-inf\"");
    if (put_decimals(&at, value))
        return at;
    count = snprintf(at, VST_JSON_NUMBER_MAX, "%.15g", value);
    if (strtod(at, NULL) != value)
        count = snprintf(at, VST_JSON_NUMBER_MAX, "%.17g", value);
    /* The locale may use another decimal point than JSON. */
    for (int i = 0; i < count; i++)
        if (strchr("0123456789+-e", at[i]) == NULL)
            at[i] = '.';
    return at + count;
}

/* Writes [1,2]; `numbers` begins with the count. */
static void put_integers(vst__text *text, const int64_t *numbers)
{
    size_t count = (size_t)numbers[0];
    char *at = values_make_room(text, (count + 1) * VST_JSON_NUMBER_MAX);

    if (at == NULL)
        return;
    *at++ = '[';
    for (size_t i = 1; i <= count; i++) {
        if (i != 1)
            *at++ = ',';
        at = vst__json_i64(at, numbers[i]);
    }
    *at++ = ']';
    values_commit(text, at);
}

/* ---- values -------------------------------------------------------------- */

/* A tensor without a storage has the storage number 0. */
static void put_tensor(vst__text *text, const vst__graph_tensor *tensor)
{
    char *at = values_make_room(text, ROOM);

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
    values_commit(text, at);
    put_quoted(text, tensor->device);
    values_put(text, "]");
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
        values_put(text, "\"<");
        values_put_escaped(text, value->text);
        values_put(text, ">\"");
        return;
    case VST_VALUE_BOOL:
        values_put(text, value->truth ? "true" : "false");
        return;
    case VST_VALUE_INTEGER:
    case VST_VALUE_DOUBLE:
        at = values_make_room(text, ROOM);
        if (at != NULL)
            values_commit(text, value->tag == VST_VALUE_INTEGER
                                    ? vst__json_i64(at, value->integer)
                                    : put_double(at, value->number));
        return;
    default:
        values_put(text, "\"<None>\"");
    }
}

/* A nested tensor has a list for each row. */
static void put_dimensions(vst__text *text, const vst__graph_values *values,
                           const vst__graph_value *value, bool strides)
{
    const int64_t *numbers = values->numbers + value->tensor.numbers;
    bool nested = value->tag == VST_VALUE_TENSOR_NESTED;

    if (value->tag != VST_VALUE_TENSOR && !nested) {
        values_put(text, "[]");
        return;
    }
    if (nested)
        values_put(text, "[");
    for (uint32_t i = 0; i < value->items; i++) {
        if (i != 0)
            values_put(text, ",");
        if (!strides)
            put_integers(text, numbers);
        numbers += 1 + numbers[0];
        if (strides)
            put_integers(text, numbers);
        numbers += 1 + numbers[0];
    }
    if (nested)
        values_put(text, "]");
}

static void put_type(vst__text *text, const vst__graph_value *value)
{
    switch (value->tag) {
    case VST_VALUE_TENSOR:
    case VST_VALUE_TENSOR_NESTED:
        values_put(text, "Tensor(");
        values_put_escaped(text, value->tensor.type);
        values_put(text, ")");
        return;
    case VST_VALUE_TENSOR_UNDEFINED:
        values_put(text, "Tensor(nullptr (uninitialized))");
        return;
    case VST_VALUE_INTEGER:
        values_put(text, "Int");
        return;
    case VST_VALUE_DOUBLE:
        values_put(text, "Double");
        return;
    case VST_VALUE_BOOL:
        values_put(text, "Bool");
        return;
    case VST_VALUE_STRING:
        values_put(text, "String");
        return;
    case VST_VALUE_DEVICE:
        values_put(text, "Device");
        return;
    case VST_VALUE_OTHER:
        values_put_escaped(text, value->text);
        return;
    default:
        values_put(text, "None");
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
    values_put(text, wanted != TYPES ? "[" : list ? "GenericList[" : "Tuple[");
    for (uint32_t i = 0; i < value->items; i++) {
        if (i != 0)
            values_put(text, ",");
        next = put_part(text, values, next, wanted);
    }
    values_put(text, "]");
    return next;
}

static void put_parts(vst__text *text, const vst__graph_values *values,
                      part wanted)
{
    const vst__graph_value *value = values->items;

    values_put(text, "[");
    for (size_t i = 0; i < values->top; i++) {
        if (i != 0)
            values_put(text, ",");
        if (wanted == TYPES)
            values_put(text, "\"");
        value = put_part(text, values, value, wanted);
        if (wanted == TYPES)
            values_put(text, "\"");
    }
    values_put(text, "]");
}

bool vst__execution_trace_values(vst__text *text,
                                 const vst__graph_values *values)
{
    values_put(text, "{\"values\": ");
    put_parts(text, values, VALUES);
    values_put(text, ", \"shapes\": ");
    put_parts(text, values, SHAPES);
    values_put(text, ", \"types\": ");
    put_parts(text, values, TYPES);
    values_put(text, ", \"strides\": ");
    put_parts(text, values, STRIDES);
    values_put(text, "}");
    return !text->failed;
}
