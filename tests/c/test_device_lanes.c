/* Lanes of devices against what is found out the slow way: every activity is
 * kept as replay gives it, and every question looks at all of them. */
#include <vestige/device_lanes.h>

#include "device_traces.h"

enum {
    WIDE = 60000, /* activities of one stream */
    TRIES = 300
};

static vst_device_lanes *make_lanes(vst_trace *trace)
{
    vst_device_lanes *lanes = NULL;

    CHECK_INT(
        vst_device_lanes_create(trace, VST_WINDOW_ALL, NULL, &lanes, NULL),
        VST_OK);
    return lanes;
}

/* ---- what is compared ---------------------------------------------------- */

static bool is_of_lane(const one *each, const vst_device_lane *lane)
{
    if (vst_activity_is_on_thread(each->span.kind))
        return lane->device == 0 && lane->thread == each->span.thread;
    return lane->device == each->span.device &&
           lane->stream == each->span.stream;
}

static bool is_same(const vst_device_activity *a, const one *each)
{
    const vst_device_span *b = &each->span;

    return a->kind == b->kind && a->id == b->id && a->device == b->device &&
           a->context == b->context && a->start_ns == b->start_ns &&
           a->end_ns == b->end_ns && a->correlation == b->correlation &&
           a->bytes == b->bytes && a->op.serial == b->op.serial &&
           a->annotation.serial == b->annotation.serial &&
           a->args_len == strlen(each->args) &&
           memcmp(a->args, each->args, a->args_len) == 0;
}

static one *find_same(const oracle *slow, const vst_device_lane *lane,
                      const vst_device_activity *activity)
{
    for (size_t i = 0; i < slow->count; i++)
        if (!slow->all[i].seen && is_of_lane(&slow->all[i], lane) &&
            is_same(activity, &slow->all[i]))
            return &slow->all[i];
    return NULL;
}

/* The call that an activity came from, and that it is among what came from
 * that. */
static void check_launch(const vst_device_lanes *lanes,
                         const vst_device_activity *activity, const one *each)
{
    vst_device_activity call;
    uint32_t numbers[64];
    size_t count;
    bool found = false;

    CHECK_INT(activity->launch != 0, each->span.launch != NULL);
    if (activity->launch == 0)
        return;
    CHECK_INT(vst_device_lanes_get(lanes, activity->launch - 1, &call), VST_OK);
    CHECK_INT(call.id, each->launch.id);
    CHECK_INT(call.start_ns, each->launch.start_ns);
    CHECK_INT(call.end_ns, each->launch.end_ns);
    CHECK_INT(call.correlation, activity->correlation);
    count = vst_device_lanes_launched(lanes, call.number, numbers, 64);
    for (size_t i = 0; i < count && i < 64; i++)
        found |= numbers[i] == activity->number;
    CHECK(found);
}

/* Rows are in order of time, and nothing in them overlaps. */
static void check_order(const vst_device_activity *before,
                        const vst_device_activity *activity)
{
    if (before->lane != activity->lane) {
        CHECK(before->lane < activity->lane);
    } else if (before->row != activity->row) {
        CHECK(before->row < activity->row);
    } else {
        CHECK(before->start_ns <= activity->start_ns);
        CHECK(before->end_ns <= activity->start_ns ||
              activity->row == VST_DEVICE_ROWS_MAX - 1);
    }
}

static void check_all(const vst_device_lanes *lanes, const oracle *slow)
{
    vst_device_activity before = {0}, activity;
    uint32_t number = 0;

    for (; vst_device_lanes_get(lanes, number, &activity) == VST_OK; number++) {
        const vst_device_lane *lane = vst_device_lanes_at(lanes, activity.lane);
        one *each = find_same(slow, lane, &activity);

        CHECK(number >= lane->first && number < lane->first + lane->activities);
        if (!CHECK(each != NULL))
            break;
        each->seen = true;
        check_launch(lanes, &activity, each);
        if (number != 0)
            check_order(&before, &activity);
        before = activity;
    }
    CHECK_INT(number, slow->count);
}

