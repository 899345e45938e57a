/* The slower functions of json.h: long numbers, strings and doubles. Any
 * thread. */
#include "export/output/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char vst__json_pairs[201] = {
    "00010203040506070809101112131415161718192021222324"
    "25262728293031323334353637383940414243444546474849"
    "50515253545556575859606162636465666768697071727374"
    "75767778798081828384858687888990919293949596979899"};

char *vst__json_u64_long(char *at, uint64_t value)
{
    at = vst__json_u64(at, value / VST_JSON_EIGHT);
    vst__json_store(at, vst__json_eight((uint32_t)(value % VST_JSON_EIGHT)));
    return at + 8;
}

char *vst__json_finite(char *at, double value)
{
    int count = snprintf(at, VST_JSON_NUMBER_MAX, "%.15g", value);

    if (strtod(at, NULL) != value)
        count = snprintf(at, VST_JSON_NUMBER_MAX, "%.17g", value);
    /* The locale may use another decimal point than JSON. */
    for (int i = 0; i < count; i++)
        if (strchr("0123456789+-e", at[i]) == NULL)
            at[i] = '.';
    return at + count;
}

char *vst__json_double(char *at, double value)
{
    if (isnan(value))
        return vst__json_word(at, "\"NaN\"");
    if (isinf(value))
        return vst__json_word(at, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    if (value > -9007199254740992.0 && value < 9007199254740992.0 &&
        value == (double)(int64_t)value)
        return vst__json_i64(at, (int64_t)value);
    return vst__json_finite(at, value);
}

void vst__json_put_u64(vst__output *output, uint64_t value)
{
    char *at = vst__output_reserve(output, VST_JSON_NUMBER_MAX);

    vst__output_commit(output, vst__json_u64(at, value));
}

void vst__json_put_i64(vst__output *output, int64_t value)
{
    char *at = vst__output_reserve(output, VST_JSON_NUMBER_MAX);

    vst__output_commit(output, vst__json_i64(at, value));
}

void vst__json_put_us(vst__output *output, int64_t ns)
{
    char *at = vst__output_reserve(output, VST_JSON_NUMBER_MAX);

    vst__output_commit(output, vst__json_us(at, ns));
}

void vst__json_put_double(vst__output *output, double value)
{
    char *at = vst__output_reserve(output, VST_JSON_NUMBER_MAX);

    vst__output_commit(output, vst__json_double(at, value));
}

void vst__json_put_escaped(vst__output *output, const char *bytes, size_t count)
{
    const char *end = bytes + count;

    while (bytes != end) {
        char *at = vst__output_reserve(output, VST_OUTPUT_RESERVE_MAX);
        at = vst__json_escape(at, at + VST_OUTPUT_RESERVE_MAX, &bytes, end);
        vst__output_commit(output, at);
    }
}

void vst__json_string(vst__output *output, const char *bytes, size_t count)
{
    vst__output_write(output, "\"", 1);
    vst__json_put_escaped(output, bytes, count);
    vst__output_write(output, "\"", 1);
}
