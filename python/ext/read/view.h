/* A vestige._core.View, shared by view.c (the object and its facts) and
 * view_questions.c (what is asked of it). */
#ifndef VPY_VIEW_H
#define VPY_VIEW_H

#include "vpy.h"

#include "view/view.h"

#include <pthread.h>

#pragma GCC visibility push(hidden)

typedef struct vpy_view {
    PyObject_HEAD
    vst_view *handle; /* atomic: set once, see vpy_handle_set */
    PyObject *path;   /* bytes; set once, in the critical section */
    /* Held to read by those that ask, to write by refresh() and set_offset().
     */
    pthread_rwlock_t growth;
} vpy_view;

/* False with an exception set. */
bool vpy_view_is_usable(const vpy_view *self);

/* view_flame.c: (rows as a table, how many were left out): the `limit` largest
 * rows, or all if it is 0. */
PyObject *vpy_flame_rows(vst_view_flame_row *rows, size_t count, size_t limit);

/* view_questions.c: methods. */
PyObject *vpy_view_window(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_view_span_at(PyObject *object, PyObject *args);
PyObject *vpy_view_flame(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_view_find(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_view_next(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_view_counters(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_view_losses(PyObject *object, PyObject *args);

#pragma GCC visibility pop
#endif
