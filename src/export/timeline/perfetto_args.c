/* Arguments of events in Perfetto's own format. JSON arguments become typed
 * values. One thread at a time. */
#include <locale.h>
#include <stdlib.h>

#include "export/timeline/perfetto_packets.h"

enum {
    /* nesting of arguments; deeper values are written as text */
    DEPTH_MAX = 32,

    ANNOTATION_NAME_IID = 1,
    ANNOTATION_BOOL = 2,
    ANNOTATION_UINT = 3,
    ANNOTATION_INT = 4,
    ANNOTATION_DOUBLE = 5,
    ANNOTATION_STRING = 6,
    ANNOTATION_NAME = 10,
    ANNOTATION_DICT = 11,
    ANNOTATION_ARRAY = 12
};

static void put_key(vst__pf *self, uint32_t number, const char *key,
                    size_t count)
{
    uint32_t iid = vst__pf_number_key(self, number, key, count);

    if (iid != 0)
        vst__proto_u64(&self->event, ANNOTATION_NAME_IID, iid);
    else
        vst__proto_bytes(&self->event, ANNOTATION_NAME, key, count);
}

/* Writes a number as an integer if possible, else as a double. */
static void args_put_number(vst__proto *event, vst__json_part part)
{
    int64_t whole;
    char digits[64];

    if (vst__json_integer(part, &whole)) {
        vst__proto_i64(event, ANNOTATION_INT, whole);
    } else if (part.count < sizeof digits) {
        memcpy(digits, part.at, part.count);
        digits[part.count] = '\0';
        /* JSON's decimal point may differ from the locale's. */
        if (strchr(digits, '.') != NULL)
            *strchr(digits, '.') = *localeconv()->decimal_point;
        vst__proto_double(event, ANNOTATION_DOUBLE, strtod(digits, NULL));
    } else {
        vst__proto_bytes(event, ANNOTATION_STRING, part.at, part.count);
    }
}

static void put_scalar(vst__proto *event, vst__json_part part)
{
    if (*part.at == '"') {
        vst__json_part inside = vst__json_inside(part);
        size_t opened = vst__proto_open(event, ANNOTATION_STRING);

        vst__proto_raw_json(event, inside.at, inside.count);
        vst__proto_close(event, opened);
    } else if (*part.at == 't' || *part.at == 'f') {
        vst__proto_u64(event, ANNOTATION_BOOL, *part.at == 't');
    } else if (*part.at == 'n') {
        vst__proto_text(event, ANNOTATION_STRING, "null");
    } else {
        args_put_number(event, part);
    }
}

/* A list or an object that is being written. */
typedef struct nested {
    vst__json_part part;
    const char *at;
    size_t opened; /* the open message of this list or object */
} nested;

/* Writes a key of an object, without its escapes. */
static void put_json_key(vst__pf *self, uint32_t number, vst__json_part key)
{
    vst__json_part inside = vst__json_inside(key);

    vst__proto_clear(&self->text);
    vst__proto_raw_json(&self->text, inside.at, inside.count);
    put_key(self, number, self->text.bytes != NULL ? self->text.bytes : "",
            self->text.count);
}

/* Writes the value of an open annotation: a scalar, or a list or object with
 * everything inside. */
static void args_put_value(vst__pf *self, uint32_t number, vst__json_part value)
{
    vst__proto *event = &self->event;
    nested levels[DEPTH_MAX];
    size_t depth = 0;

    for (;;) {
        nested *top;
        bool is_object;

        if (value.count != 0 && (*value.at == '{' || *value.at == '[') &&
            depth < DEPTH_MAX)
            levels[depth++] = (nested){value, NULL, 0};
        else if (value.count != 0 && (*value.at == '{' || *value.at == '['))
            vst__proto_bytes(event, ANNOTATION_STRING, value.at, value.count);
        else if (value.count != 0)
            put_scalar(event, value);
        for (;;) { /* go to the next value, if there is one */
            if (depth == 0)
                return;
            top = &levels[depth - 1];
            is_object = *top->part.at == '{';
            if (top->opened != 0)
                vst__proto_close(event, top->opened);
            top->opened = 0;
            if (vst__json_next(top->part, &top->at, &value))
                break;
            depth--;
        }
        top->opened = vst__proto_open(event, is_object ? ANNOTATION_DICT
                                                       : ANNOTATION_ARRAY);
        if (is_object) {
            put_json_key(self, number, value);
            if (!vst__json_next(top->part, &top->at, &value))
                value = (vst__json_part){NULL, 0};
        }
    }
}

