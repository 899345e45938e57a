/* The events of the Chrome trace format: what chrome.c, which writes what is
 * around them, shares with chrome_events.c. One thread at a time. */
#ifndef VST_EXPORT_CHROME_EVENTS_H
#define VST_EXPORT_CHROME_EVENTS_H

#include "export/timeline/drawing.h"

typedef struct vst__chrome {
    vst__drawing drawing; /* first: a format is given only this */
    bool any;             /* there was an event already */
    const char *profiler; /* whose place we took, in quotes; NULL: nobody's */

    /* The lane of the last event: the text between an event's head and its
     * time. Behind it the digits that times have in common while they differ by
     * less than VST_JSON_EIGHT nanoseconds. */
    bool has_tid;
    int64_t tid;
    char tid_text[48];
    size_t tid_count;
    uint64_t time_from; /* 0: there are no such digits */
    size_t time_count;  /* of the text with these digits */
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
