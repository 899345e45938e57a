/* Operators: spans of a framework's own functions, which any thread runs, with
 * or without the language's lock. This header specifies what is recorded of an
 * operator in addition to its enter and exit (VST_ESCAPE_OPERATOR): numbers
 * that a hook can store as it finds them. The reader turns the numbers into
 * text. */
#ifndef VESTIGE_OPERATOR_H
#define VESTIGE_OPERATOR_H

#include "record.h"
#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The payload has no word (nothing is known), two, or more:
 *
 *   word 0      sequence number, -1: none. It links an operator to the one that
 *               computes its gradient
 *   word 1      bits  0-23  the thread, as the framework numbers it
 *               bits 24-47  the thread of the forward operator, 0: none
 *               bits 48-55  scope: the kind of function (VST_SCOPE_)
 *   words 2...  bytes: facts, one after the other, each a tag and the data
 *               that the tag announces; padded with VST_FACT_END
 *
 * Facts up to VST_FACT_LIST_TEXT are inputs, in order. A count or size is a
 * varint (7 bits a byte, low ones first, the top bit says that more follow); an
 * integer is a varint of (n << 1) ^ (n >> 63); text is a count and bytes; a
 * double is 8 bytes. */
typedef enum vst_fact {
    VST_FACT_END = 0,
    VST_FACT_OTHER = 1, /* an input of a kind that has no encoding here */
    /* text: type of the elements; count: dimensions, then so many integers;
     * count: strides, so many integers */
    VST_FACT_TENSOR = 2,
    VST_FACT_TENSORS = 3, /* count, then so many TENSOR or OTHER */
    VST_FACT_TENSORS_LONG = 4,
    VST_FACT_INTEGER = 5,
    VST_FACT_DOUBLE = 6,
    VST_FACT_BOOL = 7,       /* a byte */
    VST_FACT_TEXT = 8,       /* a number of another kind, as text */
    VST_FACT_INTEGERS = 9,   /* count, integers */
    VST_FACT_DOUBLES = 10,   /* count, doubles */
    VST_FACT_BOOLS = 11,     /* count, bytes */
    VST_FACT_LIST_TEXT = 12, /* a list of other values, as text */
    /* text: name; then INTEGER, DOUBLE, BOOL, TEXT, TEXTS or INTEGERS with its
     * tag */
    VST_FACT_NAMED = 13,
    VST_FACT_FLOPS = 14, /* count: floating point operations */
    VST_FACT_OVERLOAD =
        15, /* text: the overload's name, among operators of one name */
    VST_FACT_RECORD = 16, /* count: the framework's number of this call */
    /* the operator had inputs, but there was no room for them */
    VST_FACT_TOO_LONG = 17,
    VST_FACT_TEXTS = 18, /* count, then so many texts */
    /* count, then for each tensor among the inputs, including tensors in lists:
     * 8 bytes address of the tensor, 8 bytes address of its storage, a byte
     * each for its layout, the kind of its device, flags (VST_TENSOR_) and the
     * type of its elements, as the framework numbers them; integer: which
     * device. Always last, because readers that do not know this fact stop
     * there */
    VST_FACT_TENSORS_AT = 19,
    /* text: named inputs that files do not show, written like the language's
     * literal of a dict */
    VST_FACT_KEYWORDS = 20
} vst_fact;

enum {
    VST_OPERATOR_HEAD_WORDS = 2,
    VST_TENSOR_REQUIRES_GRAD = 1,
    /* Lists with more tensors than this are shown without their items. */
    VST_TENSORS_SHOWN_MAX = 30,
    /* Scopes, numbered like torch's. */
    VST_SCOPE_FUNCTION = 0,
    VST_SCOPE_BACKWARD = 1,
    VST_SCOPE_USER = 7
};

static inline uint64_t vst_operator_word(uint64_t thread, uint64_t forward,
                                         uint64_t scope)
{
    return (thread & 0xffffffu) | (forward & 0xffffffu) << 24 |
           (scope & 0xffu) << 48;
}

/* Returns the id of a definition in the recording in progress, or 0 if there is
 * none. Like vst_recording_define_id, for callers without a vst_recording. */
VST_API vst_id vst_recording_define(const vst_definition *definition);

/* Records that the calling thread enters an operator, with the payload
 * specified above. An instance other than 0 says that the span need not nest
 * (VST_ESCAPE_BEGIN). Returns false if nothing is being recorded; the caller
 * then records no exit either. */
VST_API bool vst_record_operator(vst_id id, uint32_t instance,
                                 const uint64_t *payload, uint32_t words);
/* Records that the calling thread leaves an operator (kind: VST_EXIT or
 * VST_RAISE), with the id and instance of its enter. */
VST_API void vst_record_operator_exit(vst_kind kind, vst_id id,
                                      uint32_t instance);
/* Makes a framework's library call `instead` where it calls a function through
 * the slot of this name, which the library itself defines; NULL restores the
 * original. There is one such replacement at a time. Returns whether the
 * library has the slot. One thread at a time. */
VST_API bool vst_call_instead(const char *name, void *original, void *instead);

/* Does what vst_record_operator does, for callers that know the calling
 * thread's buffer, the number of the recording in progress and the time.
 * Returns false if nothing was stored; the caller then calls
 * vst_record_operator. */
static inline bool vst_operator_enter(vst_buffer *buffer, uint64_t epoch,
                                      vst_ticks now, vst_id id,
                                      const uint64_t *payload, uint32_t words)
{
#if defined(__GNUC__)
    uint64_t *at = buffer->cursor;
    uint64_t delta = now - buffer->last;

    if (!VST_LIKELY(buffer->free_epoch == epoch &&
                    buffer->limit - at > (int64_t)words + 1 &&
                    delta >> 32 == 0))
        return false;
    buffer->last = now;
    buffer->cursor = buffer->floor = at + 2 + words;
    /* Store the payload before the word that announces it. */
    vst_store_word(at, vst_word(VST_ENTER, id, (uint32_t)delta));
    for (uint32_t i = 0; i < words; i++)
        vst_store_word(at + 2 + i, payload[i]);
    vst_store_word(at + 1, vst_word_escape(VST_ESCAPE_OPERATOR, words, 0));
    return true;
#else
    (void)buffer, (void)epoch, (void)now, (void)id, (void)payload, (void)words;
    return false;
#endif
}

static inline bool vst_operator_exit(vst_buffer *buffer, uint64_t epoch,
                                     vst_ticks now, vst_kind kind, vst_id id)
{
#if defined(__GNUC__)
    uint64_t *at = buffer->cursor;
    uint64_t delta = now - buffer->last;

    if (!VST_LIKELY(buffer->free_epoch == epoch && at < buffer->limit &&
                    delta >> 32 == 0))
        return false;
    buffer->last = now;
    buffer->cursor = at + 1;
    vst_store_word(at, vst_word(kind, id, (uint32_t)delta));
    return true;
#else
    (void)buffer, (void)epoch, (void)now, (void)kind, (void)id;
    return false;
#endif
}

/* Records that a span with an instance, which another thread began, ends now.
 * Any thread. */
VST_API void vst_record_far_end(vst_id id, uint32_t instance);

#ifdef __cplusplus
}
#endif
#endif
