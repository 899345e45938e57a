/* Corrects checksums of files after changes. */
#ifndef VST_FUZZ_SUMS_H
#define VST_FUZZ_SUMS_H

#include <string.h>
#include <zlib.h>

#include "store/format.h"

/* Corrects a header's checksum, which covers the `checksum` bytes before it. */
static inline void fix_checksum(unsigned char *at, size_t checksum)
{
    uint32_t sum = (uint32_t)crc32(0, at, (uInt)checksum);

    memcpy(at + checksum, &sum, sizeof sum);
}

/* Corrects the checksums of a packed file's frame, with `left` bytes up to the
 * file's end. */
static inline void fix_frame(unsigned char *at, size_t left)
{
    const size_t summed = offsetof(vst_pack_frame, checksum);
    vst_pack_frame head;

    memcpy(&head, at, sizeof head);
    left -= sizeof head;
    if (left > head.packed_size)
        left = head.packed_size;
    head.checksum = (uint32_t)crc32(crc32(0, at, (uInt)summed),
                                    at + sizeof head, (uInt)left);
    memcpy(at, &head, sizeof head);
}

#endif
