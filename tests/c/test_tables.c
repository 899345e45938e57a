/* Tables: the contents of the streams of hand-made traces, and the rules of
 * Arrow's C interface for memory that is handed out. */
#include <inttypes.h>
#include <pthread.h>
#include <unistd.h>

#include <vestige/device.h>

#include "check.h"
#include "tables/tables.h"
#include "trace_builder.h"

enum { TEXT_MAX = 1 << 16, BATCHES_MAX = 64 };

/* ---- reading streams ---------------------------------------------------- */

/* Returns a file of the built bytes, valid until the program ends. */
static vst_table_source source_of(builder *b, int32_t process)
{
    static char paths[64][32];
    static size_t count;
    char *path = paths[count++];

    snprintf(path, sizeof *paths, "/proc/self/fd/%d", builder_file(b));
    builder_free(b);
    return (vst_table_source){.path = path,
                              .process = process,
                              .parent_pid = -1,
                              .rank = -1,
                              .world_size = -1};
}

static bool bit(const void *bits, int64_t row)
{
    return ((const uint8_t *)bits)[row / 8] >> row % 8 & 1;
}

static int put_text(char *to, size_t room, const vst_arrow_array *array,
                    int64_t row)
{
    const int32_t *ends = array->buffers[1];

    return snprintf(to, room, "%.*s", (int)(ends[row + 1] - ends[row]),
                    (const char *)array->buffers[2] + ends[row]);
}

/* Prints a value; "-" is null. */
static size_t put_value(char *to, size_t room, const vst_arrow_schema *schema,
                        const vst_arrow_array *array, int64_t row)
{
    const void *values = array->buffers[1];

    if (array->buffers[0] != NULL && !bit(array->buffers[0], row))
        return (size_t)snprintf(to, room, "-");
    if (schema->dictionary != NULL)
        return (size_t)put_text(to, room, array->dictionary,
                                ((const int32_t *)values)[row]);
    switch (schema->format[0]) {
    case 'i':
        return (size_t)snprintf(to, room, "%" PRId32,
                                ((const int32_t *)values)[row]);
    case 'l':
        return (size_t)snprintf(to, room, "%" PRId64,
                                ((const int64_t *)values)[row]);
    case 'g':
        return (size_t)snprintf(to, room, "%g", ((const double *)values)[row]);
    case 'b':
        return (size_t)snprintf(to, room, bit(values, row) ? "yes" : "no");
    default:
        return (size_t)put_text(to, room, array, row);
    }
}

static bool is_moment(const vst_arrow_schema *column)
{
    static const char *const lengths[] = {"duration_ns", "self_ns",
                                          "running_ns",  "gil_ns",
                                          "waiting_ns",  "clock_error_ns"};
    size_t end = strlen(column->name);

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        if (strcmp(column->name, lengths[i]) == 0)
            return false;
    return column->format[0] == 'l' && end > 3 &&
           strcmp(column->name + end - 3, "_ns") == 0;
}

/* Prints times relative to the start of built traces. */
static void put_rows(char *text, const vst_arrow_schema *schema,
                     const vst_arrow_array *batch)
{
    size_t at = strlen(text);

    for (int64_t row = 0; row < batch->length; row++) {
        for (int64_t i = 0; i < schema->n_children && at < TEXT_MAX - 64; i++) {
            const vst_arrow_schema *column = schema->children[i];
            bool is_time = is_moment(column);
            const void *valid = batch->children[i]->buffers[0];

            text[at] = ' ';
            at += i != 0;
            if (is_time && (valid == NULL || bit(valid, row)))
                at += (size_t)snprintf(
                    text + at, TEXT_MAX - at, "%" PRId64,
                    ((const int64_t *)batch->children[i]->buffers[1])[row] -
                        BUILDER_EPOCH_NS);
            else
                at += put_value(text + at, TEXT_MAX - at, column,
                                batch->children[i], row);
        }
        text[at++] = '\n';
    }
    text[at] = '\0';
}

