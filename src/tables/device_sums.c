/* See device_sums.h. The works of a window are kept until it ends, because they
 * arrive stream by stream, while a device is busy when any of its streams is.
 * One thread at a time. */
#include "tables/device_sums.h"

#include <stdlib.h>

#include "base/grow.h"
#include "store/reader.h"

#define NO_CALL INT64_MIN

/* Adds without overflow: in a damaged file, activities may last centuries. */
static void add_ns(int64_t *sum, int64_t ns)
{
    *sum = *sum > INT64_MAX - ns ? INT64_MAX : *sum + ns;
}

/* ---- by name ------------------------------------------------------------- */

static vst_status add_named(vst__device_sums *self, const vst_device_span *span)
{
    uint64_t key =
        (uint64_t)span->device << 40 | (uint64_t)span->kind << 32 | span->id;
    uint64_t *place = vst__map64_put(&self->named_of, key);
    int64_t ns = span->end_ns - span->start_ns;
    vst__device_named *named;

    if (place == NULL)
        return VST_E_NOMEM;
    if (*place == 0) {
        named = vst__grow(self->named, &self->named_capacity,
                          self->named_count + 1, sizeof *named);
        if (named == NULL)
            return VST_E_NOMEM;
        self->named = named;
        named[self->named_count++] = (vst__device_named){
            .device = span->device, .kind = span->kind, .id = span->id};
        *place = self->named_count;
    }
    named = &self->named[*place - 1];
    named->count++;
    add_ns(&named->total_ns, ns);
    named->bytes += span->bytes;
    if (named->longest_ns < ns)
        named->longest_ns = ns;
    return VST_OK;
}

static vst_status add_work(vst__device_sums *self, const vst_device_span *span)
{
    const vst_device_launch *launch = span->launch;

    if (!VST_RESERVE(self->works, self->work_count + 1, self->work_capacity))
        return VST_E_NOMEM;
    self->works[self->work_count++] = (vst__device_work){
        .start_ns = span->start_ns,
        .end_ns = span->end_ns,
        .called_ns = launch != NULL ? launch->start_ns : NO_CALL,
        .returned_ns = launch != NULL ? launch->end_ns : NO_CALL,
        .id = span->id,
        .op = span->op.id,
        .annotation = span->annotation.id,
        .device = span->device,
        .stream = span->stream,
        .thread = launch != NULL ? launch->thread : 0,
    };
    return VST_OK;
}

/* ---- use ----------------------------------------------------------------- */

static vst__device_use *find_use(vst__device_sums *self,
                                 const vst__device_work *of, bool is_stream)
{
    uint64_t key = (uint64_t)of->device << 33 |
                   (is_stream ? UINT64_C(1) << 32 | of->stream : 0);
    uint64_t *place = vst__map64_put(&self->use_of, key + 1);

    if (place == NULL)
        return NULL;
    if (*place == 0) {
        if (!VST_RESERVE(self->uses, self->use_count + 1, self->use_capacity))
            return NULL;
        self->uses[self->use_count++] = (vst__device_use){
            .device = of->device,
            .is_stream = is_stream,
            .stream = is_stream ? of->stream : 0,
            .start_ns = of->start_ns,
            .end_ns = of->end_ns,
        };
        *place = self->use_count;
    }
    return &self->uses[*place - 1];
}

static int64_t device_sums_unlaunched(const vst__device_work *next,
                                      int64_t idle_from_ns)
{
    int64_t until =
        next->called_ns < next->start_ns ? next->called_ns : next->start_ns;

    return until > idle_from_ns ? until - idle_from_ns : 0;
}

/* Keeps the longest gaps of each device; gaps arrive device by device. */
static vst_status note_gap(vst__device_sums *self, const vst__device_work *next,
                           int64_t from_ns)
{
    const vst__device_gap gap = {
        .device = next->device,
        .start_ns = from_ns,
        .end_ns = next->start_ns,
        .unlaunched_ns = next->called_ns != NO_CALL
                             ? device_sums_unlaunched(next, from_ns)
                             : -1,
        .stream = next->stream,
        .id = next->id,
        .thread = next->thread,
        .op = next->op,
        .annotation = next->annotation,
    };
    vst__device_gap *gaps = self->gaps, *shortest = NULL;
    size_t own = 0;

    for (size_t i = 0; i < self->gap_count; i++) {
        if (gaps[i].device != gap.device)
            continue;
        own++;
        if (shortest == NULL || gaps[i].end_ns - gaps[i].start_ns <
                                    shortest->end_ns - shortest->start_ns)
            shortest = &gaps[i];
    }
    if (own < VST_DEVICE_GAPS) {
        gaps = vst__grow(gaps, &self->gap_capacity, self->gap_count + 1,
                         sizeof *gaps);
        if (gaps == NULL)
            return VST_E_NOMEM;
        self->gaps = gaps;
        gaps[self->gap_count++] = gap;
    } else if (gap.end_ns - gap.start_ns >
               shortest->end_ns - shortest->start_ns) {
        *shortest = gap;
    }
    return VST_OK;
}

