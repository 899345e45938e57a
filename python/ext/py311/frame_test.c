/* The frame hook during its test: the calls of one thread are noted as text,
 * and nothing is recorded. Call with the GIL held. */
#include "py311/frame_hook.h"

#include <string.h>

static struct vpy_frame_test_state *const state = &vpy_py311.test;

static void frame_test_see(char what)
{
    if (state->length + 1 < sizeof state->seen)
        state->seen[state->length++] = what;
}

PyObject *vpy_frames_test(PyThreadState *tstate, vpy_iframe *frame,
                          int throwing, _PyFrameEvalFunction evaluate)
{
    PyObject *name = vpy_iframe_code(frame)->co_name, *result;

    frame_test_see(*(const char *)PyUnicode_DATA(name));
    frame_test_see('(');
    result = evaluate(tstate, frame, throwing);
    frame_test_see(result != NULL ? ')' : '!');
    return result;
}

void vpy_frames_test_begin(void)
{
    state->length = 0;
    state->thread = PyThreadState_Get();
}

const char *vpy_frames_test_end(void)
{
    state->thread = NULL;
    state->seen[state->length] = 0;
    return state->seen;
}

/* ---- for turbo_test.c --------------------------------------------------- */

const char vpy_turbo_test_expected[] = "g(a()b(a())b()b()b(!c(!e(a())_()f())";

/* The expected calls if obj[i] runs a __getitem__ that the hook does not
 * see. */
static const char without_getitem[] = "g(a()b(a())b()b()b(!c(!e(a())f())";

bool vpy_turbo_test_begin(void)
{
    vpy_frames_hook();
    vpy_getitems_hide();
    vpy_frames_test_begin();
    return true;
}

const char *vpy_turbo_test_end(void)
{
    vpy_frames_test_end();
    vpy_getitems_show();
    vpy_frames_unhook();
    return state->seen;
}

void vpy_turbo_test_drop(void)
{
}

/* Makes the next try hide each __getitem__. */
bool vpy_turbo_test_mends(const char *found)
{
    if (vpy_py311.getitems.are_inlined || strcmp(found, without_getitem) != 0)
        return false;
    vpy_py311.getitems.are_inlined = true;
    return true;
}
