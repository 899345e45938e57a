/* Finds the C stack of the calling thread. */
#include "base/state.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

static struct vpy_main_stack_state *const state = &vpy_base.main_stack;

static bool stack_ask(uintptr_t *low, size_t *size)
{
    pthread_attr_t attributes;
    void *address = NULL;
    bool found;

    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return false;
    found = pthread_attr_getstack(&attributes, &address, size) == 0;
    pthread_attr_destroy(&attributes);
    *low = (uintptr_t)address;
    return found;
}

/* Finds the main thread's stack where there is no /proc, from which the C
 * library reads it. The program's name lies at its upper end. */
static bool stack_guess(const struct rlimit *limit, uintptr_t *low,
                        size_t *size)
{
    const size_t page = 4096, unlimited = (size_t)8 << 20;
    uintptr_t end = (uintptr_t)getauxval(AT_EXECFN);

    *size =
        limit->rlim_cur == RLIM_INFINITY ? unlimited : (size_t)limit->rlim_cur;
    end = (end + page) & ~(uintptr_t)(page - 1);
    *low = end - *size;
    return end > *size;
}

bool vpy_stack_find(uintptr_t *low, size_t *size)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    struct rlimit limit;

    if (vpy_thread_id() != getpid() || getrlimit(RLIMIT_STACK, &limit) != 0)
        return stack_ask(low, size);
    if (state->size == 0 || state->limit != limit.rlim_cur ||
        here - state->low >= state->size) {
        if (!stack_ask(&state->low, &state->size) &&
            !stack_guess(&limit, &state->low, &state->size))
            return false;
        state->limit = limit.rlim_cur;
    }
    *low = state->low;
    *size = state->size;
    return true;
}
