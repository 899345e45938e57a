/* thunks/ records calls of C functions for the turbo engine: while recording,
 * PyMethodDef.ml_meth of every C function holds the address of a thunk of ours.
 * calls/engine_turbo.c starts and stops it.
 *
 * - thunks.c what a call through a thunk does
 * - thunk_slots.c which thunk belongs to which definition
 * - thunk_table.c the thunks
 * - find_definitions.c finds the definitions
 * - definition_memory.c knows which of them may be written
 * - function_identity.c keeps functions equal to themselves
 * - cached_callables.c makes the interpreter call len and its like
 * - compiled_code.c makes the JIT call what stands in a definition now
 * - young_objects.c keeps our objects out of the collector's count
 * - watched_methods.h is for single functions */
#ifndef VPY_THUNKS_H
#define VPY_THUNKS_H

#include "thunks/state.h"

#pragma GCC visibility push(hidden)

/* Puts a thunk in front of every C function that can be found, which takes
 * time. Returns false with vpy_calls.tracer.message set. */
bool vpy_thunks_prepare(void);
/* From now on calls through thunks are recorded; C functions of modules that
 * are imported later get thunks too. Prepares first if that was not done.
 * Returns false with vpy_calls.tracer.message set. */
bool vpy_thunks_start(void);
/* Removes thunks that were prepared, if nothing was started. */
void vpy_thunks_give_up(void);
/* While true, what is stopped leaves its changes in place: finding every C
 * function and type anew would take longer than a fork. They are for the
 * recording that follows at once, that of a forked child; without one, call
 * vpy_engine_give_up(). Or the process ends. */
void vpy_thunks_pass_on(bool does);
bool vpy_thunks_are_passed_on(void);
/* Puts every pointer back. A call that is inside a thunk returns through it and
 * records nothing. */
void vpy_thunks_stop(void);
const vpy_thunk_counts *vpy_thunks_counts(void);
size_t vpy_thunks_in_place(void); /* how many have one now */
/* For a budget: takes the thunks of functions away for which is_out(id), and
 * puts those of others back. */
void vpy_thunks_rest(bool (*is_out)(vst_id id));
/* Called when a function gets its id: an import may have brought definitions.
 */
void vpy_thunks_look(void);
/* Puts a thunk in front of a function in C that only an object holds, while
 * recording. Anything else is left alone. */
void vpy_thunks_cover(PyObject *function);

/* ---- thunk_table.c ----------------------------------------------------- */

PyCFunction vpy_thunk(uint32_t number);
/* The number of the thunk at an address, VPY_THUNKS if there is none. */
uint32_t vpy_thunk_number(PyCFunction function);
/* What a thunk jumps to: its five arguments, and its number. */
PyObject *vpy_thunk_call(PyObject *a, PyObject *b, PyObject *c, PyObject *d,
                         PyObject *e, uint32_t number);

/* ---- find_definitions.c ------------------------------------------------- */

typedef struct vpy_found {
    PyMethodDef *method;
    PyObject *keeper; /* borrowed: while it lives, the definition is there */
    vpy_thunk_owner owner;
    const char *where;
} vpy_found;

/* Goes through all modules and types, calls `found` for every definition, some
 * of them twice. No code of the program's runs. False: no memory. */
bool vpy_find_methods(void (*found)(const vpy_found *));
/* Calls `found` for every type. False: no memory. */
bool vpy_find_types(void (*found)(PyTypeObject *));
/* The same as vpy_find_methods of one object: a module or a type. */
void vpy_find_methods_of(PyObject *object, void (*found)(const vpy_found *));
/* Calls `found` for what a value is: a function in C, or a descriptor. */
void vpy_find_value(PyObject *value, void (*found)(const vpy_found *));

/* ---- thunk_slots.c ----------------------------------------------------- */

/* In a slot's value, beside the id: what else there is to a call. */
#define VPY_THUNK_IS(value) ((uint32_t)(value) & ~(uint32_t)VST_ID_MAX)
#define VPY_THUNK_BY_CLASS ((uint32_t)1 << 30) /* the id is of one class */
#define VPY_THUNK_IMPORTS ((uint32_t)2 << 30)  /* may bring definitions */
#define VPY_THUNK_CACHED ((uint32_t)3 << 30)   /* see cached_callables.c */

/* Of no recording. */
#define VPY_THUNK_UNNAMED UINT64_MAX

/* Of a thunk the function behind it, else the function itself. */
PyCFunction vpy_thunk_original(PyCFunction function);
/* What follows is counted as one recording's, beside what was counted before if
 * that goes on. False: no memory. */
bool vpy_thunks_count_for(uint32_t number, bool goes_on);
/* Replaces the function of a definition, behind its thunk if it has one. Does
 * nothing where there is another function than `from`. */
void vpy_thunks_replace(PyMethodDef *method, PyCFunction from, PyCFunction to);
/* Puts a thunk in front of it, if that can be. */
void vpy_thunks_put(const vpy_found *found);
void vpy_thunks_restore(void); /* all */
/* Whether its definition is still there to be read. */
bool vpy_thunk_is_alive(const vpy_thunk_about *about);

/* ---- definition_memory.c ------------------------------------------------ */

typedef struct vpy_table_memory {
    bool in_image; /* of a program or library: it stays where it is */
    bool writable;
} vpy_table_memory;

/* What is known is kept until it is forgotten: memory is mapped anew. Checking
 * forgets it only if libraries were loaded or unloaded meanwhile. */
vpy_table_memory vpy_table_memory_of(const void *table);
void vpy_table_memory_forget(void);
void vpy_table_memory_check(void);

/* ---- young_objects.c --------------------------------------------------- */

/* How many there are for the collector, so that ours can be left out. */
int vpy_young_objects(void);
void vpy_young_objects_set(int number);

/* ---- function_identity.c ----------------------------------------------- */

/* A built-in function's hash and equality are made from ml_meth: while there
 * are thunks or watched methods, from what is behind them. */
typedef enum vpy_identity_keeper {
    VPY_FOR_THUNKS = 1,
    VPY_FOR_WATCHED = 2
} vpy_identity_keeper;

void vpy_function_identity_keep(vpy_identity_keeper keeper);
void vpy_function_identity_release(vpy_identity_keeper keeper);

/* ---- compiled_code.c ---------------------------------------------------- */

/* Functions of definitions were replaced: machine code that calls the old ones
 * is dropped. */
void vpy_compiled_code_drop(void);

/* ---- cached_callables.c ------------------------------------------------ */

bool vpy_is_cached_callable(const PyMethodDef *method);
VST_COLD void vpy_cached_call_note(const vpy_iframe *frame, uintptr_t address);

static inline uintptr_t *vpy_cached_call(uintptr_t address)
{
    return &vpy_thunks.cached
                .calls[(address >> 1 ^ address >> 9) % VPY_CACHED_CALLS];
}

/* Makes the interpreter call these functions as it calls any other. */
void vpy_cached_callables_hide(void);
void vpy_cached_callables_show(void);

#pragma GCC visibility pop
#endif
