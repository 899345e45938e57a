/* The funnel: hooks report every allocation and free of the process here. The
 * funnel adds the stack and the time, and makes a record. It does not know
 * which hook reports. Any thread, in any state: inside an allocator, with locks
 * of the program held, while it ends. A thread takes a lock here only for its
 * first event and at its end.
 *
 * stop() waits until no thread is inside. So once stop() has returned, neither
 * the recording nor the function that finds stacks is called. For this, a
 * thread first marks itself as inside, and then checks again whether memory is
 * traced. stop() first marks that it is not, lets every processor pass a
 * barrier, and then checks which threads are inside. One of the two sees the
 * other. */
#include "memory/funnel.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "memory/reserved.h"
#include "memory/resident.h"
#include "memory/scan.h"
#include "os/os.h"
#include "record/memory.h"
#include "traceback/traceback.h"

enum {
    OFF = 0,
    ON = 1, /* memory is traced, and stop() makes the barrier */
    /* memory is traced, and each thread makes its own barrier, because the
     * system has none */
    ON_FENCED = 2,
    /* How often the destructor of an ending thread asks to run again; the
     * system promises four runs. Events in the last run are not recorded. */
    PASSES_MAX = 3,
};

/* A thread that had an event. The thread owns `busy`; threads_lock guards the
 * links. */
typedef struct thread_state {
    atomic_uint busy; /* inside the funnel */
    bool is_known;
    bool is_over; /* the thread ends, and cannot record any more */
    uint8_t passes;
    int *error; /* address of the thread's errno */
    vst__sampler sampler;
    struct thread_state *next, *previous; /* guarded by threads_lock */
} thread_state;

static VST_THREAD_LOCAL thread_state here VST_TLS_MODEL;

static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static thread_state *threads; /* guarded by threads_lock */
static vst__os_exit exit_hook;

/* Held during start and stop; no hook takes it. */
static pthread_mutex_t control_lock = PTHREAD_MUTEX_INITIALIZER;
static bool has_hooks; /* guarded by control_lock */
/* Set before control_lock is taken for the first time. */
static bool was_used;

atomic_uint vst__memory_mode;
static struct {
    vst_recording *recording;
    vst_memory_options options;
} traced; /* constant while memory is traced or a thread is inside */

/* ---- threads ------------------------------------------------------------- */

static void link_state(thread_state *t)
{
    t->previous = NULL;
    t->next = threads;
    if (threads != NULL)
        threads->previous = t;
    threads = t;
}

/* Registers a thread at its first event. */
VST_COLD static bool funnel_register(thread_state *t)
{
    int error;

    if (t->is_over)
        return false;
    t->error = &errno;
    error = *t->error;
    pthread_mutex_lock(&threads_lock);
    link_state(t);
    pthread_mutex_unlock(&threads_lock);
    t->is_known = true;
    vst__os_thread_exit_arg(exit_hook, t);
    *t->error = error;
    return true;
}

/* Stays registered for as many runs of the destructor as the recorder can
 * follow, because destructors of other code may free memory of this thread
 * before or after ours. */
static void funnel_thread_ends(void *state)
{
    thread_state *t = state;

    if (++t->passes < PASSES_MAX) {
        vst__os_thread_exit_arg(exit_hook, t);
        return;
    }
    t->is_over = true;
    t->is_known = false;
    pthread_mutex_lock(&threads_lock);
    if (t->next != NULL)
        t->next->previous = t->previous;
    if (t->previous != NULL)
        t->previous->next = t->next;
    else
        threads = t->next;
    pthread_mutex_unlock(&threads_lock);
}

/* ---- fork ---------------------------------------------------------------- */

/* The child has only the thread that forked. The hooks stay in place and call
 * the originals until memory is traced again or stopped. */
static void funnel_after_fork_in_child(void)
{
    if (!was_used) /* a child copies each page that it writes */
        return;
    atomic_store(&vst__memory_mode, OFF);
    pthread_mutex_init(&threads_lock, NULL);
    pthread_mutex_init(&control_lock, NULL);
    threads = NULL;
    atomic_store(&here.busy, 0);
    if (here.is_known)
        link_state(&here);
    traced.recording = NULL;
    vst__sample_after_fork();
    vst__scan_after_fork();
    vst__resident_after_fork();
}

__attribute__((constructor)) static void watch(void)
{
    vst__os_thread_exit_hook(&exit_hook, funnel_thread_ends);
    vst__os_fork_hooks(NULL, NULL, funnel_after_fork_in_child);
}

/* ---- the funnel ---------------------------------------------------------- */

