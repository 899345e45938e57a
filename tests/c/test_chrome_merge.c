/* Several traces in one Chrome document: numbers that collide, names, times,
 * and arrows from parents to children. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vestige/trace.h>

#include "check.h"
#include "export/output/json.h"
#include "exported.h"
#include "trace_builder.h"

#define MAX 8

/* ---- making them -------------------------------------------------------- */

enum { MAIN = 1, FORK, FORK_EXEC, EXEC, STEP };

static void set_pid(builder *b, uint32_t pid)
{
    builder_header(b)->pid = pid;
    builder_fix_header(b);
}

/* Begins a process whose definitions are still open, so that a test can add
 * metadata. */
static void begin(builder *b, uint32_t pid)
{
    builder_init(b);
    set_pid(b, pid);
    builder_definitions(b, 1);
    builder_window(b, 0, 1000, 900000);
    builder_define(b, VST_DEF_PYTHON, MAIN, "main", "app.py", 3);
    builder_define(b, VST_DEF_NATIVE, FORK, "<built-in function fork>", "", 0);
    builder_define(b, VST_DEF_NATIVE, FORK_EXEC,
                   "<built-in function fork_exec>", "", 0);
    builder_define(b, VST_DEF_NATIVE, EXEC, "<built-in function execve>", "",
                   0);
    builder_define(b, VST_DEF_ANNOTATION, STEP, "step", "", 0);
    builder_thread(b, 0, pid, "MainThread");
}

static void records(builder *b, unsigned thread, vst_ticks ticks)
{
    builder_records(b, 0, thread, ticks, 1);
}

static void call(builder *b, vst_id id, uint32_t before, uint32_t during)
{
    builder_enter(b, id, before);
    builder_exit(b, id, during);
}

/* A process with one span; its metadata name its parent. */
static void begin_child(builder *b, uint32_t pid, const char *parent,
                        vst_ticks first)
{
    begin(b, pid);
    if (parent != NULL)
        builder_metadata(b, "vestige.parent", parent);
    records(b, 0, first);
    call(b, MAIN, 0, 100);
}

static size_t open_all(builder *const *b, size_t count, vst_trace **traces)
{
    for (size_t i = 0; i < count; i++)
        if (!CHECK_INT(builder_open(b[i], &traces[i], NULL), VST_OK))
            return i;
    return count;
}

static char *written(vst_trace *const *traces, size_t count)
{
    const char *path = in_folder("all.json");
    char *text;

    CHECK_INT(vst_traces_export(traces, count, path, NULL, NULL), VST_OK);
    text = contents(path);
    CHECK(text != NULL && vst__json_is_value(text, strlen(text)));
    CHECK_INT(remove(path), 0);
    return text != NULL ? text : calloc(1, 1);
}

/* Exports, reads back, and frees the builders. */
static char *merged(builder *const *b, size_t count)
{
    vst_trace *traces[MAX];
    size_t opened = open_all(b, count, traces);
    char *text = opened == count ? written(traces, count) : calloc(1, 1);

    for (size_t i = 0; i < opened; i++)
        vst_trace_close(traces[i]);
    for (size_t i = 0; i < count; i++)
        builder_free(b[i]);
    return text;
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    while ((text = strstr(text, part)) != NULL) {
        count++;
        text += strlen(part);
    }
    return count;
}

/* ---- the tests ---------------------------------------------------------- */

