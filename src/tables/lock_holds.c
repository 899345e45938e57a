/* See lock_holds.h. A lock is held from the end of the call that takes the lock
 * to the next release on the same thread, before the caller's caller ends.
 * Spans come in the order of their ends, so the callers of such a call are
 * known later. One thread at a time. */
#include "tables/lock_holds.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum { LEAST_NS = 50000, KEPT_MAX = 1 << 16 };
enum { ROLE_NONE, ROLE_TAKES, ROLE_RELEASES, ROLE_IDLES, ROLE_RESUMES };
/* How many levels above the call that takes a lock the function is whose end
 * ends the hold; and where a generator took the lock, which gives it back in a
 * later step: next() and the __enter__() of contextlib are in between. */
enum { LEVELS = 2, LEVELS_OF_GENERATOR = 4 };

/* ---- which functions ----------------------------------------------------- */

static bool is_named(const vst_definition *d, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strlen(*names) == d->name_len &&
            memcmp(*names, d->name, d->name_len) == 0)
            return true;
    return false;
}

static bool is_in_file(const vst_definition *d, const char *end)
{
    size_t length = strlen(end);

    return d->file_len >= length &&
           memcmp(d->file + d->file_len - length, end, length) == 0;
}

static unsigned char role_of(const vst_definition *d)
{
    static const char *const takes[] = {
        "<built-in method acquire of _thread.lock object>",
        "<built-in method acquire_lock of _thread.lock object>",
        "<built-in method __enter__ of _thread.lock object>",
        "<built-in method acquire of _thread.RLock object>",
        "<built-in method __enter__ of _thread.RLock object>",
        "<built-in method acquire of _multiprocessing.SemLock object>",
        "<built-in method __enter__ of _multiprocessing.SemLock object>",
        NULL};
    static const char *const releases[] = {
        "<built-in method release of _thread.lock object>",
        "<built-in method release_lock of _thread.lock object>",
        "<built-in method __exit__ of _thread.lock object>",
        "<built-in method release of _thread.RLock object>",
        "<built-in method __exit__ of _thread.RLock object>",
        "<built-in method release of _multiprocessing.SemLock object>",
        "<built-in method __exit__ of _multiprocessing.SemLock object>",
        NULL};
    static const char *const idles[] = {
        "Condition.wait", "wait",      "Thread._wait_for_tstate_lock",
        "Thread.join",    "_shutdown", NULL};

    static const char *const resumes[] = {"<built-in function next>", NULL};

    if (d->kind == VST_DEF_NATIVE && is_named(d, takes))
        return ROLE_TAKES;
    if (d->kind == VST_DEF_NATIVE && is_named(d, resumes))
        return ROLE_RESUMES;
    if (d->kind == VST_DEF_NATIVE && is_named(d, releases))
        return ROLE_RELEASES;
    if (d->kind == VST_DEF_PYTHON && is_in_file(d, "/threading.py") &&
        is_named(d, idles))
        return ROLE_IDLES;
    return ROLE_NONE;
}

bool vst__lock_holds_begin(vst__lock_holds *all, const vst_trace *trace)
{
    all->max = vst_trace_definition_max(trace);
    all->least_ns = LEAST_NS;
    all->roles = calloc((size_t)all->max + 1, 1);
    for (vst_id id = 1; all->roles != NULL && id <= all->max; id++) {
        const vst_definition *d = vst_trace_definition(trace, id);

        if (d != NULL)
            all->roles[id] = role_of(d);
        all->has_locks |= all->roles[id] == ROLE_TAKES;
    }
    return all->roles != NULL;
}

/* ---- what is kept -------------------------------------------------------- */

/* Drops the shorter waits and holds until there is room. */
static void holds_thin_out(vst__lock_holds *all)
{
    while (all->wait_count + all->hold_count >= KEPT_MAX) {
        size_t waits = 0, holds = 0;

        all->least_ns *= 2;
        for (size_t i = 0; i < all->wait_count; i++)
            if (all->waits[i].ns >= all->least_ns)
                all->waits[waits++] = all->waits[i];
        for (size_t i = 0; i < all->hold_count; i++)
            if (all->holds[i].end_ns - all->holds[i].start_ns >= all->least_ns)
                all->holds[holds++] = all->holds[i];
        all->wait_count = waits;
        all->hold_count = holds;
    }
}

static bool holds_keep_wait(vst__lock_holds *all, const vst__lock_wait *wait)
{
    if (wait->ns < all->least_ns || wait->caller == 0)
        return true;
    if (!VST_RESERVE(all->waits, all->wait_count + 1, all->wait_capacity))
        return false;
    all->waits[all->wait_count++] = *wait;
    return true;
}

