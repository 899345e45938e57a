/* Nodes of execution traces for tests: values as graph.h specifies them,
 * written byte by byte, and recorded with their operator. */
#ifndef VST_TESTS_NODE_BYTES_H
#define VST_TESTS_NODE_BYTES_H

#include <string.h>

#include <vestige/graph.h>
#include <vestige/session.h>

typedef struct node_bytes {
    unsigned char at[64 * 1024];
    size_t count;
} node_bytes;

static inline void put_byte(node_bytes *b, unsigned value)
{
    b->at[b->count++] = (unsigned char)value;
}

static inline void put_count(node_bytes *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_byte(b, (unsigned)(value & 0x7f) | 0x80);
    put_byte(b, (unsigned)value);
}

static inline void put_integer(node_bytes *b, int64_t value)
{
    put_count(b, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static inline void put_text(node_bytes *b, const char *text)
{
    put_count(b, strlen(text));
    memcpy(b->at + b->count, text, strlen(text));
    b->count += strlen(text);
}

static inline void put_double(node_bytes *b, double value)
{
    put_byte(b, VST_VALUE_DOUBLE);
    memcpy(b->at + b->count, &value, sizeof value);
    b->count += sizeof value;
}

static inline void put_number(node_bytes *b, int64_t value)
{
    put_byte(b, VST_VALUE_INTEGER);
    put_integer(b, value);
}

static inline void put_string(node_bytes *b, vst_value tag, const char *text)
{
    put_byte(b, tag);
    put_text(b, text);
}

static inline void put_list(node_bytes *b, vst_value tag, size_t items)
{
    put_byte(b, tag);
    put_count(b, items);
}

static inline void put_tensor_head(node_bytes *b, vst_value tag,
                                   uint64_t identity, uint64_t storage,
                                   int64_t elements)
{
    put_byte(b, tag);
    put_count(b, identity);
    put_count(b, storage);
    put_integer(b, 0);
    put_integer(b, elements);
    put_count(b, 4);
    put_text(b, "cpu");
    put_text(b, "float");
}

/* Writes a tensor with two dimensions. */
static inline void put_tensor(node_bytes *b, uint64_t identity,
                              uint64_t storage, int64_t rows, int64_t columns)
{
    put_tensor_head(b, VST_VALUE_TENSOR, identity, storage, rows * columns);
    put_count(b, 2);
    put_integer(b, rows);
    put_integer(b, columns);
    put_count(b, 2);
    put_integer(b, columns);
    put_integer(b, 1);
}

/* Records the bytes in as many escapes as needed, with `most` words in each. */
static inline void record_bytes(const node_bytes *b, uint64_t record,
                                unsigned flags, unsigned observer,
                                uint32_t most)
{
    size_t done = 0;

    do {
        uint64_t payload[VST_ESCAPE_WORDS_MAX] = {0};
        size_t room = (most - 1) * sizeof(uint64_t);
        size_t part = b->count - done < room ? b->count - done : room;

        memcpy(payload + 1, b->at + done, part);
        done += part;
        payload[0] = vst_node_word(
            record, flags | (done < b->count ? VST_NODE_MORE : 0u), observer);
        vst_record_node(payload, 1 + (uint32_t)((part + 7) / 8));
    } while (done < b->count);
}

static inline vst_id define(vst_definition_kind kind, const char *name)
{
    vst_definition definition = {.kind = kind,
                                 .name = name,
                                 .name_len = (uint32_t)strlen(name),
                                 .file = ""};

    return vst_recording_define(&definition);
}

/* Enters a node of thread 1 with these inputs; NULL: without inputs. */
static inline void enter_node(vst_id id, uint64_t record,
                              const node_bytes *inputs)
{
    static const node_bytes none;
    uint64_t words[2] = {UINT64_MAX,
                         vst_operator_word(1, 0, VST_SCOPE_FUNCTION)};

    vst_record_operator(id, 0, words, 2);
    record_bytes(inputs != NULL ? inputs : &none, record, 0, 1,
                 VST_ESCAPE_WORDS_MAX);
}

static inline void leave_node(vst_id id, uint64_t record,
                              const node_bytes *outputs)
{
    if (outputs != NULL)
        record_bytes(outputs, record, VST_NODE_OUTPUTS, 1,
                     VST_ESCAPE_WORDS_MAX);
    vst_record_operator_exit(VST_EXIT, id, 0);
}

#endif
