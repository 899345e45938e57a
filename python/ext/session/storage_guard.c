/* Handles SIGBUS, which the kernel sends to a program whose trace somebody
 * truncates, since the trace is written through mappings. While a recording
 * runs, a fault in our own file is repaired (os/storage_guard.h) and ends the
 * recording, not the program. Every other SIGBUS goes to the handler that was
 * installed before ours.
 *
 * Other code installs handlers, too, before us and after us. Each time the
 * recorder maps a part of its file, our handler is put in front again, as
 * another function (a "layer") that remembers the handler behind it. So there
 * is no circle: a handler that was installed between two layers, and later puts
 * back the handler that it found (as faulthandler.disable does), puts back a
 * layer that does not call it. A layer that has another handler in front of it
 * stays installed when a recording stops, and then only passes signals on.
 *
 * If a thread blocks SIGBUS, the kernel ends the program; we cannot prevent
 * that.
 *
 * The handler runs in any thread, with or without the GIL, on the thread's
 * alternate stack if it has one. The rest is guarded by `lock`. */
#include "session/session.h"

#include "os/storage_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

static struct vpy_storage_guard_state *const state = &vpy_sessions.guard;

enum { LAYERS = VPY_GUARD_LAYERS };

/* ---- the handler --------------------------------------------------------- */

/* After many installations a layer is used again, while another handler may
 * still call the layer as its older handler. Then handlers call each other in a
 * circle, which this count ends. */
static VST_THREAD_LOCAL int nested VST_TLS_MODEL;

static bool is_fault(const siginfo_t *info)
{
    /* otherwise another process or thread sent the signal */
    return info->si_code > 0;
}

/* Ends the process by the signal's default action: a fault happens again as
 * soon as we return, a signal that was sent is sent again. */
static void guard_die(int number, const siginfo_t *info)
{
    struct sigaction action = {.sa_handler = SIG_DFL};

    sigaction(number, &action, NULL);
    if (!is_fault(info))
        raise(number);
}

static void guard_pass_on(struct sigaction *next, int number, siginfo_t *info,
                          void *context)
{
    struct sigaction action = *next;

    if (action.sa_handler == SIG_IGN && !is_fault(info))
        return;
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN ||
        nested > 2 * LAYERS) {
        guard_die(number, info);
        return;
    }
    if ((unsigned)action.sa_flags & SA_RESETHAND)
        next->sa_handler = SIG_DFL;
    nested++;
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
    nested--;
}

static void guard_handle(int layer, int number, siginfo_t *info, void *context)
{
    int error = errno;

    if (!is_fault(info) || !vst_storage_rescue(info->si_addr))
        guard_pass_on(&state->before[layer], number, info, context);
    errno = error;
}

#define LAYER(n)                                                               \
    static void layer_##n(int number, siginfo_t *info, void *context)          \
    {                                                                          \
        guard_handle(n, number, info, context);                                \
    }
LAYER(0)
LAYER(1)
LAYER(2)
LAYER(3)
LAYER(4)
LAYER(5)
LAYER(6)
LAYER(7)
#undef LAYER

static void (*const layers[LAYERS])(int, siginfo_t *, void *) = {
    layer_0, layer_1, layer_2, layer_3, layer_4, layer_5, layer_6, layer_7};

/* ---- installing and removing layers -------------------------------------- */

/* Returns the number of our layer, or -1 if the handler is not ours. */
static int layer_of(const struct sigaction *action)
{
    for (int i = 0; i < LAYERS && action->sa_flags & SA_SIGINFO; i++)
        if (action->sa_sigaction == layers[i])
            return i;
    return -1;
}

/* Installs a layer in front, with the mask and the flags of the handler behind
 * it. */
static void guard_install(void)
{
    struct sigaction now, ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK};

    if (sigaction(SIGBUS, NULL, &now) != 0 || layer_of(&now) >= 0)
        return;
    state->before[state->next_layer] = now;
    ours.sa_sigaction = layers[state->next_layer];
    ours.sa_mask = now.sa_mask;
    ours.sa_flags |= now.sa_flags & (SA_RESTART | SA_NODEFER);
    if (sigaction(SIGBUS, &ours, NULL) == 0)
        state->next_layer = (state->next_layer + 1) % LAYERS;
}

static void guard_remove(void)
{
    struct sigaction now;
    int layer;

    if (sigaction(SIGBUS, NULL, &now) != 0 || (layer = layer_of(&now)) < 0)
        return;
    if (sigaction(SIGBUS, &state->before[layer], NULL) == 0)
        state->next_layer = layer;
}

/* Call in a forked child. Another thread of the parent may have held the lock,
 * so the lock is made anew. */
void vpy_storage_guard_after_fork(void)
{
    pthread_mutex_init(&state->lock, NULL);
    state->wanted = 0;
    guard_remove();
}

/* ---- called by the recorder ---------------------------------------------- */

static void guard_begin(void)
{
    pthread_mutex_lock(&state->lock);
    if (state->wanted++ == 0)
        guard_install();
    pthread_mutex_unlock(&state->lock);
}

static void guard_end(void)
{
    pthread_mutex_lock(&state->lock);
    if (state->wanted != 0 && --state->wanted == 0)
        guard_remove();
    pthread_mutex_unlock(&state->lock);
}

static void guard_mapped(void)
{
    pthread_mutex_lock(&state->lock);
    if (state->wanted != 0)
        guard_install();
    pthread_mutex_unlock(&state->lock);
}

static int end_recording(void *unused)
{
    (void)unused;
    vpy_session_end_if_cut();
    return 0;
}

/* May run inside the signal handler, so a pending call does the work. The
 * interpreter's list of pending calls has a lock, which no thread holds while
 * it records. */
static void guard_cut(void)
{
    Py_AddPendingCall(end_recording, NULL);
}

void vpy_storage_guard_init(void)
{
    static const vst_storage_watcher watcher = {guard_begin, guard_end,
                                                guard_mapped, guard_cut};

    vst__storage_watch(&watcher);
}
