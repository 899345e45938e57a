/* The execution trace: the inputs and outputs of operators, as nodes of a graph
 * whose ids match the timeline's. This header specifies what is recorded of a
 * node (VST_ESCAPE_NODE) in addition to its enter, its exit and its numbers
 * (operator.h). The reader gives out the ids of nodes, tensors and storages. */
#ifndef VESTIGE_GRAPH_H
#define VESTIGE_GRAPH_H

#include "operator.h"
#include "trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An operator that is a node has one or more of these escapes behind its
 * VST_ESCAPE_OPERATOR, with its inputs, and one or more before its exit, with
 * its outputs, if it has any. An operator that was open already when an
 * observer began has no such escapes and is no node. An annotation has these
 * escapes too, without a VST_ESCAPE_OPERATOR before them.
 *
 *   word 0      bits  0-47  the framework's number of the call: "rf_id" in
 *                           the execution trace, "Record function id" on the
 *                           timeline; never 0
 *               bits 48-55  flags, below
 *               bits 56-63  number of the observer in the recording, 1 ...
 *   words 1...  bytes: values, one after the other, each a tag and the data
 *               that the tag announces; padded with VST_VALUE_END
 *
 * Values that need more than VST_ESCAPE_WORDS_MAX words continue in the next
 * such escape, wherever the bytes were cut. operator.h specifies counts,
 * integers, text and doubles. */
enum {
    VST_NODE_OUTPUTS = 1, /* values that the node returned, not its inputs */
    VST_NODE_MORE = 2,    /* the bytes go on in the next escape of this span */
    VST_NODE_CUT = 4 /* values were left out because they could not be stored */
};

typedef enum vst_value {
    VST_VALUE_END = 0,
    VST_VALUE_NONE = 1,
    VST_VALUE_INTEGER = 2,
    VST_VALUE_DOUBLE = 3,
    VST_VALUE_BOOL = 4,   /* a byte */
    VST_VALUE_STRING = 5, /* text */
    VST_VALUE_DEVICE = 6, /* text: "cpu", "cuda:0" */
    /* count: the tensor's identity (an address); count: its storage's, 0: it
     * has none; integers: offset, elements; count: bytes of an element; text:
     * device; text: type of the elements; count: dimensions, so many integers;
     * count: strides, so many integers */
    VST_VALUE_TENSOR = 7,
    VST_VALUE_TENSOR_UNDEFINED = 8,
    /* A tensor made of others: the data of TENSOR up to its type; then count
     * and so many (count: dimensions, integers; count: strides, integers) */
    VST_VALUE_TENSOR_NESTED = 9,
    VST_VALUE_LIST = 10,  /* count, then so many values */
    VST_VALUE_TUPLE = 11, /* count, then so many values */
    VST_VALUE_OTHER = 12, /* text: the name of its type */
    /* Facts about the node itself; they may stand before or after its values.
     */
    VST_VALUE_SCHEMA = 32,  /* count: id of a definition, whose name it is */
    VST_VALUE_BACKEND = 33, /* text: kernel_backend */
    VST_VALUE_FILE = 34,    /* text: kernel_file */
    VST_VALUE_RANGE = 35,   /* text: tensor_range */
    /* count: the framework's number of the thread, for a node without
     * VST_ESCAPE_OPERATOR: a scope of the user's (VST_SCOPE_USER) */
    VST_VALUE_THREAD = 36
} vst_value;

static inline uint64_t vst_node_word(uint64_t record, unsigned flags,
                                     unsigned observer)
{
    return (record & UINT64_C(0xffffffffffff)) | (uint64_t)flags << 48 |
           (uint64_t)observer << 56;
}

/* Parts of word 0. */
static inline uint64_t vst_node_record(uint64_t word)
{
    return word & UINT64_C(0xffffffffffff);
}

static inline unsigned vst_node_flags(uint64_t word)
{
    return (unsigned)(word >> 48 & 0xffu);
}

static inline unsigned vst_node_observer(uint64_t word)
{
    return (unsigned)(word >> 56);
}

/* Records a payload (specified above) for the span that the calling thread has
 * just entered or is about to leave. Does nothing without a recording. Any
 * thread. */
VST_API void vst_record_node(const uint64_t *payload, uint32_t words);

#ifdef __cplusplus
}
#endif
#endif
