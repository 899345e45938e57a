/* The exporter for the Firefox Profiler: samples, markers, counters and the
 * tables they point into. tests/clients asks the profiler itself. */
#include <stdlib.h>
#include <unistd.h>

#include <vestige/trace.h>

#include "export/output/json.h"
#include "export_built.h"

static char *exported(const builder *b)
{
    char *text = export_built(b, "t.firefox.json", NULL, VST_WINDOW_ALL);

    CHECK(vst__json_is_value(text, strlen(text)));
    return text;
}

static void begin(builder *b, unsigned windows)
{
    builder_init(b);
    builder_definitions(b, 1);
    for (unsigned i = 0; i < windows; i++)
        builder_window(b, i, 1000 + 10000000 * (vst_ticks)i,
                       9000000 + 10000000 * (vst_ticks)i);
    builder_define(b, VST_DEF_PYTHON, 1, "main", "dir/app.py", 3);
    builder_define(b, VST_DEF_NATIVE, 2, "len", "", 0);
    builder_define(b, VST_DEF_ANNOTATION, 3, "annotated", "", 0);
    builder_define(b, VST_DEF_INSTANT, 4, "a mark", "", 0);
    builder_define(b, VST_DEF_COUNTER, 5, "items", "", 0);
    builder_define(b, VST_DEF_PYTHON, 6, "other", "dir/app.py", 9);
    builder_thread(b, 0, BUILDER_PID, "MainThread");
    builder_thread(b, 1, 4243, "");
}

/* main 1000..801000, len twice in it; then nothing, then main again. */
static void call(builder *b)
{
    builder_enter(b, 1, 0);
    builder_enter(b, 2, 200000);
    builder_exit(b, 2, 100000);
    builder_enter(b, 2, 50000);
    builder_exit(b, 2, 150500);
    builder_exit(b, 1, 299500);
    builder_enter(b, 1, 1000000);
    builder_exit(b, 1, 7);
}

static void a_sample_is_where_the_stack_changes_and_weighs_its_time(void)
{
    builder b;
    char *text;

    begin(&b, 1);
    builder_records(&b, 0, 0, 1000, 1);
    call(&b);
    text = exported(&b);
    expect_line(text, "\"samples\":{\"length\":8,\"weightType\":\"tracing-ms\","
                      "\n\"stack\":[0,1,0,1,0,null,0,null],"
                      "\n\"timeDeltas\":[0.000000,0.200000,0.100000,0.050000,"
                      "0.150500,0.299500,1.000000,0.000007],"
                      "\n\"weight\":[0.200000,0.100000,0.050000,0.150500,"
                      "0.299500,0,0.000007,0]}");
    expect_line(text, "\"stackTable\":{\"length\":2,\n\"frame\":[1,0],"
                      "\n\"prefix\":[null,0]}");
    expect_line(text, "\"func\":[0,1],\n\"category\":[2,1]");
    expect_line(text, "\"lineNumber\":[null,3]");
    expect_line(text, "\"source\":[null,0]");
    expect_line(text, "\"filename\":[7]");
    expect_line(text, "\"live framework memory\",\n\"len\",\n\"main\","
                      "\n\"dir/app.py\"]");
    expect_line(text, "\"name\":\"MainThread\",\"isMainThread\":true");
    expect_line(text, "\"pid\":\"4242\",\"tid\":4242");
    expect_line(text, "\"startTime\":1700000000000.001000,");
    free(text);
    builder_free(&b);
}

static void what_is_no_call_or_overlaps_is_a_marker(void)
{
    builder b;
    char *text;

    begin(&b, 1);
    builder_records(&b, 0, 0, 1000, 1);
    builder_enter(&b, 3, 1000);
    builder_escape_text(&b, VST_ESCAPE_ARGS, 0, strlen("\"x\": \"1\""),
                        "\"x\": \"1\"");
    builder_escape(&b, VST_ESCAPE_BEGIN, 1000, &(uint64_t){6}, 1);
    builder_exit(&b, 3, 1000);
    builder_escape(&b, VST_ESCAPE_END, 1000, &(uint64_t){6}, 1);
    builder_escape(&b, VST_ESCAPE_INSTANT, 1000, &(uint64_t){4}, 1);
    builder_escape(&b, VST_ESCAPE_LOST, 1000, &(uint64_t){12}, 1);
    text = exported(&b);
    expect_line(text, "\"markers\":{\"length\":4,\n\"name\":[5,6,7,0],"
                      "\n\"startTime\":[0.001000,0.002000,0.005000,0.005000],"
                      "\n\"endTime\":[0.003000,0.004000,null,0.006000],"
                      "\n\"phase\":[1,1,0,1],\n\"category\":[3,1,5,0],"
                      "\"data\":[{\"type\":\"Annotation\","
                      "\"args\":\"\\\"x\\\": \\\"1\\\"\"},"
                      "\n{\"type\":\"Python\"},\n{\"type\":\"Instant\"},"
                      "\n{\"type\":\"Other\",\"args\":\"\\\"records\\\": 12\"}"
                      "]}");
    /* What overlaps is on no stack. */
    expect_line(text, "\"samples\":{\"length\":2,");
    free(text);
    builder_free(&b);
}

static void a_counter_tells_how_much_more_it_is_than_before(void)
{
    static const double values[] = {3, 1.5, 10};
    builder b;
    char *text;

    begin(&b, 1);
    /* The threads one after the other, the values in order of time. */
    for (unsigned thread = 0; thread < 2; thread++) {
        builder_records(&b, 0, thread, 1000, 1);
        for (unsigned i = thread; i < 3; i += 2) {
            uint64_t payload[2] = {5, 0};
            memcpy(&payload[1], &values[i], sizeof values[i]);
            builder_escape(&b, VST_ESCAPE_COUNTER, i == 2 ? 2000 : 1000 * i,
                           payload, 2);
        }
    }
    text = exported(&b);
    expect_line(text, "{\"name\":\"items\",\"category\":\"Counter\"");
    expect_line(text, "\"samples\":{\"length\":3,"
                      "\n\"time\":[0.000000,0.001000,0.002000],"
                      "\n\"count\":[3,-1.5,8.5]}");
    /* A process has a thread, though none had anything to show. */
    expect_line(text, "\"samples\":{\"length\":0,");
    free(text);
    builder_free(&b);
}

static void a_thread_of_several_windows_is_one_thread(void)
{
    size_t threads = 0;
    builder b;
    char *text;

    begin(&b, 2);
    for (unsigned window = 0; window < 2; window++)
        for (unsigned thread = 0; thread < 2; thread++) {
            builder_records(&b, window, thread,
                            1000 + 10000000 * (vst_ticks)window, 1);
            call(&b);
        }
    text = exported(&b);
    for (const char *at = text; (at = strstr(at, "isMainThread")) != NULL; at++)
        threads++;
    CHECK_INT(threads, 2);
    /* Fourteen of calls, one of the time between the windows, and the end. */
    expect_line(text, "\"samples\":{\"length\":16,");
    expect_line(text, "\"name\":\"thread 1\",\"isMainThread\":false");
    expect_line(text, "\"stackTable\":{\"length\":2,");
    free(text);
    builder_free(&b);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    TEST(a_sample_is_where_the_stack_changes_and_weighs_its_time);
    TEST(what_is_no_call_or_overlaps_is_a_marker);
    TEST(a_counter_tells_how_much_more_it_is_than_before);
    TEST(a_thread_of_several_windows_is_one_thread);
    rmdir(folder);
    return checks_end();
}
