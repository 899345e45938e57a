/* Exceptions as marks: where each is raised. Who catches it is found when the
 * trace is read (src/replay/matcher_exceptions.c), from the calls that it
 * leaves. What it says is not recorded. With the GIL held; nothing here raises,
 * or changes an exception that is on its way.
 *
 * Not recorded are StopIteration, StopAsyncIteration and GeneratorExit, by
 * which iterators and generators end, and what is raised in code that is not
 * recorded and does not leave it. */
#ifndef VPY_PROGRAM_EXCEPTIONS_H
#define VPY_PROGRAM_EXCEPTIONS_H

#include "calls/tracer.h"
#include "program/state.h"

#pragma GCC visibility push(hidden)

void vpy_exceptions_begin(vpy_tracer *tracer);
void vpy_exceptions_end(void);

/* An exception is raised in a function, or comes to it from one that it called.
 * The function is the one of the first entry of its traceback. */
VST_COLD void vpy_exception_seen(PyObject *error, PyObject *traceback);
/* It leaves that function; or the one of this frame. NULL: one that is not
 * recorded. */
VST_COLD void vpy_exception_leaves(PyObject *traceback);
VST_COLD void vpy_exception_leaves_frame(const PyFrameObject *frame);
/* Both, of the exception that is set, where the interpreter tells only this. */
VST_COLD void vpy_exception_set_leaves(void);

#pragma GCC visibility pop
#endif
