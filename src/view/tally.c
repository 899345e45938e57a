/* See view/tally.h. Each thread's new records go through a tree of calls
 * (flame.h) that lasts for one look, and whose rows are added up by function.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "replay/matcher_stack.h"
#include "replay/running.h"
#include "view/follow.h"
#include "view/tally.h"

/* A function that is its own caller further out than this counts twice. */
enum { ANCESTORS_MAX = 512 };

struct vst_tally {
    vst__following following;
    int64_t before_ns, to_ns;
    bool begun;
    vst__flame tree;   /* of one thread at a time */
    vst__map64 places; /* id -> 1 + index of functions */
    vst_tally_function *functions;
    size_t function_count, function_capacity;
    vst_tally_thread *threads;
    size_t thread_count, thread_capacity;
    vst_tally_counter *counters;
    size_t counter_count, counter_capacity;
    uint64_t lost;
    vst_running running; /* of one thread at a time; of each, follower->of keeps
                          * what is known */
    vst__running_mark mark;
    uint32_t marked; /* the window that the mark is in */
    bool knows_running;
};

vst_status vst__tally_open(const char *path, int64_t before_ns, vst_tally **out,
                           vst_error *error)
{
    vst_tally *tally = calloc(1, sizeof *tally);
    vst_status status;

    if (tally == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    tally->before_ns = before_ns > 0 ? before_ns : 0;
    status = vst__following_open(&tally->following, path, error);
    if (status != VST_OK) {
        vst__tally_close(tally);
        return status;
    }
    *out = tally;
    return VST_OK;
}

void vst__tally_close(vst_tally *tally)
{
    if (tally == NULL)
        return;
    for (size_t i = 0; i < tally->following.count; i++)
        free(tally->following.followers[i]->of);
    vst__following_close(&tally->following);
    vst__running_free(&tally->running);
    vst__flame_free(&tally->tree);
    vst__map64_free(&tally->places);
    free(tally->functions);
    free(tally->threads);
    free(tally->counters);
    free(tally);
}

const vst_trace *vst__tally_trace(const vst_tally *tally)
{
    return tally->following.trace;
}

/* ---- one thread --------------------------------------------------------- */

static vst_status take_loss(void *ctx, const vst_loss *loss)
{
    vst_tally *tally = ctx;

    /* What lies before the first look was not lost. */
    if (loss->kind != VST_LOSS_DROPPED || loss->start_ns >= tally->tree.from_ns)
        tally->lost += loss->records;
    return VST_OK;
}

static vst_status take_counter(void *ctx, const vst_counter *counter)
{
    vst_tally *tally = ctx;
    vst_tally_counter *counters = tally->counters;
    size_t i = 0;

    while (i < tally->counter_count && counters[i].id != counter->id)
        i++;
    if (i == tally->counter_count) {
        counters = vst__grow(counters, &tally->counter_capacity,
                             tally->counter_count + 1, sizeof *counters);
        if (counters == NULL)
            return VST_E_NOMEM;
        tally->counters = counters;
        counters[tally->counter_count++].id = counter->id;
    }
    counters[i].value = counter->value;
    return VST_OK;
}

static bool is_recursive(const vst__flame *tree, size_t row)
{
    vst_id id = tree->rows[row].id;
    int64_t at = tree->rows[row].parent;

    for (size_t left = ANCESTORS_MAX; at >= 0; at = tree->rows[at].parent)
        if (tree->rows[at].id == id || --left == 0)
            return true;
    return false;
}

static vst_status add_row(vst_tally *tally, size_t index, int64_t *roots_ns)
{
    const vst_view_flame_row *row = &tally->tree.rows[index];
    uint64_t *place = vst__map64_put(&tally->places, row->id);
    vst_tally_function *functions;

    if (place == NULL)
        return VST_E_NOMEM;
    if (*place == 0) {
        functions = vst__grow(tally->functions, &tally->function_capacity,
                              tally->function_count + 1, sizeof *functions);
        if (functions == NULL)
            return VST_E_NOMEM;
        tally->functions = functions;
        functions[tally->function_count++] =
            (vst_tally_function){.id = row->id};
        *place = tally->function_count;
    }
    functions = &tally->functions[*place - 1];
    /* Less than 0: it was open before, and left the stack uncounted. */
    functions->calls += (int64_t)row->count > 0 ? row->count : 0;
    functions->own_ns += row->self_ns;
    functions->bytes += row->self_bytes;
    if (tally->tree.running != NULL)
        functions->own_running_ns += tally->tree.ran[index].self_ns;
    if (!is_recursive(&tally->tree, index)) {
        functions->total_ns += row->total_ns;
        if (tally->tree.running != NULL)
            functions->total_running_ns += tally->tree.ran[index].total_ns;
    }
    if (row->parent < 0)
        *roots_ns += row->total_ns;
    return VST_OK;
}

static vst_status add_thread(vst_tally *tally, const vst__follower *follower,
                             uint64_t words, int64_t in_calls_ns)
{
    const vst__walk *walk = &follower->walk;
    const vst_matcher *matcher = walk->plain ? NULL : walk->matcher;
    size_t depth = matcher != NULL ? matcher->count : walk->open_count;
    vst_tally_thread *threads =
        vst__grow(tally->threads, &tally->thread_capacity,
                  tally->thread_count + 1, sizeof *threads);
    vst_tally_thread *thread;

    if (threads == NULL)
        return VST_E_NOMEM;
    tally->threads = threads;
    thread = &threads[tally->thread_count++];
    *thread = (vst_tally_thread){
        .number = follower->thread,
        .depth = (uint32_t)depth,
        .words = words,
        .in_calls_ns = in_calls_ns,
    };
    if (depth != 0) {
        thread->id = matcher != NULL ? matcher->frames[depth - 1].id
                                     : walk->open[depth - 1].id;
        thread->since_ns = matcher != NULL ? matcher->frames[depth - 1].start_ns
                                           : walk->open[depth - 1].start_ns;
    }
    return VST_OK;
}

/* Reads its new records into the tree. What is open when the time begins is
 * not a call that begins in it. */
static vst_status read_thread(vst_tally *tally, vst__follower *follower,
                              bool goes_on)
{
    vst__flame *tree = &tally->tree;
    vst_sink also = {.ctx = tally, .loss = take_loss, .counter = take_counter};
    vst_status status = VST_OK;
    bool more;

    follower->walk.tree = tree;
    follower->walk.also = &also;
    if (follower->begun)
        status = vst__walk_fill_tree(&follower->walk);
    for (size_t i = 0; status == VST_OK && i < tree->frame_count; i++)
        tree->rows[tree->frames[i].node].count--;
    if (status == VST_OK)
        status = vst__follower_begin(&tally->following, follower, &more);
    while (status == VST_OK && more)
        status = vst__follower_next(follower, &more);
    follower->walk.tree = NULL;
    follower->walk.also = NULL;
    /* A window that was closed goes on no longer. */
    if (!goes_on) {
        follower->walk.open_count = 0;
        follower->walk.plain = true;
    }
    vst__flame_end(tree);
    vst__follower_end(follower);
    return status;
}

/* Has the tree ask how long the thread of a follower ran. */
static vst_status begin_running(vst_tally *tally, vst__follower *follower)
{
    tally->tree.running = NULL;
    if (!tally->knows_running || follower->window != tally->marked)
        return VST_OK;
    if (follower->of == NULL)
        follower->of = calloc(1, sizeof(vst__running_kept));
    if (follower->of == NULL)
        return VST_E_NOMEM;
    tally->tree.running = &tally->running;
    return vst__running_resume(&tally->running, follower->thread, follower->of);
}

static vst_status look_at(vst_tally *tally, vst__follower *follower,
                          int64_t to_ns)
{
    const vst_trace *trace = tally->following.trace;
    const vst__window *last = trace->windows + trace->window_count - 1;
    bool goes_on = follower->window == last->number && !last->closed;
    uint64_t words = follower->words;
    int64_t roots_ns = 0;
    vst_status status;

    vst__flame_reset(&tally->tree, tally->to_ns, to_ns);
    status = begin_running(tally, follower);
    if (status == VST_OK)
        status = read_thread(tally, follower, goes_on);
    if (status != VST_OK)
        return status;
    vst__flame_finish(&tally->tree);
    if (tally->tree.running != NULL)
        vst__running_keep(&tally->running, follower->of);
    for (size_t i = 0; status == VST_OK && i < tally->tree.count; i++)
        status = add_row(tally, i, &roots_ns);
    if (status == VST_OK && follower->window == last->number)
        status = add_thread(tally, follower, follower->words - words, roots_ns);
    return status;
}

/* ---- all of them -------------------------------------------------------- */

/* By the clock that the trace's own times follow. */
static int64_t now(const vst_trace *trace)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return vst__clockmap_monotonic_to_ns(&trace->clock,
                                         (uint64_t)time.tv_sec * 1000000000 +
                                             (uint64_t)time.tv_nsec);
}

