/* See proto.h: messages in memory. Any thread. */
#include "export/output/proto.h"

#include <stdlib.h>

#include "base/escape.h"
#include "base/grow.h"

static char *proto_make_room(vst__proto *proto, size_t count)
{
    if (!VST_RESERVE(proto->bytes, proto->count + count, proto->capacity)) {
        proto->failed = true;
        return NULL;
    }
    return proto->bytes + proto->count;
}

void vst__proto_free(vst__proto *proto)
{
    free(proto->bytes);
    *proto = (vst__proto){.bytes = NULL};
}

void vst__proto_clear(vst__proto *proto)
{
    proto->count = 0;
}

static void put_key(vst__proto *proto, uint32_t field, uint32_t type)
{
    char *at = proto_make_room(proto, VST_PROTO_VARINT_MAX);

    if (at != NULL)
        proto->count =
            (size_t)(vst__proto_varint(at, field << 3 | type) - proto->bytes);
}

static void put_varint(vst__proto *proto, uint64_t value)
{
    char *at = proto_make_room(proto, VST_PROTO_VARINT_MAX);

    if (at != NULL)
        proto->count = (size_t)(vst__proto_varint(at, value) - proto->bytes);
}

void vst__proto_u64(vst__proto *proto, uint32_t field, uint64_t value)
{
    put_key(proto, field, VST_PROTO_VARINT);
    put_varint(proto, value);
}

void vst__proto_fixed64(vst__proto *proto, uint32_t field, uint64_t value)
{
    unsigned char bytes[8];

    for (size_t i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    put_key(proto, field, VST_PROTO_FIXED64);
    vst__proto_raw(proto, bytes, sizeof bytes);
}

void vst__proto_double(vst__proto *proto, uint32_t field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    vst__proto_fixed64(proto, field, bits);
}

void vst__proto_bytes(vst__proto *proto, uint32_t field, const void *bytes,
                      size_t count)
{
    put_key(proto, field, VST_PROTO_BYTES);
    put_varint(proto, count);
    vst__proto_raw(proto, bytes, count);
}

/* Leaves one byte for the length, which is enough for most messages. */
size_t vst__proto_open(vst__proto *proto, uint32_t field)
{
    put_key(proto, field, VST_PROTO_BYTES);
    return proto->count;
}

void vst__proto_close(vst__proto *proto, size_t opened)
{
    char length[VST_PROTO_VARINT_MAX];
    size_t content = proto->count - opened;
    size_t count = (size_t)(vst__proto_varint(length, content) - length);

    if (proto_make_room(proto, count) == NULL || proto->failed)
        return;
    memmove(proto->bytes + opened + count, proto->bytes + opened, content);
    memcpy(proto->bytes + opened, length, count);
    proto->count += count;
}

void vst__proto_raw(vst__proto *proto, const void *bytes, size_t count)
{
    char *at = proto_make_room(proto, count);

    if (at == NULL || count == 0)
        return;
    memcpy(at, bytes, count);
    proto->count += count;
}

void vst__proto_raw_utf8(vst__proto *proto, const char *bytes, size_t count)
{
    const unsigned char *at = (const unsigned char *)bytes;
    const unsigned char *end = at + count;

    while (at != end) {
        const unsigned char *from = at;
        size_t length = 1;

        while (at != end && (length = vst__json_utf8(at, end)) != 0)
            at += length;
        vst__proto_raw(proto, from, (size_t)(at - from));
        if (at != end) {
            vst__proto_raw(proto, "\xef\xbf\xbd", 3);
            at++;
        }
    }
}

/* ---- JSON strings -------------------------------------------------------- */

static uint32_t hex_of(const char *at)
{
    uint32_t value = 0;

    for (size_t i = 0; i < 4; i++) {
        uint32_t c = (unsigned char)at[i];
        value = value << 4 | (c <= '9' ? c - '0' : (c & 7u) + 9);
    }
    return value;
}

static void put_character(vst__proto *proto, uint32_t c)
{
    unsigned char bytes[4];
    size_t count;

    if (c >= 0xd800 && c <= 0xdfff)
        c = 0xfffd; /* half of a surrogate pair */
    if (c < 0x80) {
        bytes[0] = (unsigned char)c;
        count = 1;
    } else if (c < 0x800) {
        bytes[0] = (unsigned char)(0xc0 | c >> 6);
        count = 2;
    } else if (c < 0x10000) {
        bytes[0] = (unsigned char)(0xe0 | c >> 12);
        count = 3;
    } else {
        bytes[0] = (unsigned char)(0xf0 | c >> 18);
        count = 4;
    }
    for (size_t i = 1; i < count; i++)
        bytes[i] = (unsigned char)(0x80 | ((c >> 6 * (count - 1 - i)) & 0x3f));
    vst__proto_raw(proto, bytes, count);
}

/* Puts the character of the escape at `at`, and returns the place behind. */
static const char *put_escape(vst__proto *proto, const char *at,
                              const char *end)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *found;
    uint32_t c, low;

    if (at[1] != 'u' || end - at < 6) {
        found = strchr(from, at[1]);
        vst__proto_raw(proto, found != NULL ? &to[found - from] : &at[1], 1);
        return at + 2;
    }
    c = hex_of(at + 2);
    at += 6;
    if (c >> 10 == 0xd800 >> 10 && end - at >= 6 && at[0] == '\\' &&
        at[1] == 'u' && (low = hex_of(at + 2)) >> 10 == 0xdc00 >> 10) {
        c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
        at += 6;
    }
    put_character(proto, c);
    return at;
}

void vst__proto_raw_json(vst__proto *proto, const char *bytes, size_t count)
{
    const char *end = bytes + count;

    while (bytes != end) {
        const char *stop = memchr(bytes, '\\', (size_t)(end - bytes));

        if (stop == NULL || stop + 1 == end)
            stop = end;
        vst__proto_raw(proto, bytes, (size_t)(stop - bytes));
        bytes = stop != end ? put_escape(proto, stop, end) : end;
    }
}

void vst__proto_utf8(vst__proto *proto, uint32_t field, const char *bytes,
                     size_t count)
{
    size_t opened = vst__proto_open(proto, field);

    vst__proto_raw_utf8(proto, bytes, count);
    vst__proto_close(proto, opened);
}

vst_status vst__proto_write(vst__proto *proto, uint32_t field,
                            vst__output *output)
{
    char head[2 * VST_PROTO_VARINT_MAX];
    char *at = vst__proto_varint(head, field << 3 | VST_PROTO_BYTES);

    if (proto->failed)
        return VST_E_NOMEM;
    at = vst__proto_varint(at, proto->count);
    vst__output_write(output, head, (size_t)(at - head));
    vst__output_write(output, proto->bytes, proto->count);
    proto->count = 0;
    return output->status;
}
