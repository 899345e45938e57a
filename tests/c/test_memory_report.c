/* Summaries of memory histories, compared with known numbers or with a simple
 * model, and the files in which they are written. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "export/output/json.h"
#include "exported.h"
#include "memory/report.h"
#include "memory_model.h"
#include "record/memory.h"

static vst_id define(vst_session *session, const char *name, const char *file,
                     uint32_t skip)
{
    vst_definition d = {.kind = VST_DEF_PYTHON,
                        .name = name,
                        .name_len = (uint32_t)strlen(name),
                        .file = file,
                        .file_len = (uint32_t)strlen(file),
                        .file_skip = skip};
    vst_id id = 0;

    CHECK_INT(vst_recording_define_id(vst_session_recording(session), &d, &id),
              VST_OK);
    return id;
}

static vst_stack_id push(vst_session *session, vst_stack_id parent,
                         const char *name, int line)
{
    vst_stack stack = {.kind = VST_STACK_LANGUAGE,
                       .parent = parent,
                       .function = define(session, name, "/app/a.py", 5),
                       .line = line};
    vst_stack_id id = 0;

    CHECK_INT(
        vst_recording_define_stack(vst_session_recording(session), &stack, &id),
        VST_OK);
    return id;
}

static vst_memory_summary *summarize(vst_session *session, uint32_t k)
{
    vst_memory_report_options options = {.window = VST_WINDOW_ALL,
                                         .temporary = k};
    vst_memory_summary *summary = NULL;
    vst_trace *trace;
    vst_error error;

    CHECK_INT(vst_session_open_trace(session, &trace, &error), VST_OK);
    CHECK_INT(vst__trace_summarize_memory(trace, &options, &summary, &error),
              VST_OK);
    vst_trace_close(trace);
    return summary;
}

static void check_amount(vst_memory_amount a, double count, double bytes)
{
    CHECK_INT(a.count, count);
    CHECK_INT(a.bytes, bytes);
    CHECK_INT(a.variance, 0);
}

/* Prints a stack as "f:3 < g:4", innermost frame first. */
static const char *path_of(const vst_memory_summary *s, uint32_t node)
{
    static char text[512];
    size_t at = 0;

    text[0] = '\0';
    for (; node != 0; node = s->nodes[node].parent) {
        const vst_memory_frame *f = &s->frames[s->nodes[node].frame];
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s:%u",
                               at != 0 ? " < " : "", f->name, f->line);
        if (at >= sizeof text)
            break;
    }
    return text;
}

/* ---- sums --------------------------------------------------------------- */

static void peak_leaks_and_temporary_are_exact(void)
{
    vst_session *session = session_begin(NULL);
    vst_stack_id main_ = push(session, 0, "main", 10);
    vst_stack_id f = push(session, main_, "f", 3);
    vst_stack_id g = push(session, main_, "g", 4);
    vst_memory_summary *s;

    allocate(1, 100, f);
    release(1); /* temporary */
    allocate(2, 1000, f);
    allocate(3, 50, g);
    release(2);
    allocate(4, 949, g); /* now 999: less than the peak of 1050 */
    release(3);
    vst_session_stop(session);
    s = summarize(session, 1);
    check_amount(s->views[VST_MEMORY_TOTAL], 4, 2099);
    check_amount(s->views[VST_MEMORY_PEAK], 2, 1050);
    check_amount(s->views[VST_MEMORY_LEAKS], 1, 949);
    check_amount(s->views[VST_MEMORY_TEMPORARY], 1, 100);
    check_amount(s->nodes[s->node_of_stack[f]].own[VST_MEMORY_PEAK], 1, 1000);
    check_amount(s->nodes[s->node_of_stack[g]].own[VST_MEMORY_PEAK], 1, 50);
    check_amount(s->nodes[s->node_of_stack[g]].own[VST_MEMORY_LEAKS], 1, 949);
    check_amount(s->nodes[1].own[VST_MEMORY_TOTAL], 0, 0);
    CHECK_INT(s->node_of_stack[main_], UINT32_MAX);
    check_amount(s->nodes[1].inclusive[VST_MEMORY_TOTAL], 4, 2099);
    CHECK_TEXT(path_of(s, s->node_of_stack[f]), "f:3 < main:10");
    CHECK_INT(s->frees, 3);
    CHECK_INT(s->line_count, 2);
    check_amount(s->sizes[7], 1, 100); /* the bucket of 64 to 127 */
    check_amount(s->kinds[VST_MEMORY_MALLOC], 4, 2099);
    CHECK_INT(s->thread_count, 1);
    check_amount(s->threads[0].freed, 3, 1150);
    vst__memory_summary_free(s);
    s = summarize(session, 2); /* 2: a block is temporary if it is among the
                                * last two allocations */
    check_amount(s->views[VST_MEMORY_TEMPORARY], 3, 1150);
    vst__memory_summary_free(s);
    vst_session_destroy(session);
}

