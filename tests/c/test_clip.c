/* What is dropped, and what is left out of a trace that is there: by hand-made
 * files, so that every time is known. A thread's runs fit together or are
 * bridged by their checkpoints; a clip hides what came before it. */
#include <stdlib.h>

#include "check.h"
#include "span_tree.h"
#include "trace_builder.h"

static vst_trace *open_built(builder *b)
{
    vst_trace *trace = NULL;

    if (builder_open(b, &trace, NULL) != VST_OK)
        abort();
    return trace;
}

static void check_replay(vst_trace *trace, const char *spans,
                         const char *points)
{
    span_tree tree = {.origin_ns = BUILDER_EPOCH_NS};
    vst_sink sink = tree_sink(&tree);

    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    CHECK_TEXT(tree_text(&tree), spans);
    CHECK_TEXT(tree.points, points);
    tree_free(&tree);
}

static void check_built(builder *b, const char *spans, const char *points)
{
    vst_trace *trace = open_built(b);

    check_replay(trace, spans, points);
    vst_trace_close(trace);
    builder_free(b);
}

static void checkpoint(builder *b, uint64_t words, uint64_t ordinal,
                       uint64_t records)
{
    builder_escape(b, VST_ESCAPE_CHECKPOINT, 0,
                   (uint64_t[]){words, ordinal, records}, 3);
}

/* ---- runs --------------------------------------------------------------- */

/* Calls a(b(c)), begun in one run and ended in another. */
static void first_run(builder *b)
{
    builder_records(b, 0, 1, 2000, 4);
    checkpoint(b, 0, 0, 0);
    builder_enter(b, 1, 100);
    builder_enter(b, 2, 100);
    builder_enter(b, 3, 100);
    builder_seal(b, 1);
}

static void second_run(builder *b, uint64_t ordinal, uint64_t records)
{
    builder_records(b, 0, 1, 3000, 4);
    checkpoint(b, 4, ordinal, records);
    builder_escape(b, VST_ESCAPE_STACK, 0, (uint64_t[]){1, 2, 3}, 3);
    builder_exit(b, 3, 100);
    builder_exit(b, 2, 100);
    builder_exit(b, 1, 100);
    builder_seal(b, 1);
}

static void begin(builder *b)
{
    builder_init(b);
    builder_header(b)->slot_size = 4 * VST_CHUNK_ALIGN;
    builder_definitions(b, 4);
    builder_window(b, 0, 1500, 5000);
    builder_seal(b, 1);
}

static void a_checkpoint_says_nothing_new_where_the_run_before_was_read(void)
{
    builder b;

    begin(&b);
    first_run(&b);
    second_run(&b, 1, 3);
    check_built(&b,
                "a 2100..3300\n"
                "  b 2200..3200\n"
                "    c 2300..3100\n",
                "");
}

static void without_the_run_before_its_checkpoint_is_where_it_begins(void)
{
    builder b;
    vst_trace_info info;

    begin(&b);
    builder_header(&b)->dropped = 3;
    second_run(&b, 1, 3);
    vst_trace *trace = open_built(&b);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.dropped, 3);
    CHECK_INT(info.words, 3);
    CHECK_INT(info.start_ns, BUILDER_EPOCH_NS + 3000);
    CHECK_INT(info.complete_ns, BUILDER_EPOCH_NS + 3000);
    vst_trace_close(trace);
    check_built(&b,
                "a 2997..3300 open-at-start\n"
                "  b 2998..3200 open-at-start\n"
                "    c 2999..3100 open-at-start\n",
                "dropped 3 1500..3000\n");
}

static void runs_missing_in_the_middle_end_what_was_open(void)
{
    builder b;
    vst_trace_info info;

    begin(&b);
    builder_header(&b)->dropped = 40;
    first_run(&b);
    second_run(&b, 5, 43);
    vst_trace *trace = open_built(&b);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.start_ns, BUILDER_EPOCH_NS + 2000);
    CHECK_INT(info.complete_ns, BUILDER_EPOCH_NS + 3000);
    vst_trace_close(trace);
    check_built(&b,
                "a 2100..2300 cut\n"
                "  b 2200..2300 cut\n"
                "    c 2300..2300 cut\n"
                "a 2997..3300 open-at-start\n"
                "  b 2998..3200 open-at-start\n"
                "    c 2999..3100 open-at-start\n",
                "dropped 40 2300..3000\n");
}

