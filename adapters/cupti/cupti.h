/* The collector of what NVIDIA's GPUs do, through CUPTI (device.h says what a
 * collector is). It is called "cuda". Nothing of CUDA is needed to build it: it
 * loads libcupti 12 or 13 at run time, and knows records by declarations of its
 * own (records.h).
 *
 * It has not run on a GPU yet: tests drive it with a library that stands in for
 * libcupti, and compare its reading of buffers with the real one's. */
#ifndef VST_CUPTI_H
#define VST_CUPTI_H

#pragma GCC visibility push(hidden)

/* Loads libcupti and registers the collector: recordings that begin from now on
 * use it, if their options ask for devices. `named` is the library that the
 * user names, NULL: none. Otherwise it is the one that the process has, else
 * the first of `paths` (ends with NULL), else the system's. NULL: it is
 * registered. Otherwise a line that says what is missing, which stays until the
 * next call. One thread at a time. */
const char *vst_cupti_register(const char *named, const char *const *paths);

#pragma GCC visibility pop
#endif
