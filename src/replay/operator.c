/* Facts about an operator, as JSON members with torch's names. Inputs are
 * written as four lists, with one item for each input: values, types, strides
 * and sizes; so the facts are walked four times. The bytes come from a file and
 * may have any value: an invalid fact ends the walk, and the text written
 * before it stays. One thread at a time. */
#include "replay/operator.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/grow.h"

typedef enum input_part { VALUES, TYPES, STRIDES, SIZES, PARTS } input_part;

/* ---- writing ------------------------------------------------------------- */

/* Writes a number as torch does: 1. and 0.10000000000000001 */
static void put_double(vst__text *text, double value)
{
    if (fabs(value) < 1e10 && value == (double)(int64_t)value)
        vst__text_format(text, "%s%" PRId64 ".",
                         signbit(value) && value == 0 ? "-" : "",
                         (int64_t)value);
    else
        vst__text_format(text, "%.17g", value);
}

/* ---- reading ------------------------------------------------------------- */

typedef struct fact_bytes {
    const unsigned char *at, *end;
    bool broken;
    vst__operator_wish wish;
} fact_bytes;

static uint64_t take_count(fact_bytes *facts)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && facts->at < facts->end; shift += 7) {
        unsigned char byte = *facts->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    facts->broken = true;
    return 0;
}

