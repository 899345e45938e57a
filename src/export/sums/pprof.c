/* The format of pprof (profile.proto): a sample for each stack, with the number
 * of calls, the own time and, if memory was recorded, the allocated bytes.
 * pprof reads the file with or without gzip. One thread at a time. */
#include <stdlib.h>

#include "export/exporter.h"
#include "export/output/proto.h"
#include "export/sums/tree.h"

enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_TIME = 9,
    PROFILE_DURATION = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_DEFAULT_TYPE = 14
};

/* Strings are numbered by their order in the file: first these, then a name and
 * a file for each function. */
static const char *const strings[] = {
    "",
    "calls",
    "count",
    "wall",
    "nanoseconds",
    "alloc_objects",
    "alloc_space",
    "bytes",
    "python",
};
enum {
    STRING_CALLS = 1,
    STRING_COUNT,
    STRING_WALL,
    STRING_NANOSECONDS,
    STRING_ALLOC_OBJECTS,
    STRING_ALLOC_SPACE,
    STRING_BYTES,
    STRING_PYTHON,
    STRING_COUNT_OF_ALL
};

static void put_type(vst__proto *message, uint32_t type, uint32_t unit)
{
    vst__proto_u64(message, 1, type);
    vst__proto_u64(message, 2, unit);
}

static vst_status put_types(const vst__tree *tree, vst__proto *message,
                            vst__output *output)
{
    static const uint32_t types[][2] = {
        {STRING_CALLS, STRING_COUNT},
        {STRING_WALL, STRING_NANOSECONDS},
        {STRING_ALLOC_OBJECTS, STRING_COUNT},
        {STRING_ALLOC_SPACE, STRING_BYTES},
    };
    vst_status status = VST_OK;

    for (size_t i = 0; i < (tree->has_memory ? 4 : 2) && status == VST_OK;
         i++) {
        put_type(message, types[i][0], types[i][1]);
        status = vst__proto_write(message, PROFILE_SAMPLE_TYPE, output);
    }
    if (status != VST_OK)
        return status;
    put_type(message, STRING_WALL, STRING_NANOSECONDS);
    return vst__proto_write(message, PROFILE_PERIOD_TYPE, output);
}

static void put_varint(vst__proto *message, uint64_t value)
{
    char bytes[VST_PROTO_VARINT_MAX];

    vst__proto_raw(message, bytes,
                   (size_t)(vst__proto_varint(bytes, value) - bytes));
}

/* Writes a sample. Each function is one location, with the function's number.
 */
static vst_status put_sample(const vst__tree *tree, uint32_t index,
                             vst__proto *message, vst__output *output)
{
    const vst__tree_node *node = &tree->nodes[index];
    size_t list = vst__proto_open(message, 1);

    for (uint32_t at = index; at != VST_TREE_ROOT; at = tree->nodes[at].parent)
        put_varint(message, (uint64_t)tree->nodes[at].function + 1);
    vst__proto_close(message, list);
    list = vst__proto_open(message, 2);
    put_varint(message, node->count);
    put_varint(message, (uint64_t)node->self_ns);
    if (tree->has_memory) {
        put_varint(message, node->self_allocations);
        put_varint(message, node->self_bytes);
    }
    vst__proto_close(message, list);
    return vst__proto_write(message, PROFILE_SAMPLE, output);
}

static vst_status pprof_put_function(const vst__tree *tree, uint32_t index,
                                     vst__proto *message, vst__output *output)
{
    const vst__tree_function *f = &tree->functions[index];
    uint64_t name = STRING_COUNT_OF_ALL + 2 * (uint64_t)index;
    int64_t line = f->line > 0 ? f->line : 0;
    vst_status status;
    size_t inner;

    vst__proto_u64(message, 1, (uint64_t)index + 1);
    vst__proto_u64(message, 2, name);
    /* No system name: pprof would take it for C++ and leave out everything
     * between < and >. */
    vst__proto_u64(message, 3, 0);
    vst__proto_u64(message, 4, name + 1);
    vst__proto_i64(message, 5, line);
    status = vst__proto_write(message, PROFILE_FUNCTION, output);
    if (status != VST_OK)
        return status;
    vst__proto_u64(message, 1, (uint64_t)index + 1);
    vst__proto_u64(message, 2, 1);
    inner = vst__proto_open(message, 4);
    vst__proto_u64(message, 1, (uint64_t)index + 1);
    vst__proto_i64(message, 2, line);
    vst__proto_close(message, inner);
    return vst__proto_write(message, PROFILE_LOCATION, output);
}

static vst_status pprof_put_string(vst__proto *message, const char *bytes,
                                   size_t count, vst__output *output)
{
    vst__proto_raw_utf8(message, bytes, count);
    return vst__proto_write(message, PROFILE_STRING, output);
}

static vst_status put_strings(const vst__tree *tree, vst__proto *message,
                              vst__output *output)
{
    vst_status status = VST_OK;

    for (size_t i = 0; i < STRING_COUNT_OF_ALL && status == VST_OK; i++)
        status =
            pprof_put_string(message, strings[i], strlen(strings[i]), output);
    for (size_t i = 0; i < tree->function_count && status == VST_OK; i++) {
        const vst__tree_function *f = &tree->functions[i];

        status = pprof_put_string(message, f->name, f->name_len, output);
        if (status == VST_OK)
            status = pprof_put_string(message, f->file, f->file_len, output);
    }
    return status;
}

/* Says that functions have names; otherwise pprof would look for symbols. */
static vst_status put_mapping(vst__proto *message, vst__output *output)
{
    vst__proto_u64(message, 1, 1);
    vst__proto_u64(message, 5, STRING_PYTHON);
    for (uint32_t field = 7; field <= 10; field++)
        vst__proto_u64(message, field, 1);
    return vst__proto_write(message, PROFILE_MAPPING, output);
}

/* Writes numbers about the whole profile; the fields of a message need not be
 * contiguous. */
static vst_status put_times(const vst__tree *tree, vst__proto *message,
                            vst__output *output)
{
    vst__proto_i64(message, PROFILE_TIME, tree->start_ns);
    vst__proto_i64(message, PROFILE_DURATION, tree->end_ns - tree->start_ns);
    vst__proto_i64(message, PROFILE_PERIOD, 1);
    vst__proto_u64(message, PROFILE_DEFAULT_TYPE, STRING_WALL);
    if (message->failed)
        return VST_E_NOMEM;
    vst__output_write(output, message->bytes, message->count);
    vst__proto_clear(message);
    return output->status;
}

static vst_status put_document(const vst__tree *tree, vst__proto *message,
                               vst__output *output)
{
    vst_status status = put_types(tree, message, output);

    for (uint32_t i = 0; i < tree->node_count && status == VST_OK; i++)
        status = put_sample(tree, i, message, output);
    if (status == VST_OK)
        status = put_mapping(message, output);
    for (uint32_t i = 0; i < tree->function_count && status == VST_OK; i++)
        status = pprof_put_function(tree, i, message, output);
    if (status == VST_OK)
        status = put_strings(tree, message, output);
    return status == VST_OK ? put_times(tree, message, output) : status;
}

static vst_status write_pprof(const vst__tree *tree, vst__output *output)
{
    vst__proto message = {.bytes = NULL};
    vst_status status = put_document(tree, &message, output);

    vst__proto_free(&message);
    return status;
}

static const vst__tree_format pprof = {.shallow = true, .write = write_pprof};

const vst__exporter vst__exporter_pprof = {"pprof", ".pb .pprof",
                                           .sums = &pprof};
