/* Numbers Python stacks: a table maps (number of the caller's stack, code
 * object, instruction) to the number of a stack in the trace. A stack that is
 * not in the table is defined in the trace.
 *
 * Any thread enters this from inside an allocator. So memory comes from the
 * system, nothing else is called while the lock is held, and no reference to a
 * code object is kept. Instead, each code object has a serial number, which is
 * found by its address. The hook of the object allocator sees every code object
 * end, and the next code object at that address gets another serial number.
 * Entries of ended code objects stay: no key can match them, and a full table
 * is emptied as a whole. After that the stacks are defined in the trace again,
 * which gives equal stacks equal numbers. */
#include "memory/memory.h"

#include "base/own_code.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

static struct vpy_stack_nodes_state *const state = &vpy_memory.nodes;

enum {
    SIZE_AT_FIRST = 1 << 10, /* entries */
    SIZE_MAX_NODES = 1 << 20,
    SIZE_MAX_CODES = 1 << 20,
};

/* Special values of known_code.function. */
#define OWN ((vst_id)0) /* vestige's own function: its frames are not shown */
#define LAUNCHER                                                               \
    ((vst_id)UINT32_MAX) /* a launcher: neither its frames nor its callers are \
                          * shown */

typedef struct node {
    uint64_t place; /* serial << 32 | instruction << 1 | is_entry; 0: empty */
    uint32_t parent;
    uint32_t id;
} node;

typedef struct known_code {
    uintptr_t code; /* 0: empty */
    uint32_t serial;
    vst_id function;
} known_code;

static void take_lock(void)
{
    while (
        atomic_flag_test_and_set_explicit(&state->lock, memory_order_acquire))
        sched_yield();
}

static void release_lock(void)
{
    atomic_flag_clear_explicit(&state->lock, memory_order_release);
}

/* ---- tables -------------------------------------------------------------- */

static uint64_t nodes_mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ b * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;

    return x ^ x >> 32;
}

static uint64_t hash_node(const void *entry)
{
    const node *n = entry;

    return nodes_mix(n->place, n->parent);
}

static uint64_t hash_code(const void *entry)
{
    return nodes_mix(((const known_code *)entry)->code, 0);
}

static void *nodes_map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

/* Empties a table. The ends of code objects that are not in it go unnoticed, so
 * the caches of all threads become invalid now. */
static void nodes_clear(vpy_node_table *t)
{
    if (t->entries != NULL && t->used)
        memset(t->entries, 0, (t->mask + 1) * sizeof(node));
    t->used = 0;
    __atomic_fetch_add(&state->generation, 1, __ATOMIC_RELAXED);
}

static void *slot_at(const vpy_node_table *t, size_t i)
{
    return (char *)t->entries + (i & t->mask) * sizeof(node);
}

/* Makes room for one more entry, if need be by emptying a full table. Returns
 * false without memory. */
static bool nodes_make_room(vpy_node_table *t, size_t size_max,
                            uint64_t (*hash)(const void *entry))
{
    size_t size = t->entries != NULL ? t->mask + 1 : 0;
    vpy_node_table larger = {.mask = (size ? size * 2 : SIZE_AT_FIRST) - 1};

    if (size && t->used < size - size / 4)
        return true;
    if (size < size_max)
        larger.entries = nodes_map((larger.mask + 1) * sizeof(node));
    if (larger.entries == NULL) {
        nodes_clear(t);
        return size != 0;
    }
    for (size_t i = 0; i < size; i++) {
        const uint64_t *entry = slot_at(t, i);
        size_t at;
        if (!*entry)
            continue;
        at = hash(entry);
        while (*(const uint64_t *)slot_at(&larger, at))
            at++;
        memcpy(slot_at(&larger, at), entry, sizeof(node));
    }
    larger.used = t->used;
    if (size)
        munmap(t->entries, size * sizeof(node));
    *t = larger;
    return true;
}

_Static_assert(sizeof(node) == 16 && sizeof(known_code) == 16,
               "the tables hold entries of one size");

/* Returns the entry, or the free entry where it would be put; NULL if there is
 * no table. */
static node *node_slot(uint64_t place, uint32_t parent)
{
    node *n = NULL;

    if (state->nodes.entries != NULL)
        for (size_t i = nodes_mix(place, parent);; i++) {
            n = slot_at(&state->nodes, i);
            if (!n->place || (n->place == place && n->parent == parent))
                break;
        }
    return n;
}

static known_code *code_slot(uintptr_t code, size_t *index)
{
    known_code *c = NULL;

    if (state->codes.entries != NULL)
        for (size_t i = nodes_mix(code, 0);; i++) {
            c = slot_at(&state->codes, i);
            if (!c->code || c->code == code) {
                *index = i;
                break;
            }
        }
    return c;
}

/* Removes an entry, and moves entries back that it had displaced. */
static void remove_code(size_t hole)
{
    for (size_t i = hole + 1;; i++) {
        known_code *c = slot_at(&state->codes, i);
        if (!c->code)
            break;
        if (((i - nodes_mix(c->code, 0)) & state->codes.mask) >=
            ((i - hole) & state->codes.mask)) {
            memcpy(slot_at(&state->codes, hole), c, sizeof *c);
            hole = i;
        }
    }
    memset(slot_at(&state->codes, hole), 0, sizeof(known_code));
    state->codes.used--;
}

