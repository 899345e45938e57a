/* Files that exist completely or not at all: written under a temporary name
 * next to their own, which they get when they are complete. An existing file
 * stays until then, so it may be the file that is read from. Any thread. */
#ifndef VST_STORE_WHOLE_H
#define VST_STORE_WHOLE_H

#include <stdbool.h>

#include <vestige/status.h>

/* Writes the file's content. The caller closes or removes the file. */
typedef vst_status (*vst__fill_fn)(void *ctx, int fd, vst_error *error);

/* Returns VST_E_EXISTS if the file exists and overwrite is false. */
vst_status vst__write_whole(const char *path, bool overwrite, vst__fill_fn fill,
                            void *ctx, vst_error *error);

#endif
