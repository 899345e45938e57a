/* The clock of a budget: a thread that sleeps until the process has used some
 * CPU time, and then takes the GIL. While every function is left out, no hook
 * runs, so only this thread can begin a window. The thread estimates how long
 * the process takes to use that CPU time and sleeps as long, so it costs little
 * in a process that mostly waits. The GIL guards everything below, except where
 * a field names its guard. */
#include "calls/budget.h"

#include "base/own_code.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static struct vpy_budget_clock_state *const state = &vpy_calls.clock;

enum { SOON_MS = 10, LATER_MS = 500, EARLIER_NS = 50000000 };

static const double idle_share = 0.001;

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t vpy_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static uint64_t due_now(void)
{
    return __atomic_load_n(&state->due_ns, __ATOMIC_RELAXED);
}

/* If the new time is much earlier than the old one, wakes the thread. */
void vpy_budget_clock_set(uint64_t cpu_ns)
{
    bool is_earlier = cpu_ns + EARLIER_NS < due_now();

    __atomic_store_n(&state->due_ns, cpu_ns, __ATOMIC_RELAXED);
    if (is_earlier)
        pthread_cond_signal(&state->rung);
}

/* Sleeps. Returns whether the clock must end. */
static bool sleep_ms(int ms)
{
    struct timespec until;
    bool ended;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ms * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&state->lock);
    if (!state->ends)
        pthread_cond_timedwait(&state->rung, &state->lock, &until);
    ended = state->ends;
    pthread_mutex_unlock(&state->lock);
    return ended;
}

/* Returns how long to sleep until the process has used `left` ns of CPU time,
 * if it goes on as it did since the last look. */
static int next_sleep(uint64_t passed, uint64_t used, uint64_t left)
{
    double share = (double)used / (double)(passed + 1);
    double needed = (double)left / 1e6;

    if (share < idle_share)
        return LATER_MS;
    needed /= share;
    return needed > LATER_MS  ? LATER_MS
           : needed > SOON_MS ? (int)needed
                              : SOON_MS;
}

static void *budget_clock_run(void *unused)
{
    uint64_t since = read_clock(CLOCK_MONOTONIC), before = vpy_cpu_ns();
    uint64_t own = 0;
    int ms = SOON_MS;

    (void)unused;
    vpy_thread_is_ours = true;
    state->thread_id = vpy_thread_id();
    while (!sleep_ms(ms)) {
        uint64_t time = read_clock(CLOCK_MONOTONIC);
        uint64_t now = vpy_cpu_ns(), due = due_now();

        if (now >= due) {
            PyGILState_STATE gil = PyGILState_Ensure();
            if (state->on_due != NULL)
                state->on_due(
                    (double)(read_clock(CLOCK_THREAD_CPUTIME_ID) - own));
            PyGILState_Release(gil);
            own = read_clock(CLOCK_THREAD_CPUTIME_ID);
            due = due_now();
        }
        ms = next_sleep(time - since, now - before, due > now ? due - now : 0);
        since = time;
        before = now;
    }
    return NULL;
}

static void budget_clock_start(void)
{
    sigset_t most, before;

    state->ends = false;
    sigfillset(&most);
    sigdelset(&most, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &most, &before);
    state->is_there =
        pthread_create(&state->thread, NULL, budget_clock_run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (state->is_there)
        pthread_setname_np(state->thread, "vestige-budget");
}

/* Releases the GIL, because the thread may be waiting for the GIL. */
static void budget_clock_end(void)
{
    if (!state->is_there)
        return;
    state->is_there = false;
    pthread_mutex_lock(&state->lock);
    state->ends = true;
    pthread_cond_signal(&state->rung);
    pthread_mutex_unlock(&state->lock);
    vpy_join(state->thread, &state->thread_id);
}

/* Called at exit: no thread may ask for the GIL of an interpreter that ends. */
static PyObject *end_at_exit(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    vpy_budget_clock_stop();
    Py_RETURN_NONE;
}

static PyMethodDef end_method = {"vestige_budget_at_exit", end_at_exit,
                                 METH_NOARGS, NULL};

void vpy_budget_clock_start(vpy_budget_due_fn *fn)
{

    if (!state->has_exit && vpy_at_exit(&end_method) < 0) {
        PyErr_Clear();
        return; /* without a clock there are no windows */
    }
    state->has_exit = true;
    state->on_due = fn;
    if (!state->is_there)
        budget_clock_start();
}

void vpy_budget_clock_stop(void)
{
    state->on_due = NULL;
    state->is_away = false;
    budget_clock_end();
}

/* ---- around a fork ------------------------------------------------------- */

void vpy_budget_before_fork(void)
{
    if (!state->is_there)
        return;
    budget_clock_end();
    state->is_away = true;
}

static int come_back(void *unused)
{
    (void)unused;
    if (state->is_away && state->on_due != NULL && !state->is_there)
        budget_clock_start();
    state->is_away = false;
    return 0;
}

/* From 3.13 on, Python counts threads after it has called this function, so a
 * pending call starts the thread again. */
void vpy_budget_after_fork_in_parent(void)
{
    if (state->is_away &&
        (vpy_thread_id() != getpid() || Py_AddPendingCall(come_back, NULL) < 0))
        come_back(NULL);
}

/* Call in a forked child, which does not have the thread. */
void vpy_budget_after_fork(void)
{
    pthread_mutex_init(&state->lock, NULL);
    state->is_there = state->is_away = false;
    state->on_due = NULL;
}
