/* Budgets: every word of a thread is counted once, and a recorded call stands
 * for the calls that were left out around it. */
#include <vestige/trace.h>

#include "check.h"
#include "memory_provider.h"
#include "record/recording.h"
#include "replay/budget.h"
#include "trace_builder.h"

/* ---- counting ----------------------------------------------------------- */

enum { PACE = 100 };

static struct {
    uint64_t enters, exits, turns, most;
    vst_id last;
} told;

static void count(void *ctx, const uint64_t *words, size_t length)
{
    (void)ctx;
    if (length > told.most)
        told.most = length;
    for (size_t i = 0; i < length; i++) {
        told.enters += vst_word_kind(words[i]) == VST_ENTER;
        told.exits += vst_word_kind(words[i]) == VST_EXIT;
        if (vst_word_kind(words[i]) == VST_ESCAPE)
            i += vst_word_escape_words(words[i]);
    }
}

static void turn(void *ctx, vst_kind kind, vst_id id)
{
    (void)ctx, (void)kind;
    told.turns++;
    told.last = id;
}

static vst_recording *begin(void)
{
    const vst_pace pace = {PACE, NULL, count, turn};
    vst_recording *recording;

    memset(&told, 0, sizeof told);
    if (vst__recording_create(provider_begin(), &recording) != VST_OK ||
        vst__recording_start(recording) != VST_OK)
        abort();
    vst__recording_set_pace(recording, &pace);
    return recording;
}

static void end(vst_recording *recording)
{
    vst__recording_stop(recording);
    vst__recording_destroy(recording);
    provider_end();
}

static void every_word_is_counted_once(void)
{
    vst_recording *recording = begin();

    for (int i = 0; i < 20000; i++) {
        vst_record(VST_ENTER, 1);
        vst_record_end_of_call(VST_EXIT, 1);
    }
    CHECK(told.turns >= 40000 / (PACE + 1));
    CHECK(told.most <= PACE + 8);
    CHECK_INT(told.last, 1);
    vst__recording_count_all(recording);
    CHECK_INT(told.enters, 20000);
    CHECK_INT(told.exits, 20000);
    end(recording);
}

static void nobody_counts_after_the_pace_was_taken_away(void)
{
    const vst_pace none = {0, NULL, NULL, NULL};
    vst_recording *recording = begin();
    uint64_t turns;

    vst_record(VST_ENTER, 1);
    vst__recording_set_pace(recording, &none);
    vst_record(VST_EXIT, 1);
    turns = told.turns;
    for (int i = 0; i < 1000; i++)
        vst_record(VST_ENTER, 1);
    CHECK_INT(told.turns, turns);
    end(recording);
}

/* ---- what a call stands for --------------------------------------------- */

enum { HOT = 1, RARE = 2, C = 3 };

static void leave_out(builder *b, uint32_t delta, uint64_t flags,
                      uint64_t cpu_ns, uint64_t since, uint64_t since_cpu_ns,
                      vst_id id)
{
    const uint64_t words[] = {flags, cpu_ns, 0, since, since_cpu_ns, id};

    builder_escape(b, VST_ESCAPE_LEFT_OUT, delta, words, id != 0 ? 6 : 5);
}

/* Times are CPU times. 1000: all calls are recorded; 2000: HOT is left out;
 * 6000: a window; 7000 to 9000: HOT is left out again. */
static vst_trace *hot_is_left_out(builder *b, uint64_t flags, vst_id id)
{
    vst_trace *trace = NULL;

    builder_init(b);
    builder_definitions(b, 1);
    builder_define(b, VST_DEF_PYTHON, HOT, "hot", "f.py", 1);
    builder_define(b, VST_DEF_PYTHON, RARE, "rare", "f.py", 2);
    builder_define(b, VST_DEF_NATIVE, C, "c", "", 0);
    builder_thread(b, 1, 4242, "main");
    builder_metadata(b, VST_BUDGET_METADATA, "0.05");
    builder_window(b, 0, 500, 10000);
    builder_seal(b, 1);
    builder_records(b, 0, 1, 500, 1);
    leave_out(b, 500, 0, 1000, 1000, 1000, 0);
    leave_out(b, 1000, flags, 2000, 1500, 1500, id);
    leave_out(b, 4000, VST_LEFT_OUT_WINDOW, 6000, 2000, 2000, 0);
    leave_out(b, 1000, flags, 7000, 6000, 6000, id);
    leave_out(b, 2000, flags, 9000, 7000, 7000, id);
    builder_seal(b, 1);
    CHECK_INT(builder_open(b, &trace, NULL), VST_OK);
    return trace;
}

