/* Execution traces as documents: every kind of value as torch's observer writes
 * it, nodes with their attributes, names that are not valid text; and node
 * numbers that equal the numbers on the timeline. */
#include <math.h>
#include <sys/stat.h>

#include "check.h"
#include "execution_traces.h"
#include "graph/nodes.h"

#define EMPTY "{\"values\": [], \"shapes\": [], \"types\": [], \"strides\": []}"

/* ---- values ------------------------------------------------------------- */

/* Exports a document with one node that has these inputs. */
static char *with_inputs(const node_bytes *inputs)
{
    vst_session *session = started(0);
    vst_id id = define(VST_DEF_OPERATOR, "aten::add");

    enter_node(id, 7, inputs);
    leave_node(id, 7, NULL);
    return finished(session);
}

static void numbers_and_texts_are_written_as_torch_does(void)
{
    static node_bytes b;
    char *text;

    b.count = 0;
    put_byte(&b, VST_VALUE_NONE);
    put_number(&b, -3);
    put_number(&b, INT64_MIN);
    put_double(&b, 0);
    put_double(&b, 2.5);
    put_double(&b, -1e-05);
    put_double(&b, 0.1 + 0.2);
    put_double(&b, 1e300);
    put_double(&b, -0.0);
    put_double(&b, INFINITY);
    put_double(&b, -INFINITY);
    put_double(&b, NAN);
    put_byte(&b, VST_VALUE_BOOL);
    put_byte(&b, 1);
    put_string(&b, VST_VALUE_STRING, "a\"b\n\xff");
    put_string(&b, VST_VALUE_DEVICE, "cuda:0");
    put_string(&b, VST_VALUE_OTHER, "Generator");
    text = with_inputs(&b);
    expect_line(
        text,
        "\"inputs\": {\"values\": "
        "[\"<None>\",-3,-9223372036854775808,0.000000,2.500000,"
        "-0.000010,0.30000000000000004,1e+300,-0.000000,\"inf\",\"-inf\","
        "\"nan\",true,\"a\\\"b\\n\xef\xbf\xbd\",\"cuda:0\",\"<Generator>\"], "
        "\"shapes\": [[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]], "
        "\"types\": [\"None\",\"Int\",\"Int\",\"Double\",\"Double\","
        "\"Double\",\"Double\",\"Double\",\"Double\",\"Double\",\"Double\","
        "\"Double\",\"Bool\",\"String\",\"Device\",\"Generator\"], "
        "\"strides\": [[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]]},");
    free(text);
}

static void tensors_have_ids_that_views_share(void)
{
    static node_bytes b;
    char *text;

    b.count = 0;
    put_tensor(&b, 0x1000, 0x9000, 2, 3);
    put_tensor(&b, 0x2000, 0x9000, 3, 2);
    put_tensor(&b, 0x3000, 0, 1, 1);
    put_byte(&b, VST_VALUE_TENSOR_UNDEFINED);
    put_byte(&b, VST_VALUE_TENSOR_UNDEFINED);
    put_tensor(&b, 0x1000, 0x9000, 2, 3);
    text = with_inputs(&b);
    expect_line(text, "{\"values\": [[4,5,0,6,4,\"cpu\"],[6,5,0,6,4,\"cpu\"],"
                      "[7,0,0,1,4,\"cpu\"],[8,0,0,0,0,\"\"],[8,0,0,0,0,\"\"],"
                      "[4,5,0,6,4,\"cpu\"]], "
                      "\"shapes\": [[2,3],[3,2],[1,1],[],[],[2,3]], "
                      "\"types\": [\"Tensor(float)\",\"Tensor(float)\","
                      "\"Tensor(float)\",\"Tensor(nullptr (uninitialized))\","
                      "\"Tensor(nullptr (uninitialized))\",\"Tensor(float)\"], "
                      "\"strides\": [[3,1],[2,1],[1,1],[],[],[3,1]]}");
    free(text);
}

static void lists_and_tuples_nest(void)
{
    static node_bytes b;
    char *text;

    b.count = 0;
    put_list(&b, VST_VALUE_LIST, 0);
    put_list(&b, VST_VALUE_TUPLE, 3);
    put_tensor(&b, 0x1000, 0x9000, 2, 3);
    put_list(&b, VST_VALUE_LIST, 2);
    put_number(&b, 1);
    put_number(&b, 2);
    put_byte(&b, VST_VALUE_NONE);
    put_number(&b, 5);
    text = with_inputs(&b);
    expect_line(text,
                "{\"values\": [[],[[4,5,0,6,4,\"cpu\"],[1,2],\"<None>\"],5], "
                "\"shapes\": [[],[[2,3],[[],[]],[]],[]], "
                "\"types\": [\"GenericList[]\",\"Tuple[Tensor(float),"
                "GenericList[Int,Int],None]\",\"Int\"], "
                "\"strides\": [[],[[3,1],[[],[]],[]],[]]}");
    free(text);
}

