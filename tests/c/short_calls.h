/* Recordings that leave out short calls, and a model of the spans that they
 * must have: the model sees every call as it is made, and removes short calls
 * from the tree itself. The model takes only one fact from the recorder: where
 * the chunk changed, because records of an earlier chunk stay. */
#ifndef VST_TESTS_SHORT_CALLS_H
#define VST_TESTS_SHORT_CALLS_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <vestige/vestige.h>

#include "check.h"
#include "fake_clock.h"

enum { MODEL_DEPTH = 64, MODEL_IDS = 16, SHORT_NS = 10000 };

typedef struct model_call {
    vst_id id;
    int64_t start_ns, end_ns;
    uint32_t depth;
    bool raised;
    /* Valid while the call is open: */
    unsigned chunk; /* the chunk that has the call's ENTER */
    bool stays;     /* the call stays, because a call inside it or another
                     * record stays */
} model_call;

typedef struct model {
    model_call *ended; /* the calls that stay, in the order of their ends */
    size_t count, capacity;
    model_call open[MODEL_DEPTH];
    uint32_t depth;
    uint64_t left_out;
    int64_t shortest_ns; /* calls shorter than this are left out; 0: all calls
                          * stay */
    unsigned chunk;      /* number of chunks that the thread has left */
    uint64_t *cursor;    /* the thread's position after the last record */
} model;

static vst_id model_ids[MODEL_IDS];
static vst_session *model_session;

static inline void model_begin(model *m, const vst_session_options *options)
{
    memset(m, 0, sizeof *m);
    m->shortest_ns = (int64_t)options->min_duration_ns;
    if (vst_session_create(options, &model_session, NULL) != VST_OK ||
        vst_session_start(model_session, NULL) != VST_OK)
        abort();
    for (int i = 0; i < MODEL_IDS; i++) {
        const char name = (char)('a' + i);
        vst_definition d = {
            .kind = VST_DEF_NATIVE, .name = &name, .name_len = 1};
        CHECK_INT(vst_recording_define_id(vst_session_recording(model_session),
                                          &d, &model_ids[i]),
                  VST_OK);
    }
}

static inline void model_free(model *m)
{
    free(m->ended);
}

/* Notes that the recorder has moved its cursor by `words` words for a
 * record. */
static inline void model_moved(model *m, ptrdiff_t words)
{
    if (vst_thread_buffer->cursor != m->cursor + words)
        m->chunk++;
    m->cursor = vst_thread_buffer->cursor;
}

static inline void model_enter(model *m, vst_id id)
{
    vst_record(VST_ENTER, id);
    model_moved(m, 1);
    m->open[m->depth] = (model_call){
        .id = id, .start_ns = fake_now(), .depth = m->depth, .chunk = m->chunk};
    m->depth++;
}

static inline void model_leave(model *m, vst_kind kind)
{
    model_call call = m->open[--m->depth];
    bool goes = !call.stays && call.chunk == m->chunk &&
                fake_now() - call.start_ns < m->shortest_ns;

    vst_record_end_of_call(kind, call.id);
    if (goes) {
        CHECK(vst_thread_buffer->cursor == m->cursor - 1);
        CHECK_INT(*vst_thread_buffer->cursor, 0);
        m->cursor--;
        m->left_out++;
        return;
    }
    model_moved(m, 1);
    for (uint32_t i = 0; i < m->depth; i++)
        m->open[i].stays = true;
    if (m->count == m->capacity) {
        m->capacity = m->capacity ? m->capacity * 2 : 1024;
        m->ended = realloc(m->ended, m->capacity * sizeof *m->ended);
        if (m->ended == NULL)
            abort();
    }
    call.end_ns = fake_now();
    call.raised = kind == VST_RAISE;
    m->ended[m->count++] = call;
}

/* Notes a record of `words` words that is not a call: all open calls stay. */
static inline void model_other(model *m, ptrdiff_t words)
{
    model_moved(m, words);
    for (uint32_t i = 0; i < m->depth; i++)
        m->open[i].stays = true;
}

/* ---- what was read ------------------------------------------------------- */

typedef struct model_read {
    vst_span *spans;
    size_t count, capacity;
    uint64_t unmatched;
    vst_trace_info info;
    uint64_t thread_left_out;
} model_read;

static inline vst_status model_keep(void *ctx, const vst_span *span)
{
    model_read *read = ctx;

    if (read->count == read->capacity) {
        read->capacity = read->capacity ? read->capacity * 2 : 1024;
        read->spans =
            realloc(read->spans, read->capacity * sizeof *read->spans);
        if (read->spans == NULL)
            abort();
    }
    read->spans[read->count] = *span;
    read->spans[read->count].start_ns -= FAKE_EPOCH_NS;
    read->spans[read->count++].end_ns -= FAKE_EPOCH_NS;
    return VST_OK;
}

/* Takes ownership of the trace. */
static inline model_read model_replay(vst_trace *trace)
{
    model_read read = {0};
    vst_sink sink = {.ctx = &read, .span = model_keep};

    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    read.unmatched = vst_trace_unmatched_exits(trace);
    vst_trace_get_info(trace, &read.info);
    for (size_t i = 0; i < vst_trace_thread_count(trace); i++)
        read.thread_left_out += vst_trace_thread_at(trace, i)->left_out;
    vst_trace_close(trace);
    return read;
}

static inline bool model_is(const vst_span *span, const model_call *call)
{
    return span->id == call->id && span->end_ns == call->end_ns &&
           span->depth == call->depth &&
           !(span->flags & VST_SPAN_RAISED) == !call->raised &&
           (span->flags & VST_SPAN_OPEN_AT_START ||
            span->start_ns == call->start_ns);
}

/* Checks a running recording: the calls that have ended are the first calls to
 * end in the model, and the open calls were open at some time. */
static inline void model_check_beginning(const model *m, const model_read *read)
{
    size_t ended = 0;

    for (size_t i = 0; i < read->count; i++) {
        if (read->spans[i].flags & VST_SPAN_OPEN_AT_END)
            continue;
        if (!CHECK(ended < m->count &&
                   model_is(&read->spans[i], &m->ended[ended])))
            return;
        ended++;
    }
    CHECK_INT(read->unmatched, 0);
}

#endif
