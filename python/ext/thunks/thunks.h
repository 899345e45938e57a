/* thunks/ records calls of C functions for the turbo engine: while recording,
 * PyMethodDef.ml_meth of every C function holds the address of one of our
 * thunks. calls/engine_turbo.c starts and stops the recording. The pointers by
 * which classes and other objects are called in C hold thunks, too; the safe
 * engine uses these where the interpreter does not report a call.
 *
 * - thunks.c what a call through a thunk does
 * - thunk_slots.c which thunk belongs to which definition
 * - thunk_table.c the thunks
 * - find_definitions.c finds the definitions
 * - find_callables.c finds what else is called in C
 * - compared_functions.c knows which must keep their address
 * - definition_memory.c knows which of them may be written
 * - type_calls.c does the rest for the call slots of types
 * - object_calls.c does the same for vectorcall pointers of objects
 * - function_identity.c keeps functions equal to themselves
 * - cached_callables.c makes the interpreter call len and its like
 * - compiled_code.c makes the JIT call what stands in a definition now
 * - young_objects.c keeps our objects out of the collector's count
 * - watched_methods.h is for single functions */
#ifndef VPY_THUNKS_H
#define VPY_THUNKS_H

#include "thunks/state.h"

#pragma GCC visibility push(hidden)

/* Puts a thunk in front of everything that is covered (vpy_thunk_covers) and
 * can be found, which takes time. Returns false with vpy_calls.tracer.message
 * set. */
bool vpy_thunks_prepare(unsigned covers);
/* From now on calls through thunks are recorded; modules that are imported
 * later get thunks too. Prepares first if that was not done. Returns false with
 * vpy_calls.tracer.message set. */
bool vpy_thunks_start(unsigned covers);
/* Removes thunks that were prepared, if nothing was started. */
void vpy_thunks_give_up(void);
/* While true, stopping leaves all changes in place, because finding every C
 * function and type again would take longer than a fork. The changes are for
 * the next recording, which follows immediately: that of a forked child. If
 * none follows, call vpy_engine_give_up(). Also used when the process ends. */
void vpy_thunks_pass_on(bool does);
bool vpy_thunks_are_passed_on(void);
/* Puts every pointer back. A call that is inside a thunk returns through it and
 * records nothing. */
void vpy_thunks_stop(void);
const vpy_thunk_counts *vpy_thunks_counts(void);
/* Returns how many pointers hold a thunk now. */
size_t vpy_thunks_in_place(void);
/* Returns whether the calling thread belongs to the recorded interpreter. */
bool vpy_thunks_are_mine(void);
/* For a budget: removes the thunks of functions for which is_out(id) returns
 * true, and puts the others back. */
void vpy_thunks_rest(bool (*is_out)(vst_id id));
/* Call when a function gets its id, because an import may have made new
 * definitions. */
void vpy_thunks_look(void);
/* Puts a thunk in front of a C function that only an object holds, while
 * recording. Ignores any other object. */
void vpy_thunks_cover(PyObject *function);

/* ---- thunk_table.c ----------------------------------------------------- */

PyCFunction vpy_thunk(uint32_t number);
/* Returns the number of the thunk at an address, VPY_THUNKS if there is no
 * thunk. */
uint32_t vpy_thunk_number(PyCFunction function);
/* Every thunk jumps to this function, with its five arguments and its
 * number. */
PyObject *vpy_thunk_call(PyObject *a, PyObject *b, PyObject *c, PyObject *d,
                         PyObject *e, uint32_t number);

/* ---- find_definitions.c ------------------------------------------------- */

typedef struct vpy_found {
    PyMethodDef *method; /* NULL: another pointer than a definition's */
    /* borrowed: the pointer exists as long as this object */
    PyObject *keeper;
    vpy_thunk_owner owner;
    const char *where;
    vpy_place *place; /* the pointer, if there is no method */
} vpy_found;

/* Calls `found` for every definition of all modules and types, for some of them
 * twice. Runs no code of the program. Returns false if memory ran out. */
bool vpy_find_methods(void (*found)(const vpy_found *));
/* Calls `found` for every type. Returns false if memory ran out. */
bool vpy_find_types(void (*found)(PyTypeObject *));
/* Like vpy_find_methods, for one object: a module or a type. */
void vpy_find_methods_of(PyObject *object, void (*found)(const vpy_found *));
/* Calls `found` for the definition behind a value, if the value is a C function
 * or a descriptor. */
void vpy_find_value(PyObject *value, void (*found)(const vpy_found *));
/* The classes made of a class: a list, or NULL. Sets no error. */
PyObject *vpy_subclasses(PyTypeObject *type);

/* ---- find_callables.c ---------------------------------------------------- */

/* The pointers of a type: of calls of its objects, and of the class itself. */
void vpy_find_type_calls(PyTypeObject *type, void (*found)(const vpy_found *));
/* Reports an object whose calls run C code. holder: the module or type whose
 * dictionary has the object. */
void vpy_find_callable(PyObject *value, PyObject *holder,
                       void (*found)(const vpy_found *));
/* The definition of a function that Cython made, else NULL. */
PyMethodDef *vpy_cython_definition(PyObject *object);

