/* Operators: recorded by any thread, read as JSON with torch's names, joined by
 * arrows; and invalid operator facts. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vestige/operator.h>
#include <vestige/session.h>

#include "check.h"
#include "export/output/json.h"
#include "exported.h"
#include "record/language.h"
#include "replay/operator.h"

static vst_id define(vst_definition_kind kind, const char *name)
{
    vst_definition definition = {.kind = kind,
                                 .name = name,
                                 .name_len = (uint32_t)strlen(name),
                                 .file = ""};

    return vst_recording_define(&definition);
}

static vst_session *started(void)
{
    vst_session_options options = {.path = NULL};
    vst_session *session = NULL;

    CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    return session;
}

static char *exported(vst_session *session)
{
    vst_export_options options = {.window = VST_WINDOW_ALL};
    vst_trace *trace = NULL;
    char *text;

    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    CHECK_INT(vst_trace_export(trace, in_folder("t.json"), &options, NULL),
              VST_OK);
    vst_trace_close(trace);
    vst_session_destroy(session);
    text = contents(in_folder("t.json"));
    CHECK(text != NULL && vst__json_is_value(text, strlen(text)));
    CHECK_INT(remove(in_folder("t.json")), 0);
    return text != NULL ? text : calloc(1, 1);
}

/* ---- recording ---------------------------------------------------------- */

static void nothing_is_recorded_without_a_recording(void)
{
    CHECK_INT(define(VST_DEF_OPERATOR, "aten::add"), 0);
    CHECK(!vst_record_operator(1, 0, NULL, 0));
    vst_record_operator_exit(VST_EXIT, 1, 0);
}

static void an_operator_has_its_numbers(void)
{
    vst_session *session = started();
    vst_id id = define(VST_DEF_OPERATOR, "aten::add");
    uint64_t words[2] = {7, vst_operator_word(1, 0, VST_SCOPE_FUNCTION)};
    char *text;

    CHECK(vst_record_operator(id, 0, words, 2));
    CHECK(vst_record_operator(id, 0, NULL, 0));
    vst_record_operator_exit(VST_RAISE, id, 0);
    vst_record_operator_exit(VST_EXIT, id, 0);
    text = exported(session);
    expect_line(text, "\"cat\": \"cpu_op\", \"name\": \"aten::add\"");
    expect_line(text, "\"Sequence number\": 7, \"Fwd thread id\": 0}");
    expect_line(text, "\"raised\": 1}");
    free(text);
}

static void *run_backward(void *argument)
{
    vst_id id = *(vst_id *)argument;
    uint64_t words[2] = {3, vst_operator_word(2, 1, VST_SCOPE_BACKWARD)};

    CHECK(vst_record_operator(id, 0, words, 2));
    vst_record_operator_exit(VST_EXIT, id, 0);
    return NULL;
}

/* Returns the time of the first event that contains all of this text. */
static double time_of(const char *text, const char *part)
{
    const char *at = strstr(text, part);
    const char *ts = at != NULL ? strstr(at, "\"ts\": ") : NULL;

    CHECK(ts != NULL);
    return ts != NULL ? strtod(ts + 6, NULL) : -1;
}

static void an_arrow_leads_from_the_inner_forward_to_the_backward(void)
{
    vst_session *session = started();
    vst_id outer = define(VST_DEF_OPERATOR, "aten::linear");
    vst_id inner = define(VST_DEF_OPERATOR, "aten::t");
    vst_id backward = define(VST_DEF_OPERATOR, "TBackward0");
    uint64_t words[2] = {3, vst_operator_word(1, 0, VST_SCOPE_FUNCTION)};
    pthread_t thread;
    char *text;

    vst_record_operator(outer, 0, words, 2);
    vst_record_operator(inner, 0, words, 2);
    vst_record_operator_exit(VST_EXIT, inner, 0);
    vst_record_operator_exit(VST_EXIT, outer, 0);
    CHECK_INT(pthread_create(&thread, NULL, run_backward, &backward), 0);
    pthread_join(thread, NULL);
    text = exported(session);
    CHECK(time_of(text, "{\"ph\": \"s\", \"cat\": \"fwdbwd\"") ==
          time_of(text, "\"aten::t\""));
    CHECK(time_of(text, "{\"ph\": \"f\", \"bp\": \"e\", \"cat\": \"fwdbwd\"") ==
          time_of(text, "\"TBackward0\""));
    CHECK(strstr(text, "\"id\": 2, \"pid\"") == NULL);
    free(text);
}

/* ---- spans that another thread ends ------------------------------------- */

typedef struct seen {
    vst_span outer, far, after;
    vst_id far_id, after_id, outer_id;
    unsigned far_count;
    char far_args[64];
} seen;

static vst_status see(void *ctx, const vst_span *span)
{
    seen *s = ctx;

    if (span->id == s->outer_id)
        s->outer = *span;
    if (span->id == s->after_id)
        s->after = *span;
    if (span->id == s->far_id) {
        s->far = *span;
        s->far_count++;
        if (span->args_len != 0 && span->args_len < sizeof s->far_args)
            memcpy(s->far_args, span->args, span->args_len);
    }
    return VST_OK;
}

