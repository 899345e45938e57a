/* A recording from start to file, through the registry, with tracers made here.
 * The exporters' reader reads the trace back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vestige/vestige.h>

#include "check.h"

/* ---- a tracer that notes what is called --------------------------------- */

typedef struct noting_tracer {
    vst_tracer base;
    vst_matcher *matcher;
} noting_tracer;

static char calls[1024];
static vst_id f_id, g_id;
static vst_recording *last_recording;

static void note(const char *what)
{
    if (calls[0])
        strcat(calls, " ");
    strcat(calls, what);
}

static void noting_stop(vst_tracer *tracer)
{
    (void)tracer;
    note("stop");
}

static vst_status noting_restart(vst_tracer *tracer)
{
    (void)tracer;
    note("restart");
    return VST_OK;
}

static void noting_gc(vst_tracer *tracer)
{
    (void)tracer;
    note("gc");
}

static vst_status noting_get_events(vst_tracer *tracer,
                                    const vst_time_converter *converter,
                                    const vst_compressed_event *enters,
                                    size_t count, int64_t end_time_ns,
                                    const vst_sink *sink)
{
    if (end_time_ns != VST_TIME_OPEN)
        note("get_events");
    return vst_matcher_feed(((noting_tracer *)tracer)->matcher, converter,
                            enters, count, end_time_ns, sink);
}

static void noting_destroy(vst_tracer *tracer)
{
    note("destroy");
    vst_matcher_destroy(((noting_tracer *)tracer)->matcher);
    free(tracer);
}

static const vst_tracer_ops noting_ops = {
    noting_stop, noting_restart, noting_gc, noting_get_events, noting_destroy};

static vst_id define(vst_recording *recording, const char *name)
{
    vst_definition definition = {.kind = VST_DEF_NATIVE,
                                 .name = name,
                                 .name_len = (uint32_t)strlen(name)};
    vst_id id;

    CHECK_INT(vst_recording_define_id(recording, &definition, &id), VST_OK);
    return id;
}

static vst_status noting_make(vst_recording *recording,
                              const vst_tracer_context *context,
                              vst_tracer **out)
{
    noting_tracer *tracer = calloc(1, sizeof *tracer);

    (void)context;
    note("make");
    tracer->base.ops = &noting_ops;
    last_recording = recording;
    f_id = define(recording, "f");
    g_id = define(recording, "g");
    *out = &tracer->base;
    return vst_matcher_create(&tracer->matcher);
}

static vst_status failing_make(vst_recording *recording,
                               const vst_tracer_context *context,
                               vst_tracer **out)
{
    (void)recording, (void)context, (void)out;
    return VST_E_TRACER;
}

/* ---- reading back ------------------------------------------------------- */

static vst_trace *reading;
static char spans[4096];

static vst_status note_span(void *ctx, const vst_span *span)
{
    const vst_definition *d = vst_trace_definition(reading, span->id);
    char text[64];

    (void)ctx;
    snprintf(text, sizeof text, "%.*s%s%s ", (int)d->name_len, d->name,
             span->flags & VST_SPAN_OPEN_AT_START ? "<" : "",
             span->flags & VST_SPAN_OPEN_AT_END ? ">" : "");
    strcat(spans, text);
    CHECK(span->end_ns >= span->start_ns);
    return VST_OK;
}

static const char *spans_of(vst_session *session, int window)
{
    vst_sink sink = {.span = note_span};

    spans[0] = 0;
    CHECK_INT(vst_session_open_trace(session, &reading, NULL), VST_OK);
    CHECK_INT(vst_trace_replay(reading, window, vst_session_tracer(session),
                               &sink, NULL),
              VST_OK);
    vst_trace_close(reading);
    return spans;
}

static vst_session *create(const char *path)
{
    vst_session_options options = {.path = path, .gc = true};
    vst_session *session = NULL;

    calls[0] = 0;
    CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK);
    return session;
}

