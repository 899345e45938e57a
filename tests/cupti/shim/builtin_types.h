/* Like cuda.h next to this file, for CUDA's runtime. */
#ifndef VST_SHIM_BUILTIN_TYPES_H
#define VST_SHIM_BUILTIN_TYPES_H

#include <cuda.h>

typedef int cudaError_t;
typedef struct CUstream_st *cudaStream_t;

#endif
