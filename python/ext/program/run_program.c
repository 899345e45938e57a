/* Runs a program's code at the bottom of the stack, as the interpreter itself
 * does. No frame of the command is below it: sys._getframe() and
 * inspect.stack() find none, and the program has the whole recursion limit. The
 * command's frames are taken off the thread meanwhile, and put back before they
 * go on. */
#include "program/program.h"

#include "base/inside.h"

static PyObject *program_call(PyObject *what, PyObject *with)
{
    return PyCode_Check(what) ? PyEval_EvalCode(what, with, with)
                              : PyObject_Call(what, with, NULL);
}

/* Returns whether the frame that the interpreter shows is the one that we would
 * take off. If not, the program runs above the command's frames, which does no
 * harm. */
static bool frame_is_known(PyThreadState *tstate)
{
    PyFrameObject *shown = PyEval_GetFrame();

    return vpy_base.inside.works[VPY_PART_BOTTOM] && shown != NULL &&
           vpy_iframe_running(tstate) == vpy_iframe_of(shown);
}

/* Updates the code of the command's frames. When a tool sets events of
 * sys.monitoring, the interpreter changes the code of every frame that it
 * finds, but it did not find the command's frames. It assumes, and a debug
 * build asserts, that running code has the current events. */
static void renew_events(void)
{
    PyObject *type, *value, *traceback, *result;
    PyObject *monitoring = PySys_GetObject("monitoring"); /* borrowed */

    if (monitoring == NULL)
        return;
    PyErr_Fetch(&type, &value, &traceback);
    result = PyObject_CallMethod(monitoring, "restart_events", NULL);
    Py_XDECREF(result);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

/* run_program(code, namespace) or run_program(function, arguments) */
static PyObject *run_program(PyObject *module, PyObject *args)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyObject *what, *with, *result;
    vpy_recursion used;
    vpy_iframe *frame;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO:run_program", &what, &with))
        return NULL;
    if (!frame_is_known(tstate))
        return program_call(what, with);
    used = vpy_recursion_put_aside(tstate);
    frame = vpy_iframes_replace(tstate, vpy_iframe_none(tstate));
    result = program_call(what, with);
    vpy_iframes_replace(tstate, frame);
    vpy_recursion_take_back(tstate, used);
    renew_events();
    return result;
}

PyMethodDef vpy_program_functions[] = {
    {"run_program", run_program, METH_VARARGS,
     PyDoc_STR("run_program(code, namespace)\nrun_program(function, arguments)"
               "\n--\n\nRun a program with no frame below it.")},
    {NULL, NULL, 0, NULL},
};
