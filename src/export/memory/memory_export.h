/* Shared by the formats of a memory history: the job of writing one file, and
 * texts of frames. One thread at a time. */
#ifndef VST_EXPORT_MEMORY_EXPORT_H
#define VST_EXPORT_MEMORY_EXPORT_H

#include "export/output/json.h"
#include "export/output/output.h"
#include "memory/report.h"
#include "memory/summary.h"

typedef struct vst__memory_job {
    vst_trace *const *traces;
    size_t count;
    vst_memory_report_options options;
    vst__output *output;
    vst_error *error;
    /* Progress of one pass over one trace, as a part of the total. */
    vst_progress_fn progress;
    void *progress_ctx;
    unsigned passes; /* over each trace: 1, or 2 with a replay */
    double before, part;
} vst__memory_job;

typedef struct vst__memory_format {
    const char *suffix;
    unsigned passes;
    vst_status (*write)(vst__memory_job *job);
} vst__memory_format;

extern const vst__memory_format vst__memory_pickle;
extern const vst__memory_format vst__memory_json;
extern const vst__memory_format vst__memory_csv;
extern const vst__memory_format vst__memory_folded;
extern const vst__memory_format vst__memory_html;

/* Summarizes the i-th trace in a first pass; `freed` is as in
 * vst__memory_summarize. */
vst_status vst__memory_job_summarize(vst__memory_job *job, size_t i,
                                     vst__serials *freed,
                                     vst_memory_summary **summary);
/* Replays the i-th trace in a second pass. */
vst_status vst__memory_job_replay(vst__memory_job *job, size_t i,
                                  const vst_memory_sink *sink);

/* ---- memory_text.c ------------------------------------------------------- */

static inline const char *vst__memory_file(const vst_memory_frame *frame,
                                           size_t *length)
{
    *length = frame->file_len - frame->file_skip;
    return frame->file + frame->file_skip;
}

/* Returns the node of an event's stack. */
static inline uint32_t vst__memory_node_of(const vst_memory_summary *s,
                                           const vst_memory_event *event)
{
    uint32_t node =
        s->node_of_stack[event->stack < s->stack_count ? event->stack : 0];

    return node < s->node_count ? node : 0;
}

/* Each frame as a finished text: "file:line function", without characters that
 * would need escaping in a folded stack inside the quotes of CSV. */
typedef struct vst__memory_texts {
    const char **texts;
    size_t *lengths;
    vst__arena arena;
} vst__memory_texts;

enum {
    VST_TEXT_FOLDED = 1, /* "function (file:line)", with a shortened file */
    VST_TEXT_QUOTED = 2  /* double the quotes */
};

vst_status vst__memory_texts_make(vst__memory_texts *texts,
                                  const vst_memory_summary *summary,
                                  unsigned style);
void vst__memory_texts_free(vst__memory_texts *texts);
/* Writes a JSON number, rounded to an integer. */
void vst__memory_put_round(vst__output *output, double value);
/* Writes a JSON string that is safe inside a page: without <. */
void vst__memory_put_string(vst__output *output, const char *bytes,
                            size_t count);

/* Writes "pid": … and other facts of a trace and the totals of its summary,
 * without braces. */
void vst__memory_put_facts(vst__output *output, const vst_trace *trace,
                           const vst_memory_summary *summary);

/* ---- memory_paths.c ------------------------------------------------------ */

/* Formats that write whole stacks limit the number of frames of each, because
 * recursion would make a file grow with the square of the depth. A stack that
 * is written for each allocation keeps its outermost and its innermost frames.
 * A stack that is written once is followed by "[deeper frames]", the sum of
 * everything deeper. */
enum {
    VST_MEMORY_OUTER_MAX = 64,
    VST_MEMORY_INNER_MAX = 192,
    VST_MEMORY_DEPTH_MAX = 1024
};
#define VST_MEMORY_LEFT_OUT "[frames left out]"
#define VST_MEMORY_DEEPER "[deeper frames]"

typedef struct vst__memory_paths {
    const vst_memory_summary *summary;
    uint32_t outer_max, inner_max;
    uint32_t *depths; /* by node: the length of its stack */
    uint32_t *outer;  /* by node: the stack of its outermost frames */
    bool is_cut;      /* at least one stack was cut */
    /* The stack that was found last, outermost first; 0 stands for frames that
     * are left out. */
    uint32_t *nodes;
    size_t count;
} vst__memory_paths;

vst_status vst__memory_paths_make(vst__memory_paths *paths,
                                  const vst_memory_summary *summary,
                                  uint32_t outer_max, uint32_t inner_max);
void vst__memory_paths_find(vst__memory_paths *paths, uint32_t node);
/* Writes the stack, outermost first, separated by semicolons. */
void vst__memory_stack_text(vst__output *output, vst__memory_paths *paths,
                            const vst__memory_texts *texts, uint32_t node);
/* Frees the paths. If a stack was cut, sets the cut depth in the job's options.
 */
void vst__memory_paths_end(vst__memory_paths *paths,
                           const vst__memory_job *job);

#endif
