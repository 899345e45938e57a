/* Devices: accelerators and other hardware that works while the program's
 * threads run. The core contains no code for any particular device. A collector
 * registers itself here, declares its devices when a recording starts, and
 * delivers what the devices did: from any thread, late and in any order.
 * Without a collector, devices cost nothing.
 *
 * This header is also the specification of what is recorded
 * (VST_ESCAPE_DEVICE).
 *
 * A kernel and the call that launched it have the same correlation id. The
 * reader finds which operator and annotation the launching call was made in:
 * from the position of the call's record in its thread, or, if another thread
 * delivered the record, from its time. No extra record is needed. */
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
 * these functions; any thread may call flush. vestige holds no lock during the
 * calls. */
typedef struct vst_collector_ops {
    /* From this call on the collector may deliver activities. Called again
     * after each stop. */
    vst_status (*start)(vst_collector *collector);
    /* Delivers what the devices have done so far. NULL if the collector never
     * keeps activities back. */
    void (*flush)(vst_collector *collector);
    /* Ends collecting, and delivers what was collected before returning. Later
     * activities are lost and counted. */
    void (*stop)(vst_collector *collector);
    /* The collector delivers nothing after this call. Not called in a forked
     * child. */
    void (*destroy)(vst_collector *collector);
} vst_collector_ops;

/* The first member of every collector. */
struct vst_collector {
    const vst_collector_ops *ops;
};

/* Makes a collector for a recording when the recording first starts. If it
 * returns anything but VST_OK, the program is recorded without this collector,
 * and the trace says so. */
typedef vst_status (*vst_collector_make_fn)(vst_recording *recording,
                                            vst_collector **collector);

enum { VST_COLLECTORS_MAX = 8 };

/* Registers a collector: recordings that begin later use it if their options
 * ask for devices. The text of `name` ("cuda") must stay valid. Replaces a
 * collector of this name. Returns VST_E_NOMEM if VST_COLLECTORS_MAX others are
 * registered. */
VST_API vst_status vst_collector_register(const char *name,
                                          vst_collector_make_fn make);
/* Unregisters a collector: recordings that begin later do not use it;
 * recordings in progress keep theirs. Any thread. */
VST_API void vst_collector_unregister(const char *name);

/* Adds one line for the user about what a collector cannot do or has lost. The
 * trace keeps the line as the metadata vestige.collector.<name>;
 * vst_session_next_note() hands it to the recording program. Any thread. A
 * collector that fails to start gives its reason with this function; otherwise
 * the user sees the status. */
VST_API void vst_collector_tell(vst_recording *recording, const char *name,
                                const char *line);

/* ---- devices and their clocks -------------------------------------------- */

/* A device's own clock. vestige compares it with the host's clock after the
 * collector's start, after each flush, after its stop, and at each
 * vst_device_sync(). */
typedef struct vst_device_clock {
    /* Reads the device's clock in ticks; any thread, until the collector's
     * destroy() is called. NULL: the device's times are vst_clock_ticks(). */
    uint64_t (*read)(void *ctx);
    void *ctx;
    /* approximate; the comparisons give the exact rate */
    double ticks_per_second;
} vst_device_clock;

typedef struct vst_device {
    const char *platform; /* "cuda", "hip" …; up to 8 bytes */
    uint32_t ordinal;     /* the platform's own number of the device: 0, 1 … */
    const char *name;
    const char *attributes; /* JSON members, or NULL */
    vst_device_clock clock;
} vst_device;

typedef struct vst_device_stream {
    uint32_t number; /* the stream's number on the device */
    int32_t priority;
    const char *name; /* NULL if the stream is shown by its number */
} vst_device_stream;

enum { VST_DEVICES_MAX = 1024 };

/* Sets *number to the device's number in the trace, from 1. Equal platform and
 * ordinal give the same number again. */
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
    VST_ACTIVITY_SYNC =
        4, /* the device, or the program, waited for the other */
    VST_ACTIVITY_OVERHEAD = 5, /* overhead of the collecting itself */
    VST_ACTIVITY_RUNTIME = 6,  /* a thread called the device's runtime */
    VST_ACTIVITY_DRIVER = 7,   /* a thread called the device's driver */
    /* Not an activity: `correlation` activities were lost. */
    VST_ACTIVITY_LOST = 8
} vst_activity_kind;

/* Returns "kernel", "copy" …; "unknown" for any other number. */
VST_API const char *vst_activity_kind_name(uint32_t kind);

/* Returns whether activities of this kind happen on threads: calls, and the
 * overhead of collecting. */
static inline bool vst_activity_is_on_thread(uint32_t kind)
{
    return kind >= VST_ACTIVITY_OVERHEAD && kind <= VST_ACTIVITY_DRIVER;
}

/* Returns whether the device did work that a call launched: a kernel, a copy or
 * a set. */
static inline bool vst_activity_is_work(uint32_t kind)
{
    return kind >= VST_ACTIVITY_KERNEL && kind <= VST_ACTIVITY_SET;
}

/* One activity of a device. Times are ticks of the device's clock; times of
 * calls and of overhead are vst_clock_ticks(). */
