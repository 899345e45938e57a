/* Wraps the interpreter's allocators (PYMEM_DOMAIN_RAW, _MEM and _OBJ). Any
 * thread enters the hooks; those of the raw domain run without the GIL, too.
 *
 * A hook passes its context on to the allocator that it wraps, and is installed
 * with that allocator's context. So no harm is done if a thread reads one half
 * of the interpreter's table before a change and the other half after it. If
 * other code wraps our hook, the hook stays when recording stops and only
 * passes calls on; it is found again when recording starts. On builds without
 * the GIL the world is stopped for each change of the table; threads that
 * Python does not know keep allocating, as they do without the GIL. */
#include "memory/memory.h"

static struct vpy_allocator_hooks_state *const state = &vpy_memory.hooks;

enum { RAW, MEM, OBJ, DOMAINS = VPY_MEMORY_DOMAINS };

static const PyMemAllocatorDomain domain_ids[DOMAINS] = {
    PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};

/* Set while we test whether a domain still calls our hook. */
static _Thread_local bool probing VST_TLS_MODEL, reached VST_TLS_MODEL;

/* ---- the hooks ----------------------------------------------------------- */

static inline void *allocator_allocated(vst_memory_kind kind, bool outermost,
                                        void *p, size_t size)
{
    if (VST_LIKELY(outermost && p != NULL))
        vst_memory_allocated(kind, (uintptr_t)p, size);
    vst_memory_leave();
    return p;
}

static inline void *hook_malloc(int domain, vst_memory_kind kind, void *ctx,
                                size_t size)
{
    bool outermost = vst_memory_enter();

    return allocator_allocated(kind, outermost,
                               state->wrapped[domain].malloc(ctx, size), size);
}

static inline void *hook_calloc(int domain, vst_memory_kind kind, void *ctx,
                                size_t count, size_t size)
{
    bool outermost = vst_memory_enter();

    return allocator_allocated(kind, outermost,
                               state->wrapped[domain].calloc(ctx, count, size),
                               count * size);
}

/* malloc_kind: recorded if there was no block before. */
static inline void *hook_realloc(int domain, vst_memory_kind malloc_kind,
                                 vst_memory_kind kind, void *ctx, void *old,
                                 size_t size)
{
    bool outermost = vst_memory_enter();
    vst_ticks before = outermost ? vst_clock_ticks() : 0;
    void *p = state->wrapped[domain].realloc(ctx, old, size);

    if (old == NULL)
        return allocator_allocated(malloc_kind, outermost, p, size);
    if (VST_LIKELY(outermost && p != NULL))
        vst_memory_moved(kind, (uintptr_t)old, (uintptr_t)p, size, before);
    vst_memory_leave();
    return p;
}

static inline void hook_free(int domain, vst_memory_kind kind, void *ctx,
                             void *p)
{
    bool outermost = vst_memory_enter();

    if (VST_LIKELY(outermost && p != NULL))
        vst_memory_freed(kind, (uintptr_t)p, 0);
    state->wrapped[domain].free(ctx, p);
    vst_memory_leave();
}

static void *raw_malloc(void *ctx, size_t size)
{
    if (probing)
        reached = true;
    return hook_malloc(RAW, VST_MEMORY_PY_RAW_MALLOC, ctx, size);
}

static void *raw_calloc(void *ctx, size_t count, size_t size)
{
    return hook_calloc(RAW, VST_MEMORY_PY_RAW_CALLOC, ctx, count, size);
}

static void *raw_realloc(void *ctx, void *old, size_t size)
{
    return hook_realloc(RAW, VST_MEMORY_PY_RAW_MALLOC,
                        VST_MEMORY_PY_RAW_REALLOC, ctx, old, size);
}

static void raw_free(void *ctx, void *p)
{
    hook_free(RAW, VST_MEMORY_PY_RAW_FREE, ctx, p);
}

static void *mem_malloc(void *ctx, size_t size)
{
    if (probing)
        reached = true;
    return hook_malloc(MEM, VST_MEMORY_PY_MEM_MALLOC, ctx, size);
}

static void *mem_calloc(void *ctx, size_t count, size_t size)
{
    return hook_calloc(MEM, VST_MEMORY_PY_MEM_CALLOC, ctx, count, size);
}

