/* What the files of this folder that trace memory share: the funnel as hooks of
 * our own enter it, sampling, native stacks, and putting hooks in. */
#ifndef VST_MEMORY_FUNNEL_H
#define VST_MEMORY_FUNNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/memory.h>

/* ---- funnel.c ------------------------------------------------------------ */

/* 0 while memory is not traced. Relaxed: the funnel looks again, in case the
 * caller saw an old value. */
extern atomic_uint vst__memory_mode;

static inline bool vst__memory_is_on(void)
{
    return atomic_load_explicit(&vst__memory_mode, memory_order_relaxed) != 0;
}

/* As vst_memory_allocated, with native frames from the one that `from` returns
 * into. */
void vst__memory_allocated(vst_memory_kind kind, uintptr_t address, size_t size,
                           const void *from);
/* As vst_memory_freed, for a block that was freed after `before`, or is about
 * to be freed (VST__NOW). */
#define VST__NOW 0 /* sentinel: read the clock now */
void vst__memory_freed(vst_memory_kind kind, uintptr_t address, size_t size,
                       vst_ticks before);

/* A realloc that succeeded. */
void vst__memory_moved(vst_memory_kind kind, uintptr_t from, uintptr_t to,
                       size_t size, vst_ticks before, const void *caller);

/* Mappings. range: VST_RANGE_ flags. */
void vst__memory_mapped(uintptr_t address, size_t size, unsigned range,
                        const void *from);
void vst__memory_unmapped(uintptr_t address, size_t size, vst_ticks before);
/* The address space stays, nothing is resident there. */
void vst__memory_given_back(uintptr_t address, size_t size, vst_ticks before);
/* Called before pages are given back or unmapped. Records which of them were
 * resident, of those whose use is not known yet. */
void vst__memory_look(uintptr_t address, size_t size);

/* Between the two, stop() waits for the calling thread. If go_in returns false,
 * nothing is traced, and come_out must not be called. */
bool vst__memory_go_in(void);
void vst__memory_come_out(void);

/* ---- sample.c ----------------------------------------------------------- */

/* A thread's way to its next sample. */
typedef struct vst__sampler {
    uint64_t until;  /* bytes to go, at least 1 */
    uint64_t random; /* never 0 */
    uint32_t turn;   /* the sampling that this is of; 0: none yet */
} vst__sampler;

/* Before memory is traced: one in so many bytes from now on, and nothing is
 * sampled yet. */
void vst__sample_begin(uint64_t bytes, uint64_t seed);
void vst__sample_after_fork(void);
void vst__sample_draw(vst__sampler *sampler);
extern uint32_t vst__sample_turn; /* constant while memory is traced */

/* Whether an allocation of this size is sampled: with probability 1 - exp(-size
 * / bytes). The distribution has no memory, so a new gap may be drawn after any
 * allocation. */
static inline bool vst__sample_takes(vst__sampler *sampler, size_t size)
{
    if (sampler->turn != vst__sample_turn)
        vst__sample_draw(sampler);
    if (size < sampler->until) {
        sampler->until -= size;
        return false;
    }
    vst__sample_draw(sampler);
    return true;
}

/* The addresses that are sampled; an address that was added twice is removed
 * twice. False: it could not be added, or was not there. */
bool vst__sample_add(uintptr_t address);
bool vst__sample_remove(uintptr_t address);

/* ---- native_stacks.c ---------------------------------------------------- */

/* False: no memory. */
bool vst__native_stacks_begin(void);
void vst__native_stacks_end(void);
enum { VST__WALK_MAX = 256 }; /* frames further out are left out */
/* The number of a native stack, innermost frame first, together with that of
 * the language. */
vst_stack_id vst__native_stack(vst_recording *recording, vst_stack_id language,
                               const uintptr_t *addresses, size_t count);

/* ---- hooks.c ------------------------------------------------------------ */

/* Puts hooks into every loaded library, and into those that come later. */
vst_status vst__hooks_install(vst_recording *recording,
                              const vst_memory_options *options);
/* Takes out those that are still there. */
void vst__hooks_remove(vst_recording *recording);

#endif
