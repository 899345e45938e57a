/* JSON text by hand, because an export is mostly this: numbers and strings
 * written straight into memory. Functions take where to write and return where
 * they stopped; the caller has made sure of the room. Any thread. */
#ifndef VST_EXPORT_JSON_H
#define VST_EXPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/escape.h"
#include "export/output/output.h"

enum { VST_JSON_NUMBER_MAX = 32 }; /* bytes that writing any number may touch */

/* "00" "01" … "99" */
extern const char vst__json_pairs[201];

#define VST_JSON_EIGHT 100000000u /* the least number of nine digits */
#define VST_JSON_RARELY(x) __builtin_expect(!!(x), 0)

/* The eight digits of a number below VST_JSON_EIGHT, a byte each and the first
 * in the lowest: halves of four digits, then of two, then of one, all parts of
 * a size at once by multiplying with a fraction's inverse. */
static inline uint64_t vst__json_eight(uint32_t value)
{
    uint64_t parts = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t high = parts * 10486 >> 20 & UINT64_C(0x7f0000007f);

    parts = high | (parts - high * 100) << 16;
    high = parts * 103 >> 10 & UINT64_C(0x000f000f000f000f);
    return high | (parts - high * 10) << 8;
}

/* Digits as text, from the lowest byte on. */
static inline void vst__json_store(char *at, uint64_t digits)
{
    digits |= UINT64_C(0x3030303030303030);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    digits = __builtin_bswap64(digits);
#endif
    memcpy(at, &digits, sizeof digits);
}

char *vst__json_u64_long(char *at, uint64_t value); /* of nine digits or more */

/* May write up to 20 bytes, those of the longest integer, whatever it returns:
 * what is behind the number is overwritten by whatever comes next. */
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

/* Microseconds with three decimals, of eight digits of nanoseconds of which
 * `zeros` are left out in front: not more than four. */
static inline char *vst__json_point(char *at, uint64_t digits, unsigned zeros)
{
    vst__json_store(at, digits >> 8 * zeros);
    at += 5 - zeros;
    at[0] = '.';
    vst__json_store(at + 1, digits >> 40);
    return at + 4;
}

/* Nanoseconds as microseconds with exactly three decimals. */
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

/* A number, or the string "NaN", "Infinity", "-Infinity". */
char *vst__json_double(char *at, double value);

/* The same, into an output that makes the room. */
void vst__json_put_u64(vst__output *output, uint64_t value);
void vst__json_put_i64(vst__output *output, int64_t value);
void vst__json_put_us(vst__output *output, int64_t ns);
void vst__json_put_double(vst__output *output, double value);

/* A whole string with its quotes, of any length. */
void vst__json_string(vst__output *output, const char *bytes, size_t count);

/* ---- json_check.c: is text that others made JSON? ------------------------ */

bool vst__json_is_value(const char *text, size_t count);
/* "key": value, "key": value, … without the braces, at least one. */
bool vst__json_is_members(const char *text, size_t count);

/* ---- json_read.c: parts of what is JSON ---------------------------------- */

/* A value as it is written; {NULL, 0} is none, and has no parts. */
typedef struct vst__json_part {
    const char *at;
    size_t count;
} vst__json_part;

/* json may be NULL; what is no JSON is none. */
vst__json_part vst__json_whole(const char *json);
vst__json_part vst__json_member(vst__json_part object, const char *key);
/* One item of a list after the other; *at is NULL before the first. Of an
 * object, keys and values in turn. */
bool vst__json_next(vst__json_part list, const char **at, vst__json_part *item);
/* One of the members that vst__json_is_members knows after the other; *at is
 * where they begin before the first. */
bool vst__json_next_member(vst__json_part members, const char **at,
                           vst__json_part *key, vst__json_part *value);
/* The value of one of them; none if there is no such member. */
vst__json_part vst__json_find_member(vst__json_part members, const char *key);
bool vst__json_integer(vst__json_part part, int64_t *value);
/* A string without its quotes; none if it is no string. */
vst__json_part vst__json_inside(vst__json_part part);

#endif