static void several_traces_are_one_document_with_a_process_each(void)
{
    builder a, b;
    char *text;

    begin(&a, 100);
    builder_metadata(&a, "with_stack", "1");
    builder_metadata(&a, "vestige.process_name", "\"train\"");
    builder_metadata(&a, "vestige.command", "[\"train.py\", \"--x\", \"1\"]");
    records(&a, 0, 1000);
    call(&a, MAIN, 0, 10);
    begin(&b, 200);
    builder_metadata(&b, "only here", "1");
    builder_metadata(&b, "vestige.process_name", "\"Pool-\\u0031\"");
    builder_metadata(&b, "vestige.command",
                     "[\"/usr/bin/python\", \"-c\", \"/\\\"\"]");
    builder_metadata(&b, "distributedInfo", "{\"rank\": 3, \"x\": [1]}");
    records(&b, 0, 2000);
    call(&b, MAIN, 0, 10);
    text = merged((builder *[]){&a, &b}, 2);
    expect_line(text, "\"pid\": 100, \"tid\": 0, "
                      "\"args\": {\"name\": \"train.py --x 1\"}}");
    expect_line(text, "\"pid\": 100, \"tid\": 0, "
                      "\"args\": {\"labels\": \"CPU\"}}");
    expect_line(text,
                "\"pid\": 100, \"tid\": 0, \"args\": {\"sort_index\": 0}");
    expect_line(text, "\"pid\": 200, \"tid\": 0, \"args\": {\"name\": "
                      "\"rank 3: Pool-\\u0031: python -c /\\\"\"}}");
    expect_line(text, "\"args\": {\"labels\": \"rank 3, CPU\"}}");
    expect_line(text,
                "\"pid\": 200, \"tid\": 0, \"args\": {\"sort_index\": 1}");
    expect_line(text, "\"pid\": 100, \"tid\": 100, \"ts\": 3813830000001.000, "
                      "\"dur\": 0.010");
    expect_line(text, "\"pid\": 200, \"tid\": 200, \"ts\": 3813830000002.000, "
                      "\"dur\": 0.010");
    CHECK_INT(count_of(text, "\"Recording windows\""), 2);
    CHECK_INT(count_of(text, "\"with_stack\": 1"), 1);
    CHECK_INT(count_of(text, "only here"), 0);
    CHECK_INT(count_of(text, "\"s\": \"g\""), 0);
    CHECK_INT(count_of(text, "\"s\": \"p\""), 4);
    free(text);
}

static void a_process_has_a_name_even_if_nothing_is_known_of_it(void)
{
    static const char *const facts[][3] = {
        {NULL, NULL, "\"python\""},
        {"\"worker\"", NULL, "\"worker\""},
        {"\"command\"", "[\"-c\", \"pass\"]", "\"-c pass\""},
        {"\"python\"", "[\"-\"]", "\"-\""},
        {"\"prog\"", "[\"a/prog.py\"]", "\"prog.py\""},
        {"7", "{\"no\": \"list\"}", "\"no list\""},
        {"\"x", "[1, [2]]", "\" \""},
    };

    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        char line[100];
        builder a, b;
        char *text;

        begin_child(&a, 100, NULL, 1000);
        begin(&b, 200);
        if (facts[i][0] != NULL)
            builder_metadata(&b, "vestige.process_name", facts[i][0]);
        if (facts[i][1] != NULL)
            builder_metadata(&b, "vestige.command", facts[i][1]);
        text = merged((builder *[]){&a, &b}, 2);
        snprintf(line, sizeof line,
                 "\"pid\": 200, \"tid\": 0, \"args\": {\"name\": %s}}",
                 facts[i][2]);
        expect_line(text, line);
        free(text);
    }
}

static void pids_that_collide_get_numbers_of_their_own(void)
{
    builder a, b, c;
    char *text;

    begin(&a, 100);
    builder_metadata(&a, "host_name", "\"here\"");
    records(&a, 0, 1000);
    call(&a, MAIN, 0, 10);
    begin(&b, 100);
    builder_metadata(&b, "host_name", "\"there\"");
    records(&b, 0, 1000);
    call(&b, MAIN, 0, 10);
    begin(&c, 300);
    builder_metadata(&c, "host_name", "\"here\"");
    records(&c, 0, 1000);
    call(&c, MAIN, 0, 10);
    text = merged((builder *[]){&a, &b, &c}, 3);
    CHECK_INT(count_of(text, "\"name\": \"process_name\""), 3);
    expect_line(text, "\"pid\": 100, \"tid\": 0, \"args\": {\"labels\": "
                      "\"CPU\"}}");
    expect_line(text, "\"pid\": 301, \"tid\": 0, \"args\": {\"labels\": "
                      "\"CPU, pid 100, on there\"}}");
    expect_line(text, "\"pid\": 300, \"tid\": 0, \"args\": {\"labels\": "
                      "\"CPU\"}}");
    expect_line(text, "\"name\": \"app.py(3): main\", \"pid\": 301, "
                      "\"tid\": 100, ");
    free(text);
}

