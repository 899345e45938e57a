/* Checks the numbers of the instructions for calls, which cached_callables.c
 * reads in code and writes into it, and the functions with which the
 * interpreter compares callables.
 *
 * Nothing is run for this. Python's interface shows each specialized
 * instruction as the general instruction that it was specialized from. So we
 * write the numbers over the calls in a code object of our own, which nobody
 * runs: Python must show them as the calls that they were. Called with the GIL
 * held. */
#include "base/inside.h"

#if VPY_KNOWS_INSIDE

#include "compat_interpreter.h"

#include <opcode.h>
#include <string.h>

/* One call for each number. The second line is longer than the data behind any
 * instruction, so that nothing is read beyond the end if a number is wrong. */
static const char calls[] = "f(0); f(0); f(0); f(0)\n"
                            "a; a; a; a; a; a\n";

static const unsigned char numbers[] = {VPY_PLAIN_CALLS, VPY_UNDECIDED_CALL};

enum {
    NUMBERS = sizeof numbers,
    INSTRUCTION = 2 /* bytes: number, argument */
};

static PyObject *make_code(void)
{
    return Py_CompileString(calls, "<vestige>", Py_file_input);
}

static unsigned char inside_code_pretended(unsigned char number)
{
    return (unsigned char)(number +
                           vpy_base.inside.shifts[VPY_FACT_INSTRUCTIONS]);
}

/* Writes one of the numbers over each call in `shown`. Returns whether there
 * are as many calls as numbers. */
static bool write_numbers(PyObject *code, PyObject *shown)
{
    char *written = ((PyCodeObject *)code)->co_code_adaptive;
    const char *bytes = PyBytes_AS_STRING(shown);
    unsigned char call = inside_code_pretended(VPY_CALL);
    size_t found = 0;

    for (Py_ssize_t i = 0; i < PyBytes_GET_SIZE(shown); i += INSTRUCTION)
        if ((unsigned char)bytes[i] == call && found++ < NUMBERS)
            written[i] = (char)inside_code_pretended(numbers[found - 1]);
    return found == NUMBERS;
}

bool vpy_instructions_hold(void)
{
    PyObject *code = make_code(), *changed = make_code();
    PyObject *shown = NULL, *shown_changed = NULL;
    bool hold = false;

    if (code != NULL && changed != NULL)
        shown = PyCode_GetCode((PyCodeObject *)code);
    if (shown != NULL && write_numbers(changed, shown))
        shown_changed = PyCode_GetCode((PyCodeObject *)changed);
    if (shown_changed != NULL)
        hold = PyObject_RichCompareBool(shown, shown_changed, Py_EQ) == 1;
    Py_XDECREF(shown_changed);
    Py_XDECREF(shown);
    Py_XDECREF(changed);
    Py_XDECREF(code);
    PyErr_Clear();
    return hold;
}

/* ---- functions with which calls are compared ----------------------------- */

/* The program cannot replace list.append. If the program has replaced len or
 * isinstance, checking list.append suffices, as the three fields are
 * neighbours. */
bool vpy_callables_hold(void)
{
    PyObject *builtins = PyEval_GetBuiltins();
    PyObject *list = vpy_type_dict(&PyList_Type);
    PyObject *expected[VPY_CALLABLES] = {
        PyDict_GetItemString(builtins, "len"),
        PyDict_GetItemString(builtins, "isinstance"),
        list != NULL ? PyDict_GetItemString(list, "append") : NULL,
    };
    PyInterpreterState *interpreter =
        VPY_SHIFTED(VPY_FACT_CALLABLES, PyInterpreterState_Get());
    PyObject **found[VPY_CALLABLES];
    bool hold = expected[VPY_CALLABLES - 1] != NULL;

    vpy_callables_find(interpreter, found);
    for (size_t i = 0; i < VPY_CALLABLES; i++)
        if (i == VPY_CALLABLES - 1 ||
            (expected[i] != NULL && PyCFunction_CheckExact(expected[i])))
            hold = hold && *found[i] == expected[i];
    Py_XDECREF(list);
    return hold;
}

#else

bool vpy_instructions_hold(void)
{
    return true;
}

bool vpy_callables_hold(void)
{
    return true;
}

#endif
