/* Captures tracebacks: gathers the frames of the calling thread into memory
 * that the thread keeps for this, and passes them to the table. Any thread; a
 * capture inside a capture (gathering may run a destructor) gets memory of its
 * own. Also the accessors of tracebacks, which read only fields that never
 * change. */
#include "traceback/traceback.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "os/os.h"
#include "traceback/language.h"

/* Memory into which a thread gathers frames, kept for the next capture. */
typedef struct scratch {
    vst_gathered gathered;
    uintptr_t *addresses;
    size_t addresses_capacity;
    bool is_busy;
} scratch;

enum { ADDRESSES_FIRST = 128 };

static _Thread_local scratch *own_scratch
    __attribute__((tls_model("initial-exec")));
static vst__os_exit exit_hook;
static _Atomic(const vst_unwinder *) unwinder;

void vst_unwinder_install(const vst_unwinder *installed)
{
    atomic_store(&unwinder, installed);
}

const vst_unwinder *vst__unwinder_installed(void)
{
    return atomic_load_explicit(&unwinder, memory_order_acquire);
}

/* ---- the thread's memory ------------------------------------------------- */

static void scratch_free(scratch *s)
{
    free(s->gathered.codes);
    free(s->gathered.instructions);
    free(s->addresses);
    free(s);
}

static void capture_thread_ends(void *s)
{
    own_scratch = NULL;
    scratch_free(s);
}

__attribute__((constructor)) static void watch_thread_ends(void)
{
    vst__os_thread_exit_hook(&exit_hook, capture_thread_ends);
}

__attribute__((cold, noinline)) static scratch *scratch_make(void)
{
    scratch *s = calloc(1, sizeof *s);

    if (s == NULL || own_scratch != NULL)
        return s;
    own_scratch = s;
    vst__os_thread_exit_arg(exit_hook, s);
    return s;
}

static inline scratch *scratch_enter(void)
{
    scratch *s = own_scratch;

    if (s == NULL || s->is_busy)
        s = scratch_make();
    if (s != NULL)
        s->is_busy = true;
    return s;
}

static inline void scratch_leave(scratch *s)
{
    s->is_busy = false;
    if (s != own_scratch)
        scratch_free(s);
}

bool vst_gathered_grow(vst_gathered *gathered)
{
    size_t codes_capacity = gathered->capacity;
    size_t wanted = gathered->capacity + 1;

    if (gathered->count < gathered->capacity)
        return true;
    if (wanted > VST_FRAMES_MAX)
        return false;
    if (wanted < ADDRESSES_FIRST)
        wanted = ADDRESSES_FIRST;
    /* if only the first array grows, the next capture uses its room */
    return VST_RESERVE(gathered->codes, wanted, codes_capacity) &&
           VST_RESERVE(gathered->instructions, wanted, gathered->capacity);
}

/* ---- capture ------------------------------------------------------------- */

/* Gathers as many frames as there is room for, innermost first. */
static size_t gather_native(scratch *s, const void *from)
{
    size_t count = 0, wanted = ADDRESSES_FIRST;

    do {
        if (!VST_RESERVE(s->addresses, wanted, s->addresses_capacity))
            break;
        count = vst__native_gather(from, s->addresses, s->addresses_capacity);
        wanted = 2 * s->addresses_capacity;
    } while (count + VST_NATIVE_OWN_MAX >= s->addresses_capacity &&
             wanted <= VST_FRAMES_MAX);
    return count;
}

static void drop_innermost(vst__frames *frames, size_t skip)
{
    if (skip > frames->native)
        skip = frames->native;
    frames->addresses += skip;
    frames->native -= skip;
}

/* Drops native frames inside the one that evaluates the language's innermost
 * frames; keeps all if there is no such frame. */