static void a_nested_tensor_has_dimensions_for_each_row(void)
{
    static node_bytes b;
    char *text;

    b.count = 0;
    put_tensor_head(&b, VST_VALUE_TENSOR_NESTED, 0x1000, 0x9000, 18);
    put_count(&b, 2);
    for (int64_t rows = 2; rows <= 4; rows += 2) {
        put_count(&b, 2);
        put_integer(&b, rows);
        put_integer(&b, 3);
        put_count(&b, 2);
        put_integer(&b, 3);
        put_integer(&b, 1);
    }
    text = with_inputs(&b);
    expect_line(text, "{\"values\": [[4,5,0,18,4,\"cpu\"]], "
                      "\"shapes\": [[[2,3],[4,3]]], "
                      "\"types\": [\"Tensor(float)\"], "
                      "\"strides\": [[[3,1],[3,1]]]}");
    free(text);
}

static void values_go_on_in_the_next_escape_wherever_they_were_cut(void)
{
    static node_bytes b;

    b.count = 0;
    put_list(&b, VST_VALUE_LIST, 4097);
    for (int i = 0; i < 4097; i++)
        put_number(&b, i * 1000);
    put_string(&b, VST_VALUE_STRING, "and this");
    for (uint32_t most = 2; most <= VST_ESCAPE_WORDS_MAX; most += 511) {
        vst_session *session = started(0);
        vst_id id = define(VST_DEF_OPERATOR, "aten::split");
        uint64_t words[2] = {3, vst_operator_word(1, 0, 0)};
        char *text;

        vst_record_operator(id, 0, words, 2);
        record_bytes(&b, 9, 0, 1, most);
        record_bytes(&b, 9, VST_NODE_OUTPUTS, 1, most);
        vst_record_operator_exit(VST_EXIT, id, 0);
        text = finished(session);
        expect_line(node_of(text, 9), "{\"values\": [[0,1000,2000,3000,");
        expect_line(node_of(text, 9),
                    ",4094000,4095000,4096000],\"and this\"], \"shapes\"");
        expect_line(node_of(text, 9), "\"outputs\": {\"values\": [[0,1000,");
        free(text);
    }
}

static void what_cannot_be_read_is_cut(void)
{
    static node_bytes b;
    char *text;

    /* Lists nested deeper than the reader follows. */
    b.count = 0;
    put_number(&b, 1);
    for (int i = 0; i < 5000; i++)
        put_list(&b, VST_VALUE_LIST, 1);
    text = with_inputs(&b);
    expect_line(text, "{\"values\": [1,[[[[");
    free(text);
    /* A count of items, but no items follow. */
    b.count = 0;
    put_number(&b, 2);
    put_list(&b, VST_VALUE_TUPLE, UINT64_MAX);
    text = with_inputs(&b);
    expect_line(text, "{\"values\": [2], \"shapes\"");
    free(text);
    b.count = 0;
    put_list(&b, VST_VALUE_LIST, 3);
    put_number(&b, 4);
    put_byte(&b, 200);
    text = with_inputs(&b);
    expect_line(text, "{\"values\": [[4]], \"shapes\": [[[]]], "
                      "\"types\": [\"GenericList[Int]\"]");
    free(text);
}

/* ---- nodes -------------------------------------------------------------- */

static void a_node_has_the_ten_attributes_in_order(void)
{
    static node_bytes b;
    vst_session *session = started(0);
    vst_id name = define(VST_DEF_OPERATOR, "triton \"poi\"\n\xfe");
    vst_id schema = define(VST_DEF_OPERATOR, "f(str s=\"x\") -> ()");
    uint64_t words[2] = {41, vst_operator_word(3, 0, 2)};
    char *text;

    b.count = 0;
    put_byte(&b, VST_VALUE_SCHEMA);
    put_count(&b, schema);
    put_number(&b, 5);
    put_string(&b, VST_VALUE_BACKEND, "triton");
    put_string(&b, VST_VALUE_FILE, "k.py");
    put_string(&b, VST_VALUE_RANGE, "{\"0\":[1,4]}");
    vst_record_operator(name, 0, words, 2);
    record_bytes(&b, 7, 0, 1, VST_ESCAPE_WORDS_MAX);
    leave_node(name, 7, NULL);
    text = finished(session);
    expect_line(
        text,
        "      {\n"
        "        \"id\": 3, \"name\": \"triton \\\"poi\\\"\\n\xef\xbf\xbd\", "
        "\"ctrl_deps\": 2,\n"
        "        \"inputs\": {\"values\": [5], \"shapes\": [[]], "
        "\"types\": [\"Int\"], \"strides\": [[]]},\n"
        "        \"outputs\": " EMPTY ",\n"
        "        \"attrs\": [{\"name\": \"rf_id\", \"type\": \"uint64\", "
        "\"value\": 7},{\"name\": \"fw_parent\", \"type\": \"uint64\", "
        "\"value\": 0},{\"name\": \"seq_id\", \"type\": \"int64\", \"value\": "
        "41},{\"name\": \"scope\", \"type\": \"uint64\", \"value\": 2},"
        "{\"name\": \"tid\", \"type\": \"uint64\", \"value\": 3},"
        "{\"name\": \"fw_tid\", \"type\": \"uint64\", \"value\": 0},"
        "{\"name\": \"op_schema\", \"type\": \"string\", \"value\": "
        "\"f(str s=\\\"x\\\") -> ()\"},{\"name\": \"kernel_backend\", "
        "\"type\": \"string\", \"value\": \"triton\"},{\"name\": "
        "\"kernel_file\", \"type\": \"string\", \"value\": \"k.py\"},"
        "{\"name\": \"tensor_range\", \"type\": \"string\", \"value\": "
        "\"{\\\"0\\\":[1,4]}\"}]\n      },\n");
    free(text);
}

