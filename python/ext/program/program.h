/* program/ watches what the interpreter and its libraries do besides calling
 * functions: threads and greenlets, garbage collections, modules and tensors of
 * a framework, the end of the process. calls/tracer.c starts and stops most of
 * it with a recording; the hooks of calls/ call the rest. Triggers of snapshots
 * are in triggers.h. */
#ifndef VPY_PROGRAM_PROGRAM_H
#define VPY_PROGRAM_PROGRAM_H

#include "calls/tracer.h"
#include "program/state.h"

#include "record/language_lock.h"

#include <pthread.h>
#include <signal.h>

#pragma GCC visibility push(hidden)

/* ---- threads.c ----------------------------------------------------------- */

/* Call when a recording starts: records which calls each thread is in. */
void vpy_threads_announce(vpy_tracer *tracer);
/* Reads an attribute without running code of the program. Returns a new
 * reference, or NULL without an error set. */
PyObject *vpy_plain_attribute(PyObject *object, const char *name);
/* Name threads in the current recording, if there is one. */
void vpy_threads_name_all(void);
void vpy_threads_name_current(void);
/* Names a thread that starts, from the frame of threading that runs first in
 * it. */
void vpy_threads_name_from_frame(const vpy_iframe *frame);
/* Writes the calls that the current thread is in as a STACK record. */
void vpy_threads_record_stack(void);

/* ---- open_threads.c ------------------------------------------------------ */

/* Replaces vpy_threads_announce on builds without the GIL. Call after the hooks
 * are placed; nothing is recorded before all threads were read at one
 * moment. */
void vpy_threads_announce_in_stopped_world(vpy_tracer *tracer);

/* ---- gc.c ---------------------------------------------------------------- */

int vpy_gc_init(void);
int vpy_gc_start(vpy_tracer *tracer);
/* Leaves our callback in its place while thunks are passed on to a forked
 * child; vpy_gc_give_up removes it if no recording follows there. */
void vpy_gc_stop(void);
void vpy_gc_give_up(void);
/* Writes the ids of the program's Python functions in gc.callbacks, at most
 * `room`. Returns how many. */
uint32_t vpy_gc_callback_ids(vst_id *ids, uint32_t room);

/* ---- greenlets.c --------------------------------------------------------- */

void vpy_greenlets_begin(vpy_tracer *tracer);
void vpy_greenlets_end(void);
/* Called when a function gets its id: greenlet may have been imported. */
void vpy_greenlets_look(void);
void vpy_greenlets_watch_thread(void); /* the current thread */
/* Returns whether the current thread runs a greenlet other than its main
 * one. */
bool vpy_greenlets_is_in_one(void);

/* ---- waits.c ------------------------------------------------------------- */

typedef vst_status vpy_waits_hook_fn(const void *address);

/* One way in which the interpreter waits. */
typedef struct vpy_waits {
    vpy_waits_hook_fn *hook; /* of record/language_lock.h */
    const vst_lock *lock;
    const char *metadata; /* the metadata key that says whether these waits are
                           * recorded */
} vpy_waits;

#define VPY_WAITS_NO_HOOK                                                      \
    "the interpreter does not use the C library's functions to wait"

/* Puts a hook into the interpreter. Returns whether the interpreter has slots
 * for it. */
bool vpy_waits_hook(vpy_waits_hook_fn *hook);
/* Records waits from here on if trouble is NULL, and notes in the trace whether
 * it does. */
void vpy_waits_begin(vpy_tracer *tracer, const vpy_waits *waits,
                     const char *trouble);

/* Starts a thread that waits. No signal handler runs in it. */
bool vpy_wait_trial_start(pthread_t *thread, void *(*wait)(void *unused));
/* Returns the address for which that thread waits, or NULL if it did not wait
 * in the known way. */
const void *vpy_wait_trial_learn(const void **place);

/* ---- gil_waits.c --------------------------------------------------------- */

/* Finds the GIL, once in a process. Call before a recording starts, because
 * this releases the GIL for a moment. */
