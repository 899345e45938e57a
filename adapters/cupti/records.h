/* CUPTI's records in a buffer, in declarations of our own. From CUDA 12.0 to
 * 13.4, NVIDIA has only ever added members at the end of a record. So each
 * record is declared once, with the members that we read of the newest version;
 * the loaded library's size of a record says which of these members exist
 * (cupti_measure_records). tests/clients/test_cupti.py and proofs/cupti.py
 * compare sizes and offsets with NVIDIA's headers. */
#ifndef VST_CUPTI_RECORDS_H
#define VST_CUPTI_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

/* CUpti_ActivityKind */
enum {
    CUPTI_MEMCPY = 1,
    CUPTI_MEMSET = 2,
    CUPTI_DRIVER = 4,
    CUPTI_RUNTIME = 5,
    CUPTI_DEVICE = 8,
    CUPTI_CONTEXT = 9,
    CUPTI_KERNEL = 10, /* CONCURRENT_KERNEL */
    CUPTI_OVERHEAD = 17,
    CUPTI_MEMCPY_PEER = 22, /* MEMCPY2 */
    CUPTI_EVENT = 36,
    CUPTI_SYNC = 38,
    CUPTI_EXTERNAL = 39,
    CUPTI_KINDS = 40
};

/* Stands for a stream or an event that a record does not have. */
#define CUPTI_NONE UINT32_MAX

typedef struct cupti_kernel {
    int32_t kind;
    uint8_t cache, shared_config;
    uint16_t registers;
    int32_t cache_requested, cache_executed;
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local_a_thread, local_total;
    uint32_t correlation;
    int64_t grid_id;
    const char *name;
    void *reserved;
    uint64_t queued, submitted;
    uint8_t launch, carveout_is_requested, carveout, padding;
    uint32_t shared_executed;
    uint64_t graph_node;
    int32_t shared_limit;
    uint32_t graph;
    void *access_policy;
    uint32_t channel;
    int32_t channel_type;
    uint32_t cluster[3], cluster_policy;
    uint64_t local_total_wide;
    uint32_t clusters_potential, clusters_active;
    /* Fields since CUPTI 13.0: */
    uint8_t is_launched_by_device, padding_13_0[7];
    /* Fields since CUPTI 13.1: */
    int32_t priority;
    uint32_t padding_13_1;
} cupti_kernel;

typedef struct cupti_memcpy {
    int32_t kind;
    uint8_t copy_kind, from_kind, to_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation, runtime_correlation, padding;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph, channel;
    int32_t channel_type;
} cupti_memcpy;

/* A copy between devices. */
typedef struct cupti_memcpy_peer {
    int32_t kind;
    uint8_t copy_kind, from_kind, to_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t from_device, from_context, to_device, to_context, correlation;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph, channel;
    int32_t channel_type;
} cupti_memcpy_peer;

typedef struct cupti_memset {
    int32_t kind;
    uint32_t value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint16_t flags, memory_kind;
    uint32_t padding;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph, channel;
    int32_t channel_type;
} cupti_memset;

/* A call of the runtime or the driver. */
typedef struct cupti_call {
    int32_t kind;
    uint32_t callback;
    uint64_t start, end;
    uint32_t process, thread, correlation, result;
} cupti_call;

typedef struct cupti_sync {
    int32_t kind, type;
    uint64_t start, end;
    uint32_t correlation, context, stream, event;
} cupti_sync;

/* An event that was recorded on a stream. */
typedef struct cupti_event {
    int32_t kind;
    uint32_t correlation, context, stream, event;
} cupti_event;

typedef struct cupti_overhead {
    int32_t kind, overhead_kind, object_kind;
    uint32_t object[3];
    uint64_t start, end;
} cupti_overhead;

typedef struct cupti_external {
    int32_t kind, external_kind;
    uint64_t external;
    uint32_t correlation;
} cupti_external;

typedef struct cupti_context {
    int32_t kind;
    uint32_t context, device;
} cupti_context;

typedef struct cupti_device {
    int32_t kind;
    uint32_t flags;
    uint64_t bandwidth, memory;
    uint32_t constant_memory, l2_cache, warp_size, clock_rate, copy_engines;
    uint32_t multiprocessors, max_ipc, max_warps, max_blocks;
    uint32_t shared_a_multiprocessor, registers_a_multiprocessor;
    uint32_t registers_a_block, shared_a_block, threads_a_block;
    uint32_t max_block[3], max_grid[3];
    uint32_t major, minor;
    uint32_t id, has_ecc;
    uint8_t uuid[16];
    const char *name;
} cupti_device;

#pragma GCC visibility push(hidden)

/* Sizes of the loaded library's records, by kind; 0 for a kind that we do not
 * read. */
extern uint16_t cupti_record_sizes[CUPTI_KINDS];

/* Measures the records by letting the library walk a buffer of ours. Returns a
 * line for the user if some records are smaller than any we know. */
const char *cupti_measure_records(void);

#pragma GCC visibility pop
#endif
