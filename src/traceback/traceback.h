/* What the files of this folder share: the object, the table of all of them,
 * and where frames come from. */
#ifndef VST_TRACEBACK_TRACEBACK_H
#define VST_TRACEBACK_TRACEBACK_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/traceback.h>

enum { VST_FRAMES_MAX = 1 << 24 }; /* of one part of a traceback */

/* Immutable but for what names a guard. One allocation: after this come the
 * native addresses, the codes, the instructions. */
struct vst_traceback {
    atomic_uint references; /* to 0 and from 0 only under the table's lock */
    uint32_t hash;          /* table's lock; 0: not in the table any more */
    uint32_t language, native;
    vst_traceback *next_dead; /* table's lock; NULL: not on a list */
    void *user;               /* the interpreter's lock */
    uintptr_t words[];
};

/* Frames that are not a traceback yet. */
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

/* ---- table.c ------------------------------------------------------------ */

/* The traceback with these frames, with a reference for the caller; NULL: out
 * of memory. `entered`: the interpreter's lock is held, so the dead are freed
 * whatever they refer to. Frames of a language need it. */
vst_traceback *vst__table_intern(const vst__frames *frames, bool entered);
/* Takes a traceback out of the table. It must not be dead, and the caller must
 * hold its only reference; false: there are others. */
bool vst__table_remove(vst_traceback *traceback);
/* For tests: how many there are, dead ones that are not freed yet too. */
size_t vst__table_count(void);

/* ---- native.c: or native_none.c ----------------------------------------- */

enum { VST_NATIVE_OWN_MAX = 8 }; /* frames of ours below that */

/* libunwind's unw_backtrace, constant from the start on; NULL: not here. */
extern int (*vst__native_backtrace)(void **addresses, int max);
extern atomic_uint vst__native_inside; /* threads, seq_cst with the next */
extern atomic_bool vst__native_is_forking;

/* On aarch64 libunwind (1.8) starts anew in another way where frames do not fit
 * into the room, or cannot be walked quickly: then it gives addresses inside of
 * the calling instruction, with their signatures (PAC). An instruction lies at
 * a multiple of 4, so these can be told from return addresses, and be made
 * such.
 */
static inline void vst__native_tidy(uintptr_t *addresses, size_t count)
{
#if defined(__aarch64__)
    if (count == 0 || (addresses[0] & 3) == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        register uintptr_t plain __asm__("x30") = addresses[i];
        __asm__("hint #7" : "+r"(plain)); /* xpaclri: takes the signature off */
        addresses[i] = (plain + 3) & ~(uintptr_t)3;
    }
#else
    (void)addresses, (void)count;
#endif
}

/* Return addresses of the calling thread, innermost first, from the frame that
 * `from` returns into: addresses[*first] and those behind. As many as there is
 * room for, less VST_NATIVE_OWN_MAX at most. Inline: each frame of ours costs
 * as much as one of the program's. */
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
    /* However many frames of ours the compiler made of it. Older versions of
     * libunwind (1.3 of Debian 11) give the addresses before those that are
     * returned to. */
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

/* The same, from addresses[0] on. */
size_t vst__native_gather(const void *from, uintptr_t *addresses, size_t max);

/* The unwinder in use; NULL: none. Any thread. */
const vst_unwinder *vst__unwinder_installed(void);

#endif
