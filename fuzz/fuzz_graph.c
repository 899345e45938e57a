/* Reads a framework's work: the nodes of the execution trace, each of which
 * must have a unique id, and the storages over time, by use. Reads one trace,
 * or two traces as pieces of one. */
#include <string.h>

#include <vestige/graph.h>

#include "base/map64.h"
#include "graph/categories.h"
#include "graph/nodes.h"
#include "target.h"
#include "trace_input.h"

typedef struct ids {
    vst__map64 seen;
} ids;

static vst_status take_id(void *ctx, uint64_t record, uint64_t id)
{
    ids *self = ctx;
    uint64_t *place = vst__map64_put(&self->seen, id);

    MUST(record != 0 && id != 0);
    MUST(place != NULL && *place == 0); /* no other node has this id */
    *place = 1;
    return VST_OK;
}

static void number_nodes(const trace_input *input, vst_trace *const *traces,
                         size_t count)
{
    unsigned observer = input->choices[1] & 3;
    ids self = {0};
    uint64_t nodes;

    MUST(vst__traces_node_ids(traces, count, input_window(input), observer,
                              take_id, &self, NULL) == VST_OK);
    /* The count is made without reading the nodes, so damaged nodes may make it
     * too large or too small. */
    for (size_t i = 0; i < count; i++)
        MUST(vst__trace_count_nodes(traces[i], input_window(input), &nodes,
                                    NULL) == VST_OK);
    vst__map64_free(&self.seen);
}

static void read_rows(const trace_input *input, vst_trace *trace)
{
    vst__memory_rows rows = {0};

    MUST(vst__memory_rows_read(&rows, trace, input_window(input), NULL) ==
         VST_OK);
    for (size_t i = 0; i < rows.count; i++) {
        const vst__memory_row *row = &rows.rows[i];

        MUST(row->category < VST_CATEGORIES);
        MUST(row->action >= VST_ACTION_PREEXISTING &&
             row->action <= VST_ACTION_DESTROY);
        MUST(i == 0 || row->time_ns >= row[-1].time_ns);
    }
    vst__memory_rows_free(&rows);
}

static void read_all(const trace_input *input, vst_trace *trace)
{
    vst_trace *traces[2] = {trace, NULL};

    if (input->choices[2] & 1)
        traces[1] = input_open(input);
    number_nodes(input, traces, traces[1] != NULL ? 2 : 1);
    read_rows(input, trace);
    vst_trace_close(traces[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return input_use(bytes, size, INPUT_ALL, read_all);
}
