/* The parts of Trace.report(), made by report_parts.c and
 * report_spread.c for trace_report.c. No
 * GIL is needed but where Python objects are made; one thread at a time. */
#ifndef VPY_REPORT_H
#define VPY_REPORT_H

#include "read/spans.h"

#include <vestige/contexts.h>

#pragma GCC visibility push(hidden)

/* What Python says of a definition. Left out: its time is that of what called
 * it. No time: it is nobody's, as if the call had returned at once. */
enum {
    VPY_MARK_LEFT_OUT = 1,
    VPY_MARK_WAITS = 2,
    VPY_MARK_GC = 4,
    VPY_MARK_NO_TIME = 8
};

/* ---- which threads ----------------------------------------------------- */

typedef struct vpy_chosen {
    uint32_t *numbers; /* NULL: all of them */
    size_t count;
    uint32_t last; /* the one that was asked for last, and the answer */
    bool asked, has;
} vpy_chosen;

/* None, or a sequence of numbers; false with an exception set. */
bool vpy_chosen_set(vpy_chosen *chosen, PyObject *numbers);
bool vpy_chosen_look(vpy_chosen *chosen, uint32_t number);

static inline bool vpy_chosen_has(vpy_chosen *chosen, uint32_t number)
{
    if (!chosen->numbers)
        return true;
    return chosen->asked && chosen->last == number
               ? chosen->has
               : vpy_chosen_look(chosen, number);
}

/* ---- functions --------------------------------------------------------- */

/* How much calls differ: the means of stretches of equally many, where a
 * stretch gets twice as long when there are too many of them; and how many took
 * how long, by powers of two and sixteenths of them. What is allocated grows
 * with the calls: there may be very many functions that were called once. */
enum { VPY_STRETCHES = 32, VPY_BINS = 672, VPY_FEW = 2 * VPY_BINS };

typedef struct vpy_spread {
    double *sums;
    double current;
    uint64_t size, in_current;
    uint32_t used;
    uint32_t few_count;
    uint64_t count;
    uint16_t *few;  /* the bins of the first VPY_FEW calls, one by one … */
    uint32_t *bins; /* … then how many calls are in each; NULL until then */
} vpy_spread;

/* Of a call, in ns; less than 0: not known. */
typedef struct vpy_typical {
    double error_of_mean, median, error_of_median;
} vpy_typical;

/* Without memory a call counts to what there is room for. */
void vpy_spread_add(vpy_spread *spread, int64_t ns);
void vpy_spread_free(vpy_spread *spread);
vpy_typical vpy_spread_typical(const vpy_spread *spread);

typedef struct vpy_sum {
    uint64_t calls;
    uint64_t outer; /* those that were not inside one of the same */
    int64_t self_ns, total_ns;
    uint64_t self_bytes, total_bytes, allocations;
} vpy_sum;

typedef struct vpy_sums {
    vpy_sum *of; /* by definition id; NULL: not wanted */
    vpy_spread *self, *total;
    vst_id max;
} vpy_sums;

bool vpy_sums_make(vpy_sums *sums, vst_id max, bool spread);
void vpy_sums_free(vpy_sums *sums);
void vpy_sums_add(vpy_sums *sums, const vst_span *span, int64_t self_ns);
PyObject *vpy_sums_list(const vpy_sums *sums);

/* ---- the tree ---------------------------------------------------------- */

PyObject *vpy_tree_list(const vst_context_row *rows, size_t count,
                        long long min_ns);

/* ---- threads ----------------------------------------------------------- */

typedef struct vpy_thread_sums {
    uint32_t number;
    uint64_t calls;
    int64_t self_ns, waiting_ns, gc_ns;
    int64_t first_ns, last_ns;
    int64_t top_ns; /* of the function that took most by itself */
    vst_id top;
} vpy_thread_sums;

PyObject *vpy_thread_sums_list(const vpy_thread_sums *sums, size_t count);

/* What waited, by definition id. */
typedef struct vpy_waits {
    struct vpy_wait {
        uint64_t calls;
        int64_t ns;
    } *of;
} vpy_waits;

/* (id, calls, ns) of those that did. */
PyObject *vpy_waits_list(const vpy_waits *waits, vst_id max);

/* ---- garbage collections ----------------------------------------------- */

enum { VPY_GENERATIONS = 4, VPY_LONGEST = 20 }; /* the last: not known */

typedef struct vpy_collection {
    int64_t start_ns, ns;
    uint32_t thread;
    int generation;
    long long collected;
} vpy_collection;

typedef struct vpy_collections {
    struct {
        uint64_t count;
        int64_t ns, longest_ns;
        long long collected, uncollectable;
    } of[VPY_GENERATIONS];
    vpy_collection longest[VPY_LONGEST]; /* the longest first */
    size_t count;
} vpy_collections;

void vpy_collections_add(vpy_collections *gc, const vst_span *span);
PyObject *vpy_collections_dict(const vpy_collections *gc);
/* In which functions they began: (id or 0, count, ns). */
PyObject *vpy_gc_callers(const vst_context_row *rows, size_t count,
                         const unsigned char *marks);

#pragma GCC visibility pop
#endif