static void check_sums(const vst_device_lanes *lanes, const oracle *slow)
{
    size_t sum = 0;

    for (size_t i = 0; i < vst_device_lanes_count(lanes); i++) {
        const vst_device_lane *lane = vst_device_lanes_at(lanes, i);
        size_t count = 0;
        uint64_t bytes = 0;
        int64_t start_ns = INT64_MAX, end_ns = INT64_MIN;

        for (size_t j = 0; j < slow->count; j++) {
            const vst_device_span *span = &slow->all[j].span;

            if (!is_of_lane(&slow->all[j], lane))
                continue;
            count++;
            bytes += span->bytes;
            start_ns = span->start_ns < start_ns ? span->start_ns : start_ns;
            end_ns = span->end_ns > end_ns ? span->end_ns : end_ns;
        }
        CHECK_INT(lane->activities, count);
        CHECK_INT(lane->bytes, bytes);
        CHECK_INT(lane->start_ns, start_ns);
        CHECK_INT(lane->end_ns, end_ns);
        CHECK(lane->busy_ns <= end_ns - start_ns && lane->busy_ns >= 0);
        sum += count;
    }
    CHECK_INT(sum, slow->count);
}

/* ---- pictures ------------------------------------------------------------ */

typedef struct shown {
    const vst_view_head *head;
    const vst_view_row *rows;
    const vst_view_rect *rects;
} shown;

static shown look_at(void *bytes)
{
    const vst_view_head *head = bytes;
    const vst_view_row *rows = (const void *)(head + 1);

    return (shown){head, rows, (const void *)(rows + head->rows)};
}

static int64_t time_of(const shown *picture, uint32_t place)
{
    __extension__ typedef unsigned __int128 u128;

    return picture->head->from_ns +
           (int64_t)((u128)place *
                     (u128)(picture->head->to_ns - picture->head->from_ns) /
                     UINT32_MAX);
}

/* What a row must show: each that is wider than a pixel by itself, of the
 * others how many there are, those that only touch the edges or not. */
static void check_row(const vst_device_lanes *lanes, const shown *picture,
                      const vst_view_row *row, int64_t pixel_ns)
{
    uint32_t single = 0, wide = 0, most = 0, least = 0;
    uint64_t told = 0;
    const vst_device_lane *lane = vst_device_lanes_at(lanes, row->thread);
    int64_t from_ns = picture->head->from_ns, to_ns = picture->head->to_ns;
    vst_device_activity each;

    for (uint32_t i = lane->first; i < lane->first + lane->activities; i++) {
        vst_device_lanes_get(lanes, i, &each);
        if (each.row != row->depth)
            continue;
        most += each.end_ns + pixel_ns >= from_ns &&
                each.start_ns - pixel_ns <= to_ns;
        if (each.end_ns < from_ns || each.start_ns > to_ns)
            continue;
        least++;
        wide += each.end_ns - each.start_ns >= pixel_ns;
    }
    for (uint32_t i = row->first; i < row->first + row->rects; i++) {
        const vst_view_rect *rect = &picture->rects[i];

        CHECK(rect->start <= rect->end);
        CHECK(i == row->first || rect[-1].end <= rect->start + 1);
        told += rect->count;
        if (rect->count != 1)
            continue;
        CHECK_INT(vst_device_lanes_find(lanes, row->thread, row->depth,
                                        time_of(picture, rect->start) + 1,
                                        &each),
                  VST_OK);
        CHECK_INT(rect->id, each.id);
        single += each.end_ns - each.start_ns >= pixel_ns;
    }
    CHECK_INT(single, wide);
    CHECK(told >= least && told <= most);
}

