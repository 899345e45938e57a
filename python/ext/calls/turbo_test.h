/* turbo_test.c: whether the turbo engine works on this interpreter. */
#ifndef VPY_TURBO_TEST_H
#define VPY_TURBO_TEST_H

#pragma GCC visibility push(hidden)
/* Why it does not work, or NULL. Tested once; later calls return the same. */
const char *vpy_turbo_test(void);
#pragma GCC visibility pop
#endif