/* Returns all rows of a table, or the error. */
static const char *rows_of(const char *table, const vst_table_source *sources,
                           size_t count)
{
    static char text[TEXT_MAX];
    vst_arrow_stream stream;
    vst_arrow_schema schema;
    vst_arrow_array batch;
    int failed;

    text[0] = '\0';
    if (!CHECK_INT(vst__table_stream(table, sources, count, &stream), VST_OK) ||
        !CHECK_INT(stream.get_schema(&stream, &schema), 0))
        return "nothing";
    while ((failed = stream.get_next(&stream, &batch)) == 0 &&
           batch.release != NULL) {
        put_rows(text, &schema, &batch);
        batch.release(&batch);
        CHECK(batch.release == NULL);
    }
    if (failed != 0)
        snprintf(text, sizeof text, "%d: %s", failed,
                 stream.get_last_error(&stream));
    schema.release(&schema);
    CHECK(schema.release == NULL);
    stream.release(&stream);
    CHECK(stream.release == NULL);
    return text;
}

/* ---- a small trace ------------------------------------------------------ */

static void begin(builder *b)
{
    builder_init(b);
    builder_definitions(b, 1);
    builder_window(b, 0, 1000, 9000);
    builder_entry(b,
                  &(vst_file_entry){.kind = VST_DEF_PYTHON,
                                    .id = 1,
                                    .line = 3,
                                    .x = strlen("/home/x/")},
                  "main", "/home/x/app.py");
    builder_define(b, VST_DEF_NATIVE, 2, "<built-in function len>", "", 0);
    builder_define(b, VST_DEF_ANNOTATION, 3, "a step", "", 0);
    builder_define(b, VST_DEF_OPERATOR, 5, "aten::add", "", 0);
    builder_define(b, VST_DEF_COUNTER, 6, "loss", "", 0);
    builder_define(b, VST_DEF_INSTANT, 7, "mark", "", 0);
    builder_thread(b, 0, 4242, "MainThread");
    builder_records(b, 0, 0, 1000, 1);
}

static vst_table_source small(int32_t process)
{
    static const uint64_t lost = 7, pair = 3 | UINT64_C(1) << 32;
    double half = 0.5;
    uint64_t counter[2] = {6, 0};
    builder b;

    memcpy(&counter[1], &half, sizeof half);
    begin(&b);
    builder_enter(&b, 1, 100); /* 1100 */
    builder_enter(&b, 2, 100);
    builder_exit(&b, 2, 50); /* 1250 */
    builder_enter(&b, 1, 50);
    builder_escape_text(&b, VST_ESCAPE_ARGS, 0, strlen("\"n\": 1"), "\"n\": 1");
    builder_escape(&b, VST_ESCAPE_COUNTER, 10, counter, 2);
    builder_escape_text(&b, VST_ESCAPE_INSTANT, 10,
                        7 | (uint64_t)strlen("\"a\": [2]") << 32, "\"a\": [2]");
    builder_escape(&b, VST_ESCAPE_LOST, 10, &lost, 1);
    builder_exit(&b, 1, 70);                           /* 1400 */
    builder_escape(&b, VST_ESCAPE_BEGIN, 0, &pair, 1); /* 1400 */
    builder_exit(&b, 1, 600);                          /* 2000 */
    builder_escape(&b, VST_ESCAPE_END, 500, &pair, 1); /* 2500 */
    return source_of(&b, process);
}

static void spans_are_rows_in_the_order_of_their_ends(void)
{
    vst_table_source source = small(4);

    /* The columns: process thread span parent func name kind start duration
     * self depth stack flags args running gil imports task compensated error */
    CHECK_TEXT(
        rows_of("span", &source, 1),
        "4 0 2 1 2 <built-in function len> <built-in function len> - native "
        "1200 50 50 1 2 0 - - - - - - -\n"
        "4 0 3 1 1 app.py(3): main main - python 1300 100 100 1 3 128 "
        "{\"n\": 1} - - - - - -\n"
        "4 0 1 - 1 app.py(3): main main - python 1100 900 750 0 1 0 - - - - - "
        "- "
        "-\n"
        "4 0 4 - 3 a step a step - annotation 1400 1100 0 0 4 64 - - - - - - "
        "-\n");
}

