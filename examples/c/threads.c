/* A C program without Python: it registers a tracer of its own, records spans
 * on several threads, and writes a trace that Perfetto opens.
 *
 *   cc threads.c $(pkg-config --cflags --libs vestige) -o threads
 *   ./threads threads.json.gz
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vestige/vestige.h>

enum { THREADS = 4, ROUNDS = 1000 };

/* ---- the tracer -------------------------------------------------------- */

typedef struct my_tracer {
    vst_tracer base; /* must be the first member */
    vst_matcher *matcher;
} my_tracer;

static vst_id work_id, step_id;

static vst_id define(vst_recording *recording, const char *name)
{
    vst_definition definition = {
        .kind = VST_DEF_NATIVE,
        .name = name,
        .name_len = (uint32_t)strlen(name),
        .file = __FILE__,
        .file_len = sizeof __FILE__ - 1,
    };
    vst_id id = 0;

    vst_recording_define_id(recording, &definition, &id);
    return id;
}

static void stop(vst_tracer *tracer)
{
    (void)tracer; /* threads notice the end of the recording when they record */
}

static vst_status restart(vst_tracer *tracer)
{
    (void)tracer;
    return VST_OK;
}

static void register_gc_callback(vst_tracer *tracer)
{
    (void)tracer; /* C has no garbage collector */
}

static vst_status get_events(vst_tracer *tracer,
                             const vst_time_converter *converter,
                             const vst_compressed_event *enters, size_t count,
                             int64_t end_time_ns, const vst_sink *sink)
{
    return vst_matcher_feed(((my_tracer *)tracer)->matcher, converter, enters,
                            count, end_time_ns, sink);
}

static void destroy(vst_tracer *tracer)
{
    vst_matcher_destroy(((my_tracer *)tracer)->matcher);
    free(tracer);
}

static const vst_tracer_ops my_ops = {stop, restart, register_gc_callback,
                                      get_events, destroy};

static vst_status make(vst_recording *recording,
                       const vst_tracer_context *context, vst_tracer **out)
{
    my_tracer *tracer = calloc(1, sizeof *tracer);

    (void)context;
    if (tracer == NULL)
        return VST_E_NOMEM;
    tracer->base.ops = &my_ops;
    work_id = define(recording, "work");
    step_id = define(recording, "step");
    *out = &tracer->base;
    return vst_matcher_create(&tracer->matcher);
}

/* ---- the program ------------------------------------------------------- */

static double work(double x)
{
    if (vst_thread_enter_free())
        vst_record(VST_ENTER, work_id);
    for (int i = 0; i < ROUNDS; i++) {
        vst_record(VST_ENTER, step_id);
        x += x / (i + 1);
        vst_record(VST_EXIT, step_id);
    }
    vst_record(VST_EXIT, work_id);
    return x;
}

static void *thread_main(void *argument)
{
    double *x = argument;

    *x = work(*x);
    return NULL;
}

static int fail(const char *what, vst_status status)
{
    fprintf(stderr, "%s: %s\n", what, vst_status_string(status));
    return 1;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "threads.json.gz";
    pthread_t threads[THREADS];
    double values[THREADS];
    vst_session_options options = {.path = NULL};
    vst_export_options export_options = {.window = VST_WINDOW_LAST};
    vst_session *session;
    vst_trace *trace;
    vst_status status;

    vst_tracer_register_with_context(make);
    if ((status = vst_session_create(&options, &session, NULL)) != VST_OK ||
        (status = vst_session_start(session, NULL)) != VST_OK)
        return fail("start", status);
    for (int i = 0; i < THREADS; i++) {
        values[i] = i;
        pthread_create(&threads[i], NULL, thread_main, &values[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    vst_session_stop(session);

    if ((status = vst_session_open_trace(session, &trace, NULL)) != VST_OK)
        return fail("open", status);
    status = vst_trace_export(trace, path, &export_options, NULL);
    vst_trace_close(trace);
    vst_session_destroy(session);
    if (status != VST_OK)
        return fail(path, status);
    printf("%d threads, %d spans: %s\n", THREADS, THREADS * (ROUNDS + 1), path);
    return 0;
}
