/* The lines of calls: when a thread looks a line up, which calls get a line,
 * and that times stay right. The test controls the clock. */
#include <inttypes.h>
#include <stdio.h>

#include <vestige/memory.h>
#include <vestige/vestige.h>

#include "check.h"
#include "fake_clock.h"
#include "record/language.h"

enum { INTERVAL_NS = 1000, FUNCTIONS = 5 };
enum { MAIN = 1, PARSE, FETCH, SLEEP, SORT };

static const char *const names[FUNCTIONS + 1] = {"",      "main",  "parse",
                                                 "fetch", "sleep", "sort"};

static vst_session *session;
static vst_id ids[FUNCTIONS + 1];
static uint32_t stack_now; /* the frames that the fake language reports */
static unsigned looks;

static uint32_t find_stack(void *ctx)
{
    (void)ctx;
    looks++;
    return stack_now;
}

static void begin(uint64_t min_duration_ns, bool has_lines)
{
    vst_session_options options = {.min_duration_ns = min_duration_ns};
    const vst_lines lines = {INTERVAL_NS, NULL, find_stack};

    CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK);
    if (has_lines)
        vst__recording_set_lines(vst_session_recording(session), &lines);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    for (int i = 1; i <= FUNCTIONS; i++) {
        vst_definition d = {.kind =
                                i >= SLEEP ? VST_DEF_NATIVE : VST_DEF_PYTHON,
                            .name = names[i],
                            .name_len = (uint32_t)strlen(names[i]),
                            .file = "a.py",
                            .file_len = 4,
                            .line = 1};
        CHECK_INT(vst_recording_define_id(vst_session_recording(session), &d,
                                          &ids[i]),
                  VST_OK);
    }
    stack_now = looks = 0;
}

/* Enters one more call of the fake language: of a function that has reached a
 * line. */
static uint32_t in(uint32_t parent, int function, int line)
{
    vst_stack stack = {.kind = VST_STACK_LANGUAGE,
                       .parent = parent,
                       .function = ids[function],
                       .line = line};
    vst_stack_id id = 0;

    CHECK_INT(
        vst_recording_define_stack(vst_session_recording(session), &stack, &id),
        VST_OK);
    return id;
}

static void enter(int function, int64_t after_ns)
{
    fake_advance(after_ns);
    vst_record(VST_ENTER, ids[function]);
}

static void leave(int function, int64_t after_ns)
{
    fake_advance(after_ns);
    vst_record_end_of_call(VST_EXIT, ids[function]);
}

/* ---- what is read ------------------------------------------------------- */

static char text[65536];
static const vst_trace *open_trace;

static vst_status put_span(void *ctx, const vst_span *span)
{
    const vst_stack *at = vst_trace_stack(open_trace, span->called_at);
    size_t end = strlen(text);

    (void)ctx;
    snprintf(text + end, sizeof text - end, "%s %" PRId64,
             names[span->id <= FUNCTIONS ? span->id : 0],
             span->end_ns - span->start_ns);
    end = strlen(text);
    if (at != NULL)
        snprintf(text + end, sizeof text - end, " %s:%d%s", names[at->function],
                 at->line, span->called_through ? " through" : "");
    strcat(text, "\n");
    return VST_OK;
}

/* Returns each span, in the order of the ends: its function, duration and
 * line. */
static const char *spans(void)
{
    const vst_sink sink = {.span = put_span};
    vst_trace *trace = NULL;

    text[0] = '\0';
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    open_trace = trace;
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    vst_trace_close(trace);
    vst_session_destroy(session);
    return text;
}

/* ---- when a thread looks ------------------------------------------------ */

static void a_call_as_long_as_the_interval_has_its_place(void)
{
    begin(0, true);
    enter(MAIN, 1);
    stack_now = in(0, MAIN, 17);
    enter(SLEEP, 1);
    leave(SLEEP, INTERVAL_NS);
    leave(MAIN, 1);
    CHECK_TEXT(spans(), "sleep 1000 main:17\nmain 1002\n");
}

