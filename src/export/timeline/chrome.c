/* The Chrome trace format, as torch.profiler writes it: one JSON object, its
 * keys in torch's order. This file writes what is around the events, process
 * after process; chrome_events.c writes the events of a replay, chrome_beside.c
 * everything else.
 *
 * White space follows every colon (HTA finds the rank by a regular expression
 * that wants it). One thread at a time. */
#include <stdlib.h>

#include <vestige/memory.h>
#include <vestige/trace.h>

#include "export/exporter.h"
#include "export/timeline/chrome.h"
#include "graph/graph.h"

/* ---- around the events -------------------------------------------------- */

void vst__chrome_put_value(vst__output *output, const char *json)
{
    size_t count = strlen(json);

    if (vst__json_is_value(json, count))
        vst__output_write(output, json, count);
    else
        vst__json_string(output, json, count);
}

static bool is_own_key(const char *key)
{
    static const char *const own[] = {
        "schemaVersion",   "deviceProperties",    "trace_id",    "host_name",
        "displayTimeUnit", "baseTimeNanoseconds", "traceEvents", "traceName",
    };

    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(key, own[i]) == 0)
            return true;
    return strncmp(key, VST_TIMELINE_INTERNAL, strlen(VST_TIMELINE_INTERNAL)) ==
           0;
}

/* The recording's own, unless the program gave one. */
static void put_trace_id(vst__output *output, const vst_trace *trace)
{
    static const char hex[] = "0123456789ABCDEF";
    const char *given =
        vst_trace_metadata(trace, VST_TIMELINE_INTERNAL "trace_id");
    const uint8_t *id = trace->header.trace_id;
    char text[34];

    if (given != NULL) {
        vst__chrome_put_value(output, given);
        return;
    }
    text[0] = text[33] = '"';
    for (size_t i = 0; i < 16; i++) {
        text[2 * i + 1] = hex[id[i] >> 4];
        text[2 * i + 2] = hex[id[i] & 15];
    }
    vst__output_write(output, text, sizeof text);
}

static bool has_memory(const vst__timeline *timeline)
{
    for (size_t i = 0; i < timeline->process_count; i++)
        if (vst_trace_has_memory(timeline->processes[i].trace))
            return true;
    return false;
}

static void put_metadata(vst__timeline *timeline)
{
    vst__output *output = timeline->output;
    const vst_trace *trace = timeline->processes[0].trace;
    const char *key, *json;

    for (size_t i = 0; (json = vst_trace_metadata_at(trace, i, &key)) != NULL;
         i++) {
        if (is_own_key(key))
            continue;
        vst__json_string(output, key, strlen(key));
        vst__output_text(output, ": ");
        vst__chrome_put_value(output, json);
        vst__output_text(output, ",\n");
    }
    if (has_memory(timeline) &&
        vst_trace_metadata(trace, "profile_memory") == NULL)
        vst__output_text(output, "\"profile_memory\": 1,\n");
    json = vst_trace_metadata(trace, "host_name");
    if (json != NULL) {
        vst__output_text(output, "\"host_name\": ");
        vst__chrome_put_value(output, json);
        vst__output_text(output, ",\n");
    }
}

static void put_head(vst__timeline *timeline)
{
    vst__output *output = timeline->output;

    vst__output_text(output, "{\n\"schemaVersion\": 1,\n"
                             "\"deviceProperties\": [");
    vst__chrome_put_properties(timeline);
    vst__output_text(output, "],\n\"trace_id\": ");
    put_trace_id(output, timeline->processes[0].trace);
    vst__output_text(output, ",\n");
    put_metadata(timeline);
    vst__output_text(output, "\"displayTimeUnit\": \"ms\",\n"
                             "\"baseTimeNanoseconds\": ");
    vst__json_put_i64(output, timeline->base_ns);
    vst__output_text(output, ",\n\"traceEvents\": [\n");
}

/* Programs add ts and dur as doubles and expect the sum before the end. */
enum { ROUNDING_NS = 2 };

static const char iteration_start[] = "Iteration Start: "; /* of a profiler */

/* The name that windows go by: that of the profiler in whose place the program
 * had us record, in quotes; NULL: our own. */
static const char *find_profiler(const vst_trace *trace)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ "
                                  "abcdefghijklmnopqrstuvwxyz";
    const char *json =
        vst_trace_metadata(trace, VST_TIMELINE_INTERNAL "profiler");
    size_t count =
        json != NULL && json[0] == '"' ? strspn(json + 1, letters) : 0;

    return count != 0 && strcmp(json + 1 + count, "\"") == 0 ? json : NULL;
}

static void put_profiler(vst__timeline *timeline)
{
    const char *quoted = vst__chrome_of(timeline)->profiler;

    if (quoted != NULL)
        vst__output_write(timeline->output, quoted + 1, strlen(quoted) - 2);
    else
        vst__output_text(timeline->output, "vestige");
}

/* A mark across the whole document; of several processes, across its own. */
static void put_mark(vst__timeline *timeline, const char *name, int64_t time_ns)
{
    vst__output *output = timeline->output;

    vst__output_text(output, ",\n{\"ph\": \"i\", \"cat\": \"Trace\", "
                             "\"s\": \"");
    vst__output_text(output, timeline->process_count > 1 ? "p" : "g");
    vst__output_text(output, "\", \"name\": \"");
    vst__output_text(output, name);
    if (name == iteration_start)
        put_profiler(timeline);
    vst__output_text(output, "\", \"pid\": ");
    vst__json_put_u64(output, timeline->process->pid);
    vst__output_text(output, ", \"tid\": ");
    vst__json_put_u64(output, timeline->process->windows_tid);
    vst__output_text(output, ", \"ts\": ");
    vst__json_put_us(output, vst__timeline_time(timeline, time_ns));
    vst__output_text(output, "}");
}

