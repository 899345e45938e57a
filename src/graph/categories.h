/* Categories of memory: each storage, and each version of a storage that
 * operators wrote to, has a category. Also rows of memory in use over time, by
 * category. One thread at a time. */
#ifndef VST_GRAPH_CATEGORIES_H
#define VST_GRAPH_CATEGORIES_H

#include "graph/flow.h"

/* Numbered as in torch's files. */
typedef enum vst__category {
    VST_CATEGORY_PARAMETER,
    VST_CATEGORY_OPTIMIZER,
    VST_CATEGORY_INPUT,
    VST_CATEGORY_TEMPORARY,
    VST_CATEGORY_ACTIVATION,
    VST_CATEGORY_GRADIENT,
    VST_CATEGORY_AUTOGRAD,
    VST_CATEGORY_UNKNOWN,
    VST_CATEGORIES
} vst__category;

extern const char *const vst__category_names[VST_CATEGORIES];

typedef enum vst__memory_action {
    VST_ACTION_PREEXISTING = 1,
    VST_ACTION_CREATE = 2,
    /* makes two rows: for the old version and for the new */
    VST_ACTION_INCREMENT_VERSION = 3,
    VST_ACTION_DESTROY = 4
} vst__memory_action;

#define VST_TIME_BEFORE INT64_C(-1) /* existed before the recording */

typedef struct vst__memory_row {
    int64_t time_ns;
    int64_t bytes; /* negative if memory was freed */
    uint8_t action, category;
} vst__memory_row;

/* Rows in order of time. All zero: no rows. */
typedef struct vst__memory_rows {
    vst__memory_row *rows;
    size_t count, capacity;
} vst__memory_rows;

/* Reads the rows of a window. If a framework reported its blocks, only these
 * are counted, because they lie inside the system's blocks. If the trace does
 * not say which storages operators were given, blocks freed during the
 * recording are TEMPORARY and the others UNKNOWN. */
vst_status vst__memory_rows_read(vst__memory_rows *rows, vst_trace *trace,
                                 int window, vst_error *error);
void vst__memory_rows_free(vst__memory_rows *rows);

/* categories.c: returns the category of each version of each key, from
 * key.first on; the caller frees the array. NULL if memory ran out. */
uint8_t *vst__flow_classify(vst__flow *flow);

static inline uint8_t vst__category_of(const vst__flow *flow,
                                       const uint8_t *versions, uint32_t key,
                                       uint32_t version)
{
    const vst__flow_key *of = &flow->keys[key];

    return of->category != VST_CATEGORY_UNKNOWN ? of->category
                                                : versions[of->first + version];
}

#endif
