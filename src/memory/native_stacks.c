/* Gives numbers to native stacks of allocations. src/traceback walks the
 * stacks; this file gives an equal walk the number it had before, without the
 * recorder's lock. Any thread, inside any allocator.
 *
 * All threads read and write one table without locks. Another thread may
 * overwrite a place at any time; its stack is then simply looked up again. A
 * key is a 64-bit hash with a new salt for each recording: the probability that
 * two of a million stacks have the same key is less than one in ten million. */
#include <string.h>

#include "memory/funnel.h"
#include "objects/objects.h"
#include "os/os.h"
#include "traceback/traceback.h"

enum {
    TABLE_BITS = 18, /* 4 MiB, of which only used pages take memory */
    WAYS = 4,
};

/* The upper half of `value` says to which key it belongs. */
typedef struct place {
    atomic_ullong key, value;
} place;

static place *table; /* never freed once it was made */
static uint64_t salt;
static uintptr_t own_start, own_end; /* addresses of our own frames, if known */

bool vst__native_stacks_begin(void)
{
    if (table == NULL)
        table = vst__os_pages(sizeof(place) << TABLE_BITS);
    vst__os_random(&salt, sizeof salt);
    vst__objects_own(&own_start, &own_end);
    return table != NULL;
}

void vst__native_stacks_end(void)
{
    if (table != NULL)
        vst__os_pages_forget(table, sizeof(place) << TABLE_BITS);
}

/* ---- the table ----------------------------------------------------------- */

static uint64_t native_stacks_finish(uint64_t hash)
{
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
    hash ^= hash >> 32;
    return hash ? hash : 1;
}

static uint64_t key_of_node(vst_stack_kind kind, vst_stack_id parent,
                            uint64_t value)
{
    uint64_t hash = salt ^ (uint64_t)kind << 60 ^ parent;

    return native_stacks_finish(hash * 0x9e3779b97f4a7c15u ^
                                value * 0xc2b2ae3d27d4eb4fu);
}

static inline uint64_t native_stacks_step(uint64_t lane, uint64_t address)
{
    lane = (lane ^ address) * 0x9e3779b97f4a7c15u;
    return lane << 31 | lane >> 33;
}

/* Hashes in four lanes, because independent multiplications run at the same
 * time. */
static uint64_t key_of_walk(const uintptr_t *addresses, size_t count,
                            vst_stack_id language)
{
    uint64_t a = salt, b = salt + 1, c = salt + 2, d = salt + language;
    size_t i = 0;

    for (; i + 4 <= count; i += 4) {
        a = native_stacks_step(a, addresses[i]);
        b = native_stacks_step(b, addresses[i + 1]);
        c = native_stacks_step(c, addresses[i + 2]);
        d = native_stacks_step(d, addresses[i + 3]);
    }
    for (; i < count; i++)
        a = native_stacks_step(a, addresses[i]);
    return native_stacks_finish(native_stacks_step(
        native_stacks_step(native_stacks_step(native_stacks_step(count, a), b),
                           c),
        d));
}

static uint32_t check_of(uint64_t key)
{
    return (uint32_t)(key * 0xff51afd7ed558ccdu >> 32);
}

static place *places_of(uint64_t key)
{
    return table + (key >> (64 - TABLE_BITS) & ~(uint64_t)(WAYS - 1));
}

static vst_stack_id native_stacks_find(uint64_t key)
{
    place *p = places_of(key);

    for (int i = 0; i < WAYS; i++) {
        uint64_t value;
        if (atomic_load_explicit(&p[i].key, memory_order_relaxed) != key)
            continue;
        /* Pairs with the release below: the stack's definition is in the
         * file. */
        value = atomic_load_explicit(&p[i].value, memory_order_acquire);
        if (value >> 32 == check_of(key))
            return (vst_stack_id)value;
    }
    return 0;
}

static void native_stacks_keep(uint64_t key, vst_stack_id id)
{
    place *p = places_of(key), *at = p + (key & (WAYS - 1));

    for (int i = 0; i < WAYS; i++)
        if (atomic_load_explicit(&p[i].key, memory_order_relaxed) == 0) {
            at = p + i;
            break;
        }
    /* Release: a thread that finds the id here may record it immediately, so
     * its definition must be in the file before. The key may become visible
     * earlier or later; the value itself says whose it is. */
    atomic_store_explicit(&at->value, (uint64_t)check_of(key) << 32 | id,
                          memory_order_release);
    atomic_store_explicit(&at->key, key, memory_order_relaxed);
}

/* ---- stacks -------------------------------------------------------------- */

static vst_stack_id native_stacks_define(vst_recording *recording,
                                         const vst_stack *stack)
{
    uint64_t key =
        key_of_node(stack->kind, stack->parent, stack->address + stack->flags);
    vst_stack_id id = native_stacks_find(key);

    if (!id && vst_recording_define_stack(recording, stack, &id) == VST_OK)
        native_stacks_keep(key, id);
    return id;
}

VST_COLD static vst_stack_id define_walk(vst_recording *recording,
                                         const uintptr_t *addresses,
                                         size_t count, bool is_cut)
{
    vst_stack stack = {.kind = VST_STACK_NATIVE,
                       .flags = is_cut ? VST_STACK_IS_CUT : 0};

    for (size_t i = count; i-- > 0; stack.flags = 0) {
        stack.address = addresses[i];
        stack.parent = native_stacks_define(recording, &stack);
        if (!stack.parent)
            return 0;
    }
    return stack.parent;
}

vst_stack_id vst__native_stack(vst_recording *recording, vst_stack_id language,
                               const uintptr_t *addresses, size_t count)
{
    bool is_cut = count >= VST__WALK_MAX;
    uint64_t key;
    vst_stack_id id;

    while (count && *addresses - own_start < own_end - own_start) {
        addresses++;
        count--;
    }
    if (!count)
        return language;
    key = key_of_walk(addresses, count, language);
    id = native_stacks_find(key);
    if (id)
        return id;
    id = define_walk(recording, addresses, count, is_cut);
    if (id && language) {
        const vst_stack both = {
            .kind = VST_STACK_BOTH, .parent = language, .address = id};
        id = native_stacks_define(recording, &both);
    }
    if (!id)
        return language;
    native_stacks_keep(key, id);
    return id;
}
