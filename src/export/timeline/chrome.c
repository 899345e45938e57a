/* The Chrome trace format, in the form of torch.profiler: one JSON object, its
 * keys in torch's order. This file writes everything around the events, and the
 * windows; chrome_events.c writes the events.
 *
 * White space follows every colon (HTA finds the rank with a regular expression
 * that needs it). One thread at a time. */
#include <vestige/memory.h>

#include "export/exporter.h"
#include "export/timeline/chrome_events.h"
#include "store/reader.h"

/* ---- around the events --------------------------------------------------- */

/* Writes a value that the program gave: unchanged if it is JSON, else as text.
 */
static void chrome_put_value(vst__output *output, const char *json)
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
    return strncmp(key, VST_DRAWING_INTERNAL, strlen(VST_DRAWING_INTERNAL)) ==
           0;
}

/* Writes the recording's id, unless the program gave one. */
static void put_trace_id(vst__output *output, const vst_trace *trace)
{
    static const char hex[] = "0123456789ABCDEF";
    const char *given =
        vst_trace_metadata(trace, VST_DRAWING_INTERNAL "trace_id");
    const uint8_t *id = trace->header.trace_id;
    char text[34];

    if (given != NULL) {
        chrome_put_value(output, given);
        return;
    }
    text[0] = text[33] = '"';
    for (size_t i = 0; i < 16; i++) {
        text[2 * i + 1] = hex[id[i] >> 4];
        text[2 * i + 2] = hex[id[i] & 15];
    }
    vst__output_write(output, text, sizeof text);
}

static bool has_memory(const vst__drawing *drawing)
{
    for (size_t i = 0; i < drawing->process_count; i++)
        if (vst_trace_has_memory(drawing->processes[i].trace))
            return true;
    return false;
}

static void put_metadata(const vst__drawing *drawing)
{
    vst__output *output = drawing->output;
    const vst_trace *trace = drawing->processes[0].trace;
    const char *key, *json;

    for (size_t i = 0; (json = vst_trace_metadata_at(trace, i, &key)) != NULL;
         i++) {
        if (is_own_key(key))
            continue;
        vst__json_string(output, key, strlen(key));
        vst__output_text(output, ": ");
        chrome_put_value(output, json);
        vst__output_text(output, ",\n");
    }
    if (has_memory(drawing) &&
        vst_trace_metadata(trace, "profile_memory") == NULL)
        vst__output_text(output, "\"profile_memory\": 1,\n");
    json = vst_trace_metadata(trace, "host_name");
    if (json != NULL) {
        vst__output_text(output, "\"host_name\": ");
        chrome_put_value(output, json);
        vst__output_text(output, ",\n");
    }
}

/* Writes the groups of the first process as torch's device properties. */
static void put_properties(const vst__drawing *drawing)
{
    const vst__drawn_process *process = &drawing->processes[0];
    vst__output *output = drawing->output;

    for (size_t i = 0; i < process->group_count; i++) {
        const vst__drawn_group *group = &process->groups[i];

        vst__output_text(output, i == 0 ? "\n{\"id\": " : ",\n{\"id\": ");
        vst__json_put_u64(output, group->ordinal);
        vst__output_text(output, ", \"name\": ");
        vst__json_string(output, group->name, group->name_len);
        if (group->attributes_len != 0) {
            bool fit =
                vst__json_is_members(group->attributes, group->attributes_len);

            vst__output_text(output, fit ? ", " : ", \"attributes\": ");
            if (fit)
                vst__output_write(output, group->attributes,
                                  group->attributes_len);
            else
                vst__json_string(output, group->attributes,
                                 group->attributes_len);
        }
        vst__output_text(output, "}");
    }
}

static void chrome_begin(vst__drawing *drawing)
{
    vst__output *output = drawing->output;

    vst__output_text(output, "{\n\"schemaVersion\": 1,\n"
                             "\"deviceProperties\": [");
    put_properties(drawing);
    vst__output_text(output, "],\n\"trace_id\": ");
    put_trace_id(output, drawing->processes[0].trace);
    vst__output_text(output, ",\n");
    put_metadata(drawing);
    vst__output_text(output, "\"displayTimeUnit\": \"ms\",\n"
                             "\"baseTimeNanoseconds\": ");
    vst__json_put_i64(output, drawing->base_ns);
    vst__output_text(output, ",\n\"traceEvents\": [\n");
}

