/* What is known of an operator (see <vestige/operator.h>), read. */
#ifndef VST_REPLAY_OPERATOR_H
#define VST_REPLAY_OPERATOR_H

#include <vestige/operator.h>
#include <vestige/span.h>

/* Grows; all zero is empty. The owner frees its bytes. */
typedef struct vst__text {
    char *bytes;
    size_t count, capacity;
    size_t head; /* of an operator: what is there of its numbers */
    bool failed; /* there was no memory for all of it */
} vst__text;

/* Of the payload of a VST_ESCAPE_OPERATOR, its numbers alone. */
void vst__operator_read_head(const uint64_t *payload, uint32_t words,
                             vst_operator *op);
/* The payload of a VST_ESCAPE_OPERATOR: its numbers, and the rest as JSON
 * members, each with ", " before it. False: out of memory. */
bool vst__operator_read(const uint64_t *payload, uint32_t words,
                        vst_operator *op, vst__text *text);

#endif
