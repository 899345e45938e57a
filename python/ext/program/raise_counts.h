/* Counts, by function, the exceptions that reach or are raised in it, where
 * exceptions are not recorded: a function that raises and catches thousands of
 * them by itself shows nothing else. Costs nothing where nothing is raised. The
 * counts go into the metadata when the recording ends. */
#ifndef VPY_PROGRAM_RAISE_COUNTS_H
#define VPY_PROGRAM_RAISE_COUNTS_H

#include "calls/tracer.h"
#include "program/state.h"

#pragma GCC visibility push(hidden)

/* Nothing is counted with a budget, without the GIL, or while exceptions are
 * recorded. */
void vpy_raise_counts_begin(const vpy_tracer *tracer);
/* Call after the hooks are gone. Writes the counts if `recording` is not NULL.
 */
void vpy_raise_counts_end(vst_recording *recording);
bool vpy_raise_counts_are_wanted(void);
/* Call when an exception is raised in a function with a value, or reaches the
 * function from a call. */
void vpy_raise_count(uint32_t value, const PyObject *error);

#pragma GCC visibility pop
#endif
