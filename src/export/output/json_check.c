/* Checks JSON that others made (metadata, arguments of spans) before it goes
 * into an export: one invalid value would make the whole file unreadable.
 * Builds nothing and does not recurse. Any thread. */
#include <stdlib.h>

#include "export/output/json.h"

enum { DEPTH_MAX = 512 };

typedef struct text {
    const unsigned char *at;
    const unsigned char *end;
} text;

static void skip_space(text *t)
{
    while (t->at != t->end && (*t->at == ' ' || *t->at == '\t' ||
                               *t->at == '\n' || *t->at == '\r'))
        t->at++;
}

static bool json_check_take(text *t, char c)
{
    if (t->at == t->end || *t->at != (unsigned char)c)
        return false;
    t->at++;
    return true;
}

static bool take_word(text *t, const char *word)
{
    size_t count = strlen(word);

    if ((size_t)(t->end - t->at) < count || memcmp(t->at, word, count) != 0)
        return false;
    t->at += count;
    return true;
}

static bool is_digit(const text *t)
{
    return t->at != t->end && *t->at >= '0' && *t->at <= '9';
}

static bool take_digits(text *t)
{
    if (!is_digit(t))
        return false;
    while (is_digit(t))
        t->at++;
    return true;
}

static bool take_number(text *t)
{
    json_check_take(t, '-');
    if (!json_check_take(t, '0') && !take_digits(t))
        return false;
    if (json_check_take(t, '.') && !take_digits(t))
        return false;
    if (json_check_take(t, 'e') || json_check_take(t, 'E')) {
        if (!json_check_take(t, '+'))
            json_check_take(t, '-');
        return take_digits(t);
    }
    return true;
}

static bool take_escape(text *t)
{
    if (t->at == t->end)
        return false;
    if (*t->at != 'u')
        return strchr("\"\\/bfnrt", *t->at) != NULL && *t->at++ != '\0';
    t->at++;
    for (int i = 0; i < 4; i++, t->at++)
        if (t->at == t->end || *t->at == '\0' ||
            strchr("0123456789abcdefABCDEF", *t->at) == NULL)
            return false;
    return true;
}

static bool take_string(text *t)
{
    if (!json_check_take(t, '"'))
        return false;
    while (t->at != t->end) {
        size_t count;

        if (json_check_take(t, '"'))
            return true;
        if (json_check_take(t, '\\')) {
            if (!take_escape(t))
                return false;
            continue;
        }
        count = *t->at >= 0x20 ? vst__json_utf8(t->at, t->end) : 0;
        if (count == 0)
            return false;
        t->at += count;
    }
    return false;
}

static bool take_key(text *t)
{
    skip_space(t);
    if (!take_string(t))
        return false;
    skip_space(t);
    return json_check_take(t, ':');
}

static bool take_scalar(text *t)
{
    if (t->at == t->end)
        return false;
    switch (*t->at) {
    case '"':
        return take_string(t);
    case 't':
        return take_word(t, "true");
    case 'f':
        return take_word(t, "false");
    case 'n':
        return take_word(t, "null");
    default:
        return take_number(t);
    }
}

/* Open brackets. */
typedef struct nesting {
    char closing[DEPTH_MAX];
    size_t depth;
} nesting;

/* Opens all brackets before the next scalar; an empty pair counts as a scalar.
 * Returns false if the text is not JSON. */
static bool take_item(text *t, nesting *open)
{
    for (;;) {
        bool object;

        skip_space(t);
        if (t->at == t->end || (*t->at != '{' && *t->at != '['))
            return take_scalar(t);
        object = *t->at++ == '{';
        skip_space(t);
        if (json_check_take(t, object ? '}' : ']'))
            return true;
        if (open->depth == DEPTH_MAX)
            return false;
        open->closing[open->depth++] = object ? '}' : ']';
        if (object && !take_key(t))
            return false;
    }
}

/* Checks a value, and closes brackets until `floor` are open. */
static bool take_value(text *t, nesting *open, size_t floor)
{
    for (;;) {
        if (!take_item(t, open))
            return false;
        skip_space(t);
        while (open->depth > floor &&
               json_check_take(t, open->closing[open->depth - 1])) {
            open->depth--;
            skip_space(t);
        }
        if (open->depth == floor)
            return true;
        if (!json_check_take(t, ','))
            return false;
        if (open->closing[open->depth - 1] == '}' && !take_key(t))
            return false;
    }
}

bool vst__json_is_value(const char *bytes, size_t count)
{
    text t = {(const unsigned char *)bytes,
              (const unsigned char *)bytes + count};
    nesting open;

    open.depth = 0;
    return take_value(&t, &open, 0) && t.at == t.end;
}

bool vst__json_is_members(const char *bytes, size_t count)
{
    text t = {(const unsigned char *)bytes,
              (const unsigned char *)bytes + count};
    nesting open;

    open.depth = 0;
    do {
        if (!take_key(&t) || !take_value(&t, &open, 0))
            return false;
    } while (json_check_take(&t, ','));
    return t.at == t.end;
}
