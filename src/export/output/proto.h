/* Protocol buffers by hand: messages of any length in memory, and the few
 * numbers that an event is made of straight into an output. Knows the wire
 * format, no message. Running out of memory is remembered in `failed`. Any
 * thread. */
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

/* A message that is being made. All zero is an empty one. */
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

/* A message within: what is put between the two is its content. They nest. */
size_t vst__proto_open(vst__proto *proto, uint32_t field);
void vst__proto_close(vst__proto *proto, size_t opened);

/* Plain bytes within a message, of which the caller knows what they mean: part
 * of a string, say. */
void vst__proto_raw(vst__proto *proto, const void *bytes, size_t count);
/* The same for text that others made: what is not UTF-8 becomes U+FFFD. */
void vst__proto_raw_utf8(vst__proto *proto, const char *bytes, size_t count);
/* A whole field of such text. */
void vst__proto_utf8(vst__proto *proto, uint32_t field, const char *bytes,
                     size_t count);
/* Plain bytes once more: the inside of a JSON string, without its escapes. */
void vst__proto_raw_json(vst__proto *proto, const char *bytes, size_t count);

/* Writes the message as a field of the document, and clears it. */
vst_status vst__proto_write(vst__proto *proto, uint32_t field,
                            vst__output *output);

#endif
