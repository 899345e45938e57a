/* Finds the Python stack of the calling thread as a number, at the cost of a
 * few loads for each frame. The core's recorder of allocations calls it for
 * every allocation.
 *
 * A thread keeps the stack that it walked last: each frame's address, the
 * instruction that it had reached, and the number of the stack up to it. A walk
 * goes outwards from the innermost frame until it meets a kept frame. From
 * there it compares: each frame must be at its kept instruction, and its caller
 * must be the kept caller. Every frame is compared, and the loads do not depend
 * on each other. Only frames that differ are looked up.
 *
 * When is it safe to read frames? Frames belong to their thread: no other
 * thread pushes or pops them, nor changes what they point to, whether their
 * thread holds the GIL or has released it. The interpreter allocates only while
 * the chain of frames is complete; a frame that is not ready yet says so (see
 * vpy_iframe_is_incomplete). A frame's address is followed only after the frame
 * inside it, or the thread's state, was seen to point to it. Another thread
 * frees the state of a thread without the GIL only when the interpreter ends.
 * Before that, memory tracing stops and waits for all threads that are in this
 * file (vst_memory_stop). Threads of sub-interpreters, and threads that Python
 * does not know, have no stack here. */
#include "memory/memory.h"

#include "base/inside.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

static struct vpy_stack_walk_state *const state = &vpy_memory.walk;

enum {
    FRAMES_MAX = 1024, /* a stack with more frames is cut … */
    FRAMES_LEFT =
        512, /* … to this many, so that a deep recursion is not cut at every
              * call. A cut stack is walked anew when it has come back to … */
    FRAMES_LEAST = 256,
    SLOTS = 256,
    RECENT = 1024,
};

/* A stack that was looked up: a parent stack and a frame. */
typedef struct recent {
    uintptr_t place; /* instruction's address | is_entry */
    uint32_t parent, id;
} recent;

typedef struct vpy_stack_cache {
    struct vpy_stack_cache
        *next;           /* the next of all caches that were ever made */
    atomic_bool is_free; /* the cache's thread has ended */
    uint32_t generation;
    size_t count;
    uint16_t
        slots[SLOTS]; /* by hash of a frame: the index where it may be kept */
    /* The kept frames, from index 1 on, outermost first. Index 0 has the first
     * frame's caller (NULL, or a frame that was cut off), and the number of no
     * stack. */
    const vpy_iframe *frames[FRAMES_MAX + 1];
    uintptr_t places[FRAMES_MAX + 1];
    uint32_t nodes[FRAMES_MAX + 1];
    recent recent[RECENT];
    const vpy_iframe
        *fresh[FRAMES_MAX]; /* new frames of a walk, innermost first */
} stack_cache;

static _Thread_local stack_cache *here VST_TLS_MODEL;
static _Thread_local bool ended VST_TLS_MODEL; /* the thread is about to end */

/* ---- a thread's cache ---------------------------------------------------- */

static void release_cache(void *memory)
{
    stack_cache *cache = memory;

    ended = true;
    here = NULL;
    atomic_store(&cache->is_free, true);
}

static stack_cache *reuse_cache(void)
{
    stack_cache *cache = atomic_load(&state->caches);

    for (; cache != NULL; cache = cache->next) {
        bool expected = true;
        if (atomic_load_explicit(&cache->is_free, memory_order_relaxed) &&
            atomic_compare_exchange_strong(&cache->is_free, &expected, false))
            return cache;
    }
    return NULL;
}

/* Gives the thread a cache. Returns NULL if memory ran out or the thread is
 * ending. */
