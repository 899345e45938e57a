/* The execution trace, in the format of torch's observer (schema
 * 1.1.1-chakra.0.0.4): one JSON object with a list of nodes, in the order in
 * which they ended, each thread's root before its first node and the process's
 * root last. src/graph/ makes the nodes; this file writes each node when it
 * ends. If there are several traces, they must be pieces of one process. One
 * thread at a time. */
#include "export/graph/execution_trace.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "export/exporter.h"
#include "export/output/json.h"
#include "store/reader.h"

/* The beginning and the end of a node's attribute. */
#define ATTRIBUTE(name, type)                                                  \
    "{\"name\": \"" name "\", \"type\": \"" type "\", \"value\": "
#define NOTHING                                                                \
    "{\"values\": [], \"shapes\": [], \"types\": [], \"strides\": []}"

typedef struct document {
    vst__output *output;
    vst__text outputs;
    bool has_nodes;
} document;

/* ---- a node -------------------------------------------------------------- */

static void put_definition(vst__output *output, const vst_trace *trace,
                           vst_id id)
{
    const vst_definition *definition = vst_trace_definition(trace, id);

    /* A torn file may have lost the definition. */
    if (definition != NULL) {
        vst__json_put_escaped(output, definition->name, definition->name_len);
    } else {
        vst__output_text(output, "unknown function ");
        vst__json_put_u64(output, id);
    }
}

static void node_put_name(vst__output *output, const vst__graph_node *node)
{
    if (node->kind == VST_GRAPH_NODE)
        put_definition(output, node->trace, node->definition);
    else
        vst__output_text(output, node->kind == VST_GRAPH_PROCESS
                                     ? "[pytorch|profiler|execution_trace|"
                                       "process]"
                                     : "[pytorch|profiler|execution_trace|"
                                       "thread]");
}

/* Keeps three texts among the attributes, followed by the inputs, until the
 * node ends; text.head is the length of the three texts. */
static vst_status keep_inputs(void *ctx, vst__graph_node *node,
                              const vst__graph_values *inputs)
{
    static const char file[] = "\"}," ATTRIBUTE("kernel_file", "string") "\"";
    static const char range[] = "\"}," ATTRIBUTE("tensor_range", "string") "\"";
    vst__text *text = &node->text;

    (void)ctx;
    text->count = 0;
    text->failed = false;
    vst__text_escaped(text, inputs->backend.at, inputs->backend.count);
    vst__text_add(text, file, sizeof file - 1);
    vst__text_escaped(text, inputs->file.at, inputs->file.count);
    vst__text_add(text, range, sizeof range - 1);
    vst__text_escaped(text, inputs->range.at, inputs->range.count);
    text->head = text->count;
    return vst__execution_trace_values(text, inputs) ? VST_OK : VST_E_NOMEM;
}

static void put_attributes(vst__output *output, const vst__graph_node *node)
{
    vst__output_text(output,
                     ",\n        \"attrs\": [" ATTRIBUTE("rf_id", "uint64"));
    vst__json_put_u64(output, node->record);
    vst__output_text(output, "}," ATTRIBUTE("fw_parent", "uint64"));
    vst__json_put_u64(output, node->forward_parent);
    vst__output_text(output, "}," ATTRIBUTE("seq_id", "int64"));
    vst__json_put_i64(output, node->sequence);
    vst__output_text(output, "}," ATTRIBUTE("scope", "uint64"));
    vst__json_put_u64(output, node->scope);
    vst__output_text(output, "}," ATTRIBUTE("tid", "uint64"));
    vst__json_put_u64(output, node->thread);
    vst__output_text(output, "}," ATTRIBUTE("fw_tid", "uint64"));
    vst__json_put_u64(output, node->forward_thread);
    vst__output_text(output, "}," ATTRIBUTE("op_schema", "string") "\"");
    if (node->schema != 0 &&
        vst_trace_definition(node->trace, node->schema) != NULL)
        put_definition(output, node->trace, node->schema);
    vst__output_text(output, "\"}," ATTRIBUTE("kernel_backend", "string") "\"");
    if (node->kind == VST_GRAPH_NODE)
        vst__output_write(output, node->text.bytes, node->text.head);
    else
        vst__output_text(
            output,
            "\"}," ATTRIBUTE("kernel_file", "string") "\"\"}," ATTRIBUTE(
                "tensor_range", "string") "\"");
    vst__output_text(output, "\"}]\n      }");
}