static void waits_and_calls_that_wait_are_rows_of_one_table(void)
{
    const uint64_t holder = 2;
    vst_table_source source;
    builder b;

    builder_init(&b);
    builder_header(&b)->version = VST_FILE_VERSION;
    builder_fix_header(&b);
    builder_definitions(&b, 1);
    builder_define(&b, VST_DEF_PYTHON, 1, "work", "f.py", 1);
    builder_define(&b, VST_DEF_NATIVE, 2, "<built-in function sleep>", "", 0);
    builder_metadata(&b, VST_WAITS_METADATA, "true");
    builder_thread(&b, 1, 4242, "main");
    builder_seal(&b, 1);
    builder_records(&b, 0, 1, 1000, 1);
    builder_enter(&b, 1, 100);
    builder_escape(&b, VST_ESCAPE_WAIT, 50,
                   (uint64_t[]){1120, 1150, holder << 32 | VST_WAIT_GIL}, 3);
    builder_enter(&b, 2, 50);
    builder_exit(&b, 2, 300);
    builder_exit(&b, 1, 10);
    builder_escape(&b, VST_ESCAPE_WAIT, 50,
                   (uint64_t[]){1520, 1550, VST_WAIT_GIL}, 3);
    source = source_of(&b, 3);
    /* The columns: process thread span func name reason start duration waiting
     * holder */
    CHECK_TEXT(rows_of("wait", &source, 1),
               "3 1 1 1 f.py(1): work gil 1120 30 30 2\n"
               "3 1 2 2 <built-in function sleep> sleep 1200 300 - -\n"
               "3 1 - - - gil 1520 30 30 -\n");
    CHECK_TEXT(
        rows_of("span", &source, 1),
        "3 1 2 1 2 <built-in function sleep> <built-in function sleep> - "
        "native "
        "1200 300 300 1 2 0 - - 0 - - - -\n"
        "3 1 1 - 1 f.py(1): work work - python 1100 410 110 0 1 0 - - 30 - - - "
        "-\n");
}

static void what_devices_did_has_tables_of_its_own(void)
{
    const uint64_t call[] = {VST_ACTIVITY_RUNTIME | UINT64_C(1) << 16, 2, 5,
                             1150, 20};
    const uint64_t kernel[] = {
        VST_ACTIVITY_COPY |
            (VST_ACTIVITY_HOST_TIME | VST_ACTIVITY_HAS_BYTES) << 8 |
            UINT64_C(1) << 16 | UINT64_C(7) << 32,
        3 | UINT64_C(9) << 32,
        5,
        1300,
        40,
        4096};
    vst_table_source source;
    builder b;

    builder_init(&b);
    builder_header(&b)->version = VST_FILE_VERSION;
    builder_fix_header(&b);
    builder_definitions(&b, 1);
    builder_thread(&b, 1, 77, "main");
    builder_define(&b, VST_DEF_OPERATOR, 1, "aten::to", "", 0);
    builder_define(&b, VST_DEF_ACTIVITY, 2, "cudaMemcpyAsync", "", 0);
    builder_define(&b, VST_DEF_ACTIVITY, 3, "Memcpy HtoD", "", 0);
    builder_entry(&b,
                  &(vst_file_entry){.kind = VST_ENTRY_DEVICE,
                                    .id = 1,
                                    .x = 2 | UINT64_C(1) << 32,
                                    .z = 0x61647563},
                  "A GPU", "\"numSms\": 108");
    builder_records(&b, 0, 1, 1000, 1);
    builder_enter(&b, 1, 100);
    builder_escape(&b, VST_ESCAPE_DEVICE, 60, call, 5);
    builder_exit(&b, 1, 100);
    builder_escape(&b, VST_ESCAPE_DEVICE, 200, kernel, 6);
    source = source_of(&b, 4);
    /* The columns: process device platform ordinal name own_clock pairs error
     * args */
    CHECK_TEXT(rows_of("device", &source, 1),
               "4 1 cuda 2 A GPU no 0 0 {\"numSms\": 108}\n");
    /* The columns: process device stream kind func name start duration
     * correlation bytes context thread launch launch_name op op_name annotation
     * its_name args */
    CHECK_TEXT(rows_of("activity", &source, 1),
               "4 1 - runtime 2 cudaMemcpyAsync 1150 20 5 - - 1 - - 1 aten::to "
               "- - -\n"
               "4 1 7 copy 3 Memcpy HtoD 1300 40 5 4096 9 1 1150 "
               "cudaMemcpyAsync 1 aten::to - - -\n");
    CHECK_TEXT(rows_of("func", &source, 1),
               "4 1 operator aten::to aten::to aten::to - -\n"
               "4 2 activity cudaMemcpyAsync cudaMemcpyAsync "
               "cudaMemcpyAsync - -\n"
               "4 3 activity Memcpy HtoD Memcpy HtoD Memcpy HtoD - -\n");
    source = small(0);
    CHECK_TEXT(rows_of("device", &source, 1), "");
    CHECK_TEXT(rows_of("activity", &source, 1), "");
}

