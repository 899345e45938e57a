/* Puts functions of ours in front of C functions that the program calls, one by
 * one. Engines, session/ and annotate/ use it for the few functions that they
 * have to know of; thunks.h is for all the others. */
#ifndef VPY_THUNKS_WATCHED_METHODS_H
#define VPY_THUNKS_WATCHED_METHODS_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

typedef struct vpy_watched {
    PyMethodDef *method;   /* NULL: not watched now */
    PyMethodDef *writable; /* was found to be so, and stays so */
    PyCFunction original;
    PyCFunction through_us; /* is called instead, and calls original */
    struct vpy_watched *next;
} vpy_watched;

/* Puts through_us in front of a definition. Does nothing if the definition has
 * other flags or lies in read-only memory. */
void vpy_watch(vpy_watched *w, PyMethodDef *method, int flags,
               PyCFunction through_us);
void vpy_unwatch(vpy_watched *w);

/* What stands behind a function of ours, or the function itself. */
PyCFunction vpy_watched_original(PyCFunction function);

#pragma GCC visibility pop
#endif
