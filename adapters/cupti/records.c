/* Measures the records of the loaded library. Called once. */
#include "records.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "library.h"

uint16_t cupti_record_sizes[CUPTI_KINDS];

/* The smallest size that a record of each kind must have: its size in CUDA
 * 12.0. */
static const uint16_t least[CUPTI_KINDS] = {
    [CUPTI_MEMCPY] = 88,
    [CUPTI_MEMSET] = 88,
    [CUPTI_DRIVER] = sizeof(cupti_call),
    [CUPTI_RUNTIME] = sizeof(cupti_call),
    [CUPTI_DEVICE] = 176,
    [CUPTI_CONTEXT] = 16,
    [CUPTI_KERNEL] = offsetof(cupti_kernel, is_launched_by_device),
    [CUPTI_OVERHEAD] = sizeof(cupti_overhead),
    [CUPTI_MEMCPY_PEER] = sizeof(cupti_memcpy_peer),
    [CUPTI_EVENT] = 24,
    [CUPTI_SYNC] = sizeof(cupti_sync),
    [CUPTI_EXTERNAL] = sizeof(cupti_external),
};

/* Returns the size of a record: gives the library a buffer in which a record
 * begins at every word, and measures the distance between the first two records
 * that the library finds. Returns 0 if it does not find two. */
static size_t records_measure(int32_t kind)
{
    static uint64_t words[512];
    uint8_t *buffer = (uint8_t *)words;
    void *record = NULL;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = CUPTI_OVERHEAD;
    memcpy(buffer, &kind, sizeof kind);
    if (cupti.cuptiActivityGetNextRecord(buffer, sizeof words, &record) != 0 ||
        record != buffer ||
        cupti.cuptiActivityGetNextRecord(buffer, sizeof words, &record) != 0 ||
        (uint8_t *)record <= buffer ||
        (uint8_t *)record >= buffer + sizeof words)
        return 0;
    return (size_t)((uint8_t *)record - buffer);
}

const char *cupti_measure_records(void)
{
    static char trouble[128];

    for (int32_t kind = 0; kind < CUPTI_KINDS; kind++) {
        size_t size = least[kind] != 0 ? records_measure(kind) : 0;

        if (size < least[kind]) {
            snprintf(
                trouble, sizeof trouble,
                "this libcupti has records that vestige does not know: %zu "
                "bytes of kind %d",
                size, kind);
            return trouble;
        }
        cupti_record_sizes[kind] = (uint16_t)size;
    }
    return NULL;
}
