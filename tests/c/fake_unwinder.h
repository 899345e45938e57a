/* A language for tests of tracebacks: its frames are an array that the test
 * fills, its code objects count their references, its lock is a mutex if the
 * test wants one. One test at a time; threads where `lock` is set. */
#ifndef VST_TESTS_FAKE_UNWINDER_H
#define VST_TESTS_FAKE_UNWINDER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <vestige/traceback.h>

typedef struct fake_code {
    const char *name;
    atomic_long references;
    void (*dropped)(struct fake_code *code); /* called for each released
                                              * reference */
} fake_code;

typedef struct fake_stack {
    fake_code *const *codes; /* innermost first */
    const uint32_t *instructions;
    size_t count;
} fake_stack;

static _Thread_local fake_stack fake_frames;
static _Thread_local int fake_entered;   /* calls of gather and enter, minus
                                          * calls of leave */
static _Thread_local bool fake_has_lock; /* the calling thread already holds the
                                          * lock */
static pthread_mutex_t *fake_lock;       /* NULL: the language has no lock */
static atomic_bool fake_is_absent;       /* the language can gather no frames
                                          * now */
static bool (*fake_evaluation)(uintptr_t at);
static atomic_int fake_lookups;      /* frames named */
static void (*fake_gathering)(void); /* called by gather, if set */

static inline bool fake_enter(void **entered)
{
    if (atomic_load(&fake_is_absent))
        return false;
    *entered = NULL;
    if (fake_lock != NULL && !fake_has_lock) {
        pthread_mutex_lock(fake_lock);
        *entered = fake_lock;
    }
    fake_entered++;
    return true;
}

static inline void fake_leave(void *entered)
{
    fake_entered--;
    if (entered != NULL)
        pthread_mutex_unlock(entered);
}

static inline bool fake_gather(size_t skip, vst_gathered *gathered,
                               void **entered)
{
    if (!fake_enter(entered))
        return false;
    if (fake_gathering != NULL)
        fake_gathering();
    for (size_t i = skip; i < fake_frames.count; i++) {
        if (gathered->count == gathered->capacity &&
            !vst_gathered_grow(gathered))
            break;
        gathered->codes[gathered->count] = fake_frames.codes[i];
        gathered->instructions[gathered->count++] = fake_frames.instructions[i];
    }
    return true;
}

static inline void fake_retain(void *const *codes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        atomic_fetch_add(&((fake_code *)codes[i])->references, 1);
}

static inline void fake_release(void *const *codes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fake_code *code = codes[i];
        atomic_fetch_sub(&code->references, 1);
        if (code->dropped != NULL)
            code->dropped(code);
    }
}

static inline vst_status fake_append(void *code, uint32_t instruction,
                                     unsigned flags, const vst_named_sink *sink)
{
    const fake_code *c = code;
    vst_named_frame frame = {.name = c->name,
                             .name_len = strlen(c->name),
                             .file = "fake.lang",
                             .file_len = 9,
                             .line = instruction};

    atomic_fetch_add(&fake_lookups, 1);
    if (flags & VST_SYMBOLS_POSITIONS)
        frame.column = 7;
    return sink->add(sink->ctx, &frame);
}

static inline bool fake_is_evaluation(uintptr_t address)
{
    return fake_evaluation != NULL && fake_evaluation(address);
}

static const vst_unwinder fake_unwinder = {
    .gather = fake_gather,
    .enter = fake_enter,
    .leave = fake_leave,
    .retain = fake_retain,
    .release = fake_release,
    .append_symbolized = fake_append,
    .is_evaluation = fake_is_evaluation,
};

#endif
