/* Which code belongs to vestige and which to the program that it records.
 *
 *  - "own" code is the vestige package. Calls of it are not recorded.
 *  - A "launcher" is the part of it that runs programs: the command and the
 *    start-up module. What called a launcher is not the program's.
 *  - A "runner" is a function of another package, such as runpy's, through
 *    which the command runs a program.
 *
 * calls/ asks when it gives ids, memory/ and annotate/ when they show stacks.
 * The functions that take the name of a file only read what does not change
 * while recording: memory/ calls them without the GIL. */
#ifndef VPY_BASE_OWN_CODE_H
#define VPY_BASE_OWN_CODE_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

int vpy_own_code_init(PyObject *module);
/* Reads sys.path and where the package lies, when a recording starts. False:
 * out of memory. */
bool vpy_own_code_begin(void);

/* Set in a thread of vestige's own, which is no part of the program. */
extern _Thread_local bool vpy_thread_is_ours;

bool vpy_code_is_own(PyObject *code);
bool vpy_code_is_launcher(PyObject *code);
bool vpy_code_is_runner(PyObject *code);

bool vpy_file_is_own(const char *file, uint32_t length);
bool vpy_file_is_launcher(const char *file, uint32_t length);

/* How many bytes at the start of a file's name are a folder of sys.path. */
uint32_t vpy_search_path_prefix(const char *file, uint32_t length);

#pragma GCC visibility pop
#endif
