/* Activities of devices as lanes. The lanes of threads come first: the calls
 * that a thread made of runtimes and drivers, and the overhead of the
 * collecting. Behind them each stream of a device has a lane, by device and
 * stream. Overlapping activities lie in different rows. A call is linked to the
 * activities that it launched. Some 110 bytes are kept per activity, and each
 * distinct text of attributes. One thread makes them. */
#include "view/lanes_devices.h"

#include <stdlib.h>

#include <vestige/device.h>

#include "base/grow.h"
#include "view/lanes_kind.h"

enum {
    ACTIVITIES_MAX = 8000000, /* further ones are not kept */
    TEXTS_MAX = 256 << 20     /* bytes */
};

typedef struct activity {
    int64_t start_ns, end_ns;
    uint64_t correlation, external, bytes;
    vst_device_cause op, annotation;
    vst_id id;
    uint32_t context;
    uint32_t launch; /* 1 + number of the launching call; 0: none */
    /* For a call: 1 + the number of the first activity that it launched; for an
     * activity: 1 + the number of the call's next one. 0: there is no other. */
    uint32_t next;
    uint32_t text; /* number; 0: none */
    uint16_t device;
    uint8_t kind, row;
} activity;

typedef struct device_lane {
    uint32_t device, stream, thread, name;
    int64_t start_ns, end_ns, busy_ns;
    uint64_t bytes;
} device_lane;

typedef struct devices {
    activity *all; /* by lane, row and time */
    device_lane *lanes;
    size_t lane_capacity;
} devices;

/* An activity as the reader delivers it. */
typedef struct arrived {
    activity own; /* own.launch: 1 + index of the call */
    uint32_t stream, thread;
    uint32_t index;
} arrived;

typedef struct reading {
    vst__lanes *lanes;
    const vst_trace *trace;
    arrived *all;
    size_t count, capacity;
    size_t calls_first, calls_end; /* range of the window that is being read */
} reading;

static const vst__lane_fact facts[] = {
    [VST_DEVICE_KIND] = {"kind", VST_LANE_NUMBER},
    [VST_DEVICE_DEVICE] = {"device", VST_LANE_NUMBER},
    [VST_DEVICE_CONTEXT] = {"context", VST_LANE_NUMBER},
    [VST_DEVICE_CORRELATION] = {"correlation", VST_LANE_NUMBER},
    [VST_DEVICE_EXTERNAL] = {"external", VST_LANE_NUMBER},
    [VST_DEVICE_BYTES] = {"bytes", VST_LANE_NUMBER},
    [VST_DEVICE_OP] = {"op", VST_LANE_NUMBER},
    [VST_DEVICE_ANNOTATION] = {"annotation", VST_LANE_NUMBER},
    [VST_DEVICE_LAUNCH] = {"launch", VST_LANE_ORIGIN},
    [VST_DEVICE_ARGS] = {"args", VST_LANE_TEXT}};

static bool is_on_thread(const arrived *one)
{
    return vst_activity_is_on_thread(one->own.kind);
}

/* ---- reading activities -------------------------------------------------- */

/* Returns 1 + the index of the launching call; 0: it was not kept. The calls of
 * a window come first, sorted by thread and time. */
static uint32_t devices_find_call(const reading *r,
                                  const vst_device_launch *launch)
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

static vst_status devices_on_device(void *ctx, const vst_device_span *span)
{
    reading *r = ctx;
    bool on_thread = vst_activity_is_on_thread(span->kind);

    if (r->count == ACTIVITIES_MAX) {
        r->lanes->left_out++;
        return VST_OK;
    }
    if (!VST_RESERVE(r->all, r->count + 1, r->capacity))
        return VST_E_NOMEM;
    if (on_thread && r->calls_end != r->count) /* another window begins */
        r->calls_first = r->count;
    r->all[r->count] = (arrived){
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
                .launch = span->launch != NULL
                              ? devices_find_call(r, span->launch)
                              : 0},
    };
    r->count++;
    if (on_thread)
        r->calls_end = r->count;
    return vst__lanes_keep_text(r->lanes, span->args, span->args_len, TEXTS_MAX,
                                &r->all[r->count - 1].own.text);
}

/* Ignores spans. Replay looks for the operators around calls only if the sink
 * takes spans. */
static vst_status devices_on_span(void *ctx, const vst_span *span)
{
    (void)ctx, (void)span;
    return VST_OK;
}

/* ---- lanes --------------------------------------------------------------- */