/* A run that was never sealed and is shorter than the next one says. */
static void a_run_that_was_torn_is_bridged_as_well(void)
{
    builder b;

    begin(&b);
    builder_records(&b, 0, 1, 2000, 4);
    checkpoint(&b, 0, 0, 0);
    builder_enter(&b, 1, 100);
    second_run(&b, 1, 3);
    check_built(&b,
                "a 2100..2100 cut\n"
                "a 2997..3300 open-at-start\n"
                "  b 2998..3200 open-at-start\n"
                "    c 2999..3100 open-at-start\n",
                "dropped 2 2100..3000\n");
}

static void begun_spans_and_other_stacks_go_on_too(void)
{
    builder b;

    begin(&b);
    builder_records(&b, 0, 1, 3000, 4);
    checkpoint(&b, 22, 1, 9);
    builder_escape(&b, VST_ESCAPE_BEGIN, 0, (uint64_t[]){24, 3}, 2);
    builder_escape(&b, VST_ESCAPE_SWITCH, 0, (uint64_t[]){7, 1}, 2);
    builder_escape(&b, VST_ESCAPE_STACK, 0, (uint64_t[]){11, 12}, 2);
    builder_escape(&b, VST_ESCAPE_SWITCH, 0, (uint64_t[]){0, 1}, 2);
    builder_escape(&b, VST_ESCAPE_STACK, 0, (uint64_t[]){1, 2}, 2);
    builder_escape(&b, VST_ESCAPE_BEGIN, 0, (uint64_t[]){25, 1}, 2);
    builder_escape(&b, VST_ESCAPE_STACK_MORE, 0, (uint64_t[]){3}, 1);
    builder_exit(&b, 3, 100);
    builder_escape(&b, VST_ESCAPE_END, 100, (uint64_t[]){25}, 1);
    builder_exit(&b, 2, 100);
    builder_escape(&b, VST_ESCAPE_SWITCH, 100, (uint64_t[]){7}, 1);
    builder_exit(&b, 12, 100);
    builder_escape(&b, VST_ESCAPE_END, 100, (uint64_t[]){24}, 1);
    builder_escape(&b, VST_ESCAPE_SWITCH, 100, (uint64_t[]){0}, 1);
    builder_exit(&b, 1, 100);
    builder_seal(&b, 1);
    check_built(&b,
                "x 3000..3600 open-at-start async\n"
                "a 3001..3398 open-at-start suspended\n"
                "  b 3002..3300 open-at-start\n"
                "    y 3003..3200 open-at-start\n"
                "      c 3004..3100 open-at-start\n"
                "k 3398..3699 open-at-start suspended\n"
                "  l 3399..3500 open-at-start\n"
                "a 3699..3800 resumed\n",
                "dropped 9 1500..3000\n");
}

/* ---- slots -------------------------------------------------------------- */

static void a_slot_without_a_magic_ends_nothing(void)
{
    builder b;
    vst_trace_info info;
    size_t empty;

    begin(&b);
    first_run(&b);
    empty = b.chunk;
    second_run(&b, 1, 3);
    memset(b.bytes + empty, 0, 4);
    vst_trace *trace = open_built(&b);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.damaged_at, 0);
    vst_trace_close(trace);
    check_built(&b,
                "a 2997..3300 open-at-start\n"
                "  b 2998..3200 open-at-start\n"
                "    c 2999..3100 open-at-start\n",
                "dropped 3 1500..3000\n");
}

static void a_damaged_slot_is_told_of_and_ends_nothing_either(void)
{
    builder b;
    vst_trace_info info;
    size_t damaged;

    begin(&b);
    first_run(&b);
    damaged = b.chunk;
    second_run(&b, 1, 3);
    b.bytes[damaged + 20] ^= 1;
    vst_trace *trace = open_built(&b);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.damaged_at, damaged);
    CHECK(!info.clean);
    CHECK_INT(info.words, 3);
    vst_trace_close(trace);
    builder_free(&b);
}

