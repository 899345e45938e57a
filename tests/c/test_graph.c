/* Nodes of execution traces: the parent of each node, on one thread and on
 * several, in one recording and in pieces, also where ends or beginnings are
 * missing; and files that were cut or changed at any place: every node of their
 * documents has a parent. */
#include <pthread.h>
#include <sys/stat.h>

#include "check.h"
#include "execution_traces.h"
#include "graph/nodes.h"
#include "trace_builder.h"
#include "whole_files.h"

static unsigned long long id_of(const char *text, unsigned long long record)
{
    return number_behind(node_of(text, record), "\"id\": ");
}

static unsigned long long parent_of(const char *text, unsigned long long record)
{
    return number_behind(node_of(text, record), "\"ctrl_deps\": ");
}

static unsigned long long forward_of(const char *text,
                                     unsigned long long record)
{
    return number_behind(attributes_of(text, record),
                         ATTRIBUTE_KEY("fw_parent"));
}

/* ---- one thread --------------------------------------------------------- */

static void parents_are_the_nodes_that_are_open(void)
{
    static node_bytes b;
    vst_session *session = started(0);
    vst_id sum = define(VST_DEF_OPERATOR, "aten::sum");
    vst_id plain = define(VST_DEF_NATIVE, "f");
    char *text;

    b.count = 0;
    put_number(&b, 1);
    enter_node(sum, 10, &b);
    vst_record_operator(plain, 0, NULL, 0); /* no node */
    enter_node(sum, 11, &b);
    leave_node(sum, 11, &b);
    vst_record_operator_exit(VST_EXIT, plain, 0);
    enter_node(sum, 12, &b);
    leave_node(sum, 12, NULL); /* gave nothing */
    enter_node(sum, 13, &b);
    vst_record_operator_exit(VST_RAISE, sum, 0);
    leave_node(sum, 10, &b);
    enter_node(sum, 14, &b);
    leave_node(sum, 14, &b);
    text = finished(session);
    CHECK_INT(check_document(text), 7);
    CHECK_INT(parent_of(text, 10), 2);
    CHECK_INT(parent_of(text, 11), id_of(text, 10));
    CHECK_INT(parent_of(text, 12), id_of(text, 10));
    CHECK_INT(parent_of(text, 13), id_of(text, 10));
    CHECK_INT(parent_of(text, 14), 2);
    free(text);
}

static void what_is_open_at_the_end_is_there_without_outputs(void)
{
    vst_session *session = started(0);
    vst_id id = define(VST_DEF_OPERATOR, "aten::sum");
    static node_bytes b;
    char *text;

    b.count = 0;
    put_number(&b, 1);
    enter_node(id, 10, &b);
    enter_node(id, 11, &b);
    record_bytes(&b, 99, VST_NODE_OUTPUTS, 1, VST_ESCAPE_WORDS_MAX);
    text = finished(session);
    CHECK_INT(check_document(text), 4);
    CHECK_INT(parent_of(text, 11), id_of(text, 10));
    expect_line(node_of(text, 10), "\"inputs\": {\"values\": [1]");
    CHECK(node_of(text, 10) > node_of(text, 11));
    free(text);
}

static void a_node_that_another_window_ends_has_its_outputs(void)
{
    vst_session *session = started(0);
    vst_id id = define(VST_DEF_OPERATOR, "aten::sum");
    static node_bytes b;
    char *text;

    b.count = 0;
    put_number(&b, 5);
    enter_node(id, 10, NULL);
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    id = define(VST_DEF_OPERATOR, "aten::sum");
    enter_node(id, 12, NULL);
    record_bytes(&b, 10, VST_NODE_OUTPUTS, 1, VST_ESCAPE_WORDS_MAX);
    leave_node(id, 12, &b);
    text = finished(session);
    CHECK_INT(check_document(text), 4);
    expect_line(node_of(text, 10), "\"outputs\": {\"values\": [5]");
    free(text);
}

/* A scope that is begun and ended by its own functions, and a scope that stays
 * open while others begin and end. */
