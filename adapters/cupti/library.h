/* The functions that we call in libcupti and libcuda, which are loaded at run
 * time. Their types are declared by the sizes that NVIDIA's types have in the
 * calling convention. */
#ifndef VST_CUPTI_LIBRARY_H
#define VST_CUPTI_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* CUptiResult */
enum {
    CUPTI_OK = 0,
    CUPTI_MAX_LIMIT_REACHED = 12 /* the buffer has no further record */
};

/* Values of other enumerations. */
enum {
    CUPTI_DOMAIN_DRIVER = 1,
    CUPTI_DOMAIN_RUNTIME = 2,
    CUPTI_ATTRIBUTE_PER_THREAD_BUFFER = 9,
    CUPTI_THREAD_ID_DEFAULT = 0,
    CUPTI_THREAD_ID_SYSTEM = 1,
    CUPTI_FLUSH_FORCED = 1
};

/* Versions of the interface: the first with a buffer for each thread (CUDA
 * 12.3), and the first that may be refused a buffer (12.9). */
enum { CUPTI_VERSION_PER_THREAD = 21, CUPTI_VERSION_REFUSABLE = 27 };

typedef void (*cupti_request_fn)(uint8_t **buffer, size_t *size,
                                 size_t *max_records);
typedef void (*cupti_complete_fn)(void *context, uint32_t stream,
                                  uint8_t *buffer, size_t size, size_t valid);

/* Name and parameters of each function; all return int. Every libcupti since
 * 12.0 has these functions: */
#define CUPTI_FUNCTIONS(X)                                                     \
    X(cuptiGetVersion, (uint32_t *))                                           \
    X(cuptiGetResultString, (int, const char **))                              \
    X(cuptiGetCallbackName, (int, uint32_t, const char **))                    \
    X(cuptiSetThreadIdType, (int))                                             \
    X(cuptiActivityRegisterTimestampCallback, (uint64_t (*)(void)))            \
    X(cuptiActivityRegisterCallbacks, (cupti_request_fn, cupti_complete_fn))   \
    X(cuptiActivitySetAttribute, (int, size_t *, void *))                      \
    X(cuptiActivityEnable, (int))                                              \
    X(cuptiActivityDisable, (int))                                             \
    X(cuptiActivityFlushAll, (uint32_t))                                       \
    X(cuptiActivityFlushPeriod, (uint32_t))                                    \
    X(cuptiActivityGetNextRecord, (uint8_t *, size_t, void **))                \
    X(cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *))
/* only newer versions have these functions; NULL if the loaded libcupti has
 * not */
#define CUPTI_NEWER_FUNCTIONS(X)                                               \
    X(cuptiActivityEnableRuntimeApi, (uint32_t, uint8_t))                      \
    X(cuptiActivityEnableDriverApi, (uint32_t, uint8_t))
/* Functions of libcuda. We call none that would initialize it. */
#define CUDA_FUNCTIONS(X)                                                      \
    X(cuDeviceGetCount, (int *))                                               \
    X(cuDeviceGetName, (char *, int, int))                                     \
    X(cuDeviceTotalMem_v2, (size_t *, int))                                    \
    X(cuDeviceGetAttribute, (int *, int, int))

#define CUPTI_MEMBER(name, parameters) int(*name) parameters;
typedef struct cupti_library {
    CUPTI_FUNCTIONS(CUPTI_MEMBER)
    CUPTI_NEWER_FUNCTIONS(CUPTI_MEMBER)
    CUDA_FUNCTIONS(CUPTI_MEMBER)
    uint32_t version; /* version of CUPTI's interface */
} cupti_library;
#undef CUPTI_MEMBER

extern cupti_library cupti; /* complete once cupti_load() returned NULL */

/* See vst_cupti_register. */
const char *cupti_load(const char *named, const char *const *paths);
/* Returns libcupti's name for a result; never NULL. */
const char *cupti_result_name(int result);

#pragma GCC visibility pop
#endif
