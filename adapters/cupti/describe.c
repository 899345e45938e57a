/* Describes records in the words of torch.profiler's files. */
#include <inttypes.h>
#include <stdio.h>

#include "collector.h"

/* ---- occupancy ----------------------------------------------------------- */

/* Occupancy is computed by NVIDIA's published rules about the resources that a
 * block takes. Of 4,432 kernels in torch.profiler's files that Holistic Trace
 * Analysis has published, for a V100 and an A100, 4,426 get torch.profiler's
 * percentage. The others take more shared memory than a kernel may by default;
 * for these torch.profiler says 0. */

enum {
    WARP = 32,
    REGISTER_UNIT = 256, /* a warp's registers are rounded up to this */
    /* from compute capability 8 on, a block's shared memory is rounded up to
     * this */
    SHARED_UNIT = 128,
    /* before compute capability 8, it is rounded up to this */
    SHARED_UNIT_OLD = 256,
    PARTITIONS = 4 /* parts of a multiprocessor's registers */
};

static uint32_t round_up(uint32_t value, uint32_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static uint32_t threads_of(const cupti_kernel *record)
{
    return (uint32_t)record->block[0] * (uint32_t)record->block[1] *
           (uint32_t)record->block[2];
}

static uint32_t blocks_by_registers(const cupti_kernel *record,
                                    const cupti_properties *properties,
                                    uint32_t warps)
{
    uint32_t a_warp =
        round_up((uint32_t)record->registers * WARP, REGISTER_UNIT);

    if (record->registers == 0)
        return UINT32_MAX;
    return properties->registers_a_multiprocessor / PARTITIONS / a_warp *
           PARTITIONS / warps;
}

static uint32_t blocks_by_shared(const cupti_kernel *record,
                                 const cupti_properties *properties)
{
    uint32_t used = round_up(
        (uint32_t)record->static_shared + (uint32_t)record->dynamic_shared +
            properties->shared_reserved,
        properties->major < 8 ? SHARED_UNIT_OLD : SHARED_UNIT);

    return used != 0 ? properties->shared_a_multiprocessor / used : UINT32_MAX;
}

uint32_t cupti_blocks_at_once(const cupti_kernel *record,
                              const cupti_properties *properties)
{
    uint32_t warps = (threads_of(record) + WARP - 1) / WARP;
    uint32_t limits[4], least = UINT32_MAX;

    if (!properties->are_known || warps == 0)
        return 0;
    limits[0] = properties->threads_a_multiprocessor / WARP / warps;
    limits[1] = blocks_by_registers(record, properties, warps);
    limits[2] = blocks_by_shared(record, properties);
    limits[3] =
        properties->max_blocks != 0 ? properties->max_blocks : UINT32_MAX;
    for (int i = 0; i < 4; i++)
        least = limits[i] < least ? limits[i] : least;
    return least;
}

/* ---- kernels and devices ------------------------------------------------- */

/* Describes how a kernel fills the device, if that is known. */
static size_t describe_occupancy(const cupti_kernel *record,
                                 const cupti_properties *properties, char *text,
                                 size_t size)
{
    float blocks, threads = (float)threads_of(record), held, occupancy;

    if (!properties->are_known || properties->multiprocessors == 0 ||
        properties->threads_a_multiprocessor == 0)
        return 0;
    blocks = (float)record->grid[0] * (float)record->grid[1] *
             (float)record->grid[2] / (float)properties->multiprocessors;
    held = (float)cupti_blocks_at_once(record, properties);
    held = held < blocks ? held : blocks;
    occupancy = held * threads / (float)properties->threads_a_multiprocessor;
    return (size_t)snprintf(text, size,
                            "\"blocks per SM\": %.7g, \"warps per SM\": %.7g, "
                            "\"est. achieved occupancy %%\": %ld, ",
                            (double)blocks, (double)(blocks * threads / WARP),
                            (long)(occupancy * 100 + 0.5F));
}

size_t cupti_describe_kernel(const cupti_kernel *record,
                             const cupti_properties *properties, char *text)
{
    size_t length = (size_t)snprintf(
        text, CUPTI_TEXT,
        "\"queued\": %" PRIu64 ", \"registers per thread\": %u, "
        "\"shared memory\": %d, ",
        record->queued, record->registers,
        record->static_shared + record->dynamic_shared);

    length += describe_occupancy(record, properties, text + length,
                                 CUPTI_TEXT - length);
    length += (size_t)snprintf(
        text + length, CUPTI_TEXT - length,
        "\"grid\": [%d, %d, %d], \"block\": [%d, %d, %d], \"graph id\": %u, "
        "\"graph node id\": %" PRIu64,
        record->grid[0], record->grid[1], record->grid[2], record->block[0],
        record->block[1], record->block[2], record->graph, record->graph_node);
    if (cupti_record_sizes[CUPTI_KERNEL] >= sizeof *record)
        length += (size_t)snprintf(text + length, CUPTI_TEXT - length,
                                   ", \"priority\": %d", record->priority);
    length += (size_t)snprintf(text + length, CUPTI_TEXT - length,
                               ", \"channel\": %u, \"channel_type\": %d",
                               record->channel, record->channel_type);
    return length;
}

size_t cupti_describe_device(const cupti_properties *properties, char *text)
{
    if (!properties->are_known)
        return 0;
    return (size_t)snprintf(
        text, CUPTI_TEXT,
        "\"totalGlobalMem\": %" PRIu64 ", \"computeMajor\": %u, "
        "\"computeMinor\": %u, \"maxThreadsPerBlock\": %u, "
        "\"maxThreadsPerMultiprocessor\": %u, \"regsPerBlock\": %u, "
        "\"warpSize\": %u, \"sharedMemPerBlock\": %u, \"numSms\": %u, "
        "\"regsPerMultiprocessor\": %u, \"sharedMemPerBlockOptin\": %u, "
        "\"sharedMemPerMultiprocessor\": %u",
        properties->memory, properties->major, properties->minor,
        properties->threads_a_block, properties->threads_a_multiprocessor,
        properties->registers_a_block, properties->warp_size,
        properties->shared_a_block, properties->multiprocessors,
        properties->registers_a_multiprocessor, properties->shared_optin,
        properties->shared_a_multiprocessor);
}

/* ---- names --------------------------------------------------------------- */

static const char *describe_pick(const char *const *names, size_t count,
                                 int index, const char *otherwise)
{
    return index >= 0 && (size_t)index < count && names[index] != NULL
               ? names[index]
               : otherwise;
}

const char *cupti_memory_name(int kind)
{
    static const char *const names[] = {
        "Unknown", "Pageable", "Pinned",        "Device",
        "Array",   "Managed",  "Device Static", "Managed Static"};

    return describe_pick(names, sizeof names / sizeof *names, kind,
                         "Unrecognized");
}

void cupti_copy_name(int copy_kind, int from_kind, int to_kind, char *text,
                     size_t size)
{
    static const char *const names[] = {NULL,   "HtoD", "DtoH", "HtoA",
                                        "AtoH", "AtoA", "AtoD", "DtoA",
                                        "DtoD", "HtoH", "PtoP"};

    snprintf(text, size, "Memcpy %s (%s -> %s)",
             describe_pick(names, sizeof names / sizeof *names, copy_kind,
                           "<unknown>"),
             cupti_memory_name(from_kind), cupti_memory_name(to_kind));
}

const char *cupti_sync_name(int type)
{
    static const char *const names[] = {NULL, "Event Sync", "Stream Wait Event",
                                        "Stream Sync", "Context Sync"};

    return describe_pick(names, sizeof names / sizeof *names, type,
                         "Unknown Sync");
}

/* The kinds are 0 and 1, then multiples of 1 << 16. */
const char *cupti_overhead_name(int kind)
{
    static const char *const names[] = {NULL,
                                        "Buffer Flush",
                                        "Instrumentation",
                                        "Resource",
                                        "Runtime Triggered Module Loading",
                                        "Lazy Function Loading",
                                        "Command Buffer Full",
                                        "Activity Buffer Request"};

    if (kind == 0)
        return "Unknown";
    if (kind == 1)
        return "Driver Compiler";
    if (kind & 0xffff)
        return "Unrecognized";
    return describe_pick(names, sizeof names / sizeof *names, kind >> 16,
                         "Unrecognized");
}
