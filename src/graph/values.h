/* Reads the values of a node (see <vestige/graph.h>): turns the bytes of a
 * file, which may be damaged, into a list of values that can be trusted. One
 * thread at a time. */
#ifndef VST_GRAPH_VALUES_H
#define VST_GRAPH_VALUES_H

#include <vestige/graph.h>

typedef struct vst__graph_text {
    const char *at;
    size_t count;
} vst__graph_text;

/* A tensor. From `numbers` on, the list of numbers has the count of its
 * dimensions and as many dimensions, then the count of its strides and as many
 * strides; for a nested tensor, both lists for each row. */
typedef struct vst__graph_tensor {
    uint64_t identity, storage; /* as the file has them */
    uint64_t id,
        storage_id; /* ids that the reader gave to `identity` and `storage` */
    int64_t offset, elements;
    uint64_t element_size;
    vst__graph_text device, type;
    size_t numbers; /* index of its first number */
} vst__graph_tensor;

/* The items of a list or a tuple follow it. */
typedef struct vst__graph_value {
    vst_value tag;
    uint32_t items; /* LIST, TUPLE: number of items; NESTED: number of rows */
    union {
        int64_t integer;
        double number;
        bool truth;
        vst__graph_text text;
        vst__graph_tensor tensor;
    };
} vst__graph_value;

/* Must be all zero before the first use; texts point into the bytes that were
 * read. */
typedef struct vst__graph_values {
    vst__graph_value *items;
    size_t count, capacity;
    int64_t *numbers;
    size_t number_count, number_capacity;
    size_t top; /* number of values that are in no list */
    vst_id schema;
    uint64_t thread; /* 0 if unknown */
    vst__graph_text backend, file, range;
    bool cut; /* values were left out because they could not be read */
} vst__graph_values;

/* Limits: depth of lists within lists, and values of one node. The rest is
 * cut. */
#define VST_GRAPH_DEPTH_MAX 64
#define VST_GRAPH_VALUES_MAX ((size_t)1 << 17)

vst_status vst__graph_values_read(vst__graph_values *values,
                                  const unsigned char *bytes, size_t count);
void vst__graph_values_free(vst__graph_values *values);

#endif
