/* Python frames for the turbo engine and its self test. The build chooses who
 * sees them: sys.monitoring (monitoring_frames.c), or the evaluation hook
 * (py311/). Call with the GIL held. */
#ifndef VPY_CALLS_TURBO_FRAMES_H
#define VPY_CALLS_TURBO_FRAMES_H

#include "calls/tracer.h"

#pragma GCC visibility push(hidden)

/* The function `start` of the engine. */
bool vpy_frames_start(vpy_tracer *tracer);
void vpy_frames_stop(vpy_tracer *tracer);
/* Removes hooks that were kept for a next recording, if that recording does not
 * come. */
void vpy_frames_give_up(void);
/* Puts hooks back that other code removed. */
void vpy_frames_check(void);
/* Returns how many hooks are in place, without those that another engine
 * counts. */
size_t vpy_frames_in_place(void);
/* Returns how often hooks were removed since the start because the C stack was
 * low. */
size_t vpy_frames_pauses(void);
/* True if exceptions are seen where they are raised, and not only where they
 * leave a function. */
extern const bool vpy_frames_see_raises;

/* ---- for turbo_test.c --------------------------------------------------- */

/* Notes the calls that this thread makes to functions of this file. "a(" is a
 * call of a; "a[" resumes it, "a{" throws into it; ")" is a return, "]" a
 * yield, "!" an exception that leaves it. Returns false or NULL if the test
 * cannot run now. */
#define VPY_TEST_FILE "<vestige>"
bool vpy_turbo_test_begin(void);
const char *vpy_turbo_test_end(void);
/* Ends a test that is in progress, because another thread starts to record or
 * because this process was forked. */
void vpy_turbo_test_drop(void);
/* The calls that turbo_test.c must see. */
extern const char vpy_turbo_test_expected[];
/* Returns whether a second try may succeed after these calls were seen. */
bool vpy_turbo_test_mends(const char *seen);

#pragma GCC visibility pop
#endif
