/* Storages: the memory that operators were given, and the memory in which a
 * program's modules and optimizers keep their values. This header specifies the
 * records (VST_ESCAPE_STORAGES) from which a reader knows what memory was used
 * for. The records hold only numbers, and keep no object of the program alive.
 */
#ifndef VESTIGE_STORAGE_H
#define VESTIGE_STORAGE_H

#include "record.h"
#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The payload is pairs of words, at most VST_STORAGES_MAX; further pairs follow
 * in the next such escape (words: kept):
 *
 *   even words  bits  0-47  address of the storage's first byte; never 0
 *               bits 56-63  role, below
 *   odd words   bytes of the storage
 *
 * An operator that has a schema has one or more such escapes behind its
 * VST_ESCAPE_OPERATOR, even if none of its inputs has a storage. An operator
 * without a schema may write to any of its inputs, whose role is then GIVEN.
 * Roles from PARAMETER on say nothing about the innermost open span. */
typedef enum vst_storage_role {
    VST_STORAGE_READ = 0,
    VST_STORAGE_WRITTEN = 1,
    VST_STORAGE_GIVEN = 2,
    VST_STORAGE_PARAMETER = 3,
    VST_STORAGE_GRADIENT = 4,
    VST_STORAGE_OPTIMIZER = 5 /* an optimizer's state */
} vst_storage_role;

#define VST_STORAGES_MAX (VST_ESCAPE_WORDS_MAX / 2)
#define VST_STORAGE_ADDRESS UINT64_C(0xffffffffffff)

static inline uint64_t vst_storage_word(uint64_t address, vst_storage_role role)
{
    return (address & VST_STORAGE_ADDRESS) | (uint64_t)role << 56;
}

/* Records a payload (specified above). Does nothing without a recording. Any
 * thread. */
VST_API void vst_record_storages(const uint64_t *payload, uint32_t words);

/* Does what vst_record_storages does, for callers that know the calling
 * thread's buffer and the number of the recording in progress. Returns false if
 * nothing was stored; the caller then calls vst_record_storages. */
static inline bool vst_storages_add(vst_buffer *buffer, uint64_t epoch,
                                    const uint64_t *payload, uint32_t words)
{
#if defined(__GNUC__)
    uint64_t *at = buffer->cursor;

    if (!VST_LIKELY(buffer->free_epoch == epoch &&
                    buffer->limit - at > (int64_t)words))
        return false;
    /* Store the payload before the word that announces it. */
    for (uint32_t i = 0; i < words; i++)
        vst_store_word(at + 1 + i, payload[i]);
    vst_store_word(at, vst_word_escape(VST_ESCAPE_STORAGES, words, 0));
    buffer->cursor = at + 1 + words;
    return true;
#else
    (void)buffer, (void)epoch, (void)payload, (void)words;
    return false;
#endif
}

#ifdef __cplusplus
}
#endif
#endif
