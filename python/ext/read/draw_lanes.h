/* A picture of lanes, which those of tasks and of devices draw alike. */
#ifndef VPY_READ_DRAW_LANES_H
#define VPY_READ_DRAW_LANES_H

#include "read/trace.h"

#pragma GCC visibility push(hidden)

/* Draws some lanes of a handle; bytes are malloc's. Runs without the GIL. */
typedef vst_status vpy_draw_lanes_fn(const void *handle, int64_t from_ns,
                                     int64_t to_ns, uint32_t pixels,
                                     const uint32_t *lanes, size_t count,
                                     void **bytes, size_t *size);

/* The method draw(from_ns, to_ns, pixels, lanes). */
PyObject *vpy_draw_lanes(const void *handle, PyObject *args,
                         vpy_draw_lanes_fn *draw);
/* Raises ValueError, and returns NULL. */
PyObject *vpy_refuse_picture(void);

#pragma GCC visibility pop
#endif
