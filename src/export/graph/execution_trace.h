/* Shared by the two files of the exporter of execution traces:
 * execution_trace.c (the document and its nodes) and execution_trace_values.c
 * (inputs and outputs of nodes). One thread at a time. */
#ifndef VST_EXPORT_EXECUTION_TRACE_H
#define VST_EXPORT_EXECUTION_TRACE_H

#include "graph/graph.h"

/* Appends {"values": …, "shapes": …, "types": …, "strides": …}. Returns false
 * if memory ran out. */
bool vst__execution_trace_values(vst__text *text,
                                 const vst__graph_values *values);

#endif
