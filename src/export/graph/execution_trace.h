/* The inside of the exporter of execution traces, shared by execution_trace.c
 * (the document and its nodes) and execution_trace_values.c (what a node was
 * given or gave). One thread at a time. */
#ifndef VST_EXPORT_EXECUTION_TRACE_H
#define VST_EXPORT_EXECUTION_TRACE_H

#include "graph/graph.h"

/* Appends {"values": …, "shapes": …, "types": …, "strides": …}. False: there is
 * no memory for it. */
bool vst__execution_trace_values(vst__text *text,
                                 const vst__graph_values *values);
/* Appends text, as it is or as the inside of a JSON string. */
bool vst__execution_trace_text(vst__text *text, const char *bytes,
                               size_t count);
bool vst__execution_trace_escaped(vst__text *text, const char *bytes,
                                  size_t count);

#endif