static void *mem_realloc(void *ctx, void *old, size_t size)
{
    return hook_realloc(MEM, VST_MEMORY_PY_MEM_MALLOC,
                        VST_MEMORY_PY_MEM_REALLOC, ctx, old, size);
}

static void mem_free(void *ctx, void *p)
{
    hook_free(MEM, VST_MEMORY_PY_MEM_FREE, ctx, p);
}

static void *obj_malloc(void *ctx, size_t size)
{
    if (probing)
        reached = true;
    return hook_malloc(OBJ, VST_MEMORY_PY_OBJECT_MALLOC, ctx, size);
}

static void *obj_calloc(void *ctx, size_t count, size_t size)
{
    return hook_calloc(OBJ, VST_MEMORY_PY_OBJECT_CALLOC, ctx, count, size);
}

static void *obj_realloc(void *ctx, void *old, size_t size)
{
    return hook_realloc(OBJ, VST_MEMORY_PY_OBJECT_MALLOC,
                        VST_MEMORY_PY_OBJECT_REALLOC, ctx, old, size);
}

/* Returns whether a block that is freed may be a code object. Blocks smaller
 * than an object are checked, too: the check may read behind such a block, but
 * only in the same page. */
__attribute__((no_sanitize("address", "thread"))) static bool
looks_like_code(const void *p)
{
    enum { PAGE = 4096 };

    return p != NULL && (uintptr_t)p % 16 == 0 &&
           (sizeof(PyObject) <= 16 ||
            (uintptr_t)p % PAGE <= PAGE - sizeof(PyObject)) &&
           ((const PyObject *)p)->ob_type == &PyCode_Type;
}

static void obj_free(void *ctx, void *p)
{
    if (looks_like_code(p))
        vpy_nodes_code_freed(p);
    hook_free(OBJ, VST_MEMORY_PY_OBJECT_FREE, ctx, p);
}

static const PyMemAllocatorEx hooks[DOMAINS] = {
    {NULL, raw_malloc, raw_calloc, raw_realloc, raw_free},
    {NULL, mem_malloc, mem_calloc, mem_realloc, mem_free},
    {NULL, obj_malloc, obj_calloc, obj_realloc, obj_free},
};

/* ---- installing and removing --------------------------------------------- */

static bool allocator_is_ours(const PyMemAllocatorEx *allocator, int domain)
{
    return allocator->malloc == hooks[domain].malloc;
}

/* Returns whether an allocation of this domain still reaches our hook. */
static bool reaches_ours(const PyMemAllocatorEx *allocator, int domain)
{
    void *p;

    if (allocator_is_ours(allocator, domain) || !state->left_behind[domain])
        return allocator_is_ours(allocator, domain);
    probing = true;
    reached = false;
    p = allocator->malloc(allocator->ctx, 16);
    probing = false;
    allocator->free(allocator->ctx, p);
    return reached;
}

void vpy_memory_hooks_install(void)
{
    for (int domain = 0; domain < DOMAINS; domain++) {
        PyMemAllocatorEx current, ours = hooks[domain];
        PyMem_GetAllocator(domain_ids[domain], &current);
        if (reaches_ours(&current, domain))
            continue;
        ours.ctx = current.ctx;
        vpy_world_stop();
        /* A thread that is ending may call `wrapped` and is not stopped, so
         * equal contents are not written again. */
        if (memcmp(&state->wrapped[domain], &current, sizeof current) != 0)
            state->wrapped[domain] = current;
        PyMem_SetAllocator(domain_ids[domain], &ours);
        vpy_world_start();
        state->left_behind[domain] = true;
    }
}

void vpy_memory_hooks_remove(void)
{
    for (int domain = 0; domain < DOMAINS; domain++) {
        PyMemAllocatorEx current;
        PyMem_GetAllocator(domain_ids[domain], &current);
        if (!allocator_is_ours(&current, domain))
            continue;
        vpy_world_stop();
        PyMem_SetAllocator(domain_ids[domain], &state->wrapped[domain]);
        vpy_world_start();
        state->left_behind[domain] = false;
    }
}
