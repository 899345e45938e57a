/* The Chrome exporter and its parts: JSON text and the output file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vestige/trace.h>

#include "check.h"
#include "export/output/json.h"
#include "export_built.h"

/* Exports the trace, reads the file back, and deletes the file. */
static char *exported(const builder *b, const char *name, int window)
{
    char *text = export_built(b, name, NULL, window);

    CHECK(vst__json_is_value(text, strlen(text)));
    return text;
}

static void begin(builder *b)
{
    builder_init(b);
    builder_definitions(b, 1);
    builder_window(b, 0, 1000, 9000);
    builder_define(b, VST_DEF_NATIVE, 2, "<built-in function len>", "", 0);
    builder_define(b, VST_DEF_ANNOTATION, 3, "a \"quoted\" step", "", 0);
    builder_define(b, VST_DEF_GC, 4, "gc", "", 0);
    builder_define(b, VST_DEF_OPERATOR, 5, "aten::add", "", 0);
    builder_define(b, VST_DEF_COUNTER, 6, "memory", "", 0);
    builder_define(b, VST_DEF_INSTANT, 7, "mark", "", 0);
    builder_entry(b,
                  &(vst_file_entry){.kind = VST_DEF_PYTHON,
                                    .id = 1,
                                    .line = 3,
                                    .x = strlen("/home/x/")},
                  "main", "/home/x/app.py");
    builder_thread(b, 0, 4242, "MainThread");
}

static void records(builder *b)
{
    builder_records(b, 0, 0, 1000, 1);
}

/* ---- JSON text ---------------------------------------------------------- */

static void numbers_are_written_exactly(void)
{
    char text[256], *at = text;

    at = vst__json_u64(at, 0);
    *at++ = ' ';
    at = vst__json_u64(at, 9);
    *at++ = ' ';
    at = vst__json_u64(at, 10);
    *at++ = ' ';
    at = vst__json_u64(at, 12345);
    *at++ = ' ';
    at = vst__json_u64(at, UINT64_MAX);
    *at++ = ' ';
    at = vst__json_i64(at, INT64_MIN);
    *at++ = ' ';
    at = vst__json_us(at, 0);
    *at++ = ' ';
    at = vst__json_us(at, 7);
    *at++ = ' ';
    at = vst__json_us(at, 1234567);
    *at++ = ' ';
    at = vst__json_us(at, -1001);
    *at = '\0';
    CHECK_TEXT(text, "0 9 10 12345 18446744073709551615 -9223372036854775808 "
                     "0.000 0.007 1234.567 -1.001");
}

/* For each number of digits: the smallest number, the largest, and some
 * between. */
static void numbers_of_any_length_are_written_as_printf_does(void)
{
    uint64_t least = 1, some = 88172645463325252u;

    for (int digits = 1; digits <= 19; digits++, least *= 10)
        for (int i = 0; i < 2000; i++) {
            char text[VST_JSON_NUMBER_MAX + 8], expected[64];
            uint64_t value = i == 0 ? least : least * 10 - 1;

            some ^= some << 13;
            some ^= some >> 7;
            some ^= some << 17;
            if (i > 1)
                value = least + some % (9 * least);
            *vst__json_u64(text, value) = '\0';
            snprintf(expected, sizeof expected, "%llu",
                     (unsigned long long)value);
            CHECK_TEXT(text, expected);
            if (value > INT64_MAX)
                continue;
            *vst__json_us(text, -(int64_t)value) = '\0';
            snprintf(expected, sizeof expected, "-%llu.%03llu",
                     (unsigned long long)(value / 1000),
                     (unsigned long long)(value % 1000));
            CHECK_TEXT(text, expected);
        }
}

static void doubles_are_written_as_short_as_they_can_be(void)
{
    static const double values[] = {0.1,  -3,   1e300, 0.1 + 0.2, -0.0,
                                    1e15, 1e22, NAN,   INFINITY};
    char text[512], *at = text;

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        at = vst__json_double(at, values[i]);
        *at++ = ' ';
    }
    *at = '\0';
    CHECK_TEXT(text, "0.1 -3 1e+300 0.30000000000000004 0 1000000000000000 "
                     "1e+22 \"NaN\" \"Infinity\" ");
}

