/* The times that spans would have taken without the recorder, computed from
 * hand-made files: every time and every cost is known, so every result is,
 * too. */
#include <vestige/trace.h>

#include "check.h"
#include "replay/costs.h"
#include "trace_builder.h"

enum { A = 1, B = 2, C = 3, SPANS = 3 };

/* Costs: a Python call takes 100 ns, 20 of them inside its span, with an error
 * of 10; a C call takes 50 ns, 5 inside, and its span is 5 ns shorter than the
 * call. */
#define COSTS "1, 100000, 20000, 10000, 2, 50000, -5000, 5000"

typedef struct seen {
    vst_span of[SPANS + 1]; /* by id */
    char args[128];         /* of B */
} seen;

static vst_status see(void *ctx, const vst_span *span)
{
    seen *self = ctx;

    self->of[span->id] = *span;
    if (span->id == B && span->args != NULL)
        snprintf(self->args, sizeof self->args, "%.*s", (int)span->args_len,
                 span->args);
    return VST_OK;
}

/* a 2000..8000 around b 3000..4000 and c 5000..7000; if `loses`, records are
 * lost before c. */
static void make(builder *b, const char *json, bool loses)
{
    builder_init(b);
    builder_definitions(b, 1);
    builder_define(b, VST_DEF_PYTHON, A, "a", "f.py", 1);
    builder_define(b, VST_DEF_PYTHON, B, "b", "f.py", 2);
    builder_define(b, VST_DEF_NATIVE, C, "c", "", 0);
    builder_thread(b, 1, 4242, "main");
    if (json != NULL)
        builder_metadata(b, VST_COSTS_METADATA, json);
    builder_window(b, 0, 1500, 9000);
    builder_seal(b, 1);
    builder_records(b, 0, 1, 1900, 1);
    builder_enter(b, A, 100);
    builder_enter(b, B, 1000);
    builder_exit(b, B, 1000);
    if (loses)
        builder_escape(b, VST_ESCAPE_LOST, 0, (uint64_t[]){7}, 1);
    builder_enter(b, C, 1000);
    builder_exit(b, C, 2000);
    builder_exit(b, A, 1000);
    builder_seal(b, 1);
}

static void replay_built(builder *b, bool compensated, seen *result)
{
    const vst_sink sink = {
        .ctx = result, .span = see, .tells_compensated = true};
    vst_trace *trace = NULL;

    memset(result, 0, sizeof *result);
    CHECK_INT(builder_open(b, &trace, NULL), VST_OK);
    vst_trace_set_compensated(trace, compensated);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    vst_trace_close(trace);
    builder_free(b);
}

static void replay(const char *json, bool loses, bool compensated, seen *result)
{
    builder b;

    make(&b, json, loses);
    replay_built(&b, compensated, result);
}

static void check(const seen *result, vst_id id, long long ns, long long error)
{
    CHECK_INT((long long)result->of[id].compensated_ns, ns);
    CHECK_INT((long long)result->of[id].compensated_error_ns, error);
}

static void a_span_is_shorter_by_what_its_records_cost(void)
{
    seen result;

    replay("[1, " COSTS "]", false, false, &result);
    check(&result, B, 980, 10);
    check(&result, C, 2005, 5);
    check(&result, A, 6000 - 100 - 50 - 20, 25);
    CHECK_INT((long long)result.of[A].end_ns - result.of[A].start_ns, 6000);
    CHECK_TEXT(result.args, "\"compensated_us\": 0.980, "
                            "\"compensated_error_us\": 0.010");
}

static void a_share_of_the_languages_own_time_is_the_recorders(void)
{
    seen result;

    replay("[1, 0, 100000, 0, 25000, " COSTS "]", false, false, &result);
    check(&result, B, 880, 35);
    check(&result, C, 2005, 5);
    check(&result, A, 5830 - 400, 25 + 100);
}

/* The correction is between 0 and 60 ns, but at most a twentieth of the
 * span. */
