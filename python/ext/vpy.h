/* What every file of the extension includes: Python, the public headers of the
 * core, and the few functions that all folders use (base/). Each folder has a
 * header of its own for the rest; scripts/check_layers.py says which folder may
 * include which.
 *
 * The extension runs with the GIL held unless a comment says otherwise. The GIL
 * guards every static variable of these files. */
#ifndef VPY_VPY_H
#define VPY_VPY_H

#include "compat.h"

#include <vestige/vestige.h>

#include <sys/syscall.h>
#include <unistd.h>

/* Hidden in the declarations too: the compiler then reaches variables of other
 * files directly instead of through the table of dynamic symbols. */
#pragma GCC visibility push(hidden)

/* ---- base/text.c --------------------------------------------------------- */

/* The bytes of a str as UTF-8. Bytes that Python could not decode come back as
 * they were. Returns the bytes object that owns them (a new reference), or NULL
 * with no exception set. */
PyObject *vpy_text(PyObject *str, const char **bytes, uint32_t *length);

/* ---- base/types.c -------------------------------------------------------- */

/* Makes a type and gives it to the module under its name. Returns -1 with an
 * exception set if that fails. */
int vpy_type_add(PyObject *module, PyType_Spec *spec);

/* ---- base/lists.c -------------------------------------------------------- */

/* Appends an item to a list, which takes it over. NULL: making the item failed.
 * Returns false with an exception set. */
bool vpy_append(PyObject *list, PyObject *item);

/* ---- base/at_exit.c ------------------------------------------------------ */

/* Registers a function with atexit. Returns -1 with an exception set if that
 * fails. */
int vpy_at_exit(PyMethodDef *method);

/* ---- base/errors.c ------------------------------------------------------- */

extern PyObject *vpy_trace_error; /* the class vestige._core.TraceError */

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

/* Where the C stack of the calling thread ends, and its size (base/stack.c).
 * Slow in the main thread: the C library reads the list of mappings. */
bool vpy_stack_find(uintptr_t *low, size_t *size);

#pragma GCC visibility pop
#endif