static void spans_that_need_not_nest_are_nodes_too(void)
{
    vst_session *session = started(0);
    vst_id call = define(VST_DEF_NATIVE, "__enter__");
    vst_id scope = define(VST_DEF_ANNOTATION, "step");
    vst_id id = define(VST_DEF_OPERATOR, "aten::sum");
    static node_bytes b;
    char *text;

    b.count = 0;
    put_byte(&b, VST_VALUE_THREAD);
    put_count(&b, 1);
    vst_record(VST_ENTER, call);
    vst_record_begin(scope, 1);
    record_bytes(&b, 10, 0, 1, VST_ESCAPE_WORDS_MAX);
    vst_record(VST_EXIT, call);
    enter_node(id, 11, NULL);
    leave_node(id, 11, NULL);
    vst_record_end(scope, 1);
    enter_node(id, 12, NULL);
    leave_node(id, 12, NULL);
    text = finished(session);
    CHECK_INT(check_document(text), 5);
    CHECK_INT(parent_of(text, 11), id_of(text, 10));
    CHECK_INT(parent_of(text, 12), 2);
    expect_line(node_of(text, 10), "\"scope\", \"type\": \"uint64\", "
                                   "\"value\": 7}");
    free(text);
}

static void one_observers_nodes_can_be_had_alone(void)
{
    vst_session *session = started(0);
    vst_id id = define(VST_DEF_OPERATOR, "aten::sum");
    uint64_t words[2] = {UINT64_MAX, vst_operator_word(1, 0, 0)};
    static const node_bytes none;
    vst_trace *trace = NULL;
    char *text;

    for (unsigned observer = 1; observer <= 3; observer++) {
        vst_record_operator(id, 0, words, 2);
        record_bytes(&none, 10 + observer, 0, observer, 2);
        vst_record_operator_exit(VST_EXIT, id, 0);
    }
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    text = export_all(&trace, 1, 2, VST_OK);
    CHECK_INT(check_document(text), 3);
    CHECK_INT(id_of(text, 12), 3);
    free(text);
    vst_trace_close(trace);
    vst_session_destroy(session);
}

/* ---- threads ------------------------------------------------------------ */

typedef struct other {
    vst_id id;
    unsigned thread;
    uint64_t first;
} other;

static void *run_backward(void *argument)
{
    const other *self = argument;
    uint64_t words[2] = {
        3, vst_operator_word(self->thread, 1, VST_SCOPE_BACKWARD)};
    static const node_bytes none;

    vst_record_operator(self->id, 0, words, 2);
    record_bytes(&none, self->first, 0, 1, 2);
    vst_record_operator_exit(VST_EXIT, self->id, 0);
    return NULL;
}

static void a_forward_parent_is_what_is_open_there_then(void)
{
    vst_session *session = started(0);
    vst_id id = define(VST_DEF_OPERATOR, "aten::sum");
    pthread_t thread;
    char *text;

    enter_node(id, 10, NULL);
    leave_node(id, 10, NULL);
    for (unsigned i = 0; i < 3; i++) {
        other one = {id, 2 + i, 20 + i};
        if (i == 1)
            enter_node(id, 11, NULL);
        CHECK_INT(pthread_create(&thread, NULL, run_backward, &one), 0);
        pthread_join(thread, NULL);
        if (i == 1)
            leave_node(id, 11, NULL);
    }
    text = finished(session);
    CHECK_INT(forward_of(text, 20), 2);
    CHECK_INT(forward_of(text, 21), id_of(text, 11));
    CHECK_INT(forward_of(text, 22), 2);
    CHECK(parent_of(text, 21) != parent_of(text, 20));
    free(text);
}

static void *run_many(void *argument)
{
    const other *self = argument;
    uint64_t words[2] = {UINT64_MAX, vst_operator_word(self->thread, 0, 0)};
    static const node_bytes none;

    for (uint64_t i = 0; i < 300; i += 2) {
        vst_record_operator(self->id, 0, words, 2);
        record_bytes(&none, self->first + i, 0, 1, 2);
        vst_record_operator(self->id, 0, words, 2);
        record_bytes(&none, self->first + i + 1, 0, 1, 2);
        record_bytes(&none, self->first + i + 1, VST_NODE_OUTPUTS, 1, 2);
        vst_record_operator_exit(VST_EXIT, self->id, 0);
        vst_record_operator_exit(VST_EXIT, self->id, 0);
    }
    return NULL;
}

