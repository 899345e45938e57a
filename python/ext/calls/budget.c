/* Decides how much recording costs, and when to leave out other functions: see
 * budget.h.
 *
 * The account. A counted call costs as much as was measured before the start
 * (costs.py), and the work of this file costs the CPU time that it took. The
 * allowed cost grows with the CPU time of the process. If more was spent than
 * allowed, the calls that were counted since the last change decide which
 * functions are left out; if enough of the allowed cost is unspent, a window
 * begins. All functions but budget_count() are called with the GIL held. */
#include "calls/budget.h"

#include "base/inside.h"
#include "calls/engine.h"
#include "calls/monitoring_tool.h"
#include "compat_py311.h"
#include "program/triggers.h"
#include "record/budget.h"
#include "record/language.h"
#include "thunks/thunks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct vpy_budget_state *const state = &vpy_calls.budget;

#define MS 1e6

enum { PACE_WORDS = 4096 };

/* share of the budget; windows get the rest */
static const double for_calls = 0.5;
/* limit for unspent CPU time, times the share */
static const double saved_ms = 100;
static const double sample_ms = 50; /* a sample is no older than this */
static const double window_ms = 10; /* a window is no longer than this */
/* a window costs no more than the budget allows in this time */
static const double window_share_ms = 40;
/* mean of the shortest time between two windows */
static const double between_ms = 30;
/* after this time the list is written to a bounded file again */
static const double list_again_ms = 100;
static const double word_ns = 2.5;  /* cost of counting a word */
static const double place_ns = 500; /* cost of disabling a function's places */
/* A call may cost this many times as much as in the loop that measured it.
 * These factors were measured in servers. */
static const double margin_python = 1.5, margin_native = 3;
/* Share of the budget for counted costs. The rest is for costs that are not
 * counted: caches that records fill, code that the interpreter specializes
 * again, a heap with other holes. */
static const double for_counted = 0.5;

static double cpu_now(void)
{
    return (double)vpy_cpu_ns();
}

/* ---- counting ------------------------------------------------------------ */

void vpy_budget_define(vst_id id, bool is_native)
{
    vpy_counts *all = &state->counts;
    vst_id size;
    void *of, *seen, *out;

    /* A build without the GIL, where many threads come here concurrently, has
     * no budget. */
    if (VPY_FREE_THREADED || state->share == 0 || id == 0)
        return;
    size = all->size;
    while (size <= id)
        size = size != 0 ? size * 2 : 1024;
    if (size != all->size) {
        of = realloc(all->of, size * sizeof *all->of);
        all->of = of != NULL ? of : all->of;
        seen = of != NULL ? realloc(all->seen, size * sizeof *all->seen) : NULL;
        all->seen = seen != NULL ? seen : all->seen;
        out = seen != NULL ? realloc(all->out, size * sizeof *all->out) : NULL;
        all->out = out != NULL ? out : all->out;
        if (out == NULL)
            return; /* the function stays recorded */
        memset(all->of + all->size, 0, (size - all->size) * sizeof *all->of);
        all->size = size;
    }
    all->of[id].is |= is_native ? VPY_BUDGET_NATIVE : VPY_BUDGET_PLAIN;
}

static void budget_spend(double ns)
{
    state->cost += ns;
    state->spent += ns;
}

