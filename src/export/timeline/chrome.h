/* The inside of the Chrome exporter, shared by chrome.c (the document),
 * chrome_events.c (the events of a replay), chrome_devices.c (what devices did)
 * and chrome_beside.c (processes, threads, arrows and memory). The timeline
 * says which of them there are. One thread at a time. */
#ifndef VST_EXPORT_CHROME_H
#define VST_EXPORT_CHROME_H

#include "export/timeline/timeline.h"

/* How an event of one definition begins, up to the tid's value. */
typedef struct vst__chrome_head {
    char *bytes; /* NULL: not made yet */
    size_t count;
    size_t name_end;
    vst_definition_kind kind;
    bool is_step; /* of the program's, as its profiler counts them */
    int32_t line;
} vst__chrome_head;

typedef struct vst__chrome {
    vst__timeline timeline; /* first: a drawing is given only this */

    /* Of the process that is being replayed. */
    vst__chrome_head *heads;  /* one for each definition */
    vst__chrome_head unknown; /* for the id that lost its definition last */
    vst_id unknown_id;
    bool has_nodes;       /* of an execution trace */
    const char *profiler; /* whose place we took, in quotes; NULL: nobody's */
    bool overloads; /* operators are shown by the names of their overloads */

    /* Of the thread that is being replayed: the text between an event's head
     * and its time. Behind it the digits that times have in common while they
     * differ by less than VST_JSON_EIGHT nanoseconds. */
    char thread_text[48];
    size_t thread_count;
    uint64_t time_from; /* 0: there are no such digits */
    size_t time_count;  /* of the text with these digits */

    const char *between; /* arguments of a device's activity */
} vst__chrome;

static inline vst__chrome *vst__chrome_of(const vst__timeline *timeline)
{
    return (vst__chrome *)timeline;
}

/* ---- chrome.c ----------------------------------------------------------- */

/* A value that the program gave: as it is if it is JSON, else as text. */
void vst__chrome_put_value(vst__output *output, const char *json);

/* ---- chrome_events.c ---------------------------------------------------- */

/* The sink that writes a replay's events, each on a line of its own that begins
 * with a comma. */
void vst__chrome_sink(vst__timeline *timeline, vst_sink *sink);
vst_status vst__chrome_write_span(vst__timeline *timeline,
                                  const vst_span *span);
/* What clients call spans of this kind. */
const char *vst__chrome_category(vst_definition_kind kind);
/* Makes the text of a thread that is not the one before. */
void vst__chrome_set_thread(vst__timeline *timeline, uint32_t number);
/* Room for the heads of timeline->trace, and their end. */
vst_status vst__chrome_make_heads(vst__timeline *timeline);
void vst__chrome_free_heads(vst__timeline *timeline);

/* ---- chrome_devices.c --------------------------------------------------- */

/* What the document's head says of the devices of the first trace. */
void vst__chrome_put_properties(vst__timeline *timeline);
/* Names and places of the devices of timeline->process. */
void vst__chrome_put_devices(vst__timeline *timeline);
/* For the drawing. */
void vst__chrome_put_stream(vst__timeline *timeline, const char *name,
                            size_t name_len);
void vst__chrome_put_activity(vst__timeline *timeline,
                              const vst_device_span *span);
void vst__chrome_put_annotated(vst__timeline *timeline,
                               const vst__timeline_annotated *annotated);
void vst__chrome_arg_number(vst__timeline *timeline, const char *key,
                            int64_t value);
void vst__chrome_arg_fraction(vst__timeline *timeline, const char *key,
                              double value);
void vst__chrome_arg_definition(vst__timeline *timeline, const char *key,
                                vst_id id);

/* ---- chrome_beside.c ---------------------------------------------------- */

/* Names and places of timeline->process and its threads; the first event of the
 * document has no comma before it. */
void vst__chrome_put_process(vst__timeline *timeline);
/* The place of the windows' track once more: torch writes such an event between
 * a window and its marks, and clients count on the order. */
void vst__chrome_put_windows_place(vst__timeline *timeline);
/* A head with the overload's name behind the operator's, where the span has
 * one. The caller frees its bytes. */
vst_status vst__chrome_add_overload(const vst__chrome_head *head,
                                    const vst_span *span,
                                    vst__chrome_head *overloaded);
/* An event about a process, or about a thread of it, up to the value it tells.
 */
void vst__chrome_put_about(vst__timeline *timeline, const char *name,
                           uint32_t pid, uint32_t tid, const char *what);
/* The name of timeline->process, as JSON. */
void vst__chrome_put_name(vst__timeline *timeline);
void vst__chrome_put_end(vst__timeline *timeline, const vst__arrow_end *end);
void vst__chrome_put_lane(vst__timeline *timeline, uint32_t thread,
                          uint32_t tid, const char *name, size_t name_len);
void vst__chrome_put_task(vst__timeline *timeline, const vst__task_span *span);
void vst__chrome_put_point(vst__timeline *timeline, const char *name,
                           int64_t time_ns, uint64_t bytes);
void vst__chrome_put_memory_instant(vst__timeline *timeline, const char *name,
                                    const vst_memory_event *event,
                                    uint64_t size);

/* On the track of the thread's states. */
void vst__chrome_put_state(vst__timeline *timeline, const vst__state *state);

#endif
