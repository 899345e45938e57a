/* The inside of the Chrome exporter, shared by chrome.c (the document) and
 * chrome_events.c (the events of a replay). One thread at a time. */
#ifndef VST_EXPORT_CHROME_H
#define VST_EXPORT_CHROME_H

#include "export/json.h"
#include "export/output.h"
#include "replay/replay.h"

/* How an event of one definition begins, up to the tid's value. */
typedef struct vst__chrome_head {
    char *bytes; /* NULL: not made yet */
    size_t count;
    vst_definition_kind kind;
} vst__chrome_head;

/* A thread as the document shows it. */
typedef struct vst__chrome_track {
    uint32_t tid;
    bool shown; /* recorded something in the windows exported */
} vst__chrome_track;

typedef struct vst__chrome {
    vst_trace *trace;
    vst__output *output;
    int64_t base_ns;      /* what ts counts from */
    uint32_t windows_tid; /* the track of the windows themselves */

    vst__chrome_track *tracks; /* one for each of the trace's threads */
    vst__chrome_head *heads;   /* one for each definition */
    vst__chrome_head unknown;  /* for the id that lost its definition last */
    vst_id unknown_id;

    /* The thread that is being replayed: its number, and the text between an
     * event's head and its time. */
    bool has_thread;
    uint32_t thread;
    char thread_text[48];
    size_t thread_count;
} vst__chrome;

/* The sink that writes a replay's events, each on a line of its own that begins
 * with a comma. */
void vst__chrome_sink(vst__chrome *chrome, vst_sink *sink);
void vst__chrome_free_heads(vst__chrome *chrome);

#endif