static seen seen_in(vst_session *session, seen s)
{
    vst_sink sink = {.ctx = &s, .span = see};
    vst_trace *trace = NULL;

    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    CHECK_INT(vst_trace_unmatched_exits(trace), 0);
    vst_trace_close(trace);
    return s;
}

static void *end_far(void *argument)
{
    vst_record_far_end(*(vst_id *)argument, 77);
    return NULL;
}

static void a_span_that_another_thread_ends_has_its_true_times(void)
{
    vst_session *session = started();
    vst_id outer = define(VST_DEF_OPERATOR, "aten::linear");
    vst_id far = define(VST_DEF_ANNOTATION, "gloo:all_reduce");
    vst_id after = define(VST_DEF_OPERATOR, "aten::add");
    uint64_t words[2] = {5, vst_operator_word(1, 0, VST_SCOPE_USER)};
    pthread_t thread;
    seen s;

    vst_record_operator(outer, 0, NULL, 0);
    CHECK(vst_record_operator(far, 77, words, 2));
    vst_record_operator_exit(VST_EXIT, outer, 0);
    CHECK_INT(pthread_create(&thread, NULL, end_far, &far), 0);
    pthread_join(thread, NULL);
    vst_record_operator(after, 0, NULL, 0);
    vst_record_operator_exit(VST_EXIT, after, 0);
    vst_record_operator_exit(VST_EXIT, far, 77); /* the exit gives the number,
                                                  * too, but late */
    CHECK_INT(vst_session_stop(session), VST_OK);
    s = seen_in(session, (seen){
                             .far_id = far,
                             .after_id = after,
                             .outer_id = outer,
                         });
    CHECK_INT(s.far_count, 1);
    CHECK_INT(s.far.flags, VST_SPAN_ASYNC);
    CHECK_INT(s.far.thread, s.outer.thread);
    CHECK(s.far.start_ns >= s.outer.start_ns);
    CHECK(s.far.start_ns <= s.outer.end_ns);
    CHECK(s.far.end_ns >= s.outer.end_ns);
    CHECK(s.far.end_ns <= s.after.start_ns);
    CHECK_INT(s.outer.flags, 0);
    CHECK_INT(s.outer.children_ns, 0);
    CHECK(strstr(s.far_args, "\"Sequence number\": 5") != NULL);
    vst_session_destroy(session);
}

static void a_span_that_another_thread_ends_too_late_is_open_at_the_end(void)
{
    vst_session *session = started();
    vst_id far = define(VST_DEF_ANNOTATION, "waits");
    pthread_t thread;
    seen s;

    CHECK(vst_record_operator(far, 77, NULL, 0));
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    CHECK_INT(pthread_create(&thread, NULL, end_far, &far), 0);
    pthread_join(thread, NULL);
    CHECK_INT(vst_session_stop(session), VST_OK);
    s = seen_in(session, (seen){.far_id = far});
    CHECK_INT(s.far_count, 1);
    CHECK_INT(s.far.flags, VST_SPAN_OPEN_AT_END);
    vst_session_destroy(session);
}

/* Records an annotation like torch's record_function, whose Python functions
 * are recorded, too. */
static void an_annotation_is_shown_around_what_is_between(void)
{
    vst_session *session = started();
    vst_id enter = define(VST_DEF_PYTHON, "__enter__");
    vst_id leave = define(VST_DEF_PYTHON, "__exit__");
    vst_id step = define(VST_DEF_ANNOTATION, "step");
    char *text;

    vst_record(VST_ENTER, enter);
    vst_record_operator(step, 9, NULL, 0);
    vst_record(VST_EXIT, enter);
    vst__record_settle(false);
    vst__record_settle(true);
    vst_record(VST_ENTER, leave);
    vst_record_operator_exit(VST_EXIT, step, 9);
    vst_record(VST_EXIT, leave);
    vst__record_settle(false);
    vst__record_settle(true);
    text = exported(session);
    expect_line(text, "{\"ph\": \"X\", \"cat\": \"user_annotation\", "
                      "\"name\": \"step\"");
    CHECK(strstr(text, "\"ph\": \"b\"") == NULL);
    free(text);
}

/* ---- facts -------------------------------------------------------------- */

static const vst__operator_wish NOTHING_MORE, EVERYTHING = {true, true};

