/* Devices: accelerators, and whatever else works beside the program's threads.
 * The core knows none of them. A collector registers itself here, declares its
 * devices when a recording starts, and delivers what they did: from any thread,
 * late and in any order. Without a collector nothing of this costs anything.
 *
 * This header is also the specification of what is recorded
 * (VST_ESCAPE_DEVICE).
 *
 * A kernel is linked to the call that launched it by a correlation id which
 * both have. Which operator and which annotation that call was made in follows
 * from where its record stands among those of its thread, or if another thread
 * told it, from its time. The reader finds it; nothing is recorded for it. */
#ifndef VESTIGE_DEVICE_H
#define VESTIGE_DEVICE_H

#include "record.h"
#include "span.h"
#include "status.h"
#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- collectors ---------------------------------------------------------- */

typedef struct vst_collector vst_collector;

/* The contract of a collector. The thread that controls the recording calls
 * these, flush from any thread. No lock of vestige is held meanwhile. */
typedef struct vst_collector_ops {
    /* Activities may be delivered from here on. Again after each stop. */
    vst_status (*start)(vst_collector *collector);
    /* Delivers what the devices have done so far; NULL: there is nothing that
     * waits. */
    void (*flush)(vst_collector *collector);
    /* Nothing more is collected, and what was collected is delivered before
     * this returns. What comes later is lost, and counted. */
    void (*stop)(vst_collector *collector);
    /* Nothing is delivered after this. It is not called in a forked child. */
    void (*destroy)(vst_collector *collector);
} vst_collector_ops;

/* The first member of every collector. */
struct vst_collector {
    const vst_collector_ops *ops;
};

/* Makes a collector for a recording, when it first starts. Any other status
 * than VST_OK: the program is recorded without it, and the trace says so. */
typedef vst_status (*vst_collector_make_fn)(vst_recording *recording,
                                            vst_collector **collector);

enum { VST_COLLECTORS_MAX = 8 };

/* Recordings that begin from now on make one, if their options ask for devices.
 * The name ("cuda") must stay; one that is there already is replaced. VST_E_
 * NOMEM: there are VST_COLLECTORS_MAX others. */
VST_API vst_status vst_collector_register(const char *name,
                                          vst_collector_make_fn make);
/* Recordings that begin from now on make none of this name; those that have one
 * keep it. Any thread. */
VST_API void vst_collector_unregister(const char *name);

/* One line for the user: what a collector cannot do, or lost. The trace keeps
 * it as the metadata vestige.collector.<name>; vst_session_next_note() hands it
 * to the program that records. Any thread. A collector that fails to start says
 * why here, else its status is told. */
VST_API void vst_collector_tell(vst_recording *recording, const char *name,
                                const char *line);

/* ---- devices and their clocks -------------------------------------------- */

/* A device's own clock. It is compared with ours after the collector's start,
 * after each flush, after its stop, and whenever vst_device_sync() is called.
 */
typedef struct vst_device_clock {
    /* Ticks now; any thread, until the collector's destroy() is called. NULL:
     * the device's times are vst_clock_ticks(). */
    uint64_t (*read)(void *ctx);
    void *ctx;
    double ticks_per_second; /* about; the comparisons tell it exactly */
} vst_device_clock;

typedef struct vst_device {
    const char *platform; /* "cuda", "hip" …; up to 8 bytes */
    uint32_t ordinal;     /* the platform counts its devices: 0, 1 … */
    const char *name;
    const char *attributes; /* JSON members, NULL: none */
    vst_device_clock clock;
} vst_device;

typedef struct vst_device_stream {
    uint32_t number; /* of the device's streams */
    int32_t priority;
    const char *name; /* NULL: none, it is called by its number */
} vst_device_stream;

enum { VST_DEVICES_MAX = 1024 };

/* Gives the device's number in the trace, from 1; the same one for the same
 * platform and ordinal. */
VST_API vst_status vst_device_declare(vst_recording *recording,
                                      const vst_device *device,
                                      uint32_t *number);
/* A stream needs to be declared only for its name or priority. */
VST_API vst_status vst_device_declare_stream(vst_recording *recording,
                                             uint32_t device,
                                             const vst_device_stream *stream);