static vst_status note_id(void *ctx, uint64_t record, uint64_t id)
{
    ((uint64_t *)ctx)[record] = id;
    return VST_OK;
}

static void threads_have_roots_and_every_node_its_own(void)
{
    vst_session *session = started(0);
    vst_id id = define(VST_DEF_OPERATOR, "aten::sum");
    static uint64_t ids[8 * 300 + 1];
    vst_trace *trace = NULL;
    other others[8];
    pthread_t threads[8];
    size_t wrong = 0, count;
    char *text;
    node_head *heads;

    for (unsigned i = 0; i < 8; i++) {
        others[i] = (other){id, 1 + i, 1 + 300 * i};
        CHECK_INT(pthread_create(&threads[i], NULL, run_many, &others[i]), 0);
    }
    for (unsigned i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    CHECK_INT(
        vst__traces_node_ids(&trace, 1, VST_WINDOW_ALL, 0, note_id, ids, NULL),
        VST_OK);
    text = export_all(&trace, 1, 0, VST_OK);
    CHECK_INT(check_document(text), 1 + 8 + 8 * 300);
    heads = heads_of(text, &count);
    for (size_t i = 0; i < count; i++)
        if (heads[i].record != 0)
            wrong += ids[heads[i].record] != heads[i].id ||
                     (heads[i].record % 2 == 0 &&
                      heads[i].parent != ids[heads[i].record - 1]);
    CHECK_INT(wrong, 0);
    free(heads);
    free(text);
    vst_trace_close(trace);
    vst_session_destroy(session);
}

/* ---- several traces ----------------------------------------------------- */

static vst_trace *piece(uint64_t record)
{
    vst_session *session = started(0);
    vst_id id = define(VST_DEF_OPERATOR, record % 2 ? "odd" : "even");
    static node_bytes b;
    vst_trace *trace = NULL;

    b.count = 0;
    put_tensor(&b, 0x1000, 0x9000, 2, 3);
    enter_node(id, record, &b);
    leave_node(id, record, &b);
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &trace, NULL), VST_OK);
    vst_session_destroy(session);
    return trace;
}

static void pieces_of_a_process_are_one_document(void)
{
    vst_trace *traces[3] = {piece(1), piece(2), piece(3)};
    vst_trace *mixed[3] = {traces[2], traces[0], traces[1]};
    char *text = export_all(mixed, 3, 0, VST_OK);

    CHECK_INT(check_document(text), 5);
    CHECK_INT(id_of(text, 1), 3);
    CHECK_INT(id_of(text, 2), 6);
    CHECK_INT(id_of(text, 3), 7);
    expect_line(node_of(text, 3), "[[4,5,0,6,4,\"cpu\"]]");
    expect_line(text, "\"id\": 6, \"name\": \"even\"");
    free(text);
    for (size_t i = 0; i < 3; i++)
        vst_trace_close(traces[i]);
}

/* A recording that another recording interrupts, and that then continues. */
static void windows_of_several_traces_are_in_order_of_time(void)
{
    vst_session *session = started(0);
    vst_id id = define(VST_DEF_OPERATOR, "aten::sum");
    vst_trace *traces[2] = {NULL, NULL};
    char *text;

    enter_node(id, 11, NULL);
    leave_node(id, 11, NULL);
    CHECK_INT(vst_session_stop(session), VST_OK);
    traces[1] = piece(12);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    enter_node(id, 13, NULL);
    leave_node(id, 13, NULL);
    CHECK_INT(vst_session_stop(session), VST_OK);
    CHECK_INT(vst_session_open_trace(session, &traces[0], NULL), VST_OK);
    text = export_all(traces, 2, 0, VST_OK);
    CHECK_INT(check_document(text), 5);
    CHECK(id_of(text, 11) < id_of(text, 12));
    CHECK(id_of(text, 12) < id_of(text, 13));
    free(text);
    vst_trace_close(traces[0]);
    vst_trace_close(traces[1]);
    vst_session_destroy(session);
}

static void several_processes_are_an_error(void)
{
    vst_trace *traces[2] = {piece(1), NULL};
    builder b;

    builder_init(&b);
    CHECK_INT(builder_open(&b, &traces[1], NULL), VST_OK);
    export_all(traces, 2, 0, VST_E_PROCESSES);
    vst_trace_close(traces[0]);
    vst_trace_close(traces[1]);
    builder_free(&b);
}

