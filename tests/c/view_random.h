/* Random traces for the tests of views: some resemble programs, some hold any
 * possible records in any order. */
#ifndef VST_TESTS_VIEW_RANDOM_H
#define VST_TESTS_VIEW_RANDOM_H

#include "trace_builder.h"

typedef struct view_random {
    uint64_t state;
    unsigned threads, windows;
    unsigned pages;  /* pages of a thread's chunk */
    unsigned chunks; /* chunks of a thread in a window */
    /* How many of a thousand records are neither enter nor exit of a call. */
    unsigned odd;
    bool more_kinds; /* more kinds of these records: instants, ends inside
                      * calls */
    bool far_ends;
    uint64_t keep_ns; /* keep_ns of the header */
} view_random;

uint64_t random_number(view_random *random);
void random_trace(builder *b, view_random *random);
/* Writes the trace to a file; `path` is a template for mkstemp. */
void random_file(const builder *b, char *path);

#endif