void vpy_nodes_begin(vst_recording *for_recording)
{
    take_lock();
    nodes_clear(&state->nodes);
    nodes_clear(&state->codes);
    state->recording = for_recording;
    release_lock();
}

/* Call in a forked child. Another thread of the parent may have been changing
 * the tables, so the child leaks them and makes new ones. */
void vpy_nodes_after_fork(void)
{
    atomic_flag_clear(&state->lock);
    state->nodes = state->codes = (vpy_node_table){.entries = NULL};
    __atomic_fetch_add(&state->generation, 1, __ATOMIC_RELAXED);
}

void vpy_nodes_code_freed(const void *code)
{
    known_code *c;
    size_t index = 0;

    take_lock();
    c = code_slot((uintptr_t)code, &index);
    if (c != NULL && c->code) {
        remove_code(index);
        __atomic_fetch_add(&state->generation, 1, __ATOMIC_RELAXED);
    }
    release_lock();
}

/* ---- defining functions and stacks --------------------------------------- */

/* Finds or defines the function of a code object. Returns false if that
 * failed. */
static bool define_function(PyCodeObject *code, vst_id *function)
{
    vpy_plain_text name, file;
    vst_definition definition = {
        .kind = VST_DEF_PYTHON,
        .line = code->co_firstlineno,
    };
    bool defined = false;
    bool readable = vpy_plain_text_get(code->co_qualname, &name);

    readable &= vpy_plain_text_get(code->co_filename, &file);
    if (vpy_file_is_own(file.bytes, file.length)) {
        *function =
            vpy_file_is_launcher(file.bytes, file.length) ? LAUNCHER : OWN;
        defined = true;
    } else if (vpy_code_is_runner((PyObject *)code)) {
        *function = OWN;
        defined = true;
    } else if (readable) {
        definition.name = name.bytes;
        definition.name_len = name.length;
        definition.file = file.bytes;
        definition.file_len = file.length;
        definition.file_skip = vpy_search_path_prefix(file.bytes, file.length);
        defined = vst_recording_define_id(state->recording, &definition,
                                          function) == VST_OK;
    }
    vpy_plain_text_drop(&name);
    vpy_plain_text_drop(&file);
    return defined;
}

/* Gives a code object a serial number and returns it; 0 on failure. */
static uint32_t learn_code(PyCodeObject *code, vst_id *function)
{
    known_code *c;
    size_t index = 0;
    uint32_t serial = 0;

    if (!define_function(code, function))
        return 0;
    take_lock();
    if (nodes_make_room(&state->codes, SIZE_MAX_CODES, hash_code)) {
        c = code_slot((uintptr_t)code, &index);
        if (!c->code) {
            if (++state->last_serial == 0)
                state->last_serial = 1;
            *c = (known_code){(uintptr_t)code, state->last_serial, *function};
            state->codes.used++;
        }
        serial = c->serial;
    }
    release_lock();
    return serial;
}

/* Defines a stack in the trace. Returns false if that failed. */
static bool define_node(uint32_t parent, const vpy_iframe *frame,
                        int instruction, bool is_entry, vst_id function,
                        uint32_t *id)
{
    PyCodeObject *code = vpy_iframe_code(frame);
    int line = vpy_code_line(code, instruction);
    vst_stack stack = {
        .kind = VST_STACK_LANGUAGE,
        .flags = is_entry ? VST_STACK_IS_ENTRY : 0,
        .parent = parent,
        .function = function,
        .line = line < 0 ? code->co_firstlineno : line,
    };

    *id = function == LAUNCHER ? 0 : parent;
    if (function == LAUNCHER || function == OWN ||
        vpy_iframe_is_incomplete(frame, instruction))
        return true;
    if (parent == VPY_NODE_CUT) {
        stack.parent = 0;
        stack.flags |= VST_STACK_IS_CUT;
    }
    return vst_recording_define_stack(state->recording, &stack, id) == VST_OK;
}

static void keep_node(uint64_t place, uint32_t parent, uint32_t id)
{
    node *n;

    take_lock();
    if (nodes_make_room(&state->nodes, SIZE_MAX_NODES, hash_node)) {
        n = node_slot(place, parent);
        if (!n->place) {
            *n = (node){place, parent, id};
            state->nodes.used++;
        }
    }
    release_lock();
}

uint32_t vpy_node_find(uint32_t parent, const vpy_iframe *frame, bool is_entry)
{
    PyCodeObject *code = vpy_iframe_code(frame);
    int instruction = vpy_iframe_instruction(frame);
    uint64_t place = (uint64_t)(uint32_t)(instruction + 1) << 1 | is_entry;
    uint32_t serial = 0, id;
    vst_id function = OWN;
    size_t index = 0;
    known_code *c;
    node *n = NULL;

    take_lock();
    c = code_slot((uintptr_t)code, &index);
    if (c != NULL && c->code) {
        serial = c->serial;
        function = c->function;
        n = node_slot((uint64_t)serial << 32 | place, parent);
        if (n != NULL && n->place) {
            id = n->id;
            release_lock();
            return id;
        }
    }
    release_lock();
    if (!serial)
        serial = learn_code(code, &function);
    if (!serial)
        return parent;
    if (!define_node(parent, frame, instruction, is_entry, function, &id))
        return parent;
    keep_node((uint64_t)serial << 32 | place, parent, id);
    return id;
}
