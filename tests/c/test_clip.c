/* Dropped records, and ranges of a trace, by hand-made files, so that every
 * time is known. Neighbouring runs of a thread fit together or are bridged by
 * their checkpoints; a range hides the records before and after it. (A run is a
 * stretch of a thread's records without a gap.) */
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

/* The calls a(b(c)), which begin in one run and end in another. */
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
    vst_trace *trace;

    begin(&b);
    builder_header(&b)->dropped = 3;
    second_run(&b, 1, 3);
    trace = open_built(&b);
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
    vst_trace *trace;

    begin(&b);
    builder_header(&b)->dropped = 40;
    first_run(&b);
    second_run(&b, 5, 43);
    trace = open_built(&b);
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

/* A run that was never sealed, and that is shorter than the next run's
 * checkpoint says. */
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
    vst_trace *trace;

    begin(&b);
    first_run(&b);
    empty = b.chunk;
    second_run(&b, 1, 3);
    memset(b.bytes + empty, 0, 4);
    trace = open_built(&b);
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
    vst_trace *trace;

    begin(&b);
    first_run(&b);
    damaged = b.chunk;
    second_run(&b, 1, 3);
    b.bytes[damaged + 20] ^= 1;
    trace = open_built(&b);
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
        vst_trace *trace;

        begin(&b);
        first_run(&b);
        second_run(&b, 1, 3);
        builder_header(&b)->slot_size = sizes[i];
        trace = open_built(&b);
        vst_trace_get_info(trace, &info);
        CHECK_INT(info.words, 6);
        vst_trace_close(trace);
        builder_free(&b);
    }
}

/* A reused slot at the front of the file can hold definitions that are newer
 * than definitions behind it. */
static void the_last_name_in_time_wins_not_the_last_in_the_file(void)
{
    builder b;
    vst_trace *trace;

    builder_init(&b);
    builder_header(&b)->slot_size = VST_CHUNK_ALIGN;
    b.sequence = 8;
    builder_definitions(&b, 1);
    builder_metadata(&b, "name", "\"new\"");
    b.sequence = 2;
    builder_definitions(&b, 1);
    builder_metadata(&b, "name", "\"old\"");
    builder_window(&b, 0, 1500, 5000);
    trace = open_built(&b);
    CHECK_TEXT(vst_trace_metadata(trace, "name"), "\"new\"");
    vst_trace_close(trace);
    builder_free(&b);
}

/* ---- the clip ----------------------------------------------------------- */

/* a(b(c) b), then x outside of a; no checkpoints. */
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
    vst_trace *trace;

    make_plain(&b);
    trace = open_built(&b);
    vst_trace_set_range(trace, BUILDER_EPOCH_NS + 2350, INT64_MAX);
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
    /* Ranges can be set any number of times, also to an earlier time. */
    vst_trace_set_range(trace, BUILDER_EPOCH_NS + 3050, INT64_MAX);
    check_replay(trace,
                 "a 3049..3300 open-at-start\n"
                 "  x 3050..3200 open-at-start\n"
                 "    b 3100..3200\n",
                 "dropped 7 1500..3050\n");
    vst_trace_set_range(trace, INT64_MIN, INT64_MAX);
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
    vst_trace *trace;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_window(&b, 0, 1500, 5000);
    builder_records(&b, 0, 1, 2000, 1);
    builder_enter(&b, 1, 100);
    builder_enter(&b, 2, 100);
    builder_records(&b, 0, 2, 2000, 1);
    builder_enter(&b, 3, 100);
    builder_exit(&b, 3, 100);
    trace = open_built(&b);
    vst_trace_set_range(trace, BUILDER_EPOCH_NS + 4000, INT64_MAX);
    check_replay(trace,
                 "a 3998..5000 open-at-start open-at-end\n"
                 "  b 3999..5000 open-at-start open-at-end\n",
                 "dropped 2 1500..4000\n");
    /* A window that ended before the range is left out entirely. */
    vst_trace_set_range(trace, BUILDER_EPOCH_NS + 6000, INT64_MAX);
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
    vst_trace *trace;

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
    trace = open_built(&b);
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
    vst_trace *trace;

    make_plain(&b);
    builder_header(&b)->keep_ns = 250;
    trace = open_built(&b);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.start_ns, BUILDER_EPOCH_NS + 3050);
    check_replay(trace,
                 "a 3049..3300 open-at-start\n"
                 "  x 3050..3200 open-at-start\n"
                 "    b 3100..3200\n",
                 "dropped 7 1500..3050\n");
    /* A range set on a clipped trace cannot show more than the clip. */
    vst_trace_set_range(trace, BUILDER_EPOCH_NS + 3150, INT64_MAX);
    check_replay(trace,
                 "a 3149..3300 open-at-start\n"
                 "  x 3150..3200 open-at-start\n"
                 "    b 3151..3200 open-at-start\n",
                 "dropped 8 1500..3150\n");
    vst_trace_set_range(trace, INT64_MIN, INT64_MAX);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.start_ns, BUILDER_EPOCH_NS + 3050);
    vst_trace_close(trace);
    builder_free(&b);
}

