/* The tracers that do nothing, used when none is registered. Any thread. */
#include "record/tracer_noop.h"

static void noop_ignore(vst_tracer *tracer)
{
    (void)tracer;
}

static vst_status noop_restart(vst_tracer *tracer)
{
    (void)tracer;
    return VST_OK;
}

static vst_status no_events(vst_tracer *tracer,
                            const vst_time_converter *converter,
                            const vst_compressed_event *enters, size_t count,
                            int64_t end_time_ns, const vst_sink *sink)
{
    (void)tracer, (void)converter, (void)enters, (void)count;
    (void)end_time_ns, (void)sink;
    return VST_OK;
}

static vst_status ignore_memory_start(vst_memory_tracer *tracer)
{
    (void)tracer;
    return VST_OK;
}

static void ignore_memory(vst_memory_tracer *tracer)
{
    (void)tracer;
}

static vst_status export_nothing(vst_memory_tracer *tracer, const char *path,
                                 vst_error *error)
{
    (void)tracer, (void)path, (void)error;
    return VST_OK;
}

static const vst_tracer_ops noop_ops = {
    .stop = noop_ignore,
    .restart = noop_restart,
    .register_gc_callback = noop_ignore,
    .get_events = no_events,
    .destroy = noop_ignore,
};

static const vst_memory_tracer_ops noop_memory_ops = {
    .start = ignore_memory_start,
    .stop = ignore_memory,
    .export_memory_history = export_nothing,
    .destroy = ignore_memory,
};

vst_tracer vst__tracer_noop = {&noop_ops};
vst_memory_tracer vst__memory_tracer_noop = {&noop_memory_ops};