static void gaps_of(const vst_budget *budget, vst_id id, int64_t since,
                    int64_t start, int64_t end, vst_budget_gap gaps[2])
{
    int64_t start_ns = BUILDER_EPOCH_NS + start;

    vst__budget_gaps(budget, vst__budget_find(budget, start_ns), id, start_ns,
                     BUILDER_EPOCH_NS + end, BUILDER_EPOCH_NS + since, gaps);
}

static double weight(const vst_budget *budget, vst_id id, int64_t at)
{
    vst_budget_gap gaps[2];

    gaps_of(budget, id, 0, at, at + 10, gaps);
    return 1 + gaps[0].calls + gaps[1].calls;
}

static void check_weight(double is, double wanted)
{
    CHECK(is > wanted - 1e-9 && is < wanted + 1e-9);
}

static void a_call_stands_for_those_left_out_beside_it(void)
{
    vst_budget *budget = NULL;
    vst_budget_gap gaps[2];
    builder b;
    vst_trace *trace = hot_is_left_out(&b, 0, HOT);

    CHECK_INT(vst__budget_read(trace, &budget, NULL), VST_OK);
    CHECK(budget != NULL);
    /* The last weight in the first stretch: half of 4000 / 500. */
    check_weight(weight(budget, HOT, 1200), 1);
    check_weight(weight(budget, HOT, 1700), 1 + 2000 / 500.0);
    /* The window: the other half of the stretch before / 1000, and the whole
     * 2000 after the window. */
    check_weight(weight(budget, HOT, 6500), 1 + 2000 / 1000.0 + 2000 / 1000.0);
    check_weight(weight(budget, RARE, 6500), 1);
    check_weight(weight(budget, HOT, 100), 1);
    /* A call that lasts to the middle of the time when HOT is left out. */
    gaps_of(budget, HOT, 0, 1700, 4000, gaps);
    check_weight(gaps[1].calls, 1000 / 500.0);
    check_weight(gaps[1].own_ns, 1000);
    vst__budget_free(budget);
    vst_trace_close(trace);
    builder_free(&b);
}

static void a_call_that_was_open_while_others_were_left_out_is_one(void)
{
    vst_budget *budget = NULL;
    vst_budget_gap gaps[2];
    builder b;
    vst_trace *trace = hot_is_left_out(&b, 0, HOT);

    CHECK_INT(vst__budget_read(trace, &budget, NULL), VST_OK);
    gaps_of(budget, HOT, 0, 1700, 6100, gaps);
    check_weight(gaps[0].calls + gaps[1].calls, 0);
    gaps_of(budget, HOT, 0, 6500, 9000, gaps); /* neither are the gaps before
                                                * the call */
    check_weight(gaps[0].calls + gaps[1].calls, 0);
    vst__budget_free(budget);
    vst_trace_close(trace);
    builder_free(&b);
}

static void calls_stand_for_what_fits_into_the_gap(void)
{
    vst_budget *budget = NULL;
    vst_budget_gap gaps[2];
    builder b;
    vst_trace *trace = hot_is_left_out(&b, 0, HOT);

    CHECK_INT(vst__budget_read(trace, &budget, NULL), VST_OK);
    gaps_of(budget, HOT, 0, 6500, 6600, gaps);
    check_weight(gaps[0].own_ns, 4000 / 2.0);
    check_weight(gaps[0].all_ns, 4000);
    check_weight(gaps[1].own_ns, 2000);
    /* An earlier call took a part of the gap, or the whole gap. */
    gaps_of(budget, HOT, 5000, 6500, 6600, gaps);
    check_weight(gaps[0].own_ns, 1000 / 2.0);
    gaps_of(budget, HOT, 6100, 6500, 6600, gaps);
    check_weight(gaps[0].own_ns, 0);
    vst__budget_free(budget);
    vst_trace_close(trace);
    builder_free(&b);
}

static void each_stretch_says_what_was_left_out(void)
{
    static const int64_t starts[] = {1000, 2000, 6000, 7000, 9000};
    vst_budget *budget = NULL;
    vst_budget_info info;
    builder b;
    vst_trace *trace = hot_is_left_out(&b, 0, HOT);

    CHECK_INT(vst__budget_read(trace, &budget, NULL), VST_OK);
    vst__budget_get_info(budget, &info);
    CHECK_INT(info.changes, 5);
    for (size_t i = 0; i < 5; i++) {
        vst_budget_stretch stretch;
        vst__budget_get_stretch(budget, i, &stretch);
        CHECK_INT(stretch.start_ns, BUILDER_EPOCH_NS + starts[i]);
        CHECK_INT(stretch.end_ns,
                  i < 4 ? BUILDER_EPOCH_NS + starts[i + 1] : INT64_MAX);
        CHECK_INT(stretch.flags, i == 2 ? VST_LEFT_OUT_WINDOW : 0);
        CHECK_INT(stretch.count, i % 2 != 0 || i == 4);
        CHECK(stretch.count == 0 || stretch.ids[0] == HOT);
    }
    vst__budget_free(budget);
    vst_trace_close(trace);
    builder_free(&b);
}