static void stacks_are_the_places_in_the_tree_of_calls(void)
{
    vst_table_source source = small(0);

    /* The columns: process stack parent func name line address native depth
     * recursive */
    CHECK_TEXT(rows_of("stack", &source, 1),
               "0 1 - 1 app.py(3): main - - - 0 no\n"
               "0 2 1 2 <built-in function len> - - - 1 no\n"
               "0 3 1 1 app.py(3): main - - - 1 yes\n"
               "0 4 1 3 a step - - - 1 no\n");
}

static void what_lies_beside_spans_has_tables_of_its_own(void)
{
    vst_table_source source = small(0);

    CHECK_TEXT(rows_of("counter", &source, 1), "0 0 6 loss 1310 0.5\n");
    CHECK_TEXT(rows_of("instant", &source, 1),
               "0 0 7 mark 1320 {\"a\": [2]}\n");
    CHECK_TEXT(rows_of("lost", &source, 1), "0 0 records 1320 10 7\n");
    CHECK_TEXT(rows_of("op", &source, 1), "");
    CHECK_TEXT(rows_of("alloc", &source, 1), "");
}

static void functions_threads_and_processes_are_told(void)
{
    vst_table_source source = small(2);
    char expected[256];

    source.rank = 1;
    source.host = "a host";
    source.ended = "torn";
    CHECK_TEXT(rows_of("func", &source, 1),
               "2 1 python app.py(3): main main main /home/x/app.py 3\n"
               "2 2 native <built-in function len> <built-in function len> "
               "<built-in function len> - -\n"
               "2 3 annotation a step a step a step - -\n"
               "2 5 operator aten::add aten::add aten::add - -\n"
               "2 6 counter loss loss loss - -\n"
               "2 7 instant mark mark mark - -\n");
    CHECK_TEXT(rows_of("thread", &source, 1), "2 0 4242 MainThread 21\n");
    snprintf(expected, sizeof expected,
             "2 4242 - 1 - a host - - %s A0A1A2A3A4A5A6A7A8A9AAABACADAEAF 1000 "
             "9000 torn 21 0 0\n",
             source.path);
    CHECK_TEXT(rows_of("process", &source, 1), expected);
}

static void a_trace_is_moved_and_cut_in_time(void)
{
    vst_table_source source = small(0);

    source.offset_ns = 100;
    source.from_ns = BUILDER_EPOCH_NS + 1301 + 100;
    source.to_ns = BUILDER_EPOCH_NS + 1399 + 100;
    CHECK_TEXT(rows_of("counter", &source, 1), "0 0 6 loss 1410 0.5\n");
    CHECK(strstr(rows_of("span", &source, 1), "len>") == NULL);
    CHECK(strstr(rows_of("span", &source, 1), "main") != NULL);
    source.from_ns = BUILDER_EPOCH_NS + 1330 + 100;
    CHECK_TEXT(rows_of("counter", &source, 1), "");
}