static void check_picture(const vst_device_lanes *lanes, int64_t from_ns,
                          int64_t to_ns, uint32_t pixels)
{
    uint32_t of[16], count = 0;
    void *bytes;
    size_t size;
    shown picture;

    while (count < vst_device_lanes_count(lanes) && count < 16) {
        of[count] = count;
        count++;
    }
    CHECK_INT(vst_device_lanes_draw(lanes, from_ns, to_ns, pixels, of, count,
                                    &bytes, &size),
              VST_OK);
    picture = look_at(bytes);
    CHECK_INT(picture.head->magic, VST_VIEW_MAGIC);
    CHECK_INT(size, sizeof *picture.head +
                        picture.head->rows * sizeof *picture.rows +
                        picture.head->rects * sizeof *picture.rects);
    for (uint32_t i = 0; i < picture.head->rows; i++)
        check_row(lanes, &picture, &picture.rows[i],
                  (to_ns - from_ns) / pixels);
    free(bytes);
}

/* ---- search -------------------------------------------------------------- */

static void check_search(const vst_device_lanes *lanes, const oracle *slow,
                         int64_t from_ns, int64_t to_ns)
{
    const vst_id wanted[] = {FIRST_NAME + 4, FIRST_NAME + 1};
    const vst_view_ids ids = {wanted, 2};
    uint32_t counts[50] = {0}, total = 0, expected = 0;
    int64_t next_ns = INT64_MAX, before_ns = INT64_MIN;
    vst_device_activity found;

    for (size_t i = 0; i < slow->count; i++) {
        const vst_device_span *span = &slow->all[i].span;

        if (span->id != wanted[0] && span->id != wanted[1])
            continue;
        expected += span->start_ns >= from_ns && span->start_ns < to_ns;
        if (span->start_ns > from_ns && span->start_ns < next_ns)
            next_ns = span->start_ns;
        if (span->start_ns < from_ns && span->start_ns > before_ns)
            before_ns = span->start_ns;
    }
    CHECK_INT(vst_device_lanes_search(lanes, from_ns, to_ns, 50, &ids, counts),
              VST_OK);
    for (int i = 0; i < 50; i++)
        total += counts[i];
    CHECK_INT(total, expected);
    if (vst_device_lanes_next(lanes, from_ns, false, UINT32_MAX, &ids,
                              &found) == VST_OK)
        CHECK_INT(found.start_ns, next_ns);
    else
        CHECK_INT(next_ns, INT64_MAX);
    if (vst_device_lanes_next(lanes, from_ns, true, UINT32_MAX, &ids, &found) ==
        VST_OK)
        CHECK_INT(found.start_ns, before_ns);
    else
        CHECK_INT(before_ns, INT64_MIN);
}

/* ---- tests --------------------------------------------------------------- */

static void lanes_have_what_replay_gives(void)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        vst_trace *trace = random_trace(seed, 600);
        oracle slow = read_slowly(trace);
        vst_device_lanes *lanes = make_lanes(trace);

        vst_trace_close(trace);
        CHECK_INT(vst_device_lanes_count(lanes), 1 + DEVICES * STREAMS);
        CHECK_INT(vst_device_lanes_left_out(lanes), 0);
        CHECK_INT(vst_device_lanes_texts_left_out(lanes), 0);
        check_sums(lanes, &slow);
        check_all(lanes, &slow);
        for (int i = 0; i < TRIES / 4; i++) {
            int64_t from_ns =
                BUILDER_EPOCH_NS + random_below(SPAN_NS) - SPAN_NS / 10;
            int64_t to_ns = from_ns + 1 + random_below(SPAN_NS);

            check_picture(lanes, from_ns, to_ns, 1 + random_below(800));
            check_search(lanes, &slow, from_ns, to_ns);
        }
        vst_device_lanes_destroy(lanes);
        free(slow.all);
    }
}

