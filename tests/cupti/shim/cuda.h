/* Types of CUDA's that CUPTI's headers need, so that they compile without
 * CUDA's headers. Records contain only pointers to these types. */
#ifndef VST_SHIM_CUDA_H
#define VST_SHIM_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef struct shim_context *CUcontext;
typedef struct shim_stream *CUstream;
typedef struct shim_graph *CUgraph;
typedef struct shim_graph_node *CUgraphNode;
typedef struct shim_graph_exec *CUgraphExec;
typedef struct shim_event *CUevent;
typedef struct shim_function *CUfunction;
typedef struct shim_module *CUmodule;
typedef int CUdevice, CUresult, CUgraphNodeType, CUdevice_attribute;
typedef unsigned long long CUdeviceptr;
typedef struct {
    char bytes[16];
} CUuuid;
typedef int CUaccessPolicyWindow, CUlaunchAttribute, CUstreamAttrID;
typedef union {
    int any;
} CUstreamAttrValue;

#endif