static void drop_called(vst__frames *frames, const vst_unwinder *u)
{
    size_t runs = 0, at = frames->native;

    for (size_t i = 0; i < frames->language; i++)
        runs += (frames->instructions[i] & VST_FRAME_ENTRY) != 0;
    if (u->is_evaluation == NULL)
        return;
    while (runs != 0 && at != 0)
        runs -= u->is_evaluation(frames->addresses[--at]);
    if (runs == 0)
        drop_innermost(frames, at);
}

/* Not inlined, because the function's return address says where the caller's
 * frames begin. */
__attribute__((noinline)) vst_traceback *vst_traceback_capture(unsigned parts,
                                                               size_t skip)
{
    const vst_unwinder *u = vst__unwinder_installed();
    vst__frames frames = {0};
    vst_traceback *traceback;
    void *entered = NULL;
    bool has_entered = false;
    scratch *s = scratch_enter();

    if (s == NULL)
        return NULL;
    if (parts & VST_TRACEBACK_NATIVE) {
        frames.native = gather_native(s, __builtin_return_address(0));
        frames.addresses = s->addresses;
        if (skip != 0 && !(parts & VST_TRACEBACK_FROM_LANGUAGE))
            drop_innermost(&frames, skip);
    }
    if ((parts & VST_TRACEBACK_LANGUAGE) && u != NULL) {
        s->gathered.count = 0;
        has_entered = u->gather(skip, &s->gathered, &entered);
        if (has_entered) {
            frames.codes = s->gathered.codes;
            frames.instructions = s->gathered.instructions;
            frames.language = s->gathered.count;
            if (parts & VST_TRACEBACK_FROM_LANGUAGE)
                drop_called(&frames, u);
        }
    }
    traceback = vst__table_intern(&frames, has_entered);
    if (has_entered)
        u->leave(entered);
    scratch_leave(s);
    return traceback;
}

__attribute__((noinline)) size_t vst_traceback_addresses(uintptr_t *addresses,
                                                         size_t max,
                                                         size_t skip)
{
    size_t count =
        vst__native_gather(__builtin_return_address(0), addresses, max);

    if (skip == 0)
        return count;
    if (skip > count)
        skip = count;
    memmove(addresses, addresses + skip, (count - skip) * sizeof *addresses);
    return count - skip;
}

vst_traceback *vst_traceback_of(const uintptr_t *addresses, size_t count)
{
    vst__frames frames = {.addresses = addresses,
                          .native =
                              count < VST_FRAMES_MAX ? count : VST_FRAMES_MAX};

    return vst__table_intern(&frames, false);
}

/* ---- accessors ----------------------------------------------------------- */

vst_language_frames vst_traceback_language(const vst_traceback *traceback)
{
    return (vst_language_frames){vst__traceback_codes(traceback),
                                 vst__traceback_instructions(traceback),
                                 traceback->language};
}

const uintptr_t *vst_traceback_native(const vst_traceback *traceback,
                                      size_t *count)
{
    *count = traceback->native;
    return vst__traceback_addresses(traceback);
}

bool vst__traceback_is_sole(const vst_traceback *traceback)
{
    return atomic_load_explicit(&traceback->references, memory_order_acquire) ==
           1;
}

void *vst__traceback_get_user(const vst_traceback *traceback)
{
    return traceback->user;
}

void vst__traceback_set_user(vst_traceback *traceback, void *user)
{
    traceback->user = user;
}

int vst__traceback_traverse(const vst_traceback *traceback,
                            int (*visit)(void *object, void *arg), void *arg)
{
    void **codes = vst__traceback_codes(traceback);
    int result = 0;

    if (!vst__traceback_is_sole(traceback))
        return 0;
    for (size_t i = 0; i < traceback->language && result == 0; i++)
        result = visit(codes[i], arg);
    return result;
}

void vst__traceback_clear(vst_traceback *traceback)
{
    const vst_unwinder *u = vst__unwinder_installed();
    size_t count = traceback->language;

    if (count == 0 || u == NULL || !vst__table_remove(traceback))
        return;
    traceback->language = 0;
    u->release(vst__traceback_codes(traceback), count);
}