static void a_clip_begins_at_the_last_checkpoint_before_it(void)
{
    builder b;
    vst_trace *trace;

    begin(&b);
    first_run(&b);
    second_run(&b, 1, 3);
    trace = open_built(&b);
    vst_trace_set_range(trace, BUILDER_EPOCH_NS + 3150, INT64_MAX);
    check_replay(trace,
                 "a 3148..3300 open-at-start\n"
                 "  b 3149..3200 open-at-start\n",
                 "dropped 4 1500..3150\n");
    vst_trace_close(trace);
    builder_free(&b);
}

/* ---- the end of the range ----------------------------------------------- */

static void set_range(vst_trace *trace, int64_t from, int64_t to)
{
    vst_trace_set_range(trace, BUILDER_EPOCH_NS + from, BUILDER_EPOCH_NS + to);
}

static void what_goes_on_after_a_range_ends_with_it(void)
{
    builder b;
    vst_trace_info info;
    vst_trace *trace;

    make_plain(&b);
    trace = open_built(&b);
    set_range(trace, 1600, 2350);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.start_ns, BUILDER_EPOCH_NS + 1600);
    CHECK_INT(info.end_ns, BUILDER_EPOCH_NS + 2350);
    check_replay(trace,
                 "a 2100..2350 open-at-end\n"
                 "  x 2101..2350 open-at-end\n"
                 "    b 2200..2350 open-at-end\n"
                 "      c 2300..2350 open-at-end\n",
                 "");
    /* Events at both ends of the range are shown. */
    set_range(trace, 2400, 3100);
    check_replay(trace,
                 "a 2399..3100 open-at-start open-at-end\n"
                 "  x 2400..3100 open-at-start open-at-end\n"
                 "    b 2401..2500 open-at-start\n"
                 "      c 2402..2402 open-at-start\n"
                 "    b 3100..3100 open-at-end\n",
                 "dropped 5 1500..2400\n");
    /* A range within one call, in which nothing else happens. */
    set_range(trace, 2610, 2620);
    check_replay(trace,
                 "a 2609..2620 open-at-start open-at-end\n"
                 "  x 2610..2620 open-at-start open-at-end\n",
                 "dropped 7 1500..2610\n");
    set_range(trace, 0, 2050);
    check_replay(trace, "", "");
    set_range(trace, 2350, 2340);
    check_replay(trace, "", "");
    /* Ranges before the clock's first tick and behind its last possible
     * tick. */
    vst_trace_set_range(trace, INT64_MIN + 1, INT64_MIN + 2);
    check_replay(trace, "", "");
    vst_trace_set_range(trace, INT64_MAX - 2, INT64_MAX - 1);
    check_replay(trace, "", "");
    vst_trace_set_range(trace, INT64_MIN, INT64_MAX);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.end_ns, BUILDER_EPOCH_NS + 5000);
    vst_trace_close(trace);
    builder_free(&b);
}

static void a_range_takes_in_the_windows_that_reach_into_it(void)
{
    builder b;
    vst_trace_info info;
    vst_trace *trace;

    builder_init(&b);
    builder_definitions(&b, 1);
    for (unsigned window = 0; window < 3; window++)
        builder_window(&b, window, 2000 * (window + 1),
                       2000 * (window + 1) + 1000);
    for (unsigned window = 0; window < 3; window++) {
        builder_records(&b, window, 1, 2000 * (vst_ticks)(window + 1), 1);
        builder_enter(&b, window + 1, 100);
        builder_exit(&b, window + 1, 100);
    }
    trace = open_built(&b);
    set_range(trace, 3500, 4150);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.start_ns, BUILDER_EPOCH_NS + 4000);
    CHECK_INT(info.end_ns, BUILDER_EPOCH_NS + 4150);
    check_replay(trace, "b 4100..4150 open-at-end\n", "");
    set_range(trace, 2150, 4150);
    check_replay(trace,
                 "a 2149..2200 open-at-start\n"
                 "b 4100..4150 open-at-end\n",
                 "dropped 1 2000..2150\n");
    set_range(trace, 3500, 3600); /* between two */
    check_replay(trace, "", "");
    vst_trace_close(trace);
    builder_free(&b);
}