/* A model that keeps all blocks and examines all of them each time. */
enum { MODEL_BLOCKS = 64, MODEL_STACKS = 9 };

static void random_histories_are_as_a_model_says(void)
{
    uint64_t seed = 12345;

    for (int round = 0; round < 40; round++) {
        vst_session *session = session_begin(NULL);
        size_t size[MODEL_BLOCKS] = {0};
        vst_stack_id stacks[MODEL_STACKS], of[MODEL_BLOCKS] = {0};
        double peak[MODEL_STACKS] = {0}, most = 0;
        vst_memory_summary *s;

        for (int i = 0; i < MODEL_STACKS; i++)
            stacks[i] = push(session, i > 2 ? stacks[i / 2] : 0, "f", i + 1);
        for (int i = 0; i < 500; i++) {
            double live;
            unsigned block;

            seed = seed * 6364136223846793005u + 1442695040888963407u;
            block = (unsigned)(seed >> 33) % MODEL_BLOCKS;
            live = 0;

            if (size[block] != 0) {
                release(block);
                size[block] = 0;
            } else {
                size[block] = 1 + (size_t)(seed >> 40) % 5000;
                of[block] = (vst_stack_id)(seed >> 56) % MODEL_STACKS;
                allocate(block, size[block], stacks[of[block]]);
            }
            for (int k = 0; k < MODEL_BLOCKS; k++)
                live += (double)size[k];
            if (live <= most)
                continue;
            most = live;
            memset(peak, 0, sizeof peak);
            for (int k = 0; k < MODEL_BLOCKS; k++)
                peak[of[k]] += (double)size[k];
        }
        vst_session_stop(session);
        s = summarize(session, 1);
        CHECK_INT(s->views[VST_MEMORY_PEAK].bytes, most);
        for (int i = 0; i < MODEL_STACKS; i++) {
            double left = 0;
            uint32_t node = s->node_of_stack[stacks[i]];
            for (int k = 0; k < MODEL_BLOCKS; k++)
                left += of[k] == (vst_stack_id)i ? (double)size[k] : 0;
            if (node >= s->node_count) {
                CHECK_INT(left, 0);
                continue;
            }
            CHECK_INT(s->nodes[node].own[VST_MEMORY_PEAK].bytes, peak[i]);
            CHECK_INT(s->nodes[node].own[VST_MEMORY_LEAKS].bytes, left);
        }
        vst__memory_summary_free(s);
        vst_session_destroy(session);
    }
}

static void each_window_begins_with_nothing(void)
{
    vst_session *session = session_begin(NULL);
    vst_stack_id f = push(session, 0, "f", 3);
    vst_memory_summary *s;
    vst_error error;

    allocate(1, 100, f);
    vst_session_stop(session);
    CHECK_INT(vst_session_start(session, &error), VST_OK);
    allocate(1, 70, f); /* the block's free is not recorded, and need not be */
    allocate(2, 10, f);
    release(2);
    vst_session_stop(session);
    s = summarize(session, 1);
    check_amount(s->views[VST_MEMORY_LEAKS], 2, 170);
    check_amount(s->views[VST_MEMORY_PEAK], 1, 100);
    CHECK_INT(s->lost_frees, 0);
    vst__memory_summary_free(s);
    vst_session_destroy(session);
}

