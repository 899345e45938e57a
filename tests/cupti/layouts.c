/* Compares our declarations of CUPTI's records with NVIDIA's. headers.py
 * compiles this file with the headers of one version, and passes the newest
 * declaration of each record (-DKERNEL=CUpti_ActivityKernel9). Prints a line
 * for each difference, then "kind size" for each record. */
#include <stdbool.h>
#include <stdio.h>

#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_version.h>

#include "../../adapters/cupti/library.h"
#include "../../adapters/cupti/records.h"

static int checked;

static void compare(const char *what, size_t ours, size_t theirs)
{
    checked++;
    if (ours != theirs)
        printf("%s: ours %zu, theirs %zu\n", what, ours, theirs);
}

#define FIELD(ours, a, theirs, b)                                              \
    compare(#ours "." #a " begins", offsetof(ours, a), offsetof(theirs, b));   \
    compare(#ours "." #a " has bytes", sizeof(((ours *)0)->a),                 \
            sizeof(((theirs *)0)->b))
#define VALUE(ours, theirs) compare(#theirs, (size_t)(ours), (size_t)(theirs))
#define SIZE(kind, theirs) printf("size %d %zu\n", kind, sizeof(theirs))

static void compare_kernel(void)
{
    FIELD(cupti_kernel, kind, KERNEL, kind);
    FIELD(cupti_kernel, registers, KERNEL, registersPerThread);
    FIELD(cupti_kernel, start, KERNEL, start);
    FIELD(cupti_kernel, end, KERNEL, end);
    FIELD(cupti_kernel, device, KERNEL, deviceId);
    FIELD(cupti_kernel, context, KERNEL, contextId);
    FIELD(cupti_kernel, stream, KERNEL, streamId);
    FIELD(cupti_kernel, grid[0], KERNEL, gridX);
    FIELD(cupti_kernel, grid[1], KERNEL, gridY);
    FIELD(cupti_kernel, grid[2], KERNEL, gridZ);
    FIELD(cupti_kernel, block[0], KERNEL, blockX);
    FIELD(cupti_kernel, block[1], KERNEL, blockY);
    FIELD(cupti_kernel, block[2], KERNEL, blockZ);
    FIELD(cupti_kernel, static_shared, KERNEL, staticSharedMemory);
    FIELD(cupti_kernel, dynamic_shared, KERNEL, dynamicSharedMemory);
    FIELD(cupti_kernel, correlation, KERNEL, correlationId);
    FIELD(cupti_kernel, name, KERNEL, name);
    FIELD(cupti_kernel, queued, KERNEL, queued);
    FIELD(cupti_kernel, graph_node, KERNEL, graphNodeId);
    FIELD(cupti_kernel, graph, KERNEL, graphId);
    FIELD(cupti_kernel, channel, KERNEL, channelID);
    FIELD(cupti_kernel, channel_type, KERNEL, channelType);
#if CUPTI_API_VERSION >= 130000
    FIELD(cupti_kernel, is_launched_by_device, KERNEL, isDeviceLaunched);
#endif
#if CUPTI_API_VERSION >= 130100
    FIELD(cupti_kernel, priority, KERNEL, priority);
#endif
}

static void compare_copies(void)
{
    FIELD(cupti_memcpy, copy_kind, MEMCPY, copyKind);
    FIELD(cupti_memcpy, from_kind, MEMCPY, srcKind);
    FIELD(cupti_memcpy, to_kind, MEMCPY, dstKind);
    FIELD(cupti_memcpy, bytes, MEMCPY, bytes);
    FIELD(cupti_memcpy, start, MEMCPY, start);
    FIELD(cupti_memcpy, end, MEMCPY, end);
    FIELD(cupti_memcpy, device, MEMCPY, deviceId);
    FIELD(cupti_memcpy, context, MEMCPY, contextId);
    FIELD(cupti_memcpy, stream, MEMCPY, streamId);
    FIELD(cupti_memcpy, correlation, MEMCPY, correlationId);
    FIELD(cupti_memcpy, graph_node, MEMCPY, graphNodeId);
    FIELD(cupti_memcpy, graph, MEMCPY, graphId);
    FIELD(cupti_memcpy, channel, MEMCPY, channelID);
    FIELD(cupti_memcpy, channel_type, MEMCPY, channelType);

    FIELD(cupti_memcpy_peer, copy_kind, PEER, copyKind);
    FIELD(cupti_memcpy_peer, from_kind, PEER, srcKind);
    FIELD(cupti_memcpy_peer, to_kind, PEER, dstKind);
    FIELD(cupti_memcpy_peer, bytes, PEER, bytes);
    FIELD(cupti_memcpy_peer, start, PEER, start);
    FIELD(cupti_memcpy_peer, end, PEER, end);
    FIELD(cupti_memcpy_peer, device, PEER, deviceId);
    FIELD(cupti_memcpy_peer, context, PEER, contextId);
    FIELD(cupti_memcpy_peer, stream, PEER, streamId);
    FIELD(cupti_memcpy_peer, from_device, PEER, srcDeviceId);
    FIELD(cupti_memcpy_peer, from_context, PEER, srcContextId);
    FIELD(cupti_memcpy_peer, to_device, PEER, dstDeviceId);
    FIELD(cupti_memcpy_peer, to_context, PEER, dstContextId);
    FIELD(cupti_memcpy_peer, correlation, PEER, correlationId);
    FIELD(cupti_memcpy_peer, graph_node, PEER, graphNodeId);
    FIELD(cupti_memcpy_peer, graph, PEER, graphId);
    FIELD(cupti_memcpy_peer, channel, PEER, channelID);
    FIELD(cupti_memcpy_peer, channel_type, PEER, channelType);

    FIELD(cupti_memset, bytes, MEMSET, bytes);
    FIELD(cupti_memset, start, MEMSET, start);
    FIELD(cupti_memset, end, MEMSET, end);
    FIELD(cupti_memset, device, MEMSET, deviceId);
    FIELD(cupti_memset, context, MEMSET, contextId);
    FIELD(cupti_memset, stream, MEMSET, streamId);
    FIELD(cupti_memset, correlation, MEMSET, correlationId);
    FIELD(cupti_memset, memory_kind, MEMSET, memoryKind);
    FIELD(cupti_memset, graph_node, MEMSET, graphNodeId);
    FIELD(cupti_memset, graph, MEMSET, graphId);
    FIELD(cupti_memset, channel, MEMSET, channelID);
    FIELD(cupti_memset, channel_type, MEMSET, channelType);
}

static void compare_others(void)
{
    FIELD(cupti_call, callback, CUpti_ActivityAPI, cbid);
    FIELD(cupti_call, start, CUpti_ActivityAPI, start);
    FIELD(cupti_call, end, CUpti_ActivityAPI, end);
    FIELD(cupti_call, process, CUpti_ActivityAPI, processId);
    FIELD(cupti_call, thread, CUpti_ActivityAPI, threadId);
    FIELD(cupti_call, correlation, CUpti_ActivityAPI, correlationId);

    FIELD(cupti_sync, type, SYNC, type);
    FIELD(cupti_sync, start, SYNC, start);
    FIELD(cupti_sync, end, SYNC, end);
    FIELD(cupti_sync, correlation, SYNC, correlationId);
    FIELD(cupti_sync, context, SYNC, contextId);
    FIELD(cupti_sync, stream, SYNC, streamId);
    FIELD(cupti_sync, event, SYNC, cudaEventId);

    FIELD(cupti_event, correlation, EVENT, correlationId);
    FIELD(cupti_event, context, EVENT, contextId);
    FIELD(cupti_event, stream, EVENT, streamId);
    FIELD(cupti_event, event, EVENT, eventId);

    FIELD(cupti_overhead, overhead_kind, OVERHEAD, overheadKind);
    FIELD(cupti_overhead, start, OVERHEAD, start);
    FIELD(cupti_overhead, end, OVERHEAD, end);

    FIELD(cupti_external, external_kind, CUpti_ActivityExternalCorrelation,
          externalKind);
    FIELD(cupti_external, external, CUpti_ActivityExternalCorrelation,
          externalId);
    FIELD(cupti_external, correlation, CUpti_ActivityExternalCorrelation,
          correlationId);

    FIELD(cupti_context, context, CONTEXT, contextId);
    FIELD(cupti_context, device, CONTEXT, deviceId);

    FIELD(cupti_device, memory, DEVICE, globalMemorySize);
    FIELD(cupti_device, warp_size, DEVICE, numThreadsPerWarp);
    FIELD(cupti_device, multiprocessors, DEVICE, numMultiprocessors);
    FIELD(cupti_device, max_warps, DEVICE, maxWarpsPerMultiprocessor);
    FIELD(cupti_device, max_blocks, DEVICE, maxBlocksPerMultiprocessor);
    FIELD(cupti_device, shared_a_multiprocessor, DEVICE,
          maxSharedMemoryPerMultiprocessor);
    FIELD(cupti_device, registers_a_multiprocessor, DEVICE,
          maxRegistersPerMultiprocessor);
    FIELD(cupti_device, registers_a_block, DEVICE, maxRegistersPerBlock);
    FIELD(cupti_device, shared_a_block, DEVICE, maxSharedMemoryPerBlock);
    FIELD(cupti_device, threads_a_block, DEVICE, maxThreadsPerBlock);
    FIELD(cupti_device, major, DEVICE, computeCapabilityMajor);
    FIELD(cupti_device, minor, DEVICE, computeCapabilityMinor);
    FIELD(cupti_device, id, DEVICE, id);
    FIELD(cupti_device, name, DEVICE, name);
}

static void compare_values(void)
{
    VALUE(CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
    VALUE(CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
    VALUE(CUPTI_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
    VALUE(CUPTI_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
    VALUE(CUPTI_DEVICE, CUPTI_ACTIVITY_KIND_DEVICE);
    VALUE(CUPTI_CONTEXT, CUPTI_ACTIVITY_KIND_CONTEXT);
    VALUE(CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    VALUE(CUPTI_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
    VALUE(CUPTI_MEMCPY_PEER, CUPTI_ACTIVITY_KIND_MEMCPY2);
    VALUE(CUPTI_EVENT, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
    VALUE(CUPTI_SYNC, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    VALUE(CUPTI_EXTERNAL, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    VALUE(CUPTI_NONE, (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE);
    VALUE(CUPTI_OK, CUPTI_SUCCESS);
    VALUE(CUPTI_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
    VALUE(CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
    VALUE(CUPTI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
    VALUE(CUPTI_THREAD_ID_DEFAULT, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
    VALUE(CUPTI_THREAD_ID_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    VALUE(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
#if CUPTI_API_VERSION >= 21
    VALUE(CUPTI_ATTRIBUTE_PER_THREAD_BUFFER,
          CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
#endif
}

int main(void)
{
    compare_kernel();
    compare_copies();
    compare_others();
    compare_values();
    printf("version %d\n", (int)CUPTI_API_VERSION);
    printf("checked %d\n", checked);
    SIZE(CUPTI_MEMCPY, MEMCPY);
    SIZE(CUPTI_MEMSET, MEMSET);
    SIZE(CUPTI_DRIVER, CUpti_ActivityAPI);
    SIZE(CUPTI_RUNTIME, CUpti_ActivityAPI);
    SIZE(CUPTI_DEVICE, DEVICE);
    SIZE(CUPTI_CONTEXT, CONTEXT);
    SIZE(CUPTI_KERNEL, KERNEL);
    SIZE(CUPTI_OVERHEAD, OVERHEAD);
    SIZE(CUPTI_MEMCPY_PEER, PEER);
    SIZE(CUPTI_EVENT, EVENT);
    SIZE(CUPTI_SYNC, SYNC);
    SIZE(CUPTI_EXTERNAL, CUpti_ActivityExternalCorrelation);
    return 0;
}
