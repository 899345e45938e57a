/* Tables of the summary of a memory history (memory/report.h): figures of the
 * process, sums by view, allocator, size and thread, memory over time, and the
 * stacks and lines that hold most. One reading of the history makes all of
 * them. A number of allocations and their bytes are rounded; `error` is the
 * standard error of the bytes, where only some allocations were sampled. One
 * thread at a time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory/report.h"
#include "tables/pass.h"

/* Returns the summary, which the pass keeps until its end, or NULL if reading
 * failed; VST_E_STATE: no memory was recorded. */
static const vst_memory_summary *memory_of(vst__filling *filling)
{
    vst__table_pass *pass = filling->pass;
    const vst_memory_report_options options = {.window = vst__pass_window(pass),
                                               .temporary =
                                                   pass->options->temporary};

    if (pass->memory == NULL)
        filling->batch.status = vst__trace_summarize_memory(
            pass->trace, &options, &pass->memory, NULL);
    return pass->memory;
}

#define AMOUNT_COLUMNS(COLUMN)                                                 \
    COLUMN(I64, count, llround(amount->count))                                 \
    COLUMN(I64, bytes, llround(amount->bytes))                                 \
    COLUMN(I64, error, llround(sqrt(amount->variance)))

/* ---- the process --------------------------------------------------------- */

#define PROCESS_COLUMNS(COLUMN)                                                \
    COLUMN(BOOL, sampled, s->is_sampled)                                       \
    COLUMN(BOOL, of_framework, s->of_framework)                                \
    COLUMN(I64, temporary_within, s->temporary)                                \
    COLUMN(I64, records, s->records)                                           \
    COLUMN(I64, apart, s->apart)                                               \
    COLUMN(I64, frees, s->frees)                                               \
    COLUMN(I64, unknown_frees, s->unknown_frees)                               \
    COLUMN(I64, lost_frees, s->lost_frees)                                     \
    COLUMN(I64, lost, s->lost)                                                 \
    COLUMN(I64, unlocked, s->unlocked)                                         \
    COLUMN(I64, stale, s->stale)                                               \
    COLUMN(I64, first_ns, s->first_ns)                                         \
    COLUMN(I64, last_ns, s->last_ns)                                           \
    COLUMN(I64, peak_ns, s->peak_ns)                                           \
    COLUMN(I64, stack_count, s->node_count - 1)

static void put_process(vst__filling *filling)
{
    const vst_memory_summary *s = memory_of(filling);

    if (s != NULL)
        VST_PUT_ROW(&filling->batch, PROCESS_COLUMNS);
}

const vst__table vst__table_memory_process = {
    .name = "memory_process",
    VST_COLUMNS(PROCESS_COLUMNS),
    .put = put_process,
};

#define RESIDENT_COLUMNS(COLUMN)                                               \
    COLUMN(I64, peak, s->resident.peak)                                        \
    COLUMN(I64, before, s->resident.before)                                    \
    COLUMN(I64, sampled, s->resident.sampled)                                  \
    COLUMN(I64, sampled_ns, s->resident.sampled_ns)                            \
    COLUMN(I64, files, s->resident.sampled_files)                              \
    COLUMN(I64, live, llround(s->resident.sampled_live))

/* Puts no row if the resident set was not recorded. */
static void put_resident(vst__filling *filling)
{
    const vst_memory_summary *s = memory_of(filling);

    if (s != NULL && s->resident.peak != 0)
        VST_PUT_ROW(&filling->batch, RESIDENT_COLUMNS);
}

const vst__table vst__table_memory_resident = {
    .name = "memory_resident",
    VST_COLUMNS(RESIDENT_COLUMNS),
    .put = put_resident,
};

/* ---- memory over time ---------------------------------------------------- */

#define POINTS_COLUMNS(COLUMN)                                                 \
    COLUMN(I64, max_ns, points[i].max_ns)                                      \
    COLUMN(I64, max_bytes, llround(points[i].max_bytes))                       \
    COLUMN(I64, last_ns, points[i].last_ns)                                    \
    COLUMN(I64, last_bytes, llround(points[i].last_bytes))

static void put_points(vst__filling *filling, const vst_memory_point *points,
                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        VST_PUT_ROW(&filling->batch, POINTS_COLUMNS);
}

static void put_timeline(vst__filling *filling)
{
    const vst_memory_summary *s = memory_of(filling);

    if (s != NULL)
        put_points(filling, s->points, s->point_count);
}

static void put_resident_timeline(vst__filling *filling)
{
    const vst_memory_summary *s = memory_of(filling);

    if (s != NULL)
        put_points(filling, s->resident.points, s->resident.point_count);
}

