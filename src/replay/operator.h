/* What is known of an operator (see <vestige/operator.h>), read. */
#ifndef VST_REPLAY_OPERATOR_H
#define VST_REPLAY_OPERATOR_H

#include <vestige/operator.h>
#include <vestige/span.h>

#include "replay/text.h"

/* What is told of an operator beyond what files show. */
typedef struct vst__operator_wish {
    bool tensors;  /* lists of tensors have all their items, a member "Tensors"
                    * tells where each tensor lies, and "Thread id" which
                    * thread it is, as the framework counts */
    bool keywords; /* a member "Keyword inputs" has named inputs as text */
} vst__operator_wish;

/* Of the payload of a VST_ESCAPE_OPERATOR, its numbers alone. */
void vst__operator_read_head(const uint64_t *payload, uint32_t words,
                             vst_operator *op);
/* The payload of a VST_ESCAPE_OPERATOR: its numbers, and the rest as JSON
 * members, each with ", " before it. False: out of memory. */
bool vst__operator_read(const uint64_t *payload, uint32_t words,
                        vst__operator_wish wish, vst_operator *op,
                        vst__text *text);

#endif