/* A stream that did very much is drawn from its levels. */
static void a_wide_window_is_drawn_from_runs(void)
{
    int64_t start_ns = BUILDER_EPOCH_NS + BUILDER_START;
    const uint32_t lane = 0;
    vst_device_lanes *lanes;
    vst_trace *trace;
    builder b;
    void *bytes;
    size_t size;
    shown picture;
    uint64_t told = 0;

    state = 5;
    begin_trace(&b, WIDE / 40);
    builder_enter(&b, ANNOTATION, 1);
    builder_exit(&b, ANNOTATION, WIDE * 100);
    for (uint32_t i = 0; i < WIDE; i++)
        put_activity(&b, VST_ACTIVITY_KERNEL, 1, 2,
                     FIRST_NAME + random_below(NAMES), 0,
                     BUILDER_START + (uint64_t)i * 100, 1 + random_below(99));
    trace = open_trace(&b);
    builder_free(&b);
    lanes = make_lanes(trace);
    vst_trace_close(trace);
    CHECK_INT(vst_device_lanes_at(lanes, 0)->rows, 1);
    CHECK_INT(vst_device_lanes_draw(lanes, start_ns, start_ns + WIDE * 100,
                                    1000, &lane, 1, &bytes, &size),
              VST_OK);
    picture = look_at(bytes);
    CHECK(picture.head->level > 0);
    CHECK(picture.head->rects <= 2000);
    for (uint32_t i = 0; i < picture.head->rects; i++)
        told += picture.rects[i].count;
    CHECK_INT(told, WIDE);
    free(bytes);
    for (int i = 0; i < 20; i++) {
        int64_t from_ns = start_ns + random_below(WIDE * 100);

        check_picture(lanes, from_ns, from_ns + 1 + random_below(WIDE * 100),
                      1 + random_below(1500));
    }
    vst_device_lanes_destroy(lanes);
}

static void what_is_not_there_is_refused(void)
{
    vst_trace *trace = random_trace(9, 50);
    vst_device_lanes *lanes = make_lanes(trace);
    uint32_t lane = 99, number;
    vst_device_activity found;
    void *bytes = NULL;
    size_t size;

    vst_trace_close(trace);
    CHECK_INT(vst_device_lanes_get(lanes, UINT32_MAX, &found), VST_E_ARGUMENT);
    CHECK_INT(vst_device_lanes_find(lanes, 99, 0, 0, &found), VST_E_ARGUMENT);
    CHECK_INT(vst_device_lanes_find(lanes, 0, 99, 0, &found), VST_E_ARGUMENT);
    CHECK_INT(vst_device_lanes_find(lanes, 0, 0, 0, &found), VST_E_ARGUMENT);
    CHECK_INT(vst_device_lanes_launched(lanes, UINT32_MAX, &number, 1), 0);
    CHECK_INT(vst_device_lanes_draw(lanes, 5, 5, 10, &lane, 1, &bytes, &size),
              VST_E_ARGUMENT);
    CHECK_INT(vst_device_lanes_draw(lanes, 5, 50, 10, &lane, 1, &bytes, &size),
              VST_OK);
    CHECK_INT(look_at(bytes).head->rows, 0);
    free(bytes);
    vst_device_lanes_destroy(lanes);
}

/* More than lie side by side in rows are in the last of them. */
static void very_many_at_once_are_all_there(void)
{
    enum { MANY = 3 * VST_DEVICE_ROWS_MAX };
    vst_device_lanes *lanes;
    vst_trace *trace;
    builder b;

    begin_trace(&b, 4);
    builder_enter(&b, ANNOTATION, 1);
    builder_exit(&b, ANNOTATION, 5000);
    for (uint32_t i = 0; i < MANY; i++)
        put_activity(&b, VST_ACTIVITY_KERNEL, 1, 0, FIRST_NAME, 0,
                     BUILDER_START + i, 1000);
    trace = open_trace(&b);
    builder_free(&b);
    lanes = make_lanes(trace);
    CHECK_INT(vst_device_lanes_at(lanes, 0)->rows, VST_DEVICE_ROWS_MAX);
    CHECK_INT(vst_device_lanes_at(lanes, 0)->activities, MANY);
    CHECK_INT(vst_device_lanes_at(lanes, 0)->busy_ns, 1000 + MANY - 1);
    vst_device_lanes_destroy(lanes);
    vst_trace_close(trace);
}

int main(void)
{
    TEST(lanes_have_what_replay_gives);
    TEST(a_wide_window_is_drawn_from_runs);
    TEST(what_is_not_there_is_refused);
    TEST(very_many_at_once_are_all_there);
    return checks_end();
}
