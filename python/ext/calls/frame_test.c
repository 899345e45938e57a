/* What the frame hook does while it is tested: the calls of one thread are
 * noted as text, and nothing is recorded. With the GIL held. */
#include "calls/frame_hook.h"

#if VPY_HAS_FRAME_HOOK

PyThreadState *vpy_frames_tested;

static size_t length;
static char seen[128]; /* first letters of names, and marks */

static void see(char what)
{
    if (length + 1 < sizeof seen)
        seen[length++] = what;
}

PyObject *vpy_frames_test(PyThreadState *tstate, vpy_iframe *frame,
                          int throwing, _PyFrameEvalFunction evaluate)
{
    PyObject *name = vpy_iframe_code(frame)->co_name, *result;

    see(*(const char *)PyUnicode_DATA(name));
    see('(');
    result = evaluate(tstate, frame, throwing);
    see(result != NULL ? ')' : '!');
    return result;
}

void vpy_frames_test_begin(void)
{
    length = 0;
    vpy_frames_tested = PyThreadState_Get();
}

const char *vpy_frames_test_end(void)
{
    vpy_frames_tested = NULL;
    seen[length] = 0;
    return seen;
}

#endif
