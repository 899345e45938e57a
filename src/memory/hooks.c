/* Hooks of C's allocators: libraries call them in place of malloc and the
 * others while memory is traced. Any thread of the program, in any state. The
 * original is the function that the loader finds under the name, never a value
 * that a slot held. A hook calls the original exactly once, with its own
 * arguments, and reports the result to the funnel. An allocation that an
 * allocator makes from another inside is not reported. A hook that is called
 * while nothing is traced, because other code kept its address, only calls the
 * original. */
#include "memory/hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/funnel.h"
#include "memory/scan.h"
#include "os/os.h"

#define HERE __builtin_return_address(0) /* the caller of the hook */

/* Constant while any hook is installed. */
static struct {
    __typeof__(&malloc) malloc;
    __typeof__(&calloc) calloc;
    __typeof__(&realloc) realloc;
    __typeof__(&reallocarray) reallocarray;
    __typeof__(&free) free;
    __typeof__(&posix_memalign) posix_memalign;
    __typeof__(&aligned_alloc) aligned_alloc;
    __typeof__(&memalign) memalign;
    __typeof__(&valloc) valloc;
    /* has the type of valloc; only glibc declares it */
    __typeof__(&valloc) pvalloc;
} real;

/* ---- blocks -------------------------------------------------------------- */

#define REPORTED(kind, call, size)                                             \
    bool outermost;                                                            \
    void *block;                                                               \
    if (!vst__memory_is_on())                                                  \
        return (call);                                                         \
    outermost = vst_memory_enter();                                            \
    block = (call);                                                            \
    if (outermost && block != NULL)                                            \
        vst__memory_allocated(kind, (uintptr_t)block, size, HERE);             \
    vst_memory_leave();                                                        \
    return block

static void *hook_malloc(size_t size)
{
    REPORTED(VST_MEMORY_MALLOC, real.malloc(size), size);
}

static void *hook_calloc(size_t count, size_t size)
{
    /* if the product overflows, calloc returns no block */
    REPORTED(VST_MEMORY_CALLOC, real.calloc(count, size), count * size);
}

static void *hook_aligned_alloc(size_t alignment, size_t size)
{
    REPORTED(VST_MEMORY_ALIGNED_ALLOC, real.aligned_alloc(alignment, size),
             size);
}

static void *hook_memalign(size_t alignment, size_t size)
{
    REPORTED(VST_MEMORY_MEMALIGN, real.memalign(alignment, size), size);
}

static void *hook_valloc(size_t size)
{
    REPORTED(VST_MEMORY_VALLOC, real.valloc(size), size);
}

static void *hook_pvalloc(size_t size)
{
    REPORTED(VST_MEMORY_VALLOC, real.pvalloc(size), size);
}

static int hook_posix_memalign(void **block, size_t alignment, size_t size)
{
    bool outermost;
    int result;

    if (!vst__memory_is_on())
        return real.posix_memalign(block, alignment, size);
    outermost = vst_memory_enter();
    result = real.posix_memalign(block, alignment, size);
    if (outermost && result == 0 && *block != NULL)
        vst__memory_allocated(VST_MEMORY_POSIX_MEMALIGN, (uintptr_t)*block,
                              size, HERE);
    vst_memory_leave();
    return result;
}

static void hook_free(void *block)
{
    if (block == NULL || !vst__memory_is_on()) {
        real.free(block);
        return;
    }
    if (vst_memory_enter())
        vst__memory_freed(VST_MEMORY_FREE, (uintptr_t)block, 0, VST__NOW);
    real.free(block);
    vst_memory_leave();
}

/* Reports a realloc that returned no block: if the size was 0, the old block is
 * freed, otherwise it still exists. */
static void report_resized(void *old, void *block, size_t size,
                           vst_ticks before, const void *caller)
{
    if (block != NULL && old != NULL)
        vst__memory_moved(VST_MEMORY_REALLOC, (uintptr_t)old, (uintptr_t)block,
                          size, before, caller);
    else if (block != NULL)
        vst__memory_allocated(VST_MEMORY_REALLOC, (uintptr_t)block, size,
                              caller);
    else if (old != NULL && size == 0)
        vst__memory_freed(VST_MEMORY_REALLOC, (uintptr_t)old, 0, before);
}

static void *hook_realloc(void *old, size_t size)
{
    bool outermost;
    vst_ticks before;
    void *block;

    if (!vst__memory_is_on())
        return real.realloc(old, size);
    outermost = vst_memory_enter();
    before = vst_clock_ticks();
    block = real.realloc(old, size);
    if (outermost)
        report_resized(old, block, size, before, HERE);
    vst_memory_leave();
    return block;
}

