/* The summary of a memory history: the high-water mark and what held it, the
 * memory that was never freed, and the memory that was freed soon, by stack.
 * One thread at a time uses a trace; a summary is constant. */
#ifndef VST_MEMORY_REPORT_H
#define VST_MEMORY_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/memory.h>
#include <vestige/status.h>
#include <vestige/trace.h>

/* A number of allocations and their bytes: exact, or estimates if only some
 * allocations were sampled. The error of estimated bytes is about the root of
 * their variance; the variance of exact bytes is 0. */
typedef struct vst_memory_amount {
    double count, bytes, variance;
} vst_memory_amount;

/* A frame for display. Its strings also end in NUL. */
typedef struct vst_memory_frame {
    const char *name, *file;
    uint32_t name_len, file_len;
    uint32_t file_skip; /* see vst_definition */
    uint32_t line;      /* 0 if unknown */
    bool is_native;
} vst_memory_frame;

/* A stack: a frame on top of the parent's stack. The first node is the empty
 * stack. */
typedef struct vst_memory_node {
    /* smaller than the node's own index, except for the first node */
    uint32_t parent;
    uint32_t frame;
    vst_memory_amount own[VST_MEMORY_VIEWS];
    vst_memory_amount inclusive[VST_MEMORY_VIEWS];
} vst_memory_node;

/* A period of time: the most memory that was live in it and when, and the
 * memory live at its end. */
typedef struct vst_memory_point {
    int64_t max_ns, last_ns;
    double max_bytes, last_bytes;
} vst_memory_point;

typedef struct vst_memory_thread_sums {
    uint32_t thread;
    vst_memory_amount allocated, freed; /* allocated and freed by this thread */
} vst_memory_thread_sums;

/* All allocations at one line: the line of the language's innermost frame, or
 * of the innermost frame if there is none. */
typedef struct vst_memory_line {
    uint32_t frame; /* one of the frames at this line */
    vst_memory_amount own[VST_MEMORY_VIEWS];
} vst_memory_line;

enum {
    VST_MEMORY_KINDS = 32,
    /* [0]: 0 bytes; [i]: from 2^(i-1) to less than 2^i bytes */
    VST_MEMORY_SIZES = 65,
    VST_MEMORY_POINTS_MAX = 2048,
    VST_MEMORY_TEMPORARY_MAX = 65536
};

typedef struct vst_memory_summary {
    bool is_sampled;
    uint32_t temporary; /* the summary's k for temporary allocations */
    uint64_t records;   /* how many records were read */
    /* allocations of a framework's allocator, which are not in the sums */
    uint64_t apart;
    /* the trace has only those, so the sums are about them */
    bool of_framework;
    uint64_t frees;
    uint64_t unknown_frees; /* frees of blocks whose allocation was not seen */
    uint64_t lost_frees;    /* frees that were not seen */
    uint64_t lost;          /* records that are known to be missing */
    /* allocations by threads that did not hold the language's lock */
    uint64_t unlocked;
    /* the part of `unlocked` that has the last known stack */
    uint64_t stale;
    int64_t first_ns, last_ns, peak_ns; /* 0 if there are no records */
    vst_memory_amount views[VST_MEMORY_VIEWS];
    double count_variance[VST_MEMORY_VIEWS];
    /* allocated by each kind of allocator */
    vst_memory_amount kinds[VST_MEMORY_KINDS];
    vst_memory_amount sizes[VST_MEMORY_SIZES];
    const vst_memory_point *points;
    size_t point_count;
    /* How much of the process was in RAM; 0 (or no samples) if unknown. */
    struct {
        uint64_t peak;   /* the system's own maximum, or the highest sample */
        uint64_t before; /* the first sample, without pages of files */
        int64_t sampled_ns; /* time of the highest sample */
        /* value of the highest sample, and how much of it were pages of
         * files */
        uint64_t sampled, sampled_files;
        /* bytes that were live at the time of the highest sample */
        double sampled_live;
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
    /* By vst_stack_id; UINT32_MAX if nothing was allocated with that stack. */
    const uint32_t *node_of_stack;
    size_t stack_count; /* number of ids, including 0 */
} vst_memory_summary;

/* Returns VST_E_STATE if the trace has no records of memory. The summary stays
 * valid without the trace. */
vst_status vst__trace_summarize_memory(vst_trace *trace,
                                       const vst_memory_report_options *options,
                                       vst_memory_summary **summary,
                                       vst_error *error);
void vst__memory_summary_free(vst_memory_summary *summary);

#endif
