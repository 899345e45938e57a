/* The format of Python's pstats: a dictionary, in the marshal module's format,
 * of functions and their callers:
 *
 *   (file, line, name): (primitive calls, calls, self s, total s,
 *                        {(file, line, name): (calls, primitive calls,
 *                                              self s, total s)})
 *
 * A call is not primitive if an outer call of its function is open; its time is
 * in the outer call's total. One thread at a time. */
#include <stdlib.h>

#include "export/exporter.h"
#include "export/output/proto.h"
#include "export/sums/tree.h"

/* ---- marshal ------------------------------------------------------------- */

static void put_u32(vst__output *output, uint32_t value)
{
    char bytes[4];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(value >> 8 * i);
    vst__output_write(output, bytes, sizeof bytes);
}

/* Writes 32 bits, or digits of 15 bits. */
static void put_integer(vst__output *output, uint64_t value)
{
    uint32_t digits = 0;
    char digit[2];

    if (value <= INT32_MAX) {
        vst__output_text(output, "i");
        put_u32(output, (uint32_t)value);
        return;
    }
    for (uint64_t rest = value; rest != 0; rest >>= 15)
        digits++;
    vst__output_text(output, "l");
    put_u32(output, digits);
    for (; value != 0; value >>= 15) {
        digit[0] = (char)(value & 255);
        digit[1] = (char)(value >> 8 & 127);
        vst__output_write(output, digit, 2);
    }
}

static void put_seconds(vst__output *output, int64_t ns)
{
    double seconds = (double)ns / 1e9;
    uint64_t bits;

    memcpy(&bits, &seconds, sizeof bits);
    vst__output_text(output, "g");
    put_u32(output, (uint32_t)bits);
    put_u32(output, (uint32_t)(bits >> 32));
}

static void put_tuple(vst__output *output, unsigned count)
{
    vst__output_text(output, "(");
    put_u32(output, count);
}

static vst_status pstats_put_string(vst__output *output, vst__proto *text,
                                    const char *bytes, size_t count)
{
    vst__proto_clear(text);
    vst__proto_raw_utf8(text, bytes, count);
    if (text->failed || text->count > INT32_MAX)
        return VST_E_NOMEM;
    vst__output_text(output, "u");
    put_u32(output, (uint32_t)text->count);
    vst__output_write(output, text->bytes, text->count);
    return VST_OK;
}

/* ---- the dictionary ------------------------------------------------------ */

static vst_status pstats_put_function(const vst__tree *tree, uint32_t function,
                                      vst__proto *text, vst__output *output)
{
    const vst__tree_function *f = &tree->functions[function];
    bool has_file = f->file_len != 0;
    vst_status status;

    put_tuple(output, 3);
    status = pstats_put_string(output, text, has_file ? f->file : "~",
                               has_file ? f->file_len : 1);
    put_integer(output, has_file && f->line > 0 ? (uint64_t)f->line : 0);
    return status == VST_OK
               ? pstats_put_string(output, text, f->name, f->name_len)
               : status;
}

static vst_status put_callers(const vst__tree *tree,
                              const vst__tree_edge *edges, size_t count,
                              vst__proto *text, vst__output *output)
{
    vst_status status = VST_OK;

    vst__output_text(output, "{");
    for (size_t i = 0; i < count && status == VST_OK; i++) {
        if (edges[i].caller == VST_TREE_ROOT)
            continue;
        status = pstats_put_function(tree, edges[i].caller, text, output);
        put_tuple(output, 4);
        put_integer(output, edges[i].sums.calls);
        put_integer(output, edges[i].sums.primitive_calls);
        put_seconds(output, edges[i].sums.self_ns);
        put_seconds(output, edges[i].sums.total_ns);
    }
    vst__output_text(output, "0");
    return status;
}

static vst_status write_pstats(const vst__tree *tree, vst__output *output)
{
    const vst__tree_edge *edges = tree->edges;
    vst__proto text = {.bytes = NULL};
    vst_status status = VST_OK;
    size_t next = 0;

    vst__output_text(output, "{");
    for (uint32_t i = 0; i < tree->function_count && status == VST_OK; i++) {
        const vst__tree_sums *sums = &tree->sums[i];
        size_t first = next;

        while (next < tree->edge_count && edges[next].callee == i)
            next++;
        status = pstats_put_function(tree, i, &text, output);
        put_tuple(output, 5);
        put_integer(output, sums->primitive_calls);
        put_integer(output, sums->calls);
        put_seconds(output, sums->self_ns);
        put_seconds(output, sums->total_ns);
        if (status == VST_OK)
            status =
                put_callers(tree, edges + first, next - first, &text, output);
        if (status == VST_OK)
            status = output->status;
    }
    vst__output_text(output, "0");
    vst__proto_free(&text);
    return status;
}

static const vst__tree_format pstats = {.by_function = true,
                                        .write = write_pstats};

const vst__exporter vst__exporter_pstats = {"pstats", ".pstats .prof",
                                            .sums = &pstats};
