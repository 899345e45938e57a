/* Views draw what a framework's backends reported: in lanes of the thread that
 * ran it, whichever thread told it, and in traces of many records. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vestige/operator.h>
#include <vestige/session.h>
#include <vestige/view.h>

#include "check.h"
#include "exported.h"

enum { MANY = 30000 }; /* calls: more than one checkpoint, and levels */

typedef struct told {
    vst_id delegate, call;
    int64_t base_ns; /* of the reports' times */
    uint64_t worker; /* as the system knows it */
} told;

static vst_id define(const char *name)
{
    vst_definition definition = {.kind = VST_DEF_OPERATOR,
                                 .name = name,
                                 .name_len = (uint32_t)strlen(name),
                                 .file = ""};

    return vst_recording_define(&definition);
}

static void report(const told *t, uint64_t tid, int64_t start_ns,
                   int64_t end_ns, char backend)
{
    unsigned char facts[8] = {VST_FACT_NAMED,         1, 'B', VST_FACT_TEXT, 1,
                              (unsigned char)backend, 0};
    uint64_t payload[7] = {t->delegate, tid, (uint64_t)(t->base_ns + start_ns),
                           (uint64_t)(t->base_ns + end_ns), UINT64_MAX};

    memcpy(payload + 6, facts, sizeof facts);
    vst_record_reported(payload, 7);
}

