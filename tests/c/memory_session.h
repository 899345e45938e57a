/* Records memory in a test: begin, let the program run, end, then read the
 * events. One test at a time, on one thread. */
#ifndef VST_TESTS_MEMORY_SESSION_H
#define VST_TESTS_MEMORY_SESSION_H

#include <stdlib.h>

#include <vestige/vestige.h>

#include "check.h"

static vst_session *memory_session;
static vst_trace *memory_trace; /* the last recording and its events */
static vst_memory_event *memory_events;
static size_t memory_count, memory_capacity;

static inline void memory_begin(const vst_memory_options *options)
{
    const vst_session_options session = {.path = NULL};

    if (vst_session_create(&session, &memory_session, NULL) != VST_OK ||
        vst_session_start(memory_session, NULL) != VST_OK)
        abort();
    CHECK_INT(
        vst_memory_start(vst_session_recording(memory_session), options, NULL),
        VST_OK);
}

static inline vst_status memory_keep(void *ctx, const vst_memory_event *event)
{
    (void)ctx;
    if (memory_count == memory_capacity) {
        memory_capacity = memory_capacity ? memory_capacity * 2 : 4096;
        memory_events =
            realloc(memory_events, memory_capacity * sizeof *memory_events);
        if (memory_events == NULL)
            abort();
    }
    memory_events[memory_count++] = *event;
    return VST_OK;
}

/* Ends the recording, and checks that no record was lost. */
static inline void memory_end(void)
{
    const vst_memory_sink sink = {.event = memory_keep};

    vst_memory_stop();
    vst_session_stop(memory_session);
    CHECK_INT(vst_session_lost(memory_session), 0);
    memory_count = 0;
    vst_trace_close(memory_trace);
    memory_trace = NULL;
    CHECK_INT(vst_session_open_trace(memory_session, &memory_trace, NULL),
              VST_OK);
    CHECK_INT(
        vst_trace_replay_memory(memory_trace, VST_WINDOW_ALL, &sink, NULL),
        VST_OK);
    vst_session_destroy(memory_session);
    memory_session = NULL;
}

static inline void memory_forget(void)
{
    vst_trace_close(memory_trace);
    memory_trace = NULL;
    free(memory_events);
    memory_events = NULL;
    memory_count = memory_capacity = 0;
}

#endif
