/* Reads a table of a trace, or of the trace twice as two processes. The input
 * chooses the table. The batches must follow Arrow's rules: offsets never go
 * back, indexes lie in their dictionary, and the count of nulls is right.
 * Batches may outlive their stream, so they are read after it is released. */
#include <string.h>
#include <unistd.h>

#include "tables/tables.h"
#include "target.h"
#include "trace_input.h"

enum { BATCHES_MAX = 64, ROWS_MAX = 200000 };

/* ---- a batch ------------------------------------------------------------- */

static bool bit(const void *bits, int64_t row)
{
    return ((const uint8_t *)bits)[row / 8] >> row % 8 & 1;
}

static void check_text(const vst_arrow_array *array)
{
    const int32_t *ends = array->buffers[1];
    const char *text = array->buffers[2];
    volatile char last;

    MUST(ends[0] == 0);
    for (int64_t row = 0; row < array->length; row++)
        MUST(ends[row] <= ends[row + 1]);
    if (ends[array->length] != 0)
        last = text[ends[array->length] - 1]; /* is there */
    (void)last;
}

static void check_dictionary(const vst_arrow_array *array)
{
    const int32_t *indexes = array->buffers[1];
    const void *valid = array->buffers[0];

    check_text(array->dictionary);
    for (int64_t row = 0; row < array->length; row++)
        if (valid == NULL || bit(valid, row))
            MUST(indexes[row] >= 0 && indexes[row] < array->dictionary->length);
}

/* Checks that the last value can be read. */
static void check_values(const vst_arrow_schema *schema,
                         const vst_arrow_array *array)
{
    const char *values = array->buffers[1];
    size_t width = schema->format[0] == 'i' ? 4 : 8;
    volatile char last;

    if (array->length == 0)
        return;
    if (schema->format[0] == 'b')
        last = bit(values, array->length - 1);
    else
        last = values[(size_t)array->length * width - 1];
    (void)last;
}

static void check_column(const vst_arrow_schema *schema,
                         const vst_arrow_array *array)
{
    const void *valid = array->buffers[0];
    int64_t nulls = 0;

    for (int64_t row = 0; valid != NULL && row < array->length; row++)
        nulls += !bit(valid, row);
    MUST(array->offset == 0 && array->null_count == nulls);
    MUST(nulls == 0 || schema->flags & VST_ARROW_NULLABLE);
    if (schema->dictionary != NULL)
        check_dictionary(array);
    else if (schema->format[0] == 'u')
        check_text(array);
    else
        check_values(schema, array);
}

static void check_batch(const vst_arrow_schema *schema,
                        const vst_arrow_array *batch)
{
    MUST(batch->n_children == schema->n_children);
    for (int64_t i = 0; i < batch->n_children; i++) {
        MUST(batch->children[i]->length == batch->length);
        check_column(schema->children[i], batch->children[i]);
    }
}

/* ---- a stream ------------------------------------------------------------ */

static const char *choose_table(unsigned choice)
{
    size_t count = 0;

    while (vst__table_name(count) != NULL)
        count++;
    return vst__table_name(choice % count);
}

static void read_stream(vst_arrow_stream *stream)
{
    static vst_arrow_array batches[BATCHES_MAX];
    vst_arrow_schema schema;
    int64_t rows = 0;
    size_t count = 0;

    MUST(stream->get_schema(stream, &schema) == 0);
    while (count < BATCHES_MAX && rows < ROWS_MAX) {
        int failed = stream->get_next(stream, &batches[count]);

        if (failed != 0) {
            MUST(stream->get_last_error(stream) != NULL);
            break;
        }
        if (batches[count].release == NULL)
            break;
        check_batch(&schema, &batches[count]);
        rows += batches[count++].length;
    }
    stream->release(stream);
    for (size_t i = 0; i < count; i++) {
        check_batch(&schema, &batches[i]);
        batches[i].release(&batches[i]);
    }
    schema.release(&schema);
}

static void read_table(const trace_input *input, vst_trace *trace)
{
    const uint8_t *choices = input->choices;
    int fd = input_file(input);
    char path[64];
    vst_table_source sources[2] = {{.path = path,
                                    .process = choices[3],
                                    .offset_ns = choices[4],
                                    .parent_pid = -1,
                                    .rank = -1,
                                    .world_size = -1,
                                    .host = choices[5] & 1 ? "h" : NULL,
                                    .ended = "torn"}};
    vst_arrow_stream stream;

    (void)trace; /* opened again for each table */
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    sources[1] = sources[0];
    sources[1].process++;
    MUST(vst__table_stream(choose_table(choices[1]), sources,
                           choices[2] & 1 ? 2 : 1, &stream) == VST_OK);
    read_stream(&stream);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return input_use(bytes, size, INPUT_ALL, read_table);
}