typedef struct vst_activity {
    uint32_t kind;    /* vst_activity_kind */
    uint32_t device;  /* the device's number; for a call any device of the
                         collector */
    uint32_t stream;  /* 0 for a call */
    uint32_t context; /* 0: none */
    vst_id id;      /* the activity's name: a definition of VST_DEF_ACTIVITY */
    bool host_time; /* times are vst_clock_ticks() for every kind */
    /* For a call: the system's number of the thread that made it; 0 means the
     * delivering thread. */
    uint64_t system_tid;
    uint64_t correlation; /* 0: none */
    uint64_t external;    /* an id that another tool assigned, 0: none */
    uint64_t bytes;       /* copied or set, 0: none */
    uint64_t start, end;
    const char *attributes; /* JSON members, or NULL */
    size_t attributes_len;
} vst_activity;

/* Records an activity. Any thread, no lock; the activity is in the file when
 * this returns. Returns false and counts the activity as lost if the recording
 * is over. */
VST_API bool vst_device_deliver(vst_recording *recording,
                                const vst_activity *activity);
/* Records that the collector lost `count` activities of a device. */
VST_API void vst_device_lost(vst_recording *recording, uint32_t device,
                             uint64_t count);

/* ---- what is recorded ---------------------------------------------------- */

/* The payload of a VST_ESCAPE_DEVICE, which is among the records of the
 * delivering thread:
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
 * An entry VST_ENTRY_DEVICE has the device as its id. The entry's line says
 * which of these it is:
 *
 *   VST_DEVICE_ENTRY_DEVICE  a = name, b = attributes, x = ordinal |
 *                            collector << 32 (correlation ids are unique among
 *                            the devices of one collector), y = bits of the
 *                            double ticks_per_second, 0: times are
 *                            vst_clock_ticks();
 *                            z = bytes of platform, the first is the lowest
 *   VST_DEVICE_ENTRY_STREAM  x = number, y = priority, a = name
 *   VST_DEVICE_ENTRY_PAIR    x = ticks of the device's clock, y =
 *                            vst_clock_ticks() at that moment, z = the
 *                            largest error of y in ticks
 *
 * Sorted by x, the pairs are a piecewise linear map from the device's clock to
 * vst_clock_ticks(); a pair whose y goes back is ignored. Outside the pairs the
 * slope is that from the first pair to the last; with a single pair,
 * ticks_per_second gives the slope. */
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
    bool has_clock;   /* the device has a clock of its own */
    char platform[9]; /* NUL-terminated */
    const char *name;
    size_t name_len;
    const char *attributes; /* JSON members, or "" */
    size_t attributes_len;
    /* Comparisons of the device's own clock with the host's, and the largest
     * error between them; -1 if there was no comparison. */
    size_t pairs;
    int64_t error_ns;
} vst_trace_device;

typedef struct vst_trace_stream {
    uint32_t device;
    uint32_t number;
    int32_t priority;
    const char *name; /* "" if it has none */
    size_t name_len;
} vst_trace_stream;

/* The devices of a trace sorted by number, and below them the declared streams
 * sorted by device and number. What these functions return is valid until the
 * trace is closed. One thread at a time uses a trace. */
VST_API size_t vst_trace_device_count(const struct vst_trace *trace);
/* index: less than vst_trace_device_count(). */
VST_API const vst_trace_device *
vst_trace_device_at(const struct vst_trace *trace, size_t index);
/* Returns the device with this number, or NULL. */
VST_API const vst_trace_device *
vst_trace_device_find(const struct vst_trace *trace, uint32_t number);
/* Returns how many streams were declared. */
VST_API size_t vst_trace_stream_count(const struct vst_trace *trace);
/* index: less than vst_trace_stream_count(). */
VST_API const vst_trace_stream *
vst_trace_stream_at(const struct vst_trace *trace, size_t index);
/* Returns a stream of a device, or NULL if it was not declared. */
VST_API const vst_trace_stream *
vst_trace_stream_find(const struct vst_trace *trace, uint32_t device,
                      uint32_t number);

/* A span that was open when a call was made. */
typedef struct vst_device_cause {
    uint64_t serial; /* 0: there is none */
    vst_id id;
} vst_device_cause;

/* The call that launched a device's activity. */
typedef struct vst_device_launch {
    vst_id id;
    uint32_t kind;
    uint32_t thread; /* the calling thread's number */
    int64_t start_ns, end_ns;
    uint32_t number; /* number of this activity among those that the call
                        launched, from 0 */
} vst_device_launch;

/* An activity as a sink gets it (vst_sink.device). Activities come after the
 * threads of the window: first calls and overhead by thread and time, then the
 * others by device, stream and time. An activity that began before the range is
 * delivered whole. */
typedef struct vst_device_span {
    uint32_t kind; /* vst_activity_kind */
    uint32_t device;
    uint32_t stream;
    uint32_t context;
    vst_id id;
    uint32_t thread; /* for a call: the thread's number, 0: not in the trace */
    int64_t start_ns, end_ns;
    uint64_t correlation, external, bytes;
    uint32_t launched; /* for a call: how many kernels, copies and sets it
                          launched */
    const char *args;  /* JSON members, NULL if none; valid during the call */
    size_t args_len;
    /* The innermost operator and annotation around the call (this one, or the
     * one that launched this activity), if the sink takes spans. */
    vst_device_cause op, annotation;
    /* NULL if the trace does not have the launching call */
    const vst_device_launch *launch;
} vst_device_span;

#ifdef __cplusplus
}
#endif
#endif
