/* The registry: the context that a tracer gets, with both ways of registering;
 * and sinks of events, which need no tracer. */
#include <vestige/vestige.h>

#include "check.h"
#include "replay/replay.h"

typedef struct made {
    vst_tracer base; /* first */
    vst_session *session;
    const void *options;
} made;

static void stop(vst_tracer *tracer)
{
    (void)tracer;
}

static vst_status restart(vst_tracer *tracer)
{
    (void)tracer;
    return VST_OK;
}

static const vst_tracer_ops ops = {
    .stop = stop, .restart = restart, .destroy = stop};
static made tracer;
static int wrapped;

static vst_status make(vst_recording *recording,
                       const vst_tracer_context *context, vst_tracer **out)
{
    CHECK(recording != NULL);
    tracer = (made){{&ops}, context->session, context->options};
    *out = &tracer.base;
    return VST_OK;
}

static void start_one(const void *options)
{
    const vst_session_options with = {.tracer_options = options};
    vst_session *session;

    tracer = (made){0};
    CHECK_INT(vst_session_create(&with, &session, NULL), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    CHECK(tracer.session == NULL || tracer.session == session);
    CHECK(tracer.session == NULL ||
          vst_session_tracer(session) == &tracer.base);
    vst_session_destroy(session);
}

static void a_tracer_is_made_with_its_session_and_its_options(void)
{
    const int options = 7;

    vst_tracer_register_with_context(make);
    start_one(&options);
    CHECK(tracer.session != NULL);
    CHECK(tracer.options == &options);
    start_one(NULL);
    CHECK(tracer.session != NULL);
    CHECK(tracer.options == NULL);
    vst_tracer_register_with_context(NULL);
    start_one(&options);
    CHECK(tracer.session == NULL);
    CHECK(vst_tracer_registered() == NULL);
}

static vst_tracer_make_with_context_fn inner;

static vst_status wrap(vst_recording *recording,
                       const vst_tracer_context *context, vst_tracer **out)
{
    wrapped++;
    return inner(recording, context, out);
}

static void a_tracer_may_wrap_the_registered_one(void)
{
    const int options = 8;

    vst_tracer_register_with_context(make);
    inner = vst_tracer_registered();
    CHECK(inner != NULL);
    vst_tracer_register_with_context(wrap);
    CHECK(vst_tracer_registered() == wrap);
    start_one(&options);
    CHECK_INT(wrapped, 1);
    CHECK(tracer.options == &options);
    vst_tracer_register_with_context(inner); /* restores the registration */
    start_one(&options);
    CHECK_INT(wrapped, 1);
    CHECK(tracer.options == &options);
    vst_tracer_register_with_context(NULL);
}

/* ---- memory tracers ----------------------------------------------------- */

static const void *memory_options;
static vst_session *memory_session;

static vst_status start_memory(vst_memory_tracer *base)
{
    (void)base;
    return VST_OK;
}

static void stop_memory(vst_memory_tracer *base)
{
    (void)base;
}

static const vst_memory_tracer_ops memory_ops = {
    .start = start_memory, .stop = stop_memory, .destroy = stop_memory};
static vst_memory_tracer memory_tracer = {&memory_ops};

static vst_status make_memory(vst_recording *recording,
                              const vst_tracer_context *context,
                              vst_memory_tracer **out)
{
    (void)recording;
    memory_session = context->session;
    memory_options = context->options;
    *out = &memory_tracer;
    return VST_OK;
}

static void so_is_a_memory_tracer(void)
{
    const int calls = 1, memory = 2;
    const vst_session_options options = {.memory = true,
                                         .tracer_options = &calls,
                                         .memory_tracer_options = &memory};
    vst_session *session;

    vst_memory_tracer_register_with_context(make_memory);
    CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    CHECK(memory_session == session);
    CHECK(memory_options == &memory);
    vst_session_destroy(session);
    vst_memory_tracer_register_with_context(NULL);
}

/* ---- events ------------------------------------------------------------- */

typedef struct taken {
    size_t readings, batches, enters, exits, ends;
} taken;

static vst_status take(void *ctx, const vst_time_converter *converter,
                       const vst_compressed_event *events, size_t count,
                       int64_t end_time_ns)
{
    taken *self = ctx;

    self->readings += events == NULL && end_time_ns == VST_TIME_OPEN;
    self->batches += count != 0;
    self->ends += end_time_ns != VST_TIME_OPEN;
    for (size_t i = 0; i < count; i++) {
        CHECK(converter->to_ns(converter->ctx, events[i].ticks) > 0);
        self->enters += vst_trace_key_kind(events[i].key) == VST_ENTER;
        self->exits += vst_trace_key_kind(events[i].key) == VST_EXIT;
    }
    return VST_OK;
}

static vst_status give_up(void *ctx, const vst_time_converter *converter,
                          const vst_compressed_event *events, size_t count,
                          int64_t end_time_ns)
{
    (void)ctx, (void)converter, (void)events, (void)end_time_ns;
    return count != 0 ? VST_E_CANCELLED : VST_OK;
}

static void a_sink_of_events_gets_what_a_tracer_would(void)
{
    const vst_session_options options = {0};
    const vst_definition definition = {
        .kind = VST_DEF_PYTHON, .name_len = 1, .name = "f"};
    vst_session *session;
    vst_trace *trace;
    vst_error error;
    taken got = {0};
    vst_id id;

    CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK);
    CHECK_INT(vst_recording_define_id(vst_session_recording(session),
                                      &definition, &id),
              VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    for (int i = 0; i < 5000; i++) {
        vst_record(VST_ENTER, id);
        vst_record(VST_EXIT, id);
    }
    vst_session_stop(session);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    CHECK_INT(vst__trace_replay_events(trace, VST_WINDOW_ALL,
                                       &(vst_event_sink){&got, take}, &error),
              VST_OK);
    CHECK_INT(got.readings, 1);
    CHECK_INT(got.enters, 5000);
    CHECK_INT(got.exits, 5000);
    CHECK_INT(got.ends, 1);
    CHECK(got.batches > 1);
    CHECK_INT(vst__trace_replay_events(trace, VST_WINDOW_ALL,
                                       &(vst_event_sink){NULL, give_up},
                                       &error),
              VST_E_CANCELLED);
    CHECK_INT(error.status, VST_E_CANCELLED);
    vst_trace_close(trace);
    vst_session_destroy(session);
}

int main(void)
{
    TEST(a_tracer_is_made_with_its_session_and_its_options);
    TEST(a_tracer_may_wrap_the_registered_one);
    TEST(so_is_a_memory_tracer);
    TEST(a_sink_of_events_gets_what_a_tracer_would);
    return checks_end();
}
