/* For tests of records of memory: a session on an unlinked file, and the events
 * of its history. One test at a time. */
#ifndef VST_TESTS_MEMORY_MODEL_H
#define VST_TESTS_MEMORY_MODEL_H

#include <stdlib.h>

#include <vestige/vestige.h>

#include "check.h"

typedef struct heard {
    vst_memory_event *events;
    size_t count, capacity;
    vst_loss losses[64];
    size_t loss_count;
} heard;

static inline vst_status hear_event(void *ctx, const vst_memory_event *event)
{
    heard *all = ctx;

    if (all->count == all->capacity) {
        all->capacity = all->capacity != 0 ? all->capacity * 2 : 64;
        all->events = realloc(all->events, all->capacity * sizeof *all->events);
    }
    all->events[all->count++] = *event;
    return VST_OK;
}

static inline vst_status hear_loss(void *ctx, const vst_loss *loss)
{
    heard *all = ctx;

    if (all->loss_count < 64)
        all->losses[all->loss_count++] = *loss;
    return VST_OK;
}

static inline void heard_free(heard *all)
{
    free(all->events);
    memset(all, 0, sizeof *all);
}

static inline vst_status hear_trace(vst_trace *trace, int window, heard *all)
{
    vst_memory_sink sink = {.ctx = all, .event = hear_event, .loss = hear_loss};
    vst_error error;

    memset(all, 0, sizeof *all);
    return vst_trace_replay_memory(trace, window, &sink, &error);
}

static inline vst_session *session_begin(const vst_session_options *options)
{
    static const vst_session_options plain = {0};
    vst_session *session;
    vst_error error;

    CHECK_INT(vst_session_create(options != NULL ? options : &plain, &session,
                                 &error),
              VST_OK);
    CHECK_INT(vst_session_start(session, &error), VST_OK);
    return session;
}

/* Reads the last window that the session recorded so far. */
static inline void hear_session(vst_session *session, heard *all)
{
    vst_trace *trace;
    vst_error error;

    CHECK_INT(vst_session_open_trace(session, &trace, &error), VST_OK);
    CHECK_INT(hear_trace(trace, VST_WINDOW_LAST, all), VST_OK);
    vst_trace_close(trace);
}

static inline uintptr_t fake_address(unsigned number)
{
    return 0x7f0000000000u + (uintptr_t)number * 16;
}

static inline void allocate(unsigned number, size_t size, vst_stack_id stack)
{
    vst_record_alloc(VST_MEMORY_MALLOC, fake_address(number), size, stack, 0,
                     vst_clock_ticks());
}

static inline void release(unsigned number)
{
    vst_record_free(VST_MEMORY_FREE, fake_address(number), 0,
                    vst_clock_ticks());
}

#endif
