/* Reading a trace while it grows: a file that grows piece by piece, cut at any
 * place a writer can have reached, gives the spans that replaying the whole
 * file gives. */
#include "base/grow.h"
#include "check.h"
#include "growing_file.h"
#include "view/follow/followers.h"
#include "view/walk_match.h"

enum { FLAGS = 127, THREADS = 8, WINDOWS = 4 };

typedef struct spans {
    vst__walk_span *spans;
    size_t count, capacity;
} spans;

/* The order by window and thread. */
typedef struct read_spans {
    spans of[WINDOWS][THREADS];
    uint64_t losses;
} read_spans;

static void keep(read_spans *read, uint32_t window, uint32_t thread,
                 const vst__walk_span *span)
{
    spans *to = &read->of[window][thread];
    vst__walk_span *grown =
        vst__grow(to->spans, &to->capacity, to->count + 1, sizeof *grown);

    if (grown == NULL)
        abort();
    to->spans = grown;
    grown[to->count] = *span;
    grown[to->count++].flags &= FLAGS;
}

static void free_read(read_spans *read)
{
    for (size_t i = 0; i < WINDOWS; i++)
        for (size_t j = 0; j < THREADS; j++)
            free(read->of[i][j].spans);
    memset(read, 0, sizeof *read);
}

/* ---- the whole file in one batch ----------------------------------------- */

typedef struct at_once {
    read_spans *read;
    uint32_t window;
} at_once;

static vst_status take_span(void *ctx, const vst_span *span)
{
    const at_once *self = ctx;

    keep(self->read, self->window, span->thread,
         &(vst__walk_span){.start_ns = span->start_ns,
                           .end_ns = span->end_ns,
                           .id = span->id,
                           .flags = span->flags,
                           .depth = span->depth});
    return VST_OK;
}

static vst_status take_loss(void *ctx, const vst_loss *loss)
{
    (void)loss;
    ((const at_once *)ctx)->read->losses++;
    return VST_OK;
}

static void replay(const char *path, read_spans *read)
{
    at_once self = {.read = read};
    vst_sink sink = {.ctx = &self, .span = take_span, .loss = take_loss};
    vst_trace *trace;

    if (!CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK))
        return;
    for (; self.window < trace->window_count; self.window++)
        CHECK_INT(vst_trace_replay(trace, (int)self.window, NULL, &sink, NULL),
                  VST_OK);
    vst_trace_close(trace);
}

/* ---- in steps ------------------------------------------------------------ */

static vst_status count_loss(void *ctx, const vst_loss *loss)
{
    (void)loss;
    ((read_spans *)ctx)->losses++;
    return VST_OK;
}

static void take_batch(const vst__follower *follower, read_spans *read)
{
    for (size_t i = 0; i < follower->walk.span_count; i++)
        keep(read, follower->window, follower->thread,
             &follower->walk.spans[i]);
}

static void read_more(vst__following *following, read_spans *read, bool ends)
{
    vst_sink also = {.ctx = read, .loss = count_loss};

    for (size_t i = 0; i < following->count; i++) {
        vst__follower *follower = following->followers[i];
        bool more;

        follower->walk.event_sink = &also;
        CHECK_INT(vst__follower_begin(following, follower, &more), VST_OK);
        while (more) {
            if (!CHECK_INT(vst__follower_next(follower, &more), VST_OK))
                break;
            take_batch(follower, read);
        }
        if (ends) {
            follower->walk.span_count = 0;
            CHECK_INT(vst__walk_finish(&follower->walk), VST_OK);
            take_batch(follower, read);
        }
        vst__follower_end(follower);
    }
}

/* ---- both --------------------------------------------------------------- */

/* Spans that are cut off at the same moment come in any order. */
static int by_end(const void *a, const void *b)
{
    const vst__walk_span *x = a, *y = b;

    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return memcmp(x, y, sizeof *x);
}

static void sort(const spans *of)
{
    if (of->count > 1)
        qsort(of->spans, of->count, sizeof *of->spans, by_end);
}

static void compare(const read_spans *steps, const read_spans *whole)
{
    for (size_t i = 0; i < WINDOWS; i++)
        for (size_t j = 0; j < THREADS; j++) {
            const spans *a = &steps->of[i][j], *b = &whole->of[i][j];

            CHECK_INT(a->count, b->count);
            sort(a);
            sort(b);
            for (size_t k = 0; k < a->count && k < b->count; k++)
                if (!CHECK(memcmp(&a->spans[k], &b->spans[k],
                                  sizeof a->spans[k]) == 0))
                    return;
        }
    CHECK_INT(steps->losses, whole->losses);
}

static void follow(const view_random *random)
{
    vst__following following = {0};
    read_spans steps = {0}, whole = {0};
    growing file;

    growing_begin(&file, random);
    if (CHECK_INT(vst__following_open(&following, file.path, NULL), VST_OK)) {
        while (file.shown < file.chunk_count ||
               random_number(&file.random) % 8 != 0) {
            read_more(&following, &steps, false);
            growing_more(&file);
            growing_write(&file, &file.now);
            CHECK_INT(vst__following_grow(&following, NULL), VST_OK);
        }
        read_more(&following, &steps, false);
        growing_write(&file, &file.whole);
        CHECK_INT(vst__following_grow(&following, NULL), VST_OK);
        read_more(&following, &steps, true);
        replay(file.path, &whole);
        compare(&steps, &whole);
    }
    vst__following_close(&following);
    free_read(&steps);
    free_read(&whole);
    growing_end(&file);
}

static void calls_read_in_steps_are_those_of_one_replay(void)
{
    for (unsigned i = 1; i <= 40 / check_step(1, 2) && checks_bad == 0; i++)
        follow(&(view_random){.state = i,
                              .threads = 1 + i % 5,
                              .windows = 1 + i % 3,
                              .pages = 1 + i % 3,
                              .chunks = 1 + i % 6});
}

static void so_are_records_of_any_kind_in_any_order(void)
{
    for (unsigned i = 1; i <= 60 / check_step(1, 2) && checks_bad == 0; i++)
        follow(&(view_random){.state = 1000 + i,
                              .threads = 1 + i % 4,
                              .windows = 1 + i % 2,
                              .pages = 1 + i % 2,
                              .chunks = 2 + i % 5,
                              .odd = i % 3 == 0 ? 400 : 20});
}

int main(void)
{
    TEST(calls_read_in_steps_are_those_of_one_replay);
    TEST(so_are_records_of_any_kind_in_any_order);
    return checks_end();
}