static void chrome_end(vst__drawing *drawing)
{
    const char *path = drawing->output->path;

    vst__output_text(drawing->output, "\n],\n\"traceName\": ");
    vst__json_string(drawing->output, path, strlen(path));
    vst__output_text(drawing->output, "\n}\n");
}

/* ---- processes and lanes ------------------------------------------------- */

/* Returns the name of the profiler that the program had us replace, in quotes,
 * for the names of windows; NULL: none. */
static const char *find_profiler(const vst_trace *trace)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ "
                                  "abcdefghijklmnopqrstuvwxyz";
    const char *json =
        vst_trace_metadata(trace, VST_DRAWING_INTERNAL "profiler");
    size_t count =
        json != NULL && json[0] == '"' ? strspn(json + 1, letters) : 0;

    return count != 0 && strcmp(json + 1 + count, "\"") == 0 ? json : NULL;
}

/* Begins an event about a process or a lane, up to its value. If we replace
 * another profiler, its time is the start of the first window, as that profiler
 * writes it. */
static void begin_about(vst__drawing *drawing, const char *name, int64_t pid,
                        int64_t tid, const char *key)
{
    vst__chrome *self = vst__chrome_of(drawing);
    vst__output *output = drawing->output;
    const vst__drawn_process *process = drawing->process;

    vst__output_text(output, self->any ? ",\n{\"ph\": \"M\", \"name\": \""
                                       : "{\"ph\": \"M\", \"name\": \"");
    self->any = true;
    vst__output_text(output, name);
    vst__output_text(output, "\", \"ts\": ");
    vst__json_put_us(output,
                     vst__drawing_time(drawing, self->profiler != NULL
                                                    ? process->first_window_ns
                                                    : process->start_ns));
    vst__output_text(output, ", \"pid\": ");
    vst__json_put_i64(output, pid);
    vst__output_text(output, ", \"tid\": ");
    vst__json_put_i64(output, tid);
    vst__output_text(output, ", \"args\": {\"");
    vst__output_text(output, key);
    vst__output_text(output, "\": ");
}

static void put_place(vst__drawing *drawing, const char *name, int64_t pid,
                      int64_t tid, uint64_t place)
{
    begin_about(drawing, name, pid, tid, "sort_index");
    vst__json_put_u64(drawing->output, place);
    vst__output_text(drawing->output, "}}");
}

/* label is plain text; a process's name and labels are already escaped for
 * JSON. */
static void put_process(vst__drawing *drawing, int64_t pid, const char *label,
                        uint64_t place)
{
    vst__output *output = drawing->output;
    vst__json_part name = drawing->process->name;
    vst__json_part labels = drawing->process->labels;

    begin_about(drawing, "process_name", pid, 0, "name");
    vst__output_text(output, "\"");
    vst__output_write(output, name.at, name.count);
    vst__output_text(output, "\"}}");
    begin_about(drawing, "process_labels", pid, 0, "labels");
    if (label != NULL) {
        vst__json_string(output, label, strlen(label));
    } else {
        vst__output_text(output, "\"");
        vst__output_write(output, labels.at, labels.count);
        vst__output_text(output, "\"");
    }
    vst__output_text(output, "}}");
    put_place(drawing, "process_sort_index", pid, 0, place);
}

static void chrome_draw_process(vst__drawing *drawing)
{
    const vst__drawn_process *process = drawing->process;
    vst__chrome *self = vst__chrome_of(drawing);

    self->profiler = find_profiler(process->trace);
    self->has_tid = false;
    put_process(drawing, process->pid, NULL,
                drawing->process_count > 1 ? process->index : process->pid);
}

/* torch lists devices after all processes. */
static void draw_group(vst__drawing *drawing, const vst__drawn_group *group)
{
    enum { PLACE = 5000000 };

    put_process(drawing, group->pid, group->label, PLACE + group->place);
}