static size_t open_arg(vst__pf *self, uint32_t number, const char *key,
                       size_t count)
{
    size_t opened =
        vst__proto_open(&self->event, VST_PF_EVENT_DEBUG_ANNOTATIONS);

    put_key(self, number, key, count);
    return opened;
}

static void args_put_text(vst__pf *self, uint32_t number, const char *key,
                          const char *text, size_t count)
{
    size_t opened = open_arg(self, number, key, strlen(key));

    vst__proto_utf8(&self->event, ANNOTATION_STRING, text, count);
    vst__proto_close(&self->event, opened);
}

static void put_members(vst__pf *self, uint32_t number, const char *json,
                        size_t count)
{
    vst__json_part members = {json, count}, key, value;
    const char *at = json;

    if (!vst__json_is_members(json, count)) {
        args_put_text(self, number, "args", json, count);
        return;
    }
    while (vst__json_next_member(members, &at, &key, &value)) {
        size_t opened =
            vst__proto_open(&self->event, VST_PF_EVENT_DEBUG_ANNOTATIONS);

        put_json_key(self, number, key);
        args_put_value(self, number, value);
        vst__proto_close(&self->event, opened);
    }
}

/* Writes an argument. Times are nanoseconds, and their keys say so. */
static void put_arg(vst__pf *self, uint32_t number, const vst__arg *arg)
{
    vst__proto *event = &self->event;
    const vst__key *key = arg->key;
    char timed[sizeof key->text + 4];
    size_t opened;

    if (arg->type == VST_ARG_TIME || arg->type == VST_ARG_DURATION) {
        memcpy(timed, key->text, key->count);
        memcpy(timed + key->count, "_ns", 3);
        opened = open_arg(self, number, timed, key->count + 3u);
    } else {
        opened = open_arg(self, number, key->text, key->count);
    }
    switch (arg->type) {
    case VST_ARG_U64:
        vst__proto_u64(event, ANNOTATION_UINT, arg->u64);
        break;
    case VST_ARG_I64:
    case VST_ARG_TIME:
    case VST_ARG_DURATION:
        vst__proto_i64(event, ANNOTATION_INT, arg->i64);
        break;
    case VST_ARG_DOUBLE:
        vst__proto_double(event, ANNOTATION_DOUBLE, arg->number);
        break;
    case VST_ARG_TEXT:
    case VST_ARG_WORD:
        vst__proto_utf8(event, ANNOTATION_STRING, arg->text.at,
                        arg->text.count);
        break;
    case VST_ARG_NONE:
        vst__proto_text(event, ANNOTATION_STRING, "null");
        break;
    }
    vst__proto_close(event, opened);
}

void vst__pf_put_args(vst__pf *self, uint32_t number, const vst__arg_list *args)
{
    for (size_t i = 0; i < args->count; i++)
        put_arg(self, number, &args->items[i]);
    if (args->json_len != 0)
        put_members(self, number, args->json, args->json_len);
}

void vst__pf_put_json(vst__pf *self, uint32_t number, const char *key,
                      const char *json)
{
    vst__json_part value = vst__json_whole(json);
    size_t opened;

    if (value.count == 0) {
        args_put_text(self, number, key, json, strlen(json));
        return;
    }
    opened = open_arg(self, number, key, strlen(key));
    args_put_value(self, number, value);
    vst__proto_close(&self->event, opened);
}
