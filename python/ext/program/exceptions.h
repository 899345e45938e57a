/* Records a mark where each exception is raised. The reader finds who catches
 * it (src/replay/matcher_exceptions.c), from the calls that the exception
 * leaves. The exception's message is not recorded. Called with the GIL held;
 * nothing here raises, or changes an exception that is being raised.
 *
 * Not recorded: StopIteration, StopAsyncIteration and GeneratorExit, by which
 * iterators and generators end, and exceptions that are raised in code that is
 * not recorded and do not leave that code. */
#ifndef VPY_PROGRAM_EXCEPTIONS_H
#define VPY_PROGRAM_EXCEPTIONS_H

#include "calls/tracer.h"
#include "program/state.h"

#pragma GCC visibility push(hidden)

void vpy_exceptions_begin(vpy_tracer *tracer);
void vpy_exceptions_end(void);

/* Call when an exception is raised in a function, or reaches it from a function
 * that it called. The function is that of the traceback's first entry. */
VST_COLD void vpy_exception_seen(PyObject *error, PyObject *traceback);
/* Call when an exception leaves the function of the traceback's first entry, or
 * of `frame`. NULL: a function that is not recorded. */
VST_COLD void vpy_exception_leaves(PyObject *traceback);
VST_COLD void vpy_exception_leaves_frame(const PyFrameObject *frame);
/* vpy_exception_seen and vpy_exception_leaves for the exception that is set,
 * for hooks that only learn of a function's end by an exception. */
VST_COLD void vpy_exception_set_leaves(void);

#pragma GCC visibility pop
#endif