static void all_kinds_of_inputs_are_read(void)
{
    static const unsigned char facts[] = {
        VST_FACT_TENSOR,
        5,
        'f',
        'l',
        'o',
        'a',
        't',
        2,
        4,
        16,
        2,
        16,
        2,
        VST_FACT_OTHER,
        VST_FACT_INTEGER,
        3,
        VST_FACT_DOUBLE,
        0,
        0,
        0,
        0,
        0,
        0,
        0xe0,
        0x3f,
        VST_FACT_BOOL,
        1,
        VST_FACT_INTEGERS,
        2,
        2,
        3,
        VST_FACT_TENSORS,
        1,
        VST_FACT_TENSOR,
        1,
        'i',
        1,
        2,
        0,
        VST_FACT_TENSORS_LONG,
        VST_FACT_NAMED,
        1,
        'k',
        VST_FACT_TEXT,
        2,
        '"',
        'v',
        VST_FACT_NAMED,
        1,
        'l',
        VST_FACT_INTEGERS,
        2,
        2,
        3,
        VST_FACT_FLOPS,
        200,
        1,
        VST_FACT_RECORD,
        5,
    };
    uint64_t payload[32] = {UINT64_MAX, 0};
    vst_operator op;
    vst__text text = {NULL, 0, 0, 0, false};
    char *read;

    memcpy(&payload[2], facts, sizeof facts);
    CHECK(vst__operator_read(payload, 32, NOTHING_MORE, &op, &text));
    CHECK_INT(op.sequence, -1);
    CHECK_INT(op.record, 0); /* only nodes have record numbers */
    read = strndup(text.bytes, text.count);
    CHECK_TEXT(read,
               ", \"Concrete Inputs\": [\"\", \"\", \"-2\", \"0.5\", \"True\", "
               "\"[1, -2]\", \"\", \"\"], \"Input type\": [\"float\", \"\", "
               "\"Scalar\", \"Scalar\", \"Scalar\", \"ScalarList\", "
               "\"TensorList\", \"TensorList\"], \"Input Strides\": [[8, 1], "
               "[], [], [], [], [], [[]], []], \"Input Dims\": [[2, 8], [], "
               "[], [], [], [], [[1]], []], \"k\": \"\\\"v\", "
               "\"l\": [1, -2], "
               "\"Flops\": 200");
    free(read);
    free(text.bytes);
}

/* A list of one tensor, and the address of the tensor. */
static void where_tensors_lie_is_read_if_wanted(void)
{
    static const unsigned char facts[] = {
        VST_FACT_TENSORS,
        1,
        VST_FACT_TENSOR,
        1,
        'i',
        1,
        2,
        0,
        VST_FACT_KEYWORDS,
        2,
        '{',
        '}',
        VST_FACT_TENSORS_AT,
        1,
        7,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        1,
        0,
        0,
        0,
        0,
        0,
        0, /* 256 */
        3,
        0,
        VST_TENSOR_REQUIRES_GRAD,
        6,
        1 /* -1 */,
    };
    uint64_t payload[8] = {UINT64_MAX, 2 << 24 | 5}; /* arrows from thread 5 to
                                                      * thread 2 */
    vst_operator op;
    vst__text text = {NULL, 0, 0, 0, false};
    char *read;

    memcpy(&payload[2], facts, sizeof facts);
    CHECK(vst__operator_read(payload, 8, EVERYTHING, &op, &text));
    read = strndup(text.bytes, text.count);
    CHECK_TEXT(read, ", \"Fwd thread id\": 2, \"Thread id\": 5, "
                     "\"Concrete Inputs\": [\"\"], \"Input type\": "
                     "[\"TensorList\"], \"Input Strides\": [[[]]], "
                     "\"Input Dims\": [[[1]]], \"Keyword inputs\": \"{}\", "
                     "\"Tensors\": [[7, 256, 3, 0, 1, 6, -1]]");
    free(read);
    CHECK(vst__operator_read(payload, 8, NOTHING_MORE, &op, &text));
    read = strndup(text.bytes, text.count);
    CHECK(strstr(read, "Keyword") == NULL && strstr(read, "Tensors") == NULL);
    CHECK(strstr(read, "hread id") == NULL);
    free(read);
    free(text.bytes);
}

static void any_bytes_at_all_give_json_or_less(void)
{
    uint64_t payload[40];
    vst_operator op;
    vst__text text = {NULL, 0, 0, 0, false};
    uint32_t seed = 1;

    for (int turn = 0; turn < 20000; turn++) {
        unsigned char *bytes = (unsigned char *)payload;
        for (size_t i = 0; i < sizeof payload; i++) {
            seed = seed * 1664525u + 1013904223u;
            bytes[i] = (unsigned char)(seed >> 24) & (turn & 1 ? 0x1f : 0xff);
        }
        CHECK(vst__operator_read(payload, (uint32_t)turn % 41,
                                 turn & 2 ? EVERYTHING : NOTHING_MORE, &op,
                                 &text));
        if (text.count > 2)
            CHECK(vst__json_is_members(text.bytes + 2, text.count - 2));
    }
    free(text.bytes);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    TEST(nothing_is_recorded_without_a_recording);
    TEST(an_operator_has_its_numbers);
    TEST(an_arrow_leads_from_the_inner_forward_to_the_backward);
    TEST(a_span_that_another_thread_ends_has_its_true_times);
    TEST(a_span_that_another_thread_ends_too_late_is_open_at_the_end);
    TEST(an_annotation_is_shown_around_what_is_between);
    TEST(all_kinds_of_inputs_are_read);
    TEST(where_tensors_lie_is_read_if_wanted);
    TEST(any_bytes_at_all_give_json_or_less);
    rmdir(folder);
    return checks_end();
}