static void part_of_a_mapping_may_be_unmapped(void)
{
    vst_session *session = session_begin(NULL);
    vst_stack_id f = push(session, 0, "f", 3);
    uintptr_t at = 0x7f1000000000u;
    vst_memory_summary *s;

    vst_record_alloc(VST_MEMORY_MMAP, at, 16384, f, 0, vst_clock_ticks());
    vst_record_free(VST_MEMORY_MUNMAP, at + 4096, 4096, vst_clock_ticks());
    vst_session_stop(session);
    s = summarize(session, 1);
    CHECK_INT(s->views[VST_MEMORY_LEAKS].bytes, 12288);
    CHECK_INT(s->views[VST_MEMORY_PEAK].bytes, 16384);
    check_amount(s->views[VST_MEMORY_TEMPORARY], 0, 0);
    vst__memory_summary_free(s);
    vst_session_destroy(session);
}

static void a_framework_is_not_counted_twice(void)
{
    for (int alone = 0; alone < 2; alone++) {
        vst_session *session = session_begin(NULL);
        vst_stack_id f = push(session, 0, "f", 3);
        vst_memory_summary *s;

        if (!alone)
            allocate(1, 1000, f);
        vst_record_alloc(VST_MEMORY_FRAMEWORK, 0x1000, 300, f, 0,
                         vst_clock_ticks());
        vst_session_stop(session);
        s = summarize(session, 1);
        CHECK_INT(s->of_framework, alone);
        check_amount(s->views[VST_MEMORY_PEAK], 1, alone ? 300 : 1000);
        CHECK_INT(s->apart, alone ? 0 : 1);
        vst__memory_summary_free(s);
        vst_session_destroy(session);
    }
}

/* The estimate for many equal allocations, and the estimate's error. */
static void samples_give_estimates_and_their_errors(void)
{
    vst_session *session = session_begin(NULL);
    vst_stack_id f = push(session, 0, "f", 3);
    double weight = 1 / (1 - exp(-100.0 / 1000));
    vst_memory_summary *s;

    CHECK_INT(vst_recording_set_metadata(vst_session_recording(session),
                                         "vestige.memory",
                                         "{\"sample_bytes\": 1000}"),
              VST_OK);
    for (unsigned i = 0; i < 50; i++)
        allocate(i, 100, f);
    vst_session_stop(session);
    s = summarize(session, 1);
    CHECK(s->is_sampled);
    CHECK(fabs(s->views[VST_MEMORY_LEAKS].count - 50 * weight) < 1e-6);
    CHECK(fabs(s->views[VST_MEMORY_PEAK].bytes - 5000 * weight) < 1e-6);
    CHECK(fabs(s->views[VST_MEMORY_TOTAL].variance -
               50 * weight * (weight - 1) * 1e4) < 1);
    CHECK(fabs(s->count_variance[VST_MEMORY_TOTAL] -
               50 * weight * (weight - 1)) < 1e-6);
    check_amount(s->views[VST_MEMORY_TEMPORARY], 0, 0);
    vst__memory_summary_free(s);
    vst_session_destroy(session);
}

static void usage_over_time_is_bounded_and_has_the_peak(void)
{
    vst_session *session = session_begin(NULL);
    vst_stack_id f = push(session, 0, "f", 3);
    vst_ticks now = vst_clock_ticks();
    double most = 0;
    vst_memory_summary *s;
    int64_t when = 0;

    for (unsigned i = 0; i < 20000; i++) {
        vst_record_alloc(VST_MEMORY_MALLOC, fake_address(i), 1, f, 0,
                         now += 100000);
        if (i == 12345) {
            vst_record_alloc(VST_MEMORY_MALLOC, fake_address(99999), 7000, f, 0,
                             now += 1);
            vst_record_free(VST_MEMORY_FREE, fake_address(99999), 0, now += 1);
        }
        if (i >= 100)
            vst_record_free(VST_MEMORY_FREE, fake_address(i - 100), 0,
                            now += 1);
    }
    vst_session_stop(session);
    s = summarize(session, 1);
    CHECK(s->point_count > 900 && s->point_count <= VST_MEMORY_POINTS_MAX);
    for (size_t i = 0; i < s->point_count; i++) {
        if (s->points[i].max_bytes > most) {
            most = s->points[i].max_bytes;
            when = s->points[i].max_ns;
        }
        CHECK(i == 0 || s->points[i].max_ns >= s->points[i - 1].last_ns);
    }
    CHECK_INT(most, s->views[VST_MEMORY_PEAK].bytes);
    CHECK_INT(when, s->peak_ns);
    CHECK_INT(s->points[s->point_count - 1].last_bytes, 100);
    vst__memory_summary_free(s);
    vst_session_destroy(session);
}