static void *work(void *argument)
{
    told *t = argument;

    t->worker = (uint64_t)syscall(SYS_gettid);
    for (int i = 0; i < MANY; i++) {
        vst_record_operator(t->call, 0, NULL, 0);
        vst_record_operator_exit(VST_EXIT, t->call, 0);
    }
    return NULL;
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* The main thread calls, and tells what the worker ran: two spans that overlap
 * and one behind them, not in their order; and one of a thread that nobody
 * knows. */
static told record(const char *path)
{
    vst_session_options options = {.path = path};
    vst_session *session = NULL;
    told t = {0};
    pthread_t thread;

    CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    t.delegate = define("delegate");
    t.call = define("call");
    t.base_ns = now_ns();
    CHECK_INT(pthread_create(&thread, NULL, work, &t), 0);
    pthread_join(thread, NULL);
    for (int i = 0; i < MANY; i++) {
        vst_record_operator(t.call, 0, NULL, 0);
        vst_record_operator_exit(VST_EXIT, t.call, 0);
    }
    report(&t, t.worker, 5000, 6000, 'c');
    report(&t, t.worker, 2000, 4000, 'b');
    report(&t, t.worker, 1000, 3000, 'a');
    report(&t, UINT64_MAX, 7000, 9000, 'd');
    report(&t, t.worker, 9000, 8000, 'x'); /* ends before it begins */
    CHECK_INT(vst_session_stop(session), VST_OK);
    vst_session_destroy(session);
    return t;
}

/* How many rectangles of reports a window has in a row. */
static unsigned drawn(vst_view *view, const told *t, uint32_t thread,
                      uint32_t depth, uint32_t pixels)
{
    vst_view_range range = {
        t->base_ns, t->base_ns + 10000, pixels, NULL, 0, 0, NULL, NULL};
    const vst_view_row *rows;
    const vst_view_rect *rects;
    vst_view_head head;
    unsigned found = 0;
    void *bytes;
    size_t size;

    if (!CHECK_INT(vst_view_window(view, &range, &bytes, &size, NULL), VST_OK))
        return 0;
    memcpy(&head, bytes, sizeof head);
    rows = (const void *)((const char *)bytes + sizeof head);
    rects = (const void *)(rows + head.rows);
    for (uint32_t i = 0; i < head.rows; i++)
        for (uint32_t j = 0; j < rows[i].rects; j++)
            found +=
                rows[i].thread == thread && rows[i].depth == depth &&
                (rects[rows[i].first + j].id & VST_VIEW_ID_MASK) == t->delegate;
    free(bytes);
    return found;
}

static void check_span(vst_view *view, const told *t, uint32_t thread,
                       uint32_t depth, int64_t at_ns, const char *expected,
                       int64_t start_ns, int64_t end_ns)
{
    vst_view_span span;

    if (!CHECK_INT(vst_view_span_at(view, thread, depth, t->base_ns + at_ns,
                                    &span, NULL),
                   VST_OK))
        return;
    CHECK_INT(span.id, t->delegate);
    CHECK_INT(span.start_ns - t->base_ns, start_ns);
    CHECK_INT(span.end_ns - t->base_ns, end_ns);
    CHECK_INT(span.flags, VST_SPAN_ASYNC | VST_SPAN_REPORTED);
    CHECK(span.args_len == strlen(expected) &&
          memcmp(span.args, expected, span.args_len) == 0);
    vst_view_span_free(&span);
}

static void check_view(vst_view *view, const told *t)
{
    vst_view_range all = {t->base_ns, t->base_ns + 10000, 10, NULL, 0, 0, NULL,
                          NULL};
    vst_view_thread worker = {0}, main_thread = {0}, thread;
    vst_view_ids ids = {&t->delegate, 1};
    vst_view_span span;
    uint32_t counts[10];

    for (size_t i = 0; i < vst_view_thread_count(view); i++) {
        vst_view_get_thread(view, i, &thread);
        *(thread.system_tid == t->worker ? &worker : &main_thread) = thread;
    }
    CHECK_INT(worker.levels, 1);
    CHECK_INT(worker.beside, 2);
    CHECK_INT(worker.spans, MANY + 3);
    CHECK_INT(main_thread.beside, 1);
    CHECK_INT(main_thread.spans, MANY + 1);
    check_span(view, t, worker.number, 1, 1500, "\"B\": \"a\"", 1000, 3000);
    check_span(view, t, worker.number, 2, 2500, "\"B\": \"b\"", 2000, 4000);
    check_span(view, t, worker.number, 1, 5500, "\"B\": \"c\"", 5000, 6000);
    check_span(view, t, main_thread.number, 1, 8000, "\"B\": \"d\"", 7000,
               9000);
    CHECK_INT(vst_view_span_at(view, worker.number, 1, t->base_ns + 4500, &span,
                               NULL),
              VST_E_ARGUMENT);
    CHECK_INT(drawn(view, t, worker.number, 1, 1000), 2);
    CHECK_INT(drawn(view, t, worker.number, 2, 1000), 1);
    CHECK_INT(drawn(view, t, main_thread.number, 1, 1000), 1);
    CHECK_INT(vst_view_find(view, &all, &ids, counts, NULL), VST_OK);
    CHECK_INT(counts[1] + counts[2] + counts[5] + counts[7], 4);
    all.from_ns = t->base_ns + 2500;
    CHECK_INT(vst_view_next(view, &all, &ids, false, &span, NULL), VST_OK);
    CHECK_INT(span.start_ns, t->base_ns + 5000);
}

static void what_backends_reported_is_drawn_below_the_thread_that_ran_it(void)
{
    told t = record(in_folder("t.vst"));
    vst_view_options ways[] = {{.workers = 1}, /* builds the index */
                               {.workers = 1}, /* reads it */
                               {.no_file = true, .workers = 2},
                               {.follow = true}};

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        vst_view *view = NULL;
        vst_view_info info;

        if (!CHECK_INT(vst_view_open(in_folder("t.vst"), &ways[i], &view, NULL),
                       VST_OK))
            continue;
        vst_view_get_info(view, &info);
        CHECK_INT(info.spans, 2 * MANY + 4);
        CHECK(info.built == (i != 1));
        check_view(view, &t);
        vst_view_close(view);
    }
    CHECK_INT(remove(in_folder("t.vst")), 0);
    CHECK_INT(remove(in_folder("t.vst.view")), 0);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    TEST(what_backends_reported_is_drawn_below_the_thread_that_ran_it);
    rmdir(folder);
    return checks_end();
}