static void add_launch(vst__device_use *use, const vst__device_work *one)
{
    if (one->called_ns == NO_CALL)
        return;
    use->launched++;
    if (one->start_ns > one->returned_ns)
        add_ns(&use->delay_ns, one->start_ns - one->returned_ns);
}

static int64_t device_sums_clip(const vst__device_sums *self, int64_t ns)
{
    return ns < self->first_ns  ? self->first_ns
           : ns > self->last_ns ? self->last_ns
                                : ns;
}

/* Adds up works that are sorted by their starts. */
static vst_status add_use(vst__device_sums *self, const vst__device_work *works,
                          size_t count, bool is_stream)
{
    vst__device_use *use = find_use(self, works, is_stream);
    int64_t first_ns = device_sums_clip(self, works->start_ns),
            edge_ns = first_ns;
    vst_status status = VST_OK;

    if (use == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; status == VST_OK && i < count; i++) {
        int64_t start_ns = device_sums_clip(self, works[i].start_ns);
        int64_t end_ns = device_sums_clip(self, works[i].end_ns);
        int64_t gap_ns = start_ns - edge_ns;

        add_launch(use, &works[i]);
        if (use->end_ns < works[i].end_ns)
            use->end_ns = works[i].end_ns;
        if (gap_ns > 0) {
            use->gaps++;
            add_ns(&use->idle_ns, gap_ns);
            if (use->longest_gap_ns < gap_ns)
                use->longest_gap_ns = gap_ns;
            if (works[i].called_ns != NO_CALL)
                add_ns(&use->unlaunched_ns,
                       device_sums_unlaunched(&works[i], edge_ns));
            if (!is_stream)
                status = note_gap(self, &works[i], edge_ns);
            edge_ns = start_ns;
        }
        if (end_ns > edge_ns) {
            add_ns(&use->busy_ns, end_ns - edge_ns);
            edge_ns = end_ns;
        }
    }
    use->works += count;
    add_ns(&use->span_ns, edge_ns - first_ns);
    return status;
}

static int device_sums_by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Computes the length of a stream's queue; works are sorted by their starts. */
static vst_status add_queue(vst__device_sums *self,
                            const vst__device_work *works, size_t count)
{
    vst__device_use *use = find_use(self, works, true);
    size_t launched = 0, begun = 0, at = 0;

    if (!VST_RESERVE(self->calls, count, self->call_capacity))
        return VST_E_NOMEM;
    if (use == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < count; i++)
        if (works[i].called_ns != NO_CALL)
            self->calls[launched++] = works[i].called_ns;
    qsort(self->calls, launched, sizeof *self->calls, device_sums_by_time);
    for (size_t i = 0; i < launched; i++) {
        uint64_t queue;

        for (; at < count && works[at].start_ns <= self->calls[i]; at++)
            begun += works[at].called_ns != NO_CALL;
        queue = i + 1 > begun ? i + 1 - begun : 0;
        use->queue_sum += queue;
        if (use->queue_max < queue)
            use->queue_max = queue;
    }
    return VST_OK;
}

