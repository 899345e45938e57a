/* Transforms the words of records before they are compressed, and back after
 * they are unpacked. Any thread. */
#ifndef VST_STORE_TRANSFORM_H
#define VST_STORE_TRANSFORM_H

#include <stddef.h>

/* VST_PACK_SPLIT of format.h; `to` has room for `count` bytes. */
void vst__transform_split(const void *bytes, size_t count, void *to);
void vst__transform_join(const void *bytes, size_t count, void *to);

#endif
