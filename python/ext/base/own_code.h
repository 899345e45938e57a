/* Tells vestige's own code from the program's (words: kept).
 *
 *  - "own" code is the vestige package. Calls of it are not recorded.
 *  - A "launcher" is the part of the package that runs programs: the command
 *    and the
 *    start-up module. The callers of a launcher do not belong to the program.
 *  - A "runner" is a function of another package, such as runpy's, through
 *    which the command runs a program.
 *
 * calls/ asks when it defines functions, memory/ and annotate/ when they record
 * stacks. The functions that take the name of a file only read what does not
 * change while recording: memory/ calls them without the GIL. */
#ifndef VPY_BASE_OWN_CODE_H
#define VPY_BASE_OWN_CODE_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

extern PyMethodDef vpy_own_code_functions[];
/* Reads sys.path and finds the package's folder. Call when a recording starts.
 * Returns false if memory ran out. */
bool vpy_own_code_begin(void);

/* Set in a thread of vestige's own, which is no part of the program. */
extern _Thread_local bool vpy_thread_is_ours;

bool vpy_code_is_own(PyObject *code);
bool vpy_code_is_launcher(PyObject *code);
bool vpy_code_is_runner(PyObject *code);

bool vpy_file_is_own(const char *file, uint32_t length);
bool vpy_file_is_launcher(const char *file, uint32_t length);

/* Returns the length of the folder of sys.path with which a file's name begins;
 * 0 if none. */
uint32_t vpy_search_path_prefix(const char *file, uint32_t length);

#pragma GCC visibility pop
#endif
