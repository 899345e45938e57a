/* Gives each pointer, of a definition or of a class or object that is called in
 * C, a thunk and its slot, and puts thunks in place and removes them.
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

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct vpy_thunk_slots_state *const state = &vpy_thunks.slots;

PyCFunction vpy_thunk_original(PyCFunction function)
{
    uint32_t number = vpy_thunk_number(function);

    return number < VPY_THUNKS ? state->slots[number].original : function;
}

PyCFunction vpy_thunk_of(const vpy_thunk_about *about)
{
    return vpy_thunk((uint32_t)(about - state->abouts));
}

bool vpy_thunks_cover_functions(void)
{
    return (state->covers & VPY_COVERS_FUNCTIONS) != 0;
}

/* ---- which slot a definition has --------------------------------------- */

enum { READ_ONLY = VPY_THUNKS + 1, EXCLUDED, OVERFLOW };

typedef struct vpy_thunk_entry {
    vpy_place *place; /* NULL: the entry is empty */
    /* number of the place's slot, or why the place has none */
    uint32_t number;
    uint32_t counted; /* the recording in whose counts the place is */
} entry;

static entry *slots_entry_of(entry *table, size_t mask, vpy_place *place)
{
    size_t i = ((uintptr_t)place >> 5 ^ (uintptr_t)place >> 14) & mask;

    while (table[i].place != NULL && table[i].place != place)
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
        if (state->entries[i].place != NULL)
            *slots_entry_of(table, mask, state->entries[i].place) =
                state->entries[i];
    free(state->entries);
    state->entries = table;
    state->entries_mask = mask;
    return true;
}