static void functions_are_left_out_all_at_once(void)
{
    vst_budget *budget = NULL;
    vst_budget_info info;
    builder b;
    vst_trace *trace = hot_is_left_out(&b, VST_LEFT_OUT_PYTHON, 0);

    CHECK_INT(vst__budget_read(trace, &budget, NULL), VST_OK);
    check_weight(weight(budget, RARE, 6500), 5);
    check_weight(weight(budget, C, 6500), 5);
    vst__budget_get_info(budget, &info);
    CHECK_INT(info.functions, 3);
    CHECK_INT(info.windows, 1);
    CHECK_INT(info.cpu_ns, 8000);
    CHECK_INT(info.out_cpu_ns, 6000);
    vst__budget_free(budget);
    vst_trace_close(trace);
    builder_free(&b);
}

/* A bounded file has dropped its beginning, in which recording cost nothing. */
/* A file whose first record says that HOT is left out. */
static vst_budget_info info_of_rest(uint64_t flags)
{
    const uint64_t first[] = {flags, 100000, 2000, 500, 99000, HOT},
                   second[] = {flags, 101000, 2020, 1000, 100000, HOT};
    vst_budget *budget = NULL;
    vst_budget_info info;
    vst_trace *trace = NULL;
    builder b;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_define(&b, VST_DEF_PYTHON, HOT, "hot", "f.py", 1);
    builder_thread(&b, 1, 4242, "main");
    builder_metadata(&b, VST_BUDGET_METADATA, "0.02");
    builder_window(&b, 0, 500, 10000);
    builder_seal(&b, 1);
    builder_records(&b, 0, 1, 500, 1);
    builder_escape(&b, VST_ESCAPE_LEFT_OUT, 500, first, 6);
    builder_escape(&b, VST_ESCAPE_LEFT_OUT, 1000, second, 6);
    builder_seal(&b, 1);
    CHECK_INT(builder_open(&b, &trace, NULL), VST_OK);
    CHECK_INT(vst__budget_read(trace, &budget, NULL), VST_OK);
    vst__budget_get_info(budget, &info);
    vst__budget_free(budget);
    vst_trace_close(trace);
    builder_free(&b);
    return info;
}

static void what_was_spent_before_the_file_begins_is_left_out(void)
{
    vst_budget_info info = info_of_rest(0);

    CHECK_INT(info.cpu_ns, 2000);
    CHECK_INT(info.cost_ns, 40);
    CHECK_INT(info.out_cpu_ns, 1000);
}

static void a_file_may_begin_while_functions_are_left_out(void)
{
    vst_budget_info info = info_of_rest(VST_LEFT_OUT_STILL);

    CHECK_INT(info.cpu_ns, 1000);
    CHECK_INT(info.cost_ns, 20);
    CHECK_INT(info.out_cpu_ns, 1000);
}

static void what_a_file_claims_is_bounded(void)
{
    vst_budget *budget = NULL;
    builder b;
    vst_trace *trace = hot_is_left_out(&b, 0, 0x3fffffff);

    CHECK_INT(vst__budget_read(trace, &budget, NULL), VST_OK);
    check_weight(weight(budget, HOT, 6500), 1);
    check_weight(weight(budget, 0x3fffffff, 6500), 1);
    vst__budget_free(budget);
    vst_trace_close(trace);
    builder_free(&b);
}

int main(void)
{
    TEST(every_word_is_counted_once);
    TEST(nobody_counts_after_the_pace_was_taken_away);
    TEST(a_call_stands_for_those_left_out_beside_it);
    TEST(a_call_that_was_open_while_others_were_left_out_is_one);
    TEST(calls_stand_for_what_fits_into_the_gap);
    TEST(each_stretch_says_what_was_left_out);
    TEST(functions_are_left_out_all_at_once);
    TEST(what_was_spent_before_the_file_begins_is_left_out);
    TEST(a_file_may_begin_while_functions_are_left_out);
    TEST(what_a_file_claims_is_bounded);
    return checks_end();
}
