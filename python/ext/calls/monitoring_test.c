/* The hook of the monitoring engine's self test, and the calls that it noted:
 * see monitoring_callback.h. With the GIL held. */
#include "calls/monitoring_callback.h"

#include "calls/state.h"
#include "calls/turbo_frames.h"

#include <string.h>

static struct vpy_monitoring_test_state *const state =
    &vpy_calls.monitoring_test;

static void monitoring_test_see(Py_UCS4 mark)
{
    if (state->length < sizeof state->seen - 1)
        state->seen[state->length++] = (char)mark;
}

/* Notes the first letter of the function's name where a call begins, and the
 * event's mark. Events of other threads, and of finalizers that run meanwhile,
 * are skipped. */
PyObject *vpy_monitoring_on_test(PyObject *self, PyObject *const *args,
                                 size_t nargsf, PyObject *kwnames)
{
    const PyCodeObject *code = (PyCodeObject *)args[0];
    char mark = ((vpy_callback *)self)->mark;
    bool begins = strchr("([{", mark) != NULL;

    (void)kwnames;
    if (state->thread != PyThreadState_Get() || !PyCode_Check(args[0]) ||
        PyUnicode_CompareWithASCIIString(code->co_filename, VPY_TEST_FILE) != 0)
        Py_RETURN_NONE;
    if (begins)
        monitoring_test_see(PyUnicode_READ_CHAR(code->co_name, 0));
    monitoring_test_see(
        (Py_UCS4)(PyVectorcall_NARGS(nargsf) < (begins ? 2 : 3) ? '?' : mark));
    Py_RETURN_NONE;
}
