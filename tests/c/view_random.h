/* Random traces for the tests of views: some like those of programs, some that
 * hold whatever records there can be, in any order. */
#ifndef VST_TESTS_VIEW_RANDOM_H
#define VST_TESTS_VIEW_RANDOM_H

#include "trace_builder.h"

typedef struct view_random {
    uint64_t state;
    unsigned threads, windows;
    unsigned pages;  /* of a thread's chunk */
    unsigned chunks; /* of a thread in a window */
    /* In a thousand, how often a record is not the enter or exit of a call. */
    unsigned odd;
    bool more_kinds; /* of such records: instants, ends inside of calls */
    bool far_ends;
    uint64_t keep_ns; /* of the header */
} view_random;

uint64_t random_number(view_random *random);
void random_trace(builder *b, view_random *random);
/* Writes it to a file; path is of mkstemp's kind. */
void random_file(const builder *b, char *path);

#endif