static int64_t take_integer(fact_bytes *facts)
{
    uint64_t value = take_count(facts);

    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

/* Takes a count of items that have at least a byte each. */
static size_t take_length(fact_bytes *facts)
{
    uint64_t count = take_count(facts);

    if (count > (uint64_t)(facts->end - facts->at))
        facts->broken = true;
    return facts->broken ? 0 : (size_t)count;
}

static const char *take_text(fact_bytes *facts, size_t *count)
{
    const char *text;

    *count = take_length(facts);
    text = (const char *)facts->at;
    facts->at += *count;
    return text;
}

static double take_double(fact_bytes *facts)
{
    double value = 0;

    if ((size_t)(facts->end - facts->at) < sizeof value) {
        facts->broken = true;
        return 0;
    }
    memcpy(&value, facts->at, sizeof value);
    facts->at += sizeof value;
    return value;
}

static unsigned take_byte(fact_bytes *facts)
{
    if (facts->at == facts->end) {
        facts->broken = true;
        return 0;
    }
    return *facts->at++;
}

/* ---- inputs -------------------------------------------------------------- */

/* `text` is NULL if this part of the input is not wanted. */
static void operator_integers(fact_bytes *facts, vst__text *text)
{
    size_t count = take_length(facts);

    if (text != NULL)
        vst__text_put(text, "[");
    for (size_t i = 0; i < count && !facts->broken; i++) {
        int64_t value = take_integer(facts);
        if (text != NULL)
            vst__text_format(text, i ? ", %" PRId64 : "%" PRId64, value);
    }
    if (text != NULL)
        vst__text_put(text, "]");
}

static void operator_tensor(fact_bytes *facts, input_part part, vst__text *text)
{
    size_t count;
    const char *type = take_text(facts, &count);

    if (part == TYPES && text != NULL)
        vst__text_escaped(text, type, count);
    operator_integers(facts, part == SIZES ? text : NULL);
    operator_integers(facts, part == STRIDES ? text : NULL);
}

static void operator_tensors(fact_bytes *facts, input_part part,
                             vst__text *text)
{
    size_t count = take_length(facts);
    bool lists = part == SIZES || part == STRIDES;

    vst__text_put(text, lists ? "[" : part == TYPES ? "TensorList" : "");
    lists &= facts->wish.tensors || count <= VST_TENSORS_SHOWN_MAX;
    for (size_t i = 0; i < count && !facts->broken; i++) {
        unsigned tag = take_byte(facts);
        if (lists && i)
            vst__text_put(text, ", ");
        if (tag == VST_FACT_TENSOR)
            operator_tensor(facts, part, lists ? text : NULL);
        else if (lists)
            vst__text_put(text, "[]");
        if (tag != VST_FACT_TENSOR && tag != VST_FACT_OTHER)
            facts->broken = true;
    }
    if (part == SIZES || part == STRIDES)
        vst__text_put(text, "]");
}

static void one_value(fact_bytes *facts, unsigned tag, vst__text *text)
{
    size_t count;
    const char *bytes;

    switch (tag) {
    case VST_FACT_INTEGER:
    case VST_FACT_INTEGERS:
        vst__text_format(text, "%" PRId64, take_integer(facts));
        break;
    case VST_FACT_DOUBLE:
    case VST_FACT_DOUBLES:
        put_double(text, take_double(facts));
        break;
    case VST_FACT_BOOL:
    case VST_FACT_BOOLS:
        vst__text_put(text, take_byte(facts) ? "True" : "False");
        break;
    default:
        bytes = take_text(facts, &count);
        vst__text_escaped(text, bytes, count);
    }
}

/* Writes a number or a list of numbers: its value, or the text that stands for
 * it in the other lists. */
static void operator_plain(fact_bytes *facts, unsigned tag, input_part part,
                           vst__text *text)
{
    bool list = tag >= VST_FACT_INTEGERS && tag <= VST_FACT_BOOLS;
    size_t count = list ? take_length(facts) : 1;
    size_t before = text->count;

    if (list)
        vst__text_put(text, "[");
    for (size_t i = 0; i < count && !facts->broken; i++) {
        if (i)
            vst__text_put(text, ", ");
        one_value(facts, tag, text);
    }
    if (list)
        vst__text_put(text, "]");
    if (part == VALUES)
        return;
    text->count = before;
    if (part == TYPES)
        vst__text_put(text, tag >= VST_FACT_INTEGERS ? "ScalarList" : "Scalar");
    else
        vst__text_put(text, "[]");
}

static void operator_input(fact_bytes *facts, unsigned tag, input_part part,
                           vst__text *text)
{
    bool quoted = part == VALUES || part == TYPES;

    if (quoted)
        vst__text_put(text, "\"");
    if (tag == VST_FACT_TENSOR)
        operator_tensor(facts, part, text);
    else if (tag == VST_FACT_TENSORS)
        operator_tensors(facts, part, text);
    else if (tag == VST_FACT_OTHER || tag == VST_FACT_TENSORS_LONG)
        vst__text_put(text, !quoted ? "[]"
                            : part == TYPES && tag == VST_FACT_TENSORS_LONG
                                ? "TensorList"
                                : "");
    else
        operator_plain(facts, tag, part, text);
    if (quoted)
        vst__text_put(text, "\"");
}

static fact_bytes operator_inputs(fact_bytes facts, input_part part,
                                  vst__text *text)
{
    static const char *const names[PARTS] = {
        ", \"Concrete Inputs\": [",
        ", \"Input type\": [",
        ", \"Input Strides\": [",
        ", \"Input Dims\": [",
    };

    if (facts.at == facts.end || *facts.at == VST_FACT_END ||
        *facts.at > VST_FACT_LIST_TEXT)
        return facts;
    vst__text_put(text, names[part]);
    for (size_t i = 0;
         !facts.broken && facts.at < facts.end && *facts.at != VST_FACT_END &&
         *facts.at <= VST_FACT_LIST_TEXT;
         i++) {
        if (i)
            vst__text_put(text, ", ");
        operator_input(&facts, *facts.at++, part, text);
    }
    vst__text_put(text, "]");
    return facts;
}

/* ---- other facts --------------------------------------------------------- */

static void operator_texts(fact_bytes *facts, vst__text *text)
{
    uint64_t left = take_count(facts);

    vst__text_put(text, "[");
    for (bool first = true; left != 0 && !facts->broken; left--) {
        size_t count;
        const char *bytes = take_text(facts, &count);

        vst__text_put(text, first ? "\"" : ", \"");
        vst__text_escaped(text, bytes, count);
        vst__text_put(text, "\"");
        first = false;
    }
    vst__text_put(text, "]");
}

static void operator_named(fact_bytes *facts, vst__text *text)
{
    size_t count;
    const char *name = take_text(facts, &count);
    unsigned tag = take_byte(facts);
    double value;

    vst__text_put(text, ", \"");
    vst__text_escaped(text, name, count);
    vst__text_put(text, "\": ");
    if (tag == VST_FACT_BOOL) {
        vst__text_put(text, take_byte(facts) ? "true" : "false");
    } else if (tag == VST_FACT_INTEGER) {
        one_value(facts, tag, text);
    } else if (tag == VST_FACT_DOUBLE) {
        value = take_double(facts);
        vst__text_format(text, isfinite(value) ? "%.17g" : "\"%g\"", value);
    } else if (tag == VST_FACT_TEXTS) {
        operator_texts(facts, text);
    } else if (tag == VST_FACT_INTEGERS) {
        operator_plain(facts, tag, VALUES, text);
    } else {
        vst__text_put(text, "\"");
        one_value(facts, VST_FACT_TEXT, text);
        vst__text_put(text, "\"");
        facts->broken |= tag != VST_FACT_TEXT;
    }
}

static uint64_t take_address(fact_bytes *facts)
{
    uint64_t address = 0;

    if ((size_t)(facts->end - facts->at) < sizeof address) {
        facts->broken = true;
        return 0;
    }
    memcpy(&address, facts->at, sizeof address);
    facts->at += sizeof address;
    return address;
}

/* Writes for each tensor: its address, its storage's address, layout, kind of
 * device, flags, type of its elements, and device. */
static void tensors_at(fact_bytes *facts, vst__text *text)
{
    size_t count = take_length(facts);

    vst__text_put(text, ", \"Tensors\": [");
    for (size_t i = 0; i < count && !facts->broken; i++) {
        vst__text_format(text, i ? ", [%" PRIu64 : "[%" PRIu64,
                         take_address(facts));
        vst__text_format(text, ", %" PRIu64, take_address(facts));
        for (int k = 0; k < 4; k++)
            vst__text_format(text, ", %u", take_byte(facts));
        vst__text_format(text, ", %" PRId64 "]", take_integer(facts));
    }
    vst__text_put(text, "]");
}

static void operator_others(fact_bytes facts, vst__text *text)
{
    size_t count;
    const char *bytes;

    while (!facts.broken && facts.at < facts.end) {
        switch (*facts.at++) {
        case VST_FACT_NAMED:
            operator_named(&facts, text);
            break;
        case VST_FACT_FLOPS:
            vst__text_format(text, ", \"Flops\": %" PRIu64, take_count(&facts));
            break;
        case VST_FACT_OVERLOAD:
            bytes = take_text(&facts, &count);
            vst__text_put(text, ", \"Overload name\": \"");
            vst__text_escaped(text, bytes, count);
            vst__text_put(text, "\"");
            break;
        case VST_FACT_RECORD:
            take_count(&facts); /* a node has this number itself */
            break;
        case VST_FACT_TOO_LONG:
            vst__text_put(text, ", \"Inputs\": \"too long to record\"");
            break;
        case VST_FACT_KEYWORDS:
            bytes = take_text(&facts, &count);
            if (facts.wish.keywords) {
                vst__text_put(text, ", \"Keyword inputs\": \"");
                vst__text_escaped(text, bytes, count);
                vst__text_put(text, "\"");
            }
            break;
        case VST_FACT_TENSORS_AT:
            if (facts.wish.tensors)
                tensors_at(&facts, text);
            return;
        default:
            return;
        }
    }
}

void vst__operator_read_head(const uint64_t *payload, uint32_t words,
                             vst_operator *op)
{
    *op = (vst_operator){.sequence = -1};
    if (words < VST_OPERATOR_HEAD_WORDS)
        return;
    op->sequence = (int64_t)payload[0];
    op->thread = payload[1] & 0xffffffu;
    op->forward_thread = payload[1] >> 24 & 0xffffffu;
    op->scope = payload[1] >> 48 & 0xffu;
}

bool vst__operator_read(const uint64_t *payload, uint32_t words,
                        vst__operator_wish wish, vst_operator *op,
                        vst__text *text)
{
    fact_bytes all, rest;

    vst__operator_read_head(payload, words, op);
    text->count = text->head = 0;
    text->failed = false;
    if (words < VST_OPERATOR_HEAD_WORDS)
        return true;
    if (op->sequence >= 0)
        vst__text_format(text, ", \"Sequence number\": %" PRId64, op->sequence);
    if (op->sequence >= 0 || (wish.tensors && op->forward_thread != 0))
        vst__text_format(text, ", \"Fwd thread id\": %" PRIu32,
                         op->forward_thread);
    if (wish.tensors)
        vst__text_format(text, ", \"Thread id\": %" PRIu32, op->thread);
    text->head = text->count;
    all.at = (const unsigned char *)(payload + VST_OPERATOR_HEAD_WORDS);
    all.end = (const unsigned char *)(payload + words);
    all.broken = false;
    all.wish = wish;
    rest = all;
    for (input_part part = VALUES; part < PARTS; part++)
        rest = operator_inputs(all, part, text);
    if (!rest.broken)
        operator_others(rest, text);
    return !text->failed;
}