static void strings_are_escaped_and_bad_bytes_replaced(void)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"plain", "plain"},
        {"a\"b\\c", "a\\\"b\\\\c"},
        {"\b\t\n\v\f\r\x01\x1f\x7f",
         "\\b\\t\\n\\u000b\\f\\r\\u0001\\u001f\\u007f"},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xff", "\xef\xbf\xbd"},
        {"\xc3", "\xef\xbf\xbd"},
        {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf4\x90\x80\x80x",
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        const char *from = cases[i].from;
        char *end = vst__json_escape(text, text + sizeof text, &from,
                                     from + strlen(from));
        *end = '\0';
        CHECK_TEXT(text, cases[i].to);
    }
}

static void the_checker_knows_json_from_what_is_not(void)
{
    static const char *const good[] = {
        "1",        "-0",
        "1.5e-7",   "\"x\"",
        "true",     "null",
        "[]",       "{}",
        " [1, 2] ", "{\"a\": {\"b\": [{}, [], \"\\u00e9\\n\"]}, \"c\": false}",
    };
    static const char *const bad[] = {
        "",        "01",       "1.",          ".5",
        "+1",      "1e",       "tru",         "\"",
        "\"\n\"",  "\"\\x\"",  "\"\\u12g4\"", "[1,]",
        "{\"a\"}", "{\"a\":}", "{a: 1}",      "[1 2]",
        "]",       "1 2",      "[",           "{",
        "[}",      "\"\xff\"", "NaN",         "{\"a\": 1,}",
    };
    char deep[4000];

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (!CHECK(vst__json_is_value(good[i], strlen(good[i]))))
            printf("# %s\n", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (!CHECK(!vst__json_is_value(bad[i], strlen(bad[i]))))
            printf("# %s\n", bad[i]);
    memset(deep, '[', 2000);
    memset(deep + 2000, ']', 2000);
    CHECK(!vst__json_is_value(deep, sizeof deep));
    CHECK(vst__json_is_value(deep + 1700, 600));
    CHECK(vst__json_is_members("\"a\": 1, \"b\": [2]", 16));
    CHECK(!vst__json_is_members("\"a\": 1}, {\"b\": 2", 16));
    CHECK(!vst__json_is_members("", 0));
}

/* ---- the document ------------------------------------------------------- */

static void the_document_begins_and_ends_as_torchs_does(void)
{
    builder b;
    char *text, *expected;
    const char *events;

    begin(&b);
    builder_metadata(&b, "with_stack", "1");
    builder_metadata(&b, "distributedInfo", "{\"rank\": 3}");
    builder_metadata(&b, "broken", "{\"rank: 3");
    builder_metadata(&b, "host_name", "\"box\"");
    builder_metadata(&b, "vestige.process_name", "\"prog\"");
    builder_metadata(&b, "vestige.secret", "1");
    builder_metadata(&b, "traceEvents", "[]");
    text = exported(&b, "t.json", VST_WINDOW_LAST);
    events = strstr(text, "{\"ph\": \"M\"");
    CHECK(events != NULL);
    expected = strdup(text);
    expected[events != NULL ? events - text : 0] = '\0';
    CHECK_TEXT(expected, "{\n"
                         "\"schemaVersion\": 1,\n"
                         "\"deviceProperties\": [],\n"
                         "\"trace_id\": \"A0A1A2A3A4A5A6A7A8A9AAABACADAEAF\",\n"
                         "\"with_stack\": 1,\n"
                         "\"distributedInfo\": {\"rank\": 3},\n"
                         "\"broken\": \"{\\\"rank: 3\",\n"
                         "\"host_name\": \"box\",\n"
                         "\"displayTimeUnit\": \"ms\",\n"
                         "\"baseTimeNanoseconds\": 1696186170000000000,\n"
                         "\"traceEvents\": [\n");
    expect_line(text, "{\"ph\": \"M\", \"name\": \"process_name\", "
                      "\"ts\": 3813830000001.000, \"pid\": 4242, \"tid\": 0, "
                      "\"args\": {\"name\": \"prog\"}}");
    expect_line(text, "\"args\": {\"labels\": \"rank 3, CPU\"}}");
    expect_line(text, "{\"ph\": \"X\", \"cat\": \"Trace\", "
                      "\"name\": \"vestige (0)\", \"pid\": 4242, "
                      "\"tid\": 4243, \"ts\": 3813830000001.000, "
                      "\"dur\": 8.000, \"args\": {\"Op count\": 0}}");
    expect_line(text, "\"name\": \"Iteration Start: vestige\"");
    expect_line(text, "\"name\": \"Record Window End\", \"pid\": 4242, "
                      "\"tid\": 4243, \"ts\": 3813830000009.000}");
    expect_line(text, "\n],\n\"traceName\": \"/tmp/");
    free(expected);
    free(text);
    builder_free(&b);
}

static void spans_carry_names_ids_and_exact_times(void)
{
    builder b;
    char *text;

    begin(&b);
    records(&b);
    builder_enter(&b, 1, 100);
    builder_enter(&b, 2, 1);
    builder_word(&b, vst_word(VST_RAISE, 2, 2));
    builder_escape(&b, VST_ESCAPE_BEGIN, 10, &(uint64_t){3}, 1);
    builder_escape_text(&b, VST_ESCAPE_ARGS, 0, 8, "\"n\": [1]");
    builder_enter(&b, 4, 10);
    builder_exit(&b, 4, 10);
    builder_escape(&b, VST_ESCAPE_END, 10, &(uint64_t){3}, 1);
    builder_enter(&b, 5, 5);
    builder_exit(&b, 5, 5);
    builder_exit(&b, 1, 1000);
    builder_enter(&b, 99, 5);
    text = exported(&b, "t.json", VST_WINDOW_LAST);
    expect_line(text,
                ",\n{\"ph\": \"X\", \"cat\": \"python_function\", "
                "\"name\": \"app.py(3): main\", \"pid\": 4242, \"tid\": 4242, "
                "\"ts\": 3813830000001.100, \"dur\": 1.053, \"args\": "
                "{\"Python parent id\": null, \"Python id\": 1, "
                "\"Ev Idx\": 1}},\n");
    expect_line(text,
                "\"name\": \"<built-in function len>\", \"pid\": 4242, "
                "\"tid\": 4242, \"ts\": 3813830000001.101, \"dur\": 0.002, "
                "\"args\": {\"Python parent id\": 1, \"Python id\": 2, "
                "\"Ev Idx\": 2, \"raised\": 1}},\n");
    expect_line(text,
                "{\"ph\": \"X\", \"cat\": \"user_annotation\", "
                "\"name\": \"a \\\"quoted\\\" step\", \"pid\": 4242, "
                "\"tid\": 4242, \"ts\": 3813830000001.113, \"dur\": 0.030, "
                "\"args\": {\"External id\": 3, \"Record function id\": 3, "
                "\"Ev Idx\": 3, \"n\": [1]}},\n");
    expect_line(text, "{\"ph\": \"X\", \"cat\": \"python_function\", "
                      "\"name\": \"Python GC\", \"pid\": 4242, \"tid\": 4242, "
                      "\"ts\": 3813830000001.123, \"dur\": 0.010, \"args\": "
                      "{\"Python parent id\": 1, \"Python id\": 4, "
                      "\"Ev Idx\": 4}},\n");
    expect_line(text, "\"cat\": \"cpu_op\", \"name\": \"aten::add\"");
    expect_line(text, "\"name\": \"unknown function 99\"");
    expect_line(text, "\"open at end\": 1");
    free(text);
    builder_free(&b);
}

static void points_and_losses_are_marks(void)
{
    double value = 2.5;
    uint64_t counter[2] = {6, 0};
    builder b;
    char *text;

    begin(&b);
    records(&b);
    memcpy(&counter[1], &value, sizeof value);
    builder_escape(&b, VST_ESCAPE_COUNTER, 100, counter, 2);
    builder_escape_text(&b, VST_ESCAPE_INSTANT, 100, (uint64_t)6 << 32 | 7,
                        "\"k\": 1");
    builder_escape(&b, VST_ESCAPE_LOST, 100, &(uint64_t){12}, 1);
    builder_escape(&b, VST_ESCAPE_GAP, 100, &(uint64_t){0}, 1);
    builder_escape(&b, VST_ESCAPE_GAP, 100, &(uint64_t){1}, 1);
    text = exported(&b, "t.json", VST_WINDOW_LAST);
    expect_line(text, "{\"ph\": \"C\", \"cat\": \"counter\", "
                      "\"name\": \"memory\", \"pid\": 4242, \"tid\": 4242, "
                      "\"ts\": 3813830000001.100, \"args\": {\"value\": 2.5}}");
    expect_line(text, "{\"ph\": \"i\", \"cat\": \"instant\", "
                      "\"name\": \"mark\", \"pid\": 4242, \"tid\": 4242, "
                      "\"ts\": 3813830000001.200, \"s\": \"t\", "
                      "\"args\": {\"k\": 1}}");
    expect_line(text, "\"name\": \"lost records\", \"pid\": 4242, "
                      "\"tid\": 4242, \"ts\": 3813830000001.200, \"s\": \"t\", "
                      "\"args\": {\"start\": 3813830000001.200, "
                      "\"duration\": 0.100, \"records\": 12}}");
    expect_line(text, "\"name\": \"hooks away\"");
    free(text);
    builder_free(&b);
}

static void an_annotation_that_overlaps_is_a_pair_of_events(void)
{
    builder b;
    char *text;

    begin(&b);
    records(&b);
    builder_enter(&b, 1, 100);
    builder_escape(&b, VST_ESCAPE_BEGIN, 10, &(uint64_t){3}, 1);
    builder_exit(&b, 1, 10);
    builder_escape(&b, VST_ESCAPE_END, 10, &(uint64_t){3}, 1);
    text = exported(&b, "t.json", VST_WINDOW_LAST);
    expect_line(text,
                "{\"ph\": \"b\", \"cat\": \"user_annotation\", "
                "\"name\": \"a \\\"quoted\\\" step\", \"pid\": 4242, "
                "\"tid\": 4242, \"ts\": 3813830000001.110, \"id\": 2, "
                "\"args\": {\"External id\": 2, \"Record function id\": 2, "
                "\"Ev Idx\": 2}},\n"
                "{\"ph\": \"e\", \"cat\": \"user_annotation\", "
                "\"name\": \"a \\\"quoted\\\" step\", \"pid\": 4242, "
                "\"tid\": 4242, \"ts\": 3813830000001.130, \"id\": 2}");
    free(text);
    builder_free(&b);
}

/* Clients find steps among X events only. */
static void a_step_that_overlaps_calls_lies_beside_them(void)
{
    builder b;
    char *text;

    begin(&b);
    builder_definitions(&b, 1);
    builder_define(&b, VST_DEF_ANNOTATION, 8, "ProfilerStep#7", "", 0);
    builder_define(&b, VST_DEF_ANNOTATION, 9, "ProfilerStep#8", "", 0);
    records(&b);
    builder_enter(&b, 1, 100);
    builder_escape(&b, VST_ESCAPE_BEGIN, 10, &(uint64_t){8}, 1);
    builder_exit(&b, 1, 10);
    builder_enter(&b, 1, 10);
    builder_escape(&b, VST_ESCAPE_BEGIN, 10, &(uint64_t){9}, 1);
    builder_escape(&b, VST_ESCAPE_END, 10, &(uint64_t){8}, 1);
    builder_exit(&b, 1, 10);
    builder_escape(&b, VST_ESCAPE_END, 10, &(uint64_t){9}, 1);
    text = exported(&b, "t.json", VST_WINDOW_LAST);
    expect_line(text,
                "{\"ph\": \"X\", \"cat\": \"user_annotation\", "
                "\"name\": \"ProfilerStep#7\", \"pid\": 4242, \"tid\": 4243, "
                "\"ts\": 3813830000001.110, \"dur\": 0.040, \"args\": ");
    /* An annotation that overlaps another is written as a "b" event, because X
     * events must nest. */
    expect_line(text, "{\"ph\": \"b\", \"cat\": \"user_annotation\", "
                      "\"name\": \"ProfilerStep#8\", ");
    free(text);
    builder_free(&b);
}

static void every_thread_has_a_track_of_its_own(void)
{
    builder b;
    char *text;

    begin(&b);
    builder_thread(&b, 1, 5000, "first");
    builder_thread(&b, 2, 5000, "second");
    builder_thread(&b, 3, 0, "");
    builder_thread(&b, 4, UINT64_MAX, "odd");
    builder_thread(&b, 5, 5005, "silent");
    for (unsigned thread = 1; thread < 5; thread++) {
        builder_records(&b, 0, thread, 1000, 1);
        builder_enter(&b, 1, 10);
        builder_exit(&b, 1, 10);
    }
    text = exported(&b, "t.json", VST_WINDOW_LAST);
    expect_line(text, "\"tid\": 5000, \"args\": {\"name\": \"first\"}}");
    expect_line(text, "\"tid\": 5006, \"args\": {\"name\": \"thread 5006\"}}");
    expect_line(text, "\"tid\": 5007, \"args\": {\"name\": \"odd\"}}");
    expect_line(text, "\"tid\": 5008, \"args\": {\"name\": \"second\"}}");
    expect_line(text, "\"tid\": 5009, \"args\": {\"name\": "
                      "\"Recording windows\"}}");
    expect_line(text, "\"name\": \"app.py(3): main\", \"pid\": 4242, "
                      "\"tid\": 5008, ");
    CHECK(strstr(text, "silent") == NULL);
    CHECK(strstr(text, "MainThread") == NULL);
    free(text);
    builder_free(&b);
}

static void arguments_that_are_no_json_become_text(void)
{
    builder b;
    char *text;

    begin(&b);
    records(&b);
    builder_enter(&b, 1, 100);
    builder_escape_text(&b, VST_ESCAPE_ARGS, 0, 7, "\"n\": 1}");
    text = exported(&b, "t.json", VST_WINDOW_LAST);
    expect_line(text, "\"open at end\": 1, \"args\": \"\\\"n\\\": 1}\"}}");
    free(text);
    builder_free(&b);
}

static void a_name_longer_than_the_buffer_is_written_whole(void)
{
    enum { LENGTH = 700000 };
    char *name = malloc(LENGTH + 1), *text, *at;
    builder b;

    if (name == NULL)
        abort();
    memset(name, 'n', LENGTH);
    name[LENGTH] = '\0';
    builder_init(&b);
    builder_definitions(&b, 200);
    builder_define(&b, VST_DEF_ANNOTATION, 1, name, "", 0);
    builder_records(&b, 0, 0, 1000, 1);
    builder_enter(&b, 1, 1);
    builder_exit(&b, 1, 1);
    text = exported(&b, "t.json", VST_WINDOW_LAST);
    at = strstr(text, "\"name\": \"nnn");
    CHECK(at != NULL && strspn(at + 9, "n") == LENGTH);
    free(text);
    free(name);
    builder_free(&b);
}

/* ---- files -------------------------------------------------------------- */

static void build_many(builder *b, int calls)
{
    begin(b);
    builder_records(b, 0, 0, 1000, 1 + (unsigned)calls / 128);
    for (int i = 0; i < calls; i++) {
        builder_enter(b, 1 + (unsigned)i % 2, 40 + (unsigned)i % 7);
        builder_exit(b, 1 + (unsigned)i % 2, 40);
    }
}

static void gzip_holds_the_same_document(void)
{
    char *plain, *zipped, *end;
    builder b;

    build_many(&b, 50000 / (int)check_step(1, 4));
    plain = exported(&b, "t.json", VST_WINDOW_LAST);
    zipped = exported(&b, "t.json.gz", VST_WINDOW_LAST);
    /* The file name at the end differs: compare the text before the name. */
    end = strstr(plain, "\"traceName\"");
    CHECK(end != NULL && strlen(plain) > 5000000 / check_step(1, 4));
    CHECK(end != NULL && strncmp(plain, zipped, (size_t)(end - plain)) == 0);
    free(plain);
    free(zipped);
    builder_free(&b);
}

static int give_up(void *ctx, double done)
{
    (void)ctx;
    (void)done;
    return 1;
}

static void an_export_that_fails_leaves_no_file(void)
{
    vst_error error;
    vst_trace *trace;
    builder b;

    build_many(&b, 10);
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    CHECK_INT(vst_trace_export(trace, in_folder("t.xml"), NULL, &error),
              VST_E_ARGUMENT);
    CHECK_INT(vst_trace_export(trace, ".json", NULL, &error), VST_E_ARGUMENT);
    CHECK_INT(vst_trace_export(trace, in_folder("no/t.json"), NULL, &error),
              VST_E_IO);
    CHECK(error.sys_errno != 0);
    CHECK_INT(vst_trace_export(trace, in_folder("t.json"),
                               &(vst_export_options){.window = 5}, &error),
              VST_E_ARGUMENT);
    vst_trace_set_progress(trace, give_up, NULL);
    CHECK_INT(vst_trace_export(trace, in_folder("t.json"), NULL, &error),
              VST_E_CANCELLED);
    CHECK_INT(error.status, VST_E_CANCELLED);
    vst_trace_close(trace);
    /* rmdir works only if the folder is empty. */
    CHECK_INT(rmdir(folder), 0);
    CHECK(mkdtemp(strcpy(folder, "/tmp/vestige-test-XXXXXX")) != NULL);
    builder_free(&b);
}

static void a_disk_that_fills_up_is_told_and_left_clean(void)
{
    struct rlimit limit, small;
    vst_error error;
    vst_trace *trace;
    builder b;

    build_many(&b, 20000);
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 1000000;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
    CHECK_INT(vst_trace_export(trace, in_folder("t.json"), NULL, &error),
              VST_E_NOSPACE);
    CHECK(error.sys_errno != 0);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_INT(vst_trace_export(trace, in_folder("t.json"), NULL, &error),
              VST_OK);
    CHECK_INT(remove(in_folder("t.json")), 0);
    CHECK_INT(rmdir(folder), 0);
    CHECK(mkdtemp(strcpy(folder, "/tmp/vestige-test-XXXXXX")) != NULL);
    vst_trace_close(trace);
    builder_free(&b);
}

/* The file is so long that the writer reserves storage ahead of its
 * position. */
static void a_long_file_takes_no_more_than_it_holds(void)
{
    enum { LINES = 200000 };
    static const char line[] = "a line of a file that is longer than others, "
                               "so that writing it takes a while; the end\n";
    const char *path = in_folder("t.long");
    vst__output output;
    struct stat st;

    CHECK_INT(vst__output_create(path, false, &output, NULL), VST_OK);
    for (int i = 0; i < LINES; i++)
        vst__output_text(&output, line);
    CHECK_INT(vst__output_finish(&output, VST_OK, NULL), VST_OK);
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_size, (off_t)(LINES * (sizeof line - 1)));
    CHECK(st.st_blocks * 512 < st.st_size + (1 << 20));
    CHECK_INT(remove(path), 0);
}