static void what_a_function_does_after_its_exit_is_half_known(void)
{
    seen result;

    replay("[1, " COSTS ", 101, 50000, 0, 60000]", false, false, &result);
    check(&result, B, 980 + 25, 10 + 25);
    check(&result, C, 2005, 5);
    check(&result, A, 5830 + 30, 25 + 30);
}

static void without_costs_nothing_is_known(void)
{
    static const char *const values[] = {NULL,
                                         "\"short calls were left out\"",
                                         "",
                                         "[",
                                         "[]",
                                         "[1]",
                                         "[1, ",
                                         "[1, 1, 2]",
                                         "[2, " COSTS "]",
                                         "[1, 1, -5, 0, 0]",
                                         "[1, 1, 5, 6, 0]",
                                         "[1, 2, 50000, 0, 5000]",
                                         "[1, 1, 99999999999999999999, 0, 0]",
                                         "[1, 0, 1000000, 0, 0, " COSTS "]",
                                         "[1, 101, 1000000, 0, 0, " COSTS "]",
                                         "[1, 102, 1000001, 0, 0, " COSTS "]",
                                         "{\"a\": 1}"};
    seen result;

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        replay(values[i], false, true, &result);
        check(&result, A, VST_RUNNING_UNKNOWN, VST_RUNNING_UNKNOWN);
        CHECK_INT((long long)result.of[A].end_ns - result.of[A].start_ns, 6000);
        CHECK(result.args[0] == 0);
    }
}

static void a_span_with_records_missing_is_not_known(void)
{
    seen result;

    replay("[1, " COSTS "]", true, false, &result);
    check(&result, B, 980, 10);
    check(&result, C, 2005, 5);
    check(&result, A, VST_RUNNING_UNKNOWN, VST_RUNNING_UNKNOWN);
}

static void spans_last_as_long_as_they_would_have(void)
{
    seen result;

    replay("[1, " COSTS "]", false, true, &result);
    CHECK_INT((long long)result.of[B].end_ns - result.of[B].start_ns, 980);
    CHECK_INT((long long)result.of[A].end_ns - result.of[A].start_ns, 5830);
    CHECK_INT((long long)result.of[A].children_ns, 980 + 2005);
    /* If the cost is too high, the span keeps the time of the calls inside. */
    replay("[1, 1, 9000000, 20000, 0, 2, 9000000, -5000, 0]", false, true,
           &result);
    CHECK_INT((long long)result.of[A].end_ns - result.of[A].start_ns, 2985);
    check(&result, A, 0, 0);
}

static void other_kinds_cost_what_a_python_call_costs_or_nothing(void)
{
    vst__cost of[VST__COSTS];

    CHECK(vst__costs_parse("[1, " COSTS ", 99, 1, 1, 1]", of));
    CHECK_INT((long long)of[VST_DEF_GC].cost, 100000);
    CHECK_INT((long long)of[VST_DEF_GC].error, 100000);
    CHECK_INT((long long)of[VST_DEF_NATIVE].inside, -5000);
    CHECK_INT((long long)of[VST__COST_TASK].cost, 0);
    CHECK_INT((long long)of[VST__COST_END].error, 0);
}

/* The step of a task in call a, 2000..5000; has the task's name if `named`. */
static int64_t step_ns(const char *json, bool named)
{
    seen result;
    uint64_t payload[] = {vst_task_word(VST_TASK_STEP, 1), 6, 0};
    builder b;

    memcpy(&payload[2], "Task-1", 6);
    builder_init(&b);
    builder_definitions(&b, 1);
    builder_define(&b, VST_DEF_PYTHON, A, "a", "f.py", 1);
    builder_thread(&b, 1, 4242, "main");
    builder_metadata(&b, VST_COSTS_METADATA, json);
    builder_window(&b, 0, 1500, 9000);
    builder_seal(&b, 1);
    builder_records(&b, 0, 1, 1900, 1);
    builder_enter(&b, A, 100);
    builder_escape(&b, VST_ESCAPE_TASK, 0, payload, named ? 3 : 1);
    builder_exit(&b, A, 3000);
    builder_seal(&b, 1);
    replay_built(&b, false, &result);
    return result.of[A].compensated_ns;
}

