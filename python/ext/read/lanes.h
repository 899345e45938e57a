/* vestige._core.Lanes, shared by lanes.c (the object, lanes and items) and
 * lanes_pictures.c (pictures, sums, search). */
#ifndef VPY_READ_LANES_H
#define VPY_READ_LANES_H

#include "vpy.h"

#include "view/lanes.h"

#pragma GCC visibility push(hidden)

typedef struct vpy_lanes {
    PyObject_HEAD
    vst__lanes *handle; /* atomic: set once, see vpy_handle_set */
} vpy_lanes;

/* Returns false with an exception set if the lanes cannot be used. */
bool vpy_lanes_is_usable(const vpy_lanes *self);
PyObject *vpy_lanes_to_dict(const vpy_lanes *self, const vst__lane_item *item);

/* lanes_pictures.c: methods. */
extern const char vpy_lanes_busy_doc[], vpy_lanes_draw_doc[],
    vpy_lanes_pack_doc[], vpy_lanes_find_doc[], vpy_lanes_next_doc[];
PyObject *vpy_lanes_busy(PyObject *object, PyObject *args);
PyObject *vpy_lanes_draw(PyObject *object, PyObject *args);
PyObject *vpy_lanes_pack(PyObject *object, PyObject *args);
PyObject *vpy_lanes_find(PyObject *object, PyObject *args);
PyObject *vpy_lanes_next(PyObject *object, PyObject *args);

#pragma GCC visibility pop
#endif