static void a_slot_size_that_cannot_be_is_not_believed(void)
{
    const uint32_t sizes[] = {1, 4095, 12288, 0x80000000u, UINT32_MAX};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        builder b;
        vst_trace_info info;

        begin(&b);
        first_run(&b);
        second_run(&b, 1, 3);
        builder_header(&b)->slot_size = sizes[i];
        vst_trace *trace = open_built(&b);
        vst_trace_get_info(trace, &info);
        CHECK_INT(info.words, 6);
        vst_trace_close(trace);
        builder_free(&b);
    }
}

/* Definitions in a slot that was used before lie before older ones. */
static void the_last_name_in_time_wins_not_the_last_in_the_file(void)
{
    builder b;

    builder_init(&b);
    builder_header(&b)->slot_size = VST_CHUNK_ALIGN;
    b.sequence = 8;
    builder_definitions(&b, 1);
    builder_metadata(&b, "name", "\"new\"");
    b.sequence = 2;
    builder_definitions(&b, 1);
    builder_metadata(&b, "name", "\"old\"");
    builder_window(&b, 0, 1500, 5000);
    vst_trace *trace = open_built(&b);
    CHECK_TEXT(vst_trace_metadata(trace, "name"), "\"new\"");
    vst_trace_close(trace);
    builder_free(&b);
}

/* ---- the clip ----------------------------------------------------------- */

/* a(b(c) b), then x beside them; no checkpoints. */
static void make_plain(builder *b)
{
    builder_init(b);
    builder_definitions(b, 1);
    builder_window(b, 0, 1500, 5000);
    builder_records(b, 0, 1, 2000, 1);
    builder_enter(b, 1, 100);
    builder_escape(b, VST_ESCAPE_BEGIN, 0, (uint64_t[]){24}, 1);
    builder_enter(b, 2, 100);
    builder_enter(b, 3, 100);
    builder_exit(b, 3, 100);
    builder_exit(b, 2, 100);
    builder_seal(b, 1);
    builder_records(b, 0, 1, 3000, 1);
    builder_enter(b, 2, 100);
    builder_exit(b, 2, 100);
    builder_escape(b, VST_ESCAPE_END, 0, (uint64_t[]){24}, 1);
    builder_exit(b, 1, 100);
    builder_seal(b, 1);
}

static void before_a_clip_only_what_is_open_is_known(void)
{
    builder b;
    vst_trace_info info;

    make_plain(&b);
    vst_trace *trace = open_built(&b);
    vst_trace_set_clip(trace, BUILDER_EPOCH_NS + 2350);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.start_ns, BUILDER_EPOCH_NS + 2350);
    CHECK_INT(info.end_ns, BUILDER_EPOCH_NS + 5000);
    check_replay(trace,
                 "a 2349..3300 open-at-start\n"
                 "  x 2350..3200 open-at-start\n"
                 "    b 2351..2500 open-at-start\n"
                 "      c 2352..2400 open-at-start\n"
                 "    b 3100..3200\n",
                 "dropped 5 1500..2350\n");
    /* As often as wanted, and back. */
    vst_trace_set_clip(trace, BUILDER_EPOCH_NS + 3050);
    check_replay(trace,
                 "a 3049..3300 open-at-start\n"
                 "  x 3050..3200 open-at-start\n"
                 "    b 3100..3200\n",
                 "dropped 7 1500..3050\n");
    vst_trace_set_clip(trace, INT64_MIN);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.start_ns, BUILDER_EPOCH_NS + 1500);
    check_replay(trace,
                 "a 2100..3300\n"
                 "  x 2101..3200\n"
                 "    b 2200..2500\n"
                 "      c 2300..2400\n"
                 "    b 3100..3200\n",
                 "");
    vst_trace_close(trace);
    builder_free(&b);
}

static void a_clip_behind_all_that_happened_leaves_what_waits(void)
{
    builder b;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_window(&b, 0, 1500, 5000);
    builder_records(&b, 0, 1, 2000, 1);
    builder_enter(&b, 1, 100);
    builder_enter(&b, 2, 100);
    builder_records(&b, 0, 2, 2000, 1);
    builder_enter(&b, 3, 100);
    builder_exit(&b, 3, 100);
    vst_trace *trace = open_built(&b);
    vst_trace_set_clip(trace, BUILDER_EPOCH_NS + 4000);
    check_replay(trace,
                 "a 3998..5000 open-at-start open-at-end\n"
                 "  b 3999..5000 open-at-start open-at-end\n",
                 "dropped 2 1500..4000\n");
    /* A window that ended before it is not there at all. */
    vst_trace_set_clip(trace, BUILDER_EPOCH_NS + 6000);
    check_replay(trace, "", "");
    vst_trace_close(trace);
    builder_free(&b);
}

