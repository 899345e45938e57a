/* Activities of devices in a window (VST_ESCAPE_DEVICE). They are collected
 * before the window's threads are replayed, because any thread delivers them,
 * late and in any order; and they are delivered to the sink after the threads,
 * sorted. In between, this file finds the operator and annotation in which each
 * call of a runtime was made. If the call's own thread recorded it, the matcher
 * knows which are open there. If another thread recorded it, only the time is
 * known: the spans around that time claim the call, innermost first. Takes
 * about 80 bytes for each activity, and keeps no text. One thread at a time. */
#ifndef VST_REPLAY_DEVICES_H
#define VST_REPLAY_DEVICES_H

#include <vestige/device.h>

#include "base/map64.h"
#include "replay/sink.h"
#include "store/reader.h"

/* Kinds of spans in which a call may be made. */
enum { VST_CAUSE_OPERATOR, VST_CAUSE_ANNOTATION, VST_CAUSES };

/* An activity. */
typedef struct vst__activity {
    int64_t start_ns, end_ns;
    uint64_t correlation, external, bytes;
    uint64_t place; /* position of its attributes in the file; 0 if none */
    uint32_t stream, context;
    vst_id id;
    uint32_t thread;  /* for a call: its thread; else 0 */
    uint32_t segment; /* segment of the window */
    /* for a call: how many works it launched; else which of them this is */
    uint32_t launched;
    uint16_t device;
    uint8_t kind;
    /* delivered by another thread than the one that made the call */
    bool is_delivered_by_other;
    uint32_t length; /* bytes of its attributes */
} vst__activity;

/* Who claimed each call. For a claimed call, `next` leads to the first later
 * call that was not claimed. */
typedef struct vst__claims {
    vst_device_cause *causes;
    uint32_t *next;
} vst__claims;

/* All zero: no devices. */
typedef struct vst_devices {
    vst_trace *trace;
    const vst__segment *segments;
    int64_t shown[2];     /* start and end of the window's range */
    vst__activity *items; /* calls and overhead first, see vst_device_span */
    size_t count, capacity;
    size_t calls;        /* number of calls */
    vst__map64 launches; /* collector and correlation -> 1 + index of a call */
    vst__claims claims[VST_CAUSES];
    unsigned char *cause_of; /* by definition id; VST_CAUSES if it is none */
    vst_id max;
    size_t at; /* the activity that is delivered next */
    char *text;
    size_t text_capacity;
} vst_devices;

/* Replaces the collected activities by those of a window. */
vst_status vst__activities_collect(vst_devices *self, vst_trace *trace,
                                   const vst__window *window);
VST_COLD void vst__activities_claim(vst_devices *self, const vst_span *span);
/* Notes the operator and annotation that are open at the record of a call with
 * this payload. */
void vst__activities_note_cause(vst_devices *self, const uint64_t *payload,
                                const vst_device_cause *causes);
/* Delivers some activities. *more: others follow. */
vst_status vst__activities_deliver(vst_devices *self, const vst_sink *sink,
                                   bool *more);
void vst__activities_free(vst_devices *self);

/* Returns which cause spans of this definition are; VST_CAUSES if they are
 * none. */
static inline unsigned vst__activities_cause(const vst_devices *self, vst_id id)
{
    return id <= self->max ? self->cause_of[id] : (unsigned)VST_CAUSES;
}

/* Passes a span to the sink, which takes spans. */
static inline vst_status vst__sink_span(const vst_sink *sink,
                                        const vst_span *span)
{
    struct vst_devices *devices = vst__sink_inside(sink)->devices;

    if (!VST_LIKELY(devices == NULL))
        vst__activities_claim(devices, span);
    return sink->span(sink->ctx, span);
}

#endif
