/* The rules of format.h about a single chunk header. Any thread. */
#ifndef VST_STORE_CHUNK_H
#define VST_STORE_CHUNK_H

#include <stdbool.h>

#include "store/format.h"

/* Returns the slot size of a file header, 0 if it is no possible size. */
uint32_t vst__sane_slot_size(uint32_t size);
/* Returns whether the header is one that a writer has stored completely. */
bool vst__chunk_is_valid(const vst_chunk_header *chunk);
/* Returns how many bytes of the chunk can hold anything, with its header. */
uint64_t vst__chunk_extent(const vst_chunk_header *chunk);

#endif
