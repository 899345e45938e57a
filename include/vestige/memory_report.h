/* What a memory history comes to: the high-water mark and what held it, what
 * was never freed, what was freed at once, by stack; and the files that it can
 * be written as. One thread at a time uses a trace; a summary is constant. */
#ifndef VESTIGE_MEMORY_REPORT_H
#define VESTIGE_MEMORY_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"
#include "status.h"
#include "trace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum vst_memory_view {
    VST_MEMORY_TOTAL = 0, /* all that was allocated */
    VST_MEMORY_PEAK = 1,  /* held at the high-water mark */
    VST_MEMORY_LEAKS = 2, /* alive at the end */
    /* Freed by the thread that allocated it while it was one of the last k that
     * this thread had allocated. Cannot be told from samples. */
    VST_MEMORY_TEMPORARY = 3,
    /* Address space that was reserved when most of it was, and never in use: no
     * part of the others. */
    VST_MEMORY_RESERVED = 4,
    VST_MEMORY_VIEWS = 5
} vst_memory_view;

/* "total", "peak", "leaks", "temporary", "reserved". */
VST_API const char *vst_memory_view_name(vst_memory_view view);

/* Whole numbers, or estimates if only some allocations were sampled. Then bytes
 * are wrong by about the root of their variance, which is else 0. */
typedef struct vst_memory_amount {
    double count, bytes, variance;
} vst_memory_amount;

/* A frame as it is shown. Strings end in NUL too. */
typedef struct vst_memory_frame {
    const char *name, *file;
    uint32_t name_len, file_len;
    uint32_t file_skip; /* as in vst_definition */
    uint32_t line;      /* 0: unknown */
    bool is_native;
} vst_memory_frame;

/* A stack: a frame on top of parent's. The first one is the empty stack. */
typedef struct vst_memory_node {
    uint32_t parent; /* less than its own index, but for the first */
    uint32_t frame;
    vst_memory_amount own[VST_MEMORY_VIEWS];
    vst_memory_amount inclusive[VST_MEMORY_VIEWS];
} vst_memory_node;

/* A stretch of time: the most that was live in it and when, and what was live
 * at its end. */
typedef struct vst_memory_point {
    int64_t max_ns, last_ns;
    double max_bytes, last_bytes;
} vst_memory_point;

typedef struct vst_memory_thread_sums {
    uint32_t thread;
    vst_memory_amount allocated, freed; /* by it */
} vst_memory_thread_sums;

/* All allocations made at a line: of the innermost frame of the language, or of
 * the innermost at all where there is none. */
typedef struct vst_memory_line {
    uint32_t frame; /* one of those there */
    vst_memory_amount own[VST_MEMORY_VIEWS];
} vst_memory_line;

enum {
    VST_MEMORY_KINDS = 32,
    /* [0]: of no bytes; [i]: of 2^(i-1) up to less than 2^i bytes */
    VST_MEMORY_SIZES = 65,
    VST_MEMORY_POINTS_MAX = 2048,
    VST_MEMORY_TEMPORARY_MAX = 65536
};

typedef struct vst_memory_summary {
    bool is_sampled;
    uint32_t temporary; /* k */
    uint64_t records;   /* that were read */
    uint64_t apart;     /* of a framework's allocator, beside: not summed */
    bool of_framework;  /* there are no others: these are summed */
    uint64_t frees;
    uint64_t unknown_frees; /* of what was not seen to be allocated */
    uint64_t lost_frees;    /* that were not seen */
    uint64_t lost;          /* records that are known to be missing */
    uint64_t unlocked;      /* allocations by threads without the lock … */
    uint64_t stale;         /* … whose stack is the last one known */
    int64_t first_ns, last_ns, peak_ns; /* 0 without records */
    vst_memory_amount views[VST_MEMORY_VIEWS];
    double count_variance[VST_MEMORY_VIEWS];
    vst_memory_amount kinds[VST_MEMORY_KINDS]; /* allocated by each */
    vst_memory_amount sizes[VST_MEMORY_SIZES];
    const vst_memory_point *points;
    size_t point_count;
    /* What of the process was in RAM. 0, or none: it is not known. */
    struct {
        uint64_t peak;   /* as the system tells it, or the highest sample */
        uint64_t before; /* of the first sample, what were no pages of files */
        int64_t sampled_ns; /* the highest sample, what of it were pages of … */
        uint64_t sampled, sampled_files; /* … files … */
        double sampled_live;             /* … and what was live then */
        const vst_memory_point *points;
        size_t point_count;
    } resident;
    const vst_memory_thread_sums *threads;
    size_t thread_count;
    const vst_memory_frame *frames;
    size_t frame_count;
    const vst_memory_node *nodes;
    size_t node_count;
    const vst_memory_line *lines;
    size_t line_count;
    /* By vst_stack_id; UINT32_MAX: nothing was allocated with it. */
    const uint32_t *node_of_stack;
    size_t stack_count; /* ids, with 0 */
} vst_memory_summary;

typedef struct vst_memory_report_options {
    int window;           /* VST_WINDOW_ALL as a rule */
    uint32_t temporary;   /* k; 0: 1 */
    vst_memory_view view; /* that .folded shows */
    uint32_t *cut_depth;  /* as in vst_export_options: of .csv, .folded and
                           * .pickle; may be NULL */
} vst_memory_report_options;

/* VST_E_STATE: the trace has no records of memory. The summary does not need
 * the trace any more. */
VST_API vst_status vst_trace_summarize_memory(
    vst_trace *trace, const vst_memory_report_options *options,
    vst_memory_summary **summary, vst_error *error);
VST_API void vst_memory_summary_free(vst_memory_summary *summary);

/* Writes histories in the format that the suffix of path names (.pickle, .json,
 * .csv, .folded, .html, and each with .gz), through a temporary file that is
 * renamed at the end. options may be NULL. VST_E_ARGUMENT: no format has this
 * suffix. Progress is told to the function set for the first trace. */
VST_API vst_status vst_traces_export_memory(
    vst_trace *const *traces, size_t count, const char *path,
    const vst_memory_report_options *options, vst_error *error);

#ifdef __cplusplus
}
#endif
#endif
