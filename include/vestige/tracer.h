/* The registry. The core depends on no language runtime; a runtime registers
 * its tracer and its memory tracer here, and the core makes one when a
 * recording starts. If none is registered, the core makes one that does
 * nothing.
 *
 * Registering is for start-up and for tests; it takes effect at the next make.
 * What a tracer needs to know of the session it is made for comes with the
 * make, as a context; nothing is left for it in variables. */
#ifndef VESTIGE_TRACER_H
#define VESTIGE_TRACER_H

#include <stddef.h>

#include "clock.h"
#include "record.h"
#include "span.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a compressed event stands for: its kind (a vst_kind, or for escapes
 * VST_ESCAPE + 1 + type) and the id of its definition; of an escape whose type
 * is VST_ESCAPE_FIXED or more, its head. */
typedef struct vst_trace_key {
    uint64_t value;
} vst_trace_key;

static inline vst_trace_key vst_trace_key_make(uint32_t kind, vst_id id)
{
    vst_trace_key key = {(uint64_t)id << 8 | kind};
    return key;
}

static inline uint32_t vst_trace_key_kind(vst_trace_key key)
{
    return (uint32_t)(key.value & 0xffu);
}

static inline vst_id vst_trace_key_id(vst_trace_key key)
{
    return (vst_id)(key.value >> 8);
}

static inline uint32_t vst_trace_key_kind_of_escape(uint32_t escape_type)
{
    return (uint32_t)VST_ESCAPE + 1u + escape_type;
}

/* The type of an escape; of any other key a number that no type has. */
static inline uint32_t vst_trace_key_escape_type(vst_trace_key key)
{
    return vst_trace_key_kind(key) - ((uint32_t)VST_ESCAPE + 1u);
}

typedef struct vst_device_resource {
    int32_t device;    /* the process */
    uint32_t resource; /* the thread's number in the trace */
} vst_device_resource;

/* One record as a tracer recorded it, its time still in ticks. Batches hold
 * enters and exits in the order of one thread. */
typedef struct vst_compressed_event {
    vst_trace_key key;
    uint64_t system_tid;
    vst_device_resource where;
    vst_ticks ticks;
    const uint64_t *payload; /* the words of an escape, else NULL */
    uint32_t payload_words;
} vst_compressed_event;

/* end_time_ns while more batches of the same thread follow. */
#define VST_TIME_OPEN INT64_MIN

typedef struct vst_tracer vst_tracer;

/* The contract of a tracer. All but get_events are called by the thread that
 * controls the recording. */
typedef struct vst_tracer_ops {
    /* No hook records after this returns. */
    void (*stop)(vst_tracer *tracer);
    vst_status (*restart)(vst_tracer *tracer);
    /* From now on garbage collections are recorded as spans. */
    void (*register_gc_callback)(vst_tracer *tracer);
    /* Turns the events of a trace into spans, thread after thread, batch by
     * batch. The last batch of a thread has an end time; what is still open is
     * closed there. A reading begins with events NULL and no end time: what is
     * kept of an earlier one is forgotten. Called by vst_trace_replay() with
     * this tracer; exports and tables take the spans of replay's matcher, from
     * a recording that goes on as from a file. */
    vst_status (*get_events)(vst_tracer *tracer,
                             const vst_time_converter *converter,
                             const vst_compressed_event *enters, size_t count,
                             int64_t end_time_ns, const vst_sink *sink);
    void (*destroy)(vst_tracer *tracer);
} vst_tracer_ops;

/* The first member of every tracer. */
struct vst_tracer {
    const vst_tracer_ops *ops;
};

/* What a tracer is made for. */
typedef struct vst_tracer_context {
    struct vst_session *session; /* NULL: of none */
    /* What the session's options have for this tracer, NULL: nothing. It is
     * there while the tracer is made. */
    const void *options;
} vst_tracer_context;

/* Makes a tracer that records into the recording, and starts it. */
typedef vst_status (*vst_tracer_make_with_context_fn)(
    vst_recording *recording, const vst_tracer_context *context,
    vst_tracer **tracer);

/* The function registered last makes the tracers; NULL: tracers do nothing. */
VST_API void
vst_tracer_register_with_context(vst_tracer_make_with_context_fn make);
/* Returns the registered function, for a tracer that wraps the tracer of that
 * function; NULL: none is registered. */
VST_API vst_tracer_make_with_context_fn vst_tracer_registered(void);
/* Makes a tracer by the registered function, whose status is returned, or one
 * that does nothing. A start of a session does that; the caller calls destroy.
 */
VST_API vst_status vst_tracer_make(vst_recording *recording,
                                   vst_tracer **tracer);

/* ---- the memory tracer -------------------------------------------------- */

typedef struct vst_memory_tracer vst_memory_tracer;

typedef struct vst_memory_tracer_ops {
    vst_status (*start)(vst_memory_tracer *tracer);
    void (*stop)(vst_memory_tracer *tracer);
    vst_status (*export_memory_history)(vst_memory_tracer *tracer,
                                        const char *path, vst_error *error);
    void (*destroy)(vst_memory_tracer *tracer);
} vst_memory_tracer_ops;

struct vst_memory_tracer {
    const vst_memory_tracer_ops *ops;
};

/* Makes a memory tracer that records into the recording once it is started. */
typedef vst_status (*vst_memory_tracer_make_with_context_fn)(
    vst_recording *recording, const vst_tracer_context *context,
    vst_memory_tracer **tracer);

/* The same for memory tracers. */
VST_API void vst_memory_tracer_register_with_context(
    vst_memory_tracer_make_with_context_fn make);
VST_API vst_status vst_memory_tracer_make(vst_recording *recording,
                                          vst_memory_tracer **tracer);

/* ---- replay's matcher ---------------------------------------------------- */

/* Replay's matcher: pairs one thread's enters and exits into spans. A tracer's
 * get_events may be built on it, as the Python tracer's is; a file read back is
 * replayed with it directly.
 *
 * An exit names what it leaves. If that is not the innermost open span but one
 * further out, those above it are closed with it and marked VST_SPAN_CUT; if it
 * is not open at all, the exit is ignored and counted. */
typedef struct vst_matcher vst_matcher;

/* Makes a matcher, which one thread at a time uses and the caller destroys.
 * VST_E_NOMEM: *matcher is NULL. */
VST_API vst_status vst_matcher_create(vst_matcher **matcher);
/* NULL is nothing. */
VST_API void vst_matcher_destroy(vst_matcher *matcher);

/* Feeds one batch of one thread. With an end time other than VST_TIME_OPEN
 * everything still open is closed there, and the matcher is ready for another
 * thread; serials go on counting until a reading begins anew (events NULL, no
 * end time). */
VST_API vst_status vst_matcher_feed(vst_matcher *matcher,
                                    const vst_time_converter *converter,
                                    const vst_compressed_event *events,
                                    size_t count, int64_t end_time_ns,
                                    const vst_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
