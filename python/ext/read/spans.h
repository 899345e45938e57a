/* What the files that read spans share: options, and a limit on time. They need
 * no GIL; one thread at a time uses each object. */
#ifndef VPY_SPANS_H
#define VPY_SPANS_H

#include "read/trace.h"

#include "replay/own_times.h"

#pragma GCC visibility push(hidden)

/* Ends a replay early. */
typedef struct vpy_deadline {
    int64_t at_ns; /* of the monotonic clock, 0: none */
    uint32_t spans;
    bool passed;
} vpy_deadline;

/* None, or seconds; false with an exception set. */
bool vpy_deadline_set(vpy_deadline *deadline, PyObject *seconds);
bool vpy_deadline_look(vpy_deadline *deadline);

static inline bool vpy_deadline_is_over(vpy_deadline *deadline)
{
    return deadline->at_ns != 0 && (deadline->spans++ & 255) == 0 &&
           vpy_deadline_look(deadline);
}

/* The options of the methods that read all spans. A method ignores those that
 * it does not have. */
typedef struct vpy_reading {
    int all, since; /* windows, see vpy_trace_window */
    int calls;      /* of the language's are shown */
    int shapes, overloads;
    int framework; /* bytes are those of a framework's allocator */
    int tree;      /* a row for each block, and args tell of tensors */
    int folds;     /* imports have the ids by which views show them */
    vpy_deadline deadline;
} vpy_reading;

/* format: "|$pippppOpp:" and the method's name. False with an exception set. */
bool vpy_reading_parse(vpy_reading *reading, vpy_trace *trace, PyObject *args,
                       PyObject *kw, const char *format);

static inline int vpy_reading_window(const vpy_reading *reading)
{
    return vpy_trace_window(reading->all, reading->since);
}

/* Bytes of a span: of a framework's allocator, or of all others. */
static inline int64_t vpy_self_bytes(const vst_span *span, bool framework)
{
    return framework ? span->self_framework_bytes : (int64_t)span->self_bytes;
}

static inline int64_t vpy_total_bytes(const vst_span *span, bool framework)
{
    return framework ? span->total_framework_bytes : (int64_t)span->total_bytes;
}

static inline bool vpy_is_call(vst_definition_kind kind)
{
    return kind == VST_DEF_PYTHON || kind == VST_DEF_NATIVE ||
           kind == VST_DEF_GC || kind == VST_DEF_MODULE;
}

#pragma GCC visibility pop
#endif
