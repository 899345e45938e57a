/* The formats of sums, and speedscope's: the output for a small trace, and the
 * tree of contexts behind the sums. */
#include <stdlib.h>
#include <unistd.h>

#include <vestige/trace.h>

#include "export/output/json.h"
#include "export_built.h"
#include "replay/contexts.h"

static char *exported_as(const builder *b, const char *name, const char *format)
{
    return export_built(b, name, format, VST_WINDOW_ALL);
}

/* main (1000) calls itself (500), which calls f (100) twice; another thread
 * calls f alone; an annotation overlaps. */
static void build(builder *b)
{
    builder_init(b);
    builder_definitions(b, 1);
    builder_window(b, 0, 1000, 900000);
    builder_define(b, VST_DEF_PYTHON, 1, "main", "dir/app.py", 3);
    builder_define(b, VST_DEF_NATIVE, 2, "f;<&\n\xff", "", 0);
    builder_define(b, VST_DEF_ANNOTATION, 3, "overlaps", "", 0);
    builder_thread(b, 0, 4242, "MainThread");
    builder_thread(b, 1, 4243, "");
    builder_records(b, 0, 0, 1000, 1);
    builder_escape(b, VST_ESCAPE_BEGIN, 0, &(uint64_t){3}, 1);
    builder_enter(b, 1, 1000);
    builder_escape(b, VST_ESCAPE_END, 0, &(uint64_t){3}, 1);
    builder_enter(b, 1, 200000);
    builder_enter(b, 2, 100000);
    builder_exit(b, 2, 100000);
    builder_enter(b, 2, 50000);
    builder_exit(b, 2, 100500);
    builder_exit(b, 1, 100000);
    builder_exit(b, 1, 150000);
    builder_records(b, 0, 1, 1000, 1);
    builder_enter(b, 2, 10);
    builder_exit(b, 2, 700);
}

#define F "f_<&_\xef\xbf\xbd"

static void folded_stacks_carry_what_rounding_leaves(void)
{
    builder b;
    char *text;

    build(&b);
    text = exported_as(&b, "t.folded", NULL);
    CHECK_TEXT(text,
               "dir/app.py(3): main 350\n"
               "dir/app.py(3): main;dir/app.py(3): main 250\n"
               "dir/app.py(3): main;dir/app.py(3): main;" F " 200\n" F " 1\n");
    free(text);
    text = exported_as(&b, "t.txt", "folded-ns");
    CHECK_TEXT(text, "dir/app.py(3): main 350000\n"
                     "dir/app.py(3): main;dir/app.py(3): main 250000\n"
                     "dir/app.py(3): main;dir/app.py(3): main;" F " 200500\n" F
                     " 700\n");
    free(text);
    builder_free(&b);
}

static void callgrind_has_calls_and_times_between_functions(void)
{
    builder b;
    char *text;

    build(&b);
    text = exported_as(&b, "callgrind.out.1", NULL);
    expect_line(text, "positions: line\n");
    expect_line(text, "events: ns\n");
    /* The time of main inside main is counted once. */
    expect_line(text, "fn=(2) main\n3 600000\n"
                      "cfi=(2)\ncfn=(2)\ncalls=1 3\n3 450500\n"
                      "cfi=(3) ~\ncfn=(3) f;<&_\xef\xbf\xbd\n"
                      "calls=2 0\n3 200500\n");
    expect_line(text, "totals: 801200\n");
    free(text);
    builder_free(&b);
}

static void a_flame_graph_is_xml_with_a_frame_for_each_context(void)
{
    builder b;
    char *text;
    size_t frames = 0;

    build(&b);
    text = exported_as(&b, "t.svg", NULL);
    for (const char *at = text; (at = strstr(at, "<svg data-x")) != NULL; at++)
        frames++;
    CHECK_INT(frames, 4); /* without the overlapping annotation */
    expect_line(text, "<title>dir/app.py(3): main (0.800 ms, 99.91%, 1 calls)"
                      "</title><rect width=\"100%\" ");
    expect_line(text, "<title>f;&lt;&amp;\xef\xbf\xbd\xef\xbf\xbd (0.201 ms, ");
    expect_line(text, "class FlameCanvas {");
    expect_line(text, "</svg>\n");
    free(text);
    builder_free(&b);
}

static void speedscope_opens_and_closes_in_order_of_time(void)
{
    builder b;
    char *text;

    build(&b);
    text = exported_as(&b, "t.speedscope.json", NULL);
    CHECK(vst__json_is_value(text, strlen(text)));
    expect_line(text, "{\"type\":\"evented\",\"name\":\"MainThread\","
                      "\"unit\":\"nanoseconds\",\"startValue\":1000,"
                      "\"endValue\":801500,\"events\":["
                      "\n{\"type\":\"O\",\"frame\":1,\"at\":1000},"
                      "\n{\"type\":\"O\",\"frame\":1,\"at\":201000},"
                      "\n{\"type\":\"O\",\"frame\":0,\"at\":301000},"
                      "\n{\"type\":\"C\",\"frame\":0,\"at\":401000},"
                      "\n{\"type\":\"O\",\"frame\":0,\"at\":451000},"
                      "\n{\"type\":\"C\",\"frame\":0,\"at\":551500},"
                      "\n{\"type\":\"C\",\"frame\":1,\"at\":651500},"
                      "\n{\"type\":\"C\",\"frame\":1,\"at\":801500}]}");
    expect_line(text, "\"name\":\"thread 1\"");
    expect_line(text, "\"name\":\"t.speedscope.json\"");
    expect_line(text, "{\"name\":\"main\",\"file\":\"dir/app.py\",\"line\":3}");
    free(text);
    builder_free(&b);
}