/* Counts recorded words. Call with the recorder's lock held, or in a hook. */
static void budget_count(void *ctx, const uint64_t *words, size_t length)
{
    vpy_counts *all = &state->counts;
    const uint64_t *end = words + length;
    uint64_t natives = 0, calls = 0;
    double native_cost, cost, most;

    (void)ctx;
    for (const uint64_t *at = words; at < end; at++) {
        uint64_t word = *at;
        vst_id id = vst_word_id(word);
        vpy_counted *counted;

        if (vst_word_kind(word) == VST_ESCAPE)
            at += vst_word_escape_words(word);
        if (vst_word_kind(word) != VST_ENTER)
            continue;
        calls++;
        if (id >= all->size)
            continue;
        counted = &all->of[id];
        if (counted->calls++ == 0)
            all->seen[all->seen_count++] = id;
        if (at + 1 < end && vst_word_id(at[1]) == id)
            counted->leaves++;
        natives += counted->is & VPY_BUDGET_NATIVE;
    }
    native_cost = (double)natives * state->costs.native_ns;
    cost = (double)(calls - natives) * state->costs.python_ns +
           (double)length * state->storage_ns;
    most = cost * margin_python + native_cost * margin_native;
    cost += native_cost;
    state->sample.cost += cost;
    state->sample.most += most;
    budget_spend(cost + (double)length * word_ns);
    state->spent += most - cost;
}

double vpy_budget_word_ns(vst_recording *recording, double share)
{
    return vst__recording_storage_ns(recording) + (share != 0 ? word_ns : 0);
}

static void begin_sample(double cpu)
{
    vpy_counts *all = &state->counts;

    for (size_t i = 0; i < all->seen_count; i++)
        all->of[all->seen[i]].calls = all->of[all->seen[i]].leaves = 0;
    all->seen_count = 0;
    state->sample.cpu = cpu;
    state->sample.own = state->own;
    state->sample.cost = state->sample.most = 0;
    state->sample.ticks = vst_clock_ticks();
}

static double at_least(double ns, double least)
{
    return ns > least ? ns : least;
}

/* Returns the time of the sample without the cost of recording. The cost may be
 * overestimated, so at least a quarter of the time is left. */
static double sample_bare(double cpu)
{
    return at_least(cpu - state->sample.cpu - state->sample.cost,
                    (cpu - state->sample.cpu) / 4);
}

/* Returns how much may be spent now; negative if too much was spent. */
static double budget_allowance(double cpu)
{
    double most = state->share * saved_ms * MS, left;

    budget_spend(vpy_passing_share() * (cpu - state->looked));
    state->own +=
        at_least(cpu - state->looked - (state->cost - state->cost_by_then),
                 (cpu - state->looked) / 4);
    state->cost_by_then = state->cost;
    state->looked = cpu;
    left = state->share * (cpu - state->began - state->spent) - state->spent -
           state->forgone;
    if (left > most) {
        state->forgone += left - most;
        left = most;
    }
    return left;
}

/* ---- changing what is left out ------------------------------------------ */

uint32_t vpy_budget_value(uint32_t value)
{
    const vpy_counted *counted;

    if (state->tracer == NULL || value == 0)
        return value;
    if (vpy_passing_rests())
        return value | VPY_LEFT_OUT;
    if (!vpy_can_be_left_out(value) || VPY_ID(value) >= state->counts.size)
        return value;
    counted = &state->counts.of[VPY_ID(value)];
    return counted->is & VPY_BUDGET_OUT || counted->stale != 0
               ? value | VPY_LEFT_OUT
               : value;
}

static bool leaves_out(void)
{
    return state->counts.out_count != 0 || vpy_passing_rests();
}

/* Records the change. taken_ns: CPU time that the calling thread took for
 * it. */
static void record_change(uint32_t flags, double taken_ns)
{
    const vst_left_out left_out = {
        .flags = flags | (vpy_passing_rests() ? VST_LEFT_OUT_PYTHON : 0) |
                 (state->listed_any ? VST_LEFT_OUT_STILL : 0),
        .passing = (uint32_t)(vpy_passing_share() * 1e6 / margin_python),
        .taken_ns = taken_ns < UINT32_MAX ? (uint32_t)taken_ns : UINT32_MAX,
        .cpu_ns = (uint64_t)state->own,
        .cost_ns = (uint64_t)state->spent,
        .since = state->sample.ticks,
        .since_cpu_ns = (uint64_t)state->sample.own};

    state->listed_at = state->looked;
    state->listed_any = leaves_out();
    vst__recording_leave_out(state->tracer->recording, &left_out,
                             state->counts.out, state->counts.out_count);
}

