/* The inside of a vst_view, shared by the files that answer questions. Once it
 * is open nothing in it changes but the offset and the curves of memory, which
 * have a lock; each reader of records has a walk of its own. */
#ifndef VST_VIEW_INSIDE_H
#define VST_VIEW_INSIDE_H

#include <pthread.h>

#include "replay/costs.h"
#include "view/index.h"
#include "view/view.h"
#include "view/walk.h"

struct vst_view {
    struct vst__live *live; /* NULL: the trace does not grow */
    vst_trace *trace;
    vst__reading reading;
    vst_imports imports; /* class_of NULL: none, or not folded */
    vst_costs costs;     /* kind_of NULL: not known */
    vst_trace_info info;
    char *index_path; /* NULL: in memory */
    bool built;
    vst__stretch *stretches; /* by window, then thread */
    size_t stretch_count;
    vst_far_ends *far_ends; /* by window; NULL: none */
    vst__index index;
    int64_t offset_ns;
    /* So many words are read for a window, and for a span; tests read less. */
    uint64_t window_words_max, span_words_max;
    /* Guards a packed trace, which only one thread may read at a time, and
     * `memory`. */
    pthread_mutex_t lock;
    bool has_memory_tracks;
    vst__tracks memory;
};

/* Around every walk. */
void vst__view_enter(vst_view *view);
void vst__view_leave(vst_view *view);

/* The range without the offset; VST_E_ARGUMENT: it is no range. */
vst_status vst__view_clean_range(const vst_view *view,
                                 const vst_view_range *range,
                                 vst_view_range *clean);
bool vst__view_wants(const vst_view_range *range, uint32_t thread);

/* Each frame of a stack begins at a time of its own. So calls that are open at
 * the start begin a little earlier than the records do, and those that are
 * entered in the last nanosecond a little later. */
enum { VST_VIEW_EDGE_NS = 1000000 };

/* Whether a stretch has something in a range. */
bool vst__view_touches(vst_view *view, size_t stretch, int64_t from_ns,
                       int64_t to_ns);
/* About how many words a walk through a range reads. */
uint64_t vst__view_words(const vst_view *view, size_t stretch, int64_t from_ns,
                         int64_t to_ns);

/* A walk through a range of a stretch, and beyond its ends as far as it takes.
 */
typedef struct vst__pass {
    vst_view *view;
    vst__walk walk;
    vst__open *open; /* of checkpoints */
    size_t open_capacity;
    vst_progress_fn progress;
    void *progress_ctx;
    uint64_t words, words_total;
    int64_t next_progress_ns;
} vst__pass;

vst_status vst__pass_init(vst__pass *pass, vst_view *view);
void vst__pass_free(vst__pass *pass);
/* Begins at the last checkpoint before from_ns. */
vst_status vst__pass_open(vst__pass *pass, size_t stretch, int64_t from_ns,
                          int64_t to_ns);
/* The next batch; *ends: what follows is behind to_ns. */
vst_status vst__pass_next(vst__pass *pass, int64_t to_ns, bool *ends);
/* Whether what is open after a batch is a span of its row: one that BEGIN
 * opened may turn out to lie beside the stack when it ends. */
bool vst__pass_is_on_stack(const vst__pass *pass,
                           const vst__index_thread *thread,
                           const vst__open *open);
/* How long spans of a depth took in the last batch, of those that lie in a
 * range. */
int64_t vst__pass_time(const vst__pass *pass, uint32_t depth, int64_t from_ns,
                       int64_t to_ns);
/* Finds the end of a span of the stack by its row and start (view_span.c). */
vst_status vst__view_find_end(vst_view *view, vst_view_span *span,
                              vst_error *error);
/* view_replay.c: a span, and which part of a stretch has its record. */
typedef struct vst__view_wanted {
    int64_t start_ns, end_ns;
    vst_id id;
    uint32_t depth;
    bool beside;
} vst__view_wanted;

/* Replays that part and fills what the span holds: its arguments, what it
 * allocated and its own time. Nothing changes if it is not there. */
vst_status vst__view_replay(vst__pass *pass, size_t stretch,
                            const vst__view_wanted *wanted, int64_t from_ns,
                            int64_t to_ns, vst_view_span *span);
vst_status vst__view_keep_args(vst_view_span *span, const char *args,
                               size_t count);
/* Fills error, and the errno of what could not be read. */
vst_status vst__pass_error(const vst__pass *pass, vst_status status,
                           vst_error *error);

#endif