static void serials_are_unique_over_the_document(void)
{
    builder a, b;
    char *text;

    begin(&a, 100);
    records(&a, 0, 1000);
    builder_enter(&a, MAIN, 0);
    call(&a, MAIN, 10, 10);
    builder_exit(&a, MAIN, 10);
    begin(&b, 200);
    records(&b, 0, 1000);
    builder_enter(&b, MAIN, 0);
    call(&b, MAIN, 10, 10);
    builder_escape(&b, VST_ESCAPE_BEGIN, 10, &(uint64_t){STEP}, 1);
    builder_exit(&b, MAIN, 10);
    builder_escape(&b, VST_ESCAPE_END, 10, &(uint64_t){STEP}, 1);
    text = merged((builder *[]){&a, &b}, 2);
    expect_line(text, "\"Python parent id\": 1, \"Python id\": 2, "
                      "\"Ev Idx\": 2}");
    expect_line(text, "\"Python parent id\": null, \"Python id\": 3, "
                      "\"Ev Idx\": 3}");
    expect_line(text, "\"Python parent id\": 3, \"Python id\": 4, "
                      "\"Ev Idx\": 4}");
    expect_line(text, "\"id\": 5, \"args\": {\"External id\": 5, "
                      "\"Record function id\": 5, \"Ev Idx\": 5}");
    CHECK_INT(count_of(text, "\"id\": 5"), 2);
    CHECK_INT(count_of(text, "\"Ev Idx\": 1}"), 1);
    free(text);
}

static void an_offset_moves_a_trace_and_its_base_time_is_that_of_all(void)
{
    /* A quarter of a year before the other trace. */
    int64_t away = -INT64_C(7889238) * 1000000000;
    builder a, b;
    vst_trace_info info;
    vst_trace *traces[2];
    char *text;

    begin(&a, 100);
    records(&a, 0, 1000);
    call(&a, MAIN, 0, 10);
    begin(&b, 200);
    records(&b, 0, 1000);
    call(&b, MAIN, 0, 10);
    if (open_all((builder *[]){&a, &b}, 2, traces) != 2)
        return;
    CHECK_INT(vst_trace_set_offset(traces[1], INT64_MAX), VST_E_ARGUMENT);
    CHECK_INT(vst_trace_set_offset(traces[1], INT64_MIN), VST_E_ARGUMENT);
    CHECK_INT(vst_trace_set_offset(traces[1], 5), VST_OK);
    CHECK_INT(vst_trace_set_offset(traces[1], 1500), VST_OK);
    vst_trace_get_info(traces[1], &info);
    CHECK_INT(info.start_ns, BUILDER_EPOCH_NS + 1000 + 1500);
    text = written(traces, 2);
    expect_line(text, "\"pid\": 100, \"tid\": 100, \"ts\": 3813830000001.000");
    expect_line(text, "\"pid\": 200, \"tid\": 200, \"ts\": 3813830000002.500");
    free(text);
    CHECK_INT(vst_trace_set_offset(traces[1], away), VST_OK);
    text = written(traces, 2);
    expect_line(text, "\"baseTimeNanoseconds\": 1688296932000000000");
    expect_line(text, "\"pid\": 100, \"tid\": 100, \"ts\": 11703068000001.000");
    expect_line(text, "\"pid\": 200, \"tid\": 200, \"ts\": 3813830000001.000");
    free(text);
    CHECK_INT(vst_trace_set_offset(traces[1], 0), VST_OK);
    vst_trace_get_info(traces[1], &info);
    CHECK_INT(info.start_ns, BUILDER_EPOCH_NS + 1000);
    vst_trace_close(traces[0]);
    vst_trace_close(traces[1]);
    builder_free(&a);
    builder_free(&b);
}

