/* The collector "cuda" of activities on NVIDIA's GPUs, through CUPTI (device.h
 * says what a collector is). Nothing of CUDA is needed to build it: it loads
 * libcupti 12 or 13 at run time, and has its own declarations of CUPTI's
 * records (records.h).
 *
 * It has not run on a GPU yet: tests drive it with a replacement of libcupti,
 * and compare its reading of buffers with that of the real libcupti. */
#ifndef VST_CUPTI_H
#define VST_CUPTI_H

#pragma GCC visibility push(hidden)

/* Loads libcupti and registers the collector: recordings that begin from now on
 * use it, if their options ask for devices. `named` is the library that the
 * user names, or NULL. Without it, the library is the one that the process has
 * loaded, else the first of `paths` (ends with NULL) that exists, else the
 * system's. Returns NULL on success, or a line that says what is missing, which
 * is valid until the next call. One thread at a time. */
const char *vst_cupti_register(const char *named, const char *const *paths);

#pragma GCC visibility pop
#endif
