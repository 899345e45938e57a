/* len, isinstance and list.append: from 3.11 on the interpreter has
 * instructions of its own for them, which call nothing. They compare what is
 * called with what the interpreter has noted as the one meant. While recording
 * something else is noted there: those instructions give way to ordinary
 * calls. With the GIL. */
#include "thunks.h"

#if PY_VERSION_HEX >= 0x030B0000

#define Py_BUILD_CORE 1
#undef _PyGC_FINALIZED /* which is another name for a function in there */
#include <internal/pycore_interp.h>
#undef Py_BUILD_CORE

enum { CALLABLES = 3 };

static PyObject *noted[CALLABLES]; /* borrowed: the interpreter keeps them */
static PyInterpreterState *interpreter; /* NULL: nothing is hidden */

static void places(PyInterpreterState *interp, PyObject **found[CALLABLES])
{
    found[0] = &interp->callable_cache.len;
    found[1] = &interp->callable_cache.isinstance;
    found[2] = &interp->callable_cache.list_append;
}

void vpy_cached_callables_hide(void)
{
    PyObject **place[CALLABLES];

    if (interpreter)
        return;
    interpreter = PyThreadState_Get()->interp;
    places(interpreter, place);
    for (size_t i = 0; i < CALLABLES; i++) {
        noted[i] = *place[i];
        *place[i] = Py_None; /* which nobody can call */
    }
}

void vpy_cached_callables_show(void)
{
    PyObject **place[CALLABLES];

    if (!interpreter)
        return;
    places(interpreter, place);
    for (size_t i = 0; i < CALLABLES; i++)
        if (*place[i] == Py_None)
            *place[i] = noted[i];
    interpreter = NULL;
}

bool vpy_cached_callables_are_hidden(void)
{
    return interpreter != NULL;
}

#else

void vpy_cached_callables_hide(void)
{
}

void vpy_cached_callables_show(void)
{
}

bool vpy_cached_callables_are_hidden(void)
{
    return false;
}
#endif
