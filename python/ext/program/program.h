/* program/ watches what the interpreter and its libraries do besides calling
 * functions: threads and greenlets, garbage collections, modules and tensors of
 * a framework, the end of the process. calls/tracer.c starts and stops most of
 * it with a recording; the hooks of calls/ ask the rest. What may ask for a
 * snapshot is in triggers.h. */
#ifndef VPY_PROGRAM_PROGRAM_H
#define VPY_PROGRAM_PROGRAM_H

#include "calls/tracer.h"
#include "program/state.h"

#include "record/language_lock.h"

#include <pthread.h>
#include <signal.h>

#pragma GCC visibility push(hidden)

/* ---- threads.c ---------------------------------------------------------- */

/* When a recording starts: writes which calls each thread is in. */
void vpy_threads_announce(vpy_tracer *tracer);
/* An attribute, read without running code of the program's. A new reference or
 * NULL, no error set. */
PyObject *vpy_plain_attribute(PyObject *object, const char *name);
/* These name threads in the recording that is under way, if there is one. */
void vpy_threads_name_all(void);
void vpy_threads_name_current(void);
/* The same for a thread that starts, from the frame of threading that runs
 * first in it. */
void vpy_threads_name_from_frame(const vpy_iframe *frame);
/* Writes the calls that the current thread is in as a STACK record. */
void vpy_threads_record_stack(void);

/* ---- open_threads.c ----------------------------------------------------- */

/* Without the GIL, in place of vpy_threads_announce: the hooks are placed, and
 * nothing is recorded before all threads were seen at one moment. */
void vpy_threads_announce_at_once(vpy_tracer *tracer);

/* ---- gc.c --------------------------------------------------------------- */

int vpy_gc_init(void);
int vpy_gc_start(vpy_tracer *tracer);
void vpy_gc_stop(void);
/* Ids of Python functions of the program in gc.callbacks; how many. */
uint32_t vpy_gc_callback_ids(vst_id *ids, uint32_t room);

/* ---- greenlets.c -------------------------------------------------------- */

void vpy_greenlets_begin(vpy_tracer *tracer);
void vpy_greenlets_end(void);
/* Called when a function gets its id: greenlet may have been imported. */
void vpy_greenlets_look(void);
void vpy_greenlets_watch_thread(void); /* the current one */
/* Whether the current thread runs a greenlet, not the stack it began with. */
bool vpy_greenlets_is_in_one(void);

/* ---- waits.c ------------------------------------------------------------ */

typedef vst_status vpy_waits_hook_fn(const void *address);

/* One way in which the interpreter waits. */
typedef struct vpy_waits {
    vpy_waits_hook_fn *hook; /* of record/language_lock.h */
    const vst_lock *lock;
    const char *metadata; /* by which a trace says whether they are recorded */
} vpy_waits;

#define VPY_WAITS_NO_HOOK                                                      \
    "the interpreter does not wait by functions of the C library"

/* Puts hooks into the interpreter; whether it has slots for them. */
bool vpy_waits_hook(vpy_waits_hook_fn *hook);
/* Records waits from here on if there was no trouble (NULL), and tells the
 * trace whether. */
void vpy_waits_begin(vpy_tracer *tracer, const vpy_waits *waits,
                     const char *trouble);

/* Starts a thread that waits. No handler of the program's runs in it. */
bool vpy_wait_trial_start(pthread_t *thread, void *(*wait)(void *unused));
/* What that thread waits for; NULL: it did not wait as it should. */
const void *vpy_wait_trial_learn(const void **place);

/* ---- gil_waits.c -------------------------------------------------------- */

/* Finds the GIL, once a process. Before a recording starts, because it releases
 * the GIL for a moment. */
void vpy_gil_waits_prepare(void);
/* Records waits for the GIL, if it was found, and tells the trace whether. */
void vpy_gil_waits_begin(vpy_tracer *tracer);
void vpy_gil_waits_end(void);
/* What keeps waits from being recorded, NULL: nothing. */
const char *vpy_gil_waits_trouble(void);

/* ---- object_waits.c: the same where there is no GIL --------------------- */

void vpy_object_waits_prepare(void);
void vpy_object_waits_begin(vpy_tracer *tracer);
void vpy_object_waits_end(void);
const char *vpy_object_waits_trouble(void);

/* ---- framework_modules.c ------------------------------------------------ */

int vpy_modules_init(PyObject *module);
void vpy_modules_end(void); /* forgets the modules of the recording */
/* Whether this is a function of the framework's that is shown as something
 * else: a call of a module, or the begin or end of an annotation. */
bool vpy_is_framework_code(PyObject *code);
/* These record its enter and its end. id is the function's own; frame and
 * entered are those of vpy_code_entered and vpy_code_returns (calls/ids.h). */
vst_id vpy_framework_entered(vst_id id, PyObject *code,
                             const vpy_iframe *frame);
void vpy_framework_left(vst_kind kind, vst_id id, vst_id entered,
                        PyObject *code);
/* Whether importing the framework runs the code object of this file and name.
 */
bool vpy_imports_framework(const char *file, uint32_t length, PyObject *name);
void vpy_framework_imported(void);

/* ---- import_names.c ----------------------------------------------------- */

/* Whether it is a function of the import system that is called for a module
 * which is not there yet; by its name alone, where it is a special function. */
bool vpy_imports_module(const char *file, uint32_t length, PyObject *name);
bool vpy_is_import(PyObject *name);
/* It is called: records which module it imports. */
void vpy_module_imported(const vpy_iframe *frame);

/* ---- framework_tensors.c ------------------------------------------------ */

int vpy_tensors_init(PyObject *module);
/* Records which tensors a module holds. Raises nothing. */
void vpy_tensors_of_module(PyObject *self);
/* An attribute from the instance's own dict; borrowed, NULL: none. */
PyObject *vpy_own_member(PyObject *self, const char *name);
/* Between these, __torch_function__ of tensor subclasses does not run. */
int vpy_tensors_hush(void);
void vpy_tensors_unhush(int before);

/* ---- noted_tensors.c ---------------------------------------------------- */

int vpy_noted_init(PyObject *module);
/* A module, which has this definition, is called for the first time; an
 * optimizer makes a step. They raise nothing. */
void vpy_note_module(PyObject *self, vst_id id);
void vpy_note_step(PyObject *self);

/* ---- the process -------------------------------------------------------- */

int vpy_program_init(PyObject *module); /* run_program.c */
int vpy_exits_init(PyObject *module);   /* exits.c: os._exit */
/* Blocks signals, so that no handler of the program's runs. Except those of a
 * fault, since a handler of ours deals with a file that was cut. */
void vpy_signals_block(sigset_t *before);
/* For a forked child that runs no Python code of ours: os._exit calls `ends`
 * first. If that returns false, the function of on_exit() is called. */
void vpy_exits_watch_child(bool (*ends)(int code));
/* stack_room.c: makes C stacks longer, that of the main thread if it calls
 * this, and those of threads that are made before vpy_stacks_restore(). */
void vpy_stacks_make_room(void);
void vpy_stacks_restore(void);
/* Where the C stack of the calling thread is, and how far down a hook may use
 * it, which leaves a quarter or so free. 0: the thread runs on another stack (a
 * greenlet's, say). */
uintptr_t vpy_stack_limit(uintptr_t *low, size_t *size);

#pragma GCC visibility pop
#endif
