/* The matcher: scripts of events on one side, golden call trees on the other.
 *
 * A script is lines of "time verb names". Names are letters, a letter with a
 * digit is an instance. A tick is a nanosecond. */
#include <stdlib.h>
#include <string.h>

#include <vestige/memory.h>

#include "check.h"
#include "replay/contexts.h"
#include "replay/matcher.h"
#include "span_tree.h"

/* ---- scripts ------------------------------------------------------------ */

typedef struct script {
    vst_compressed_event *events;
    size_t count, capacity;
    uint64_t *payloads[256];
    size_t payload_count;
} script;

static int64_t same_ns(void *ctx, vst_ticks ticks)
{
    (void)ctx;
    return (int64_t)ticks;
}

static const vst_time_converter converter = {same_ns, NULL};

static void add(script *s, vst_ticks time, uint32_t kind, vst_id id,
                const uint64_t *payload, uint32_t words)
{
    if (s->count == s->capacity) {
        s->capacity = s->capacity != 0 ? s->capacity * 2 : 64;
        s->events = realloc(s->events, s->capacity * sizeof *s->events);
        if (s->events == NULL)
            abort();
    }
    s->events[s->count++] = (vst_compressed_event){
        .key = vst_trace_key_make(kind, id),
        .where = {1, 7},
        .ticks = time,
        .payload = payload,
        .payload_words = words,
    };
}

static void add_escape(script *s, vst_ticks time, vst_escape type,
                       const uint64_t *payload, uint32_t words)
{
    uint64_t *copy = calloc(words + 1, sizeof *copy);

    if (copy == NULL || s->payload_count == 256)
        abort();
    if (words != 0)
        memcpy(copy, payload, words * sizeof *copy);
    s->payloads[s->payload_count++] = copy;
    add(s, time, vst_trace_key_kind_of_escape(type), 0, copy, words);
}

static void add_text(script *s, vst_ticks time, vst_escape type, uint64_t head,
                     const char *text)
{
    uint64_t payload[64] = {head};

    memcpy(payload + 1, text, strlen(text));
    add_escape(s, time, type, payload, (uint32_t)(2 + strlen(text) / 8));
}

static vst_id id_of(char letter)
{
    return (vst_id)(letter - 'a' + 1);
}

static uint64_t pair_of(const char *name)
{
    uint64_t instance =
        name[1] >= '0' && name[1] <= '9' ? (uint64_t)(name[1] - '0') : 0;

    return instance << 32 | id_of(name[0]);
}

static void add_stack(script *s, vst_ticks time, vst_escape type,
                      const char *names)
{
    uint64_t ids[32];
    uint32_t count = 0;

    for (; *names != '\0'; names++)
        if (*names >= 'a' && *names <= 'z')
            ids[count++] = id_of(*names);
    add_escape(s, time, type, ids, count);
}

static void add_framework_free(script *s, vst_ticks time, uint64_t size)
{
    add_escape(s, time, VST_ESCAPE_FREE_RANGE, (uint64_t[]){0x1000, size}, 2);
    s->events[s->count - 1].key =
        vst_trace_key_make(vst_trace_key_kind_of_escape(VST_ESCAPE_FREE_RANGE),
                           VST_MEMORY_FRAMEWORK_FREE);
}

/* Delivers an END with arguments: "ended s1 TEXT". */
static void add_described_end(script *s, vst_ticks time, uint64_t pair,
                              const char *text)
{
    uint64_t payload[64] = {pair, strlen(text)};

    memcpy(payload + 2, text, strlen(text));
    add_escape(s, time, VST_ESCAPE_END, payload,
               (uint32_t)(3 + strlen(text) / 8));
}

