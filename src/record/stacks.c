/* Stacks and modules of a recording. Equal stacks get one number, and a new
 * stack is in the trace before its number is returned. Any thread, even inside
 * an allocator, but always with the recorder's lock held. A stack is one frame
 * plus the number of the stack below it, so a stack takes 16 bytes, and 4 bytes
 * in a table that is at most two thirds full. */
#include <string.h>

#include <vestige/memory.h>

#include "base/heap.h"
#include "record/memory.h"
#include "record/recording.h"

enum { FIRST_KEYS = 64, FIRST_SLOTS = 128 }; /* enough for short processes */

typedef struct vst__stack_key {
    uint64_t value; /* the frame's address; for LANGUAGE, function and line */
    vst_stack_id parent;
    uint32_t kind; /* kind, and flags << 8 */
} vst__stack_key;

static vst__stack_key stacks_key_of(const vst_stack *stack)
{
    vst__stack_key key = {
        .value = stack->address,
        .parent = stack->parent,
        .kind = (uint32_t)stack->kind | (stack->flags & 0xff) << 8,
    };

    if (stack->kind == VST_STACK_LANGUAGE)
        key.value = (uint64_t)stack->function << 32 | (uint32_t)stack->line;
    return key;
}

static size_t stacks_hash_of(const vst__stack_key *key)
{
    uint64_t hash = key->value * 0x9e3779b97f4a7c15u;

    hash ^= ((uint64_t)key->kind << 32 | key->parent) * 0xc4ceb9fe1a85ec53u;
    hash ^= hash >> 32;
    hash *= 0xff51afd7ed558ccdu;
    return (size_t)(hash ^ hash >> 29);
}

static bool is_same(const vst__stack_key *a, const vst__stack_key *b)
{
    return a->value == b->value && a->parent == b->parent && a->kind == b->kind;
}

/* Returns the key's slot in the table, which has its number or is empty. */
static uint32_t *stacks_probe(const vst__stacks *stacks,
                              const vst__stack_key *key)
{
    size_t mask = stacks->slot_count - 1, i = stacks_hash_of(key) & mask;

    while (stacks->slots[i] &&
           !is_same(&stacks->keys[stacks->slots[i] - 1], key))
        i = (i + 1) & mask;
    return &stacks->slots[i];
}

static bool widen_table(vst__stacks *stacks)
{
    vst__stacks wider = *stacks;

    wider.slot_count =
        stacks->slot_count ? stacks->slot_count * 2 : FIRST_SLOTS;
    wider.slots = vst__calloc(wider.slot_count, sizeof *wider.slots);
    if (wider.slots == NULL)
        return false;
    for (size_t i = 0; i < stacks->count; i++)
        *stacks_probe(&wider, &stacks->keys[i]) = (uint32_t)(i + 1);
    vst__free(stacks->slots);
    *stacks = wider;
    return true;
}

static bool stacks_has_room(vst__stacks *stacks)
{
    if (stacks->count == stacks->capacity) {
        size_t capacity = stacks->capacity ? stacks->capacity * 2 : FIRST_KEYS;
        vst__stack_key *keys =
            vst__realloc(stacks->keys, capacity * sizeof *keys);
        if (keys == NULL)
            return false;
        stacks->keys = keys;
        stacks->capacity = capacity;
    }
    return stacks->count * 3 < stacks->slot_count * 2 || widen_table(stacks);
}

void vst__stacks_free(vst__stacks *stacks)
{
    vst__free(stacks->keys);
    vst__free(stacks->slots);
    memset(stacks, 0, sizeof *stacks);
}

static vst_status define_new(vst_recording *recording,
                             const vst__stack_key *key, vst_stack_id *id)
{
    const vst_chunk_provider *provider = recording->provider;
    vst__stacks *stacks = &recording->stacks;
    vst_entry entry;
    vst_status status;

    if (stacks->count >= UINT32_MAX - 1)
        return VST_E_NO_IDS;
    if (!stacks_has_room(stacks))
        return VST_E_NOMEM;
    entry = (vst_entry){
        .kind = VST_ENTRY_STACK,
        .id = (uint32_t)stacks->count + 1,
        .x = key->parent,
        .y = key->value,
        .z = key->kind,
    };
    status = provider->define(provider->ctx, &entry);
    if (status != VST_OK)
        return status;
    stacks->keys[stacks->count++] = *key;
    *stacks_probe(stacks, key) = *id = entry.id;
    return VST_OK;
}

vst_status vst_recording_define_stack(vst_recording *recording,
                                      const vst_stack *stack, vst_stack_id *id)
{
    vst__stack_key key = stacks_key_of(stack);
    vst_status status = VST_OK;

    *id = 0;
    if (vst__is_forking)
        return VST_E_STATE;
    vst__recorder_take();
    if (!vst__recording_is_ours(recording))
        status = VST_E_STATE;
    else if (recording->stacks.slot_count)
        *id = *stacks_probe(&recording->stacks, &key);
    if (status == VST_OK && *id == 0) {
        status = define_new(recording, &key, id);
        if (status != VST_OK)
            recording->lost++;
    }
    vst__recorder_give();
    return status;
}

vst_status vst__recording_define_module(vst_recording *recording,
                                        const vst_module *module)
{
    vst_entry entry = {
        .kind = VST_ENTRY_MODULE,
        .a = module->path,
        .a_len = strlen(module->path),
        .b = (const char *)module->build_id,
        .b_len = module->build_id != NULL ? module->build_id_len : 0,
        .x = module->bias,
        .y = module->start,
        .z = module->end,
    };
    vst_status status = VST_E_STATE;

    vst__recorder_take();
    if (vst__recording_is_ours(recording)) {
        entry.id = recording->last_module + 1;
        status = recording->provider->define(recording->provider->ctx, &entry);
        if (status == VST_OK)
            recording->last_module = entry.id;
    }
    vst__recorder_give();
    return status;
}