static void a_replay_begins_at_the_window_of_a_number(void)
{
    static const char *const expected[] = {
        "a 2100..2200\nb 4100..4200\nc 6100..6200\n",
        "b 4100..4200\nc 6100..6200\n",
        "c 6100..6200\n",
        "",
    };
    builder b;

    builder_init(&b);
    builder_definitions(&b, 1);
    for (unsigned window = 0; window < 3; window++)
        builder_window(&b, window, 2000 * (window + 1),
                       2000 * (window + 1) + 1000);
    for (unsigned window = 0; window < 3; window++) {
        vst_ticks start = 2000 * (vst_ticks)(window + 1);
        builder_records(&b, window, 1, start, 1);
        builder_enter(&b, window + 1, 100);
        builder_exit(&b, window + 1, 100);
    }
    vst_trace *trace = open_built(&b);
    for (int since = 0; since < 4; since++) {
        span_tree tree = {.origin_ns = BUILDER_EPOCH_NS};
        vst_sink sink = tree_sink(&tree);
        CHECK_INT(
            vst_trace_replay(trace, VST_WINDOW_SINCE(since), NULL, &sink, NULL),
            VST_OK);
        CHECK_TEXT(tree_text(&tree), expected[since]);
        tree_free(&tree);
    }
    vst_trace_close(trace);
    builder_free(&b);
}

static void a_file_bounded_in_time_shows_no_more_than_that(void)
{
    builder b;
    vst_trace_info info;

    make_plain(&b);
    builder_header(&b)->keep_ns = 250;
    vst_trace *trace = open_built(&b);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.start_ns, BUILDER_EPOCH_NS + 3050);
    check_replay(trace,
                 "a 3049..3300 open-at-start\n"
                 "  x 3050..3200 open-at-start\n"
                 "    b 3100..3200\n",
                 "dropped 7 1500..3050\n");
    /* A clip of one's own shows less, not more. */
    vst_trace_set_clip(trace, BUILDER_EPOCH_NS + 3150);
    check_replay(trace,
                 "a 3149..3300 open-at-start\n"
                 "  x 3150..3200 open-at-start\n"
                 "    b 3151..3200 open-at-start\n",
                 "dropped 8 1500..3150\n");
    vst_trace_set_clip(trace, INT64_MIN);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.start_ns, BUILDER_EPOCH_NS + 3050);
    vst_trace_close(trace);
    builder_free(&b);
}

static void a_clip_begins_at_the_last_checkpoint_before_it(void)
{
    builder b;

    begin(&b);
    first_run(&b);
    second_run(&b, 1, 3);
    vst_trace *trace = open_built(&b);
    vst_trace_set_clip(trace, BUILDER_EPOCH_NS + 3150);
    check_replay(trace,
                 "a 3148..3300 open-at-start\n"
                 "  b 3149..3200 open-at-start\n",
                 "dropped 4 1500..3150\n");
    vst_trace_close(trace);
    builder_free(&b);
}

int main(void)
{
    TEST(a_checkpoint_says_nothing_new_where_the_run_before_was_read);
    TEST(without_the_run_before_its_checkpoint_is_where_it_begins);
    TEST(runs_missing_in_the_middle_end_what_was_open);
    TEST(a_run_that_was_torn_is_bridged_as_well);
    TEST(begun_spans_and_other_stacks_go_on_too);
    TEST(a_slot_without_a_magic_ends_nothing);
    TEST(a_damaged_slot_is_told_of_and_ends_nothing_either);
    TEST(a_slot_size_that_cannot_be_is_not_believed);
    TEST(the_last_name_in_time_wins_not_the_last_in_the_file);
    TEST(before_a_clip_only_what_is_open_is_known);
    TEST(a_clip_behind_all_that_happened_leaves_what_waits);
    TEST(a_replay_begins_at_the_window_of_a_number);
    TEST(a_file_bounded_in_time_shows_no_more_than_that);
    TEST(a_clip_begins_at_the_last_checkpoint_before_it);
    return checks_end();
}
