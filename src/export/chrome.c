/* The Chrome trace format, as torch.profiler writes it: one JSON object, its
 * keys in torch's order. This file writes what is around the events and decides
 * which track a thread gets; chrome_events.c writes the events.
 *
 * White space follows every colon (HTA finds the rank by a regular expression
 * that wants it), and every pid and tid is a number (others fail on strings).
 * One thread at a time. */
#include <stdlib.h>

#include <vestige/trace.h>

#include "export/chrome.h"
#include "export/exporter.h"

/* torch counts ts from a multiple of this, a quarter of a year, so that the
 * traces of several ranks share a base. */
#define BASE_NS ((int64_t)7889238 * 1000000000)

/* Larger ones are not the kernel's, and viewers keep 32 bits. */
#define TID_MAX UINT32_C(0x7fffffff)

#define INTERNAL_PREFIX "vestige."

/* ---- tracks ------------------------------------------------------------- */

typedef struct claim {
    uint64_t tid;
    size_t thread; /* index */
} claim;

static int by_tid(const void *a, const void *b)
{
    const claim *x = a, *y = b;

    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

/* Every thread gets a tid that no other has: events of two threads on one track
 * would not nest. The first to have had a system tid keeps it; the others, and
 * those without, get numbers above all of them. */
static vst_status assign_tids(vst__chrome *chrome)
{
    const vst_trace *trace = chrome->trace;
    size_t count = trace->thread_count;
    claim *claims = malloc((count + 1) * sizeof *claims);
    uint32_t next = trace->header.pid < TID_MAX ? trace->header.pid : 0;

    if (claims == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        uint64_t tid = trace->threads[i].system_tid;

        claims[i] = (claim){tid <= TID_MAX ? tid : 0, i};
        if (claims[i].tid > next)
            next = (uint32_t)claims[i].tid;
    }
    qsort(claims, count, sizeof *claims, by_tid);
    for (size_t i = 0; i < count; i++) {
        bool taken = i != 0 && claims[i].tid == claims[i - 1].tid;

        chrome->tracks[claims[i].thread].tid =
            taken || claims[i].tid == 0 ? ++next : (uint32_t)claims[i].tid;
    }
    chrome->windows_tid = ++next;
    free(claims);
    return VST_OK;
}

static void note_shown(vst__chrome *chrome, const vst__window *window)
{
    const vst_trace *trace = chrome->trace;

    for (size_t i = 0; i < window->segment_count; i++) {
        const vst_trace_thread *thread = vst_trace_thread_find(
            trace, trace->segments[window->segments + i].thread);
        if (thread != NULL)
            chrome->tracks[thread - trace->threads].shown = true;
    }
}

/* ---- around the events -------------------------------------------------- */

static void put_u64(vst__output *output, uint64_t value)
{
    char number[VST_JSON_NUMBER_MAX];

    vst__output_write(output, number,
                      (size_t)(vst__json_u64(number, value) - number));
}

static void put_i64(vst__output *output, int64_t value)
{
    char number[VST_JSON_NUMBER_MAX];

    vst__output_write(output, number,
                      (size_t)(vst__json_i64(number, value) - number));
}

static void put_us(vst__output *output, int64_t ns)
{
    char number[VST_JSON_NUMBER_MAX];

    vst__output_write(output, number,
                      (size_t)(vst__json_us(number, ns) - number));
}

/* A value that somebody else made: as it is if it is JSON, else as text. */
static void put_value(vst__output *output, const char *json)
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
    return strncmp(key, INTERNAL_PREFIX, strlen(INTERNAL_PREFIX)) == 0;
}

static void put_trace_id(vst__output *output, const uint8_t *id)
{
    static const char hex[] = "0123456789ABCDEF";
    char text[32];

    for (size_t i = 0; i < 16; i++) {
        text[2 * i] = hex[id[i] >> 4];
        text[2 * i + 1] = hex[id[i] & 15];
    }
    vst__output_write(output, text, sizeof text);
}