static vst_status write_node(void *ctx, vst__graph_node *node,
                             const vst__graph_values *outputs)
{
    document *self = ctx;
    vst__output *output = self->output;
    bool root = node->kind != VST_GRAPH_NODE;

    self->outputs.count = 0;
    if (outputs != NULL &&
        !vst__execution_trace_values(&self->outputs, outputs))
        return VST_E_NOMEM;
    vst__output_text(output, self->has_nodes ? ",\n      {\n        \"id\": "
                                             : "\n      {\n        \"id\": ");
    self->has_nodes = true;
    vst__json_put_u64(output, node->id);
    vst__output_text(output, ", \"name\": \"");
    node_put_name(output, node);
    vst__output_text(output, "\", \"ctrl_deps\": ");
    vst__json_put_u64(output, node->parent);
    vst__output_text(output, ",\n        \"inputs\": ");
    if (root)
        vst__output_text(output, NOTHING);
    else
        vst__output_write(output, node->text.bytes + node->text.head,
                          node->text.count - node->text.head);
    vst__output_text(output, ",\n        \"outputs\": ");
    if (outputs != NULL)
        vst__output_write(output, self->outputs.bytes, self->outputs.count);
    else
        vst__output_text(output, NOTHING);
    put_attributes(output, node);
    return output->status;
}

/* ---- the document -------------------------------------------------------- */

/* Begin and end of everything that is written, over all traces. */
typedef struct stretch {
    int64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
    int64_t wall_ns;          /* wall clock at the start */
} stretch;

static vst_status node_measure(vst_trace *const *traces, size_t count,
                               int window, stretch *all)
{
    *all = (stretch){INT64_MAX, INT64_MIN, 0};
    for (size_t i = 0; i < count; i++) {
        vst_trace *trace = traces[i];
        vst_ticks began = trace->header.start.ticks, ended = began;
        size_t first, windows;
        vst_status status =
            vst__trace_select_windows(trace, window, &first, &windows);
        int64_t began_ns, ended_ns;

        if (status != VST_OK)
            return status;
        if (windows != 0) {
            began = trace->windows[first].first;
            ended = trace->windows[first + windows - 1].last;
        }
        began_ns = vst__graph_monotonic(trace, began);
        ended_ns = vst__graph_monotonic(trace, ended);
        if (began_ns < all->start_ns) {
            all->start_ns = began_ns;
            all->wall_ns = vst__clockmap_to_ns(&trace->clock, began);
        }
        if (ended_ns > all->end_ns)
            all->end_ns = ended_ns;
    }
    return VST_OK;
}

static void node_put_head(vst__output *output, const vst_trace *trace,
                          const stretch *all)
{
    char when[64] = "";
    struct tm local;
    time_t seconds = (time_t)(all->wall_ns / 1000000000);

    if (localtime_r(&seconds, &local) != NULL)
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
    vst__output_text(output, "{\n  \"schema\": \"1.1.1-chakra.0.0.4\", "
                             "\"pid\": ");
    vst__json_put_u64(output, trace->header.pid);
    vst__output_text(output, ", \"time\": \"");
    vst__output_text(output, when);
    vst__output_text(output, "\", \"start_ts\": ");
    vst__json_put_i64(output, all->start_ns / 1000000);
    vst__output_text(output, ",\n  \"nodes\": [");
}

static void put_tail(vst__output *output, const stretch *all)
{
    vst__output_text(output, "\n  ],\n  \"finish_ts\": ");
    vst__json_put_i64(output, all->end_ns / 1000000);
    vst__output_text(output, "\n}\n");
}

static vst_status write_execution_trace(vst_trace *const *traces, size_t count,
                                        const vst_export_options *options,
                                        vst__output *output, vst_error *error)
{
    document self = {.output = output};
    const vst__graph_sink sink = {
        .ctx = &self,
        .begin = keep_inputs,
        .end = write_node,
    };
    vst_status status = vst__graph_check(traces, count);
    stretch all;

    if (status == VST_OK)
        status = node_measure(traces, count, options->window, &all);
    if (status != VST_OK)
        return vst_error_set(error, status, 0, 0);
    node_put_head(output, traces[0], &all);
    status = vst__graph_read(traces, count, options->window, options->observer,
                             &sink, error);
    free(self.outputs.bytes);
    if (status == VST_OK)
        put_tail(output, &all);
    return status;
}

const vst__exporter vst__exporter_execution_trace = {
    "execution-trace", NULL, .write = write_execution_trace};
