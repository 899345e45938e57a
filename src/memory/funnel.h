/* Declarations for the files that trace memory: the funnel as our own hooks
 * enter it, sampling, native stacks, and installing hooks. */
#ifndef VST_MEMORY_FUNNEL_H
#define VST_MEMORY_FUNNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/memory.h>

/* ---- funnel.c ------------------------------------------------------------ */

/* 0 while memory is not traced. Loaded relaxed: the funnel checks again, in
 * case the caller saw an old value. */
extern atomic_uint vst__memory_mode;

static inline bool vst__memory_is_on(void)
{
    return atomic_load_explicit(&vst__memory_mode, memory_order_relaxed) != 0;
}

/* Like vst_memory_allocated, with native frames from the one that `from`
 * returns into. */
void vst__memory_allocated(vst_memory_kind kind, uintptr_t address, size_t size,
                           const void *from);
/* Like vst_memory_freed, for a block that was freed after `before`, or will be
 * freed after this call (VST__NOW). */
#define VST__NOW 0 /* sentinel: read the clock now */
void vst__memory_freed(vst_memory_kind kind, uintptr_t address, size_t size,
                       vst_ticks before);

/* Reports a realloc that succeeded. */
void vst__memory_moved(vst_memory_kind kind, uintptr_t from, uintptr_t to,
                       size_t size, vst_ticks before, const void *caller);

/* Reports a mapping. range: VST_RANGE_ flags. */
void vst__memory_mapped(uintptr_t address, size_t size, unsigned range,
                        const void *from);
void vst__memory_unmapped(uintptr_t address, size_t size, vst_ticks before);
/* Reports pages given back: the address space stays, but nothing is resident
 * there. */
void vst__memory_given_back(uintptr_t address, size_t size, vst_ticks before);
/* Call before pages are given back or unmapped. Records which of them were
 * resident, if their use is not known yet. */
void vst__memory_look(uintptr_t address, size_t size);

/* Between go_in and come_out, stop() waits for the calling thread. If go_in
 * returns false, nothing is traced; do not call come_out then. */
bool vst__memory_go_in(void);
void vst__memory_come_out(void);

/* ---- sample.c ------------------------------------------------------------ */

/* A thread's distance to its next sample. */
typedef struct vst__sampler {
    uint64_t until;  /* bytes until the next sample, at least 1 */
    uint64_t random; /* never 0 */
    /* number of the sampling that these values belong to; 0: none yet */
    uint32_t sampling;
} vst__sampler;

/* Call before memory is traced: from now on one in `bytes` bytes is sampled,
 * and no address is in the set. */
void vst__sample_begin(uint64_t bytes, uint64_t seed);
void vst__sample_after_fork(void);
void vst__sample_draw(vst__sampler *sampler);
extern uint32_t vst__sample_number; /* constant while memory is traced */

/* Returns whether an allocation of this size is sampled: with probability 1 -
 * exp(-size / bytes). The distribution has no memory, so a new gap may be drawn
 * after any allocation. */
static inline bool vst__sample_takes(vst__sampler *sampler, size_t size)
{
    if (sampler->sampling != vst__sample_number)
        vst__sample_draw(sampler);
    if (size < sampler->until) {
        sampler->until -= size;
        return false;
    }
    vst__sample_draw(sampler);
    return true;
}

/* Add to and remove from the sampled addresses; an address that was added twice
 * must be removed twice. Return false if the address could not be added, or was
 * not there. */
bool vst__sample_add(uintptr_t address);
bool vst__sample_remove(uintptr_t address);

/* ---- native_stacks.c ----------------------------------------------------- */

/* Returns false if memory ran out. */
bool vst__native_stacks_begin(void);
void vst__native_stacks_end(void);
enum { VST__WALK_MAX = 256 }; /* frames further out than this are cut off */
/* Returns the number of the native stack, innermost frame first, joined with
 * the language's stack. */
vst_stack_id vst__native_stack(vst_recording *recording, vst_stack_id language,
                               const uintptr_t *addresses, size_t count);

/* ---- hooks.c ------------------------------------------------------------- */

/* Puts hooks into every loaded library, and into libraries that are loaded
 * later. */
vst_status vst__hooks_install(vst_recording *recording,
                              const vst_memory_options *options);
/* Takes all hooks out that are still in place. */
void vst__hooks_remove(vst_recording *recording);

#endif