static int devices_order_of(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Returns 0 if both belong to one lane. */
static int lane_order(const arrived *x, const arrived *y)
{
    bool on_thread = is_on_thread(x);

    if (on_thread != is_on_thread(y))
        return on_thread ? -1 : 1;
    if (on_thread)
        return devices_order_of(x->thread, y->thread);
    return x->own.device != y->own.device
               ? devices_order_of(x->own.device, y->own.device)
               : devices_order_of(x->stream, y->stream);
}

static int devices_in_order(const void *a, const void *b)
{
    const arrived *x = a, *y = b;
    int order = lane_order(x, y);

    if (order != 0)
        return order;
    if (x->own.start_ns != y->own.start_ns)
        return x->own.start_ns < y->own.start_ns ? -1 : 1;
    if (x->own.end_ns != y->own.end_ns)
        return x->own.end_ns > y->own.end_ns ? -1 : 1;
    return devices_order_of(x->index, y->index);
}

/* Sorts by lane; the activities of one window come in order. */
static void devices_sort(reading *r)
{
    for (size_t i = 1; i < r->count; i++)
        if (devices_in_order(&r->all[i - 1], &r->all[i]) > 0) {
            qsort(r->all, r->count, sizeof *r->all, devices_in_order);
            return;
        }
}

/* Gives an activity the first row whose last activity has ended. Returns how
 * many rows there are now. */
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

/* Sums up `count` activities of a lane, gives them rows, and counts the items
 * of each row. Returns how many rows there are. */
static uint32_t sum_up(arrived *first, size_t count, device_lane *lane,
                       uint32_t *items)
{
    int64_t ends[VST_DEVICE_ROWS_MAX], reached_ns = first->own.start_ns;
    uint32_t rows = 0;

    *lane = (device_lane){
        .device = is_on_thread(first) ? 0 : first->own.device,
        .stream = first->stream,
        .thread = first->thread,
        .start_ns = first->own.start_ns,
    };
    for (size_t i = 0; i < count; i++) {
        const activity *own = &first[i].own;
        int64_t from_ns =
            own->start_ns > reached_ns ? own->start_ns : reached_ns;

        rows = give_row(&first[i], ends, rows);
        items[own->row]++;
        lane->bytes += own->bytes;
        if (own->end_ns > from_ns)
            lane->busy_ns += own->end_ns - from_ns;
        if (own->end_ns > reached_ns)
            reached_ns = own->end_ns;
    }
    lane->end_ns = reached_ns;
    return rows;
}

static vst_status name_lane(const reading *r, device_lane *lane)
{
    const vst_trace_stream *stream =
        lane->device != 0
            ? vst_trace_stream_find(r->trace, lane->device, lane->stream)
            : NULL;

    return stream != NULL
               ? vst__lanes_keep_text(r->lanes, stream->name, stream->name_len,
                                      TEXTS_MAX, &lane->name)
               : VST_OK;
}

static vst_status add_lane(const reading *r, size_t first, size_t end)
{
    devices *own = r->lanes->own;
    uint32_t items[VST_DEVICE_ROWS_MAX] = {0}, rows;
    device_lane *grown;
    vst_status status;

    if (!VST_RESERVE(own->lanes, r->lanes->lane_count + 1, own->lane_capacity))
        return VST_E_NOMEM;
    grown = &own->lanes[r->lanes->lane_count];
    rows = sum_up(&r->all[first], end - first, grown, items);
    status = name_lane(r, grown);
    return status == VST_OK ? vst__lanes_add(r->lanes, items, rows) : status;
}

static vst_status devices_make_lanes(const reading *r)
{
    vst_status status = VST_OK;

    for (size_t first = 0, end; status == VST_OK && first < r->count;
         first = end) {
        for (end = first + 1;
             end < r->count && lane_order(&r->all[first], &r->all[end]) == 0;
             end++)
            ;
        status = add_lane(r, first, end);
    }
    return status;
}

/* ---- rows ---------------------------------------------------------------- */

/* Turns the numbers of arrival into numbers of activities, and links each call
 * to its activities, in order of their numbers. */
static void link_launches(activity *all, uint32_t count,
                          const uint32_t *number_of)
{
    for (uint32_t i = count; i-- > 0;) {
        activity *one = &all[i], *call;

        if (one->launch == 0)
            continue;
        one->launch = number_of[one->launch - 1] + 1;
        call = &all[one->launch - 1];
        one->next = call->next;
        call->next = i + 1;
    }
}

/* Puts a lane's activities, which are in order of time, into its rows. */
static vst_status fill_rows(const reading *r)
{
    vst__lanes *lanes = r->lanes;
    devices *own = lanes->own;
    uint32_t *number_of = calloc(r->count + 1, sizeof *number_of);
    uint32_t *filled = calloc(lanes->row_count + 1, sizeof *filled);
    size_t at = 0;

    own->all = calloc(r->count + 1, sizeof *own->all);
    if (number_of == NULL || filled == NULL || own->all == NULL) {
        free(number_of);
        free(filled);
        return VST_E_NOMEM;
    }
    for (uint32_t lane = 0; lane < lanes->lane_count; lane++) {
        uint32_t first = lanes->first_row[lane], end = first;
        size_t left = 0;

        for (; end < lanes->first_row[lane + 1]; end++)
            left += lanes->rows[end].count;
        for (; left != 0; left--, at++) {
            uint32_t row = first + r->all[at].own.row;
            uint32_t number = lanes->rows[row].first + filled[row]++;

            own->all[number] = r->all[at].own;
            number_of[r->all[at].index] = number;
        }
    }
    link_launches(own->all, (uint32_t)r->count, number_of);
    free(number_of);
    free(filled);
    return VST_OK;
}

/* ---- making the lanes ---------------------------------------------------- */

static vst_status devices_arrange(reading *r)
{
    vst_status status;

    devices_sort(r);
    status = devices_make_lanes(r);
    return status == VST_OK ? fill_rows(r) : status;
}

static vst_status read_devices(vst__lanes *lanes, vst_trace *trace,
                               const vst__lanes_options *options,
                               vst_error *error)
{
    reading r = {.lanes = lanes, .trace = trace};
    vst_sink sink = {.ctx = &r,
                     .no_imports = true,
                     .span = devices_on_span,
                     .device = devices_on_device};
    vst_status status = vst_error_set(error, VST_E_NOMEM, 0, 0);

    lanes->own = calloc(1, sizeof(devices));
    if (lanes->own != NULL)
        status = vst_trace_replay(trace, options->window, NULL, &sink, error);
    if (status == VST_OK)
        status = vst_error_set(error, devices_arrange(&r), 0, 0);
    free(r.all);
    return status;
}

static void free_devices(vst__lanes *lanes)
{
    devices *own = lanes->own;

    free(own->all);
    free(own->lanes);
    free(own);
}

/* ---- lanes and items ----------------------------------------------------- */

static void devices_lane_of(const vst__lanes *lanes, uint32_t lane,
                            vst__lane *got)
{
    const device_lane *own = &((const devices *)lanes->own)->lanes[lane];

    got->device = own->device;
    got->stream = own->stream;
    got->thread = own->thread;
    got->start_ns = own->start_ns;
    got->end_ns = own->end_ns;
    got->busy_ns = own->busy_ns;
    got->bytes = own->bytes;
    got->name = vst__lanes_text(lanes, own->name, &got->name_len);
}

static const activity *activity_at(const vst__lanes *lanes, uint32_t number)
{
    return &((const devices *)lanes->own)->all[number];
}

static void devices_item_of(const vst__lanes *lanes, uint32_t number,
                            vst__lane_item *item)
{
    const activity *one = activity_at(lanes, number);

    *item = (vst__lane_item){.start_ns = one->start_ns,
                             .end_ns = one->end_ns,
                             .id = one->id,
                             .count = 1};
}

static void devices_facts_of(const vst__lanes *lanes, uint32_t number,
                             uint64_t *values)
{
    const activity *one = activity_at(lanes, number);

    values[VST_DEVICE_KIND] = one->kind;
    values[VST_DEVICE_DEVICE] = one->device;
    values[VST_DEVICE_CONTEXT] = one->context;
    values[VST_DEVICE_CORRELATION] = one->correlation;
    values[VST_DEVICE_EXTERNAL] = one->external;
    values[VST_DEVICE_BYTES] = one->bytes;
    values[VST_DEVICE_OP] = one->op.serial != 0 ? one->op.id : 0;
    values[VST_DEVICE_ANNOTATION] =
        one->annotation.serial != 0 ? one->annotation.id : 0;
    values[VST_DEVICE_LAUNCH] = one->launch;
    values[VST_DEVICE_ARGS] = one->text;
    values[VST_DEVICE_OP_SERIAL] = one->op.serial;
    values[VST_DEVICE_ANNOTATION_SERIAL] = one->annotation.serial;
}

/* Returns the activities that a call launched. */
static size_t devices_linked(const vst__lanes *lanes, uint32_t number,
                             uint32_t *numbers, size_t most)
{
    size_t found = 0;

    if (!vst_activity_is_on_thread(activity_at(lanes, number)->kind))
        return 0;
    for (uint32_t next = activity_at(lanes, number)->next; next != 0;
         next = activity_at(lanes, next - 1)->next) {
        if (found < most)
            numbers[found] = next - 1;
        found++;
    }
    return found;
}

const vst__lanes_kind vst__lanes_devices = {
    .name = "devices",
    .facts = facts,
    .fact_count = sizeof facts / sizeof *facts,
    .read = read_devices,
    .free = free_devices,
    .lane = devices_lane_of,
    .item = devices_item_of,
    .facts_of = devices_facts_of,
    .linked = devices_linked,
};
