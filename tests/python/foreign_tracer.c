/* A tracer that is not Python's, for test_registry.py. Counts the core's calls
 * of the tracer, and records a span whenever the tracer is made, restarted and
 * stopped. Uses only the public headers and the table of <vestige/api.h>.
 * Called with the GIL held, except get_events. */
#include <stdlib.h>

#include <vestige/api.h>

typedef struct foreign_calls {
    int make, stop, restart, register_gc_callback, get_events, destroy;
} foreign_calls;

typedef struct foreign_tracer {
    vst_tracer base;
    vst_matcher *matcher;
    vst_id outer, inner;
} foreign_tracer;

static const vst_api *api;
static vst_tracer_make_with_context_fn before; /* the tracer that was registered
                                                * before */
static foreign_calls calls;
static int fail_next; /* whether make or restart fails */

static vst_id define(vst_recording *recording, const char *name)
{
    vst_definition definition = {.kind = VST_DEF_NATIVE, .name = name};
    vst_id id = 0;

    while (name[definition.name_len])
        definition.name_len++;
    return api->recording_define_id(recording, &definition, &id) == VST_OK ? id
                                                                           : 0;
}

static void work(const foreign_tracer *tracer)
{
    api->record(VST_ENTER, tracer->outer);
    api->record(VST_ENTER, tracer->inner);
    api->record(VST_RAISE, tracer->inner);
    api->record(VST_EXIT, tracer->outer);
}

static void stop(vst_tracer *base)
{
    calls.stop++;
    api->record(VST_ENTER, ((foreign_tracer *)base)->inner);
}

static vst_status restart(vst_tracer *base)
{
    calls.restart++;
    if (fail_next)
        return VST_E_TRACER;
    work((foreign_tracer *)base);
    return VST_OK;
}

static void register_gc_callback(vst_tracer *base)
{
    (void)base;
    calls.register_gc_callback++;
}

static vst_status get_events(vst_tracer *base,
                             const vst_time_converter *converter,
                             const vst_compressed_event *enters, size_t count,
                             int64_t end_time_ns, const vst_sink *sink)
{
    foreign_tracer *tracer = (foreign_tracer *)base;

    calls.get_events++;
    return api->matcher_feed(tracer->matcher, converter, enters, count,
                             end_time_ns, sink);
}

static void destroy(vst_tracer *base)
{
    foreign_tracer *tracer = (foreign_tracer *)base;

    calls.destroy++;
    api->matcher_destroy(tracer->matcher);
    free(tracer);
}

static const vst_tracer_ops ops = {
    .stop = stop,
    .restart = restart,
    .register_gc_callback = register_gc_callback,
    .get_events = get_events,
    .destroy = destroy,
};

static vst_status make(vst_recording *recording,
                       const vst_tracer_context *context, vst_tracer **out)
{
    foreign_tracer *tracer = calloc(1, sizeof *tracer);

    (void)context;
    calls.make++;
    if (fail_next || !tracer ||
        api->matcher_create(&tracer->matcher) != VST_OK) {
        free(tracer);
        return VST_E_TRACER;
    }
    tracer->base.ops = &ops;
    tracer->outer = define(recording, "foreign outer");
    tracer->inner = define(recording, "foreign inner");
    work(tracer);
    *out = &tracer->base;
    return VST_OK;
}

/* ---- for the test ------------------------------------------------------ */

size_t foreign_begin(const vst_api *table)
{
    api = table;
    before = api->tracer_registered();
    calls = (foreign_calls){0};
    fail_next = 0;
    api->tracer_register_with_context(make);
    return api->size;
}

void foreign_register_nothing(void)
{
    api->tracer_register_with_context(NULL);
}

/* Returns 1 if the tracer of before is registered again. */
int foreign_end(void)
{
    api->tracer_register_with_context(before);
    return before != NULL && api->tracer_registered() == before;
}

void foreign_fail_next(int fail)
{
    fail_next = fail;
}

foreign_calls *foreign_get_calls(void)
{
    return &calls;
}