static void a_task_costs_where_it_is_introduced(void)
{
    const char *json = "[1, " COSTS ", 100, 700000, 0, 700000]";

    CHECK_INT((long long)step_ns(json, true), 3000 - 20 - 700);
    CHECK_INT((long long)step_ns(json, false), 3000 - 20);
    CHECK_INT((long long)step_ns("[1, " COSTS "]", true), 3000 - 20);
}

static void leave_out(builder *b, uint32_t delta, uint64_t passing,
                      uint64_t taken_ns)
{
    builder_escape(b, VST_ESCAPE_LEFT_OUT, delta,
                   (uint64_t[]){passing << VST_LEFT_OUT_PASSING |
                                    taken_ns << VST_LEFT_OUT_TAKEN,
                                0, 0, 0, 0},
                   VST_LEFT_OUT_HEAD);
}

/* a 2000..8000, in which other functions are left out from 3000 on; b of
 * another thread, 2500..4500. */
static void replay_left_out(const char *json, uint64_t passing,
                            uint64_t taken_ns, seen *result)
{
    builder b;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_define(&b, VST_DEF_PYTHON, A, "a", "f.py", 1);
    builder_define(&b, VST_DEF_PYTHON, B, "b", "f.py", 2);
    builder_thread(&b, 1, 4242, "main");
    builder_thread(&b, 2, 4243, "other");
    builder_metadata(&b, VST_COSTS_METADATA, json);
    builder_metadata(&b, VST_BUDGET_METADATA, "0.05");
    builder_window(&b, 0, 1500, 9000);
    builder_seal(&b, 1);
    builder_records(&b, 0, 1, 1900, 1);
    builder_enter(&b, A, 100);
    leave_out(&b, 1000, passing, taken_ns);
    leave_out(&b, 4000, 0, 0);
    builder_exit(&b, A, 1000);
    builder_seal(&b, 1);
    builder_records(&b, 0, 2, 1900, 1);
    builder_enter(&b, B, 600);
    builder_exit(&b, B, 2000);
    builder_seal(&b, 1);
    replay_built(&b, false, result);
}

static void what_a_thread_took_to_leave_functions_out_is_the_recorders(void)
{
    seen result;

    replay_left_out("[1, " COSTS "]", 0, 300, &result);
    check(&result, A, 6000 - 20 - 300, 10);
    check(&result, B, 2000 - 20, 10);
}

/* A tenth of the time from 3000 to 7000 was the cost of calls that were left
 * out; the true cost may be half as much more or less. */
static void what_is_left_out_costs_in_all_threads(void)
{
    const char *json = "[1, " COSTS ", 102, 1000000, 0, 500000]";
    seen result;

    replay_left_out(json, 100000, 0, &result);
    check(&result, A, 6000 - 20 - 400, 10 + 200);
    check(&result, B, 2000 - 20 - 150, 10 + 75);
    replay_left_out("[1, " COSTS "]", 100000, 0, &result);
    check(&result, A, 6000 - 20, 10);
    /* The largest values that fit into a file. */
    replay_left_out(json, 0xffffff, UINT32_MAX, &result);
    check(&result, B, 0, result.of[B].compensated_error_ns);
}

int main(void)
{
    TEST(a_span_is_shorter_by_what_its_records_cost);
    TEST(a_share_of_the_languages_own_time_is_the_recorders);
    TEST(what_a_function_does_after_its_exit_is_half_known);
    TEST(without_costs_nothing_is_known);
    TEST(a_span_with_records_missing_is_not_known);
    TEST(spans_last_as_long_as_they_would_have);
    TEST(other_kinds_cost_what_a_python_call_costs_or_nothing);
    TEST(a_task_costs_where_it_is_introduced);
    TEST(what_a_thread_took_to_leave_functions_out_is_the_recorders);
    TEST(what_is_left_out_costs_in_all_threads);
    return checks_end();
}
