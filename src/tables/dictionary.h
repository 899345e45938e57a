/* Distinct texts, numbered in the order of their arrival: the values of a
 * column of names are these numbers. A dictionary only grows; a batch refers to
 * a snapshot, which all batches share until there are more texts. A dictionary
 * belongs to its stream; a snapshot belongs to the arrays that hold it, on any
 * thread. */
#ifndef VST_TABLES_DICTIONARY_H
#define VST_TABLES_DICTIONARY_H

#include "base/intern.h"
#include "tables/tables.h"

struct vst__snapshot;

/* All zero before the first use. */
typedef struct vst__dictionary {
    vst__intern *known;
    int32_t *ends; /* end of each text among the bytes */
    char *bytes;
    size_t count, end_capacity;
    size_t byte_count, byte_capacity;
    char *line; /* a text that is being put together from parts */
    size_t line_count, line_capacity;
    struct vst__snapshot *snapshot; /* the newest; NULL: none */
} vst__dictionary;

/* Sets *number to the number of a text; invalid UTF-8 in it is replaced. */
vst_status vst__dictionary_add(vst__dictionary *dictionary, const char *bytes,
                               size_t count, int32_t *number);
/* Like add, for a text of several parts: call begin, put for each part, then
 * finish. */
void vst__dictionary_begin(vst__dictionary *dictionary);
vst_status vst__dictionary_put(vst__dictionary *dictionary, const char *bytes,
                               size_t count);
vst_status vst__dictionary_finish(vst__dictionary *dictionary, int32_t *number);

/* Makes an array of its own with all texts so far. */
vst_status vst__dictionary_array(vst__dictionary *dictionary,
                                 vst_arrow_array *array);
void vst__dictionary_free(vst__dictionary *dictionary);

#endif