static void add_line(script *s, vst_ticks time, const char *verb,
                     const char *rest)
{
    uint64_t number = strtoull(rest, NULL, 10);
    uint64_t pair = rest[0] != '\0' ? pair_of(rest) : 0;

    if (strcmp(verb, "enter") == 0)
        add(s, time, VST_ENTER, id_of(*rest), NULL, 0);
    else if (strcmp(verb, "exit") == 0)
        add(s, time, VST_EXIT, id_of(*rest), NULL, 0);
    else if (strcmp(verb, "raise") == 0)
        add(s, time, VST_RAISE, id_of(*rest), NULL, 0);
    else if (strcmp(verb, "begin") == 0)
        add_escape(s, time, VST_ESCAPE_BEGIN, &pair, 1);
    else if (strcmp(verb, "end") == 0)
        add_escape(s, time, VST_ESCAPE_END, &pair, 1);
    else if (strcmp(verb, "ended") == 0)
        add_described_end(s, time, pair, rest + 3);
    else if (strcmp(verb, "end-inside") == 0)
        add_escape(s, time, VST_ESCAPE_END, (uint64_t[]){pair, 1}, 2);
    else if (strcmp(verb, "args") == 0)
        add_text(s, time, VST_ESCAPE_ARGS, strlen(rest), rest);
    else if (strcmp(verb, "instant") == 0)
        add_text(s, time, VST_ESCAPE_INSTANT,
                 (uint64_t)strlen(rest + 2) << 32 | id_of(*rest), rest + 2);
    else if (strcmp(verb, "stack") == 0)
        add_stack(s, time, VST_ESCAPE_STACK, rest);
    else if (strcmp(verb, "more") == 0)
        add_stack(s, time, VST_ESCAPE_STACK_MORE, rest);
    else if (strcmp(verb, "lost") == 0)
        add_escape(s, time, VST_ESCAPE_LOST, &number, 1);
    else if (strcmp(verb, "switch") == 0)
        add_escape(s, time, VST_ESCAPE_SWITCH, &number, 1);
    else if (strcmp(verb, "gap") == 0)
        add_escape(s, time, VST_ESCAPE_GAP,
                   &(uint64_t){strcmp(rest, "ends") == 0}, 1);
    else if (strcmp(verb, "alloc") == 0)
        add(s, time, vst_trace_key_kind_of_escape(VST_ESCAPE_ALLOC),
            (vst_id)(number << 7 | VST_MEMORY_MALLOC), NULL, 1);
    else if (strcmp(verb, "tensor") == 0)
        add(s, time, vst_trace_key_kind_of_escape(VST_ESCAPE_ALLOC),
            (vst_id)(number << 7 | VST_MEMORY_FRAMEWORK), NULL, 1);
    else if (strcmp(verb, "untensor") == 0)
        add_framework_free(s, time, number);
    else if (strcmp(verb, "large") == 0)
        add_escape(s, time, VST_ESCAPE_ALLOC_LARGE,
                   (uint64_t[]){0x1000, number, 1}, 3);
    else if (strcmp(verb, "free") == 0)
        add(s, time, vst_trace_key_kind_of_escape(VST_ESCAPE_FREE_RECENT),
            VST_MEMORY_FREE, NULL, 0);
    else
        CHECK(!"a verb that scripts have");
}

static script parse(const char *text)
{
    script s = {0};

    while (*text != '\0') {
        char line[256], verb[32], *rest;
        size_t length = strcspn(text, "\n");
        int used = 0;
        unsigned long long time;

        memcpy(line, text, length);
        line[length] = '\0';
        if (sscanf(line, "%llu %31s %n", &time, verb, &used) >= 2) {
            rest = line + used;
            add_line(&s, time, verb, rest);
        }
        text += length + (text[length] != '\0');
    }
    return s;
}

static void free_script(script *s)
{
    for (size_t i = 0; i < s->payload_count; i++)
        free(s->payloads[i]);
    free(s->events);
}

/* Feeds a script to the matcher, `batch` events at a time. */
static vst_matcher_counts feed(const char *text, size_t batch, int64_t end_ns,
                               span_tree *tree)
{
    script s = parse(text);
    vst_sink sink = tree_sink(tree);
    vst_matcher_counts counts;
    vst_matcher *matcher;
    size_t at = 0;

    if (vst_matcher_create(&matcher) != VST_OK)
        abort();
    do {
        size_t count = s.count - at < batch ? s.count - at : batch;
        bool last = at + count == s.count;

        CHECK_INT(vst_matcher_feed(matcher, &converter, s.events + at, count,
                                   last ? end_ns : VST_TIME_OPEN, &sink),
                  VST_OK);
        at += count;
    } while (at < s.count);
    vst__matcher_count(matcher, &counts);
    CHECK_INT(counts.spans, tree->count);
    vst_matcher_destroy(matcher);
    free_script(&s);
    return counts;
}

/* Checks that batches of any size give the golden tree. */
static vst_matcher_counts expect(const char *text, int64_t end_ns,
                                 const char *golden, const char *points)
{
    vst_matcher_counts counts = {0};

    for (size_t batch = 1; batch < 5; batch++) {
        span_tree tree = {0};
        counts = feed(text, batch == 4 ? 1000 : batch, end_ns, &tree);
        CHECK_TEXT(tree_text(&tree), golden);
        CHECK_TEXT(tree.points, points);
        tree_free(&tree);
    }
    return counts;
}

/* ---- calls -------------------------------------------------------------- */

static void calls_nest_as_they_were_made(void)
{
    expect("10 enter a\n"
           "20 enter b\n"
           "30 exit b\n"
           "40 enter c\n"
           "45 enter b\n"
           "50 exit b\n"
           "60 exit c\n"
           "70 exit a\n",
           100,
           "a 10..70\n"
           "  b 20..30\n"
           "  c 40..60\n"
           "    b 45..50\n",
           "");
}

static void time_in_children_is_counted_once(void)
{
    span_tree tree = {0};

    feed("10 enter a\n20 enter b\n25 enter c\n30 exit c\n40 exit b\n"
         "50 enter b\n55 exit b\n100 exit a\n",
         100, 100, &tree);
    tree_check(&tree);
    CHECK_INT(tree.spans[0].children_ns, 25);
    CHECK_INT(tree.spans[1].children_ns, 5);
    CHECK_INT(tree.spans[2].children_ns, 0);
    CHECK_INT(tree.spans[2].parent, tree.spans[1].serial);
    CHECK_INT(tree.spans[0].thread, 7);
    tree_free(&tree);
}

/* Prints bytes and counts of the spans, "a self 1/10 all 3/30", in the order of
 * entering. */