static uint32_t what_it_is(const vpy_found *f)
{
    static const char *const names[] = {"create_dynamic", "exec_dynamic",
                                        "create_builtin", "exec_builtin"};

    if (f->method == NULL)
        return 0;
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

static vpy_place *place_of(const vpy_found *f)
{
    return f->method != NULL ? &f->method->ml_meth : f->place;
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
    *k = (vpy_thunk_about){.place = place_of(f),
                           .method = f->method,
                           .where = where,
                           .owner = f->owner,
                           .in_image = in_image,
                           .is_object = f->owner == VPY_OF_CALLABLE &&
                                        f->method == NULL &&
                                        !PyType_Check(f->keeper),
                           .is = what_it_is(f)};
    state->slots[state->used] =
        (vpy_thunk_slot){.original = *place_of(f),
                         .value = VPY_THUNK_UNNAMED,
                         .is_call_slot = f->owner == VPY_OF_CALLS};
    return state->used++;
}

static uint32_t number_for(const vpy_found *f)
{
    vpy_table_memory memory;

    if (vpy_is_compared(f))
        return EXCLUDED;
    memory = vpy_table_memory_of(place_of(f));
    return memory.writable ? slots_new_slot(f, memory.in_image) : READ_ONLY;
}

/* ---- putting thunks in place ------------------------------------------- */

static void note_name(char names[VPY_UNCOVERED_MAX], const vpy_found *f)
{
    const char *name =
        f->method != NULL ? f->method->ml_name : Py_TYPE(f->keeper)->tp_name;
    const char *where = f->where != NULL ? f->where : "";
    size_t used = strlen(names);
    size_t needs = strlen(where) + strlen(name) + sizeof ".,  ...";

    if (used + needs < VPY_UNCOVERED_MAX)
        snprintf(names + used, VPY_UNCOVERED_MAX - used, "%s%s%s%s",
                 used ? ", " : "", where, where[0] ? "." : "", name);
    else if (used && names[used - 1] != '.')
        snprintf(names + used, VPY_UNCOVERED_MAX - used, " ...");
}

static void slots_count(uint32_t number, const vpy_found *f)
{
    if (number == READ_ONLY) {
        state->counts.read_only++;
        note_name(state->counts.read_only_names, f);
    } else if (number == EXCLUDED) {
        state->counts.excluded++;
        if (strcmp(f->method->ml_name, "__new__") != 0 && !vpy_is_our_own(f))
            note_name(state->counts.excluded_names, f);
    } else if (number == OVERFLOW) {
        state->counts.overflow++;
    }
}

/* Keeps a weak reference to the object that the definition belongs to. A type
 * is preferred to a function: the type owns the table, and functions are freed
 * more often. */
static bool hold_keeper(vpy_thunk_about *k, PyObject *keeper)
{
    if (k->in_image)
        return true;
    if (k->is_object)
        return vpy_object_watch(Py_TYPE(keeper));
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

    if (state->slots[at->number].original != *place_of(f) ||
        k->method != f->method)
        return slots_new_slot(f, false);
    where = strdup(f->owner == VPY_OF_SELF || f->where == NULL ? "" : f->where);
    if (where == NULL)
        return OVERFLOW;
    free(k->where);
    k->where = where;
    k->owner = f->owner;
    state->slots[at->number].value = VPY_THUNK_UNNAMED;
    state->slots[at->number].is_call_slot = f->owner == VPY_OF_CALLS;
    state->counts.freed += k->patched;
    k->patched = false;
    return at->number;
}

/* Functions that import are covered by every engine, to find what they
 * bring. */
static bool is_wanted(const vpy_found *f)
{
    bool is_callable = f->owner == VPY_OF_CALLABLE || f->owner == VPY_OF_CALLS;
    unsigned covers = VPY_COVERS_CALLABLES;

    if (*place_of(f) == NULL ||
        (f->method != NULL && f->method->ml_name == NULL))
        return false;
    if (!is_callable)
        return vpy_thunks_cover_functions() ||
               what_it_is(f) == VPY_THUNK_IMPORTS;
    if (f->method == NULL && !PyType_Check(f->keeper))
        covers = VPY_COVERS_OBJECTS;
    return (state->covers & covers) != 0;
}

static void slots_put(entry *at, const vpy_found *f)
{
    vpy_thunk_about *k = &state->abouts[at->number];

    if (state->slots[at->number].original != *k->place) {
        state->counts.foreign += at->counted != state->counted_for;
        return;
    }
    if (!hold_keeper(k, f->keeper))
        return;
    if (!k->patched && k->method != NULL)
        state->counts.covered++;
    else if (!k->patched)
        state->counts.callables++;
    k->patched = true;
    k->rests = false;
    /* Behind its slot; pairs with the fence in call_other. */
    __atomic_store_n(k->place, vpy_thunk(at->number), __ATOMIC_RELEASE);
    if (k->owner == VPY_OF_CALLS)
        vpy_type_calls_put(k, (PyTypeObject *)f->keeper);
}

void vpy_thunks_put(const vpy_found *f)
{
    vpy_place *place = place_of(f);
    bool is_new;
    entry *at;

    if (!is_wanted(f) || !slots_make_room())
        return;
    at = slots_entry_of(state->entries, state->entries_mask, place);
    is_new = at->place == NULL;
    if (!is_new && at->number < VPY_THUNKS && *place == vpy_thunk(at->number)) {
        hold_keeper(&state->abouts[at->number], f->keeper);
        return;
    }
    if (!is_new && at->number < VPY_THUNKS && state->abouts[at->number].rests &&
        *place == state->slots[at->number].original)
        return;
    if (vpy_thunk_number(*place) < VPY_THUNKS)
        return; /* a copy of a pointer that has a thunk already */
    if (is_new) {
        *at = (entry){.place = place, .number = number_for(f)};
        state->entries_used++;
    } else if (at->number < VPY_THUNKS && !state->abouts[at->number].in_image) {
        at->number = slot_again(at, f);
    }
    if (at->counted != state->counted_for)
        slots_count(at->number, f);
    if (at->number < VPY_THUNKS)
        slots_put(at, f);
    at->counted = state->counted_for;
}

void vpy_thunks_replace(PyMethodDef *method, PyCFunction from, PyCFunction to)
{
    const entry *at = state->entries != NULL
                          ? slots_entry_of(state->entries, state->entries_mask,
                                           (vpy_place *)&method->ml_meth)
                          : NULL;

    if (at != NULL && at->place != NULL && at->number < VPY_THUNKS &&
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
    return k->in_image || (k->is_object && k->patched) ||
           (k->keeper != NULL && !vpy_weakref_is_dead(k->keeper));
}

static PyTypeObject *type_of_place(vpy_place *call_slot)
{
    return (PyTypeObject *)((char *)call_slot -
                            offsetof(PyTypeObject, tp_call));
}

/* The object at this place is being freed. */
void vpy_thunks_forget(vpy_place *place)
{
    const entry *at =
        state->entries != NULL
            ? slots_entry_of(state->entries, state->entries_mask, place)
            : NULL;

    if (at == NULL || at->place == NULL || at->number >= VPY_THUNKS ||
        !state->abouts[at->number].patched)
        return;
    if (*place == vpy_thunk(at->number))
        *place = state->slots[at->number].original;
    state->abouts[at->number].patched = state->abouts[at->number].rests = false;
    state->counts.freed++;
}

static void slots_restore(uint32_t number)
{
    vpy_thunk_about *k = &state->abouts[number];

    if (!k->patched)
        return;
    if (!vpy_thunk_is_alive(k)) {
        state->counts.freed++;
    } else if (k->rests) {
        k->rests = false;
    } else if (*k->place == vpy_thunk(number)) {
        __atomic_store_n(k->place, state->slots[number].original,
                         __ATOMIC_RELEASE);
        if (k->owner == VPY_OF_CALLS)
            vpy_type_calls_restore(k, type_of_place(k->place));
    } else {
        state->counts.foreign++;
    }
    k->patched = false;
    Py_CLEAR(k->keeper);
}

/* Returns whether the pointer was changed. */
static bool set_rest(uint32_t number, bool rests)
{
    vpy_thunk_about *k = &state->abouts[number];
    PyCFunction original = state->slots[number].original;
    PyCFunction from = rests ? vpy_thunk(number) : original;

    if (k->rests == rests || !k->patched || !vpy_thunk_is_alive(k) ||
        *k->place != from)
        return false;
    k->rests = rests;
    __atomic_store_n(k->place, rests ? original : vpy_thunk(number),
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
    vpy_objects_unwatch();
    vpy_young_objects_set(young);
}

size_t vpy_thunks_in_place(void)
{
    size_t in_place = 0;

    for (uint32_t i = 0; i < state->used; i++)
        in_place += vpy_thunk_is_alive(&state->abouts[i]) &&
                    *state->abouts[i].place == vpy_thunk(i);
    return in_place;
}

/* ---- counts ------------------------------------------------------------ */

bool vpy_thunks_count_for(uint32_t number, bool goes_on, unsigned covers)
{
    state->recording = number;
    state->covers = covers;
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