/* Returns whether the list must be written again, because a bounded file drops
 * old records. */
static bool must_list_again(void)
{
    return state->tracer->options.is_bounded && leaves_out() &&
           !state->in_window;
}

static void budget_list_again(void)
{
    if (!must_list_again() ||
        state->looked - state->listed_at < list_again_ms * MS)
        return;
    record_change(0, 0);
}

static double next_wait(void)
{
    state->random = state->random * 6364136223846793005u + 1442695040888963407u;
    return between_ms * MS * (0.5 + (double)(state->random >> 40) / (1 << 24));
}

static void budget_apply(double cpu, vst_id ends, uint32_t flags)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyObject *type, *value, *traceback;
    double after;

    PyErr_Fetch(&type, &value, &traceback);
    vpy_hook_enter(tstate);
    vpy_budget_list_out();
    vpy_stale_frames_update(ends);
    vpy_budget_end_change();
    vpy_code_ids_next_round();
    vpy_passing_apply();
    vpy_thunks_rest(vpy_budget_is_out);
    if (!state->by_thunks)
        vpy_native_ids_rest(vpy_budget_is_out);
    vpy_callable_ids_rest(vpy_budget_is_out);
#if VPY_HAS_MONITORING
    if (flags & VST_LEFT_OUT_WINDOW)
        vpy_tool_enable_all();
#endif
    after = cpu_now();
    record_change(flags, after - cpu);
    budget_spend(after - cpu);
    if (VPY_HAS_MONITORING)
        budget_spend(place_ns * (double)state->counts.out_count);
    state->in_window = flags & VST_LEFT_OUT_WINDOW;
    state->changed = state->looked = after;
    state->cost_by_then = state->cost;
    state->wait_ns = next_wait();
    begin_sample(after);
    vpy_hook_leave(tstate);
    PyErr_Restore(type, value, traceback);
}

/* Leaves out the functions that cost too much according to the sample, in
 * addition to those that are left out already. */
static void budget_choose(double cpu, vst_id ends)
{
    double time = cpu - state->sample.cpu + 1;
    double most = for_calls * state->share * sample_bare(cpu);
    bool is_enough;

    most -= vpy_passing_share() * time;
    is_enough = vpy_budget_choose(&state->most, most);
    vpy_passing_chosen(is_enough, vpy_budget_passing_ns(&state->most) / time);
    budget_apply(cpu, ends, 0);
}

static void budget_begin_window(double cpu, vst_id ends)
{
    vpy_budget_take_all_in();
    vpy_passing_end();
    budget_apply(cpu, ends, VST_LEFT_OUT_WINDOW);
}

static void budget_end_window(double cpu, vst_id ends)
{
    double cost = state->sample.most;

    budget_choose(cpu, ends);
    cost += (cpu_now() - cpu) * 2;
    state->window_cost += (cost - state->window_cost) / 4;
}

/* Sets the clock to the end of the window, or to the begin of the next
 * window. */
static void set_clock(double left)
{
    double due = state->changed + state->wait_ns;
    double paid = state->looked + (state->window_cost - left) / state->share;

    if (state->in_window)
        due = state->sample.cpu + window_ms * MS;
    else if (!leaves_out())
        due = 1e18;
    else if (paid > due)
        due = paid;
    if (must_list_again() && due > state->listed_at + list_again_ms * MS)
        due = state->listed_at + list_again_ms * MS;
    vpy_budget_clock_set((uint64_t)due);
}

/* Returns the share of the time that calls may cost before more functions are
 * left out: the whole share while no windows are needed. */
static double most_for_calls(void)
{
    return leaves_out() ? 1.2 * for_calls * state->share : state->share;
}

