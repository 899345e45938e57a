/* The state of a vst_view. Once a view is open, nothing in it changes but the
 * offset. */
#ifndef VST_VIEW_STATE_H
#define VST_VIEW_STATE_H

#include <pthread.h>

#include "replay/costs.h"
#include "view/index.h"
#include "view/view.h"
#include "view/walk.h"

struct vst_view {
    struct vst__live *live; /* NULL: the trace does not grow */
    vst_trace *trace;
    vst__reading reading;
    /* class_of is NULL if there are none, or they are not folded */
    vst_imports imports;
    vst_costs costs; /* kind_of is NULL if the costs are not known */
    vst_trace_info info;
    char *index_path; /* NULL: in memory */
    bool built;
    vst__stretch *stretches; /* by window, then thread */
    size_t stretch_count;
    vst_far_ends *far_ends; /* by window; NULL: none */
    vst__index index;
    int64_t offset_ns;
    /* Most words that are read for a window, and for a span; tests set less. */
    uint64_t window_words_max, span_words_max;
    /* Guards the reading of the history of memory, and a packed trace, which
     * only one thread may read at a time. */
    pthread_mutex_t lock;
};

#endif
