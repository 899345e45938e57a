/* Gives each definition a thunk and its slot, and puts thunks in place and
 * removes them.
 *
 * A definition in an image keeps its slot for the life of the process: other
 * code may have read the thunk's address from it and may still call the thunk,
 * which after stop is a jump to the original. A definition on the heap
 * (pybind11 makes them) may be freed at any time. We keep a weak reference to
 * the object that it belongs to, and read the definition only while that object
 * lives. Call with the GIL held. Interpreters with a GIL of their own share
 * static types and so call thunks, too: the fields of a slot that they read
 * were stored before the thunk's address. */
#include "thunks/thunks.h"

#include <stdlib.h>
#include <string.h>

static struct vpy_thunk_slots_state *const state = &vpy_thunks.slots;

PyCFunction vpy_thunk_original(PyCFunction function)
{
    uint32_t number = vpy_thunk_number(function);

    return number < VPY_THUNKS ? state->slots[number].original : function;
}

/* ---- which slot a definition has --------------------------------------- */

enum { READ_ONLY = VPY_THUNKS + 1, EXCLUDED, OVERFLOW };

typedef struct vpy_thunk_entry {
    PyMethodDef *method; /* NULL: the entry is empty */
    /* number of the definition's slot, or why it has none */
    uint32_t number;
    uint32_t counted; /* the recording in whose counts the definition is */
} entry;

static entry *slots_entry_of(entry *table, size_t mask, PyMethodDef *method)
{
    size_t i = ((uintptr_t)method >> 5 ^ (uintptr_t)method >> 14) & mask;

    while (table[i].method != NULL && table[i].method != method)
        i = (i + 1) & mask;
    return &table[i];
}

static bool slots_make_room(void)
{
    size_t mask = state->entries != NULL ? state->entries_mask * 2 + 1 : 8191;
    entry *table;

    if (state->entries != NULL &&
        state->entries_used * 2 <= state->entries_mask)
        return true;
    table = calloc(mask + 1, sizeof *table);
    if (table == NULL)
        return false;
    for (size_t i = 0; state->entries != NULL && i <= state->entries_mask; i++)
        if (state->entries[i].method != NULL)
            *slots_entry_of(table, mask, state->entries[i].method) =
                state->entries[i];
    free(state->entries);
    state->entries = table;
    state->entries_mask = mask;
    return true;
}

#if VPY_COMPARES_WITH_SLOTS
static bool slots_holds(const void *structure, size_t size,
                        PyCFunction function)
{
    for (size_t i = 0; structure != NULL && i < size; i += sizeof function)
        if (memcmp((const char *)structure + i, &function, sizeof function) ==
            0)
            return true;
    return false;
}

static bool is_slot_of(const PyTypeObject *type, PyCFunction function)
{
    return slots_holds(type, sizeof *type, function) ||
           slots_holds(type->tp_as_async, sizeof *type->tp_as_async,
                       function) ||
           slots_holds(type->tp_as_number, sizeof *type->tp_as_number,
                       function) ||
           slots_holds(type->tp_as_sequence, sizeof *type->tp_as_sequence,
                       function) ||
           slots_holds(type->tp_as_mapping, sizeof *type->tp_as_mapping,
                       function);
}
#endif

/* Returns whether a method's function is also in a slot of its class, like the
 * function of dict.__getitem__. A subclass inherits the slot only while the two
 * are equal, and a class that was made while they were not stays slow. */
static bool is_compared_with_slot(const vpy_found *f)
{
#if VPY_COMPARES_WITH_SLOTS
    PyObject *keeper = f->keeper;
    const PyTypeObject *type = NULL;

    if (!(f->method->ml_flags & METH_COEXIST))
        return false;
    if (PyType_Check(keeper))
        type = (PyTypeObject *)keeper;
    else if (PyCFunction_Check(keeper) && PyCFunction_GET_SELF(keeper) != NULL)
        type = Py_TYPE(PyCFunction_GET_SELF(keeper)); /* may be a subclass */
    for (; type != NULL; type = type->tp_base)
        if (is_slot_of(type, f->method->ml_meth))
            return true;
#else
    (void)f;
#endif
    return false;
}

/* Returns whether the interpreter or its modules compare the address of the
 * function. */
static bool is_excluded(const vpy_found *f)
{
    const char *name = f->method->ml_name;
    const char *where = f->where != NULL ? f->where : "";

    if (strcmp(name, "__new__") == 0)
        return true;
    if (strcmp(name, "__getstate__") == 0)
        return f->keeper == (PyObject *)&PyBaseObject_Type;
    if (strncmp(name, "encode_basestring", 17) == 0)
        return strcmp(where, "_json") == 0;
    if (strncmp(name, "persistent_", 11) == 0)
        return strncmp(where, "_pickle.", 8) == 0;
    if (is_compared_with_slot(f))
        return true;
    return f->owner == VPY_OF_MODULE && strncmp(where, "vestige.", 8) == 0;
}

