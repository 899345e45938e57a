/* Looks up modules and members of sys by names that are str objects already
 * (names.c). With the GIL, in the main interpreter. */
#ifndef VPY_BASE_NAMES_H
#define VPY_BASE_NAMES_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

typedef enum vpy_name {
    VPY_NAME_MODULES,
    VPY_NAME_PATH,
    VPY_NAME_REFCOUNT,
    VPY_NAME_MONITORING,
    VPY_NAME_TORCH,
    VPY_NAME_THREADING,
    VPY_NAME_GREENLET,
    VPY_NAME_PROCESSES,
    VPY_NAME_PROCESSES_UTIL,
    VPY_NAMES
} vpy_name;

int vpy_names_init(void);
/* Returns a member of sys (borrowed), or NULL. The interpreter clears sys when
 * it ends. */
PyObject *vpy_system_object(vpy_name name);
/* Returns a module if it is already imported: a new reference, or NULL. */
PyObject *vpy_loaded(vpy_name name);

#pragma GCC visibility pop
#endif
