/* Declarations for the files of this folder: the traceback object, the table of
 * all tracebacks, and the sources of frames. */
#ifndef VST_TRACEBACK_TRACEBACK_H
#define VST_TRACEBACK_TRACEBACK_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/traceback.h>

enum { VST_FRAMES_MAX = 1 << 24 }; /* frames of one part of a traceback */

/* Immutable, except fields that name a guard. One allocation: the struct is
 * followed by the native addresses, the codes and the instructions. */
struct vst_traceback {
    /* changes to 0 and from 0 only with the table's lock held */
    atomic_uint references;
    /* guarded by the table's lock; 0 once it has left the table */
    uint32_t hash;
    uint32_t language, native;
    /* guarded by the table's lock; NULL if it is on no list */
    vst_traceback *next_dead;
    void *user; /* guarded by the interpreter's lock */
    uintptr_t words[];
};

/* Frames from which a traceback can be made. */
typedef struct vst__frames {
    void *const *codes;
    const uint32_t *instructions;
    size_t language;
    const uintptr_t *addresses;
    size_t native;
} vst__frames;

static inline uintptr_t *vst__traceback_addresses(const vst_traceback *t)
{
    return (uintptr_t *)t->words;
}

static inline void **vst__traceback_codes(const vst_traceback *t)
{
    return (void **)(t->words + t->native);
}

static inline uint32_t *vst__traceback_instructions(const vst_traceback *t)
{
    return (uint32_t *)(vst__traceback_codes(t) + t->language);
}

/* ---- table.c ------------------------------------------------------------- */

/* Returns the traceback with these frames, with a reference for the caller;
 * NULL if memory ran out. `entered`: the caller holds the interpreter's lock,
 * so dead tracebacks are freed whatever they refer to. Frames of a language
 * require that lock. */
vst_traceback *vst__table_intern(const vst__frames *frames, bool entered);
/* Takes a traceback out of the table. It must not be dead, and the caller must
 * hold its only reference. Returns false if there are other references. */
bool vst__table_remove(vst_traceback *traceback);
/* For tests: returns how many tracebacks exist, including dead ones that are
 * not freed yet. */
size_t vst__table_count(void);

/* ---- native.c: or native_none.c ------------------------------------------ */

/* at most this many frames of ours are below the caller's */
enum { VST_NATIVE_OWN_MAX = 8 };

/* libunwind's unw_backtrace, constant after the start; NULL without
 * libunwind. */
extern int (*vst__native_backtrace)(void **addresses, int max);
/* number of threads inside; seq_cst together with the next */
extern atomic_uint vst__native_inside;
extern atomic_bool vst__native_is_forking;

/* On aarch64, libunwind (1.8) restarts in a slower way if frames do not fit
 * into the room or cannot be walked quickly. It then gives addresses inside the
 * calling instruction, with their signatures (PAC). An instruction lies at a
 * multiple of 4, so these can be distinguished from return addresses, and
 * converted. */
static inline void vst__native_tidy(uintptr_t *addresses, size_t count)
{
#if defined(__aarch64__)
    if (count == 0 || (addresses[0] & 3) == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        register uintptr_t plain __asm__("x30") = addresses[i];
        __asm__("hint #7" : "+r"(plain)); /* xpaclri: removes the signature */
        addresses[i] = (plain + 3) & ~(uintptr_t)3;
    }
#else
    (void)addresses, (void)count;
#endif
}

/* Writes return addresses of the calling thread, innermost first, from the
 * frame that `from` returns into, to addresses[*first] and behind: as many as
 * there is room for, minus at most VST_NATIVE_OWN_MAX. Inline, because each
 * frame of ours costs as much as a frame of the program. */
static inline size_t vst__native_walk(const void *from, uintptr_t *addresses,
                                      size_t max, size_t *first)
{
    size_t count, own = 0;
    int got = 0;

    *first = 0;
    if (vst__native_backtrace == NULL)
        return 0;
    atomic_fetch_add(&vst__native_inside, 1);
    if (!atomic_load(&vst__native_is_forking))
        got = vst__native_backtrace((void **)addresses,
                                    max < INT_MAX ? (int)max : INT_MAX);
    atomic_fetch_sub(&vst__native_inside, 1);
    count = got > 0 ? (size_t)got : 0;
    vst__native_tidy(addresses, count);
    /* The compiler decides how many frames of ours there are. Older libunwind
     * (1.3 in Debian 11) gives addresses before the return addresses. */
    while (own < count && own < VST_NATIVE_OWN_MAX &&
           (uintptr_t)from - addresses[own] > 1)
        own++;
    *first = own;
    if (own >= VST_NATIVE_OWN_MAX)
        return 0;
    if (own < count && addresses[own] != (uintptr_t)from)
        for (size_t i = own; i < count; i++)
            addresses[i]++;
    return count - own;
}

/* Like vst__native_walk, from addresses[0] on. */
size_t vst__native_gather(const void *from, uintptr_t *addresses, size_t max);

/* The unwinder in use; NULL: none. Any thread. */
const vst_unwinder *vst__unwinder_installed(void);

#endif
