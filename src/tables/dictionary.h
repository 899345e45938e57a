/* Distinct texts, numbered as they come: what a column of names refers to. It
 * only grows; a batch refers to a snapshot of it, which all batches share until
 * there are more texts. A dictionary belongs to its stream, a snapshot to the
 * holders of arrays of it, on any thread. */
#ifndef VST_TABLES_DICTIONARY_H
#define VST_TABLES_DICTIONARY_H

#include "base/intern.h"
#include "tables/tables.h"

struct vst__snapshot;

/* All zero before the first time. */
typedef struct vst__dictionary {
    vst__intern *known;
    int32_t *ends; /* of each text among the bytes */
    char *bytes;
    size_t count, end_capacity;
    size_t byte_count, byte_capacity;
    char *line; /* a text that is put together of parts */
    size_t line_count, line_capacity;
    struct vst__snapshot *snapshot; /* the newest, NULL: none */
} vst__dictionary;

/* The number of a text; what is not UTF-8 in it is replaced. */
vst_status vst__dictionary_add(vst__dictionary *dictionary, const char *bytes,
                               size_t count, int32_t *number);
/* The same of one of several parts: begin, put each, then finish. */
void vst__dictionary_begin(vst__dictionary *dictionary);
vst_status vst__dictionary_put(vst__dictionary *dictionary, const char *bytes,
                               size_t count);
vst_status vst__dictionary_finish(vst__dictionary *dictionary, int32_t *number);

/* All texts so far, as an array of its own. */
vst_status vst__dictionary_array(vst__dictionary *dictionary,
                                 vst_arrow_array *array);
void vst__dictionary_free(vst__dictionary *dictionary);

#endif