/* ---- stacks ------------------------------------------------------------- */

static void own_frames_are_hidden(void)
{
    vst_session *session = session_begin(NULL);
    vst_recording *recording = vst_session_recording(session);
    vst_stack own = {.kind = VST_STACK_LANGUAGE, .line = 9};
    vst_stack_id start, main_, inside;
    vst_memory_summary *s;

    own.function = define(session, "run", "/lib/vestige/cli/run.py", 5);
    CHECK_INT(vst_recording_define_stack(recording, &own, &start), VST_OK);
    main_ = push(session, start, "main", 1);
    own.parent = main_;
    own.function =
        define(session, "w", "/x/site-packages/vestige/annotate.py", 0);
    CHECK_INT(vst_recording_define_stack(recording, &own, &inside), VST_OK);
    allocate(1, 10, push(session, inside, "f", 2));
    allocate(2, 10, start);
    allocate(3, 10, 0);
    vst_session_stop(session);
    s = summarize(session, 1);
    CHECK_TEXT(path_of(s, s->node_of_stack[inside + 1]), "f:2 < main:1");
    CHECK_TEXT(path_of(s, s->node_of_stack[start]), "(no stack):0");
    CHECK_INT(s->node_of_stack[0], s->node_of_stack[start]);
    vst__memory_summary_free(s);
    vst_session_destroy(session);
}

static vst_stack_id native(vst_session *session, vst_stack_id parent,
                           uint64_t address)
{
    vst_stack stack = {
        .kind = VST_STACK_NATIVE, .parent = parent, .address = address};
    vst_stack_id id = 0;

    CHECK_INT(
        vst_recording_define_stack(vst_session_recording(session), &stack, &id),
        VST_OK);
    return id;
}

/* Outer to inner: main (start), eval runs m, C code, eval runs f which calls g,
 * C code that allocates. */
static void native_frames_meet_the_languages_at_evaluation_frames(void)
{
    vst_session *session = session_begin(NULL);
    vst_recording *recording = vst_session_recording(session);
    vst_module module = {.path = "/nowhere/libx.so",
                         .bias = 0x10000,
                         .start = 0x10000,
                         .end = 0x20000};
    vst_stack language = {.kind = VST_STACK_LANGUAGE,
                          .flags = VST_STACK_IS_ENTRY};
    vst_stack both = {.kind = VST_STACK_BOTH};
    vst_stack_id m, f, g, at = 0, id, gone;
    vst_memory_summary *s;

    vst__recording_define_module(recording, &module);
    vst_recording_set_metadata(recording, "vestige.evaluation",
                               "[[73728, 73984], [7, 8]]"); /* 0x12000 … */
    language.function = define(session, "m", "/app/a.py", 5);
    language.line = 1;
    vst_recording_define_stack(recording, &language, &m);
    language.parent = m;
    language.line = 2;
    vst_recording_define_stack(recording, &language, &f);
    g = push(session, f, "g", 3);
    at = native(session, at, 0x12001); /* the frames that started vestige are
                                        * not shown */
    at = native(session, at, 0x11000);
    gone = at;
    at = native(session, at, 0x12010);
    at = native(session, at, 0x11100);
    at = native(session, at, 0x12020);
    at = native(session, at, 0x11200);
    both.parent = g;
    both.address = at;
    vst_recording_define_stack(recording, &both, &id);
    allocate(1, 10, id);
    both.parent = 0;
    both.address = gone;
    vst_recording_define_stack(recording, &both, &gone);
    allocate(2, 10, gone);
    vst_session_stop(session);
    s = summarize(session, 1);
    CHECK_TEXT(path_of(s, s->node_of_stack[id]),
               "libx.so+0x1200:0 < g:3 < m:2 < libx.so+0x1100:0 < m:1");
    CHECK_TEXT(path_of(s, s->node_of_stack[gone]),
               "libx.so+0x1000:0 < libx.so+0x2001:0");
    vst__memory_summary_free(s);
    vst_session_destroy(session);
}

