/* Shared by chrome.c, which writes everything around the events of a Chrome
 * trace, and chrome_events.c, which writes the events. One thread at a time. */
#ifndef VST_EXPORT_CHROME_EVENTS_H
#define VST_EXPORT_CHROME_EVENTS_H

#include "export/timeline/drawing.h"

typedef struct vst__chrome {
    vst__drawing drawing; /* must be first: a format gets a pointer to it */
    bool any;             /* an event was written */
    /* the profiler that we replace, in quotes; NULL: none */
    const char *profiler;

    /* The lane of the last event, and the text between an event's head and its
     * time. This text ends with the digits that times have in common while they
     * differ by less than VST_JSON_EIGHT nanoseconds. */
    bool has_tid;
    int64_t tid;
    char tid_text[48];
    size_t tid_count;
    uint64_t time_from; /* the time of these digits; 0: there are none */
    size_t time_count;  /* length of the text including these digits */
} vst__chrome;

static inline vst__chrome *vst__chrome_of(vst__drawing *drawing)
{
    return (vst__chrome *)drawing;
}

void vst__chrome_span(vst__drawing *drawing, const vst__drawn_span *span);
void vst__chrome_instant(vst__drawing *drawing,
                         const vst__drawn_instant *instant);
void vst__chrome_counter(vst__drawing *drawing, vst__label *label, uint32_t tid,
                         int64_t time_ns, const vst__arg *value);
void vst__chrome_arrow(vst__drawing *drawing, const vst__arrow *arrow);

#endif
