/* See growing.h. Each thread has a follower, which continues where the records
 * ended, and a matcher with the open calls. The sums contain the spans that
 * ended; for the rows of a moment, copies of the matchers end the open calls in
 * a copy of the sums. */
#include "tables/growing.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "replay/matcher_stack.h"
#include "replay/running.h"
#include "replay/sink.h"
#include "tables/sums.h"
#include "view/follow/followers.h"

/* One thread in one window: the follower's user_data. */
typedef struct of_thread {
    vst__own_times own, ran;
    vst__running_kept kept;
    uint64_t words; /* new words in this reading */
    bool ended;     /* nothing is open any more */
} of_thread;

/* How much of a window's switches was read. Switches found by the last reading
 * are read again, because some of them may be later than everything that it
 * asked for. */
typedef struct of_window {
    vst__running_mark read, found;
} of_window;

struct vst__growing {
    vst__sums sums; /* must be the first field: sinks have its address */
    vst_sink sink;
    vst_sink_inside inside; /* the additions to the sink */
    vst__table_options options;
    vst__following following;
    int64_t before_ns, from_ns, to_ns;
    bool begun, knows_running;
    uint64_t lost;
    /* the clock of running time of the thread that is being read */
    vst_running running;
    of_window *windows; /* by number */
    size_t window_capacity;
    vst__table_pass pass; /* of the rows: only its sums are used */
    vst__filling functions, threads;
};

/* ---- threads that are shown ---------------------------------------------- */

#define THREADS_COLUMNS(COLUMN)                                                \
    COLUMN(I32, thread, follower->thread)                                      \
    COLUMN(I64, tid, thread != NULL ? thread->system_tid : 0)                  \
    COLUMN(TEXT, name, thread != NULL ? thread->name : "",                     \
           thread != NULL ? thread->name_len : 0)                              \
    COLUMN(I64, records, of->words)                                            \
    COLUMN(I32, depth, matcher != NULL ? matcher->count : 0)                   \
    COLUMN(I32, func, top != NULL ? top->id : 0)                               \
    COLUMN(I64, since_ns, top != NULL ? top->start_ns : 0)

static void growing_put_thread(vst__growing *self,
                               const vst__follower *follower)
{
    const vst_trace_thread *thread =
        vst_trace_thread_find(self->following.trace, follower->thread);
    const vst_matcher *matcher = follower->walk.matcher;
    const of_thread *of = follower->user_data;
    const vst__frame *top = matcher != NULL && matcher->count != 0
                                ? &matcher->frames[matcher->count - 1]
                                : NULL;

    VST_PUT_ROW(&self->threads.batch, THREADS_COLUMNS);
}

static const vst__table growing_threads = {.name = "threads_now",
                                           VST_COLUMNS(THREADS_COLUMNS)};

/* ---- opening ------------------------------------------------------------- */

static vst_status growing_take_loss(void *ctx, const vst_loss *loss)
{
    vst__growing *self = ctx;

    /* Records before the beginning of the sums were not lost. */
    if (loss->kind != VST_LOSS_DROPPED || loss->start_ns >= self->from_ns)
        self->lost += loss->records;
    return VST_OK;
}

static void forget_thread(vst__follower *follower)
{
    of_thread *of = follower->user_data;

    if (of != NULL) {
        free(of->own.levels);
        free(of->ran.levels);
    }
    free(of);
    follower->user_data = NULL;
    follower->begun = false;
}