/* Compares the device's clock with ours. About once a second is enough. */
VST_API void vst_device_sync(vst_recording *recording, uint32_t device);

/* ---- activities ---------------------------------------------------------- */

typedef enum vst_activity_kind {
    VST_ACTIVITY_KERNEL = 1,
    VST_ACTIVITY_COPY = 2,
    VST_ACTIVITY_SET = 3,
    VST_ACTIVITY_SYNC = 4,     /* the device, or the program, waited */
    VST_ACTIVITY_OVERHEAD = 5, /* of the collecting itself */
    VST_ACTIVITY_RUNTIME = 6,  /* a call of the device's runtime, on a thread */
    VST_ACTIVITY_DRIVER = 7,   /* the same, of its driver */
    /* Not an activity: the collector lost `correlation` of them. */
    VST_ACTIVITY_LOST = 8
} vst_activity_kind;

/* "kernel", "copy" …; "unknown" for what is no kind. */
VST_API const char *vst_activity_kind_name(uint32_t kind);

/* Calls, and the overhead of the collecting, happen on threads. */
static inline bool vst_activity_is_on_thread(uint32_t kind)
{
    return kind >= VST_ACTIVITY_OVERHEAD && kind <= VST_ACTIVITY_DRIVER;
}

/* What it was launched for: a kernel, a copy or a set. */
static inline bool vst_activity_is_work(uint32_t kind)
{
    return kind >= VST_ACTIVITY_KERNEL && kind <= VST_ACTIVITY_SET;
}

/* What a device did. Times are ticks of its clock, those of calls and overhead
 * vst_clock_ticks(). */
typedef struct vst_activity {
    uint32_t kind;    /* vst_activity_kind */
    uint32_t device;  /* number; of a call: any one of the collector's */
    uint32_t stream;  /* of a call: 0 */
    uint32_t context; /* 0: none */
    vst_id id;        /* its name: a definition of VST_DEF_ACTIVITY */
    bool host_time;   /* times are vst_clock_ticks() whatever its kind */
    /* Of a call: the thread that made it, as the system knows it; 0: the one
     * that delivers it. */
    uint64_t system_tid;
    uint64_t correlation; /* 0: none */
    uint64_t external;    /* an id that somebody else gave it, 0: none */
    uint64_t bytes;       /* copied or set, 0: none */
    uint64_t start, end;
    const char *attributes; /* JSON members, NULL: none */
    size_t attributes_len;
} vst_activity;

/* Records an activity, as the thread's own records are: any thread, no lock, in
 * the file when it returns. False: the recording is over; it is counted as
 * lost. */
VST_API bool vst_device_deliver(vst_recording *recording,
                                const vst_activity *activity);
/* The collector lost so many activities of a device. */
VST_API void vst_device_lost(vst_recording *recording, uint32_t device,
                             uint64_t count);

/* ---- what is recorded ---------------------------------------------------- */

/* The payload of a VST_ESCAPE_DEVICE, which the thread that delivered it has
 * among its records:
 *
 *   word 0      bits  0-7   kind
 *               bits  8-15  flags (VST_ACTIVITY_HAS_)
 *               bits 16-31  device
 *               bits 32-63  stream
 *   word 1      bits  0-31  id
 *               bits 32-63  context
 *   word 2      correlation
 *   word 3      start
 *   word 4      end - start
 *   then, each if its flag is set, in this order:
 *     THREAD      the system's number of the thread that made the call
 *     EXTERNAL    external
 *     BYTES       bytes
 *     ATTRIBUTES  byte length, bytes padded with zeros to whole words
 *
 * An entry VST_ENTRY_DEVICE has the device as its id. Its line says what it is:
 *
 *   VST_DEVICE_ENTRY_DEVICE  a = name, b = attributes, x = ordinal |
 *                            collector << 32 (correlation ids are unique among
 *                            the devices of one collector), y = bits of the
 *                            double ticks_per_second, 0: its times are ours;
 *                            z = bytes of platform, the first is the lowest
 *   VST_DEVICE_ENTRY_STREAM  x = number, y = priority, a = name
 *   VST_DEVICE_ENTRY_PAIR    x = its clock, y = ours at that moment, z = by how
 *                            many of our ticks that may be wrong
 *
 * Sorted by x, pairs make its clock -> ours piecewise linear; a pair that goes
 * back is left out. Before the first and behind the last the slope is that from
 * the first to the last, with one pair that of ticks_per_second. */
