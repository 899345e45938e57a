/* After each step of a running bounded recording, a view that follows the file
 * shows the same as a view newly opened on the file, even if the file has
 * dropped much that the view has read. */
#include "bounded.h"
#include "fake_clock.h"
#include "view/view_state.h"

enum { LEAF_NS = 1000, SLOWEST = 8, LEAVES = 200000, PARTS = 20 };

typedef struct picture {
    void *bytes;
    size_t count;
    uint64_t leaves; /* number of rectangles in the innermost row */
} picture;

static picture draw(vst_view *view, const vst_view_range *range)
{
    const vst_view_row *rows;
    vst_view_rect *rects;
    vst_view_head head;
    picture p = {0};

    if (!CHECK_INT(vst__view_window(view, range, &p.bytes, &p.count, NULL),
                   VST_OK))
        return p;
    memcpy(&head, p.bytes, sizeof head);
    rows = (const void *)((const char *)p.bytes + sizeof head);
    if (head.rows == OUTER + 1)
        p.leaves = rows[OUTER].rects;
    /* The following view knows where the outer calls began. A view shows that
     * they are open at the end only if its last batch got there. */
    rects = (void *)((char *)p.bytes + sizeof head + head.rows * sizeof *rows);
    for (uint32_t i = 0; i < head.rects; i++)
        rects[i].id &= VST_VIEW_ID_MASK;
    return p;
}

/* Compares narrow windows all over the file. Both views draw them from
 * records. */
static void compare(vst_view *followed)
{
    vst_view_options options = {.no_file = true, .workers = 1};
    vst_view_info info;
    vst_view *fresh;
    int64_t width_ns;

    if (!CHECK_INT(vst__view_open(path, &options, &fresh, NULL), VST_OK))
        return;
    vst__view_get_info(fresh, &info);
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
    vst__view_close(fresh);
}

/* Fast and slow phases alternate, so that there are few records for a time
 * after there were many. */
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
    if (!CHECK_INT(vst__view_open(path, &options, &followed, NULL), VST_OK))
        abort();
    while (done < LEAVES && checks_bad == 0) {
        compare(followed);
        record_for_a_while(done, at_once);
        done += at_once;
        CHECK_INT(vst__view_refresh(followed, NULL), VST_OK);
    }
    record_outer(VST_EXIT);
    vst_session_finish(session, NULL);
    CHECK_INT(vst__view_refresh(followed, NULL), VST_OK);
    compare(followed);
    CHECK(file_size() < LEAVES * 2 * sizeof(uint64_t) / 2); /* much has been
                                                             * dropped */
    vst__view_close(followed);
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

/* Counts the leaves that a wide window stands for. The window is drawn from
 * levels. */
static uint64_t count_leaves(vst_view *view, int64_t from_ns, int64_t to_ns)
{
    vst_view_range range = {.from_ns = from_ns, .to_ns = to_ns, .pixels = 50};
    const vst_view_row *rows;
    const vst_view_rect *rects;
    uint64_t count = 0;
    vst_view_head head;
    void *bytes;
    size_t size;

    if (!CHECK_INT(vst__view_window(view, &range, &bytes, &size, NULL), VST_OK))
        return 0;
    memcpy(&head, bytes, sizeof head);
    CHECK(head.level != 0);
    rows = (const void *)((const char *)bytes + sizeof head);
    rects = (const void *)(rows + head.rows);
    if (head.rows == OUTER + 1)
        for (uint32_t i = 0; i < rows[OUTER].rects; i++)
            count += rects[rows[OUTER].first + i].count;
    free(bytes);
    return count;
}

/* Pictures from levels stay after their records were dropped. */
static void what_is_dropped_takes_no_memory(void)
{
    enum { ROUNDS = 60, AT_ONCE = 15000 };
    vst_view_options follow = {.follow = true};
    vst_view_options now = {.no_file = true, .workers = 1};
    uint64_t most = 0, early = 0, words_max;
    vst_view *followed, *fresh;
    vst_view_info info;

    begin(MIB, 0);
    record_outer(VST_ENTER);
    record_for_a_while(0, AT_ONCE);
    if (!CHECK_INT(vst__view_open(path, &follow, &followed, NULL), VST_OK))
        abort();
    words_max = followed->window_words_max;
    for (int i = 1; i < ROUNDS && checks_bad == 0; i++) {
        record_for_a_while((unsigned)i * AT_ONCE, AT_ONCE);
        CHECK_INT(vst__view_refresh(followed, NULL), VST_OK);
        vst__view_get_info(followed, &info);
        most = info.index_bytes > most ? info.index_bytes : most;
        if (i == ROUNDS / 4)
            early = most;
    }
    CHECK(early != 0 && most < early * 2);
    if (CHECK_INT(vst__view_open(path, &now, &fresh, NULL), VST_OK)) {
        int64_t from_ns = info.start_ns + (info.end_ns - info.start_ns) / 4;
        uint64_t truth, leaves_drawn;

        fresh->window_words_max = followed->window_words_max = 1;
        truth = count_leaves(fresh, from_ns, info.end_ns + 1);
        leaves_drawn = count_leaves(followed, from_ns, info.end_ns + 1);
        CHECK(truth > 1000);
        CHECK(leaves_drawn > truth - truth / 20 &&
              leaves_drawn < truth + truth / 20); /* not equal, because the two
                                                   * views join leaves into
                                                   * different runs */
        vst__view_close(fresh);
    }
    followed->window_words_max = words_max;
    compare(followed);
    vst__view_close(followed);
    end();
}

int main(void)
{
    fake_clock_begin();
    TEST(a_file_of_a_size_is_shown_as_a_new_view_shows_it);
    TEST(so_is_one_that_keeps_the_last_moments);
    TEST(what_is_dropped_takes_no_memory);
    return checks_end();
}