static void expect_bytes(const char *text, const char *expected)
{
    span_tree tree = {0};
    char found[1024] = "";

    feed(text, 2, 100, &tree);
    tree_text(&tree);
    for (uint64_t serial = 1; serial <= tree.count; serial++)
        for (size_t i = 0; i < tree.count; i++) {
            const vst_span *span = &tree.spans[i];
            if (span->serial != serial)
                continue;
            snprintf(found + strlen(found), sizeof found - strlen(found),
                     "%c %llu/%llu %llu/%llu\n", (char)('a' + span->id - 1),
                     (unsigned long long)span->self_allocations,
                     (unsigned long long)span->self_bytes,
                     (unsigned long long)span->total_allocations,
                     (unsigned long long)span->total_bytes);
        }
    CHECK_TEXT(found, expected);
    tree_free(&tree);
}

static void allocations_count_for_the_innermost_span_and_those_around_it(void)
{
    expect_bytes("5 alloc 1000\n" /* allocated in no span */
                 "10 enter a\n11 alloc 1\n"
                 "20 enter b\n21 alloc 10\n22 large 100000\n23 free\n"
                 "24 tensor 7\n"
                 "30 exit b\n31 alloc 2\n"
                 "40 enter c\n45 exit c\n50 exit a\n",
                 "a 2/3 4/100013\n"
                 "b 2/100010 2/100010\n"
                 "c 0/0 0/0\n");
}

static vst_status add_loose(void *ctx, const vst_loose_bytes *loose)
{
    int64_t *sums = ctx;

    sums[0]++;
    sums[1] += loose->bytes;
    return VST_OK;
}

static vst_status add_framework(void *ctx, const vst_span *span)
{
    int64_t *sums = ctx;

    sums[2 * span->id] += span->self_framework_bytes;
    sums[2 * span->id + 1] += span->total_framework_bytes;
    return VST_OK;
}

static void a_frameworks_blocks_are_counted_apart_and_taken_off(void)
{
    script s = parse("5 tensor 1000\n" /* allocated in no span */
                     "10 enter a\n11 tensor 30\n12 alloc 5\n"
                     "20 enter b\n21 tensor 100\n22 untensor 130\n"
                     "30 exit b\n31 tensor 2\n50 exit a\n"
                     "60 untensor 1000\n70 untensor 2\n");
    int64_t sums[6] = {0};
    vst_sink sink = {.ctx = sums, .span = add_framework, .loose = add_loose};
    vst_matcher *matcher;

    if (vst_matcher_create(&matcher) != VST_OK)
        abort();
    CHECK_INT(
        vst_matcher_feed(matcher, &converter, s.events, s.count, 100, &sink),
        VST_OK);
    CHECK_INT(sums[0], 3);
    CHECK_INT(sums[1], -2);
    CHECK_INT(sums[2], 32); /* a */
    CHECK_INT(sums[3], 2);
    CHECK_INT(sums[4], -30); /* b */
    CHECK_INT(sums[5], -30);
    vst_matcher_destroy(matcher);
    free_script(&s);
}

static vst_status note_block(void *ctx, const vst_loose_bytes *block)
{
    int64_t *sums = ctx;

    sums[0] = sums[0] * 10 + block->depth;
    sums[1] += block->bytes;
    return VST_OK;
}

static void every_block_is_told_with_its_depth_if_wanted(void)
{
    script s = parse("5 tensor 1000\n10 enter a\n11 tensor 30\n"
                     "20 enter b\n22 untensor 130\n30 exit b\n50 exit a\n");
    int64_t sums[2] = {0};
    vst_sink sink = {.ctx = sums, .loose = note_block, .every_block = true};
    vst_matcher *matcher;

    if (vst_matcher_create(&matcher) != VST_OK)
        abort();
    CHECK_INT(
        vst_matcher_feed(matcher, &converter, s.events, s.count, 100, &sink),
        VST_OK);
    CHECK_INT(sums[0], 12); /* depths 0, 1, 2 */
    CHECK_INT(sums[1], 900);
    vst_matcher_destroy(matcher);
    free_script(&s);
}

static void a_span_that_ends_inside_of_a_call_begins_with_it(void)
{
    /* x begins in a, and ends in a call that b makes. */
    expect("10 enter a\n12 begin x\n20 exit a\n30 enter b\n31 enter c\n"
           "40 end-inside x\n50 exit c\n60 exit b\n",
           100, "a 10..20\nx 31..40 async\nb 30..60\n  c 31..50\n", "");
    /* x begins and ends in a itself, so nothing changes. */
    expect("10 enter a\n12 begin x\n20 end-inside x\n30 exit a\n", 100,
           "a 10..30\n  x 12..20\n", "");
}

static void allocations_of_cut_and_begun_spans_reach_those_around_them(void)
{
    /* The exit of a cuts b off. */
    expect_bytes("10 enter a\n20 enter b\n21 alloc 5\n30 exit a\n",
                 "a 0/0 1/5\nb 1/5 1/5\n");
    /* x ends below c, which continues to allocate. */
    expect_bytes("10 enter a\n11 begin x\n12 alloc 1\n13 enter c\n"
                 "14 alloc 2\n15 end x\n16 alloc 4\n17 exit c\n"
                 "18 exit a\n",
                 "a 0/0 3/7\nx 1/1 1/1\nc 2/6 2/6\n");
}