static uint32_t random_below(uint64_t *seed, uint32_t limit)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % limit;
}

static void a_damaged_trace_still_exports_valid_json(void)
{
    const unsigned rounds = 1000 / check_step(1, 4);
    uint64_t seed = 99;
    builder b;

    begin(&b);
    builder_metadata(&b, "a", "{\"b\": [1, 2, 3]}");
    records(&b);
    for (int i = 0; i < 20; i++) {
        builder_enter(&b, 1, 10);
        builder_escape_text(&b, VST_ESCAPE_ARGS, 0, 12, "\"k\": \"v\\n\" ");
        builder_escape(&b, VST_ESCAPE_BEGIN, 10, &(uint64_t){3}, 1);
        builder_escape_text(&b, VST_ESCAPE_INSTANT, 1, (uint64_t)8 << 32 | 7,
                            "\"k\": {} ");
        builder_escape(&b, VST_ESCAPE_END, 10, &(uint64_t){3}, 1);
        builder_escape(&b, VST_ESCAPE_COUNTER, 1, (uint64_t[]){6, 6}, 2);
        builder_exit(&b, 1, 10);
    }
    for (unsigned round = 0; checks_bad == 0 && round < rounds; round++) {
        builder copy = b;
        vst_trace *trace;

        copy.bytes = malloc(b.size);
        if (copy.bytes == NULL)
            abort();
        memcpy(copy.bytes, b.bytes, b.size);
        for (int i = 0; i < 20; i++)
            copy.bytes[4160 + random_below(&seed, 4096 + 2000)] =
                (unsigned char)random_below(&seed, 256);
        builder_fix_chunk(&copy, 4096);
        builder_fix_chunk(&copy, 8192);
        if (builder_open(&copy, &trace, NULL) == VST_OK) {
            vst_trace_close(trace);
            free(exported(&copy, "t.json", VST_WINDOW_ALL));
        }
        builder_free(&copy);
    }
    builder_free(&b);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 2;
    TEST(numbers_are_written_exactly);
    TEST(numbers_of_any_length_are_written_as_printf_does);
    TEST(doubles_are_written_as_short_as_they_can_be);
    TEST(strings_are_escaped_and_bad_bytes_replaced);
    TEST(the_checker_knows_json_from_what_is_not);
    TEST(the_document_begins_and_ends_as_torchs_does);
    TEST(spans_carry_names_ids_and_exact_times);
    TEST(points_and_losses_are_marks);
    TEST(an_annotation_that_overlaps_is_a_pair_of_events);
    TEST(a_step_that_overlaps_calls_lies_beside_them);
    TEST(every_thread_has_a_track_of_its_own);
    TEST(arguments_that_are_no_json_become_text);
    TEST(a_name_longer_than_the_buffer_is_written_whole);
    TEST(gzip_holds_the_same_document);
    TEST(an_export_that_fails_leaves_no_file);
    TEST(a_disk_that_fills_up_is_told_and_left_clean);
    TEST(a_long_file_takes_no_more_than_it_holds);
    TEST(a_damaged_trace_still_exports_valid_json);
    rmdir(folder);
    return checks_end();
}
