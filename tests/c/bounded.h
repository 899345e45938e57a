/* Recordings that are bounded, for tests: each thread records numbered calls,
 * so that a reader sees which calls are missing. One recording at a time. */
#ifndef VST_TESTS_BOUNDED_H
#define VST_TESTS_BOUNDED_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vestige/vestige.h>

#include "check.h"
#include "one_session.h"

enum {
    IDS = 10, /* ids of the leaf functions, which a thread calls in rotation */
    MIB = 1 << 20,
    THREADS_MAX = 400,
    OUTER = 7 /* calls around the leaves */
};

static vst_id leaves[IDS], outer;
static char path[64];

/* ---- recording ---------------------------------------------------------- */

static inline void begin(uint64_t max_size, uint64_t keep_ns)
{
    vst_session_options options = {.path = path,
                                   .overwrite = true,
                                   .max_size = max_size,
                                   .last_ns = keep_ns};
    char name[] = "leaf 0";

    snprintf(path, sizeof path, "/tmp/vestige-bounded-%d.vst", (int)getpid());
    if (vst_session_create(&options, &session, NULL) != VST_OK ||
        vst_session_start(session, NULL) != VST_OK)
        abort();
    outer = define("outer");
    for (int i = 0; i < IDS; i++, name[5]++)
        leaves[i] = define(name);
}

static inline void end(void)
{
    vst_session_destroy(session);
    unlink(path);
}

static inline void record_leaves(unsigned from, unsigned count)
{
    for (unsigned i = from; i < from + count; i++) {
        vst_record(VST_ENTER, leaves[i % IDS]);
        vst_record(VST_EXIT, leaves[i % IDS]);
    }
}

static inline void record_outer(vst_kind kind)
{
    for (int i = 0; i < OUTER; i++)
        vst_record(kind, outer);
}

static inline uint64_t file_size(void)
{
    struct stat st;

    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* ---- reading ------------------------------------------------------------ */

typedef struct seen {
    vst_trace *trace;
    unsigned next[THREADS_MAX + 2]; /* the leaf expected, 0: any */
    uint64_t leaves, open_leaves, outer, dropped, losses;
    uint64_t gaps;  /* leaves whose number does not follow the number before */
    uint64_t holes; /* dropped leaves although older leaves are in the file */
    int64_t first_ns, last_ns, last_leaf_ns;
} seen;

static inline vst_status see_span(void *ctx, const vst_span *span)
{
    seen *s = ctx;
    const vst_definition *d = vst_trace_definition(s->trace, span->id);
    unsigned leaf, *next;

    if (!CHECK(d != NULL) || !CHECK(span->thread < THREADS_MAX + 2))
        return VST_E_CANCELLED;
    CHECK(span->children_ns >= 0 &&
          span->children_ns <= span->end_ns - span->start_ns);
    if (s->first_ns == 0 || span->start_ns < s->first_ns)
        s->first_ns = span->start_ns;
    if (span->end_ns > s->last_ns)
        s->last_ns = span->end_ns;
    if (d->name[0] == 'o') {
        s->outer++;
        return VST_OK;
    }
    s->last_leaf_ns = span->end_ns;
    leaf = (unsigned)(d->name[5] - '0');
    next = &s->next[span->thread];
    s->gaps += *next != 0 && *next != leaf + 1;
    *next = (leaf + 1) % IDS + 1;
    s->leaves++;
    s->open_leaves += (span->flags & VST_SPAN_OPEN_AT_START) != 0;
    return VST_OK;
}

static inline vst_status see_loss(void *ctx, const vst_loss *loss)
{
    seen *s = ctx;

    CHECK(loss->end_ns >= loss->start_ns);
    s->losses++;
    if (loss->kind == VST_LOSS_DROPPED) {
        s->dropped += loss->records;
        s->holes += s->next[loss->thread] != 0;
        s->next[loss->thread] = 0;
    }
    return VST_OK;
}

static inline seen see(vst_trace *trace)
{
    seen s = {.trace = trace};
    vst_sink sink = {.ctx = &s, .span = see_span, .loss = see_loss};

    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    return s;
}

static inline vst_trace *open_file(vst_trace_info *info)
{
    vst_trace *trace;

    if (!CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK))
        abort();
    vst_trace_get_info(trace, info);
    return trace;
}

#endif