static void each_piece_of_a_switched_span_has_its_own_allocations(void)
{
    expect_bytes("10 enter a\n11 alloc 1\n20 switch 1\n21 enter b\n"
                 "22 alloc 2\n30 switch 0\n31 alloc 4\n40 exit a\n",
                 "a 1/1 1/1\nb 1/2 1/2\na 1/4 1/4\n");
}

static void memory_in_a_gap_does_not_end_it(void)
{
    expect("10 enter a\n20 gap\n25 alloc 8\n30 gap ends\n31 stack b\n"
           "35 alloc 8\n40 exit b\n",
           50,
           "a 10..20 cut\n"
           "b 30..40 open-at-start\n",
           "gap 20..30\n");
}

static void a_raise_is_marked(void)
{
    expect("10 enter a\n20 enter b\n30 raise b\n40 exit a\n", 50,
           "a 10..40\n"
           "  b 20..30 raised\n",
           "");
}

static void what_is_open_at_the_end_is_closed_there(void)
{
    expect("10 enter a\n20 enter b\n", 50,
           "a 10..50 open-at-end\n"
           "  b 20..50 open-at-end\n",
           "");
}

static void nothing_ends_before_the_last_event(void)
{
    expect("10 enter a\n20 enter b\n90 exit b\n", 50,
           "a 10..90 open-at-end\n"
           "  b 20..90\n",
           "");
}

static void an_exit_of_an_outer_call_cuts_those_inside(void)
{
    vst_matcher_counts counts = expect("10 enter a\n"
                                       "20 enter b\n"
                                       "30 enter c\n"
                                       "40 exit a\n"
                                       "50 enter d\n"
                                       "60 exit d\n",
                                       100,
                                       "a 10..40\n"
                                       "  b 20..40 cut\n"
                                       "    c 30..40 cut\n"
                                       "d 50..60\n",
                                       "");
    CHECK_INT(counts.cut_spans, 2);
    CHECK_INT(counts.unmatched_exits, 0);
}

static void an_exit_of_what_is_not_open_is_counted_and_ignored(void)
{
    vst_matcher_counts counts =
        expect("5 exit z\n10 enter a\n20 exit b\n30 exit a\n40 exit a\n", 100,
               "a 10..30\n", "");

    CHECK_INT(counts.unmatched_exits, 3);
}

static void time_that_goes_back_stands_still(void)
{
    expect("10 enter a\n30 enter b\n20 exit b\n25 enter c\n40 exit c\n"
           "50 exit a\n",
           100,
           "a 10..50\n"
           "  b 30..30\n"
           "  c 30..40\n",
           "");
}

static void a_child_starts_later_than_its_parent(void)
{
    expect("10 enter a\n10 enter b\n10 enter c\n10 exit c\n30 exit b\n"
           "30 exit a\n",
           100,
           "a 10..30\n"
           "  b 11..30\n"
           "    c 12..12\n",
           "");
}

/* ---- stacks ------------------------------------------------------------- */

static void a_stack_at_the_start_was_open_before(void)
{
    expect("100 stack a b\n110 enter c\n120 exit c\n130 exit b\n", 200,
           "a 98..200 open-at-start open-at-end\n"
           "  b 99..130 open-at-start\n"
           "    c 110..120\n",
           "");
}

static void a_long_stack_goes_on_in_a_second_record(void)
{
    expect("100 stack a b\n100 more c d\n110 exit d\n", 200,
           "a 98..200 open-at-start open-at-end\n"
           "  b 99..200 open-at-start open-at-end\n"
           "    c 100..200 open-at-start open-at-end\n"
           "      d 101..110 open-at-start\n",
           "");
}

static void after_a_gap_the_common_part_of_the_stack_goes_on(void)
{
    vst_matcher_counts counts = expect("10 enter a\n"
                                       "20 enter b\n"
                                       "30 enter c\n"
                                       "40 gap begins\n"
                                       "80 gap ends\n"
                                       "90 stack a b d\n"
                                       "100 exit d\n"
                                       "110 exit b\n"
                                       "120 exit a\n",
                                       200,
                                       "a 10..120\n"
                                       "  b 20..110\n"
                                       "    c 30..40 cut\n"
                                       "    d 87..100 open-at-start\n",
                                       "gap 40..80\n");
    CHECK_INT(counts.cut_spans, 1);
}

static void a_shorter_stack_closes_the_rest(void)
{
    expect("10 enter a\n20 enter b\n30 enter c\n40 gap begins\n50 gap ends\n"
           "60 stack a\n70 enter d\n80 exit d\n90 exit a\n",
           100,
           "a 10..90\n"
           "  b 20..40 cut\n"
           "    c 30..40 cut\n"
           "  d 70..80\n",
           "gap 40..50\n");
}

static void an_empty_stack_closes_everything(void)
{
    expect("10 enter a\n20 enter b\n40 stack\n", 100,
           "a 10..40 cut\n"
           "  b 20..40 cut\n",
           "");
}

