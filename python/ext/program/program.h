/* program/ watches what the interpreter and its libraries do besides calling
 * functions: threads and greenlets, garbage collections, modules and tensors of
 * a framework, the end of the process. calls/tracer.c starts and stops most of
 * it with a recording; the hooks of calls/ ask the rest. What may ask for a
 * snapshot is in triggers.h. */
#ifndef VPY_PROGRAM_PROGRAM_H
#define VPY_PROGRAM_PROGRAM_H

#include "calls/tracer.h"

#pragma GCC visibility push(hidden)

/* ---- threads.c ------------------------------------------------------------
 */

/* When a recording starts: writes which calls each thread is in. */
void vpy_threads_announce(vpy_tracer *tracer);
void vpy_threads_name_all(vpy_tracer *tracer);
void vpy_threads_name_current(vpy_tracer *tracer);
/* The same for a thread that starts, from the frame of threading that runs
 * first in it. */
void vpy_threads_name_from_frame(vpy_tracer *tracer, const vpy_iframe *frame);
/* Writes the calls that the current thread is in as a STACK record. */
void vpy_threads_record_stack(void);

/* ---- gc.c -----------------------------------------------------------------
 */

int vpy_gc_init(void);
int vpy_gc_start(vpy_tracer *tracer);
void vpy_gc_stop(void);

/* ---- greenlets.c ----------------------------------------------------------
 */

void vpy_greenlets_begin(vpy_tracer *tracer);
void vpy_greenlets_end(void);
/* Called when a function gets its id: greenlet may have been imported. */
void vpy_greenlets_look(void);
void vpy_greenlets_watch_thread(void); /* the current one */

/* ---- framework_modules.c ---------------------------------------------------
 */

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

/* ---- framework_tensors.c ---------------------------------------------------
 */

int vpy_tensors_init(PyObject *module);
/* Records which tensors a module holds. Raises nothing. */
void vpy_tensors_of_module(PyObject *self);

/* ---- the process -----------------------------------------------------------
 */

int vpy_program_init(PyObject *module); /* run_program.c */
int vpy_exits_init(PyObject *module);   /* exits.c: os._exit */
/* stack_room.c: makes C stacks longer, that of the main thread if it calls
 * this, and those of threads that are made before vpy_stacks_restore(). */
void vpy_stacks_make_room(void);
void vpy_stacks_restore(void);

#pragma GCC visibility pop
#endif
