/* What every file of the extension includes: Python, the public headers of the
 * core, and the few functions that all folders use (base/). Each folder has a
 * header of its own for the rest; scripts/check_layers.py says which folder may
 * include which.
 *
 * The extension runs with the GIL held unless a comment says otherwise. The GIL
 * guards the state of these files. On builds without the GIL a thread that
 * "holds the GIL" is one that Python knows and that is not waiting, and three
 * guards take the GIL's place (compat_threads.h says what each does):
 *
 *  - the state lock, vpy_state_take(), for what hooks and calls of the program
 *    change or look up: ids, tables, the recording that is under way;
 *  - the control lock (session/session.h), for what only changes when a
 *    recording starts, stops or is finished. It is taken before the state lock;
 *  - the stopped world, for what every hook reads without a lock: it changes
 *    only while the world is stopped or before the first hook is placed.
 *
 * The variables of a folder that outlive a call are the fields of one struct,
 * which the folder's state.h declares with the guard of each. A file that has a
 * part of it calls that part `state`. Thread-local variables need no guard. */
#ifndef VPY_VPY_H
#define VPY_VPY_H

#include "compat.h"

#include <vestige/vestige.h>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Hidden in the declarations too: the compiler then reaches variables of other
 * files directly instead of through the table of dynamic symbols. */
#pragma GCC visibility push(hidden)

/* ---- base/shared_state.c ------------------------------------------------- */

/* State of all folders. */
struct vpy_shared_state {
    vpy_lock state_lock;   /* where there is no GIL */
    PyObject *trace_error; /* the class vestige._core.TraceError; written when
                            * the module is loaded */
};

extern struct vpy_shared_state vpy_shared;

/* Nothing of the program's may run while it is held, and nothing may wait for
 * another thread: objects of the program are looked at, not called. Not from
 * the hooks of allocators, which stop() waits for. */
static inline void vpy_state_take(void)
{
    vpy_lock_take(&vpy_shared.state_lock);
}

static inline void vpy_state_give(void)
{
    vpy_lock_give(&vpy_shared.state_lock);
}

/* ---- base/text.c --------------------------------------------------------- */

/* The bytes of a str as UTF-8. Bytes that Python could not decode come back as
 * they were. Returns the bytes object that owns them (a new reference), or NULL
 * with no exception set. */
PyObject *vpy_text(PyObject *str, const char **bytes, uint32_t *length);

/* ---- base/types.c -------------------------------------------------------- */

/* Makes a type and gives it to the module under its name. Returns -1 with an
 * exception set if that fails. */
int vpy_type_add(PyObject *module, PyType_Spec *spec);

/* A type with methods alone, whose objects are made by calling it. Its texts
 * and methods stay. */
typedef struct vpy_class {
    const char *name; /* with the module */
    const char *doc;
    size_t size;
    newfunc make; /* NULL: an object of zeros */
    initproc init;
    destructor dealloc;
    PyMethodDef *methods;
} vpy_class;

int vpy_class_add(PyObject *module, const vpy_class *described);
/* Gives an object the path that it reads, once; the path is taken over. False,
 * with that message as an exception, if it has one. */
bool vpy_path_set(PyObject *object, PyObject **place, PyObject *path,
                  const char *message);

/* ---- base/lists.c -------------------------------------------------------- */

/* Appends an item to a list, which takes it over. NULL: making the item failed.
 * Returns false with an exception set. */
bool vpy_append(PyObject *list, PyObject *item);

/* ---- base/at_exit.c ------------------------------------------------------ */

/* Registers a function with atexit. Returns -1 with an exception set if that
 * fails. */
int vpy_at_exit(PyMethodDef *method);

/* ---- base/errors.c ------------------------------------------------------- */

int vpy_errors_init(PyObject *module);
/* Raises an OSError where the system gave a reason, else a TraceError or what
 * the status stands for; keeps an exception that is set already. path is bytes,
 * or NULL. Always returns NULL. */
PyObject *vpy_raise(vst_status status, const vst_error *error, PyObject *path);
/* Raises an OSError that names both files, which are bytes. */
void vpy_raise_for_both(int sys_errno, PyObject *source, PyObject *target);
/* A vst_progress_fn that calls a Python function. Takes the GIL itself. */
int vpy_report_progress(void *function, double done);

/* ---- the system ---------------------------------------------------------- */

/* The thread as the kernel numbers it. glibc has gettid() since 2.30; wheels
 * are for 2.28 and later. */
static inline long vpy_thread_id(void)
{
    return syscall(SYS_gettid);
}

/* Waits, without the GIL, for the end of a thread of ours that was told to end.
 * The thread has noted its number. Once the interpreter is shutting down, a
 * thread that waits for the GIL never gets it: then nobody waits for the thread
 * (ended_threads.c). */
void vpy_join(pthread_t thread, const long *thread_id);

/* Where the C stack of the calling thread ends, and its size (base/stack.c).
 * Slow the first time in the main thread: the C library reads the list of
 * mappings. */
bool vpy_stack_find(uintptr_t *low, size_t *size);

#pragma GCC visibility pop
#endif