static void a_fork_is_an_arrow_from_the_forking_thread(void)
{
    builder a, b;
    char *text;

    begin(&a, 100);
    builder_thread(&a, 1, 101, "other");
    records(&a, 0, 1000);
    call(&a, MAIN, 0, 5000);
    records(&a, 1, 1000);
    call(&a, FORK, 1000, 500); /* 2000 to 2500 */
    call(&a, FORK, 1000, 500); /* 3500 to 4000: a fork whose child is not in the
                                * document */
    /* The child read the clock after the parent's call was over. */
    begin_child(&b, 200,
                "{\"pid\": 100, \"tid\": 101, \"time_ns\": "
                "1700000000000002600, \"how\": \"fork\"}",
                2700);
    text = merged((builder *[]){&a, &b}, 2);
    expect_line(text, ",\n{\"ph\": \"s\", \"cat\": \"process\", "
                      "\"name\": \"fork\", \"id\": 1, \"pid\": 100, "
                      "\"tid\": 101, \"ts\": 3813830000002.499},\n"
                      "{\"ph\": \"f\", \"bp\": \"e\", \"cat\": \"process\", "
                      "\"name\": \"fork\", \"id\": 1, \"pid\": 200, "
                      "\"tid\": 200, \"ts\": 3813830000002.700}");
    CHECK_INT(count_of(text, "\"cat\": \"process\""), 2);
    free(text);
}

static void a_fork_nobody_recorded_is_an_arrow_from_the_moment(void)
{
    builder a, b;
    char *text;

    begin(&a, 100);
    records(&a, 0, 1000);
    call(&a, MAIN, 0, 5000);
    begin_child(&b, 200,
                "{\"pid\": 100, \"tid\": null, \"time_ns\": "
                "1700000000000002600, \"how\": \"fork\"}",
                2700);
    text = merged((builder *[]){&a, &b}, 2);
    expect_line(text, "\"id\": 1, \"pid\": 100, \"tid\": 100, "
                      "\"ts\": 3813830000002.600}");
    free(text);
}

static void each_spawned_child_has_the_call_that_made_it(void)
{
    builder a, b, c, d;
    char *text;

    begin(&a, 100);
    builder_thread(&a, 1, 101, "starter");
    records(&a, 0, 1000);
    call(&a, FORK_EXEC, 1000, 10); /* 2000 */
    records(&a, 1, 1000);
    call(&a, FORK_EXEC, 1500, 10);   /* 2500 */
    call(&a, FORK_EXEC, 10000, 10);  /* 12510 */
    call(&a, FORK_EXEC, 100000, 10); /* too late to have made any of the
                                      * children */
    /* The second child starts before the first; the third child's pid was
     * reused. */
    begin_child(&b, 201,
                "{\"pid\": 100, \"tid\": null, \"time_ns\": "
                "1700000000000009000, \"how\": \"spawn\"}",
                9000);
    begin_child(&c, 202,
                "{\"pid\": 100, \"tid\": null, \"time_ns\": "
                "1700000000000008000, \"how\": \"spawn\"}",
                8000);
    begin_child(&d, 50,
                "{\"pid\": 100, \"tid\": null, \"time_ns\": "
                "1700000000000020000, \"how\": \"spawn\"}",
                20000);
    text = merged((builder *[]){&a, &b, &c, &d}, 4);
    expect_line(text, "\"id\": 1, \"pid\": 100, \"tid\": 101, "
                      "\"ts\": 3813830000012.510},\n{\"ph\": \"f\", "
                      "\"bp\": \"e\", \"cat\": \"process\", "
                      "\"name\": \"spawn\", \"id\": 1, \"pid\": 50, ");
    expect_line(text, "\"id\": 2, \"pid\": 100, \"tid\": 101, "
                      "\"ts\": 3813830000002.500},\n{\"ph\": \"f\", "
                      "\"bp\": \"e\", \"cat\": \"process\", "
                      "\"name\": \"spawn\", \"id\": 2, \"pid\": 202, ");
    expect_line(text, "\"id\": 3, \"pid\": 100, \"tid\": 100, "
                      "\"ts\": 3813830000002.000},\n{\"ph\": \"f\", "
                      "\"bp\": \"e\", \"cat\": \"process\", "
                      "\"name\": \"spawn\", \"id\": 3, \"pid\": 201, ");
    CHECK_INT(count_of(text, "\"cat\": \"process\""), 6);
    free(text);
}