static void bad_bytes_and_what_is_no_json_become_text(void)
{
    vst_table_source source;
    builder b;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_window(&b, 0, 1000, 9000);
    builder_define(&b, VST_DEF_ANNOTATION, 1, "a\xff\xc3z", "", 0);
    builder_thread(&b, 0, 0, "\xfe");
    builder_records(&b, 0, 0, 1000, 1);
    builder_enter(&b, 1, 1);
    builder_escape_text(&b, VST_ESCAPE_ARGS, 0, 3, "\"\xff\n");
    builder_exit(&b, 1, 1);
    builder_enter(&b, 9, 1); /* a function that is not defined */
    builder_exit(&b, 9, 1);
    source = source_of(&b, 0);
    CHECK_TEXT(
        rows_of("span", &source, 1),
        "0 0 1 - 1 a\xef\xbf\xbd\xef\xbf\xbdz "
        "a\xef\xbf\xbd\xef\xbf\xbdz - annotation 1001 1 1 0 1 0 "
        "{\"args\": \"\\\"\xef\xbf\xbd\\n\"} - - - - - -\n"
        "0 0 2 - 9 unknown function unknown function - unknown 1003 1 1 0 2 0 "
        "- - - - - - -\n");
    CHECK_TEXT(rows_of("thread", &source, 1), "0 0 - \xef\xbf\xbd 7\n");
}

static void an_allocation_has_its_free_beside_it(void)
{
    vst_table_source source;
    builder b;

    builder_memory(&b);
    source = source_of(&b, 0);
    /* The columns: process thread alloc kind framework address size weight time
     * freed freed_thread stack func name line. The last allocations are a part
     * of a mapping, and the rest. */
    CHECK_TEXT(rows_of("alloc", &source, 1),
               "0 1 1 malloc no 139637976727568 64 8.51041 1020 1040 1 -2 1 "
               "/home/x/app.py(3): main 7\n"
               "0 1 2 malloc no 139637976727584 100 5.63627 1030 1100 2 -3 - - "
               "-\n"
               "0 1 3 mmap no 139637977784320 4096 1 1050 1110 2 -4 - - -\n"
               "0 2 4 malloc no 139637976727568 8 64.5013 1120 6050 1 -1 1 "
               "/home/x/app.py(3): main 7\n"
               "0 1 3 mmap no 139637977776128 28672 1 1050 - - -4 - - -\n"
               "0 1 5 malloc no 139637976727568 32 16.5052 6050 - - -1 1 "
               "/home/x/app.py(3): main 7\n");
    CHECK(strstr(rows_of("stack", &source, 1), "0 -1 - ") != NULL);
}

/* ---- several traces ------------------------------------------------------ */

static void traces_follow_each_other_and_share_their_names(void)
{
    vst_table_source sources[] = {small(0), small(1), small(2)};
    vst_arrow_stream stream;
    vst_arrow_array batch;
    int64_t of_one;

    CHECK_INT(vst__table_stream("counter", sources, 1, &stream), VST_OK);
    CHECK_INT(stream.get_next(&stream, &batch), 0);
    of_one = batch.children[3]->dictionary->length;
    batch.release(&batch);
    stream.release(&stream);
    CHECK_TEXT(rows_of("counter", sources, 3),
               "0 0 6 loss 1310 0.5\n1 0 6 loss 1310 0.5\n"
               "2 0 6 loss 1310 0.5\n");
    CHECK_INT(vst__table_stream("counter", sources, 3, &stream), VST_OK);
    CHECK_INT(stream.get_next(&stream, &batch), 0);
    CHECK_INT(batch.children[3]->dictionary->length, of_one);
    batch.release(&batch);
    stream.release(&stream);
}