static int device_sums_by_start(const void *a, const void *b)
{
    const vst__device_work *x = a, *y = b;

    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* Returns how many works from `at` on belong to one device, or to one stream.
 */
static size_t run_of(const vst__device_sums *self, size_t at, bool is_stream)
{
    const vst__device_work *works = self->works;
    size_t end = at;

    while (end < self->work_count && works[end].device == works[at].device &&
           (!is_stream || works[end].stream == works[at].stream))
        end++;
    return end - at;
}

static vst_status device_sums_end_window(vst__device_sums *self)
{
    vst_status status = VST_OK;
    size_t count;

    for (size_t at = 0; status == VST_OK && at < self->work_count;
         at += count) {
        count = run_of(self, at, true);
        status = add_use(self, &self->works[at], count, true);
        if (status == VST_OK)
            status = add_queue(self, &self->works[at], count);
    }
    for (size_t at = 0; status == VST_OK && at < self->work_count;
         at += count) {
        count = run_of(self, at, false);
        qsort(&self->works[at], count, sizeof *self->works,
              device_sums_by_start);
        status = add_use(self, &self->works[at], count, false);
    }
    self->work_count = 0;
    return status;
}

/* ---- windows ------------------------------------------------------------- */

/* Ends the window whose works were kept, if another window begins. */
static vst_status reach_window(vst__device_sums *self,
                               const vst__window *window)
{
    vst__clockmap *clock = &self->pass->trace->clock;
    vst_status status = VST_OK;

    if (window == self->window)
        return VST_OK;
    if (self->window != NULL)
        status = device_sums_end_window(self);
    self->window = window;
    self->first_ns = vst__clockmap_to_ns(clock, window->first);
    self->last_ns = vst__clockmap_to_ns(clock, window->last);
    return status;
}

static vst_status device_sums_on_device(void *ctx, const vst_device_span *span)
{
    vst__device_sums *self = ctx;
    vst_status status =
        reach_window(self, vst__replay_window(self->pass->replay));

    if (status == VST_OK)
        status = add_named(self, span);
    if (status == VST_OK && vst_activity_is_work(span->kind))
        status = add_work(self, span);
    return status;
}

/* Ignores spans. Replay looks for operators and annotations only if the sink
 * takes spans. */
static vst_status device_sums_on_span(void *ctx, const vst_span *span)
{
    (void)ctx, (void)span;
    return VST_OK;
}

/* ---- the life of the sums ------------------------------------------------ */

static int device_sums_order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int in_order_of_name(const void *a, const void *b)
{
    const vst__device_named *x = a, *y = b;

    return x->device != y->device ? device_sums_order(x->device, y->device)
           : x->kind != y->kind   ? device_sums_order(x->kind, y->kind)
                                  : device_sums_order(x->id, y->id);
}

static int in_order_of_use(const void *a, const void *b)
{
    const vst__device_use *x = a, *y = b;

    return x->device != y->device ? device_sums_order(x->device, y->device)
           : x->is_stream != y->is_stream
               ? device_sums_order(x->is_stream, y->is_stream)
               : device_sums_order(x->stream, y->stream);
}

static int in_order_of_gap(const void *a, const void *b)
{
    const vst__device_gap *x = a, *y = b;
    int64_t ns = x->end_ns - x->start_ns, other = y->end_ns - y->start_ns;

    if (x->device != y->device)
        return device_sums_order(x->device, y->device);
    if (ns != other)
        return ns > other ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static void device_sums_sort(void *items, size_t count, size_t size,
                             int (*compare)(const void *, const void *))
{
    if (count > 1)
        qsort(items, count, size, compare);
}

vst_status vst__device_sums_join(vst__filling *filling)
{
    vst__table_pass *pass = filling->pass;
    vst__device_sums *made;

    if (pass->devices != NULL)
        return VST_OK;
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return VST_E_NOMEM;
    made->pass = pass;
    pass->devices = made;
    filling->sink = (vst_sink){.ctx = made,
                               .no_args = true,
                               .span = device_sums_on_span,
                               .device = device_sums_on_device};
    filling->is_read = vst_trace_device_count(pass->trace) != 0;
    return VST_OK;
}

vst_status vst__device_sums_finish(vst__device_sums *self)
{
    vst_status status;

    if (self->is_finished)
        return VST_OK;
    self->is_finished = true;
    status = device_sums_end_window(self);
    device_sums_sort(self->named, self->named_count, sizeof *self->named,
                     in_order_of_name);
    device_sums_sort(self->uses, self->use_count, sizeof *self->uses,
                     in_order_of_use);
    device_sums_sort(self->gaps, self->gap_count, sizeof *self->gaps,
                     in_order_of_gap);
    return status;
}

void vst__device_sums_leave(vst__filling *filling)
{
    vst__device_sums *self = filling->pass->devices;

    filling->pass->devices = NULL;
    if (self == NULL)
        return;
    free(self->named);
    free(self->uses);
    free(self->gaps);
    free(self->works);
    free(self->calls);
    vst__map64_free(&self->named_of);
    vst__map64_free(&self->use_of);
    free(self);
}