static bool holds_keep_hold(vst__lock_holds *all, const vst__lock_hold *hold)
{
    if (hold->end_ns - hold->start_ns < all->least_ns || hold->caller == 0)
        return true;
    if (!VST_RESERVE(all->holds, all->hold_count + 1, all->hold_capacity))
        return false;
    all->holds[all->hold_count++] = *hold;
    return true;
}

/* Ends the call at `at`. A lock that its thread has not released is a signal
 * for others, or released by C code later: such a hold is dropped. */
static bool holds_close(vst__lock_holds *all, size_t at)
{
    struct vst__lock_call call = all->open[at];

    memmove(&all->open[at], &all->open[at + 1],
            (--all->open_count - at) * sizeof call);
    if (call.wait.caller != 0 && call.wait.caller <= all->max &&
        all->roles[call.wait.caller] == ROLE_IDLES)
        return true;
    call.hold.caller = call.wait.caller;
    call.hold.outer = call.wait.outer;
    holds_thin_out(all);
    return holds_keep_wait(all, &call.wait) &&
           (call.is_held || holds_keep_hold(all, &call.hold));
}

/* ---- spans --------------------------------------------------------------- */

/* Handles the end of a span: the span may have called an open call, or have run
 * while a lock was held. */
static bool holds_look_at(vst__lock_holds *all, const vst_span *span)
{
    int64_t self_ns = span->end_ns - span->start_ns - span->children_ns;

    for (size_t i = all->open_count; i-- != 0;) {
        struct vst__lock_call *call = &all->open[i];

        if (span->depth + LEVELS == call->depth && call->is_held &&
            all->roles[span->id] == ROLE_RESUMES)
            call->levels = LEVELS_OF_GENERATOR;
        if (span->depth + call->levels <= call->depth) {
            if (call->wait.caller == 0)
                call->wait.caller = span->id;
            call->wait.outer = span->id;
            if (!holds_close(all, i))
                return false;
        } else if (span->depth + 1 == call->depth) {
            if (call->wait.caller == 0)
                call->wait.caller = span->id;
        } else if (call->is_held && span->start_ns >= call->hold.start_ns &&
                   self_ns > call->hold.inside_ns) {
            call->hold.inside_ns = self_ns;
            call->hold.inside = span->id;
        }
    }
    return true;
}

static void holds_release(vst__lock_holds *all, int64_t at_ns)
{
    for (size_t i = all->open_count; i-- != 0;)
        if (all->open[i].is_held) {
            all->open[i].is_held = false;
            all->open[i].hold.end_ns = at_ns;
            return;
        }
}

static bool holds_take(vst__lock_holds *all, const vst_span *span)
{
    int64_t waiting = vst_span_waiting(span);

    if (all->open_count == VST_LOCKS_OPEN && !holds_close(all, 0))
        return false;
    all->open[all->open_count++] = (struct vst__lock_call){
        .depth = span->depth,
        .levels = LEVELS,
        .is_held = !(span->flags & VST_SPAN_OPEN_AT_END),
        .wait = {.start_ns = span->start_ns,
                 .end_ns = span->end_ns,
                 .ns = waiting != VST_RUNNING_UNKNOWN
                           ? waiting
                           : span->end_ns - span->start_ns,
                 .thread = span->thread},
        .hold = {.start_ns = span->end_ns,
                 .end_ns = span->end_ns,
                 .thread = span->thread},
    };
    return true;
}

bool vst__lock_holds_end(vst__lock_holds *all)
{
    bool is_kept = true;

    while (all->open_count != 0 && is_kept)
        is_kept = holds_close(all, all->open_count - 1);
    return is_kept;
}

bool vst__lock_holds_span(vst__lock_holds *all, const vst_span *span)
{
    unsigned char role = span->id <= all->max ? all->roles[span->id] : 0;

    if (span->flags & VST_SPAN_ASYNC)
        return true;
    if (span->thread != all->thread) {
        if (!vst__lock_holds_end(all))
            return false;
        all->thread = span->thread;
    }
    if (all->open_count != 0 && role != ROLE_RELEASES &&
        !holds_look_at(all, span))
        return false;
    if (role == ROLE_RELEASES)
        holds_release(all, span->start_ns);
    return role != ROLE_TAKES || holds_take(all, span);
}

void vst__lock_holds_free(vst__lock_holds *all)
{
    free(all->roles);
    free(all->waits);
    free(all->holds);
}
