/* The values of a node (see <vestige/graph.h>), read: turns the bytes of a
 * file, which may be damaged, into a list of values that can be trusted. One
 * thread at a time. */
#ifndef VST_GRAPH_VALUES_H
#define VST_GRAPH_VALUES_H

#include <vestige/graph.h>

typedef struct vst__graph_text {
    const char *at;
    size_t count;
} vst__graph_text;

/* A tensor. Its dimensions and strides are among the numbers: a count and so
 * many, twice; of a nested one, so for each row. */
typedef struct vst__graph_tensor {
    uint64_t identity, storage; /* what the file has */
    uint64_t id, storage_id;    /* the ids that the reader gave to these */
    int64_t offset, elements;
    uint64_t element_size;
    vst__graph_text device, type;
    size_t numbers; /* index of its first one */
} vst__graph_tensor;

/* Those inside a list or a tuple follow it. */
typedef struct vst__graph_value {
    vst_value tag;
    uint32_t items; /* LIST, TUPLE: how many are in it; NESTED: rows */
    union {
        int64_t integer;
        double number;
        bool truth;
        vst__graph_text text;
        vst__graph_tensor tensor;
    };
} vst__graph_value;

/* All zero before the first time; texts are in the bytes that were read. */
typedef struct vst__graph_values {
    vst__graph_value *items;
    size_t count, capacity;
    int64_t *numbers;
    size_t number_count, number_capacity;
    size_t top; /* how many are in no list */
    vst_id schema;
    uint64_t thread; /* 0: not told */
    vst__graph_text backend, file, range;
    bool cut; /* not all of it could be read */
} vst__graph_values;

/* Lists within lists, and values of one node: what is more is cut. */
#define VST_GRAPH_DEPTH_MAX 64
#define VST_GRAPH_VALUES_MAX ((size_t)1 << 17)

vst_status vst__graph_values_read(vst__graph_values *values,
                                  const unsigned char *bytes, size_t count);
void vst__graph_values_free(vst__graph_values *values);

#endif
