/* Makes room on C stacks for recording.
 *
 * A recorded call takes more of the C stack than a call without us: the
 * interpreter takes a longer path under a profile function, and a hook or thunk
 * has a frame of its own. So a recursion through C functions that fits without
 * recording might not fit while recording.
 *
 * The main thread's stack grows on demand, and the kernel compares it with its
 * limit only when it grows. So we make it grow once, while the limit is raised
 * for a moment. That costs no memory. If the hard limit is no higher than the
 * soft limit, the stack stays as it is.
 *
 * Threads that the interpreter makes while we record get larger stacks:
 * meanwhile the interpreter's size for new stacks is ours, and
 * threading.stack_size(), which we intercept, shows and sets the program's.
 * This uses only addresses, so where addresses are limited, stacks stay as they
 * are. Threads that were there before, and threads that other code makes, keep
 * their stacks.
 *
 * Called with the GIL held, or the control lock. */
#include "program/program.h"
#include "thunks/watched_methods.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct vpy_stack_room_state *const state = &vpy_program.stack_room;

/* Returns how much more stack recording may need: a recorded call takes at most
 * half as much again as a call without us. The first record of a thread needs
 * some more, regardless of the size. */
static size_t room_for(size_t size)
{
    return size / 2 + (64 << 10);
}

/* ---- the main thread's stack --------------------------------------------- */

/* Returns the lowest address that the calling thread's stack may grow to
 * now. */
static uintptr_t stack_room_lowest(size_t size)
{
    uintptr_t low = 0;
    size_t found = 0;

    return vpy_stack_find(&low, &found) && found <= size ? low : 0;
}

/* Makes the stack grow down to an address: the kernel reads there for us, and
 * the stack grows as for a read of our own. If the stack cannot grow so far,
 * because of other limits or mappings, the kernel returns an error, whereas a
 * read of our own would end the process. The address may lie in a foreign
 * mapping: where the program has raised its limit, or where an emulator has put
 * the stack. So nothing may be written. The call has no effect, because the
 * kernel refuses NOT_A_WAY to change the mask after it has read the mask. */
static void grow_to(uintptr_t address)
{
    enum { NOT_A_WAY = -1, MASK_BYTES = _NSIG / 8 };

    syscall(SYS_rt_sigprocmask, NOT_A_WAY, address, NULL, MASK_BYTES);
}

static void grow_main_stack(void)
{
    struct rlimit limit, higher;
    uintptr_t low;

    if (state->has_grown || vpy_thread_id() != getpid() ||
        getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return;
    state->has_grown = true;
    low = stack_room_lowest(limit.rlim_cur);
    higher = limit;
    higher.rlim_cur += 2 * room_for(limit.rlim_cur);
    if (higher.rlim_max != RLIM_INFINITY && higher.rlim_cur > higher.rlim_max)
        higher.rlim_cur = higher.rlim_max;
    if (low < limit.rlim_cur || setrlimit(RLIMIT_STACK, &higher) != 0)
        return;
    grow_to(low - room_for(limit.rlim_cur));
    setrlimit(RLIMIT_STACK, &limit);
}

/* ---- stacks of new threads ----------------------------------------------- */

static bool is_limited(int resource)
{
    struct rlimit limit;

    return getrlimit(resource, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

static size_t default_size(void)
{
    pthread_attr_t attributes;
    size_t size = 0;

    if (pthread_attr_init(&attributes) != 0)
        return 0;
    pthread_attr_getstacksize(&attributes, &size);
    pthread_attr_destroy(&attributes);
    return size;
}

/* Other threads may be making a thread, so the world is stopped for the
 * change. */
static void set_size(size_t size)
{
    vpy_world_stop();
    PyThread_set_stacksize(size);
    vpy_world_start();
}

static void stack_room_enlarge_new(void)
{
    size_t size;

    state->of_program = PyThread_get_stacksize();
    size = state->of_program ? state->of_program : default_size();
    if (size)
        set_size(size + room_for(size));
}

static void stack_room_restore_new(void)
{
    set_size(state->of_program);
}

static PyObject *through_stack_size(PyObject *self, PyObject *args)
{
    PyObject *result;

    stack_room_restore_new();
    result = state->stack_size.original(self, args);
    stack_room_enlarge_new();
    return result;
}

static void enlarge_new_stacks(void)
{
    PyObject *module = vpy_loaded_module("_thread");
    PyObject *function = NULL;

    if (module != NULL && PyModule_Check(module))
        function = vpy_dict_get_named(PyModule_GetDict(module), "stack_size");
    if (function != NULL && PyCFunction_CheckExact(function) &&
        !is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA)) {
        vpy_watch(&state->stack_size, ((PyCFunctionObject *)function)->m_ml,
                  METH_VARARGS, through_stack_size);
        if (state->stack_size.method != NULL)
            stack_room_enlarge_new();
    }
    Py_XDECREF(function);
    Py_XDECREF(module);
}

/* ---- for program.h ------------------------------------------------------- */

void vpy_stacks_make_room(void)
{
    grow_main_stack();
    if (state->stack_size.method == NULL)
        enlarge_new_stacks();
}

void vpy_stacks_restore(void)
{
    if (state->stack_size.method == NULL)
        return;
    vpy_unwatch(&state->stack_size);
    stack_room_restore_new();
}

/* Returns how much stack stays free for the program. An evaluation hook uses C
 * stack for each Python call, where a program without us may recurse without
 * limit. */
static size_t stack_left(size_t size)
{
    enum { ENOUGH = 1 << 18 };

    return size / 4 > ENOUGH ? size / 4 : size / 2 < ENOUGH ? size / 2 : ENOUGH;
}

uintptr_t vpy_stack_limit(uintptr_t *low, size_t *size)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    if (!vpy_stack_find(low, size) || here < *low || here - *low > *size)
        return 0;
    return *low + stack_left(*size);
}
