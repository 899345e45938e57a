/* The tracers that do nothing. */
#ifndef VST_RECORD_TRACER_NOOP_H
#define VST_RECORD_TRACER_NOOP_H

#include <vestige/tracer.h>

extern vst_tracer vst__tracer_noop;
extern vst_memory_tracer vst__memory_tracer_noop;

#endif