vst_status vst__growing_open(const char *path, int64_t before_ns,
                             vst__growing **out, vst_error *error)
{
    vst__growing *self = calloc(1, sizeof *self);
    vst_status status;

    if (self == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    self->before_ns = before_ns > 0 ? before_ns : 0;
    status = vst__following_open(&self->following, path, error);
    if (status != VST_OK) {
        vst__growing_close(self);
        return status;
    }
    *out = self;
    return VST_OK;
}

void vst__growing_close(vst__growing *self)
{
    if (self == NULL)
        return;
    for (size_t i = 0; i < self->following.count; i++)
        forget_thread(self->following.followers[i]);
    vst__following_close(&self->following);
    vst__running_free(&self->running);
    vst__sums_free(&self->sums);
    vst__batch_free(&self->functions.batch);
    vst__batch_free(&self->threads.batch);
    free(self->windows);
    free(self);
}

const vst_trace *vst__growing_trace(const vst__growing *self)
{
    return self->following.trace;
}

/* ---- reading ------------------------------------------------------------- */

/* Begins, or begins again, with nothing read. */
static vst_status growing_begin(vst__growing *self)
{
    vst_status status;

    for (size_t i = 0; i < self->following.count; i++)
        forget_thread(self->following.followers[i]);
    if (self->windows != NULL)
        memset(self->windows, 0, self->window_capacity * sizeof(of_window));
    vst__sums_free(&self->sums);
    self->sums = (vst__sums){
        .options = &self->options,
        .trace = self->following.trace,
        .wanted = VST_SUMS_FUNCTIONS,
        .grows = true,
    };
    status = vst__sums_begin(&self->sums, &self->sink);
    self->sink.loss = growing_take_loss;
    self->sink.inside = &self->inside;
    self->inside.trace = self->following.trace;
    return status;
}

/* Reads the new switches of a window. At the last call in a reading, notes
 * where the next reading continues: behind the switches that the previous
 * reading had found. */
static vst_status growing_collect(vst__growing *self, const vst__window *window,
                                  bool last)
{
    size_t before = self->window_capacity;
    of_window *windows = vst__grow(self->windows, &self->window_capacity,
                                   (size_t)window->number + 1, sizeof *windows);
    vst__running_mark mark;
    vst_status status;

    if (windows == NULL)
        return VST_E_NOMEM;
    self->windows = windows;
    memset(windows + before, 0,
           (self->window_capacity - before) * sizeof *windows);
    windows += window->number;
    mark = windows->read;
    status = vst__running_collect_new(&self->running, self->following.trace,
                                      window, &mark);
    self->running.until_ns = INT64_MAX;
    if (last)
        *windows = (of_window){windows->found, mark};
    return status;
}

/* Gives the sink the clock of a thread's running time, as it was left by the
 * previous reading. */
static vst_status resume_clock(vst__growing *self,
                               const vst__follower *follower)
{
    const of_thread *of = follower->user_data;

    self->inside.running = NULL;
    if (!self->knows_running || follower->stretch == NULL)
        return VST_OK;
    self->inside.running = &self->running;
    return vst__running_resume(&self->running, follower->thread, &of->kept);
}

/* Ends everything that is open in a thread. */
static vst_status growing_end(const vst__growing *self, vst_matcher *matcher,
                              vst__follower *follower, const vst_sink *sink)
{
    const vst_trace *trace = self->following.trace;
    const vst__window *window = follower->stretch->window;
    bool goes_on =
        window == trace->windows + trace->window_count - 1 && !window->closed;
    int64_t end_ns = vst__clockmap_to_ns(&follower->walk.clock, window->last);

    if (goes_on && end_ns < self->to_ns)
        end_ns = self->to_ns;
    return vst_matcher_feed(matcher, &follower->walk.converter, NULL, 0, end_ns,
                            sink);
}

/* Adds the spans that ended in a thread. Skips a closed window without new
 * words. */
static vst_status read_thread(vst__growing *self, vst__follower *follower)
{
    of_thread *of = follower->user_data;
    uint64_t words = follower->words;
    vst_status status = resume_clock(self, follower);
    bool more = false, is_new;

    self->sums.own = of->own;
    self->sums.ran = of->ran;
    follower->walk.always_matcher = true;
    follower->walk.direct = &self->sink;
    if (status == VST_OK)
        status = vst__follower_begin(&self->following, follower, &more);
    is_new = more;
    while (status == VST_OK && more)
        status = vst__follower_next(follower, &more);
    if (status == VST_OK && !is_new && follower->stretch->window->closed) {
        of->ended = true;
        status =
            growing_end(self, follower->walk.matcher, follower, &self->sink);
    }
    if (self->inside.running != NULL)
        vst__running_keep(&self->running, self->to_ns, &of->kept);
    vst__follower_end(follower);
    of->own = self->sums.own;
    of->ran = self->sums.ran;
    self->sums.own = self->sums.ran = (vst__own_times){.levels = NULL};
    of->words = follower->words - words;
    return status;
}

static bool copy_times(const vst__own_times *from, vst__own_times *to)
{
    size_t size = from->capacity * sizeof *from->levels;

    *to = *from;
    to->levels = size != 0 ? malloc(size) : NULL;
    if (to->levels != NULL)
        memcpy(to->levels, from->levels, size);
    return to->levels != NULL || size == 0;
}

/* Adds the open spans of a thread to a copy of the sums. */
static vst_status close_thread(vst__growing *self, vst__follower *follower)
{
    const of_thread *of = follower->user_data;
    const vst_matcher *matcher = follower->walk.matcher;
    vst_status status = VST_OK;
    vst_matcher *copy = NULL;
    vst_sink sink;

    if (of->ended || matcher == NULL || matcher->count == 0)
        return VST_OK;
    status = resume_clock(self, follower);
    if (status == VST_OK)
        status = vst__matcher_copy(matcher, &copy);
    if (status == VST_OK && (!copy_times(&of->own, &self->sums.own) ||
                             !copy_times(&of->ran, &self->sums.ran)))
        status = VST_E_NOMEM;
    sink = self->sink;
    sink.loss = NULL;
    if (status == VST_OK)
        status = growing_end(self, copy, follower, &sink);
    vst_matcher_destroy(copy);
    free(self->sums.own.levels);
    free(self->sums.ran.levels);
    self->sums.own = self->sums.ran = (vst__own_times){.levels = NULL};
    return status;
}

typedef vst_status visit(vst__growing *self, vst__follower *follower);

static vst_status each_thread(vst__growing *self, visit *fn, bool last,
                              vst_error *error)
{
    const vst__window *window = NULL;

    for (size_t i = 0; i < self->following.count; i++) {
        vst__follower *follower = self->following.followers[i];
        vst_status status = VST_OK;

        if (follower->user_data == NULL)
            follower->user_data = calloc(1, sizeof(of_thread));
        if (follower->user_data == NULL)
            return vst_error_set(error, VST_E_NOMEM, 0, 0);
        if (follower->stretch == NULL)
            continue;
        if (self->knows_running && follower->stretch->window != window) {
            window = follower->stretch->window;
            status = growing_collect(self, window, last);
        }
        if (status == VST_OK)
            status = fn(self, follower);
        if (status != VST_OK)
            return vst_error_set(error, status, follower->walk.block.sys_errno,
                                 0);
    }
    return VST_OK;
}

/* ---- the rows ------------------------------------------------------------ */

/* Makes the rows of functions as if everything that is open ended now. */
static vst_status put_functions(vst__growing *self, vst_error *error)
{
    vst__function_sum *kept = self->sums.functions.of;
    size_t size = ((size_t)self->sums.max + 1) * sizeof *kept;
    vst_status status;

    self->sums.functions.of = malloc(size);
    if (self->sums.functions.of == NULL) {
        self->sums.functions.of = kept;
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    }
    memcpy(self->sums.functions.of, kept, size);
    status = each_thread(self, close_thread, true, error);
    if (status == VST_OK) {
        vst__table_functions.put(&self->functions);
        status = vst_error_set(error, self->functions.batch.status, 0, 0);
    }
    free(self->sums.functions.of);
    self->sums.functions.of = kept;
    return status;
}

/* Begins new rows, because the reader may have taken the previous rows. */
static void growing_begin_rows(vst__growing *self, vst__filling *filling,
                               const vst__table *table)
{
    vst__batch_free(&filling->batch);
    self->pass.sums = &self->sums;
    *filling = (vst__filling){.pass = &self->pass,
                              .batch = {.specs = table->columns,
                                        .column_count = table->column_count}};
}

static vst_status growing_put_threads(vst__growing *self, vst_error *error)
{
    const vst_trace *trace = self->following.trace;

    for (size_t i = 0; i < self->following.count; i++) {
        const vst__follower *follower = self->following.followers[i];

        if (follower->window == trace->windows[trace->window_count - 1].number)
            growing_put_thread(self, follower);
    }
    return vst_error_set(error, self->threads.batch.status, 0, 0);
}

/* ---- a reading ----------------------------------------------------------- */

/* Returns the present time by the clock that the trace's times follow. */
static int64_t growing_now(const vst_trace *trace)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return vst__clockmap_monotonic_to_ns(&trace->clock,
                                         (uint64_t)time.tv_sec * 1000000000 +
                                             (uint64_t)time.tv_nsec);
}