static void the_document_is_framed_as_torch_does(void)
{
    vst_session *session = started(0);
    char head[160];
    char *text = finished(session);
    static const char ends[] = "\n  ],\n  \"finish_ts\": ";

    snprintf(head, sizeof head,
             "{\n  \"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": %d, \"time\": "
             "\"20",
             (int)getpid());
    CHECK(strncmp(text, head, strlen(head)) == 0);
    expect_line(text, "\", \"start_ts\": ");
    expect_line(text, ends);
    CHECK(number_behind(next_line(text), "\"start_ts\": ") <=
          strtoull(strstr(text, ends) + strlen(ends), NULL, 10));
    expect_line(text,
                "\n  \"nodes\": [\n      {\n        \"id\": 1, \"name\": "
                "\"[pytorch|profiler|execution_trace|process]\", "
                "\"ctrl_deps\": 1,\n        \"inputs\": " EMPTY
                ",\n        \"outputs\": " EMPTY ",\n        \"attrs\": [");
    free(text);
}

/* Only operators that are nodes have numbers. */
static void the_timeline_has_the_same_numbers(void)
{
    vst_export_options options = {.window = VST_WINDOW_ALL};
    vst_session *session = started(0);
    vst_id before = define(VST_DEF_OPERATOR, "aten::before");
    vst_id id = define(VST_DEF_OPERATOR, "aten::node");
    vst_trace *trace = NULL;
    uint64_t count = 0;
    char *text;

    vst_record_operator(before, 0, NULL, 0);
    enter_node(id, 77, NULL);
    leave_node(id, 77, NULL);
    vst_record_operator_exit(VST_EXIT, before, 0);
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    CHECK_INT(vst__trace_count_nodes(trace, VST_WINDOW_ALL, &count, NULL),
              VST_OK);
    CHECK_INT(count, 1);
    CHECK_INT(vst_trace_export(trace, in_folder("t.json"), &options, NULL),
              VST_OK);
    text = contents(in_folder("t.json"));
    expect_line(text, "\"args\": {\"External id\": 2, "
                      "\"Record function id\": 77, \"Ev Idx\": 2}");
    expect_line(text, "\"args\": {\"External id\": 1, \"Ev Idx\": 1}");
    free(text);
    remove(in_folder("t.json"));
    vst_trace_close(trace);
    vst_session_destroy(session);
}

static void a_path_that_cannot_be_written_is_an_error(void)
{
    vst_export_options options = {.window = VST_WINDOW_ALL,
                                  .format = "execution-trace"};
    vst_session *session = started(0);
    vst_trace *trace = NULL;
    vst_error error;
    char *text;

    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    CHECK_INT(
        vst_trace_export(trace, in_folder("no/et.json"), &options, &error),
        VST_E_IO);
    CHECK(error.sys_errno != 0);
    CHECK_INT(vst_trace_export(trace, in_folder("et.json.gz"), &options, NULL),
              VST_OK);
    text = contents(in_folder("et.json.gz"));
    CHECK_INT(check_document(text), 1);
    free(text);
    remove(in_folder("et.json.gz"));
    vst_trace_close(trace);
    vst_session_destroy(session);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    TEST(numbers_and_texts_are_written_as_torch_does);
    TEST(tensors_have_ids_that_views_share);
    TEST(lists_and_tuples_nest);
    TEST(a_nested_tensor_has_dimensions_for_each_row);
    TEST(values_go_on_in_the_next_escape_wherever_they_were_cut);
    TEST(what_cannot_be_read_is_cut);
    TEST(a_node_has_the_ten_attributes_in_order);
    TEST(the_document_is_framed_as_torch_does);
    TEST(the_timeline_has_the_same_numbers);
    TEST(a_path_that_cannot_be_written_is_an_error);
    rmdir(folder);
    return checks_end();
}