/* Where this look ends. Asked before the file is: what was recorded by now is
 * there when it is read. */
static int64_t find_end(const vst_tally *tally, const vst_trace_info *info,
                        int64_t now_ns, bool alive)
{
    if (!alive || info->end_ns > now_ns)
        now_ns = info->end_ns;
    return now_ns > tally->to_ns ? now_ns : tally->to_ns;
}

/* Where the first look begins: not before the recording. */
static int64_t find_beginning(const vst_tally *tally,
                              const vst_trace_info *info, int64_t to_ns)
{
    int64_t from_ns = to_ns - tally->before_ns;

    return from_ns > info->start_ns ? from_ns : info->start_ns;
}

static vst_status grow(vst_tally *tally, bool alive, int64_t *to_ns,
                       vst_error *error)
{
    vst_trace *trace = tally->following.trace;
    int64_t now_ns = now(trace);
    vst_status status = vst__following_grow(&tally->following, error);
    vst_trace_info info;

    if (status != VST_OK)
        return status;
    vst_trace_get_info(trace, &info);
    *to_ns = find_end(tally, &info, now_ns, alive);
    if (!tally->begun) {
        tally->begun = true;
        tally->to_ns = find_beginning(tally, &info, *to_ns);
        vst_trace_set_range(trace, tally->to_ns, INT64_MAX);
    }
    tally->function_count = tally->thread_count = 0;
    tally->lost = 0;
    vst__map64_clear(&tally->places);
    return VST_OK;
}