static void a_program_after_exec_has_an_arrow_from_the_one_before(void)
{
    builder a, b;
    char *text;

    begin(&a, 100);
    records(&a, 0, 1000);
    builder_enter(&a, EXEC, 1000);
    begin_child(&b, 100,
                "{\"pid\": 100, \"tid\": null, \"time_ns\": "
                "1700000000000020000, \"how\": \"spawn\"}",
                20000);
    builder_header(&b)->start.ticks = 20000;
    builder_header(&b)->start.monotonic_ns = 20000;
    builder_header(&b)->start.realtime_ns = BUILDER_EPOCH_NS + 20000;
    builder_fix_header(&b);
    text = merged((builder *[]){&a, &b}, 2);
    expect_line(text, "\"name\": \"exec\", \"id\": 1, \"pid\": 100, "
                      "\"tid\": 100, \"ts\": 3813830000002.000}");
    expect_line(text, "\"name\": \"exec\", \"id\": 1, \"pid\": 101, "
                      "\"tid\": 100, \"ts\": 3813830000020.000}");
    free(text);
}

static void no_arrow_points_back_or_comes_from_nowhere(void)
{
    static const char *const parents[] = {
        "{\"pid\": 999, \"tid\": 1, \"time_ns\": 1, \"how\": \"fork\"}",
        "{\"pid\": 200, \"tid\": 1, \"time_ns\": 1, \"how\": \"fork\"}",
        "{\"pid\": \"100\"}",
        "[100]",
        "{}",
        "17",
        "{\"pid\": 100",
    };

    for (size_t i = 0; i < sizeof parents / sizeof parents[0]; i++) {
        builder a, b;
        char *text;

        begin_child(&a, 100, NULL, 1000);
        begin_child(&b, 200, parents[i], 1000);
        text = merged((builder *[]){&a, &b}, 2);
        CHECK_INT(count_of(text, "\"cat\": \"process\""), 0);
        free(text);
    }
}

static void a_parents_word_on_time_is_not_believed_too_far(void)
{
    static const char *const parents[] = {
        "{\"pid\": 100, \"time_ns\": 9223372036854775807, \"how\": \"fork\"}",
        "{\"pid\": 100, \"time_ns\": -9223372036854775807, \"how\": 1}",
        "{\"pid\": 100, \"time_ns\": 92233720368547758079, \"how\": null}",
        "{\"pid\": 100, \"time_ns\": 1700000000000990000, \"how\": \"fork\"}",
        "{\"pid\": 100, \"tid\": -5, \"time_ns\": 1.5, \"how\": \"fork\"}",
    };

    for (size_t i = 0; i < sizeof parents / sizeof parents[0]; i++) {
        builder a, b;
        char *text;

        begin_child(&a, 100, NULL, 1000);
        begin_child(&b, 200, parents[i], 2000);
        text = merged((builder *[]){&a, &b}, 2);
        CHECK_INT(count_of(text, "\"cat\": \"process\""), 2);
        CHECK_INT(count_of(text, "3813830000990"), 0);
        free(text);
    }
}

