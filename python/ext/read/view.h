/* vestige._core.View, shared by view.c (the object and its facts) and
 * view_questions.c (questions about a range of time). */
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
    /* Read lock: methods that read the view. Write lock: refresh() and
     * set_offset(). */
    pthread_rwlock_t growth;
} vpy_view;

/* Returns false with an exception set if the view cannot be used. */
bool vpy_view_is_usable(const vpy_view *self);

/* Between vpy_view_begin and vpy_view_end, the view is in use, without the GIL.
 */
PyThreadState *vpy_view_begin(vpy_view *self);
void vpy_view_end(vpy_view *self, PyThreadState *saved);

/* view_questions.c: methods. */
PyObject *vpy_view_window(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_view_span_at(PyObject *object, PyObject *args);
PyObject *vpy_view_flame(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_view_find(PyObject *object, PyObject *args, PyObject *kw);
PyObject *vpy_view_next(PyObject *object, PyObject *args, PyObject *kw);

#pragma GCC visibility pop
#endif
