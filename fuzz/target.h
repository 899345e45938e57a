/* A target's function for one input, called by libFuzzer (make fuzz) and by
 * driver.c with a corpus (make test). A target that finds an error ends the
 * program. One thread. */
#ifndef VST_FUZZ_TARGET_H
#define VST_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define MUST(condition)                                                        \
    ((condition) ? (void)0 : must_not(#condition, __FILE__, __LINE__))

static inline void must_not(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    abort();
}

#endif