static void an_annotation_outlives_a_gap_inside_its_call(void)
{
    expect("10 enter a\n20 begin s1\n30 enter b\n40 gap begins\n50 gap ends\n"
           "60 stack a\n70 end s1\n80 exit a\n",
           100,
           "a 10..80\n"
           "  s 20..70\n"
           "    b 30..40 cut\n",
           "gap 40..50\n");
}

static void a_gap_that_never_ends_cuts_what_it_hides(void)
{
    expect("10 enter a\n40 gap begins\n", 100, "a 10..40 cut\n",
           "gap 40..100\n");
}

static void lost_records_cover_the_time_since_the_last_one(void)
{
    expect("10 enter a\n50 lost 12\n60 exit a\n", 100, "a 10..60\n",
           "lost 12 10..50\n");
}

/* ---- spans that need not nest -------------------------------------------- */

static void an_annotation_nests_like_a_call(void)
{
    expect("10 enter a\n20 begin s1\n30 enter b\n40 exit b\n50 end s1\n"
           "60 exit a\n",
           100,
           "a 10..60\n"
           "  s 20..50\n"
           "    b 30..40\n",
           "");
}

static void an_annotation_around_an_await_keeps_its_true_times(void)
{
    /* The coroutine a is suspended at its await, and entered again later. */
    expect("10 enter a\n"
           "20 begin s1\n"
           "30 exit a\n"
           "40 enter b\n"
           "50 exit b\n"
           "60 enter a\n"
           "70 end s1\n"
           "80 exit a\n",
           100,
           "a 10..30\n"
           "s 20..70 async\n"
           "b 40..50\n"
           "a 60..80\n",
           "");
}

static void annotations_of_many_coroutines_are_told_apart(void)
{
    expect("10 enter a\n11 begin s1\n12 exit a\n"
           "20 enter a\n21 begin s2\n22 exit a\n"
           "30 enter a\n31 end s1\n32 exit a\n"
           "40 enter a\n41 end s2\n42 exit a\n",
           100,
           "a 10..12\n"
           "s 11..31 async\n"
           "a 20..22\n"
           "s 21..41 async\n"
           "a 30..32\n"
           "a 40..42\n",
           "");
}

static void an_annotation_that_ends_under_another_leaves_the_stack_alone(void)
{
    expect("10 enter a\n20 begin s1\n30 begin t1\n40 end s1\n50 enter b\n"
           "60 exit b\n70 end t1\n80 exit a\n",
           100,
           "a 10..80\n"
           "s 20..40 async\n"
           "    t 30..70\n"
           "      b 50..60\n",
           "");
}

static void an_annotation_is_not_a_caller(void)
{
    span_tree tree = {0};

    feed("10 enter a\n20 begin s1\n30 enter b\n40 exit b\n50 end s1\n"
         "60 exit a\n",
         100, 100, &tree);
    tree_check(&tree);
    CHECK_INT(tree.spans[2].parent, 2);
    CHECK_INT(tree.spans[2].caller, 1);
    CHECK_INT(tree.spans[1].caller, 1);
    tree_free(&tree);
}

static void an_annotation_beside_the_stack_takes_no_time_from_it(void)
{
    span_tree tree = {0};

    feed("10 enter a\n20 begin s1\n30 enter b\n40 exit b\n50 exit a\n"
         "90 end s1\n",
         100, 100, &tree);
    tree_check(&tree);
    CHECK_INT(tree.spans[0].children_ns, 10);
    CHECK_INT(tree.spans[1].flags, VST_SPAN_ASYNC);
    CHECK_INT(tree.spans[1].parent, 0);
    tree_free(&tree);
}

static void annotations_still_open_at_the_end_are_closed_there(void)
{
    expect("10 enter a\n20 begin s1\n30 exit a\n40 begin t1\n", 100,
           "a 10..30\n"
           "s 20..100 open-at-end async\n"
           "t 40..100 open-at-end\n",
           "");
}

static void an_end_without_a_begin_is_counted(void)
{
    vst_matcher_counts counts =
        expect("10 enter a\n20 begin s1\n30 end s2\n40 end s1\n50 exit a\n", 99,
               "a 10..50\n  s 20..40\n", "");

    CHECK_INT(counts.unmatched_exits, 1);
}

static vst_status add_context(void *ctx, const vst_span *span)
{
    return vst__contexts_add(ctx, span, 0);
}

static vst_status leave_context(void *ctx, uint32_t depth)
{
    return vst__contexts_leave(ctx, depth);
}