/* The recorder notes a loss in the records behind the loss. */
static void what_is_missing_at_the_end_of_a_range_is_told_of(void)
{
    builder b;
    vst_trace *trace;

    begin(&b);
    builder_header(&b)->dropped = 40;
    first_run(&b);
    second_run(&b, 5, 43);
    trace = open_built(&b);
    set_range(trace, 2000, 2600);
    check_replay(trace,
                 "a 2100..2300 cut\n"
                 "  b 2200..2300 cut\n"
                 "    c 2300..2300 cut\n",
                 "dropped 40 2300..2600\n");
    set_range(trace, 2500, 2600);
    check_replay(trace, "", "dropped 43 1500..2600\n");
    set_range(trace, 2500, 3150);
    check_replay(trace,
                 "a 2997..3150 open-at-start open-at-end\n"
                 "  b 2998..3150 open-at-start open-at-end\n"
                 "    c 2999..3100 open-at-start\n",
                 "dropped 43 1500..3000\n");
    vst_trace_close(trace);
    builder_free(&b);

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_window(&b, 0, 1500, 5000);
    builder_records(&b, 0, 1, 2000, 1);
    builder_enter(&b, 1, 100);
    builder_escape(&b, VST_ESCAPE_LOST, 1000, (uint64_t[]){7}, 1);
    builder_exit(&b, 1, 100);
    trace = open_built(&b);
    set_range(trace, 2000, 2500);
    check_replay(trace, "a 2100..2500 open-at-end\n", "lost 7 2100..2500\n");
    set_range(trace, 2000, 2100);
    check_replay(trace, "a 2100..2100 open-at-end\n", "lost 7 2100..2100\n");
    vst_trace_close(trace);
    builder_free(&b);
}

/* A chunk whose first record is older than the chunk, because its thread had to
 * wait for the chunk. */
static void a_chunk_that_begins_behind_a_range_may_have_a_record_in_it(void)
{
    builder b;
    vst_trace *trace;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_window(&b, 0, 1500, 5000);
    builder_records(&b, 0, 1, 2000, 1);
    builder_enter(&b, 1, 100);
    builder_seal(&b, 1);
    builder_records(&b, 0, 1, 3000, 1);
    builder_escape(&b, VST_ESCAPE_TIME, 0, (uint64_t[]){2400}, 1);
    builder_exit(&b, 1, 0);
    builder_enter(&b, 2, 600);
    builder_seal(&b, 1);
    trace = open_built(&b);
    set_range(trace, 2000, 2500);
    check_replay(trace, "a 2100..2400\n", "");
    vst_trace_close(trace);
    builder_free(&b);
}

/* ---- any range of any trace --------------------------------------------- */

enum { THREADS = 3, CHUNKS = 4, CALLS = 40, BEGAN = 2000, MOMENT = 20 };

static uint64_t seed = 0x9e3779b97f4a7c15u;

static unsigned random_below(unsigned limit)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % limit;
}

/* Records calls, instants and, if wanted, spans off the stack. Their times are
 * multiples of MOMENT, so a test can shift records of one time apart within a
 * MOMENT. */
static vst_ticks make_any(builder *b, bool begins)
{
    vst_ticks ends = 0;

    builder_init(b);
    builder_definitions(b, 1);
    builder_window(b, 0, BEGAN, 1000000);
    for (unsigned thread = 1; thread <= THREADS; thread++) {
        vst_ticks now = BEGAN + MOMENT * random_below(200);
        vst_id open[CALLS];
        unsigned depth = 0, begun = 0;

        for (unsigned chunk = 0; chunk < CHUNKS; chunk++) {
            builder_records(b, 0, thread, now, 1);
            for (unsigned i = 0; i < CALLS; i++) {
                uint32_t delta = MOMENT * (1 + random_below(20));
                unsigned what = random_below(10) + (begins ? 0 : 2);

                now += delta;
                if (what == 2) {
                    builder_escape(b, VST_ESCAPE_INSTANT, delta,
                                   (uint64_t[]){20}, 1);
                } else if (what == 1 && !begun) {
                    builder_escape(b, VST_ESCAPE_BEGIN, delta,
                                   (uint64_t[]){24 | (uint64_t)1 << 32}, 1);
                    begun = 1;
                } else if (what == 1) {
                    builder_escape(b, VST_ESCAPE_END, delta,
                                   (uint64_t[]){24 | (uint64_t)1 << 32}, 1);
                    begun = 0;
                } else if (depth == 0 || (what < 7 && depth < MOMENT / 4)) {
                    open[depth] = 1 + random_below(5);
                    builder_enter(b, open[depth++], delta);
                } else {
                    builder_exit(b, open[--depth], delta);
                }
            }
            builder_seal(b, 1);
        }
        if (now > ends)
            ends = now;
    }
    return ends;
}