static void call(vst_id id, vst_id inner)
{
    vst_record(VST_ENTER, id);
    if (inner)
        call(inner, 0);
    vst_record(VST_EXIT, id);
}

/* ---- tests -------------------------------------------------------------- */

static void a_registered_tracer_sees_the_whole_contract(void)
{
    vst_session *session;

    vst_tracer_register_with_context(noting_make);
    session = create(NULL);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    call(f_id, g_id);
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_TEXT(spans_of(session, VST_WINDOW_LAST), "g f ");
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    call(g_id, f_id);
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_TEXT(spans_of(session, VST_WINDOW_LAST), "f g ");
    CHECK_TEXT(spans_of(session, VST_WINDOW_ALL), "g f f g ");
    vst_session_destroy(session);
    CHECK_TEXT(calls, "make gc stop get_events restart stop get_events "
                      "get_events get_events destroy");
    vst_tracer_register_with_context(NULL);
}

static void with_nothing_registered_the_trace_is_empty_and_valid(void)
{
    vst_trace_info info;
    vst_session *session = create(NULL);
    vst_trace *trace;

    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_TEXT(spans_of(session, VST_WINDOW_LAST), "");
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.words, 0);
    CHECK_INT(info.windows, 1);
    vst_trace_close(trace);
    vst_session_destroy(session);
}

static void calls_open_at_stop_end_there(void)
{
    vst_session *session;

    vst_tracer_register_with_context(noting_make);
    session = create(NULL);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    vst_record(VST_ENTER, f_id);
    vst_record(VST_EXIT, g_id); /* was never entered */
    vst_record(VST_ENTER, g_id);
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_TEXT(spans_of(session, VST_WINDOW_LAST), "g> f> ");
    vst_session_destroy(session);
    vst_tracer_register_with_context(NULL);
}

static int64_t tenfold(void *ctx, vst_ticks ticks)
{
    (void)ctx;
    return (int64_t)ticks * 10;
}

static char timed[256];

static vst_status note_times(void *ctx, const vst_span *span)
{
    size_t n = strlen(timed);

    (void)ctx;
    snprintf(timed + n, sizeof timed - n, "%u:%lld..%lld ", span->id,
             (long long)span->start_ns, (long long)span->end_ns);
    return VST_OK;
}

static void events_are_timed_by_the_converter_they_are_given(void)
{
    vst_time_converter converter = {tenfold, NULL};
    vst_sink sink = {.span = note_times};
    vst_compressed_event events[] = {
        {.key = vst_trace_key_make(VST_EXIT, 9), .ticks = 1},
        {.key = vst_trace_key_make(VST_ENTER, 1), .ticks = 2},
        {.key = vst_trace_key_make(VST_ENTER, 2), .ticks = 3},
        {.key = vst_trace_key_make(VST_EXIT, 2), .ticks = 4},
        {.key = vst_trace_key_make(VST_ENTER, 3), .ticks = 5},
    };
    vst_session *session;
    vst_tracer *tracer;

    vst_tracer_register_with_context(noting_make);
    session = create(NULL);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    CHECK_INT(vst_session_stop(session), VST_OK);
    tracer = vst_session_tracer(session);
    timed[0] = 0;
    /* An exit that matches no call is dropped, in batches of any size; open
     * calls are closed at the end. */
    CHECK_INT(tracer->ops->get_events(tracer, &converter, events, 3,
                                      VST_TIME_OPEN, &sink),
              VST_OK);
    CHECK_INT(
        tracer->ops->get_events(tracer, &converter, events + 3, 2, 70, &sink),
        VST_OK);
    CHECK_TEXT(timed, "2:30..40 3:50..70 1:20..70 ");
    vst_session_destroy(session);
    vst_tracer_register_with_context(NULL);
}