static void a_child_without_spans_is_pointed_at_by_its_window(void)
{
    builder a, b;
    char *text;

    begin_child(&a, 100, NULL, 1000);
    begin(&b, 200);
    builder_metadata(&b, "vestige.parent",
                     "{\"pid\": 100, \"time_ns\": 1700000000000001050, "
                     "\"how\": \"fork\"}");
    text = merged((builder *[]){&a, &b}, 2);
    expect_line(text, "\"name\": \"fork\", \"id\": 1, \"pid\": 200, "
                      "\"tid\": 201, \"ts\": 3813830000001.000}");
    free(text);
}

static void a_long_command_line_is_cut_between_characters(void)
{
    char command[4000] = "[\"";
    builder a, b;
    char *text;

    for (int i = 0; i < 300; i++)
        strcat(command, i % 2 == 0 ? "\\u00e9" : "\xc3\xa9");
    strcat(command, "\", \"rest\"]");
    begin_child(&a, 100, NULL, 1000);
    begin(&b, 200);
    builder_metadata(&b, "vestige.command", command);
    text = merged((builder *[]){&a, &b}, 2);
    expect_line(text, "\\u00e9\xc3\xa9\xe2\x80\xa6\"}}");
    CHECK(strstr(text, "rest") == NULL);
    free(text);
}

/* ---- progress ----------------------------------------------------------- */

typedef struct heard {
    double last;
    int calls;
    int until; /* the call of the hook that asks to stop */
} heard;

static int hear(void *ctx, double done)
{
    heard *self = ctx;

    CHECK(done >= self->last && done <= 1);
    self->last = done;
    return ++self->calls == self->until;
}

static void progress_is_that_of_all_and_cancels_all(void)
{
    heard ear = {0, 0, 0}, other = {0, 0, 0};
    builder a, b;
    vst_error error;
    vst_trace *traces[2];

    begin_child(&a, 100, NULL, 1000);
    begin_child(&b, 200, NULL, 1000);
    if (open_all((builder *[]){&a, &b}, 2, traces) != 2)
        return;
    vst_trace_set_progress(traces[0], hear, &ear);
    vst_trace_set_progress(traces[1], hear, &other);
    free(written(traces, 2));
    CHECK_INT(ear.calls, 2); /* each replay calls the progress hook once at its
                              * beginning */
    CHECK(ear.last > 0.9);
    CHECK_INT(other.calls, 0);
    ear = (heard){0, 0, 2};
    CHECK_INT(vst_traces_export(traces, 2, in_folder("all.json"), NULL, &error),
              VST_E_CANCELLED);
    /* The progress hook that was set before is set again. */
    ear = (heard){0, 0, 0};
    CHECK_INT(
        vst_trace_replay(traces[1], VST_WINDOW_ALL, NULL, &(vst_sink){0}, NULL),
        VST_OK);
    CHECK_INT(ear.calls, 0);
    CHECK_INT(other.calls, 1);
    CHECK_INT(vst_traces_export(traces, 0, in_folder("all.json"), NULL, &error),
              VST_E_ARGUMENT);
    vst_trace_close(traces[0]);
    vst_trace_close(traces[1]);
    builder_free(&a);
    builder_free(&b);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 2;
    TEST(several_traces_are_one_document_with_a_process_each);
    TEST(a_process_has_a_name_even_if_nothing_is_known_of_it);
    TEST(pids_that_collide_get_numbers_of_their_own);
    TEST(serials_are_unique_over_the_document);
    TEST(an_offset_moves_a_trace_and_its_base_time_is_that_of_all);
    TEST(a_fork_is_an_arrow_from_the_forking_thread);
    TEST(a_fork_nobody_recorded_is_an_arrow_from_the_moment);
    TEST(each_spawned_child_has_the_call_that_made_it);
    TEST(a_program_after_exec_has_an_arrow_from_the_one_before);
    TEST(no_arrow_points_back_or_comes_from_nowhere);
    TEST(a_parents_word_on_time_is_not_believed_too_far);
    TEST(a_child_without_spans_is_pointed_at_by_its_window);
    TEST(a_long_command_line_is_cut_between_characters);
    TEST(progress_is_that_of_all_and_cancels_all);
    return rmdir(folder) != 0 || checks_end();
}
