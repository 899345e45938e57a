/* Writing protocol buffers by hand: messages of any length in memory, and the
 * few numbers of an event straight into an output. This file knows the wire
 * format, but no message. If memory runs out, `failed` says so. Any thread. */
#ifndef VST_EXPORT_PROTO_H
#define VST_EXPORT_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "export/output/output.h"

enum {
    VST_PROTO_VARINT = 0,
    VST_PROTO_FIXED64 = 1,
    VST_PROTO_BYTES = 2,
    VST_PROTO_VARINT_MAX = 10 /* bytes */
};

static inline char *vst__proto_varint(char *at, uint64_t value)
{
    while (value > 127) {
        *at++ = (char)(value | 128);
        value >>= 7;
    }
    *at++ = (char)value;
    return at;
}

/* A message under construction, empty when all zero. */
typedef struct vst__proto {
    char *bytes;
    size_t count, capacity;
    bool failed;
} vst__proto;

void vst__proto_free(vst__proto *proto);
void vst__proto_clear(vst__proto *proto);

void vst__proto_u64(vst__proto *proto, uint32_t field, uint64_t value);
static inline void vst__proto_i64(vst__proto *proto, uint32_t field,
                                  int64_t value)
{
    vst__proto_u64(proto, field, (uint64_t)value);
}
void vst__proto_fixed64(vst__proto *proto, uint32_t field, uint64_t value);
void vst__proto_double(vst__proto *proto, uint32_t field, double value);
void vst__proto_bytes(vst__proto *proto, uint32_t field, const void *bytes,
                      size_t count);
static inline void vst__proto_text(vst__proto *proto, uint32_t field,
                                   const char *text)
{
    vst__proto_bytes(proto, field, text, strlen(text));
}

/* Open and close a nested message: everything put between the calls is its
 * content. Nested messages may be nested again. */
size_t vst__proto_open(vst__proto *proto, uint32_t field);
void vst__proto_close(vst__proto *proto, size_t opened);

/* Puts plain bytes, which are part of a field that the caller has begun. */
void vst__proto_raw(vst__proto *proto, const void *bytes, size_t count);
/* Puts text that others made; replaces invalid UTF-8 by U+FFFD. */
void vst__proto_raw_utf8(vst__proto *proto, const char *bytes, size_t count);
/* Puts a whole field of text that others made. */
void vst__proto_utf8(vst__proto *proto, uint32_t field, const char *bytes,
                     size_t count);
/* Puts the content of a JSON string, without its escapes. */
void vst__proto_raw_json(vst__proto *proto, const char *bytes, size_t count);

/* Writes the message as a field of the document, and empties it. */
vst_status vst__proto_write(vst__proto *proto, uint32_t field,
                            vst__output *output);

#endif