/* Prints "name in parent: own time" for each context, parents first. */
static void expect_contexts(const char *text, const char *golden)
{
    script s = parse(text);
    const vst_context_row *rows;
    vst_contexts *contexts;
    vst_matcher *matcher;
    char found[512];
    size_t count, at = 0;
    vst_sink sink;

    if (vst__contexts_create(&contexts) != VST_OK ||
        vst_matcher_create(&matcher) != VST_OK)
        abort();
    sink = (vst_sink){
        .ctx = contexts, .span = add_context, .leave = leave_context};
    CHECK_INT(
        vst_matcher_feed(matcher, &converter, s.events, s.count, 1000, &sink),
        VST_OK);
    CHECK_INT(vst__contexts_finish(contexts, &rows, &count), VST_OK);
    for (size_t i = 0; i < count && at + 32 < sizeof found; i++)
        at += (size_t)snprintf(
            found + at, 32, "%c in %c: %lld\n", 'a' + rows[i].node.id - 1,
            rows[i].parent ? 'a' + rows[rows[i].parent - 1].node.id - 1 : '-',
            (long long)rows[i].node.self_ns);
    found[at] = '\0';
    CHECK_TEXT(found, golden);
    vst__contexts_destroy(contexts);
    vst_matcher_destroy(matcher);
    free_script(&s);
}

static void
an_annotation_that_leaves_the_stack_leaves_its_children_to_what_is_below(void)
{
    /* b ended in a before s began; c ended in s, which ended then. */
    expect_contexts("10 stack a\n20 enter b\n25 exit b\n30 begin s1\n"
                    "40 enter c\n50 end s1\n60 exit c\n"
                    "70 enter d\n71 enter e\n73 exit e\n80 exit d\n"
                    "100 exit a\n",
                    "a in -: 56\n"
                    "b in a: 5\n"
                    "c in a: 20\n"
                    "d in a: 8\n"
                    "e in d: 2\n"
                    "s in -: 0\n");
    /* The annotation below stays. */
    expect_contexts("10 enter a\n20 begin t1\n30 begin s1\n40 enter c\n"
                    "50 end s1\n60 exit c\n70 end t1\n80 exit a\n",
                    "a in -: 20\n"
                    "t in a: 30\n"
                    "c in t: 20\n"
                    "s in -: 0\n");
    /* Two calls end at the same time. */
    expect_contexts("10 enter a\n15 enter b\n16 exit b\n20 begin t1\n"
                    "30 begin s1\n40 enter c\n50 end s1\n55 end t1\n"
                    "60 exit c\n70 enter d\n71 begin u1\n72 enter e\n"
                    "74 exit e\n75 exit d\n80 exit a\n90 end u1\n",
                    "a in -: 44\n"
                    "b in a: 1\n"
                    "c in a: 20\n"
                    "d in a: 3\n"
                    "e in d: 2\n"
                    "t in -: 0\n"
                    "s in -: 0\n"
                    "u in -: 0\n");
}

/* ---- switching ---------------------------------------------------------- */

static void greenlets_take_turns_in_pieces(void)
{
    expect("100 enter a\n"
           "120 enter b\n"
           "140 switch 1\n"
           "150 enter c\n"
           "170 switch 0\n"
           "180 exit b\n"
           "190 exit a\n"
           "200 switch 1\n"
           "210 exit c\n",
           300,
           "a 100..140 suspended\n"
           "  b 120..140 suspended\n"
           "c 150..168 suspended\n"
           "a 168..190 resumed\n"
           "  b 169..180 resumed\n"
           "c 199..210 resumed\n",
           "");
}

static void an_annotation_goes_with_its_greenlet(void)
{
    expect("100 enter a\n110 begin s1\n120 switch 1\n130 enter b\n140 exit b\n"
           "150 switch 0\n160 end s1\n170 exit a\n",
           300,
           "a 100..120 suspended\n"
           "  s 110..120 suspended\n"
           "b 130..140\n"
           "a 148..170 resumed\n"
           "  s 149..160 resumed\n",
           "");
}

static void an_annotation_ended_from_another_greenlet_is_not_resumed(void)
{
    expect("100 enter a\n110 begin s1\n120 switch 1\n130 end s1\n"
           "150 switch 0\n170 exit a\n",
           300,
           "a 100..120 suspended\n"
           "  s 110..120 suspended\n"
           "a 148..170 resumed\n",
           "");
}

/* ---- arguments and points ------------------------------------------------ */

static void arguments_belong_to_the_innermost_span(void)
{
    expect("10 enter a\n11 args \"x\": 1\n20 enter b\n21 args \"y\": 2\n"
           "30 exit b\n31 args \"z\": 3\n40 exit a\n50 args \"w\": 4\n",
           100,
           "a 10..40 {\"x\": 1, \"z\": 3}\n"
           "  b 20..30 {\"y\": 2}\n",
           "");
}

static void arguments_stay_with_an_annotation_that_is_set_aside(void)
{
    expect("10 enter a\n20 begin s1\n21 args \"y\": 2\n30 exit a\n40 end s1\n",
           100,
           "a 10..30\n"
           "s 20..40 async {\"y\": 2}\n",
           "");
}

static void arguments_of_an_end_belong_to_its_span_wherever_that_is(void)
{
    /* Four kinds of spans: on top of the stack, below a call, off the stack,
     * and not open at all. */
    expect("10 begin s1\n11 args \"x\": 1\n20 ended s1 \"y\": 2\n", 60,
           "s 10..20 {\"x\": 1, \"y\": 2}\n", "");
    expect("10 begin s1\n20 enter a\n30 ended s1 \"y\": 2\n40 exit a\n", 60,
           "s 10..30 async {\"y\": 2}\n"
           "  a 20..40\n",
           "");
    expect("10 enter a\n20 begin s1\n30 exit a\n40 enter b\n"
           "50 ended s1 \"y\": 2\n60 exit b\n70 ended s1 \"z\": 3\n",
           80,
           "a 10..30\n"
           "s 20..50 async {\"y\": 2}\n"
           "b 40..60\n",
           "");
}