static VST_COLD stack_cache *make_cache(void)
{
    stack_cache *cache;

    if (ended)
        return NULL;
    cache = reuse_cache();
    if (cache == NULL) {
        cache = mmap(NULL, sizeof *cache, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (cache == MAP_FAILED)
            return NULL;
        cache->next = atomic_load(&state->caches);
        while (
            !atomic_compare_exchange_weak(&state->caches, &cache->next, cache))
            ;
    }
    cache->generation = 0;
    if (state->has_key)
        pthread_setspecific(state->at_thread_end, cache);
    here = cache;
    return cache;
}

/* ---- a walk -------------------------------------------------------------- */

static inline size_t stack_walk_slot_of(const vpy_iframe *frame)
{
    uintptr_t address = (uintptr_t)frame;

    return (address >> 3 ^ address >> 11) & (SLOTS - 1);
}

/* Returns the number of the stack up to the frame at an index. */
static inline uint32_t find_node(stack_cache *cache, size_t at)
{
    const vpy_iframe *frame = cache->frames[at];
    uint32_t parent = cache->nodes[at - 1], id;
    bool is_entry;
    uintptr_t place;
    recent *known;

    if (vpy_iframe_is_shim(frame))
        return parent;
    is_entry = vpy_iframe_is_entry(frame);
    place = cache->places[at] | is_entry;
    known = &cache->recent[(place >> 1 ^ (uintptr_t)parent * 0x9e3779b1u >> 7) &
                           (RECENT - 1)];
    if (VST_LIKELY(known->place == place && known->parent == parent))
        return known->id;
    id = vpy_node_find(parent, frame, is_entry);
    *known = (recent){place, parent, id};
    return id;
}

static inline void stack_walk_put(stack_cache *cache, size_t at,
                                  const vpy_iframe *frame)
{
    cache->frames[at] = frame;
    cache->places[at] = vpy_iframe_place(frame);
    cache->nodes[at] = find_node(cache, at);
    cache->slots[stack_walk_slot_of(frame)] = (uint16_t)at;
}

/* Compares the kept frames from an index outwards. Returns 0 if all callers are
 * the kept ones, else the index of a frame whose caller differs. *changed is
 * set to the outermost frame that has moved on in its code, if there is one. */
static inline size_t stack_walk_compare(const stack_cache *cache, size_t at,
                                        size_t *changed)
{
    for (; at > 0; at--) {
        const vpy_iframe *frame = cache->frames[at];
        if (vpy_iframe_place(frame) != cache->places[at])
            *changed = at;
        if (vpy_iframe_back(frame) != cache->frames[at - 1])
            return at;
    }
    return 0;
}

/* Makes the kept stack begin after `caller`, which is cut off. The caller of
 * this function puts the kept frames in again. */
static void cut_at(stack_cache *cache, const vpy_iframe *caller)
{
    cache->frames[0] = caller;
    cache->nodes[0] = caller != NULL ? VPY_NODE_CUT : 0;
    cache->count = 0;
}

/* Drops the outermost frames, as there are too many. */
static VST_COLD void stack_walk_shorten(stack_cache *cache, size_t *fresh)
{
    size_t kept, first;

    if (*fresh >= FRAMES_LEFT) {
        *fresh = FRAMES_LEFT;
        cut_at(cache, vpy_iframe_back(cache->fresh[FRAMES_LEFT - 1]));
        return;
    }
    kept = FRAMES_LEFT - *fresh;
    if (kept >= cache->count)
        return;
    first = cache->count - kept; /* becomes the caller that is cut off */
    cut_at(cache, cache->frames[first]);
    for (size_t i = 1; i <= kept; i++)
        stack_walk_put(cache, i, cache->frames[first + i]);
    cache->count = kept;
}

/* Finds which kept frames are still there, and puts the frames inside them into
 * `fresh`. Returns how many frames it put there. */
static inline size_t stack_walk_gather(stack_cache *cache,
                                       const vpy_iframe *frame)
{
    size_t fresh = 0, bound = cache->count;

    while (frame != NULL) {
        size_t at = cache->slots[stack_walk_slot_of(frame)], changed, broken;
        if (at - 1 < bound && cache->frames[at] == frame) {
            changed = at + 1;
            broken = stack_walk_compare(cache, at, &changed);
            if (VST_LIKELY(broken == 0)) {
                cache->count = at;
                for (; changed <= at; changed++)
                    stack_walk_put(cache, changed, cache->frames[changed]);
                return fresh;
            }
            for (; at > broken && fresh < FRAMES_MAX; at--)
                cache->fresh[fresh++] = cache->frames[at];
            bound = broken - 1;
            frame = cache->frames[at];
        }
        if (fresh == FRAMES_MAX)
            break;
        cache->fresh[fresh++] = frame;
        frame = vpy_iframe_back(frame);
    }
    cut_at(cache, frame);
    return fresh;
}

static uint32_t stack_walk_walk(stack_cache *cache, PyThreadState *tstate)
{
    uint32_t generation =
        __atomic_load_n(&vpy_memory.nodes.generation, __ATOMIC_RELAXED);
    uint32_t id;
    size_t fresh;

    if (!VST_LIKELY(cache->generation == generation)) {
        cache->generation = generation;
        cache->count = 0;
        memset(cache->recent, 0, sizeof cache->recent);
    }
    fresh = stack_walk_gather(cache, vpy_iframe_innermost(tstate));
    if (!VST_LIKELY(cache->nodes[0] != VPY_NODE_CUT) &&
        cache->count + fresh < FRAMES_LEAST) {
        cache->count = 0;
        fresh = stack_walk_gather(cache, vpy_iframe_innermost(tstate));
    }
    if (!VST_LIKELY(cache->count + fresh <= FRAMES_MAX))
        stack_walk_shorten(cache, &fresh);
    while (fresh)
        stack_walk_put(cache, ++cache->count, cache->fresh[--fresh]);
    id = cache->nodes[cache->count];
    return VST_LIKELY(id != VPY_NODE_CUT) ? id : 0;
}

/* The frames of a thread that released the GIL have not changed. */
static VST_COLD PyThreadState *state_without_gil(unsigned *flags)
{
    *flags |= VST_MEMORY_UNLOCKED;
    return PyGILState_GetThisThreadState();
}

vst_stack_id vpy_memory_stack(unsigned *flags)
{
    PyThreadState *tstate = vpy_thread_with_gil();
    stack_cache *cache = here;

    if (!VST_LIKELY(tstate != NULL))
        tstate = state_without_gil(flags);
    if (!VST_LIKELY(tstate != NULL &&
                    tstate->interp == state->main_interpreter))
        return 0;
    if (!VST_LIKELY(cache != NULL) && (cache = make_cache()) == NULL)
        return 0;
    return stack_walk_walk(cache, tstate);
}

/* ---- begin and end ------------------------------------------------------- */

/* Runs in a forked child, before anything allocates there. Frees the caches of
 * threads that are not in the child. */
static void stack_walk_after_fork(void)
{
    stack_cache *cache;

    for (cache = atomic_load(&state->caches); cache != NULL;
         cache = cache->next)
        atomic_store(&cache->is_free, cache != here);
    vpy_nodes_after_fork();
}

void vpy_memory_stacks_begin(vst_recording *recording)
{
    if (!state->is_ready) {
        state->is_ready = true;
        state->has_key =
            pthread_key_create(&state->at_thread_end, release_cache) == 0;
        pthread_atfork(NULL, NULL, stack_walk_after_fork);
    }
    /* If the interpreter's frames are unknown, no thread has a stack. */
    state->main_interpreter = vpy_base.inside.works[VPY_PART_MEMORY]
                                  ? PyInterpreterState_Main()
                                  : NULL;
    vpy_nodes_begin(recording);
}
