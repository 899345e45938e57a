/* Memory of columns, used again: fresh pages cost more than what is written to
 * them. A stream and the arrays it gave away hold it together, and the last
 * holder frees it. Buffers are those of a batch of the usual size; any thread
 * may give one back. */
#ifndef VST_TABLES_BUFFERS_H
#define VST_TABLES_BUFFERS_H

#include <stddef.h>

typedef enum vst__buffer_kind {
    VST_BUFFER_WIDE,   /* 8 bytes a row */
    VST_BUFFER_NARROW, /* 4 bytes a row, and one more */
    VST_BUFFER_BITS,
    VST_BUFFER_KINDS
} vst__buffer_kind;

typedef struct vst__buffers vst__buffers;

vst__buffers *vst__buffers_create(void); /* NULL: no memory */
vst__buffers *vst__buffers_hold(vst__buffers *buffers);
void vst__buffers_let_go(vst__buffers *buffers); /* NULL is nothing */
/* The stream ends: what comes back from now on is freed. */
void vst__buffers_close(vst__buffers *buffers);

/* Holds anything; NULL: no memory. */
void *vst__buffers_take(vst__buffers *buffers, vst__buffer_kind kind);
void vst__buffers_give(vst__buffers *buffers, vst__buffer_kind kind,
                       void *memory); /* NULL is nothing */

#endif
