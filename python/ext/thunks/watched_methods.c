/* See watched_methods.h: a definition's function is replaced by one of ours,
 * which calls the original. With the turbo engine a definition may have a
 * thunk, too (thunks.h): then our function stands between the thunk and the
 * original, whichever of the two came first. Call with the GIL held. On builds
 * without the GIL the world is stopped for each change: any thread may be
 * calling the function, and reads the list without a lock to compare functions.
 */
#include "thunks/watched_methods.h"

#include "thunks/thunks.h"

static struct vpy_watched_state *const state = &vpy_thunks.watched;

/* Returns whether the definition can be written. Looked up once for each
 * definition, because a look-up takes as long as a fork; libraries with watched
 * methods are never unloaded. */
static bool is_writable(vpy_watched *w, PyMethodDef *method)
{
    vpy_table_memory memory;

    if (w->writable == method)
        return true;
    vpy_table_memory_check();
    memory = vpy_table_memory_of(method);
    w->writable = memory.writable && memory.in_image ? method : NULL;
    return memory.writable;
}

void vpy_watch(vpy_watched *w, PyMethodDef *method, int flags,
               PyCFunction through_us)
{
    vpy_state_take();
    if (w->method == NULL && (method->ml_flags & ~METH_STATIC) == flags &&
        is_writable(w, method)) {
        vpy_function_identity_keep(VPY_FOR_WATCHED);
        vpy_world_stop();
        w->method = method;
        w->through_us = through_us;
        w->original = vpy_thunk_original(method->ml_meth);
        w->next = state->all;
        state->all = w;
        vpy_thunks_replace(method, w->original, w->through_us);
        vpy_world_start();
    }
    vpy_state_give();
}

/* w->original stays, because a call may be in progress. */
void vpy_unwatch(vpy_watched *w)
{
    vpy_watched **link = &state->all;

    vpy_state_take();
    if (w->method != NULL) {
        vpy_world_stop();
        while (*link != w)
            link = &(*link)->next;
        *link = w->next;
        vpy_thunks_replace(w->method, w->through_us, w->original);
        w->method = NULL;
        vpy_world_start();
        if (state->all == NULL)
            vpy_function_identity_release(VPY_FOR_WATCHED);
    }
    vpy_state_give();
}

PyCFunction vpy_watched_original(PyCFunction function)
{
    for (const vpy_watched *w = state->all; w != NULL; w = w->next)
        if (w->through_us == function)
            return w->original;
    return function;
}
