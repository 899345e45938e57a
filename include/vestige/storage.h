/* Storages: which memory operators were given, and what a program's modules and
 * optimizers keep in it. This header is the specification of what is recorded
 * of them (VST_ESCAPE_STORAGES), so that memory can be told apart by what it is
 * for. Numbers only: nothing of the program's is kept. */
#ifndef VESTIGE_STORAGE_H
#define VESTIGE_STORAGE_H

#include "record.h"
#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The payload is pairs of words, at most VST_STORAGES_MAX; what does not fit
 * goes on in the next of these escapes:
 *
 *   even words  bits  0-47  address of the storage's first byte; never 0
 *               bits 56-63  role, below
 *   odd words   bytes of the storage
 *
 * An operator that has a schema has one or more behind its VST_ESCAPE_OPERATOR,
 * also if none of its inputs has a storage; of an operator without one, which
 * may write to any, the role is GIVEN. Roles from PARAMETER on say nothing
 * about the span on top. */
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

/* Records a payload as above. Does nothing without a recording. Any thread. */
VST_API void vst_record_storages(const uint64_t *payload, uint32_t words);

/* The same for callers that know the calling thread's buffer and the number of
 * the recording in progress. False: nothing was stored; call the function
 * above. */
static inline bool vst_storages_add(vst_buffer *buffer, uint64_t epoch,
                                    const uint64_t *payload, uint32_t words)
{
#if defined(__GNUC__)
    uint64_t *at = buffer->cursor;

    if (!VST_LIKELY(buffer->free_epoch == epoch &&
                    buffer->limit - at > (int64_t)words))
        return false;
    /* The payload before the word that announces it. */
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
