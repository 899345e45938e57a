/* Checks whether the interpreter's internals are as we know them.
 *
 * Structures that are no part of Python's interface may change from one patch
 * release to the next, and a build of ours may run on another release than it
 * was compiled on. So no such structure is used before a check has found it
 * where we expect it. The checks run once, when the module is loaded, and take
 * some tenths of a millisecond, more if the process has many mappings. A part
 * of vestige falls back if a fact that it needs does not hold, and `vestige
 * info` says so. */
#ifndef VPY_BASE_INSIDE_H
#define VPY_BASE_INSIDE_H

#include "base/state.h"

#pragma GCC visibility push(hidden)

/* extra_index: vestige's slot for extra values of code objects. */
int vpy_inside_init(PyObject *module, Py_ssize_t extra_index);
/* Returns whether fields of a thread's state may be read. On a Python that we
 * do not know, they are where the headers say that we were compiled with. */
bool vpy_thread_states_are_known(void);
const char *vpy_part_name(vpy_part part);
/* Returns why a part falls back, in plain words; NULL if the part works. */
const char *vpy_part_trouble(vpy_part part);

/* ---- between inside.c, inside_frames.c and inside_code.c ----------------- */

/* The address at which the check of a fact looks for a structure; tests shift
 * it. */
#define VPY_SHIFTED(fact, pointer)                                             \
    ((void *)((char *)(uintptr_t)(pointer) + vpy_base.inside.shifts[fact]))

/* Returns whether the instructions for calls have the numbers that we know.
 * Needs SIZES. */
bool vpy_instructions_hold(void);
/* Returns whether the interpreter keeps len, isinstance and list.append where
 * we look for them. */
bool vpy_callables_hold(void);
#if VPY_KNOWS_INSIDE
/* Makes a few known calls, and clears those of FRAME_OBJECT, RUNNING, FRAME,
 * COROUTINE, RECURSION and CALLS that do not hold. Returns -1 with an exception
 * set if memory ran out or a signal handler raised. */
int vpy_inside_check_frames(bool holds[VPY_FACTS]);
/* Returns whether an address lies in the part of this thread's C stack that is
 * in use. */
bool vpy_is_on_stack(const void *pointer);
/* Returns whether the structure through which a thread's frame is found lies on
 * the C stack or in the thread's state. True on Pythons that have no such
 * structure. */
bool vpy_cframe_is_known(const PyThreadState *shifted,
                         const PyThreadState *tstate);
#endif

#pragma GCC visibility pop
#endif