enum {
    VST_ACTIVITY_HOST_TIME = 1,
    VST_ACTIVITY_HAS_THREAD = 2,
    VST_ACTIVITY_HAS_EXTERNAL = 4,
    VST_ACTIVITY_HAS_BYTES = 8,
    VST_ACTIVITY_HAS_ATTRIBUTES = 16,

    VST_ACTIVITY_WORDS = 5,

    VST_DEVICE_ENTRY_DEVICE = 0,
    VST_DEVICE_ENTRY_STREAM = 1,
    VST_DEVICE_ENTRY_PAIR = 2
};

/* ---- reading ------------------------------------------------------------- */

struct vst_trace;

typedef struct vst_trace_device {
    uint32_t number;
    uint32_t ordinal;
    uint32_t collector;
    bool has_clock;   /* of its own */
    char platform[9]; /* NUL-terminated */
    const char *name;
    size_t name_len;
    const char *attributes; /* JSON members, "": none */
    size_t attributes_len;
    /* Of its own clock: comparisons with ours, and by how much times may be
     * wrong between them; -1: there was none. */
    size_t pairs;
    int64_t error_ns;
} vst_trace_device;

typedef struct vst_trace_stream {
    uint32_t device;
    uint32_t number;
    int32_t priority;
    const char *name; /* "": none */
    size_t name_len;
} vst_trace_stream;

/* The devices of a trace, sorted by number; below, the streams that were
 * declared, by device and number. What is returned is valid until the trace is
 * closed. One thread at a time uses a trace. */
VST_API size_t vst_trace_device_count(const struct vst_trace *trace);
/* index: less than vst_trace_device_count(). */
VST_API const vst_trace_device *
vst_trace_device_at(const struct vst_trace *trace, size_t index);
/* Returns the device of a number; NULL: there is none. */
VST_API const vst_trace_device *
vst_trace_device_find(const struct vst_trace *trace, uint32_t number);
/* Returns how many streams were declared. */
VST_API size_t vst_trace_stream_count(const struct vst_trace *trace);
/* index: less than vst_trace_stream_count(). */
VST_API const vst_trace_stream *
vst_trace_stream_at(const struct vst_trace *trace, size_t index);
/* Returns a stream of a device; NULL: it was not declared. */
VST_API const vst_trace_stream *
vst_trace_stream_find(const struct vst_trace *trace, uint32_t device,
                      uint32_t number);

/* A span that was open when a call was made. */
typedef struct vst_device_cause {
    uint64_t serial; /* 0: there is none */
    vst_id id;
} vst_device_cause;

/* The call that a device's activity came from. */
typedef struct vst_device_launch {
    vst_id id;
    uint32_t kind;
    uint32_t thread; /* number */
    int64_t start_ns, end_ns;
    uint32_t number; /* which of what it launched this is, from 0 */
} vst_device_launch;

/* What a sink gets of an activity (vst_sink.device): after the threads of the
 * window, first calls and overhead by thread and time, then the others by
 * device, stream and time. Whole, even if it began before the range. */
typedef struct vst_device_span {
    uint32_t kind; /* vst_activity_kind */
    uint32_t device;
    uint32_t stream;
    uint32_t context;
    vst_id id;
    uint32_t thread; /* of a call: number, 0: the trace does not have it */
    int64_t start_ns, end_ns;
    uint64_t correlation, external, bytes;
    uint32_t launched; /* of a call: kernels, copies and sets from it */
    const char *args;  /* JSON members, NULL if none; valid during the call */
    size_t args_len;
    /* Of a call itself, or of the one that it came from: the innermost operator
     * and annotation around it, if the sink takes spans. */
    vst_device_cause op, annotation;
    const vst_device_launch *launch; /* NULL: it is not in the trace */
} vst_device_span;

#ifdef __cplusplus
}
#endif
#endif