static void *hook_reallocarray(void *old, size_t count, size_t size)
{
    size_t product;
    bool outermost;
    vst_ticks before;
    void *block;

    if (!vst__memory_is_on() || __builtin_mul_overflow(count, size, &product))
        return real.reallocarray(old, count, size);
    outermost = vst_memory_enter();
    before = vst_clock_ticks();
    block = real.reallocarray(old, count, size);
    if (outermost)
        report_resized(old, block, product, before, HERE);
    vst_memory_leave();
    return block;
}

/* ---- installing and removing --------------------------------------------- */

#define HOOK(name) {#name, (void *)hook_##name, NULL}
static vst__hook hooks[] = {
    HOOK(malloc),
    HOOK(calloc),
    HOOK(realloc),
    HOOK(reallocarray),
    HOOK(free),
    HOOK(posix_memalign),
    HOOK(aligned_alloc),
    HOOK(memalign),
    HOOK(valloc),
    HOOK(pvalloc),
    {"mmap", (void *)vst__hook_mmap, NULL},
    {"mmap64", (void *)vst__hook_mmap64, NULL},
    {"munmap", (void *)vst__hook_munmap, NULL},
    {"mremap", (void *)vst__hook_mremap, NULL},
    {"mprotect", (void *)vst__hook_mprotect, NULL},
    {"madvise", (void *)vst__hook_madvise, NULL},
#if defined(__x86_64__)
    {"dlopen", (void *)vst__hook_dlopen, NULL},
    {"dlsym", (void *)vst__hook_dlsym, NULL},
    {"dlclose", (void *)vst__hook_dlclose, NULL},
#endif
};
enum { HOOKS = sizeof hooks / sizeof *hooks };

static void set_original(const char *name, void *original)
{
#define SET(field, known)                                                      \
    if (strcmp(name, known) == 0)                                              \
        memcpy(&(field), &original, sizeof original);
    SET(real.malloc, "malloc")
    SET(real.calloc, "calloc")
    SET(real.realloc, "realloc")
    SET(real.reallocarray, "reallocarray")
    SET(real.free, "free")
    SET(real.posix_memalign, "posix_memalign")
    SET(real.aligned_alloc, "aligned_alloc")
    SET(real.memalign, "memalign")
    SET(real.valloc, "valloc")
    SET(real.pvalloc, "pvalloc")
    SET(vst__real_maps.mmap, "mmap")
    SET(vst__real_maps.mmap64, "mmap64")
    SET(vst__real_maps.munmap, "munmap")
    SET(vst__real_maps.mremap, "mremap")
    SET(vst__real_maps.mprotect, "mprotect")
    SET(vst__real_maps.madvise, "madvise")
#if defined(__x86_64__)
    SET(vst__real_dlopen, "dlopen")
    SET(vst__real_dlsym, "dlsym")
    SET(vst__real_dlclose, "dlclose")
#endif
#undef SET
}

/* Keeps the library with the hooks loaded for good, because other code may keep
 * a hook's address for longer than memory is traced. */
static void hooks_pin(void)
{
    Dl_info info;

    if (dladdr((void *)hook_malloc, &info) && info.dli_fname != NULL)
        dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

vst_status vst__hooks_install(vst_recording *recording,
                              const vst_memory_options *options)
{
    static bool is_ready; /* guarded by control_lock of funnel.c */

    if (options->native_allocators && !is_ready) {
        for (size_t i = 0; i < HOOKS; i++) {
            hooks[i].original = vst__objects_find(hooks[i].name);
            set_original(hooks[i].name, hooks[i].original);
        }
        if (real.malloc == NULL || real.free == NULL)
            return VST_E_UNSUPPORTED;
        hooks_pin();
        /* A thread that comes through a slot must find the originals. Only this
         * barrier orders its loads of the slot and of the original. */
        if (vst__os_barrier_prepare())
            vst__os_barrier();
        is_ready = true;
    }
    vst__scan_begin(hooks, options->native_allocators ? HOOKS : 0,
                    hooks[0].original,
                    options->native_stacks ? recording : NULL);
    vst__scan();
    return VST_OK;
}

void vst__hooks_remove(vst_recording *recording)
{
    vst__scan_counts counts;
    char json[128];

    vst__scan_end(hooks, HOOKS, &counts);
    if (recording == NULL)
        return;
    snprintf(json, sizeof json,
             "{\"libraries\": %llu, \"slots\": %llu, \"left_alone\": %llu}",
             (unsigned long long)counts.objects,
             (unsigned long long)counts.patched,
             (unsigned long long)counts.left_alone);
    vst_recording_set_metadata(recording, "vestige.memory.hooks", json);
}
