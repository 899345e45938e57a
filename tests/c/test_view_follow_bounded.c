/* A view of a bounded file that is still recorded shows, after each step, what
 * a view shows that is opened on the file as it is then: also once the file has
 * dropped much of what the view has read. */
#include <vestige/view.h>

#include "bounded.h"
#include "fake_clock.h"

enum { LEAF_NS = 1000, SLOWEST = 8, LEAVES = 200000, PARTS = 20 };

typedef struct picture {
    void *bytes;
    size_t count;
    uint64_t leaves; /* rectangles of the innermost row */
} picture;

static picture draw(vst_view *view, const vst_view_range *range)
{
    const vst_view_row *rows;
    vst_view_rect *rects;
    vst_view_head head;
    picture p = {0};

    if (!CHECK_INT(vst_view_window(view, range, &p.bytes, &p.count, NULL),
                   VST_OK))
        return p;
    memcpy(&head, p.bytes, sizeof head);
    rows = (const void *)((const char *)p.bytes + sizeof head);
    if (head.rows == OUTER + 1)
        p.leaves = rows[OUTER].rects;
    /* The view that follows knows where the outer calls began. That they are
     * open at the end, a view tells if its last batch got there. */
    rects = (void *)((char *)p.bytes + sizeof head + head.rows * sizeof *rows);
    for (uint32_t i = 0; i < head.rects; i++)
        rects[i].id &= VST_VIEW_ID_MASK;
    return p;
}

/* Narrow windows, all over what the file has. Both draw them from records. */
static void compare(vst_view *followed)
{
    vst_view_options options = {.no_file = true, .workers = 1};
    vst_view_info info;
    vst_view *fresh;
    int64_t width_ns;

    if (!CHECK_INT(vst_view_open(path, &options, &fresh, NULL), VST_OK))
        return;
    vst_view_get_info(fresh, &info);
    width_ns = (info.end_ns - info.start_ns) / PARTS;
    for (int i = 0; i < PARTS && checks_bad == 0; i++) {
        vst_view_range range = {.from_ns =
                                    info.start_ns + i * width_ns + width_ns / 2,
                                .pixels = 1000};
        picture a, b;

        range.to_ns = range.from_ns + LEAF_NS * SLOWEST * 5;
        a = draw(followed, &range);
        b = draw(fresh, &range);
        CHECK(b.leaves != 0);
        CHECK_INT(a.leaves, b.leaves);
        CHECK(a.count == b.count && memcmp(a.bytes, b.bytes, a.count) == 0);
        free(a.bytes);
        free(b.bytes);
    }
    vst_view_close(fresh);
}

/* Fast ones and slow ones take turns, so that the records of a time are few
 * after they were many. */
static void record_for_a_while(unsigned from, unsigned count)
{
    int64_t half_ns = LEAF_NS / 2 * (from / 60000 % 2 == 0 ? 1 : SLOWEST);

    for (unsigned i = from; i < from + count; i++) {
        vst_record(VST_ENTER, leaves[i % IDS]);
        fake_advance(half_ns);
        vst_record(VST_EXIT, leaves[i % IDS]);
        fake_advance(half_ns);
    }
}

static void follow(uint64_t max_size, uint64_t keep_ns, unsigned at_once)
{
    vst_view_options options = {.follow = true};
    vst_view *followed;
    unsigned done = at_once;

    begin(max_size, keep_ns);
    record_outer(VST_ENTER);
    record_for_a_while(0, at_once);
    if (!CHECK_INT(vst_view_open(path, &options, &followed, NULL), VST_OK))
        abort();
    while (done < LEAVES && checks_bad == 0) {
        compare(followed);
        record_for_a_while(done, at_once);
        done += at_once;
        CHECK_INT(vst_view_refresh(followed, NULL), VST_OK);
    }
    record_outer(VST_EXIT);
    vst_session_finish(session, NULL);
    CHECK_INT(vst_view_refresh(followed, NULL), VST_OK);
    compare(followed);
    CHECK(file_size() < LEAVES * 2 * sizeof(uint64_t) / 2); /* much is gone */
    vst_view_close(followed);
    end();
}

static void a_file_of_a_size_is_shown_as_a_new_view_shows_it(void)
{
    follow(MIB, 0, 20000);
    follow(MIB, 0, 7000);
}

static void so_is_one_that_keeps_the_last_moments(void)
{
    follow(0, LEAF_NS * 50000, 20000);
    follow(0, LEAF_NS * 50000, 4000);
}

int main(void)
{
    fake_clock_begin();
    TEST(a_file_of_a_size_is_shown_as_a_new_view_shows_it);
    TEST(so_is_one_that_keeps_the_last_moments);
    return checks_end();
}
