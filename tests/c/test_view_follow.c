/* After each step of a growing trace, a view that follows the file shows the
 * same as a view newly opened on the file. */

#include "check.h"
#include "growing_file.h"
#include "view/view.h"

typedef struct views {
    vst_view *followed, *fresh;
    view_random *random;
} views;

static void check_threads(const views *v)
{
    vst_view_info a, b;

    vst__view_get_info(v->followed, &a);
    vst__view_get_info(v->fresh, &b);
    CHECK_INT(a.spans, b.spans);
    CHECK_INT(a.records, b.records);
    CHECK_INT(a.end_ns, b.end_ns);
    if (!CHECK_INT(vst__view_thread_count(v->followed),
                   vst__view_thread_count(v->fresh)))
        return;
    for (size_t i = 0; i < vst__view_thread_count(v->fresh); i++) {
        vst_view_thread x, y;

        vst__view_get_thread(v->followed, i, &x);
        vst__view_get_thread(v->fresh, i, &y);
        CHECK_INT(x.number, y.number);
        CHECK_INT(x.levels, y.levels);
        CHECK_INT(x.off_stack, y.off_stack);
        CHECK_INT(x.spans, y.spans);
        CHECK_INT(x.start_ns, y.start_ns);
        CHECK_INT(x.end_ns, y.end_ns);
    }
}

/* Counts the spans that a window stands for, and their rows. */
static uint64_t count_spans(vst_view *view, const vst_view_range *range,
                            uint32_t *rows, uint32_t *level)
{
    uint64_t spans = 0;
    const vst_view_rect *rects;
    vst_view_head head;
    void *bytes;
    size_t count;

    if (!CHECK_INT(vst__view_window(view, range, &bytes, &count, NULL), VST_OK))
        return 0;
    memcpy(&head, bytes, sizeof head);
    rects = (const void *)((const char *)bytes + sizeof head +
                           head.rows * sizeof(vst_view_row));
    for (uint32_t i = 0; i < head.rects; i++)
        spans += rects[i].count;
    *rows = head.rows;
    *level = head.level;
    free(bytes);
    return spans;
}

/* Compares the whole trace, which a window of few pixels draws from levels. */
static void check_whole(const views *v)
{
    vst_view_info info;
    uint32_t rows[2], level[2];
    vst_view_range range = {.pixels = 40};

    vst__view_get_info(v->fresh, &info);
    range.from_ns = info.start_ns - 1000;
    range.to_ns = info.end_ns + 1000;
    CHECK_INT(count_spans(v->followed, &range, &rows[0], &level[0]),
              count_spans(v->fresh, &range, &rows[1], &level[1]));
    CHECK_INT(rows[0], rows[1]);
}

/* Compares a part that both views draw from the records. */
static void check_part(const views *v)
{
    vst_view_info info;
    vst_view_range range = {.pixels = 300};
    void *a = NULL, *b = NULL;
    size_t count_a = 0, count_b = 0;
    uint64_t width;

    vst__view_get_info(v->fresh, &info);
    width = (uint64_t)(info.end_ns - info.start_ns) + 2;
    range.from_ns = info.start_ns + (int64_t)(random_number(v->random) % width);
    range.to_ns = range.from_ns + 1 + (int64_t)(width / 50);
    CHECK_INT(vst__view_window(v->followed, &range, &a, &count_a, NULL),
              VST_OK);
    CHECK_INT(vst__view_window(v->fresh, &range, &b, &count_b, NULL), VST_OK);
    CHECK_INT(count_a, count_b);
    CHECK(count_a == count_b && memcmp(a, b, count_a) == 0);
    free(a);
    free(b);
}

static void check_both(views *v, const char *path, bool only_calls)
{
    vst_view_options options = {.no_file = true, .workers = 1};

    if (!CHECK_INT(vst__view_open(path, &options, &v->fresh, NULL), VST_OK))
        return;
    if (only_calls) {
        check_threads(v);
        check_whole(v);
    }
    for (int i = 0; only_calls && i < 4; i++)
        check_part(v);
    vst__view_close(v->fresh);
}

static void follow(const view_random *random)
{
    vst_view_options options = {.follow = true};
    bool only_calls = random->odd == 0;
    views v = {0};
    growing file;

    growing_begin(&file, random);
    v.random = &file.random;
    if (CHECK_INT(vst__view_open(file.path, &options, &v.followed, NULL),
                  VST_OK)) {
        while (file.shown < file.chunk_count && checks_bad < 5) {
            check_both(&v, file.path, only_calls);
            growing_more(&file);
            growing_write(&file, &file.now);
            CHECK_INT(vst__view_refresh(v.followed, NULL), VST_OK);
        }
        growing_write(&file, &file.whole);
        CHECK_INT(vst__view_refresh(v.followed, NULL), VST_OK);
        check_both(&v, file.path, only_calls);
        CHECK_INT(vst__view_refresh(v.followed, NULL), VST_OK);
        check_both(&v, file.path, only_calls);
        vst__view_close(v.followed);
    }
    growing_end(&file);
}

static void a_view_that_follows_shows_what_a_new_one_shows(void)
{
    for (unsigned i = 1; i <= 12 / check_step(1, 2) && checks_bad == 0; i++)
        follow(&(view_random){.state = i,
                              .threads = 1 + i % 4,
                              .windows = 1 + i % 2,
                              .pages = 1 + i % 9,
                              .chunks = 2 + i % 5});
}

static void records_of_any_kind_do_it_no_harm(void)
{
    for (unsigned i = 1; i <= 12 / check_step(1, 2) && checks_bad == 0; i++)
        follow(&(view_random){.state = 100 + i,
                              .threads = 1 + i % 4,
                              .windows = 1 + i % 2,
                              .pages = 1 + i % 4,
                              .chunks = 2 + i % 5,
                              .odd = i % 2 ? 300 : 20});
}

int main(void)
{
    TEST(a_view_that_follows_shows_what_a_new_one_shows);
    TEST(records_of_any_kind_do_it_no_harm);
    return checks_end();
}