static void budget_look(vst_id ends)
{
    double cpu = cpu_now(), before, left;

    vst__recording_count_all(state->tracer->recording);
    left = budget_allowance(cpu);
    before = state->changed;
    if (state->in_window) {
        if (cpu - state->sample.cpu >= window_ms * MS || left < 0 ||
            state->sample.most >= state->share * window_share_ms * MS)
            budget_end_window(cpu, ends);
    } else if (left < 0 &&
               state->sample.most > most_for_calls() * sample_bare(cpu)) {
        budget_choose(cpu, ends);
    } else if (leaves_out() && cpu - state->changed >= state->wait_ns &&
               left >= state->window_cost) {
        budget_begin_window(cpu, ends);
    } else if (cpu - state->sample.cpu >= sample_ms * MS) {
        begin_sample(cpu);
    }
    if (state->changed == before) /* otherwise budget_apply() counted it */
        budget_spend(cpu_now() - cpu);
    state->storage_ns = vst__recording_storage_ns(state->tracer->recording);
    budget_list_again();
    set_clock(left);
}

/* ---- who looks ---------------------------------------------------------- */

/* A free-running thread may not hold the GIL; then this does nothing. */
static void after_count(void *ctx, vst_kind kind, vst_id id)
{
    if (state->tracer != ctx || state->is_looking || !PyGILState_Check())
        return;
    state->is_looking = true;
    budget_look(kind == VST_ENTER ? 0 : id);
    state->is_looking = false;
}

static void on_clock(double own_ns)
{
    if (state->tracer == NULL || state->is_looking)
        return;
    state->is_looking = true;
    budget_spend(own_ns);
    budget_look(0);
    state->is_looking = false;
}

/* ---- start and stop ----------------------------------------------------- */

static bool can_be_kept(const vpy_tracer *tracer)
{
    return !VPY_FREE_THREADED && tracer->engine != NULL &&
           strcmp(tracer->engine->name, "profile") != 0 &&
           (!VPY_HAS_MONITORING || vpy_base.inside.works[VPY_PART_TASKS]);
}

static void set_up(vpy_tracer *tracer)
{
    const vpy_options *options = &tracer->options;

    state->by_thunks = strcmp(tracer->engine->name, "turbo") == 0;
    state->costs = (vpy_budget_costs){
        .python_ns = options->budget_python_ns,
        .native_ns = options->budget_native_ns,
        .passed_ns = vpy_passing_ns(options->budget_python_ns)};
    state->most =
        (vpy_budget_costs){.python_ns = state->costs.python_ns * margin_python,
                           .native_ns = state->costs.native_ns * margin_native,
                           .passed_ns = state->costs.passed_ns * margin_python};
    state->began = state->looked = state->changed = cpu_now();
    state->window_cost = state->share * window_share_ms * MS;
    state->wait_ns = next_wait();
}

void vpy_budget_begin(vpy_tracer *tracer)
{
    const vst_pace pace = {PACE_WORDS, tracer, budget_count, after_count};

    if (state->share == 0)
        return;
    if (!can_be_kept(tracer)) {
        vpy_engine_note("vestige: this engine cannot leave functions out: the "
                        "budget is not kept");
        return;
    }
    set_up(tracer);
    begin_sample(state->began);
    state->tracer = tracer;
    record_change(0, 0);
    set_clock(0);
    vst__recording_set_pace(tracer->recording, &pace);
    vpy_budget_clock_start(on_clock);
}

/* Call before functions get their ids, which is before the hooks are placed. */
void vpy_budget_prepare(double share)
{
    free(state->counts.of);
    free(state->counts.seen);
    free(state->counts.out);
    vpy_stale_frames_clear();
    memset(state, 0, sizeof *state);
    vpy_passing_end();
    state->share = share * for_counted;
    state->random = vst_clock_ticks();
}

void vpy_budget_end(void)
{
    const vst_pace none = {0, NULL, NULL, NULL};

    vpy_budget_clock_stop();
    if (state->tracer != NULL) {
        vst__recording_count_all(state->tracer->recording);
        budget_allowance(cpu_now());
        record_change(0, 0);
        vst__recording_set_pace(state->tracer->recording, &none);
    }
    vpy_budget_prepare(0);
}
