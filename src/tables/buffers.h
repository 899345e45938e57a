/* Memory of columns is used again, because the first write to fresh pages costs
 * more than filling a column. A stream and the arrays that it gave away hold a
 * vst__buffers together, and the last holder frees it. Buffers have the size
 * for a usual batch; any thread may give one back. */
#ifndef VST_TABLES_BUFFERS_H
#define VST_TABLES_BUFFERS_H

#include <stddef.h>

typedef enum vst__buffer_kind {
    VST_BUFFER_WIDE,   /* 8 bytes a row */
    VST_BUFFER_NARROW, /* 4 bytes a row, and 4 bytes for the end of the last row
                        */
    VST_BUFFER_BITS,
    VST_BUFFER_KINDS
} vst__buffer_kind;

typedef struct vst__buffers vst__buffers;

vst__buffers *vst__buffers_create(void); /* returns NULL if memory ran out */
vst__buffers *vst__buffers_hold(vst__buffers *buffers);
void vst__buffers_let_go(vst__buffers *buffers); /* ignores NULL */
/* Ends the stream: buffers that come back from now on are freed. */
void vst__buffers_close(vst__buffers *buffers);

/* Returns a buffer with arbitrary content, or NULL if memory ran out. */
void *vst__buffers_take(vst__buffers *buffers, vst__buffer_kind kind);
void vst__buffers_give(vst__buffers *buffers, vst__buffer_kind kind,
                       void *memory); /* ignores NULL */

#endif
