/* Reads single facts from JSON that json_check.c has accepted: a member of an
 * object, the items of a list, an integer. Strings keep their escapes. Builds
 * nothing and does not recurse. Any thread. */
#include "export/output/json.h"

static const char *skip_space(const char *at, const char *end)
{
    while (at != end &&
           (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

/* Returns the place behind the string that begins at `at`. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at < end ? at + 1 : end;
}

/* Returns the place behind the value that begins at `at`. */
static const char *skip_value(const char *at, const char *end)
{
    size_t depth = 0;

    while (at != end) {
        if (*at == '"') {
            at = skip_string(at, end);
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (depth != 0 && (*at == '}' || *at == ']')) {
            depth--;
            at++;
        } else if (depth != 0) {
            at++;
        } else { /* a number, true, false or null */
            while (at != end && strchr(",]} \t\n\r", *at) == NULL)
                at++;
            return at;
        }
        if (depth == 0)
            return at;
    }
    return end;
}

vst__json_part vst__json_whole(const char *json)
{
    const char *at, *end;

    if (json == NULL || !vst__json_is_value(json, strlen(json)))
        return (vst__json_part){NULL, 0};
    end = json + strlen(json);
    at = skip_space(json, end);
    return (vst__json_part){at, (size_t)(skip_value(at, end) - at)};
}

bool vst__json_next(vst__json_part list, const char **at, vst__json_part *item)
{
    const char *end, *from;

    if (list.count == 0 || (*list.at != '[' && *list.at != '{'))
        return false;
    end = list.at + list.count;
    from = skip_space(*at != NULL ? *at : list.at + 1, end);
    while (from != end && (*from == ',' || *from == ':'))
        from = skip_space(from + 1, end);
    if (from == end || *from == ']' || *from == '}')
        return false;
    *at = skip_value(from, end);
    *item = (vst__json_part){from, (size_t)(*at - from)};
    return true;
}

bool vst__json_next_member(vst__json_part members, const char **at,
                           vst__json_part *key, vst__json_part *value)
{
    const char *end = members.at + members.count;
    const char *from = skip_space(*at, end);

    if (from != end && *from == ',')
        from = skip_space(from + 1, end);
    if (from == end)
        return false;
    *at = skip_string(from, end);
    *key = (vst__json_part){from, (size_t)(*at - from)};
    from = skip_space(*at, end);
    if (from != end)
        from = skip_space(from + 1, end); /* from behind the colon */
    *at = skip_value(from, end);
    *value = (vst__json_part){from, (size_t)(*at - from)};
    return true;
}

vst__json_part vst__json_member(vst__json_part object, const char *key)
{
    vst__json_part name, value = {NULL, 0};
    const char *at = NULL;
    size_t count = strlen(key);

    if (object.count == 0 || *object.at != '{')
        return value;
    while (vst__json_next(object, &at, &name) &&
           vst__json_next(object, &at, &value))
        if (name.count == count + 2 && memcmp(name.at + 1, key, count) == 0)
            return value;
    return (vst__json_part){NULL, 0};
}

vst__json_part vst__json_find_member(vst__json_part members, const char *key)
{
    const char *at = members.at;
    size_t count = strlen(key);
    vst__json_part name, value;

    while (members.count != 0 &&
           vst__json_next_member(members, &at, &name, &value))
        if (name.count == count + 2 && memcmp(name.at + 1, key, count) == 0)
            return value;
    return (vst__json_part){NULL, 0};
}

bool vst__json_integer(vst__json_part part, int64_t *value)
{
    bool negative = part.count != 0 && *part.at == '-';
    uint64_t sum = 0;

    if (part.count == (size_t)negative)
        return false;
    for (size_t i = negative; i < part.count; i++) {
        unsigned digit = (unsigned)(unsigned char)part.at[i] - '0';

        if (digit > 9 || sum > ((uint64_t)INT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = negative ? -(int64_t)sum : (int64_t)sum;
    return true;
}

vst__json_part vst__json_inside(vst__json_part part)
{
    if (part.count < 2 || *part.at != '"')
        return (vst__json_part){NULL, 0};
    return (vst__json_part){part.at + 1, part.count - 2};
}
