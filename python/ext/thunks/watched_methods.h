/* Puts functions of ours in front of single C functions that the program calls.
 * Engines, session/ and annotate/ use this for the few functions whose calls
 * they must see; thunks.h is for all other functions. */
#ifndef VPY_THUNKS_WATCHED_METHODS_H
#define VPY_THUNKS_WATCHED_METHODS_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

typedef struct vpy_watched {
    PyMethodDef *method; /* NULL: not watched now */
    /* the definition that was last found to be writable */
    PyMethodDef *writable;
    PyCFunction original;
    PyCFunction through_us; /* called instead of the original, which it calls */
    struct vpy_watched *next;
} vpy_watched;

/* Puts through_us in front of a definition. Does nothing if the definition has
 * other flags or lies in read-only memory. */
void vpy_watch(vpy_watched *w, PyMethodDef *method, int flags,
               PyCFunction through_us);
void vpy_unwatch(vpy_watched *w);

/* Returns the original behind a function of ours; any other function is
 * returned itself. */
PyCFunction vpy_watched_original(PyCFunction function);

#pragma GCC visibility pop
#endif
