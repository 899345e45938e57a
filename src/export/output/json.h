/* Writing JSON text by hand, because most of an export's time goes into numbers
 * and strings: they are written straight into memory. Functions take the place
 * to write and return the place behind; the caller has made sure of the room.
 * Any thread. */
#ifndef VST_EXPORT_JSON_H
#define VST_EXPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/escape.h"
#include "export/output/output.h"

/* most bytes that writing a number may touch */
enum { VST_JSON_NUMBER_MAX = 32 };

/* "00" "01" … "99" */
extern const char vst__json_pairs[201];

#define VST_JSON_EIGHT 100000000u /* the smallest number of nine digits */
#define VST_JSON_RARELY(x) __builtin_expect(!!(x), 0)

/* Returns the eight digits of a number below VST_JSON_EIGHT, one per byte, the
 * first in the lowest byte. Splits the number into halves of four digits, then
 * of two, then of one; all parts of a size are split together, by multiplying
 * with the inverse of the divisor. */
static inline uint64_t vst__json_eight(uint32_t value)
{
    uint64_t parts = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t high = parts * 10486 >> 20 & UINT64_C(0x7f0000007f);

    parts = high | (parts - high * 100) << 16;
    high = parts * 103 >> 10 & UINT64_C(0x000f000f000f000f);
    return high | (parts - high * 10) << 8;
}

/* Stores digits as text, beginning with the lowest byte. */
static inline void vst__json_store(char *at, uint64_t digits)
{
    digits |= UINT64_C(0x3030303030303030);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    digits = __builtin_bswap64(digits);
#endif
    memcpy(at, &digits, sizeof digits);
}

/* Copies a literal without its NUL. */
#define VST_JSON_PUT(at, literal)                                              \
    (memcpy((at), (literal), sizeof(literal) - 1), (at) + sizeof(literal) - 1)

static inline char *vst__json_word(char *at, const char *text)
{
    size_t count = strlen(text);

    memcpy(at, text, count);
    return at + count;
}

/* Writes a number of nine digits or more. */
char *vst__json_u64_long(char *at, uint64_t value);

/* Writes a number. May touch up to 20 bytes, the length of the longest integer,
 * even if the number is shorter: the next output overwrites the rest. */
static inline char *vst__json_u64(char *at, uint64_t value)
{
    uint64_t digits;
    unsigned zeros;

    if (VST_JSON_RARELY(value >= VST_JSON_EIGHT))
        return vst__json_u64_long(at, value);
    digits = vst__json_eight((uint32_t)value);
    zeros = (unsigned)__builtin_ctzll(digits | UINT64_C(1) << 56) / 8;
    vst__json_store(at, digits >> 8 * zeros);
    return at + (8 - zeros);
}

static inline char *vst__json_i64(char *at, int64_t value)
{
    if (value >= 0)
        return vst__json_u64(at, (uint64_t)value);
    *at++ = '-';
    return vst__json_u64(at, 0 - (uint64_t)value);
}

/* Writes microseconds with three decimals from eight digits of nanoseconds,
 * without the first `zeros` digits (at most four). */
static inline char *vst__json_point(char *at, uint64_t digits, unsigned zeros)
{
    vst__json_store(at, digits >> 8 * zeros);
    at += 5 - zeros;
    at[0] = '.';
    vst__json_store(at + 1, digits >> 40);
    return at + 4;
}

/* Writes nanoseconds as microseconds with exactly three decimals. */
static inline char *vst__json_us(char *at, int64_t ns)
{
    uint64_t value = ns >= 0 ? (uint64_t)ns : 0 - (uint64_t)ns;
    uint64_t digits = vst__json_eight((uint32_t)(value % VST_JSON_EIGHT));
    unsigned zeros = 0;

    if (ns < 0)
        *at++ = '-';
    if (VST_JSON_RARELY(value >= VST_JSON_EIGHT))
        at = vst__json_u64(at, value / VST_JSON_EIGHT);
    else
        zeros = (unsigned)__builtin_ctzll(digits | UINT64_C(1) << 32) / 8;
    return vst__json_point(at, digits, zeros);
}

/* Writes a finite number with as many digits as are needed to read it back. */
char *vst__json_finite(char *at, double value);
/* Writes a number, or the string "NaN", "Infinity" or "-Infinity". */
char *vst__json_double(char *at, double value);

/* Functions like those above for an output, which makes the room itself. */
void vst__json_put_u64(vst__output *output, uint64_t value);
void vst__json_put_i64(vst__output *output, int64_t value);
void vst__json_put_us(vst__output *output, int64_t ns);
void vst__json_put_double(vst__output *output, double value);

/* Writes the inside of a string of any length, or the string with its quotes.
 */
void vst__json_put_escaped(vst__output *output, const char *bytes,
                           size_t count);
void vst__json_string(vst__output *output, const char *bytes, size_t count);

/* ---- json_check.c: checks whether text is JSON --------------------------- */

bool vst__json_is_value(const char *text, size_t count);
/* Returns whether the text is at least one member, "key": value, "key": value,
 * … without braces. */
bool vst__json_is_members(const char *text, size_t count);

/* ---- json_read.c: parts of valid JSON ------------------------------------ */

/* A value as text; {NULL, 0} means no value, which has no parts. */
typedef struct vst__json_part {
    const char *at;
    size_t count;
} vst__json_part;

/* Returns the whole value, or no value if json is NULL or invalid. */
vst__json_part vst__json_whole(const char *json);
vst__json_part vst__json_member(vst__json_part object, const char *key);
/* Sets *item to the next item of a list; *at is NULL before the first. In an
 * object, keys and values alternate. */
bool vst__json_next(vst__json_part list, const char **at, vst__json_part *item);
/* Sets *key and *value to the next of the members that vst__json_is_members
 * accepts; before the first, *at is their beginning. */
bool vst__json_next_member(vst__json_part members, const char **at,
                           vst__json_part *key, vst__json_part *value);
/* Returns the value of a member, or no value if there is no such member. */
vst__json_part vst__json_find_member(vst__json_part members, const char *key);
bool vst__json_integer(vst__json_part part, int64_t *value);
/* Returns a string without its quotes, or no value if the part is no string. */
vst__json_part vst__json_inside(vst__json_part part);

#endif
