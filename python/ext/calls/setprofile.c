/* See setprofile.h. */
#include "calls/setprofile.h"

#include "base/inside.h"
#include "calls/state.h"

static _Thread_local Py_tracefunc hidden_from; /* the program's function */

/* Replaces the program's function until the first event. */
static int hide_first_return(PyObject *object, PyFrameObject *frame, int what,
                             PyObject *argument)
{
    PyThreadState_Get()->c_profilefunc = hidden_from;
    return what == PyTrace_C_RETURN
               ? 0
               : hidden_from(object, frame, what, argument);
}

void vpy_setprofile_hide_return(PyThreadState *tstate)
{
    hidden_from = tstate->c_profilefunc;
    tstate->c_profilefunc = hide_first_return;
}

static PyObject *through_setprofile(PyObject *self, PyObject *argument)
{
    PyThreadState *tstate = PyThreadState_Get();
    bool had_none = tstate->c_profilefunc == NULL;
    PyObject *result = vpy_calls.setprofile.original(self, argument);

    if (had_none && tstate->c_profilefunc != NULL)
        vpy_setprofile_hide_return(tstate);
    return result;
}

void vpy_setprofile_watch(void)
{
    PyObject *function = PySys_GetObject("setprofile"); /* borrowed */

    if (function != NULL && PyCFunction_CheckExact(function) &&
        vpy_thread_states_are_known())
        vpy_watch(&vpy_calls.setprofile, ((PyCFunctionObject *)function)->m_ml,
                  METH_O, through_setprofile);
}

void vpy_setprofile_unwatch(void)
{
    vpy_unwatch(&vpy_calls.setprofile);
}