/* A call inside the overlapping annotation has a depth at which no shown span
 * is. */
static void speedscope_closes_what_ended_though_a_depth_is_missing(void)
{
    builder b;
    char *text;

    build(&b);
    builder_records(&b, 0, 2, 1000, 1);
    builder_enter(&b, 1, 10);
    builder_escape(&b, VST_ESCAPE_BEGIN, 10, &(uint64_t){3}, 1);
    builder_enter(&b, 2, 10);
    builder_exit(&b, 2, 10);
    builder_enter(&b, 2, 10);
    builder_exit(&b, 2, 10);
    builder_exit(&b, 1, 10);
    builder_escape(&b, VST_ESCAPE_END, 10, &(uint64_t){3}, 1);
    text = exported_as(&b, "t.speedscope.json", NULL);
    expect_line(text, "[\n{\"type\":\"O\",\"frame\":1,\"at\":10},"
                      "\n{\"type\":\"O\",\"frame\":0,\"at\":30},"
                      "\n{\"type\":\"C\",\"frame\":0,\"at\":40},"
                      "\n{\"type\":\"O\",\"frame\":0,\"at\":50},"
                      "\n{\"type\":\"C\",\"frame\":0,\"at\":60},"
                      "\n{\"type\":\"C\",\"frame\":1,\"at\":70}]}");
    free(text);
    builder_free(&b);
}

static void pprof_and_pstats_are_written_whole(void)
{
    static const char *const names[] = {"t.pb.gz", "t.pb", "t.pstats",
                                        "t.prof.gz"};
    builder b;
    char *text;

    build(&b);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        text = exported_as(&b, names[i], NULL);
        CHECK(strlen(text) > 1 && (text[0] == '\n' || text[0] == '{'));
        free(text);
    }
    builder_free(&b);
}

static void an_empty_trace_has_files_of_every_format(void)
{
    static const char *const names[] = {
        "t.folded", "t.svg",     "t.speedscope.json", "t.pb",
        "t.pstats", "t.pftrace", "t.callgrind",
    };
    builder b;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_window(&b, 0, 1000, 2000);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        free(exported_as(&b, names[i], NULL));
    builder_free(&b);
}

static void the_longest_suffix_that_fits_names_the_format(void)
{
    builder b;
    vst_trace *trace;
    char *text;

    build(&b);
    text = exported_as(&b, "t.json", NULL);
    expect_line(text, "\"traceEvents\"");
    free(text);
    text = exported_as(&b, "t.speedscope.json.gz", NULL);
    expect_line(text, "\"profiles\"");
    free(text);
    if (CHECK_INT(builder_open(&b, &trace, NULL), VST_OK)) {
        CHECK_INT(vst_trace_export(trace, in_folder("t.txt"), NULL, NULL),
                  VST_E_ARGUMENT);
        vst_trace_close(trace);
    }
    builder_free(&b);
}

/* ---- contexts ----------------------------------------------------------- */

static vst_status add_context(void *ctx, const vst_span *span)
{
    return vst__contexts_add(ctx, span, 0);
}

static void contexts_come_parents_first_and_in_order_of_time(void)
{
    const vst_context_row *rows;
    vst_contexts *contexts;
    vst_trace *trace;
    size_t count;
    builder b;
    vst_sink sink;

    build(&b);
    CHECK_INT(vst__contexts_create(&contexts), VST_OK);
    sink = (vst_sink){.ctx = contexts, .span = add_context};
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    CHECK_INT(vst__contexts_finish(contexts, &rows, &count), VST_OK);
    if (CHECK_INT(count, 5)) {
        CHECK_INT(rows[0].node.id, 3); /* the overlapping annotation has no time
                                        * of its own */
        CHECK_INT(rows[0].node.self_ns, 0);
        CHECK_INT(rows[1].node.id, 1);
        CHECK_INT(rows[1].parent, 0);
        CHECK_INT(rows[1].node.total_ns, 800500);
        CHECK_INT(rows[2].node.id, 1);
        CHECK_INT(rows[2].parent, 2);
        CHECK_INT(rows[3].node.id, 2);
        CHECK_INT(rows[3].parent, 3);
        CHECK_INT(rows[3].node.count, 2);
        CHECK_INT(rows[3].node.self_ns, 200500);
        CHECK_INT(rows[4].parent, 0);
        CHECK_INT(rows[4].node.count, 1);
    }
    vst__contexts_destroy(contexts);
    vst_trace_close(trace);
    builder_free(&b);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    TEST(folded_stacks_carry_what_rounding_leaves);
    TEST(callgrind_has_calls_and_times_between_functions);
    TEST(a_flame_graph_is_xml_with_a_frame_for_each_context);
    TEST(speedscope_opens_and_closes_in_order_of_time);
    TEST(speedscope_closes_what_ended_though_a_depth_is_missing);
    TEST(pprof_and_pstats_are_written_whole);
    TEST(an_empty_trace_has_files_of_every_format);
    TEST(the_longest_suffix_that_fits_names_the_format);
    TEST(contexts_come_parents_first_and_in_order_of_time);
    rmdir(folder);
    return checks_end();
}