void vpy_gil_waits_prepare(void);
/* Records waits for the GIL if it was found, and notes in the trace whether it
 * was. */
void vpy_gil_waits_begin(vpy_tracer *tracer);
void vpy_gil_waits_end(void);
/* Returns why waits cannot be recorded, or NULL if they can. */
const char *vpy_gil_waits_trouble(void);

/* ---- object_waits.c: waits on builds without the GIL --------------------- */

void vpy_object_waits_prepare(void);
void vpy_object_waits_begin(vpy_tracer *tracer);
void vpy_object_waits_end(void);
const char *vpy_object_waits_trouble(void);

/* ---- framework_modules.c ------------------------------------------------- */

extern PyMethodDef vpy_modules_functions[];
void vpy_modules_end(void); /* forgets the recording's modules */
/* Returns whether the code is a framework's function that is shown as something
 * else: a call of a module, or the begin or end of an annotation. */
bool vpy_is_framework_code(PyObject *code);
/* Record the enter and the end of such a function. id is the function's own;
 * frame and entered are those of vpy_code_entered and vpy_code_returns
 * (calls/ids.h). */
vst_id vpy_framework_entered(vst_id id, PyObject *code,
                             const vpy_iframe *frame);
void vpy_framework_left(vst_kind kind, vst_id id, vst_id entered,
                        PyObject *code);
/* Returns whether importing the framework runs the code object of this file and
 * name. */
bool vpy_imports_framework(const char *file, uint32_t length, PyObject *name);
void vpy_framework_imported(void);

/* ---- import_names.c ------------------------------------------------------ */

/* Returns whether this is a function of the import system that is called for a
 * module that is not loaded yet. vpy_is_import compares the name only, for
 * functions that are known to be special. */
bool vpy_imports_module(const char *file, uint32_t length, PyObject *name);
bool vpy_is_import(PyObject *name);
/* Records which module such a function imports. Call when it is entered. */
void vpy_module_imported(const vpy_iframe *frame);

/* ---- framework_tensors.c ------------------------------------------------- */

extern PyMethodDef vpy_tensors_functions[];
/* Records which tensors a module holds. Raises nothing. */
void vpy_tensors_of_module(PyObject *self);
/* Returns an attribute from the instance's own dict (borrowed), or NULL. */
PyObject *vpy_own_member(PyObject *self, const char *name);
/* Between these two calls __torch_function__ of tensor subclasses does not
 * run. */
int vpy_tensors_hush(void);
void vpy_tensors_unhush(int before);

/* ---- noted_tensors.c ----------------------------------------------------- */

extern PyMethodDef vpy_noted_functions[];
/* Call vpy_note_module when a module, whose definition is id, is called for the
 * first time, and vpy_note_step when an optimizer makes a step. Both raise
 * nothing. */
void vpy_note_module(PyObject *self, vst_id id);
void vpy_note_step(PyObject *self);

/* ---- the process --------------------------------------------------------- */

extern PyMethodDef vpy_program_functions[]; /* run_program.c */
int vpy_exits_init(PyObject *module);       /* exits.c: os._exit */
/* Blocks signals, so that no handler of the program runs, except signals of
 * faults, which our handler needs for files that were truncated. */
void vpy_signals_block(sigset_t *before);
/* For a forked child that runs none of vestige's Python code: os._exit calls
 * `ends` first. If that returns false, the function of on_exit() is called. */
void vpy_exits_watch_child(bool (*ends)(int code));
/* stack_room.c: makes C stacks longer: the main thread's if it calls this, and
 * those of threads that are made before vpy_stacks_restore(). */
void vpy_stacks_make_room(void);
void vpy_stacks_restore(void);
/* Returns the lowest address of the C stack that a hook of the calling thread
 * may use, which leaves about a quarter of the stack free. Returns 0 if the
 * thread runs on another stack (such as a greenlet's). */
uintptr_t vpy_stack_limit(uintptr_t *low, size_t *size);

#pragma GCC visibility pop
#endif
