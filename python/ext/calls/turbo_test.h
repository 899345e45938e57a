/* turbo_test.c: whether the turbo engine works on this interpreter. */
#ifndef VPY_TURBO_TEST_H
#define VPY_TURBO_TEST_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)
/* Returns why the turbo engine does not work, or NULL if it works. Tests once;
 * later calls return the same answer. */
const char *vpy_turbo_test(void);
/* turbo_test_callables.c: a part of it. */
bool vpy_turbo_test_callables(void);
#pragma GCC visibility pop
#endif
