/* The registry. The core does not depend on a language runtime: a runtime
 * registers its tracer and its memory tracer here, and the core makes one of
 * each when a recording starts. If none is registered, the core makes one that
 * does nothing.
 *
 * Registering is for start-up and for tests; it takes effect at the next make.
 * The make function gets what a tracer needs to know of its session as a
 * context; no global variable holds it. */
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

/* Identifies what a compressed event stands for: its kind (a vst_kind, or
 * VST_ESCAPE + 1 + type for escapes) and the id of its definition; for an
 * escape whose type is VST_ESCAPE_FIXED or more, the head. */
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

/* Returns the type of an escape; for any other key a number that is no type. */
static inline uint32_t vst_trace_key_escape_type(vst_trace_key key)
{
    return vst_trace_key_kind(key) - ((uint32_t)VST_ESCAPE + 1u);
}

typedef struct vst_device_resource {
    int32_t device;    /* the process */
    uint32_t resource; /* the thread's number in the trace */
} vst_device_resource;

/* One record, its time still in ticks. A batch holds records of one thread in
 * order. */
typedef struct vst_compressed_event {
    vst_trace_key key;
    uint64_t system_tid;
    vst_device_resource where;
    vst_ticks ticks;
    const uint64_t *payload; /* the words of an escape, or NULL */
    uint32_t payload_words;
} vst_compressed_event;

/* The value of end_time_ns while more batches of a thread follow. */
#define VST_TIME_OPEN INT64_MIN

typedef struct vst_tracer vst_tracer;

/* The contract of a tracer. The thread that controls the recording calls all
 * functions but get_events. */
typedef struct vst_tracer_ops {
    /* No hook records after this returns. */
    void (*stop)(vst_tracer *tracer);
    vst_status (*restart)(vst_tracer *tracer);
    /* Records garbage collections as spans from now on. */
    void (*register_gc_callback)(vst_tracer *tracer);
    /* Turns the events of a trace into spans, thread after thread, batch by
     * batch. The last batch of a thread has an end time, which closes what is
     * still open. A reading begins with events NULL and no end time: the tracer
     * forgets any earlier reading. Called by vst_trace_replay() with this
     * tracer; exports and tables take the spans of replay's matcher for live
     * recordings and for files. */
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

/* The session that a tracer is made for. */
typedef struct vst_tracer_context {
    struct vst_session *session; /* NULL if there is none */
    /* The session's options for this tracer, or NULL. Valid while the tracer is
     * made. */
    const void *options;
} vst_tracer_context;

/* Makes a tracer that records into the recording, and starts it. */
typedef vst_status (*vst_tracer_make_with_context_fn)(
    vst_recording *recording, const vst_tracer_context *context,
    vst_tracer **tracer);

/* Registers the function that makes tracers, in place of the previous one.
 * NULL: tracers do nothing. */
VST_API void
vst_tracer_register_with_context(vst_tracer_make_with_context_fn make);
/* Returns the registered function, for a tracer that wraps the tracer of that
 * function; NULL: none is registered. */
VST_API vst_tracer_make_with_context_fn vst_tracer_registered(void);
/* Makes a tracer with the registered function and returns its status, or makes
 * a tracer that does nothing. A session's start calls this function; the caller
 * calls destroy. */
VST_API vst_status vst_tracer_make(vst_recording *recording,
                                   vst_tracer **tracer);

/* ---- the memory tracer --------------------------------------------------- */

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

/* Registers the function that makes memory tracers. */
VST_API void vst_memory_tracer_register_with_context(
    vst_memory_tracer_make_with_context_fn make);
VST_API vst_status vst_memory_tracer_make(vst_recording *recording,
                                          vst_memory_tracer **tracer);

/* ---- replay's matcher ---------------------------------------------------- */

/* Replay's matcher pairs a thread's enters and exits into spans. A tracer's
 * get_events may use it, as the Python tracer's does; files are replayed with
 * it directly.
 *
 * An exit names the function that it leaves. If that is not the innermost open
 * span but one further out, the spans inside are closed with it and marked
 * VST_SPAN_CUT; if no such span is open, the exit is ignored and counted. */
typedef struct vst_matcher vst_matcher;

/* Makes a matcher, which one thread at a time uses and the caller destroys.
 * Returns VST_E_NOMEM with *matcher NULL. */
VST_API vst_status vst_matcher_create(vst_matcher **matcher);
/* Ignores NULL. */
VST_API void vst_matcher_destroy(vst_matcher *matcher);

/* Feeds one batch of one thread. With an end time other than VST_TIME_OPEN,
 * everything still open is closed there, and the matcher is ready for the next
 * thread; serials go on counting until a new reading begins (events NULL, no
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
