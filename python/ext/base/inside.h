/* What we know of the interpreter's inside, and whether it is so here.
 *
 * Structures that are no part of Python's interface may move from one patch
 * release to the next, and a build of ours may run on another one than it was
 * compiled on. So none of them is touched before a check has found it where it
 * must be. The checks run once, when the module is loaded, and take some
 * tenths of a millisecond, more if the process has many mappings. A part of
 * ours that needs what was not found falls back, and `vestige info` says so. */
#ifndef VPY_BASE_INSIDE_H
#define VPY_BASE_INSIDE_H

#include "base/state.h"

#pragma GCC visibility push(hidden)

/* extra_index: of a slot of code objects that is ours. */
int vpy_inside_init(PyObject *module, Py_ssize_t extra_index);
/* Whether fields of a thread's state may be read. Of a Python that we do not
 * know, they are where the headers say that we were compiled with. */
bool vpy_thread_states_are_known(void);
const char *vpy_part_name(vpy_part part);
/* Why a part falls back, in plain words; NULL: it does not. */
const char *vpy_part_trouble(vpy_part part);

/* ---- between inside.c, inside_frames.c and inside_code.c ----------------- */

/* A structure, where a fact looks for it. */
#define VPY_SHIFTED(fact, pointer)                                             \
    ((void *)((char *)(uintptr_t)(pointer) + vpy_base.inside.shifts[fact]))

/* Whether calls have the numbers that we know. It needs SIZES. */
bool vpy_instructions_hold(void);
/* Whether the interpreter keeps functions where we look for them. */
bool vpy_callables_hold(void);
#if VPY_KNOWS_INSIDE
/* Makes a few known calls, and clears what does not hold of FRAME_OBJECT,
 * RUNNING, FRAME, COROUTINE, RECURSION and CALLS. An exception is somebody
 * else's: a signal's, or there is no memory. */
int vpy_inside_look_at_frames(bool holds[VPY_FACTS]);
/* Whether an address lies in the part of this thread's C stack that is in use.
 */
bool vpy_is_on_stack(const void *pointer);
/* Whether the structure through which a thread's frame is found, where there is
 * one, lies on the C stack or in the state itself. */
bool vpy_cframe_is_known(const PyThreadState *shifted,
                         const PyThreadState *tstate);
#endif

#pragma GCC visibility pop
#endif
