/* Replaces compat_frames.h on a Python that is newer than all that we know:
 * frames are never read, and no internals are changed. base/inside.c says that
 * all parts fall back, so most of these functions are compiled but never
 * called. */
#ifndef VPY_COMPAT_UNKNOWN_H
#define VPY_COMPAT_UNKNOWN_H

typedef struct vpy_iframe vpy_iframe; /* the fields of a frame are not known */

typedef struct vpy_recursion {
    int python, c;
} vpy_recursion;

static inline const vpy_iframe *vpy_iframe_innermost(PyThreadState *tstate)
{
    (void)tstate;
    return NULL;
}

static inline const vpy_iframe *vpy_iframe_running(PyThreadState *tstate)
{
    (void)tstate;
    return NULL;
}

static inline const vpy_iframe *vpy_iframe_back(const vpy_iframe *frame)
{
    (void)frame;
    return NULL;
}

static inline const vpy_iframe *vpy_iframe_of(const PyFrameObject *frame)
{
    (void)frame;
    return NULL;
}

static inline bool vpy_iframe_is_shim(const vpy_iframe *frame)
{
    (void)frame;
    return false;
}

static inline bool vpy_iframe_is_entry(const vpy_iframe *frame)
{
    (void)frame;
    return true;
}

static inline PyCodeObject *vpy_iframe_code(const vpy_iframe *frame)
{
    (void)frame;
    return NULL;
}

static inline PyObject *vpy_iframe_local(const vpy_iframe *frame, int index)
{
    (void)frame, (void)index;
    return NULL;
}

static inline PyObject *vpy_iframe_argument(const vpy_iframe *frame, int index)
{
    (void)frame, (void)index;
    return NULL;
}

static inline int vpy_iframe_instruction(const vpy_iframe *frame)
{
    (void)frame;
    return -1;
}

static inline uintptr_t vpy_iframe_place(const vpy_iframe *frame)
{
    (void)frame;
    return 0;
}

static inline bool vpy_iframe_is_incomplete(const vpy_iframe *frame,
                                            int instruction)
{
    (void)frame, (void)instruction;
    return false;
}

#define VPY_AWAITS_INLINE true

static inline const vpy_iframe *vpy_iframe_of_coroutine(PyObject *coroutine)
{
    (void)coroutine;
    return NULL;
}

static inline bool vpy_iframe_is_new(const vpy_iframe *frame)
{
    (void)frame;
    return false;
}

static inline vpy_iframe *vpy_iframe_none(PyThreadState *tstate)
{
    (void)tstate;
    return NULL;
}

static inline vpy_iframe *vpy_iframes_replace(PyThreadState *tstate,
                                              vpy_iframe *frame)
{
    (void)tstate, (void)frame;
    return NULL;
}

static inline vpy_recursion vpy_recursion_put_aside(PyThreadState *tstate)
{
    (void)tstate;
    return (vpy_recursion){0, 0};
}

static inline void vpy_recursion_take_back(PyThreadState *tstate,
                                           vpy_recursion used)
{
    (void)tstate, (void)used;
}

#endif