static void an_end_that_claims_more_bytes_than_it_has_has_no_arguments(void)
{
    script s = {0};
    span_tree tree = {0};
    vst_sink sink = tree_sink(&tree);
    vst_matcher *matcher;
    uint64_t pair = pair_of("s1");

    add_escape(&s, 10, VST_ESCAPE_BEGIN, &pair, 1);
    add_escape(&s, 20, VST_ESCAPE_END, (uint64_t[]){pair, 9, 0}, 3);
    add_escape(&s, 30, VST_ESCAPE_BEGIN, &pair, 1);
    add_escape(&s, 40, VST_ESCAPE_END, (uint64_t[]){pair, UINT64_MAX, 0}, 3);
    add_escape(&s, 50, VST_ESCAPE_BEGIN, &pair, 1);
    add_escape(&s, 60, VST_ESCAPE_END, (uint64_t[]){pair, 4}, 2);
    if (vst_matcher_create(&matcher) != VST_OK)
        abort();
    CHECK_INT(
        vst_matcher_feed(matcher, &converter, s.events, s.count, 100, &sink),
        VST_OK);
    CHECK_TEXT(tree_text(&tree), "s 10..20\ns 30..40\ns 50..60\n");
    vst_matcher_destroy(matcher);
    tree_free(&tree);
    free_script(&s);
}

static void instants_pass_through(void)
{
    expect("10 enter a\n15 instant p \"k\": \"v\"\n20 exit a\n", 100,
           "a 10..20\n", "instant p {\"k\": \"v\"} at 15\n");
}

/* ---- sizes and strange input --------------------------------------------- */

static void a_million_calls_deep_works(void)
{
    enum { DEPTH = 1000000, BATCH = 4096 };
    vst_compressed_event *events = calloc(BATCH, sizeof *events);
    span_tree tree = {.limit = 1};
    vst_sink sink = tree_sink(&tree);
    vst_matcher_counts counts;
    vst_matcher *matcher;
    size_t filled = 0;

    if (vst_matcher_create(&matcher) != VST_OK || events == NULL)
        abort();
    /* Enter calls, then as many exits that match no call, then enter again. */
    for (size_t i = 0; i < 3 * (size_t)DEPTH; i++) {
        uint32_t kind = i < DEPTH ? VST_ENTER : VST_EXIT;
        vst_id id = i < DEPTH       ? (vst_id)(i + 1)
                    : i < 2 * DEPTH ? (vst_id)(i + DEPTH)
                                    : (vst_id)(3 * (size_t)DEPTH - i);

        events[filled].key = vst_trace_key_make(kind, id);
        events[filled++].ticks = 10 * (i + 1);
        if (filled == BATCH || i + 1 == 3 * (size_t)DEPTH) {
            CHECK_INT(vst_matcher_feed(matcher, &converter, events, filled,
                                       VST_TIME_OPEN, &sink),
                      VST_OK);
            filled = 0;
        }
    }
    CHECK_INT(vst_matcher_feed(matcher, &converter, NULL, 0, 1, &sink), VST_OK);
    vst__matcher_count(matcher, &counts);
    CHECK_INT(counts.spans, DEPTH);
    CHECK_INT(counts.unmatched_exits, DEPTH);
    CHECK_INT(counts.cut_spans, 0);
    CHECK_INT(tree.spans[0].depth, DEPTH - 1);
    vst_matcher_destroy(matcher);
    tree_free(&tree);
    free(events);
}

static uint32_t random_below(uint64_t *seed, uint32_t limit)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % limit;
}

/* Makes an event of a random kind; most events fit the stack. */
static void random_event(uint64_t *seed, vst_compressed_event *event,
                         uint64_t *payload)
{
    uint32_t choice = random_below(seed, 100);
    vst_escape type = (vst_escape)(1 + random_below(seed, 19));
    uint32_t words = 1 + random_below(seed, 4);

    event->where.resource = 3;
    event->ticks += random_below(seed, 30);
    if (random_below(seed, 50) == 0)
        event->ticks -= random_below(seed, 100);
    event->payload = NULL;
    event->payload_words = 0;
    if (choice < 75) {
        event->key = vst_trace_key_make(choice < 38   ? VST_ENTER
                                        : choice < 70 ? VST_EXIT
                                                      : VST_RAISE,
                                        1 + random_below(seed, 6));
        return;
    }
    for (uint32_t i = 0; i < 4; i++)
        payload[i] = random_below(seed, 5);
    if (type == VST_ESCAPE_BEGIN || type == VST_ESCAPE_END)
        payload[0] |= (uint64_t)random_below(seed, 3) << 32;
    if (random_below(seed, 20) == 0)
        payload[0] = *seed;
    event->key = vst_trace_key_make(vst_trace_key_kind_of_escape(type),
                                    random_below(seed, 5));
    event->payload = payload;
    event->payload_words = random_below(seed, 30) != 0 ? words : 0;
}