static uint32_t what_it_is(const vpy_found *f)
{
    static const char *const names[] = {"create_dynamic", "exec_dynamic",
                                        "create_builtin", "exec_builtin"};

    if (vpy_is_cached_callable(f->method))
        return VPY_THUNK_CACHED;
    if (f->owner != VPY_OF_MODULE || strcmp(f->where, "_imp") != 0)
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(f->method->ml_name, names[i]) == 0)
            return VPY_THUNK_IMPORTS;
    return 0;
}

/* Returns a copy of the class's name. Neighbours mostly have the same class, so
 * definitions in images, which are never freed, share one copy. */
static char *copy_of_where(const vpy_found *f, bool in_image)
{
    const vpy_thunk_about *before =
        state->used ? &state->abouts[state->used - 1] : NULL;
    const char *text =
        f->owner == VPY_OF_SELF || f->where == NULL ? "" : f->where;

    if (in_image && before != NULL && before->in_image &&
        strcmp(before->where, text) == 0)
        return before->where;
    return strdup(text);
}

static uint32_t slots_new_slot(const vpy_found *f, bool in_image)
{
    vpy_thunk_about *k = &state->abouts[state->used];
    char *where;

    if (state->used == VPY_THUNKS)
        return OVERFLOW;
    where = copy_of_where(f, in_image);
    if (where == NULL)
        return OVERFLOW;
    *k = (vpy_thunk_about){.method = f->method,
                           .where = where,
                           .owner = f->owner,
                           .in_image = in_image,
                           .is = what_it_is(f)};
    state->slots[state->used] = (vpy_thunk_slot){.original = f->method->ml_meth,
                                                 .value = VPY_THUNK_UNNAMED};
    return state->used++;
}

static uint32_t number_for(const vpy_found *f)
{
    vpy_table_memory memory;

    if (is_excluded(f))
        return EXCLUDED;
    memory = vpy_table_memory_of(f->method);
    return memory.writable ? slots_new_slot(f, memory.in_image) : READ_ONLY;
}

/* ---- putting thunks in place ------------------------------------------- */

static void slots_count(uint32_t number)
{
    if (number == READ_ONLY)
        state->counts.read_only++;
    else if (number == EXCLUDED)
        state->counts.excluded++;
    else if (number == OVERFLOW)
        state->counts.overflow++;
}

/* Keeps a weak reference to the object that the definition belongs to. A type
 * is preferred to a function: the type owns the table, and functions are freed
 * more often. */
static bool hold_keeper(vpy_thunk_about *k, PyObject *keeper)
{
    if (k->in_image)
        return true;
    if (k->keeper != NULL && !PyType_Check(keeper) &&
        !vpy_weakref_is_dead(k->keeper))
        return true;
    if (k->keeper != NULL && vpy_weakref_is_to(k->keeper, keeper))
        return true;
    Py_XSETREF(k->keeper, vpy_weakref_new(keeper));
    if (k->keeper == NULL)
        PyErr_Clear();
    return k->keeper != NULL;
}

/* Gives a slot to a definition that lies where another was freed. If both have
 * the same function, as all definitions of pybind11 do, the new one gets the
 * old one's slot. */
static uint32_t slot_again(entry *at, const vpy_found *f)
{
    vpy_thunk_about *k = &state->abouts[at->number];
    char *where;

    if (state->slots[at->number].original != f->method->ml_meth)
        return slots_new_slot(f, false);
    where = strdup(f->owner == VPY_OF_SELF || f->where == NULL ? "" : f->where);
    if (where == NULL)
        return OVERFLOW;
    free(k->where);
    k->where = where;
    k->owner = f->owner;
    state->slots[at->number].value = VPY_THUNK_UNNAMED;
    state->counts.freed += k->patched;
    k->patched = false;
    return at->number;
}

