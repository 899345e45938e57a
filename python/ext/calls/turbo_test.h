/* turbo_test.c: whether the turbo engine does here what it must. */
#ifndef VPY_TURBO_TEST_H
#define VPY_TURBO_TEST_H

#pragma GCC visibility push(hidden)
/* Why it does not, or NULL. Once that is known, it is not tested again. */
const char *vpy_turbo_test(void);
#pragma GCC visibility pop
#endif
