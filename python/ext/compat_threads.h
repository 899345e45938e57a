/* How builds with the GIL and free-threaded builds differ. compat.h includes
 * it.
 *
 * With the GIL everything here does nothing: the GIL is the one lock. Without
 * it all threads run at the same time, and three things replace it:
 *
 *  - A lock (vpy_lock). A thread keeps it even while waiting for something
 *    else. A thread that waits for the lock may be stopped meanwhile. A thread
 *    may take a lock again that it has.
 *  - A stopped world (vpy_world_stop). No other thread that Python knows is
 *    between two instructions of a hook: each waits at a place where it would
 *    have given up the GIL, or runs without Python. So the code of a hook
 *    between two such places is not interrupted, as under the GIL. While the
 *    world is stopped nobody may take a lock of this file, run Python code or
 *    make an object.
 *  - A critical section of an object (VPY_BEGIN_CRITICAL_SECTION), which the
 *    interpreter suspends while the thread waits, as it would release the GIL.
 *    For methods of our objects that threads may share. */
#ifndef VPY_COMPAT_THREADS_H
#define VPY_COMPAT_THREADS_H

#ifdef Py_GIL_DISABLED
#define VPY_FREE_THREADED 1
#else
#define VPY_FREE_THREADED 0
#endif

/* The build fails here instead of importing: pytest loads our plugin in every
 * run, so an installed vestige must be importable. */
#if VPY_FREE_THREADED && (PY_VERSION_HEX < 0x030E0000 || !VPY_KNOWS_INSIDE)
#error "without the GIL, vestige needs a Python from 3.14 on that it knows"
#endif

/* Returns whether several threads may read and write extra values of code
 * objects at the same time. Depends on the patch version that runs: since
 * 3.14.4. */
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

/* In a cache line of its own, because waiting threads write to it. */
typedef struct VST_OWN_LINE vpy_lock {
    PyMutex mutex;
    uintptr_t owner; /* atomic: the thread that has the lock; 0: none */
    unsigned depth;  /* guarded by the lock */
} vpy_lock;

/* Identifies a thread while it lives, without a call. */
static inline uintptr_t vpy_thread_mark(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

/* Relaxed is enough: only the thread itself stores its own mark. */
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

/* Call in a forked child, where the thread that had the lock may no longer
 * exist. */
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

/* VPY_LOCKED(method) runs a method in the critical section of its object. It
 * needs VPY_DEFINE_LOCKED(method) above it. */
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

/* Takes a reference to an object that another thread may be freeing; false if
 * it is being freed. The object must have been made with vpy_may_be_tried. */
static inline bool vpy_try_incref(PyObject *object)
{
    return PyUnstable_TryIncRef(object) != 0;
}

static inline void vpy_may_be_tried(PyObject *object)
{
    PyUnstable_EnableTryIncRef(object);
}

/* Free-threaded builds run no collection inside C code, so there is nothing to
 * put off. A gc.disable() by another thread must not be undone. */
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

/* Up to 3.11 making an object may start a collection, which runs any code. */
static inline int vpy_collections_put_off(void)
{
    return PyGC_Disable();
}

#endif

/* Call with the value that vpy_collections_put_off returned. */
static inline void vpy_collections_go_on(int were_on)
{
    if (were_on)
        PyGC_Enable();
}

#endif