static void many_short_calls_are_looked_at_once_in_an_interval(void)
{
    begin(0, true);
    enter(MAIN, 1);
    stack_now = in(0, MAIN, 17);
    for (int i = 0; i < 1000; i++) {
        enter(SLEEP, 10);
        leave(SLEEP, 10);
    }
    leave(MAIN, 1);
    CHECK(looks >= 19 && looks <= 21);
    CHECK(strstr(spans(), "sleep 10 main:17\n") != NULL);
}

static void nobody_looks_where_no_lines_are_wanted(void)
{
    begin(0, false);
    enter(MAIN, 1);
    stack_now = in(0, MAIN, 17);
    enter(SLEEP, 1);
    leave(SLEEP, 10 * INTERVAL_NS);
    leave(MAIN, 1);
    CHECK_INT((int)looks, 0);
    CHECK_TEXT(spans(), "sleep 10000\nmain 10002\n");
}

static void an_unknown_stack_leaves_no_record(void)
{
    uint64_t *before;

    begin(0, true);
    enter(MAIN, 1);
    before = vst_thread_buffer->cursor;
    enter(SLEEP, 5 * INTERVAL_NS);
    CHECK(looks != 0 && vst_thread_buffer->cursor == before + 1);
    leave(SLEEP, 1);
    leave(MAIN, 1);
    CHECK_TEXT(spans(), "sleep 1\nmain 5002\n");
}

static void lines_keep_no_short_call_that_is_left_out(void)
{
    begin(100 * INTERVAL_NS, true);
    enter(MAIN, 1);
    stack_now = in(0, MAIN, 17);
    for (int i = 0; i < 50; i++) {
        enter(PARSE, INTERVAL_NS);
        enter(SLEEP, INTERVAL_NS);
        leave(SLEEP, INTERVAL_NS);
        leave(PARSE, INTERVAL_NS);
    }
    enter(SLEEP, 1);
    leave(SLEEP, 100 * INTERVAL_NS);
    leave(MAIN, 1);
    CHECK_TEXT(spans(), "sleep 100000 main:17\nmain 300002\n");
}

/* ---- times -------------------------------------------------------------- */

static void times_stay_right_over_more_ticks_than_a_word_holds(void)
{
    const int64_t long_ns = INT64_C(5000000000);

    for (int has_lines = 0; has_lines < 2; has_lines++) {
        begin(0, has_lines);
        enter(MAIN, 1);
        stack_now = in(0, MAIN, 17);
        enter(SLEEP, long_ns);
        leave(SLEEP, long_ns);
        leave(MAIN, 7);
        CHECK_TEXT(spans(), has_lines
                                ? "sleep 5000000000 main:17\nmain 10000000007\n"
                                : "sleep 5000000000\nmain 10000000007\n");
    }
}

/* When calls are taken back, the time returns to the last word that stays. */
static void times_stay_right_while_calls_are_taken_back(void)
{
    for (int has_lines = 0; has_lines < 2; has_lines++) {
        begin(100, has_lines);
        enter(MAIN, 1);
        for (int i = 0; i < 6; i++) {
            enter(PARSE, INT64_C(1000000000));
            enter(SLEEP, 1);
            leave(SLEEP, 1);
            leave(PARSE, 1);
        }
        enter(FETCH, 1);
        leave(FETCH, 100);
        leave(MAIN, 1);
        CHECK_TEXT(spans(), "fetch 100\nmain 6000000120\n");
    }
}

static void a_clock_that_goes_back_makes_no_long_call(void)
{
    begin(0, true);
    enter(MAIN, 100);
    enter(SLEEP, 100);
    leave(SLEEP, -50);
    enter(PARSE, 60);
    leave(PARSE, 10);
    leave(MAIN, 10);
    CHECK_TEXT(spans(), "sleep 0\nparse 10\nmain 130\n");
}

/* ---- which calls a stack names ------------------------------------------ */

