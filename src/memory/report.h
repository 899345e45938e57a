/* What a memory history comes to: the high-water mark and what held it, what
 * was never freed, what was freed at once, by stack. One thread at a time uses
 * a trace; a summary is constant. */
#ifndef VST_MEMORY_REPORT_H
#define VST_MEMORY_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/memory.h>
#include <vestige/status.h>
#include <vestige/trace.h>

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

/* VST_E_STATE: the trace has no records of memory. The summary does not need
 * the trace any more. */
vst_status vst__trace_summarize_memory(vst_trace *trace,
                                       const vst_memory_report_options *options,
                                       vst_memory_summary **summary,
                                       vst_error *error);
void vst__memory_summary_free(vst_memory_summary *summary);

#endif