static void chrome_draw_lane(vst__drawing *drawing, const vst__drawn_lane *lane)
{
    begin_about(drawing, "thread_name", lane->pid, lane->tid, "name");
    vst__json_string(drawing->output, lane->name, lane->name_len);
    vst__output_text(drawing->output, "}}");
    put_place(drawing, "thread_sort_index", lane->pid, lane->tid, lane->place);
}

/* ---- windows ------------------------------------------------------------- */

/* Programs add ts and dur as doubles and expect the sum before the end. */
enum { ROUNDING_NS = 2 };

/* names of a profiler's events */
static const char iteration_start[] = "Iteration Start: ";

static void put_profiler(const vst__drawing *drawing)
{
    const char *quoted = ((const vst__chrome *)drawing)->profiler;

    if (quoted != NULL)
        vst__output_write(drawing->output, quoted + 1, strlen(quoted) - 2);
    else
        vst__output_text(drawing->output, "vestige");
}

/* Ends the name of an event on the lane of the windows, and writes the event's
 * place. */
static void put_where(const vst__drawing *drawing, int64_t time_ns)
{
    vst__output *output = drawing->output;

    vst__output_text(output, "\", \"pid\": ");
    vst__json_put_u64(output, drawing->process->pid);
    vst__output_text(output, ", \"tid\": ");
    vst__json_put_u64(output, drawing->process->windows_tid);
    vst__output_text(output, ", \"ts\": ");
    vst__json_put_us(output, vst__drawing_time(drawing, time_ns));
}

/* Draws a mark across the whole document, or across its process if there are
 * several. */
static void put_mark(const vst__drawing *drawing, const char *name,
                     int64_t time_ns)
{
    vst__output *output = drawing->output;

    vst__output_text(output, ",\n{\"ph\": \"i\", \"cat\": \"Trace\", "
                             "\"s\": \"");
    vst__output_text(output, drawing->process_count > 1 ? "p" : "g");
    vst__output_text(output, "\", \"name\": \"");
    vst__output_text(output, name);
    if (name == iteration_start)
        put_profiler(drawing);
    put_where(drawing, time_ns);
    vst__output_text(output, "}");
}

/* Draws a window in torch's form. Between a window and its marks torch writes
 * the sort index of their lane again, and clients depend on this order. */
static void chrome_draw_window(vst__drawing *drawing,
                               const vst__drawn_window *window)
{
    vst__output *output = drawing->output;
    const vst__drawn_process *process = drawing->process;
    int64_t end_ns = window->end_ns;

    vst__output_text(output, ",\n{\"ph\": \"X\", \"cat\": \"Trace\", "
                             "\"name\": \"");
    put_profiler(drawing);
    vst__output_text(output, " (");
    vst__json_put_u64(output, window->number);
    vst__output_text(output, ")");
    put_where(drawing, window->start_ns);
    vst__output_text(output, ", \"dur\": ");
    vst__json_put_us(output, end_ns - window->start_ns);
    vst__output_text(output, ", \"args\": {\"Op count\": 0}}");
    if (vst__chrome_of(drawing)->profiler != NULL) {
        put_place(drawing, "thread_sort_index", process->pid,
                  process->windows_tid, 0);
        end_ns += ROUNDING_NS;
    }
    put_mark(drawing, iteration_start, window->start_ns);
    put_mark(drawing, "Record Window End", end_ns);
}

/* ---- the format ---------------------------------------------------------- */

static vst_status write_chrome(vst_trace *const *traces, size_t count,
                               const vst_export_options *options,
                               vst__output *output, vst_error *error)
{
    static const vst__drawing_ops ops = {
        .numbers_as_torch = true,
        .begin = chrome_begin,
        .end = chrome_end,
        .process = chrome_draw_process,
        .group = draw_group,
        .lane = chrome_draw_lane,
        .span = vst__chrome_span,
        .instant = vst__chrome_instant,
        .counter = vst__chrome_counter,
        .arrow = vst__chrome_arrow,
        .window = chrome_draw_window,
    };
    vst__chrome chrome = {.drawing = {.ops = &ops, .output = output}};

    return vst__timeline_draw(&chrome.drawing, traces, count, options, error);
}

const vst__exporter vst__exporter_chrome = {"chrome", ".json",
                                            .write = write_chrome};
