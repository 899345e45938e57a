/* Lanes of devices, compared with a brute-force answer: every activity is kept
 * as replay delivers it, and every question looks at all activities. */
#include "device_traces.h"
#include "view/lanes_devices.h"

enum {
    WIDE = 60000, /* number of activities of one stream */
    TRIES = 300
};

static vst__lanes *make_lanes(vst_trace *trace)
{
    vst__lanes *lanes = NULL;

    CHECK_INT(vst__lanes_create(trace, "devices", NULL, &lanes, NULL), VST_OK);
    return lanes;
}

typedef struct activity {
    vst__lane_item at;
    vst__lane lane;
    uint64_t facts[VST_LANE_FACTS_MAX];
} activity;

static bool get(const vst__lanes *lanes, uint32_t number, activity *got)
{
    if (!vst__lanes_item(lanes, number, &got->at))
        return false;
    CHECK_INT(got->at.number, number);
    CHECK(vst__lanes_get(lanes, got->at.lane, &got->lane));
    vst__lanes_facts_of(lanes, number, got->facts);
    return true;
}

/* ---- what is compared ---------------------------------------------------- */

static bool is_of_lane(const one *each, const vst__lane *lane)
{
    if (vst_activity_is_on_thread(each->span.kind))
        return lane->device == 0 && lane->thread == each->span.thread;
    return lane->device == each->span.device &&
           lane->stream == each->span.stream;
}

static bool is_same(const vst__lanes *lanes, const activity *a, const one *each)
{
    const vst_device_span *b = &each->span;
    size_t length;
    const char *args =
        vst__lanes_text(lanes, a->facts[VST_DEVICE_ARGS], &length);

    return a->facts[VST_DEVICE_KIND] == b->kind && a->at.id == b->id &&
           a->facts[VST_DEVICE_DEVICE] == b->device &&
           a->facts[VST_DEVICE_CONTEXT] == b->context &&
           a->at.start_ns == b->start_ns && a->at.end_ns == b->end_ns &&
           a->facts[VST_DEVICE_CORRELATION] == b->correlation &&
           a->facts[VST_DEVICE_BYTES] == b->bytes &&
           a->facts[VST_DEVICE_OP_SERIAL] == b->op.serial &&
           a->facts[VST_DEVICE_ANNOTATION_SERIAL] == b->annotation.serial &&
           length == strlen(each->args) &&
           memcmp(args, each->args, length) == 0;
}

static one *find_same(const vst__lanes *lanes, const oracle *slow,
                      const activity *wanted)
{
    for (size_t i = 0; i < slow->count; i++)
        if (!slow->all[i].seen && is_of_lane(&slow->all[i], &wanted->lane) &&
            is_same(lanes, wanted, &slow->all[i]))
            return &slow->all[i];
    return NULL;
}

/* Checks the launch of an activity, and that launch and activity are linked. */
static void check_launch(const vst__lanes *lanes, const activity *one_of,
                         const one *each)
{
    uint64_t launch = one_of->facts[VST_DEVICE_LAUNCH];
    activity call;
    uint32_t numbers[64];
    size_t count;
    bool found = false;

    CHECK_INT(launch != 0, each->span.launch != NULL);
    if (launch == 0)
        return;
    CHECK(get(lanes, (uint32_t)launch - 1, &call));
    CHECK_INT(call.at.id, each->launch.id);
    CHECK_INT(call.at.start_ns, each->launch.start_ns);
    CHECK_INT(call.at.end_ns, each->launch.end_ns);
    CHECK_INT(call.facts[VST_DEVICE_CORRELATION],
              one_of->facts[VST_DEVICE_CORRELATION]);
    count = vst__lanes_linked(lanes, call.at.number, numbers, 64);
    for (size_t i = 0; i < count && i < 64; i++)
        found |= numbers[i] == one_of->at.number;
    CHECK(found);
}

