/* Python frames for the turbo engine, and for its test of itself. The build
 * chooses who sees them: sys.monitoring (monitoring_frames.c), or the
 * evaluation hook (py311/). With the GIL held. */
#ifndef VPY_CALLS_TURBO_FRAMES_H
#define VPY_CALLS_TURBO_FRAMES_H

#include "calls/tracer.h"

#pragma GCC visibility push(hidden)

bool vpy_frames_start(vpy_tracer *tracer); /* as start of vpy_engine */
void vpy_frames_stop(vpy_tracer *tracer);
/* Undoes what a recording has passed on, if no recording follows. */
void vpy_frames_give_up(void);
/* Puts hooks back that somebody removed. */
void vpy_frames_check(void);
/* How many hooks there are that no other engine counts. */
size_t vpy_frames_in_place(void);
/* How often hooks were removed since the start because the C stack was low. */
size_t vpy_frames_pauses(void);
/* Whether exceptions are seen where they are raised, and not only where they
 * leave a function. */
extern const bool vpy_frames_see_raises;

/* ---- for turbo_test.c --------------------------------------------------- */

/* Notes the calls that this thread makes to functions of this file. "a(" is a
 * call of a; "a[" resumes it, "a{" throws into it; ")" is a return, "]" a
 * yield, "!" an exception that leaves it. False or NULL: it cannot be tested
 * now. */
#define VPY_TEST_FILE "<vestige>"
bool vpy_turbo_test_begin(void);
const char *vpy_turbo_test_end(void);
/* Ends a test that is under way, because another thread starts to record or
 * because this process was forked. */
void vpy_turbo_test_drop(void);
/* What turbo_test.c must see. */
extern const char vpy_turbo_test_expected[];
/* Whether another try is worth while after these calls were seen. */
bool vpy_turbo_test_mends(const char *seen);

#pragma GCC visibility pop
#endif
