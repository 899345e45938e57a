/* Reads what devices did into lanes: activities as replay gives them, then put
 * in order by lane, row and time. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/map64.h"
#include "view/device_lanes_inside.h"

enum { TEXTS_MAX = 256 << 20 }; /* bytes */

/* An activity as it comes. */
typedef struct arrived {
    vst__lane_activity own; /* launch: 1 + index of the call */
    uint32_t stream, thread;
    uint32_t index;
} arrived;

typedef struct reading {
    vst_device_lanes *lanes;
    arrived *all;
    size_t count, capacity;
    size_t calls_first, calls_end; /* of the window that is read */
    vst__map64 texts;              /* hash -> place in lanes->texts */
} reading;

static bool is_on_thread(const arrived *one)
{
    return vst_activity_is_on_thread(one->own.kind);
}

/* ---- texts --------------------------------------------------------------- */

static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static bool is_text(const vst_device_lanes *lanes, uint64_t place,
                    const char *text, size_t length)
{
    const vst__lane_text *there = &lanes->texts[place];

    return place != 0 && there->length == length &&
           memcmp(lanes->bytes + there->offset, text, length) == 0;
}

static bool add_text(vst_device_lanes *lanes, const char *text, size_t length)
{
    vst__lane_text *texts = vst__grow(lanes->texts, &lanes->text_capacity,
                                      lanes->text_count + 1, sizeof *texts);
    char *bytes;

    if (texts == NULL)
        return false;
    lanes->texts = texts;
    bytes = vst__grow(lanes->bytes, &lanes->bytes_capacity,
                      lanes->bytes_count + length, 1);
    if (bytes == NULL)
        return false;
    lanes->bytes = bytes;
    memcpy(bytes + lanes->bytes_count, text, length);
    texts[lanes->text_count++] =
        (vst__lane_text){lanes->bytes_count, (uint32_t)length};
    lanes->bytes_count += length;
    return true;
}

/* Equal texts are kept once: launches of a kernel mostly have the same. */
static vst_status keep_text(reading *r, const char *text, size_t length,
                            uint32_t *place)
{
    vst_device_lanes *lanes = r->lanes;
    uint64_t *known;

    if (text == NULL || length == 0)
        return VST_OK;
    known = vst__map64_put(&r->texts, hash_of(text, length));
    if (known == NULL)
        return VST_E_NOMEM;
    if (!is_text(lanes, *known, text, length)) {
        if (lanes->bytes_count + length > TEXTS_MAX) {
            lanes->texts_left_out++;
            return VST_OK;
        }
        if (!add_text(lanes, text, length))
            return VST_E_NOMEM;
        *known = lanes->text_count - 1;
    }
    *place = (uint32_t)*known;
    return VST_OK;
}

/* ---- activities as they come --------------------------------------------- */

/* 1 + the index of the call; 0: it was not kept. Those of a window come first,
 * by thread and time. */
static uint32_t find_call(const reading *r, const vst_device_launch *launch)
{
    size_t low = r->calls_first, high = r->calls_end;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const arrived *call = &r->all[middle];

        if (call->thread < launch->thread ||
            (call->thread == launch->thread &&
             call->own.start_ns < launch->start_ns))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < r->calls_end; low++) {
        const arrived *call = &r->all[low];

        if (call->thread != launch->thread ||
            call->own.start_ns != launch->start_ns)
            break;
        if (call->own.id == launch->id && call->own.kind == launch->kind &&
            call->own.end_ns == launch->end_ns)
            return (uint32_t)low + 1;
    }
    return 0;
}

static vst_status on_device(void *ctx, const vst_device_span *span)
{
    reading *r = ctx;
    bool on_thread = vst_activity_is_on_thread(span->kind);
    arrived *grown;

    if (r->count == VST_DEVICE_LANES_MAX) {
        r->lanes->left_out++;
        return VST_OK;
    }
    grown = vst__grow(r->all, &r->capacity, r->count + 1, sizeof *grown);
    if (grown == NULL)
        return VST_E_NOMEM;
    r->all = grown;
    if (on_thread && r->calls_end != r->count) /* another window begins */
        r->calls_first = r->count;
    grown[r->count] = (arrived){
        .stream = on_thread ? 0 : span->stream,
        .thread = on_thread ? span->thread : 0,
        .index = (uint32_t)r->count,
        .own = {.start_ns = span->start_ns,
                .end_ns = span->end_ns,
                .correlation = span->correlation,
                .external = span->external,
                .bytes = span->bytes,
                .op = span->op,
                .annotation = span->annotation,
                .id = span->id,
                .context = span->context,
                .device = (uint16_t)span->device,
                .kind = (uint8_t)span->kind,
                .launch =
                    span->launch != NULL ? find_call(r, span->launch) : 0},
    };
    r->count++;
    if (on_thread)
        r->calls_end = r->count;
    return keep_text(r, span->args, span->args_len,
                     &r->all[r->count - 1].own.text);
}