static void put_metadata(vst__chrome *chrome)
{
    vst__output *output = chrome->output;
    const char *key, *json;

    for (size_t i = 0;
         (json = vst_trace_metadata_at(chrome->trace, i, &key)) != NULL; i++) {
        if (is_own_key(key))
            continue;
        vst__json_string(output, key, strlen(key));
        vst__output_text(output, ": ");
        put_value(output, json);
        vst__output_text(output, ",\n");
    }
    json = vst_trace_metadata(chrome->trace, "host_name");
    if (json != NULL) {
        vst__output_text(output, "\"host_name\": ");
        put_value(output, json);
        vst__output_text(output, ",\n");
    }
}

static void put_head(vst__chrome *chrome)
{
    vst__output *output = chrome->output;

    vst__output_text(output, "{\n\"schemaVersion\": 1,\n"
                             "\"deviceProperties\": [],\n\"trace_id\": \"");
    put_trace_id(output, chrome->trace->header.trace_id);
    vst__output_text(output, "\",\n");
    put_metadata(chrome);
    vst__output_text(output, "\"displayTimeUnit\": \"ms\",\n"
                             "\"baseTimeNanoseconds\": ");
    put_i64(output, chrome->base_ns);
    vst__output_text(output, ",\n\"traceEvents\": [\n");
}

/* An event about a process or a thread, up to the value it tells. */
static void put_about(vst__chrome *chrome, const char *name, uint32_t tid,
                      int64_t time_ns, const char *what)
{
    vst__output *output = chrome->output;

    vst__output_text(output, "{\"ph\": \"M\", \"name\": \"");
    vst__output_text(output, name);
    vst__output_text(output, "\", \"ts\": ");
    put_us(output, time_ns - chrome->base_ns);
    vst__output_text(output, ", \"pid\": ");
    put_u64(output, chrome->trace->header.pid);
    vst__output_text(output, ", \"tid\": ");
    put_u64(output, tid);
    vst__output_text(output, ", \"args\": {\"");
    vst__output_text(output, what);
    vst__output_text(output, "\": ");
}

static void put_about_thread(vst__chrome *chrome, int64_t time_ns, uint32_t tid,
                             const char *name, size_t name_len, uint64_t place)
{
    vst__output *output = chrome->output;
    char fallback[48] = "thread ";

    if (name_len == 0) {
        name = fallback;
        name_len = (size_t)(vst__json_u64(fallback + strlen(fallback), tid) -
                            fallback);
    }
    vst__output_text(output, "}},\n");
    put_about(chrome, "thread_name", tid, time_ns, "name");
    vst__json_string(output, name, name_len);
    vst__output_text(output, "}},\n");
    put_about(chrome, "thread_sort_index", tid, time_ns, "sort_index");
    put_u64(output, place);
}

static void put_about_process(vst__chrome *chrome, int64_t time_ns)
{
    static const char windows[] = "Recording windows";
    const vst_trace *trace = chrome->trace;
    vst__output *output = chrome->output;
    const char *name =
        vst_trace_metadata(trace, INTERNAL_PREFIX "process_name");

    put_about(chrome, "process_name", 0, time_ns, "name");
    if (name != NULL && name[0] == '"')
        put_value(output, name);
    else
        vst__output_text(output, "\"python\"");
    vst__output_text(output, "}},\n");
    put_about(chrome, "process_labels", 0, time_ns, "labels");
    vst__output_text(output, "\"CPU\"}},\n");
    put_about(chrome, "process_sort_index", 0, time_ns, "sort_index");
    put_u64(output, trace->header.pid);
    put_about_thread(chrome, time_ns, chrome->windows_tid, windows,
                     sizeof windows - 1, 0);
    for (size_t i = 0; i < trace->thread_count; i++)
        if (chrome->tracks[i].shown)
            put_about_thread(chrome, time_ns, chrome->tracks[i].tid,
                             trace->threads[i].name, trace->threads[i].name_len,
                             i + 1);
    vst__output_text(output, "}}");
}

