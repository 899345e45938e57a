/* Files that are there whole or not at all: written under a name beside their
 * own, which they get when all of it is written. What was there before stays
 * until then, so it may be what is read from. Any thread. */
#ifndef VST_STORE_WHOLE_H
#define VST_STORE_WHOLE_H

#include <stdbool.h>

#include <vestige/status.h>

/* Writes the file. The caller closes or removes it. */
typedef vst_status (*vst__fill_fn)(void *ctx, int fd, vst_error *error);

/* VST_E_EXISTS if there is a file already and overwrite is false. */
vst_status vst__write_whole(const char *path, bool overwrite, vst__fill_fn fill,
                            void *ctx, vst_error *error);

#endif