/* Returns where the first reading begins: not before the recording. */
static int64_t find_beginning(const vst__growing *self,
                              const vst_trace_info *info)
{
    int64_t from_ns = self->to_ns - self->before_ns;

    return from_ns > info->start_ns ? from_ns : info->start_ns;
}

/* Finds out what the file has. The time is read first: records up to that time
 * are there. If the trace turns out to have switches, everything is read again;
 * this happens early, so there is little to read. */
static vst_status growing_grow(vst__growing *self, bool alive, vst_error *error)
{
    vst_trace *trace = self->following.trace;
    int64_t now_ns = growing_now(trace);
    vst_status status = vst__following_grow(&self->following, error);
    bool knew_running = self->knows_running;
    vst_trace_info info;

    if (status != VST_OK)
        return status;
    vst_trace_get_info(trace, &info);
    if (!alive || info.end_ns > now_ns)
        now_ns = info.end_ns;
    if (now_ns > self->to_ns || !self->begun)
        self->to_ns = now_ns;
    self->knows_running = vst__trace_has_switches(trace);
    if (!self->begun)
        self->from_ns = find_beginning(self, &info);
    if (!self->begun || knew_running != self->knows_running)
        status = growing_begin(self);
    else
        status = vst__function_sums_grow(&self->sums);
    if (self->from_ns > info.start_ns)
        vst_trace_set_range(trace, self->from_ns, INT64_MAX);
    self->begun = true;
    self->lost = 0;
    return vst_error_set(error, status, 0, 0);
}