/* ---- type_calls.c -------------------------------------------------------- */

/* The thunk of a type's call slot was put in place, or is to be removed:
 * classes that inherited the slot follow. */
void vpy_type_calls_put(vpy_thunk_about *about, PyTypeObject *type);
void vpy_type_calls_restore(vpy_thunk_about *about, PyTypeObject *type);

/* ---- object_calls.c ------------------------------------------------------- */

/* Whether an object is called through a thunk of its own. */
bool vpy_object_has_thunk(PyObject *object);
/* From now on the thunk of an object of this type is forgotten when the object
 * is freed. False: that cannot be seen. */
bool vpy_object_watch(PyTypeObject *type);
/* Puts thunks in front of the functions that descriptors of this type make. */
void vpy_descriptors_watch(PyTypeObject *type);
/* Returns the function that a descriptor of a watched type makes for a class: a
 * new reference, or NULL. */
PyObject *vpy_described_function(PyObject *descriptor, PyTypeObject *class);
void vpy_objects_unwatch(void); /* all */

/* ---- thunk_slots.c ----------------------------------------------------- */

/* The bits of a slot's value besides recording and id: special cases of
 * calls. */
#define VPY_THUNK_IS(value) ((uint32_t)(value) & ~(uint32_t)VST_ID_MAX)
#define VPY_THUNK_BY_CLASS                                                     \
    ((uint32_t)1 << 30) /* the id is valid for one class */
#define VPY_THUNK_IMPORTS                                                      \
    ((uint32_t)2 << 30) /* the call may make new definitions */
#define VPY_THUNK_CACHED ((uint32_t)3 << 30) /* see cached_callables.c */

/* The value of a slot that belongs to no recording. */
#define VPY_THUNK_UNNAMED UINT64_MAX

/* Returns the function behind a thunk; any other function is returned
 * itself. */
PyCFunction vpy_thunk_original(PyCFunction function);
/* Begins to count for a recording. goes_on: adds to the counts of the recording
 * before. covers: a bit for each of vpy_thunk_covers. Returns false if memory
 * ran out. */
bool vpy_thunks_count_for(uint32_t number, bool goes_on, unsigned covers);
/* Replaces the function of a definition, behind its thunk if it has one. Does
 * nothing if the definition has another function than `from`. */
void vpy_thunks_replace(PyMethodDef *method, PyCFunction from, PyCFunction to);
/* Puts a thunk in front of a definition, if possible. */
void vpy_thunks_put(const vpy_found *found);
/* A pointer is about to go with its object. */
void vpy_thunks_forget(vpy_place *place);
void vpy_thunks_restore(void); /* all */
/* Returns whether the place still exists, so that it can be read. */
bool vpy_thunk_is_alive(const vpy_thunk_about *about);
PyCFunction vpy_thunk_of(const vpy_thunk_about *about);
bool vpy_thunks_cover_functions(void);

/* ---- compared_functions.c ------------------------------------------------ */

/* Whether a function must keep its address, or is one of ours. */
bool vpy_is_compared(const vpy_found *found);
bool vpy_is_our_own(const vpy_found *found);

/* ---- definition_memory.c ------------------------------------------------ */

typedef struct vpy_table_memory {
    /* lies in the image of a program or library, where it stays */
    bool in_image;
    bool writable;
} vpy_table_memory;

/* Facts about memory are kept until they are forgotten, because memory may be
 * mapped again. vpy_table_memory_check forgets them only if libraries were
 * loaded or unloaded meanwhile. */
vpy_table_memory vpy_table_memory_of(const void *table);
void vpy_table_memory_forget(void);
void vpy_table_memory_check(void);

/* ---- young_objects.c --------------------------------------------------- */

/* Return and set the collector's count of young objects, so that ours need not
 * count. */
int vpy_young_objects(void);
void vpy_young_objects_set(int number);

/* ---- function_identity.c ----------------------------------------------- */

/* The users of our hash and equality of built-in functions, which are computed
 * from the functions behind thunks or watched methods instead of ml_meth. */
typedef enum vpy_identity_keeper {
    VPY_FOR_THUNKS = 1,
    VPY_FOR_WATCHED = 2
} vpy_identity_keeper;

void vpy_function_identity_keep(vpy_identity_keeper keeper);
void vpy_function_identity_release(vpy_identity_keeper keeper);

/* ---- compiled_code.c ---------------------------------------------------- */

/* Call when functions of definitions were replaced: drops machine code that
 * calls the old functions. */
void vpy_compiled_code_drop(void);

/* ---- cached_callables.c ------------------------------------------------ */

bool vpy_is_cached_callable(const PyMethodDef *method);
VST_COLD void vpy_cached_call_note(const vpy_iframe *frame, uintptr_t address);

static inline uintptr_t *vpy_cached_call(uintptr_t address)
{
    return &vpy_thunks.cached
                .calls[(address >> 1 ^ address >> 9) % VPY_CACHED_CALLS];
}

/* Makes the interpreter call len, isinstance and list.append like any other
 * function. */
void vpy_cached_callables_hide(void);
void vpy_cached_callables_show(void);

#pragma GCC visibility pop
#endif