/* A file may contain anything: for example, a stack that is its own parent. */
static void stacks_that_make_no_sense_end(void)
{
    vst_session *session = session_begin(NULL);
    vst_recording *recording = vst_session_recording(session);
    vst_stack stack = {
        .kind = VST_STACK_LANGUAGE, .parent = 1, .function = 12345, .line = -7};
    vst_stack both = {.kind = VST_STACK_BOTH, .parent = 3, .address = 3};
    vst_stack_id a, b, c;
    vst_memory_summary *s;

    vst_recording_define_stack(recording, &stack, &a);
    stack.parent = 77;
    vst_recording_define_stack(recording, &stack, &b);
    vst_recording_define_stack(recording, &both, &c);
    allocate(1, 10, a);
    allocate(2, 10, b);
    allocate(3, 10, c);
    allocate(4, 10, 9999);
    vst_session_stop(session);
    s = summarize(session, 1);
    CHECK_TEXT(path_of(s, s->node_of_stack[a]),
               "?:0 < (outer frames were left out):0");
    CHECK_TEXT(path_of(s, s->node_of_stack[c]), "(no stack):0");
    CHECK_INT(s->nodes[s->node_of_stack[0]].own[VST_MEMORY_TOTAL].count, 2);
    vst__memory_summary_free(s);
    vst_session_destroy(session);
}

/* ---- files -------------------------------------------------------------- */

static char *written(vst_session *session, const char *name,
                     vst_memory_view view)
{
    vst_memory_report_options options = {.window = VST_WINDOW_ALL,
                                         .view = view};
    const char *path = in_folder(name);
    vst_trace *trace;
    vst_error error;
    char *text;

    CHECK_INT(vst_session_open_trace(session, &trace, &error), VST_OK);
    CHECK_INT(vst_traces_export_memory(&trace, 1, path, &options, &error),
              VST_OK);
    vst_trace_close(trace);
    text = contents(path);
    CHECK_INT(remove(path), 0);
    return text != NULL ? text : calloc(1, 1);
}

static vst_session *small_history(void)
{
    vst_session *session = session_begin(NULL);
    vst_stack_id main_ = push(session, 0, "main", 10);
    vst_stack_id f = push(session, main_, "a\"b;c</script>\n\xff", 3);

    allocate(1, 100, f);
    allocate(2, 30, main_);
    release(1);
    release(7);
    vst_session_stop(session);
    return session;
}

static void every_format_says_the_same(void)
{
    vst_session *session = small_history();
    char *text = written(session, "m.json", VST_MEMORY_PEAK);

    CHECK(vst__json_is_value(text, strlen(text)));
    expect_line(text, "\"peak\": {\"count\": 2, \"bytes\": 130}");
    expect_line(text, "[\"alloc\", \"malloc\", ");
    free(text);
    text = written(session, "m.json.gz", VST_MEMORY_PEAK);
    CHECK(vst__json_is_value(text, strlen(text)));
    free(text);
    text = written(session, "m.folded", VST_MEMORY_PEAK);
    CHECK_TEXT(text, "main (a.py:10) 30\n"
                     "main (a.py:10);a\"b_c</script>_\xef\xbf\xbd (a.py:3) "
                     "100\n");
    free(text);
    text = written(session, "m.folded", VST_MEMORY_LEAKS);
    CHECK_TEXT(text, "main (a.py:10) 30\n");
    free(text);
    text = written(session, "m.csv", VST_MEMORY_PEAK);
    expect_line(text, "\"/app/a.py:3 a\"\"b_c</script>_\xef\xbf\xbd\"");
    expect_line(text, ",\"/app/a.py:10 main\",\"/app/a.py:10 main\"\n");
    free(text);
    text = written(session, "m.html", VST_MEMORY_PEAK);
    CHECK(strstr(text, "c</script>") == NULL);
    expect_line(text, "a\\\"b;c\\u003c/script>\\n\xef\xbf\xbd");
    CHECK(strstr(text, "/*DATA*/") == NULL);
    free(text);
    vst_session_destroy(session);
}