static inline bool go_in(thread_state *t)
{
    unsigned mode =
        atomic_load_explicit(&vst__memory_mode, memory_order_relaxed);

    if (mode == OFF || (!VST_LIKELY(t->is_known) && !funnel_register(t)))
        return false;
    /* The store of `busy` comes before the load below: pairs with the barrier
     * that stop() makes, or with stop()'s own store and load. */
    if (VST_LIKELY(mode == ON)) {
        atomic_store_explicit(&t->busy, 1, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
    } else {
        atomic_store(&t->busy, 1);
    }
    /* a thread that sees tracing on here also sees `traced` */
    if (VST_LIKELY(atomic_load(&vst__memory_mode) != OFF))
        return true;
    atomic_store_explicit(&t->busy, 0, memory_order_release);
    return false;
}

static inline void come_out(thread_state *t)
{
    atomic_store_explicit(&t->busy, 0, memory_order_release);
}

static inline vst_stack_id find_stack(const void *from, unsigned *flags)
{
    vst_stack_id stack = 0;

    if (traced.options.stack != NULL)
        stack = traced.options.stack(flags);
    if (traced.options.native_stacks) {
        uintptr_t walk[VST__WALK_MAX + VST_NATIVE_OWN_MAX];
        size_t first;
        size_t count =
            vst__native_walk(from, walk, sizeof walk / sizeof *walk, &first);
        stack = vst__native_stack(traced.recording, stack, walk + first, count);
    }
    return stack;
}

static inline void funnel_allocated(thread_state *t, vst_memory_kind kind,
                                    uintptr_t address, size_t size,
                                    const void *from)
{
    unsigned flags = 0;
    vst_stack_id stack;
    vst_ticks now;

    if (traced.options.sample_bytes) {
        if (!vst__sample_takes(&t->sampler, size))
            return;
        /* add before recording, so that the free finds the address */
        if (!vst__sample_add(address))
            return;
    }
    stack = find_stack(from, &flags);
    now = vst_clock_ticks();
    vst_record_alloc(kind, address, size, stack, flags, now);
    if (!VST_LIKELY(!vst__resident_is_due(now)))
        vst__resident_sample();
}

/* Reading the clock takes most of the time of a free, so it is read only for a
 * record. A sample of resident memory comes before that, while the block still
 * exists. */
static inline void funnel_freed(vst_memory_kind kind, uintptr_t address,
                                size_t size, vst_ticks before)
{
    if (traced.options.sample_bytes && !vst__sample_remove(address))
        return;
    if (before == VST__NOW) {
        before = vst_clock_ticks();
        if (!VST_LIKELY(!vst__resident_is_due(before)))
            vst__resident_sample();
    }
    vst_record_free(kind, address, size, before);
}

void vst__memory_allocated(vst_memory_kind kind, uintptr_t address, size_t size,
                           const void *from)
{
    thread_state *t = &here;
    int error;

    if (!go_in(t))
        return;
    error = *t->error;
    funnel_allocated(t, kind, address, size, from);
    *t->error = error;
    come_out(t);
}

void vst__memory_freed(vst_memory_kind kind, uintptr_t address, size_t size,
                       vst_ticks before)
{
    thread_state *t = &here;
    int error;

    if (!go_in(t))
        return;
    error = *t->error;
    funnel_freed(kind, address, size, before);
    *t->error = error;
    come_out(t);
}

void vst__memory_moved(vst_memory_kind kind, uintptr_t from, uintptr_t to,
                       size_t size, vst_ticks before, const void *caller)
{
    thread_state *t = &here;
    int error;

    if (!go_in(t))
        return;
    error = *t->error;
    funnel_freed(kind, from, 0, before);
    funnel_allocated(t, kind, to, size, caller);
    *t->error = error;
    come_out(t);
}

/* ---- mappings; always all, because there are few ------------------------- */

void vst__memory_mapped(uintptr_t address, size_t size, unsigned range,
                        const void *from)
{
    thread_state *t = &here;
    unsigned flags = 0;
    int error;
    vst_stack_id stack;
    vst_ticks now;

    if (!go_in(t))
        return;
    error = *t->error;
    stack = find_stack(from, &flags);
    now = vst_clock_ticks();
    if (range)
        vst__record_range(address, size, stack, flags, range, now);
    else
        vst_record_alloc(VST_MEMORY_MMAP, address, size, stack, flags, now);
    if (vst__resident_is_due(now))
        vst__resident_sample();
    *t->error = error;
    come_out(t);
}

void vst__memory_unmapped(uintptr_t address, size_t size, vst_ticks before)
{
    thread_state *t = &here;
    int error;

    if (!go_in(t))
        return;
    error = *t->error;
    vst_record_free(VST_MEMORY_MUNMAP, address, size, before);
    *t->error = error;
    come_out(t);
}

void vst__memory_given_back(uintptr_t address, size_t size, vst_ticks before)
{
    thread_state *t = &here;
    int error;

    if (!go_in(t))
        return;
    error = *t->error;
    vst__record_range(address, size, 0, 0,
                      VST_RANGE_CHANGES | VST_RANGE_RESERVED, before);
    *t->error = error;
    come_out(t);
}

void vst__memory_look(uintptr_t address, size_t size)
{
    thread_state *t = &here;
    int error;

    if (!go_in(t))
        return;
    error = *t->error;
    if (vst__resident_is_due(vst_clock_ticks()))
        vst__resident_sample();
    vst__resident_look(address, size);
    *t->error = error;
    come_out(t);
}

bool vst__memory_go_in(void)
{
    return go_in(&here);
}

void vst__memory_come_out(void)
{
    come_out(&here);
}

void vst_memory_allocated(vst_memory_kind kind, uintptr_t address, size_t size)
{
    vst__memory_allocated(kind, address, size, __builtin_return_address(0));
}

void vst_memory_freed(vst_memory_kind kind, uintptr_t address, size_t size)
{
    vst__memory_freed(kind, address, size, VST__NOW);
}

void vst_memory_moved(vst_memory_kind kind, uintptr_t from, uintptr_t to,
                      size_t size, vst_ticks before)
{
    vst__memory_moved(kind, from, to, size, before,
                      __builtin_return_address(0));
}

/* ---- start and stop ------------------------------------------------------ */

static void funnel_write_options(vst_recording *recording,
                                 const vst_memory_options *options)
{
    char json[160];

    snprintf(json, sizeof json,
             "{\"sample_bytes\": %llu, \"native_stacks\": %s, "
             "\"native_allocators\": %s, \"all_mappings\": true}",
             (unsigned long long)options->sample_bytes,
             options->native_stacks ? "true" : "false",
             options->native_allocators ? "true" : "false");
    vst_recording_set_metadata(recording, "vestige.memory", json);
}

static vst_status funnel_start(vst_recording *recording,
                               const vst_memory_options *options)
{
    vst_status status = VST_OK;
    uint64_t seed;

    traced.recording = recording;
    traced.options = *options;
    traced.options.native_stacks =
        options->native_stacks && vst_traceback_has_native();
    funnel_write_options(recording, &traced.options);
    vst__os_random(&seed, sizeof seed);
    vst__sample_begin(options->sample_bytes, seed);
    vst__resident_begin(recording);
    if (traced.options.native_stacks && !vst__native_stacks_begin())
        return VST_E_NOMEM;
    if (options->native_allocators || traced.options.native_stacks)
        status = vst__hooks_install(recording, &traced.options);
    has_hooks |= status == VST_OK && options->native_allocators;
    if (status == VST_OK)
        atomic_store(&vst__memory_mode,
                     vst__os_barrier_prepare() ? ON : ON_FENCED);
    return status;
}

vst_status vst_memory_start(vst_recording *recording,
                            const vst_memory_options *options, vst_error *error)
{
    vst_status status = VST_E_BUSY;

    vst_memory_enter();
    was_used = true;
    pthread_mutex_lock(&control_lock);
    if (!vst__memory_is_on())
        status = funnel_start(recording, options);
    pthread_mutex_unlock(&control_lock);
    vst_memory_leave();
    return vst_error_set(error, status, 0, 0);
}

/* Waits until no other thread is inside. A signal handler may call stop() in a
 * thread that is inside: a thread never waits for itself. */
static void wait_until_nobody_is_inside(void)
{
    vst__os_barrier();
    pthread_mutex_lock(&threads_lock);
    for (thread_state *t = threads; t != NULL; t = t->next)
        while (t != &here && atomic_load(&t->busy))
            sched_yield();
    pthread_mutex_unlock(&threads_lock);
}

void vst_memory_stop(void)
{
    vst_memory_enter();
    was_used = true;
    pthread_mutex_lock(&control_lock);
    if (vst__memory_is_on()) {
        atomic_store(&vst__memory_mode, OFF);
        wait_until_nobody_is_inside();
        vst__resident_end(traced.recording);
    }
    if (has_hooks)
        vst__hooks_remove(traced.recording);
    has_hooks = false;
    traced.recording = NULL;
    vst__native_stacks_end();
    pthread_mutex_unlock(&control_lock);
    vst_memory_leave();
}

bool vst_memory_is_tracing(void)
{
    return vst__memory_is_on();
}
