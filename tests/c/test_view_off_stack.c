/* A span that BEGIN opened and that ends off the stack is shown there alone,
 * also in answers about a time at which it was still open. */
#include <unistd.h>

#include "check.h"
#include "view/view_state.h"
#include "view_random.h"

enum { SPAN = 1, OUTER, INNER, LEAF };
enum { CHUNKS = 12, CALLS = 1500 /* records in a chunk */ };

static char path[64], index_path[80];

/* Inside OUTER and INNER, SPAN begins, and LEAF runs in it many times, which
 * makes more records than one batch has. SPAN ends after INNER was left. */
static vst_view *open_view(void)
{
    const uint64_t pair = UINT64_C(1) << 32 | SPAN;
    vst_view_options options = {.workers = 1};
    vst_view *view = NULL;
    vst_ticks now = 2000;
    builder b;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_define(&b, VST_DEF_ANNOTATION, SPAN, "span", "x.py", 1);
    builder_define(&b, VST_DEF_PYTHON, OUTER, "outer", "x.py", 2);
    builder_define(&b, VST_DEF_PYTHON, INNER, "inner", "x.py", 3);
    builder_define(&b, VST_DEF_PYTHON, LEAF, "leaf", "x.py", 4);
    for (unsigned i = 0; i < CHUNKS; i++) {
        builder_records(&b, 0, 1, now, 8);
        if (i == 0) {
            builder_enter(&b, OUTER, 10);
            builder_enter(&b, INNER, 10);
            builder_escape(&b, VST_ESCAPE_BEGIN, 10, &pair, 1);
        }
        for (unsigned j = 0; j < CALLS; j++) {
            builder_enter(&b, LEAF, 10);
            builder_word(&b, vst_word(VST_EXIT, LEAF, 90));
        }
        now += CALLS * 100u + (i == 0 ? 30u : 0u);
        if (i + 1 != CHUNKS)
            builder_seal(&b, 1);
    }
    builder_word(&b, vst_word(VST_EXIT, INNER, 100));
    builder_escape(&b, VST_ESCAPE_END, 100, &pair, 1);
    builder_word(&b, vst_word(VST_EXIT, OUTER, 100));
    builder_seal(&b, 1);
    builder_finish(&b);
    snprintf(path, sizeof path, "/tmp/vestige-view-XXXXXX");
    random_file(&b, path);
    builder_free(&b);
    snprintf(index_path, sizeof index_path, "%s.view", path);
    CHECK_INT(vst__view_open(path, &options, &view, NULL), VST_OK);
    return view;
}

static void close_view(vst_view *view)
{
    vst__view_close(view);
    unlink(path);
    unlink(index_path);
}

/* Returns the first tenth; SPAN is open at its end. */
static vst_view_range beginning(const vst_view *view)
{
    int64_t start_ns = view->info.start_ns;
    int64_t width_ns = (view->info.end_ns - start_ns) / 10;

    return (vst_view_range){
        .from_ns = start_ns, .to_ns = start_ns + width_ns, .pixels = 100};
}

static void a_window_draws_it_in_its_lane_alone(void)
{
    vst_view *view = open_view();
    vst_view_range range = beginning(view);
    const vst_view_head *head;
    const vst_view_row *rows;
    void *bytes;
    size_t count;

    CHECK_INT(vst__view_window(view, &range, &bytes, &count, NULL), VST_OK);
    head = bytes;
    rows = (const vst_view_row *)(const void *)(head + 1);
    if (CHECK_INT(head->rows, 4)) {
        CHECK_INT(rows[0].depth, 0); /* OUTER */
        CHECK_INT(rows[1].depth, 1); /* INNER */
        CHECK_INT(rows[2].depth, 3); /* LEAF: SPAN was between INNER and LEAF */
        CHECK_INT(rows[3].depth, 4); /* SPAN, behind the rows of the stack */
    }
    free(bytes);
    close_view(view);
}

static void a_search_counts_it_once(void)
{
    const vst_id wanted = SPAN;
    const vst_view_ids ids = {&wanted, 1};
    vst_view *view = open_view();
    vst_view_range range = beginning(view);
    uint32_t counts[100], sum = 0;

    CHECK_INT(vst__view_find(view, &range, &ids, counts, NULL), VST_OK);
    for (size_t i = 0; i < 100; i++)
        sum += counts[i];
    CHECK_INT(sum, 1);
    close_view(view);
}

static void it_is_no_parent_of_a_call(void)
{
    vst_view *view = open_view();
    vst_view_range range = beginning(view);
    const vst_id wanted = LEAF;
    const vst_view_ids ids = {&wanted, 1};
    vst_view_span leaf, span;

    CHECK_INT(vst__view_next(view, &range, &ids, false, &leaf, NULL), VST_OK);
    CHECK_INT(vst__view_span_at(view, 1, 3, leaf.start_ns, &span, NULL),
              VST_OK);
    CHECK_INT(span.id, LEAF);
    if (CHECK_INT(span.parent_count, 2)) {
        CHECK_INT(span.parents[0].id, OUTER);
        CHECK_INT(span.parents[1].id, INNER);
        CHECK(span.parents[1].end_ns <= view->info.end_ns);
    }
    vst__view_span_free(&span);
    CHECK_INT(vst__view_span_at(view, 1, 2, leaf.start_ns, &span, NULL),
              VST_E_ARGUMENT);
    close_view(view);
}

int main(void)
{
    TEST(a_window_draws_it_in_its_lane_alone);
    TEST(a_search_counts_it_once);
    TEST(it_is_no_parent_of_a_call);
    return checks_end();
}
