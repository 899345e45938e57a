/* Reads the facts of an operator (see <vestige/operator.h>). */
#ifndef VST_REPLAY_OPERATOR_H
#define VST_REPLAY_OPERATOR_H

#include <vestige/operator.h>
#include <vestige/span.h>

#include "base/text.h"

/* Facts that a reader may want in addition to those that files show. */
typedef struct vst__operator_wish {
    /* lists of tensors with all their items; a member "Tensors" with the
     * address of each tensor; and "Thread id", the thread's number as the
     * framework counts */
    bool tensors;
    bool keywords; /* a member "Keyword inputs" with named inputs as text */
} vst__operator_wish;

/* Reads only the numbers of a VST_ESCAPE_OPERATOR's payload. */
void vst__operator_read_head(const uint64_t *payload, uint32_t words,
                             vst_operator *op);
/* Reads the payload of a VST_ESCAPE_OPERATOR: its numbers, and the other facts
 * as JSON members, each preceded by ", ". Returns false if memory ran out. */
bool vst__operator_read(const uint64_t *payload, uint32_t words,
                        vst__operator_wish wish, vst_operator *op,
                        vst__text *text);

#endif