static void take_tree(vst_trace *trace, span_tree *tree)
{
    vst_sink sink = tree_sink(tree);

    tree->origin_ns = BUILDER_EPOCH_NS;
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    tree_text(tree); /* checks the tree and sorts it by serial */
}

static int by_place(const void *a, const void *b)
{
    const vst_span *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Keeps the spans that are open in the range, cut to the range. */
static void clip_tree(span_tree *tree, int64_t from_ns, int64_t to_ns)
{
    size_t kept = 0;

    for (size_t i = 0; i < tree->count; i++) {
        vst_span span = tree->spans[i];

        if (span.end_ns < from_ns || span.start_ns > to_ns)
            continue;
        if (span.start_ns < from_ns)
            span.flags |= VST_SPAN_OPEN_AT_START;
        if (span.end_ns > to_ns) {
            span.flags |= VST_SPAN_OPEN_AT_END;
            span.end_ns = to_ns;
        }
        tree->spans[kept++] = span;
    }
    tree->count = kept;
}

/* Whether a span that BEGIN opened has left the stack is known only from later
 * records, so depths may differ if there are such spans. */
static void check_range(vst_trace *trace, int64_t from_ns, int64_t to_ns,
                        bool begins)
{
    uint32_t beside = begins ? VST_SPAN_ASYNC : 0;
    span_tree whole = {0}, part = {0};

    vst_trace_set_range(trace, INT64_MIN, INT64_MAX);
    take_tree(trace, &whole);
    vst_trace_set_range(trace, from_ns, to_ns);
    take_tree(trace, &part);
    clip_tree(&whole, from_ns, to_ns);
    CHECK_INT(part.count, whole.count);
    qsort(whole.spans, whole.count, sizeof *whole.spans, by_place);
    qsort(part.spans, part.count, sizeof *part.spans, by_place);
    for (size_t i = 0; i < part.count && i < whole.count; i++) {
        const vst_span *expected = &whole.spans[i], *got = &part.spans[i];

        CHECK_INT(got->thread, expected->thread);
        CHECK_INT(got->id, expected->id);
        CHECK_INT(got->flags | beside, expected->flags | beside);
        CHECK_INT(got->end_ns, expected->end_ns);
        CHECK(begins || got->depth == expected->depth);
        if (!(got->flags & VST_SPAN_OPEN_AT_START))
            CHECK_INT(got->start_ns, expected->start_ns);
        else
            CHECK(got->start_ns > from_ns - MOMENT &&
                  got->start_ns < from_ns + MOMENT);
    }
    tree_free(&whole);
    tree_free(&part);
}

static void a_range_is_the_whole_but_clipped(void)
{
    for (unsigned round = 0; round < 40; round++) {
        builder b;
        bool begins = round % 2 != 0;
        vst_ticks ends = make_any(&b, begins);
        vst_trace *trace = open_built(&b);
        unsigned moments = (unsigned)(ends - BEGAN) / MOMENT + 20;

        for (unsigned i = 0; i < 8; i++) {
            /* Choose times between moments: other tests cover ranges that end
             * exactly at an event. */
            int64_t from = BEGAN + MOMENT * random_below(moments) + MOMENT / 2;
            int64_t to = from + MOMENT * random_below(moments);

            check_range(trace, BUILDER_EPOCH_NS + from, BUILDER_EPOCH_NS + to,
                        begins);
        }
        vst_trace_close(trace);
        builder_free(&b);
    }
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
    TEST(what_goes_on_after_a_range_ends_with_it);
    TEST(a_range_takes_in_the_windows_that_reach_into_it);
    TEST(what_is_missing_at_the_end_of_a_range_is_told_of);
    TEST(a_chunk_that_begins_behind_a_range_may_have_a_record_in_it);
    TEST(a_range_is_the_whole_but_clipped);
    return checks_end();
}