static void each_call_gets_the_line_of_the_one_around(void)
{
    uint32_t stack;

    begin(0, true);
    enter(MAIN, 1);
    enter(PARSE, 1);
    enter(PARSE, 1);
    enter(SORT, 1);
    enter(FETCH, 1);
    enter(SLEEP, 1);
    stack = in(in(0, MAIN, 10), PARSE, 20);
    stack_now = in(in(stack, PARSE, 30), FETCH, 40);
    leave(SLEEP, INTERVAL_NS);
    leave(FETCH, 1);
    leave(SORT, 1);
    leave(PARSE, 1);
    leave(PARSE, 1);
    leave(MAIN, 1);
    CHECK_TEXT(spans(), "sleep 1000 fetch:40\n"
                        "fetch 1002 parse:30 through\n"
                        "sort 1004 parse:30\n"
                        "parse 1006 parse:20\n"
                        "parse 1008 main:10\n"
                        "main 1010\n");
}

static void a_stack_may_have_calls_that_are_not_recorded(void)
{
    begin(0, true);
    enter(MAIN, 1);
    enter(FETCH, 1);
    enter(SLEEP, 1);
    stack_now = in(in(in(0, MAIN, 10), PARSE, 20), FETCH, 40);
    leave(SLEEP, INTERVAL_NS);
    leave(FETCH, 1);
    leave(MAIN, 1);
    CHECK_TEXT(spans(), "sleep 1000 fetch:40\n"
                        "fetch 1002 main:10\n"
                        "main 1004\n");
}

static void
a_stack_may_lack_the_call_that_ends_or_have_the_one_that_begins(void)
{
    begin(0, true);
    enter(MAIN, 1);
    enter(PARSE, 1);
    stack_now = in(0, MAIN, 10);
    leave(PARSE, INTERVAL_NS);
    stack_now = in(in(0, MAIN, 11), FETCH, 1);
    enter(FETCH, INTERVAL_NS);
    leave(FETCH, 1);
    leave(MAIN, 1);
    CHECK_TEXT(spans(), "parse 1000 main:10\nfetch 1 main:11\nmain 2003\n");
}

static void a_call_that_the_stack_lacks_has_no_lines_inside(void)
{
    begin(0, true);
    enter(MAIN, 1);
    enter(PARSE, 1);
    enter(SLEEP, 1);
    stack_now = in(0, MAIN, 10);
    leave(SLEEP, INTERVAL_NS);
    leave(PARSE, 1);
    leave(MAIN, 1);
    CHECK_TEXT(spans(), "sleep 1000\nparse 1002 main:10\nmain 1004\n");
}

static void a_stack_that_is_not_the_languages_is_ignored(void)
{
    vst_stack native = {.kind = VST_STACK_NATIVE, .address = 0x1234};
    vst_stack_id id;

    begin(0, true);
    CHECK_INT(vst_recording_define_stack(vst_session_recording(session),
                                         &native, &id),
              VST_OK);
    enter(MAIN, 1);
    enter(SLEEP, 1);
    stack_now = id;
    leave(SLEEP, INTERVAL_NS);
    stack_now = 12345678; /* a line that is not in the trace */
    leave(MAIN, INTERVAL_NS);
    CHECK_TEXT(spans(), "sleep 1000\nmain 2001\n");
}

int main(void)
{
    fake_clock_begin();
    TEST(a_call_as_long_as_the_interval_has_its_place);
    TEST(many_short_calls_are_looked_at_once_in_an_interval);
    TEST(nobody_looks_where_no_lines_are_wanted);
    TEST(an_unknown_stack_leaves_no_record);
    TEST(lines_keep_no_short_call_that_is_left_out);
    TEST(times_stay_right_over_more_ticks_than_a_word_holds);
    TEST(times_stay_right_while_calls_are_taken_back);
    TEST(a_clock_that_goes_back_makes_no_long_call);
    TEST(each_call_gets_the_line_of_the_one_around);
    TEST(a_stack_may_have_calls_that_are_not_recorded);
    TEST(a_stack_may_lack_the_call_that_ends_or_have_the_one_that_begins);
    TEST(a_call_that_the_stack_lacks_has_no_lines_inside);
    TEST(a_stack_that_is_not_the_languages_is_ignored);
    return checks_end();
}
