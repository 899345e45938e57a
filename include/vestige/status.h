/* The errors of vestige: every function that can fail returns a vst_status, 0
 * or negative. Functions that touch files also fill an optional vst_error with
 * the errno and the byte offset of the failure. */
#ifndef VESTIGE_STATUS_H
#define VESTIGE_STATUS_H

#include <stdint.h>

/* VST_STATIC: the library becomes part of the program or module being built,
 * and its names are hidden from others. */
#if !defined(__GNUC__)
#define VST_API
#elif defined(VST_STATIC)
#define VST_API __attribute__((visibility("hidden")))
#else
#define VST_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* name, value, text for users */
#define VST_STATUS_TABLE(X)                                                    \
    X(VST_OK, 0, "no error")                                                   \
    X(VST_E_NOMEM, -1, "out of memory")                                        \
    X(VST_E_IO, -2, "the file could not be read or written")                   \
    X(VST_E_EXISTS, -3, "the file already exists")                             \
    X(VST_E_NOSPACE, -4, "no space left for the trace")                        \
    X(VST_E_NOT_A_TRACE, -5, "not a vestige trace")                            \
    X(VST_E_VERSION, -6, "the trace is not in version 1 of the file format")   \
    X(VST_E_DAMAGED, -7, "the trace is damaged")                               \
    X(VST_E_BUSY, -8, "a recording is already running in this process")        \
    X(VST_E_STATE, -9, "not possible in this state")                           \
    X(VST_E_ARGUMENT, -10, "an argument is not valid")                         \
    X(VST_E_NO_IDS, -11, "out of ids for definitions")                         \
    X(VST_E_UNSUPPORTED, -12, "not supported by this build")                   \
    X(VST_E_TRACER, -13, "the tracer could not start")                         \
    X(VST_E_CANCELLED, -14, "cancelled")                                       \
    X(VST_E_NO_ZSTD, -15, "packed traces need zstd, which this build lacks")   \
    X(VST_E_PROCESSES, -16,                                                    \
      "an execution trace covers one process: export one at a time")           \
    X(VST_E_OUTPUT, -17, "the output would be far larger than the trace")

#define VST_STATUS_ENUM(name, value, text) name = value,
typedef enum vst_status { VST_STATUS_TABLE(VST_STATUS_ENUM) } vst_status;
#undef VST_STATUS_ENUM

typedef struct vst_error {
    vst_status status;
    int sys_errno;   /* 0 if no system call failed */
    uint64_t offset; /* byte offset in the file, 0 if there is none */
} vst_error;

/* Returns the text of a status from the table above; "unknown error" for other
 * numbers. The text is constant. Any thread. */
VST_API const char *vst_status_string(vst_status status);

/* Fills error (if not NULL) and returns status, so that a caller can write
 * `return vst_error_set(error, VST_E_IO, errno, offset)`. */
VST_API vst_status vst_error_set(vst_error *error, vst_status status,
                                 int sys_errno, uint64_t offset);

#ifdef __cplusplus
}
#endif
#endif
