/* The right answers of a view, found by brute force: every span of a replay is
 * kept in memory, and every question looks at all of them. One thread at a
 * time. */
#ifndef VST_TESTS_VIEW_ORACLE_H
#define VST_TESTS_VIEW_ORACLE_H

#include "view/track.h"
#include "view/view.h"

typedef struct oracle_span {
    vst_span span;    /* without args */
    uint64_t args_at; /* index in the oracle's text */
    uint64_t order;   /* the order in which replay gave the spans */
    uint32_t row;     /* depth; spans off the stack have the rows behind all
                       * depths */
} oracle_span;

typedef struct oracle_thread {
    uint32_t number, levels, off_stack;
    int64_t lanes[64];
    oracle_span *spans; /* sorted by row, then by start */
    size_t count, capacity;
    int64_t start_ns, end_ns;
} oracle_thread;

typedef struct oracle {
    vst_trace *trace;
    oracle_thread *threads;
    size_t thread_count;
    char *text;
    size_t text_count, text_capacity;
    vst_loss *losses;
    size_t loss_count, loss_capacity;
    vst__tracks tracks;
    uint64_t spans;
    int64_t offset_ns;
} oracle;

vst_status oracle_open(const char *path, const vst_view_options *options,
                       oracle **view, vst_error *error);
void oracle_close(oracle *view);
vst_status oracle_window(oracle *view, const vst_view_range *range,
                         void **bytes, size_t *count, vst_error *error);
vst_status oracle_span_at(oracle *view, uint32_t thread, uint32_t depth,
                          int64_t time_ns, vst_view_span *span,
                          vst_error *error);
vst_status oracle_find(oracle *view, const vst_view_range *range,
                       const vst_view_ids *ids, uint32_t *counts,
                       vst_error *error);
vst_status oracle_next(oracle *view, const vst_view_range *range,
                       const vst_view_ids *ids, bool back, vst_view_span *span,
                       vst_error *error);
vst_status oracle_flame(oracle *view, const vst_view_range *range,
                        vst_view_flame_row **rows, size_t *count,
                        vst_error *error);

#endif