const vst__table vst__table_memory_timeline = {
    .name = "memory_timeline",
    VST_COLUMNS(POINTS_COLUMNS),
    .put = put_timeline,
};

const vst__table vst__table_resident_timeline = {
    .name = "resident_timeline",
    VST_COLUMNS(POINTS_COLUMNS),
    .put = put_resident_timeline,
};

/* ---- sums ---------------------------------------------------------------- */

#define ALLOCATORS_COLUMNS(COLUMN)                                             \
    COLUMN(STRING, allocator, vst_memory_kind_name((vst_memory_kind)i))        \
    AMOUNT_COLUMNS(COLUMN)

static void put_allocators(vst__filling *filling)
{
    const vst_memory_summary *s = memory_of(filling);

    for (int i = 0; s != NULL && i < VST_MEMORY_KINDS; i++) {
        const vst_memory_amount *amount = &s->kinds[i];

        if (amount->count > 0)
            VST_PUT_ROW(&filling->batch, ALLOCATORS_COLUMNS);
    }
}

const vst__table vst__table_memory_allocators = {
    .name = "memory_allocators",
    VST_COLUMNS(ALLOCATORS_COLUMNS),
    .put = put_allocators,
};

#define SIZES_COLUMNS(COLUMN)                                                  \
    COLUMN(I64, least, i == 0 ? 0 : UINT64_C(1) << (i - 1))                    \
    AMOUNT_COLUMNS(COLUMN)

static void put_sizes(vst__filling *filling)
{
    const vst_memory_summary *s = memory_of(filling);

    for (int i = 0; s != NULL && i < VST_MEMORY_SIZES; i++) {
        const vst_memory_amount *amount = &s->sizes[i];

        if (amount->count > 0)
            VST_PUT_ROW(&filling->batch, SIZES_COLUMNS);
    }
}

const vst__table vst__table_memory_sizes = {
    .name = "memory_sizes",
    VST_COLUMNS(SIZES_COLUMNS),
    .put = put_sizes,
};

#define THREADS_COLUMNS(COLUMN)                                                \
    COLUMN(I32, thread, t->thread)                                             \
    COLUMN(I64, tid, known != NULL ? known->system_tid : 0)                    \
    COLUMN(TEXT, name, known != NULL ? known->name : "",                       \
           known != NULL ? known->name_len : 0)                                \
    COLUMN(BOOL, freed, way == 1) /* sums of what the thread freed */          \
    AMOUNT_COLUMNS(COLUMN)

/* Puts two rows for each thread: what it allocated, and what it freed. */
static void put_threads(vst__filling *filling)
{
    const vst_memory_summary *s = memory_of(filling);

    for (size_t i = 0; s != NULL && i < s->thread_count; i++) {
        const vst_memory_thread_sums *t = &s->threads[i];
        const vst_trace_thread *known =
            vst_trace_thread_find(filling->pass->trace, t->thread);

        for (int way = 0; way < 2; way++) {
            const vst_memory_amount *amount =
                way == 0 ? &t->allocated : &t->freed;

            VST_PUT_ROW(&filling->batch, THREADS_COLUMNS);
        }
    }
}

const vst__table vst__table_memory_threads = {
    .name = "memory_threads",
    VST_COLUMNS(THREADS_COLUMNS),
    .put = put_threads,
};

/* ---- stacks and lines ---------------------------------------------------- */

#define FRAMES_COLUMNS(COLUMN)                                                 \
    COLUMN(TEXT, function, f->name, f->name_len)                               \
    COLUMN(TEXT, file, f->file, f->file_len)                                   \
    COLUMN(TEXT, shown_file, f->file + f->file_skip,                           \
           f->file_len - f->file_skip)                                         \
    COLUMN(I32, line, f->line)                                                 \
    COLUMN(BOOL, native, f->is_native)

static void put_frames(vst__filling *filling)
{
    const vst_memory_summary *s = memory_of(filling);

    for (size_t i = 0; s != NULL && i < s->frame_count; i++) {
        const vst_memory_frame *f = &s->frames[i];

        VST_PUT_ROW(&filling->batch, FRAMES_COLUMNS);
    }
}

const vst__table vst__table_memory_frames = {
    .name = "memory_frames",
    VST_COLUMNS(FRAMES_COLUMNS),
    .put = put_frames,
};

#define NODES_COLUMNS(COLUMN)                                                  \
    COLUMN(I32, parent, s->nodes[i].parent)                                    \
    COLUMN(I32, frame, s->nodes[i].frame)

/* Row 0 is the empty stack; a parent stands before its children. */
static void put_nodes(vst__filling *filling)
{
    const vst_memory_summary *s = memory_of(filling);

    for (size_t i = 0; s != NULL && i < s->node_count; i++)
        VST_PUT_ROW(&filling->batch, NODES_COLUMNS);
}