/* A mark across the whole document, up to its time. */
static void put_mark(vst__chrome *chrome, const char *name, int64_t time_ns)
{
    vst__output *output = chrome->output;

    vst__output_text(output, ",\n{\"ph\": \"i\", \"cat\": \"Trace\", "
                             "\"s\": \"g\", \"name\": \"");
    vst__output_text(output, name);
    vst__output_text(output, "\", \"pid\": ");
    put_u64(output, chrome->trace->header.pid);
    vst__output_text(output, ", \"tid\": ");
    put_u64(output, chrome->windows_tid);
    vst__output_text(output, ", \"ts\": ");
    put_us(output, time_ns - chrome->base_ns);
    vst__output_text(output, "}");
}

/* A stretch of recording, in the form that torch gives it. */
static void put_window(vst__chrome *chrome, const vst__window *window)
{
    vst__output *output = chrome->output;
    vst__clockmap *clock = &chrome->trace->clock;
    int64_t start_ns = vst__clockmap_to_ns(clock, window->first);
    int64_t end_ns = vst__clockmap_to_ns(clock, window->last);

    vst__output_text(output, ",\n{\"ph\": \"X\", \"cat\": \"Trace\", "
                             "\"name\": \"vestige (");
    put_u64(output, window->number);
    vst__output_text(output, ")\", \"pid\": ");
    put_u64(output, chrome->trace->header.pid);
    vst__output_text(output, ", \"tid\": ");
    put_u64(output, chrome->windows_tid);
    vst__output_text(output, ", \"ts\": ");
    put_us(output, start_ns - chrome->base_ns);
    vst__output_text(output, ", \"dur\": ");
    put_us(output, end_ns - start_ns);
    vst__output_text(output, ", \"args\": {\"Op count\": 0}}");
    put_mark(chrome, "Iteration Start: vestige", start_ns);
    put_mark(chrome, "Record Window End", end_ns);
}

/* ---- the document ------------------------------------------------------- */

static int64_t floor_to(int64_t value, int64_t step)
{
    int64_t rest = value % step;

    return value - rest - (rest < 0 ? step : 0);
}

static vst_status write_document(vst__chrome *chrome,
                                 const vst_export_options *options,
                                 const char *path, vst_error *error)
{
    vst_trace *trace = chrome->trace;
    int64_t start_ns =
        vst__clockmap_to_ns(&trace->clock, trace->header.start.ticks);
    size_t first, count;
    vst_sink sink;
    vst_status status =
        vst__trace_select_windows(trace, options->window, &first, &count);

    if (status == VST_OK)
        status = assign_tids(chrome);
    if (status != VST_OK)
        return vst_error_set(error, status, 0, 0);
    chrome->base_ns = floor_to(start_ns, BASE_NS);
    for (size_t i = first; i < first + count; i++)
        note_shown(chrome, &trace->windows[i]);
    put_head(chrome);
    put_about_process(chrome, start_ns);
    vst__chrome_sink(chrome, &sink);
    status =
        vst_trace_replay(trace, options->window, options->tracer, &sink, error);
    if (status != VST_OK)
        return status;
    for (size_t i = first; i < first + count; i++)
        put_window(chrome, &trace->windows[i]);
    vst__output_text(chrome->output, "\n],\n\"traceName\": ");
    vst__json_string(chrome->output, path, strlen(path));
    vst__output_text(chrome->output, "\n}\n");
    return VST_OK;
}

static vst_status write_chrome(vst_trace *trace,
                               const vst_export_options *options,
                               const char *path, vst__output *output,
                               vst_error *error)
{
    vst__chrome chrome = {.trace = trace, .output = output};
    vst_status status;

    chrome.tracks = calloc(trace->thread_count + 1, sizeof *chrome.tracks);
    chrome.heads = calloc(trace->definition_count + 1, sizeof *chrome.heads);
    if (chrome.tracks == NULL || chrome.heads == NULL)
        status = vst_error_set(error, VST_E_NOMEM, 0, 0);
    else
        status = write_document(&chrome, options, path, error);
    vst__chrome_free_heads(&chrome);
    free(chrome.tracks);
    return status;
}

const vst__exporter vst__exporter_chrome = {".json", write_chrome};
