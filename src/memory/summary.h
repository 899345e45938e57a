/* Declarations for the files of the summary. Stacks of a trace become stacks
 * for display in three steps: frames get names (summary_frames.c), stacks are
 * made of them (summary_stacks.c), and each stack gets the sums of itself and
 * all stacks above it (summary_tree.c). One thread at a time. */
#ifndef VST_MEMORY_SUMMARY_H
#define VST_MEMORY_SUMMARY_H

#include "base/intern.h"
#include "base/map64.h"
#include "memory/report.h"
#include "traceback/arena.h"
#include "traceback/names.h"

/* ---- summary_frames.c ---------------------------------------------------- */

enum {
    VST_FRAME_NONE = UINT32_MAX /* the frame is not shown */
};

typedef struct vst__memory_frames {
    const vst_trace *trace;
    vst_memory_frame *items;
    size_t count, capacity;
    vst__arena strings;
    vst__map64 language; /* function << 32 | line -> frame + 1 */
    vst__map64 native;   /* address -> place in runs << 32 | count + 1 */
    vst__intern *named;  /* native name, file and line -> frame + 1 */
    uint32_t *runs;      /* frames of native addresses, innermost first */
    size_t runs_count, runs_capacity;
    vst_module *modules; /* sorted by start, without overlaps */
    size_t module_count;
    vst__files *files;
    bool has_files;
    struct {
        uint64_t start, end;
    } evaluation[16];
    size_t evaluation_count;
} vst__memory_frames;

vst_status vst__memory_frames_begin(vst__memory_frames *frames,
                                    const vst_trace *trace);
/* Frees everything except the items and strings. */
void vst__memory_frames_end(vst__memory_frames *frames);
void vst__memory_frames_free(vst__memory_frames *frames);

/* Makes a frame that stands for something other than a function. */
vst_status vst__memory_frame_special(vst__memory_frames *frames,
                                     const char *name, uint32_t *frame);
/* *frame is VST_FRAME_NONE for a frame of the profiler itself. */
vst_status vst__memory_frame_language(vst__memory_frames *frames,
                                      const vst_stack *stack, uint32_t *frame);
/* Gives the frames of a return address, innermost first; none for the profiler
 * itself. */
vst_status vst__memory_frame_native(vst__memory_frames *frames,
                                    uint64_t address, const uint32_t **found,
                                    size_t *count);
bool vst__memory_frame_is_evaluation(const vst__memory_frames *frames,
                                     uint64_t address);
/* Returns whether the frame only shows how the program was started, at the
 * outer end. */
bool vst__memory_frame_is_launcher(const vst_memory_frame *frame);

/* ---- summary_stacks.c ---------------------------------------------------- */

typedef struct vst__memory_stacks {
    vst__memory_frames frames;
    vst_memory_node *nodes;
    size_t count, capacity;
    vst__map64 children;     /* parent << 32 | frame -> node */
    uint32_t *node_of_stack; /* node by id; UINT32_MAX if not known yet */
    uint32_t *leaf_of_stack; /* node by id, without the empty stack */
    size_t stack_count;
    vst_stack_id *chain; /* scratch */
    size_t chain_capacity;
    uint64_t *addresses; /* scratch */
    size_t addresses_capacity;
    uint32_t *shown; /* scratch */
    size_t shown_count, shown_capacity;
    uint32_t cut_frame; /* frame + 1; 0 if not made yet */
    uint32_t nowhere;   /* node of stacks without a frame; 0 if not made yet */
} vst__memory_stacks;

/* Returns how many ids are used, counted from 0. A recorder gives ids out in
 * order. In a damaged file, an id may have any value; ids that are too large
 * are ignored. */
size_t vst__memory_stack_count(const vst_trace *trace);
vst_status vst__memory_stacks_begin(vst__memory_stacks *stacks,
                                    const vst_trace *trace);
void vst__memory_stacks_end(vst__memory_stacks *stacks);
void vst__memory_stacks_free(vst__memory_stacks *stacks);
/* Returns the node of a stack; makes it if it is new. */
vst_status vst__memory_stacks_node(vst__memory_stacks *stacks, vst_stack_id id,
                                   uint32_t *node);

/* ---- summary_tree.c ------------------------------------------------------ */

void vst__memory_amount_add(vst_memory_amount *sum,
                            const vst_memory_amount *more);
void vst__memory_tree_include(vst_memory_node *nodes, size_t count);
/* Returns the innermost frame of the language; if there is none, the innermost
 * frame; if there is none, 0, which is no function. */
uint32_t vst__memory_line_frame(const vst_memory_node *nodes, size_t node,
                                const vst_memory_frame *frames);
/* *lines is malloc()ed. */
vst_status vst__memory_tree_lines(const vst_memory_node *nodes, size_t count,
                                  const vst_memory_frame *frames,
                                  size_t frame_count, vst_memory_line **lines,
                                  size_t *line_count);

/* ---- summary.c ----------------------------------------------------------- */

/* One bit for each allocation, by its serial number. */
typedef struct vst__serials {
    uint64_t *words;
    size_t capacity;
} vst__serials;

static inline bool vst__serials_has(const vst__serials *set, uint64_t serial)
{
    return serial / 64 < set->capacity &&
           (set->words[serial / 64] >> serial % 64 & 1u) != 0;
}

/* Like vst__trace_summarize_memory. If `freed` is not NULL, also notes which
 * allocations were freed; the caller frees freed->words. */
vst_status vst__memory_summarize(vst_trace *trace,
                                 const vst_memory_report_options *options,
                                 vst__serials *freed,
                                 vst_memory_summary **summary,
                                 vst_error *error);

#endif