static uint64_t count_words(const vst__growing *self)
{
    uint64_t words = 0;

    for (size_t i = 0; i < self->following.count; i++)
        words +=
            ((const of_thread *)self->following.followers[i]->user_data)->words;
    return words;
}

vst_status vst__growing_read(vst__growing *self, bool alive,
                             vst__growth *growth, vst_error *error)
{
    vst_trace *trace = self->following.trace;
    vst_status status;

    vst_error_set(error, VST_OK, 0, 0);
    growing_begin_rows(self, &self->functions, &vst__table_functions);
    growing_begin_rows(self, &self->threads, &growing_threads);
    status = growing_grow(self, alive, error);
    if (status == VST_OK)
        status = each_thread(self, read_thread, false, error);
    vst_trace_set_range(trace, INT64_MIN, INT64_MAX);
    if (status == VST_OK)
        status = put_functions(self, error);
    if (status == VST_OK)
        status = growing_put_threads(self, error);
    if (status != VST_OK)
        return status;
    *growth = (vst__growth){
        .from_ns = self->from_ns,
        .to_ns = self->to_ns,
        .words = count_words(self),
        .lost = self->lost,
        .finished = trace->header.state == VST_FILE_FINISHED,
        .knows_running = self->knows_running,
        .functions = &self->functions.batch,
        .threads = &self->threads.batch,
    };
    return VST_OK;
}