static void a_page_of_very_many_stacks_stays_small(void)
{
    vst_session *session = session_begin(NULL);
    vst_stack_id main_ = push(session, 0, "main", 10);
    char *text, *json, *end;

    for (int i = 0; i < 60000; i++)
        allocate((unsigned)i, 16 + (size_t)i % 100,
                 push(session, main_, "f", i + 1));
    vst_session_stop(session);
    text = written(session, "m.html", VST_MEMORY_PEAK);
    expect_line(text, "\"leftOut\":10002"); /* 60,002 minus 50,000 */
    json = strstr(text, "id=\"data\">");
    end = json != NULL ? strstr(json, "</script>") : NULL;
    CHECK(end != NULL &&
          vst__json_is_value(json + 10, (size_t)(end - json) - 10));
    free(text);
    vst_session_destroy(session);
}

static int cancel(void *ctx, double done)
{
    (void)ctx, (void)done;
    return 1;
}

static void what_cannot_be_written_leaves_nothing(void)
{
    vst_session *session = small_history(), *empty;
    vst_memory_summary *summary;
    vst_trace *trace;
    vst_error error;

    CHECK_INT(vst_session_open_trace(session, &trace, &error), VST_OK);
    CHECK_INT(
        vst_traces_export_memory(&trace, 1, in_folder("m.txt"), NULL, &error),
        VST_E_ARGUMENT);
    CHECK_INT(
        vst_traces_export_memory(&trace, 1, "/no/such/m.csv", NULL, &error),
        VST_E_IO);
    vst_trace_close(trace);
    vst_session_destroy(session);
    session = session_begin(NULL);
    for (unsigned i = 0; i < 100000; i++)
        allocate(i, 16, 0);
    vst_session_stop(session);
    CHECK_INT(vst_session_open_trace(session, &trace, &error), VST_OK);
    vst_trace_set_progress(trace, cancel, NULL);
    CHECK_INT(vst_traces_export_memory(&trace, 1, in_folder("m.pickle"), NULL,
                                       &error),
              VST_E_CANCELLED);
    vst_trace_close(trace);
    vst_session_destroy(session);
    CHECK(access(in_folder("m.pickle"), F_OK) != 0);
    empty = session_begin(NULL);
    vst_session_stop(empty);
    CHECK_INT(vst_session_open_trace(empty, &trace, &error), VST_OK);
    CHECK_INT(vst__trace_summarize_memory(trace, NULL, &summary, &error),
              VST_E_STATE);
    CHECK_INT(
        vst_traces_export_memory(&trace, 1, in_folder("m.csv"), NULL, &error),
        VST_E_STATE);
    vst_trace_close(trace);
    vst_session_destroy(empty);
    CHECK_INT(rmdir(folder), 0); /* succeeds only if the folder has no other
                                  * file */
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    TEST(peak_leaks_and_temporary_are_exact);
    TEST(random_histories_are_as_a_model_says);
    TEST(each_window_begins_with_nothing);
    TEST(part_of_a_mapping_may_be_unmapped);
    TEST(a_framework_is_not_counted_twice);
    TEST(samples_give_estimates_and_their_errors);
    TEST(usage_over_time_is_bounded_and_has_the_peak);
    TEST(own_frames_are_hidden);
    TEST(native_frames_meet_the_languages_at_evaluation_frames);
    TEST(stacks_that_make_no_sense_end);
    TEST(every_format_says_the_same);
    TEST(a_page_of_very_many_stacks_stays_small);
    TEST(what_cannot_be_written_leaves_nothing);
    return checks_end();
}