static void a_tracer_that_cannot_start_leaves_nothing_running(void)
{
    vst_error error = {VST_OK, 0, 0};
    vst_session *session;

    vst_tracer_register_with_context(failing_make);
    session = create(NULL);
    CHECK_INT(vst_session_start(session, &error), VST_E_TRACER);
    CHECK_INT(error.status, VST_E_TRACER);
    CHECK(!vst_session_is_recording(session));
    vst_session_destroy(session);
    vst_tracer_register_with_context(noting_make);
    session = create(NULL);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    vst_session_destroy(session);
    vst_tracer_register_with_context(NULL);
}

static void only_one_session_records_at_a_time(void)
{
    vst_session_options options = {.path = "never-made.vst"};
    vst_session *second = NULL;
    vst_error error;
    vst_session *first = create(NULL);

    CHECK_INT(vst_session_start(first, NULL), VST_OK);
    CHECK_INT(vst_session_create(&options, &second, &error), VST_E_BUSY);
    CHECK(access("never-made.vst", F_OK) != 0);
    CHECK(vst_session_is_recording(first));
    vst_session_destroy(first);
}

static void an_existing_file_is_left_alone_unless_told_otherwise(void)
{
    char path[] = "/tmp/vestige-test-XXXXXX";
    int fd = mkstemp(path);
    vst_session_options options = {.path = path};
    vst_session *session;
    vst_error error;

    CHECK(write(fd, "mine", 4) == 4);
    close(fd);
    CHECK_INT(vst_session_create(&options, &session, &error), VST_E_EXISTS);
    CHECK_INT(error.sys_errno, EEXIST);
    options.overwrite = true;
    CHECK_INT(vst_session_create(&options, &session, &error), VST_OK);
    vst_session_destroy(session);
    unlink(path);
}

static void a_file_is_finished_clean_and_without_slack(void)
{
    char path[] = "/tmp/vestige-test-XXXXXX";
    vst_trace_info info;
    vst_trace *trace;
    vst_session *session;

    close(mkstemp(path));
    unlink(path);
    vst_tracer_register_with_context(noting_make);
    session = create(path);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    for (int i = 0; i < 500000; i++)
        call(f_id, 0);
    vst_session_destroy(session);
    CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK);
    vst_trace_get_info(trace, &info);
    CHECK(info.clean);
    CHECK(info.words >= 1000000 && info.words < 1000100);
    CHECK(info.bytes < 8 * info.words + 64 * 1024);
    vst_trace_close(trace);
    unlink(path);
    vst_tracer_register_with_context(NULL);
}

/* The thread got the last chunk of the file, and left the chunk empty. */
static void a_thread_that_recorded_nothing_leaves_the_file_clean(void)
{
    char path[] = "/tmp/vestige-test-XXXXXX";
    vst_trace_info info;
    vst_trace *trace;
    vst_session *session;

    close(mkstemp(path));
    unlink(path);
    session = create(path);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    CHECK(vst_thread_enter_free());
    vst_thread_release();
    vst_session_destroy(session);
    CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK);
    vst_trace_get_info(trace, &info);
    CHECK(info.clean);
    CHECK_INT(info.damaged_at, 0);
    CHECK_INT(info.words, 0);
    vst_trace_close(trace);
    unlink(path);
}

static void past_the_file_size_limit_records_are_lost_not_the_program(void)
{
    struct rlimit old, limit;
    char path[] = "/tmp/vestige-test-XXXXXX";
    vst_trace_info info;
    vst_trace *trace;
    vst_session *session;
    uint64_t lost;

    close(mkstemp(path));
    unlink(path);
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 256 * 1024;
    setrlimit(RLIMIT_FSIZE, &limit);
    vst_tracer_register_with_context(noting_make);
    session = create(path);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    for (int i = 0; i < 100000; i++)
        call(f_id, 0);
    CHECK_INT(vst_session_stop(session), VST_OK);
    lost = vst_session_lost(session);
    CHECK(lost > 0 && lost < 200000);
    vst_session_destroy(session);
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.lost, (long long)lost);
    CHECK(info.words > 10000);
    vst_trace_close(trace);
    unlink(path);
    vst_tracer_register_with_context(NULL);
}

