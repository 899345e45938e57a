/* Passes over the records of a view, for the files that answer questions. Each
 * pass has a walk of its own. One thread at a time uses a pass. */
#ifndef VST_VIEW_PASS_H
#define VST_VIEW_PASS_H

#include "view/view_state.h"

/* Call before and after every walk. */
void vst__view_enter(vst_view *view);
void vst__view_leave(vst_view *view);

/* Converts a range to times without the offset. Returns VST_E_ARGUMENT if it is
 * invalid. */
vst_status vst__view_clean_range(const vst_view *view,
                                 const vst_view_range *range,
                                 vst_view_range *clean);
bool vst__view_wants(const vst_view_range *range, uint32_t thread);

/* Each frame of a stack needs a start of its own. So calls that are open at the
 * start begin up to this much before the first record, and calls that are
 * entered in the last nanosecond begin after it. */
enum { VST_VIEW_EDGE_NS = 1000000 };

/* Returns whether a stretch has something in a range. */
bool vst__view_touches(vst_view *view, size_t stretch, int64_t from_ns,
                       int64_t to_ns);
/* Returns about how many words a walk through a range reads. */
uint64_t vst__view_words(const vst_view *view, size_t stretch, int64_t from_ns,
                         int64_t to_ns);

/* A walk through a range of a stretch, and as far beyond its ends as necessary.
 */
typedef struct vst__pass {
    vst_view *view;
    vst__walk walk;
    vst__open *open; /* frames of checkpoints */
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
/* Reads the next batch. Sets *ends if everything that follows is behind to_ns.
 */
vst_status vst__pass_next(vst__pass *pass, int64_t to_ns, bool *ends);
/* Returns whether a frame that is open after a batch is a span of its row: a
 * span that BEGIN opened may continue off the stack later. */
bool vst__pass_is_on_stack(const vst__pass *pass,
                           const vst__index_thread *thread,
                           const vst__open *open);
/* Returns the total time of the last batch's spans of a depth, as far as in a
 * range. */
int64_t vst__pass_time(const vst__pass *pass, uint32_t depth, int64_t from_ns,
                       int64_t to_ns);
/* Fills error, with the errno if the file could not be read. Returns status. */
vst_status vst__pass_error(const vst__pass *pass, vst_status status,
                           vst_error *error);

#endif