/* Finds what is new of when threads ran, in the last window. */
static vst_status find_running(vst_tally *tally)
{
    vst_trace *trace = tally->following.trace;
    const vst__window *last;

    if (trace->window_count == 0)
        return VST_OK;
    last = trace->windows + trace->window_count - 1;
    if (last->number != tally->marked || !tally->knows_running)
        tally->mark = (vst__running_mark){0};
    tally->marked = last->number;
    tally->knows_running = last->switches != 0;
    return tally->knows_running
               ? vst__running_collect_new(&tally->running, trace, last,
                                          &tally->mark)
               : VST_OK;
}

vst_status vst__tally_next(vst_tally *tally, bool alive, vst_tally_look *look,
                           vst_error *error)
{
    vst__following *following = &tally->following;
    uint64_t words = 0;
    int64_t to_ns;
    vst_status status;

    vst_error_set(error, VST_OK, 0, 0);
    status = grow(tally, alive, &to_ns, error);
    if (status == VST_OK)
        status = vst_error_set(error, find_running(tally), 0, 0);
    for (size_t i = 0; status == VST_OK && i < following->count; i++) {
        uint64_t before = following->followers[i]->words;

        status = look_at(tally, following->followers[i], to_ns);
        words += following->followers[i]->words - before;
        if (status != VST_OK)
            vst_error_set(error, status,
                          following->followers[i]->walk.block.sys_errno, 0);
    }
    if (status != VST_OK)
        return status;
    vst_trace_set_range(following->trace, INT64_MIN, INT64_MAX);
    *look = (vst_tally_look){
        .from_ns = tally->to_ns,
        .to_ns = to_ns,
        .words = words,
        .lost = tally->lost,
        .finished = following->trace->header.state == VST_FILE_FINISHED,
        .knows_running = tally->knows_running,
        .functions = tally->functions,
        .function_count = tally->function_count,
        .threads = tally->threads,
        .thread_count = tally->thread_count,
        .counters = tally->counters,
        .counter_count = tally->counter_count,
    };
    tally->to_ns = to_ns;
    return VST_OK;
}