/* ---- what was dropped, cut or changed ----------------------------------- */

static void record_some(vst_id id, size_t count, uint64_t first)
{
    static node_bytes b;

    for (size_t i = 0; i < count; i++) {
        b.count = 0;
        put_tensor(&b, 0x1000 + 64 * (i % 50), 0x9000 + i % 7, 2, 3);
        put_list(&b, VST_VALUE_LIST, 2);
        put_double(&b, (double)i / 3);
        put_string(&b, VST_VALUE_STRING, "a\"\xff");
        enter_node(id, first + 3 * i, &b);
        enter_node(id, first + 3 * i + 1, i % 5 ? &b : NULL);
        leave_node(id, first + 3 * i + 1, i % 3 ? &b : NULL);
        leave_node(id, first + 3 * i, &b);
    }
}

static void a_bounded_recording_has_the_last_nodes(void)
{
    vst_session *session = started((uint64_t)1 << 20);
    vst_id id = define(VST_DEF_OPERATOR, "aten::sum");
    char *text;
    size_t count;

    enter_node(id, 1, NULL); /* the node is dropped, but open until the end */
    record_some(id, 20000, 2);
    leave_node(id, 1, NULL);
    text = finished(session);
    count = check_document(text);
    CHECK(count > 1000 && count < 40000);
    CHECK(*node_of(text, 2 + 3 * 19999) != '\0');
    CHECK(*node_of(text, 2) == '\0');
    free(text);
}

static uint32_t random_state = 1;

static uint32_t any(uint32_t below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)random_state * below >> 32);
}

/* Opens and reads bytes that may be a damaged trace. */
static void try_bytes(unsigned char *bytes, size_t count, size_t *opened)
{
    vst_trace *trace = NULL;

    write_whole(in_folder("d.vst"), bytes, count);
    if (vst_trace_open(in_folder("d.vst"), &trace, NULL) == VST_OK) {
        char *text = export_all(&trace, 1, 0, VST_OK);
        ++*opened;
        check_document(text);
        free(text);
        vst_trace_close(trace);
    }
}

/* Records lie behind the headers of the file and of its chunks. */
static void any_cut_or_change_gives_a_whole_document(void)
{
    vst_session_options options = {.path = in_folder("t.vst")};
    vst_session *session = NULL;
    const unsigned rounds = 300 / check_step(1, 4);
    size_t count, opened = 0, changed = 0;
    unsigned char *whole, *copy;

    CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    record_some(define(VST_DEF_OPERATOR, "aten::sum"), 200, 1);
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    vst_session_destroy(session);
    whole = read_whole(in_folder("t.vst"), &count);
    copy = malloc(count);
    for (unsigned i = 0; i < rounds; i++) {
        size_t left = i % 3 ? count : any((uint32_t)count);
        memcpy(copy, whole, count);
        for (uint32_t k = i % 3 ? 1 + any(40) : 0; k != 0; k--) {
            uint32_t at = any((uint32_t)count);
            changed += at > 8192;
            if (at > 8192 || i % 7 == 0)
                copy[at] = (unsigned char)(copy[at] ^ 1u << any(8));
        }
        try_bytes(copy, left, &opened);
    }
    CHECK(opened > rounds / 3 && changed > rounds * 3);
    free(whole);
    free(copy);
    remove(in_folder("t.vst"));
    remove(in_folder("d.vst"));
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    TEST(parents_are_the_nodes_that_are_open);
    TEST(what_is_open_at_the_end_is_there_without_outputs);
    TEST(a_node_that_another_window_ends_has_its_outputs);
    TEST(spans_that_need_not_nest_are_nodes_too);
    TEST(one_observers_nodes_can_be_had_alone);
    TEST(a_forward_parent_is_what_is_open_there_then);
    TEST(threads_have_roots_and_every_node_its_own);
    TEST(pieces_of_a_process_are_one_document);
    TEST(windows_of_several_traces_are_in_order_of_time);
    TEST(several_processes_are_an_error);
    TEST(a_bounded_recording_has_the_last_nodes);
    TEST(any_cut_or_change_gives_a_whole_document);
    rmdir(folder);
    return checks_end();
}