/* Replay finds what calls were made in only for those who take spans. */
static vst_status on_span(void *ctx, const vst_span *span)
{
    (void)ctx, (void)span;
    return VST_OK;
}

/* ---- lanes --------------------------------------------------------------- */

static int order_of(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* 0: of the same lane. */
static int lane_order(const arrived *x, const arrived *y)
{
    bool on_thread = is_on_thread(x);

    if (on_thread != is_on_thread(y))
        return on_thread ? -1 : 1;
    if (on_thread)
        return order_of(x->thread, y->thread);
    return x->own.device != y->own.device
               ? order_of(x->own.device, y->own.device)
               : order_of(x->stream, y->stream);
}

static int in_order(const void *a, const void *b)
{
    const arrived *x = a, *y = b;
    int order = lane_order(x, y);

    if (order != 0)
        return order;
    if (x->own.start_ns != y->own.start_ns)
        return x->own.start_ns < y->own.start_ns ? -1 : 1;
    if (x->own.end_ns != y->own.end_ns)
        return x->own.end_ns > y->own.end_ns ? -1 : 1;
    return order_of(x->index, y->index);
}

/* Those of one window come in order. */
static void sort(reading *r)
{
    for (size_t i = 1; i < r->count; i++)
        if (in_order(&r->all[i - 1], &r->all[i]) > 0) {
            qsort(r->all, r->count, sizeof *r->all, in_order);
            return;
        }
}

/* Into the first row whose last activity has ended. Returns how many rows there
 * are then. */
static uint32_t give_row(arrived *one, int64_t *ends, uint32_t rows)
{
    uint32_t row = 0;

    while (row < rows && ends[row] > one->own.start_ns)
        row++;
    if (row == VST_DEVICE_ROWS_MAX)
        row--;
    if (row == rows)
        ends[rows++] = one->own.end_ns;
    else if (one->own.end_ns > ends[row])
        ends[row] = one->own.end_ns;
    one->own.row = (uint8_t)row;
    return rows;
}

/* Sums up `count` activities, and gives them rows. */
static vst_device_lane sum_up(arrived *first, size_t count)
{
    int64_t ends[VST_DEVICE_ROWS_MAX], reached_ns = first->own.start_ns;
    vst_device_lane lane = {
        .device = is_on_thread(first) ? 0 : first->own.device,
        .stream = first->stream,
        .thread = first->thread,
        .activities = (uint32_t)count,
        .start_ns = first->own.start_ns,
    };

    for (size_t i = 0; i < count; i++) {
        const vst__lane_activity *own = &first[i].own;
        int64_t from_ns =
            own->start_ns > reached_ns ? own->start_ns : reached_ns;

        lane.rows = give_row(&first[i], ends, lane.rows);
        lane.bytes += own->bytes;
        if (own->end_ns > from_ns)
            lane.busy_ns += own->end_ns - from_ns;
        if (own->end_ns > reached_ns)
            reached_ns = own->end_ns;
    }
    lane.end_ns = reached_ns;
    return lane;
}

static vst_status make_lanes(reading *r)
{
    vst_device_lanes *lanes = r->lanes;
    size_t capacity = 0, first = 0;

    while (first < r->count) {
        size_t end = first + 1;
        vst_device_lane *grown = vst__grow(
            lanes->lanes, &capacity, lanes->lane_count + 1, sizeof *grown);

        if (grown == NULL)
            return VST_E_NOMEM;
        lanes->lanes = grown;
        while (end < r->count && lane_order(&r->all[first], &r->all[end]) == 0)
            end++;
        grown += lanes->lane_count++;
        *grown = sum_up(&r->all[first], end - first);
        grown->first = (uint32_t)first;
        lanes->row_count += grown->rows;
        first = end;
    }
    return VST_OK;
}

/* ---- rows ---------------------------------------------------------------- */

/* The activities of a lane by row; they are in order of time. */
static void put_in_rows(const reading *r, const vst_device_lane *lane,
                        vst__lane_row *rows, uint32_t *number_of)
{
    const arrived *all = &r->all[lane->first];
    uint32_t first = lane->first;

    for (size_t i = 0; i < lane->activities; i++)
        rows[all[i].own.row].count++;
    for (uint32_t i = 0; i < lane->rows; i++) {
        rows[i].first = first;
        first += rows[i].count;
        rows[i].count = 0;
    }
    for (size_t i = 0; i < lane->activities; i++) {
        vst__lane_row *row = &rows[all[i].own.row];
        uint32_t number = row->first + row->count++;

        r->lanes->activities[number] = all[i].own;
        number_of[all[i].index] = number;
    }
}

/* From numbers of arrival to those of activities; and the way from a call to
 * what came from it, in order of their numbers. */
static void link_launches(vst_device_lanes *lanes, const uint32_t *number_of)
{
    for (uint32_t i = lanes->count; i-- > 0;) {
        vst__lane_activity *one = &lanes->activities[i], *call;

        if (one->launch == 0)
            continue;
        one->launch = number_of[one->launch - 1] + 1;
        call = &lanes->activities[one->launch - 1];
        one->next = call->next;
        call->next = i + 1;
    }
}

static vst_status make_rows(const reading *r)
{
    vst_device_lanes *lanes = r->lanes;
    uint32_t *number_of = calloc(r->count + 1, sizeof *number_of), row = 0;
    vst_status status = VST_OK;

    lanes->activities = calloc(r->count + 1, sizeof *lanes->activities);
    lanes->rows = calloc(lanes->row_count + 1, sizeof *lanes->rows);
    lanes->first_row = calloc(lanes->lane_count + 1, sizeof *lanes->first_row);
    if (number_of == NULL || lanes->activities == NULL || lanes->rows == NULL ||
        lanes->first_row == NULL) {
        free(number_of);
        return VST_E_NOMEM;
    }
    lanes->count = (uint32_t)r->count;
    for (size_t i = 0; i < lanes->lane_count; i++) {
        lanes->first_row[i] = row;
        put_in_rows(r, &lanes->lanes[i], &lanes->rows[row], number_of);
        row += lanes->lanes[i].rows;
    }
    lanes->first_row[lanes->lane_count] = row;
    link_launches(lanes, number_of);
    free(number_of);
    for (size_t i = 0; status == VST_OK && i < lanes->row_count; i++)
        status = vst__lane_levels_make(&lanes->rows[i], lanes->activities);
    return status;
}

/* ---- all of it ----------------------------------------------------------- */

static vst_status put_in_order(reading *r)
{
    vst_status status;

    sort(r);
    status = make_lanes(r);
    return status == VST_OK ? make_rows(r) : status;
}

static vst_status read_all(vst_device_lanes *lanes, vst_trace *trace,
                           int window, vst_tracer *tracer, vst_error *error)
{
    reading r = {.lanes = lanes};
    vst_sink sink = {
        .ctx = &r, .no_imports = true, .span = on_span, .device = on_device};
    vst_status status = vst_error_set(error, VST_E_NOMEM, 0, 0);

    if (add_text(lanes, "", 0)) /* none */
        status = vst_trace_replay(trace, window, tracer, &sink, error);
    if (status == VST_OK)
        status = vst_error_set(error, put_in_order(&r), 0, 0);
    vst__map64_free(&r.texts);
    free(r.all);
    return status;
}

vst_status vst_device_lanes_create(vst_trace *trace, int window,
                                   vst_tracer *tracer, vst_device_lanes **lanes,
                                   vst_error *error)
{
    vst_status status = VST_E_NOMEM;

    vst_error_set(error, VST_E_NOMEM, 0, 0);
    *lanes = calloc(1, sizeof **lanes);
    if (*lanes != NULL)
        status = read_all(*lanes, trace, window, tracer, error);
    if (status == VST_OK)
        return vst_error_set(error, VST_OK, 0, 0);
    vst_device_lanes_destroy(*lanes);
    *lanes = NULL;
    return status;
}

void vst_device_lanes_destroy(vst_device_lanes *lanes)
{
    if (lanes == NULL)
        return;
    for (size_t i = 0; lanes->rows != NULL && i < lanes->row_count; i++)
        vst__lane_levels_free(&lanes->rows[i]);
    free(lanes->lanes);
    free(lanes->rows);
    free(lanes->first_row);
    free(lanes->activities);
    free(lanes->texts);
    free(lanes->bytes);
    free(lanes);
}