static void any_events_at_all_give_spans_that_nest(void)
{
    uint64_t seed = 20240607;
    vst_matcher *matcher;

    if (vst_matcher_create(&matcher) != VST_OK)
        abort();
    for (int round = 0; round < 3000; round++) {
        vst_compressed_event event = {.ticks = 100000};
        span_tree tree = {0};
        vst_sink sink = tree_sink(&tree);
        uint64_t payload[4];
        uint32_t count = 1 + random_below(&seed, 120);

        for (uint32_t i = 0; i < count; i++) {
            random_event(&seed, &event, payload);
            CHECK_INT(vst_matcher_feed(matcher, &converter, &event, 1,
                                       i + 1 == count ? 101000 : VST_TIME_OPEN,
                                       &sink),
                      VST_OK);
        }
        tree_check(&tree);
        tree_free(&tree);
        if (checks_bad != 0)
            break;
    }
    vst_matcher_destroy(matcher);
}

static vst_status refuse(void *ctx, const vst_span *span)
{
    (void)ctx;
    (void)span;
    return VST_E_CANCELLED;
}

static void a_sink_that_refuses_ends_the_feeding_and_leaves_no_rest(void)
{
    script s = parse("10 enter a\n20 enter b\n30 exit b\n40 exit a\n");
    script t = parse("10 enter c\n20 exit c\n");
    vst_sink refusing = {.span = refuse};
    span_tree tree = {0};
    vst_sink sink = tree_sink(&tree);
    vst_matcher *matcher;

    if (vst_matcher_create(&matcher) != VST_OK)
        abort();
    CHECK_INT(vst_matcher_feed(matcher, &converter, s.events, s.count, 100,
                               &refusing),
              VST_E_CANCELLED);
    CHECK_INT(
        vst_matcher_feed(matcher, &converter, t.events, t.count, 100, &sink),
        VST_OK);
    CHECK_TEXT(tree_text(&tree), "c 10..20\n");
    CHECK_INT(tree.spans[0].serial, 3);
    vst_matcher_destroy(matcher);
    tree_free(&tree);
    free_script(&s);
    free_script(&t);
}

int main(void)
{
    TEST(calls_nest_as_they_were_made);
    TEST(time_in_children_is_counted_once);
    TEST(allocations_count_for_the_innermost_span_and_those_around_it);
    TEST(a_frameworks_blocks_are_counted_apart_and_taken_off);
    TEST(every_block_is_told_with_its_depth_if_wanted);
    TEST(a_span_that_ends_inside_of_a_call_begins_with_it);
    TEST(allocations_of_cut_and_begun_spans_reach_those_around_them);
    TEST(each_piece_of_a_switched_span_has_its_own_allocations);
    TEST(memory_in_a_gap_does_not_end_it);
    TEST(a_raise_is_marked);
    TEST(what_is_open_at_the_end_is_closed_there);
    TEST(nothing_ends_before_the_last_event);
    TEST(an_exit_of_an_outer_call_cuts_those_inside);
    TEST(an_exit_of_what_is_not_open_is_counted_and_ignored);
    TEST(time_that_goes_back_stands_still);
    TEST(a_child_starts_later_than_its_parent);
    TEST(a_stack_at_the_start_was_open_before);
    TEST(a_long_stack_goes_on_in_a_second_record);
    TEST(after_a_gap_the_common_part_of_the_stack_goes_on);
    TEST(a_shorter_stack_closes_the_rest);
    TEST(an_empty_stack_closes_everything);
    TEST(an_annotation_outlives_a_gap_inside_its_call);
    TEST(a_gap_that_never_ends_cuts_what_it_hides);
    TEST(lost_records_cover_the_time_since_the_last_one);
    TEST(an_annotation_nests_like_a_call);
    TEST(an_annotation_around_an_await_keeps_its_true_times);
    TEST(annotations_of_many_coroutines_are_told_apart);
    TEST(an_annotation_that_ends_under_another_leaves_the_stack_alone);
    TEST(an_annotation_is_not_a_caller);
    TEST(an_annotation_beside_the_stack_takes_no_time_from_it);
    TEST(annotations_still_open_at_the_end_are_closed_there);
    TEST(an_end_without_a_begin_is_counted);
    TEST(
        an_annotation_that_leaves_the_stack_leaves_its_children_to_what_is_below);
    TEST(greenlets_take_turns_in_pieces);
    TEST(an_annotation_goes_with_its_greenlet);
    TEST(an_annotation_ended_from_another_greenlet_is_not_resumed);
    TEST(arguments_belong_to_the_innermost_span);
    TEST(arguments_stay_with_an_annotation_that_is_set_aside);
    TEST(arguments_of_an_end_belong_to_its_span_wherever_that_is);
    TEST(an_end_that_claims_more_bytes_than_it_has_has_no_arguments);
    TEST(instants_pass_through);
    TEST(a_million_calls_deep_works);
    TEST(any_events_at_all_give_spans_that_nest);
    TEST(a_sink_that_refuses_ends_the_feeding_and_leaves_no_rest);
    return checks_end();
}
