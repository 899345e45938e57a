/* Included by every file of the extension: Python, the public headers of the
 * core, and the few functions that all folders use (base/). Each folder has a
 * header of its own for the rest; scripts/check_layers.py says which folder may
 * include which.
 *
 * The extension runs with the GIL held unless a comment says otherwise. The GIL
 * guards the state of these files. On builds without the GIL a thread that
 * "holds the GIL" is one that Python knows and that is not waiting, and three
 * guards take the GIL's place (compat_threads.h says what each does):
 *
 *  - the state lock, vpy_state_take(), guards what hooks and calls of the
 *    program change or look up: ids, tables, the recording that is under way;
 *  - the control lock (session/session.h) guards what only changes when a
 *    recording starts, stops or is finished. Take it before the state lock;
 *  - the stopped world guards what every hook reads without a lock: such state
 *    changes only while the world is stopped or before the first hook is
 *    placed.
 *
 * The variables of a folder that outlive a call are the fields of one struct,
 * which the folder's state.h declares with the guard of each. Each file that
 * has a member of the struct calls that member `state`. Thread-local variables
 * need no guard. */
#ifndef VPY_VPY_H
#define VPY_VPY_H

#include "compat.h"

#include <vestige/vestige.h>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Declarations are hidden, too: the compiler then reaches variables of other
 * files directly instead of through the table of dynamic symbols. */
#pragma GCC visibility push(hidden)

/* ---- base/shared_state.c ------------------------------------------------- */

/* Variables that all folders use. */
struct vpy_shared_state {
    vpy_lock state_lock;   /* unused on builds with the GIL */
    PyObject *trace_error; /* the class vestige._core.TraceError; written when
                            * the module is loaded */
};

extern struct vpy_shared_state vpy_shared;

/* While a thread holds the state lock, it may look at objects of the program
 * but not call them, and may not wait for another thread. Hooks of allocators
 * must not take it, as stop() waits for them. */
static inline void vpy_state_take(void)
{
    vpy_lock_take(&vpy_shared.state_lock);
}

static inline void vpy_state_give(void)
{
    vpy_lock_give(&vpy_shared.state_lock);
}

/* ---- base/text.c --------------------------------------------------------- */

/* Encodes a str as UTF-8, with undecodable bytes as they originally were.
 * Returns the bytes object that owns the result (a new reference), or NULL with
 * no exception set. */
PyObject *vpy_text(PyObject *str, const char **bytes, uint32_t *length);

/* ---- base/types.c -------------------------------------------------------- */

/* Makes a type and adds it to the module under its name. Returns -1 with an
 * exception set if that fails. */
int vpy_type_add(PyObject *module, PyType_Spec *spec);

/* A type that has only methods, whose objects are made by calling it. The
 * strings and the methods must outlive the type. */
typedef struct vpy_class {
    const char *name; /* including the module */
    const char *doc;
    size_t size;
    newfunc make; /* NULL: makes an object filled with zeros */
    initproc init;
    destructor dealloc;
    PyMethodDef *methods;
} vpy_class;

int vpy_class_add(PyObject *module, const vpy_class *described);
/* Sets the path of an object and takes over the reference. If the path is set
 * already, releases the reference, raises RuntimeError(message) and returns
 * false. */
bool vpy_path_set(PyObject *object, PyObject **place, PyObject *path,
                  const char *message);

/* ---- base/lists.c -------------------------------------------------------- */

/* Appends an item to a list and takes over the reference. An item of NULL means
 * that making it failed. Returns false with an exception set on failure. */
bool vpy_append(PyObject *list, PyObject *item);

/* ---- base/at_exit.c ------------------------------------------------------ */

/* Registers a function with atexit. Returns -1 with an exception set if that
 * fails. */
int vpy_at_exit(PyMethodDef *method);

/* ---- base/errors.c ------------------------------------------------------- */

int vpy_errors_init(PyObject *module);
/* Raises an OSError if the system gave a reason, else the exception that the
 * status stands for, by default TraceError. Keeps an exception that is already
 * set. path is bytes, or NULL. Always returns NULL. */
PyObject *vpy_raise(vst_status status, const vst_error *error, PyObject *path);
/* Raises an OSError that names both files. source and target are bytes. */
void vpy_raise_for_both(int sys_errno, PyObject *source, PyObject *target);
/* A vst_progress_fn that calls a Python function. Takes the GIL itself. */
int vpy_report_progress(void *function, double done);

/* ---- the system ---------------------------------------------------------- */

/* The kernel's number of the calling thread. glibc has gettid() since 2.30, but
 * wheels support 2.28. */
static inline long vpy_thread_id(void)
{
    return syscall(SYS_gettid);
}

/* Waits, without the GIL, for a thread of vestige's that was asked to end.
 * *thread_id is the number that the thread has noted. During the interpreter's
 * shutdown, does not wait: a thread that waits for the GIL then never gets it
 * (ended_threads.c). */
void vpy_join(pthread_t thread, const long *thread_id);

/* Finds the lowest address and the size of the calling thread's C stack
 * (base/stack.c). The first call in the main thread takes long, because the C
 * library reads the list of mappings. */
bool vpy_stack_find(uintptr_t *low, size_t *size);

#pragma GCC visibility pop
#endif