/* A daemon closes descriptors that it did not open; then the number can belong
 * to a file of the program. */
static void a_file_of_the_program_under_our_number_is_left_alone(void)
{
    char path[] = "/tmp/vestige-test-XXXXXX", own[] = "/tmp/vestige-own-XXXXXX";
    vst_error error = {VST_OK, 0, 0};
    vst_trace_info info;
    vst_trace *trace;
    struct stat st;
    int number, fd;
    vst_session *session;

    close(mkstemp(path));
    unlink(path);
    number = dup(0);
    close(number);
    vst_tracer_register_with_context(noting_make);
    session = create(path);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    call(f_id, 0);
    close(number);
    fd = mkstemp(own);
    CHECK_INT(fd, number);
    CHECK_INT(write(fd, "mine", 4), 4);
    for (int i = 0; i < 100000; i++)
        call(f_id, 0);
    CHECK_INT(vst_session_finish(session, &error), VST_E_IO);
    CHECK_INT(error.sys_errno, EBADF);
    CHECK(vst_session_lost(session) > 100000);
    vst_session_destroy(session);
    CHECK_INT(fstat(fd, &st), 0);
    CHECK_INT(st.st_size, 4);
    close(fd);
    unlink(own);
    CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK);
    vst_trace_get_info(trace, &info);
    CHECK(info.words > 1000);
    vst_trace_close(trace);
    unlink(path);
    vst_tracer_register_with_context(NULL);
}

static void an_unwritable_place_is_an_error_with_errno(void)
{
    vst_session_options options = {.path = "/no/such/folder/t.vst"};
    vst_session *session;
    vst_error error = {VST_OK, 0, 0};

    CHECK_INT(vst_session_create(&options, &session, &error), VST_E_IO);
    CHECK_INT(error.sys_errno, ENOENT);
}

static vst_status note_memory_make(vst_recording *recording,
                                   const vst_tracer_context *context,
                                   vst_memory_tracer **out)
{
    (void)recording, (void)context, (void)out;
    note("memory make");
    return VST_E_NOMEM;
}

static void the_memory_tracer_answers_without_one_registered(void)
{
    vst_memory_tracer *tracer = NULL;
    vst_session *session = create(NULL);
    vst_recording *recording = vst_session_recording(session);

    calls[0] = 0;
    CHECK_INT(vst_memory_tracer_make(recording, &tracer), VST_OK);
    CHECK_INT(tracer->ops->start(tracer), VST_OK);
    tracer->ops->stop(tracer);
    CHECK_INT(tracer->ops->export_memory_history(tracer, "x.json", NULL),
              VST_OK);
    tracer->ops->destroy(tracer);
    CHECK(access("x.json", F_OK) != 0);
    vst_memory_tracer_register_with_context(note_memory_make);
    CHECK_INT(vst_memory_tracer_make(recording, &tracer), VST_E_NOMEM);
    CHECK_TEXT(calls, "memory make");
    vst_memory_tracer_register_with_context(NULL);
    vst_session_destroy(session);
}

int main(void)
{
    TEST(a_registered_tracer_sees_the_whole_contract);
    TEST(with_nothing_registered_the_trace_is_empty_and_valid);
    TEST(calls_open_at_stop_end_there);
    TEST(events_are_timed_by_the_converter_they_are_given);
    TEST(a_tracer_that_cannot_start_leaves_nothing_running);
    TEST(only_one_session_records_at_a_time);
    TEST(an_existing_file_is_left_alone_unless_told_otherwise);
    TEST(a_file_is_finished_clean_and_without_slack);
    TEST(a_thread_that_recorded_nothing_leaves_the_file_clean);
    TEST(past_the_file_size_limit_records_are_lost_not_the_program);
    TEST(a_file_of_the_program_under_our_number_is_left_alone);
    TEST(an_unwritable_place_is_an_error_with_errno);
    TEST(the_memory_tracer_answers_without_one_registered);
    return checks_end();
}