const vst__table vst__table_memory_nodes = {
    .name = "memory_nodes",
    VST_COLUMNS(NODES_COLUMNS),
    .put = put_nodes,
};

/* Returns the amounts of stack or line number i. */
typedef const vst_memory_amount *(*amounts_fn)(const vst_memory_summary *s,
                                               size_t i);

static const vst_memory_amount *of_node(const vst_memory_summary *s, size_t i)
{
    return s->nodes[i].own;
}

static const vst_memory_amount *of_line(const vst_memory_summary *s, size_t i)
{
    return s->lines[i].own;
}

typedef struct ranked {
    double bytes, count;
    uint32_t index;
} ranked;

static int by_bytes(const void *a, const void *b)
{
    const ranked *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Finds the stacks or lines that have any part of a view, the largest first.
 * Returns how many there are. */
static size_t memory_rank(const vst_memory_summary *s, amounts_fn of,
                          size_t count, int view, ranked *into)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        const vst_memory_amount *a = &of(s, i)[view];

        if (a->count >= 0.5)
            into[found++] = (ranked){a->bytes, a->count, (uint32_t)i};
    }
    if (found != 0)
        qsort(into, found, sizeof *into, by_bytes);
    return found;
}

static vst_status begin_firsts(vst__filling *filling)
{
    const char *views[VST_MEMORY_VIEWS];

    for (int i = 0; i < VST_MEMORY_VIEWS; i++)
        views[i] = vst_memory_view_name((vst_memory_view)i);
    return vst__names_add(filling, views, VST_MEMORY_VIEWS);
}

/* `of` is the number of a row of memory_nodes, or of memory_frames for lines.
 */
#define FIRSTS_COLUMNS(COLUMN)                                                 \
    COLUMN(OWN, view, view)                                                    \
    COLUMN(I32, of, is_line ? s->lines[index].frame : index)                   \
    AMOUNT_COLUMNS(COLUMN)

/* Puts the largest stacks or lines of each view. */
static void put_firsts(vst__filling *filling, bool is_line)
{
    const vst_memory_summary *s = memory_of(filling);
    amounts_fn of = is_line ? of_line : of_node;
    size_t count, most = filling->pass->options->memory_rows;
    ranked *order;

    if (s == NULL)
        return;
    count = is_line ? s->line_count : s->node_count;
    order = malloc((count + 1) * sizeof *order);
    if (order == NULL)
        filling->batch.status = VST_E_NOMEM;
    for (int view = 0; order != NULL && view < VST_MEMORY_VIEWS; view++) {
        size_t found = memory_rank(s, of, count, view, order);

        for (size_t i = 0; i < found && i < most; i++) {
            uint32_t index = order[i].index;
            const vst_memory_amount *amount = &of(s, index)[view];

            VST_PUT_ROW(&filling->batch, FIRSTS_COLUMNS);
        }
    }
    free(order);
}

static void put_stacks(vst__filling *filling)
{
    put_firsts(filling, false);
}

static void put_lines(vst__filling *filling)
{
    put_firsts(filling, true);
}

const vst__table vst__table_memory_stacks = {
    .name = "memory_stacks",
    VST_COLUMNS(FIRSTS_COLUMNS),
    .begin = begin_firsts,
    .put = put_stacks,
};

const vst__table vst__table_memory_lines = {
    .name = "memory_lines",
    VST_COLUMNS(FIRSTS_COLUMNS),
    .begin = begin_firsts,
    .put = put_lines,
};

/* ---- views --------------------------------------------------------------- */

static size_t count_rows(const vst_memory_summary *s, amounts_fn of,
                         size_t count, int view)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += of(s, i)[view].count >= 0.5;
    return found;
}

#define VIEWS_COLUMNS(COLUMN)                                                  \
    COLUMN(STRING, view, vst_memory_view_name((vst_memory_view)view))          \
    AMOUNT_COLUMNS(COLUMN)                                                     \
    COLUMN(I64, count_error, llround(sqrt(s->count_variance[view])))           \
    COLUMN(I64, stacks, count_rows(s, of_node, s->node_count, view))           \
    COLUMN(I64, lines, count_rows(s, of_line, s->line_count, view))

static void put_views(vst__filling *filling)
{
    const vst_memory_summary *s = memory_of(filling);

    for (int view = 0; s != NULL && view < VST_MEMORY_VIEWS; view++) {
        const vst_memory_amount *amount = &s->views[view];

        VST_PUT_ROW(&filling->batch, VIEWS_COLUMNS);
    }
}

const vst__table vst__table_memory_views = {
    .name = "memory_views",
    VST_COLUMNS(VIEWS_COLUMNS),
    .put = put_views,
};