static void a_file_that_is_not_there_is_told_of_for_ever(void)
{
    vst_table_source sources[] = {small(0), {.path = "/no/such/trace.vst"}};
    vst_arrow_stream stream;
    vst_arrow_array batch;

    CHECK_TEXT(rows_of("thread", &sources[1], 1),
               "5: /no/such/trace.vst: No such file or directory");
    CHECK_INT(vst__table_stream("span", sources, 2, &stream), VST_OK);
    CHECK(stream.get_last_error(&stream) == NULL);
    for (int i = 0; i < 2; i++) {
        CHECK(stream.get_next(&stream, &batch) != 0);
        CHECK(batch.release == NULL);
        CHECK(strstr(stream.get_last_error(&stream), "/no/such") != NULL);
    }
    stream.release(&stream);
    CHECK_INT(vst__table_stream("spam", sources, 1, &stream), VST_E_ARGUMENT);
    CHECK_TEXT(rows_of("span", sources, 0), "");
}

/* ---- manners ------------------------------------------------------------ */

enum { CALLS = 150000 };

static vst_table_source large(void)
{
    static vst_table_source kept;
    builder b;

    if (kept.path != NULL)
        return kept;
    begin(&b);
    for (int i = 0; i < CALLS; i++) {
        if (i % 400 == 0) {
            builder_seal(&b, 1);
            builder_records(&b, 0, 0, 2000 + 10 * (unsigned)i, 2);
        }
        builder_enter(&b, i % 3 == 0 ? 1 : 2, 3);
        builder_exit(&b, i % 3 == 0 ? 1 : 2, 3);
    }
    kept = source_of(&b, 0);
    return kept;
}

static size_t read_batches(vst_arrow_stream *stream, vst_arrow_array *batches)
{
    size_t count = 0;

    while (count < BATCHES_MAX &&
           stream->get_next(stream, &batches[count]) == 0 &&
           batches[count].release != NULL)
        count++;
    return count;
}

static void a_long_table_comes_in_batches_with_one_dictionary(void)
{
    vst_table_source source = large();
    vst_arrow_array batches[BATCHES_MAX];
    vst_arrow_stream stream;
    int64_t rows = 0, serial = 0;
    size_t count;

    CHECK_INT(vst__table_stream("span", &source, 1, &stream), VST_OK);
    count = read_batches(&stream, batches);
    stream.release(&stream); /* the batches stay valid */
    CHECK(count > 1);
    for (size_t i = 0; i < count; i++) {
        const int64_t *spans = batches[i].children[2]->buffers[1];

        CHECK(batches[i].length <= 1 << 16);
        for (int64_t k = 0; k < batches[i].length; k++)
            serial += spans[k] == serial + 1;
        rows += batches[i].length;
        CHECK(batches[i].children[5]->dictionary->buffers[2] ==
              batches[0].children[5]->dictionary->buffers[2]);
        CHECK_INT(batches[i].children[3]->null_count, batches[i].length);
        CHECK(batches[i].children[3]->buffers[0] != NULL);
    }
    CHECK_INT(rows, CALLS);
    CHECK_INT(serial, CALLS);
    for (size_t i = count; i-- != 0;)
        batches[i].release(&batches[i]);
}

static void a_column_may_be_taken_out_of_its_batch(void)
{
    vst_table_source source = small(0);
    vst_arrow_stream stream;
    vst_arrow_array batch, names;
    vst_arrow_schema schema, column;
    char text[64];

    CHECK_INT(vst__table_stream("span", &source, 1, &stream), VST_OK);
    CHECK_INT(stream.get_schema(&stream, &schema), 0);
    CHECK_INT(stream.get_next(&stream, &batch), 0);
    names = *batch.children[5];
    batch.children[5]->release = NULL;
    column = *schema.children[5];
    schema.children[5]->release = NULL;
    batch.release(&batch);
    schema.release(&schema);
    stream.release(&stream);
    put_value(text, sizeof text, &column, &names, 1);
    CHECK_TEXT(text, "app.py(3): main");
    names.release(&names);
    column.release(&column);
}

