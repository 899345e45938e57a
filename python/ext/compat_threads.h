/* Builds with the GIL and without it, in one place. compat.h includes it.
 *
 * With the GIL everything here is nothing: the GIL is the one lock. Without it
 * all threads run at once, and three things take its place:
 *
 *  - A lock (vpy_lock). The thread that has it keeps it while it waits for
 *    something else; one that waits for it may be stopped meanwhile. A thread
 *    may take a lock again that it has.
 *  - A stopped world (vpy_world_stop). No other thread that Python knows is
 *    between two instructions of a hook: each waits at a place where it would
 *    have given up the GIL, or runs without Python. So what a hook does without
 *    such a place is not divided, as under the GIL. While the world is stopped
 *    nobody may take a lock of this file, run Python code or make an object.
 *  - A critical section of an object (VPY_BEGIN_CRITICAL_SECTION), which the
 *    interpreter ends for the time that the thread waits, as it would the GIL.
 *    For methods of objects of ours that threads may share. */
#ifndef VPY_COMPAT_THREADS_H
#define VPY_COMPAT_THREADS_H

#ifdef Py_GIL_DISABLED
#define VPY_FREE_THREADED 1
#else
#define VPY_FREE_THREADED 0
#endif

/* Where we could not be loaded, we are not installed: pytest loads our plugin
 * in every run. */
#if VPY_FREE_THREADED && (PY_VERSION_HEX < 0x030E0000 || !VPY_KNOWS_INSIDE)
#error "without the GIL, vestige needs a Python from 3.14 on that it knows"
#endif

/* Whether extra values of code objects are read and written by several threads
 * at once without harm, by the version that runs: from 3.14.4 on. */
static inline bool vpy_code_extras_are_shared(void)
{
#if VPY_FREE_THREADED
    return Py_Version >= 0x030E0400;
#else
    return true;
#endif
}

#if VPY_FREE_THREADED

#define Py_BUILD_CORE 1
#include <internal/pycore_pystate.h>
#undef Py_BUILD_CORE

#include <vestige/record.h>

/* In a cache line of its own: others write there while somebody waits. */
typedef struct VST_OWN_LINE vpy_lock {
    PyMutex mutex;
    uintptr_t owner; /* atomic: the thread that has it, 0: none */
    unsigned depth;  /* its owner's */
} vpy_lock;

/* Tells threads apart while they live, without a call. */
static inline uintptr_t vpy_thread_mark(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

/* A thread that finds itself there stored it. So relaxed is enough. */
static inline void vpy_lock_take(vpy_lock *lock)
{
    uintptr_t own = vpy_thread_mark();

    if (__atomic_load_n(&lock->owner, __ATOMIC_RELAXED) != own) {
        PyMutex_Lock(&lock->mutex);
        __atomic_store_n(&lock->owner, own, __ATOMIC_RELAXED);
    }
    lock->depth++;
}

static inline void vpy_lock_give(vpy_lock *lock)
{
    if (--lock->depth == 0) {
        __atomic_store_n(&lock->owner, 0, __ATOMIC_RELAXED);
        PyMutex_Unlock(&lock->mutex);
    }
}

/* In a forked child, where the thread that had it may not be any more. */
static inline void vpy_lock_after_fork(vpy_lock *lock)
{
    if (lock->owner != vpy_thread_mark())
        *lock = (vpy_lock){.owner = 0};
}

static inline void vpy_world_stop(void)
{
    _PyEval_StopTheWorld(PyInterpreterState_Get());
}

static inline void vpy_world_start(void)
{
    _PyEval_StartTheWorld(PyInterpreterState_Get());
}

#define VPY_BEGIN_CRITICAL_SECTION(object) Py_BEGIN_CRITICAL_SECTION(object)
#define VPY_END_CRITICAL_SECTION() Py_END_CRITICAL_SECTION()

/* Methods that run in the critical section of their object: VPY_LOCKED(method)
 * is such a one, once VPY_DEFINE_LOCKED(method) stands above it. */
#define VPY_LOCKED(method) method##_locked
#define VPY_DEFINE_LOCKED(method)                                              \
    static PyObject *method##_locked(PyObject *self, PyObject *args)           \
    {                                                                          \
        PyObject *result;                                                      \
        VPY_BEGIN_CRITICAL_SECTION(self);                                      \
        result = method(self, args);                                           \
        VPY_END_CRITICAL_SECTION();                                            \
        return result;                                                         \
    }
#define VPY_DEFINE_LOCKED_KEYWORDS(method)                                     \
    static PyObject *method##_locked(PyObject *self, PyObject *args,           \
                                     PyObject *kw)                             \
    {                                                                          \
        PyObject *result;                                                      \
        VPY_BEGIN_CRITICAL_SECTION(self);                                      \
        result = method(self, args, kw);                                       \
        VPY_END_CRITICAL_SECTION();                                            \
        return result;                                                         \
    }

/* Of an object that somebody else may be freeing: a new reference, or false.
 * It holds for objects that were made with vpy_may_be_tried. */
static inline bool vpy_try_incref(PyObject *object)
{
    return PyUnstable_TryIncRef(object) != 0;
}

static inline void vpy_may_be_tried(PyObject *object)
{
    PyUnstable_EnableTryIncRef(object);
}

/* No collection runs inside of C code here, and other threads' are not ours to
 * put off: a gc.disable() of theirs would be undone. */
static inline int vpy_collections_put_off(void)
{
    return 0;
}

#else

typedef struct vpy_lock {
    char none;
} vpy_lock;

static inline void vpy_lock_take(vpy_lock *lock)
{
    (void)lock;
}

static inline void vpy_lock_give(vpy_lock *lock)
{
    (void)lock;
}

static inline void vpy_lock_after_fork(vpy_lock *lock)
{
    (void)lock;
}

static inline void vpy_world_stop(void)
{
}

static inline void vpy_world_start(void)
{
}

#define VPY_BEGIN_CRITICAL_SECTION(object) {
#define VPY_END_CRITICAL_SECTION() }

#define VPY_LOCKED(method) method
#define VPY_DEFINE_LOCKED(method)
#define VPY_DEFINE_LOCKED_KEYWORDS(method)

static inline bool vpy_try_incref(PyObject *object)
{
    Py_INCREF(object);
    return true;
}

static inline void vpy_may_be_tried(PyObject *object)
{
    (void)object;
}

/* Up to 3.11 making an object may collect garbage, which runs any code. */
static inline int vpy_collections_put_off(void)
{
    return PyGC_Disable();
}

#endif

/* With what vpy_collections_put_off has returned. */
static inline void vpy_collections_go_on(int were_on)
{
    if (were_on)
        PyGC_Enable();
}

#endif
