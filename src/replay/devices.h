/* What devices did in a window (VST_ESCAPE_DEVICE): collected before the
 * window's threads are replayed, because it was delivered late, by any thread
 * and in any order; delivered to the sink after them, sorted.
 *
 * Meanwhile it is found out which operator and annotation each call of a
 * runtime was made in. Where its own thread recorded the call, the matcher sees
 * what is open there. Of a call that another thread told, only the time is
 * known: the spans around that claim it, innermost first.
 *
 * Some 80 bytes an activity are kept, and no text. One thread at a time. */
#ifndef VST_REPLAY_DEVICES_H
#define VST_REPLAY_DEVICES_H

#include <vestige/device.h>

#include "base/map64.h"
#include "store/reader.h"

/* What a call may be made in. */
enum { VST_CAUSE_OPERATOR, VST_CAUSE_ANNOTATION, VST_CAUSES };

/* An activity. */
typedef struct vst__activity {
    int64_t start_ns, end_ns;
    uint64_t correlation, external, bytes;
    uint64_t place; /* in the file, of its attributes; 0: none */
    uint32_t stream, context;
    vst_id id;
    uint32_t thread;   /* of a call, else 0 */
    uint32_t segment;  /* of the window */
    uint32_t launched; /* of a call: how many; else which of them it is */
    uint16_t device;
    uint8_t kind;
    bool is_told;    /* of a call: by another thread than its own */
    uint32_t length; /* of its attributes, in bytes */
} vst__activity;

/* By whom the calls were claimed. Of those that were, next leads to the first
 * call behind them that was not. */
typedef struct vst__claims {
    vst_device_cause *causes;
    uint32_t *next;
} vst__claims;

/* All zero is none. */
typedef struct vst_devices {
    vst_trace *trace;
    const vst__segment *segments;
    int64_t shown[2];     /* from and to, of the window */
    vst__activity *items; /* calls and overhead first: see vst_device_span */
    size_t count, capacity;
    size_t calls;        /* of them */
    vst__map64 launches; /* collector and correlation -> 1 + index of a call */
    vst__claims claims[VST_CAUSES];
    unsigned char *cause_of; /* by definition id; VST_CAUSES: none */
    vst_id max;
    size_t at; /* the next that is delivered */
    char *text;
    size_t text_capacity;
} vst_devices;

/* Replaces what was collected by the activities of a window. */
vst_status vst__activities_collect(vst_devices *self, vst_trace *trace,
                                   const vst__window *window);
VST_COLD void vst__activities_claim(vst_devices *self, const vst_span *span);
/* What is open where the record of a call with this payload stands. */
void vst__activities_settle(vst_devices *self, const uint64_t *payload,
                            const vst_device_cause *causes);
/* Delivers some of them. *more: there are others. */
vst_status vst__activities_deliver(vst_devices *self, const vst_sink *sink,
                                   bool *more);
void vst__activities_free(vst_devices *self);

/* Which cause spans of this definition are; VST_CAUSES: none. */
static inline unsigned vst__activities_cause(const vst_devices *self, vst_id id)
{
    return id <= self->max ? self->cause_of[id] : (unsigned)VST_CAUSES;
}

/* A span on its way to the sink, which takes spans. */
static inline vst_status vst__sink_span(const vst_sink *sink,
                                        const vst_span *span)
{
    if (!VST_LIKELY(sink->devices == NULL))
        vst__activities_claim(sink->devices, span);
    return sink->span(sink->ctx, span);
}

#endif