void vpy_thunks_put(const vpy_found *f)
{
    PyMethodDef *method = f->method;
    bool is_new;
    entry *at;

    if (method->ml_meth == NULL || method->ml_name == NULL ||
        !slots_make_room())
        return;
    at = slots_entry_of(state->entries, state->entries_mask, method);
    is_new = at->method == NULL;
    if (!is_new && at->number < VPY_THUNKS &&
        method->ml_meth == vpy_thunk(at->number)) {
        hold_keeper(&state->abouts[at->number], f->keeper);
        return;
    }
    if (!is_new && at->number < VPY_THUNKS && state->abouts[at->number].rests &&
        method->ml_meth == state->slots[at->number].original)
        return;
    if (vpy_thunk_number(method->ml_meth) < VPY_THUNKS)
        return; /* a copy of a definition that has a thunk already */
    if (is_new) {
        *at = (entry){.method = method, .number = number_for(f)};
        state->entries_used++;
    } else if (at->number < VPY_THUNKS && !state->abouts[at->number].in_image) {
        at->number = slot_again(at, f);
    }
    if (at->counted != state->counted_for)
        slots_count(at->number);
    if (at->number < VPY_THUNKS) {
        vpy_thunk_about *k = &state->abouts[at->number];
        if (state->slots[at->number].original != method->ml_meth) {
            state->counts.foreign += at->counted != state->counted_for;
        } else if (hold_keeper(k, f->keeper)) {
            state->counts.covered += !k->patched;
            k->patched = true;
            k->rests = false;
            /* Stored after the slot; pairs with the fence in call_other. */
            __atomic_store_n(&method->ml_meth, vpy_thunk(at->number),
                             __ATOMIC_RELEASE);
        }
    }
    at->counted = state->counted_for;
}

void vpy_thunks_replace(PyMethodDef *method, PyCFunction from, PyCFunction to)
{
    const entry *at =
        state->entries != NULL
            ? slots_entry_of(state->entries, state->entries_mask, method)
            : NULL;

    if (at != NULL && at->method != NULL && at->number < VPY_THUNKS &&
        state->slots[at->number].original == from)
        __atomic_store_n(&state->slots[at->number].original, to,
                         __ATOMIC_RELEASE);
    if (method->ml_meth == from) {
        __atomic_store_n(&method->ml_meth, to, __ATOMIC_RELEASE);
        vpy_compiled_code_drop();
    }
}

/* ---- taking them away ---------------------------------------------------- */

bool vpy_thunk_is_alive(const vpy_thunk_about *k)
{
    return k->in_image ||
           (k->keeper != NULL && !vpy_weakref_is_dead(k->keeper));
}

static void slots_restore(uint32_t number)
{
    vpy_thunk_about *k = &state->abouts[number];

    if (!k->patched)
        return;
    k->patched = false;
    if (!vpy_thunk_is_alive(k))
        state->counts.freed++;
    else if (k->rests)
        k->rests = false;
    else if (k->method->ml_meth == vpy_thunk(number))
        __atomic_store_n(&k->method->ml_meth, state->slots[number].original,
                         __ATOMIC_RELEASE);
    else
        state->counts.foreign++;
    Py_CLEAR(k->keeper);
}

/* Returns whether the pointer was changed. */
static bool set_rest(uint32_t number, bool rests)
{
    vpy_thunk_about *k = &state->abouts[number];
    PyCFunction original = state->slots[number].original;
    PyCFunction from = rests ? vpy_thunk(number) : original;

    if (k->rests == rests || !k->patched || !vpy_thunk_is_alive(k) ||
        k->method->ml_meth != from)
        return false;
    k->rests = rests;
    __atomic_store_n(&k->method->ml_meth, rests ? original : vpy_thunk(number),
                     __ATOMIC_RELEASE);
    return true;
}

/* A function that imports keeps its thunk. */
void vpy_thunks_rest(bool (*is_out)(vst_id id))
{
    bool changed = false;

    for (uint32_t i = 0; i < state->used; i++) {
        uint64_t value = state->slots[i].value;
        if (value >> 32 == state->recording &&
            state->abouts[i].is != VPY_THUNK_IMPORTS)
            changed |= set_rest(i, is_out((vst_id)value & VST_ID_MAX));
    }
    if (changed)
        vpy_compiled_code_drop();
}

void vpy_thunks_restore(void)
{
    int young = vpy_young_objects();

    for (uint32_t i = 0; i < state->used; i++)
        slots_restore(i);
    vpy_young_objects_set(young);
}

size_t vpy_thunks_in_place(void)
{
    size_t in_place = 0;

    for (uint32_t i = 0; i < state->used; i++)
        in_place += vpy_thunk_is_alive(&state->abouts[i]) &&
                    state->abouts[i].method->ml_meth == vpy_thunk(i);
    return in_place;
}

/* ---- counts ------------------------------------------------------------ */

bool vpy_thunks_count_for(uint32_t number, bool goes_on)
{
    state->recording = number;
    if (!goes_on) {
        state->counted_for = number;
        state->counts = (vpy_thunk_counts){0};
    }
    return slots_make_room();
}

const vpy_thunk_counts *vpy_thunks_counts(void)
{
    return &state->counts;
}