/* A stretch of recording, in the form that torch gives it. */
static void put_window(vst__timeline *timeline, const vst__window *window)
{
    vst__output *output = timeline->output;
    vst__clockmap *clock = &timeline->trace->clock;
    int64_t start_ns = vst__clockmap_to_ns(clock, window->first);
    int64_t end_ns = vst__clockmap_to_ns(clock, window->last);

    vst__output_text(output, ",\n{\"ph\": \"X\", \"cat\": \"Trace\", "
                             "\"name\": \"");
    put_profiler(timeline);
    vst__output_text(output, " (");
    vst__json_put_u64(output, window->number);
    vst__output_text(output, ")\", \"pid\": ");
    vst__json_put_u64(output, timeline->process->pid);
    vst__output_text(output, ", \"tid\": ");
    vst__json_put_u64(output, timeline->process->windows_tid);
    vst__output_text(output, ", \"ts\": ");
    vst__json_put_us(output, vst__timeline_time(timeline, start_ns));
    vst__output_text(output, ", \"dur\": ");
    vst__json_put_us(output, end_ns - start_ns);
    vst__output_text(output, ", \"args\": {\"Op count\": 0}}");
    if (vst__chrome_of(timeline)->profiler != NULL) {
        vst__chrome_put_windows_place(timeline);
        end_ns += ROUNDING_NS;
    }
    put_mark(timeline, iteration_start, start_ns);
    put_mark(timeline, "Record Window End", end_ns);
}

/* ---- the document ------------------------------------------------------- */

static vst_status write_process(vst__timeline *timeline,
                                vst__timeline_process *process,
                                const vst_export_options *options,
                                vst_error *error)
{
    vst_trace *trace = process->trace;
    uint64_t nodes;
    vst_sink sink;
    vst_status status;

    timeline->process = process;
    timeline->trace = trace;
    timeline->has_thread = false;
    process->steps_end_ns = INT64_MIN;
    status = vst__graph_count(trace, options->window, true, &nodes, error);
    if (status != VST_OK)
        return status;
    vst__chrome_of(timeline)->has_nodes = nodes != 0;
    vst__chrome_of(timeline)->profiler = find_profiler(trace);
    vst__chrome_of(timeline)->overloads =
        vst_trace_metadata(trace, VST_TIMELINE_INTERNAL "overloads") != NULL;
    status = vst__chrome_make_heads(timeline);
    if (status != VST_OK)
        return vst_error_set(error, status, 0, 0);
    vst__chrome_put_process(timeline);
    vst__chrome_sink(timeline, &sink);
    vst__timeline_watch(timeline, &sink);
    status = vst__timeline_replay(timeline, options, &sink, error);
    vst__timeline_end_devices(timeline);
    vst__chrome_free_heads(timeline);
    if (status == VST_OK)
        vst__timeline_put_flows(timeline);
    if (status == VST_OK) {
        status = vst__timeline_put_states(timeline);
        vst_error_set(error, status, 0, 0);
    }
    timeline->serials_before = timeline->serial_max;
    for (size_t i = 0; status == VST_OK && i < process->window_count; i++)
        put_window(timeline, &trace->windows[process->first_window + i]);
    return status;
}

static vst_status write_document(vst__timeline *timeline,
                                 const vst_export_options *options,
                                 const char *path, vst_error *error)
{
    vst_status status = VST_OK;

    put_head(timeline);
    for (size_t i = 0; status == VST_OK && i < timeline->process_count; i++)
        status =
            write_process(timeline, &timeline->processes[i], options, error);
    if (status != VST_OK)
        return status;
    status = vst__timeline_put_arrows(timeline);
    if (status != VST_OK)
        return vst_error_set(error, status, 0, 0);
    vst__output_text(timeline->output, "\n],\n\"traceName\": ");
    vst__json_string(timeline->output, path, strlen(path));
    vst__output_text(timeline->output, "\n}\n");
    return VST_OK;
}

static vst_status write_chrome(vst_trace *const *traces, size_t count,
                               const vst_export_options *options,
                               const char *path, vst__output *output,
                               vst_error *error)
{
    static const vst__drawing drawing = {
        .span = vst__chrome_write_span,
        .end = vst__chrome_put_end,
        .point = vst__chrome_put_point,
        .memory = vst__chrome_put_memory_instant,
        .state = vst__chrome_put_state,
        .lane = vst__chrome_put_lane,
        .task = vst__chrome_put_task,
        .stream = vst__chrome_put_stream,
        .activity = vst__chrome_put_activity,
        .annotated = vst__chrome_put_annotated,
        .number = vst__chrome_arg_number,
        .fraction = vst__chrome_arg_fraction,
        .definition = vst__chrome_arg_definition,
    };
    vst__chrome chrome = {.timeline = {.drawing = &drawing, .output = output}};
    vst__timeline *timeline = &chrome.timeline;
    vst_status status =
        vst__timeline_begin(timeline, traces, count, options->window);

    status = status == VST_OK ? write_document(timeline, options, path, error)
                              : vst_error_set(error, status, 0, 0);
    vst__timeline_end(timeline);
    return status;
}

const vst__exporter vst__exporter_chrome = {"chrome", ".json", write_chrome};