static void a_stream_may_be_released_at_any_time(void)
{
    vst_table_source sources[] = {large(), small(1)};
    vst_arrow_stream stream;
    vst_arrow_array batch;
    const char *name;

    for (size_t i = 0; (name = vst__table_name(i)) != NULL; i++)
        for (int batches = 0; batches < 3; batches++) {
            CHECK_INT(vst__table_stream(name, sources, 2, &stream), VST_OK);
            for (int k = 0; k < batches; k++) {
                CHECK_INT(stream.get_next(&stream, &batch), 0);
                if (batch.release != NULL)
                    batch.release(&batch);
            }
            stream.release(&stream);
        }
}

static void the_schema_of_each_table_is_that_of_its_batches(void)
{
    vst_table_source source;
    const char *name;
    builder b;

    builder_memory(&b);
    source = source_of(&b, 0);
    for (size_t i = 0; (name = vst__table_name(i)) != NULL; i++) {
        vst_arrow_schema schema;
        vst_arrow_stream stream;
        vst_arrow_array batch;

        CHECK_INT(vst__table_schema(name, &schema), VST_OK);
        CHECK_TEXT(schema.format, "+s");
        CHECK_INT(vst__table_stream(name, &source, 1, &stream), VST_OK);
        CHECK_INT(stream.get_next(&stream, &batch), 0);
        for (int64_t k = 0; batch.release != NULL && k < batch.n_children;
             k++) {
            const vst_arrow_array *array = batch.children[k];

            CHECK_INT(array->length, batch.length);
            CHECK_INT(array->n_buffers,
                      schema.children[k]->format[0] == 'u' ? 3 : 2);
            CHECK((array->dictionary != NULL) ==
                  (schema.children[k]->dictionary != NULL));
            CHECK(array->null_count == 0 ||
                  schema.children[k]->flags & VST_ARROW_NULLABLE);
        }
        CHECK(batch.release == NULL || batch.n_children == schema.n_children);
        if (batch.release != NULL)
            batch.release(&batch);
        stream.release(&stream);
        schema.release(&schema);
    }
    CHECK_INT(vst__table_schema("spam", &(vst_arrow_schema){0}),
              VST_E_ARGUMENT);
}

/* Each thread reads a batch, and releases the batch that the thread before has
 * read. */
static void *read_and_release(void *ctx)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static vst_arrow_array left;
    vst_table_source source = large();
    vst_arrow_array batches[BATCHES_MAX], before;
    vst_arrow_stream stream;
    size_t count;
    int64_t *rows = ctx;

    if (vst__table_stream("span", &source, 1, &stream) != VST_OK)
        return NULL;
    count = read_batches(&stream, batches);
    for (size_t i = 0; i < count; i++) {
        *rows += batches[i].length;
        pthread_mutex_lock(&lock);
        before = left;
        left = batches[i];
        pthread_mutex_unlock(&lock);
        if (before.release != NULL)
            before.release(&before);
    }
    stream.release(&stream);
    pthread_mutex_lock(&lock);
    if (left.release != NULL)
        left.release(&left);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void threads_read_by_themselves_and_release_each_others(void)
{
    int64_t rows[4] = {0};
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, read_and_release, &rows[i]);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT(rows[i], CALLS);
    }
}

int main(void)
{
    TEST(spans_are_rows_in_the_order_of_their_ends);
    TEST(waits_and_calls_that_wait_are_rows_of_one_table);
    TEST(what_devices_did_has_tables_of_its_own);
    TEST(stacks_are_the_places_in_the_tree_of_calls);
    TEST(what_lies_beside_spans_has_tables_of_its_own);
    TEST(functions_threads_and_processes_are_told);
    TEST(a_trace_is_moved_and_cut_in_time);
    TEST(bad_bytes_and_what_is_no_json_become_text);
    TEST(an_allocation_has_its_free_beside_it);
    TEST(traces_follow_each_other_and_share_their_names);
    TEST(a_file_that_is_not_there_is_told_of_for_ever);
    TEST(a_long_table_comes_in_batches_with_one_dictionary);
    TEST(a_column_may_be_taken_out_of_its_batch);
    TEST(a_stream_may_be_released_at_any_time);
    TEST(the_schema_of_each_table_is_that_of_its_batches);
    TEST(threads_read_by_themselves_and_release_each_others);
    return checks_end();
}