/* Checks that rows are in order of time and that no items of a row overlap. */
static void check_order(const vst__lane_item *before,
                        const vst__lane_item *item)
{
    if (before->lane != item->lane) {
        CHECK(before->lane < item->lane);
    } else if (before->row != item->row) {
        CHECK(before->row < item->row);
    } else {
        CHECK(before->start_ns <= item->start_ns);
        CHECK(before->end_ns <= item->start_ns ||
              item->row == VST_DEVICE_ROWS_MAX - 1);
    }
}

static void check_all(const vst__lanes *lanes, const oracle *slow)
{
    activity before = {.facts = {0}}, found;
    uint32_t number = 0;

    for (; get(lanes, number, &found); number++) {
        one *each = find_same(lanes, slow, &found);

        if (!CHECK(each != NULL))
            break;
        each->seen = true;
        check_launch(lanes, &found, each);
        if (number != 0)
            check_order(&before.at, &found.at);
        before = found;
    }
    CHECK_INT(number, slow->count);
}

static void check_sums(const vst__lanes *lanes, const oracle *slow)
{
    vst__lane lane;
    size_t sum = 0;

    for (uint32_t i = 0; vst__lanes_get(lanes, i, &lane); i++) {
        size_t count = 0;
        uint64_t bytes = 0;
        int64_t start_ns = INT64_MAX, end_ns = INT64_MIN;

        for (size_t j = 0; j < slow->count; j++) {
            const vst_device_span *span = &slow->all[j].span;

            if (!is_of_lane(&slow->all[j], &lane))
                continue;
            count++;
            bytes += span->bytes;
            start_ns = span->start_ns < start_ns ? span->start_ns : start_ns;
            end_ns = span->end_ns > end_ns ? span->end_ns : end_ns;
        }
        CHECK_INT(lane.items, count);
        CHECK_INT(lane.bytes, bytes);
        CHECK_INT(lane.start_ns, start_ns);
        CHECK_INT(lane.end_ns, end_ns);
        CHECK(lane.busy_ns <= end_ns - start_ns && lane.busy_ns >= 0);
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

/* Checks a row: items wider than a pixel are shown singly, and the count of the
 * others is right, except that items which only touch an edge may be
 * missing. */
static void check_row(const vst__lanes *lanes, const shown *picture,
                      const vst_view_row *row, int64_t pixel_ns)
{
    uint32_t single = 0, wide = 0, most = 0, least = 0;
    uint64_t told = 0;
    int64_t from_ns = picture->head->from_ns, to_ns = picture->head->to_ns;
    vst__lane_item each;

    for (uint32_t i = 0; vst__lanes_item(lanes, i, &each); i++) {
        if (each.lane != row->thread || each.row != row->depth)
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
        CHECK(vst__lanes_at(lanes, row->thread, row->depth,
                            time_of(picture, rect->start) + 1, &each));
        CHECK_INT(rect->id, each.id);
        single += each.end_ns - each.start_ns >= pixel_ns;
    }
    CHECK_INT(single, wide);
    CHECK(told >= least && told <= most);
}

static void check_picture(const vst__lanes *lanes, int64_t from_ns,
                          int64_t to_ns, uint32_t pixels)
{
    uint32_t of[16], count = 0;
    void *bytes;
    size_t size;
    shown picture;

    for (; count < 16; count++)
        of[count] = count;
    CHECK_INT(vst__lanes_draw(lanes, from_ns, to_ns, pixels, of, count, &bytes,
                              &size),
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

static void check_search(const vst__lanes *lanes, const oracle *slow,
                         int64_t from_ns, int64_t to_ns)
{
    const vst_id wanted[] = {FIRST_NAME + 4, FIRST_NAME + 1};
    const vst_view_ids ids = {wanted, 2};
    uint32_t counts[50] = {0}, total = 0, expected = 0;
    int64_t next_ns = INT64_MAX, before_ns = INT64_MIN;
    vst__lane_item found;

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
    CHECK_INT(vst__lanes_find(lanes, &ids, from_ns, to_ns, 50, counts), VST_OK);
    for (int i = 0; i < 50; i++)
        total += counts[i];
    CHECK_INT(total, expected);
    if (vst__lanes_next(lanes, &ids, from_ns, false, &found) == VST_OK)
        CHECK_INT(found.start_ns, next_ns);
    else
        CHECK_INT(next_ns, INT64_MAX);
    if (vst__lanes_next(lanes, &ids, from_ns, true, &found) == VST_OK)
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
        vst__lanes *lanes = make_lanes(trace);
        vst__lane last;
        uint64_t texts;

        vst_trace_close(trace);
        CHECK(vst__lanes_get(lanes, DEVICES * STREAMS, &last));
        CHECK(!vst__lanes_get(lanes, 1 + DEVICES * STREAMS, &last));
        CHECK_INT(vst__lanes_left_out(lanes, &texts), 0);
        CHECK_INT(texts, 0);
        check_sums(lanes, &slow);
        check_all(lanes, &slow);
        for (int i = 0; i < TRIES / 4; i++) {
            int64_t from_ns =
                BUILDER_EPOCH_NS + random_below(SPAN_NS) - SPAN_NS / 10;
            int64_t to_ns = from_ns + 1 + random_below(SPAN_NS);

            check_picture(lanes, from_ns, to_ns, 1 + random_below(800));
            check_search(lanes, &slow, from_ns, to_ns);
        }
        vst__lanes_destroy(lanes);
        free(slow.all);
    }
}

/* A stream with very many activities is drawn from its levels. */
static void a_wide_window_is_drawn_from_runs(void)
{
    int64_t start_ns = BUILDER_EPOCH_NS + BUILDER_START;
    const uint32_t lane = 0;
    vst__lanes *lanes;
    vst_trace *trace;
    builder b;
    void *bytes;
    size_t size;
    shown picture;
    vst__lane facts;
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
    CHECK(vst__lanes_get(lanes, 0, &facts));
    CHECK_INT(facts.rows, 1);
    CHECK_INT(vst__lanes_draw(lanes, start_ns, start_ns + WIDE * 100, 1000,
                              &lane, 1, &bytes, &size),
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
    vst__lanes_destroy(lanes);
}

static uint64_t read_number(const uint8_t **at)
{
    uint64_t value = 0;
    unsigned shift = 0;

    do
        value |= (uint64_t)(**at & 127) << shift;
    while (shift += 7, *(*at)++ & 128);
    return value;
}

/* Checks that a packed row has each item unchanged. */
static void check_packed(const vst__lanes *lanes, const uint8_t *at,
                         uint32_t first, size_t count)
{
    size_t fact_count;
    int64_t time_ns = BUILDER_EPOCH_NS;
    uint64_t told;

    vst__lanes_facts(lanes, &fact_count);
    for (size_t i = 0; i < count; i++) {
        activity item;

        CHECK(get(lanes, first + (uint32_t)i, &item));
        time_ns += (int64_t)read_number(&at);
        CHECK_INT(time_ns, item.at.start_ns);
        CHECK_INT(time_ns + (int64_t)read_number(&at), item.at.end_ns);
        CHECK_INT(read_number(&at), item.at.id);
        CHECK_INT(read_number(&at), 0);
        CHECK_INT(read_number(&at), 1);
        told = read_number(&at);
        for (size_t fact = 0; fact < fact_count; fact++)
            CHECK_INT(fact < told ? read_number(&at) : 0, item.facts[fact]);
    }
}

/* Without merging, all items up to a time are packed. Merged items stand for as
 * many. */
static void packed_rows_have_what_is_there(void)
{
    vst_trace *trace = random_trace(7, 600);
    vst__lanes *lanes = make_lanes(trace);
    int64_t middle_ns = BUILDER_EPOCH_NS + SPAN_NS / 2;
    uint8_t *bytes;
    size_t size, count;
    uint32_t first;

    for (uint32_t lane = 0; lane < 1 + DEVICES * STREAMS; lane++) {
        CHECK_INT(vst__lanes_pack(lanes, lane, 0, BUILDER_EPOCH_NS, middle_ns,
                                  0, &bytes, &size, &first, &count),
                  VST_OK);
        CHECK_INT(count, vst__lanes_between(lanes, lane, 0, INT64_MIN,
                                            middle_ns + 1, NULL, 0));
        check_packed(lanes, bytes, first, count);
        free(bytes);
        CHECK_INT(vst__lanes_pack(lanes, lane, 0, BUILDER_EPOCH_NS, INT64_MAX,
                                  SPAN_NS, &bytes, &size, &first, &count),
                  VST_OK);
        CHECK(count < 4);
        free(bytes);
    }
    vst__lanes_destroy(lanes);
    vst_trace_close(trace);
}

static void what_is_not_there_is_refused(void)
{
    vst_trace *trace = random_trace(9, 50);
    vst__lanes *lanes = make_lanes(trace);
    uint32_t lane = 99, number;
    vst__lane_item found;
    vst__lane none;
    vst__lanes *other;
    uint8_t *packed;
    void *bytes = NULL;
    size_t size, count;

    CHECK_INT(vst__lanes_create(trace, "no kind", NULL, &other, NULL),
              VST_E_ARGUMENT);
    CHECK(other == NULL);
    vst_trace_close(trace);
    CHECK(!vst__lanes_get(lanes, 99, &none));
    CHECK(!vst__lanes_item(lanes, UINT32_MAX, &found));
    CHECK(!vst__lanes_at(lanes, 99, 0, 0, &found));
    CHECK(!vst__lanes_at(lanes, 0, 99, 0, &found));
    CHECK(!vst__lanes_at(lanes, 0, 0, 0, &found));
    CHECK_INT(vst__lanes_between(lanes, 0, 99, 0, 5, &found, 1), 0);
    CHECK_INT(vst__lanes_busy(lanes, 0, 99, 0, 5), 0);
    CHECK_INT(vst__lanes_linked(lanes, UINT32_MAX, &number, 1), 0);
    CHECK(vst__lanes_text(lanes, UINT32_MAX, &size) == NULL);
    CHECK_INT(
        vst__lanes_pack(lanes, 0, 99, 0, 5, 0, &packed, &size, &number, &count),
        VST_E_ARGUMENT);
    CHECK_INT(vst__lanes_draw(lanes, 5, 5, 10, &lane, 1, &bytes, &size),
              VST_E_ARGUMENT);
    CHECK_INT(vst__lanes_draw(lanes, 5, 50, 10, &lane, 1, &bytes, &size),
              VST_OK);
    CHECK_INT(look_at(bytes).head->rows, 0);
    free(bytes);
    vst__lanes_destroy(lanes);
}

/* Items that find no room in any row are in the last row. */
static void very_many_at_once_are_all_there(void)
{
    enum { MANY = 3 * VST_DEVICE_ROWS_MAX };
    vst__lanes *lanes;
    vst__lane lane;
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
    CHECK(vst__lanes_get(lanes, 0, &lane));
    CHECK_INT(lane.rows, VST_DEVICE_ROWS_MAX);
    CHECK_INT(lane.items, MANY);
    CHECK_INT(lane.busy_ns, 1000 + MANY - 1);
    vst__lanes_destroy(lanes);
    vst_trace_close(trace);
}

int main(void)
{
    TEST(lanes_have_what_replay_gives);
    TEST(a_wide_window_is_drawn_from_runs);
    TEST(packed_rows_have_what_is_there);
    TEST(what_is_not_there_is_refused);
    TEST(very_many_at_once_are_all_there);
    return checks_end();
}
