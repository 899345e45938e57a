/* The summary of a memory history, in one pass over its records: sums for each
 * stack, and the live memory by stack, which is copied at the high-water mark.
 * The copy is lazy: a stack keeps what it held at the last mark, brought up to
 * date before its first change after the mark, so a new mark costs nothing.
 * Takes about 160 bytes for each stack, and a bit for each allocation if asked
 * for. One thread at a time.
 *
 * A framework's allocator gives out parts of what it took from the system, so
 * the two are never added up. The framework's allocations are summed if the
 * trace has no others.
 *
 * A window begins with nothing live; what is live at its end was not freed. A
 * sampled allocation stands for `weight` allocations: sums are Horvitz and
 * Thompson's estimates, their variances the sum of w (w - 1) bytes². */
#include "memory/summary.h"

#include <stdlib.h>

#include "base/grow.h"
#include "memory/summary_pass.h"

/* Sums of one stack. */
typedef struct stack_sums {
    vst_memory_amount total, live, peak, temporary;
    vst_memory_amount leaks; /* not freed in earlier windows */
    /* number of the high-water mark at which `peak` was taken */
    uint64_t mark;
} stack_sums;

typedef struct thread_state {
    vst_memory_thread_sums sums;
    vst__recent recent;
} thread_state;

typedef struct pass {
    vst_memory_summary *summary;
    stack_sums *stacks;
    size_t stack_count;
    vst_memory_amount live;
    double live_count_variance;
    /* live memory according to the last event */
    uint64_t live_bytes, live_count;
    /* whether a framework's allocations are summed, or the system's */
    bool of_framework;
    uint64_t mark; /* number of high-water marks so far */
    vst__reservations reserved;
    uint32_t k;
    vst__map64 thread_places; /* number of a thread: its place + 1 */
    thread_state *threads;
    size_t thread_count, thread_capacity;
    size_t last_thread; /* place of the thread of the last event, + 1 */
    vst__curve timeline, resident;
    vst__serials *freed;
} pass;

const char *vst_memory_view_name(vst_memory_view view)
{
    static const char *const names[] = {"total", "peak", "leaks", "temporary",
                                        "reserved"};

    return view < VST_MEMORY_VIEWS ? names[view] : "?";
}

/* ---- threads ------------------------------------------------------------- */

static thread_state *thread_of(pass *p, uint32_t number)
{
    uint64_t *place;

    if (p->last_thread != 0 &&
        p->threads[p->last_thread - 1].sums.thread == number)
        return &p->threads[p->last_thread - 1];
    place = vst__map64_put(&p->thread_places, number);
    if (place == NULL)
        return NULL;
    if (*place == 0) {
        if (!VST_RESERVE(p->threads, p->thread_count + 1, p->thread_capacity))
            return NULL;
        p->threads[p->thread_count] =
            (thread_state){.sums = {.thread = number}};
        *place = ++p->thread_count;
    }
    p->last_thread = (size_t)*place;
    return &p->threads[p->last_thread - 1];
}

/* ---- events -------------------------------------------------------------- */

static vst_memory_amount amount_of(const vst_memory_event *e, double count)
{
    double w = e->weight, bytes = (double)e->size;

    return (vst_memory_amount){w * count, w * bytes,
                               w * (w - 1) * bytes * bytes};
}

static void summary_subtract(vst_memory_amount *sum,
                             const vst_memory_amount *less)
{
    sum->count -= less->count;
    sum->bytes -= less->bytes;
    sum->variance -= less->variance;
}

static stack_sums *stack_of(pass *p, const vst_memory_event *e)
{
    stack_sums *s = &p->stacks[e->stack < p->stack_count ? e->stack : 0];

    if (s->mark != p->mark) {
        s->peak = s->live;
        s->mark = p->mark;
    }
    return s;
}

static void set_mark(pass *p, int64_t now)
{
    vst_memory_summary *s = p->summary;

    p->mark++;
    s->views[VST_MEMORY_PEAK] = p->live;
    s->count_variance[VST_MEMORY_PEAK] = p->live_count_variance;
    s->peak_ns = now;
}

static unsigned size_class(uint64_t size)
{
    return size == 0 ? 0 : 64u - (unsigned)__builtin_clzll(size);
}

static vst_status on_alloc(pass *p, thread_state *thread,
                           const vst_memory_event *e)
{
    vst_memory_summary *s = p->summary;
    vst_memory_amount amount = amount_of(e, 1);
    stack_sums *stack = stack_of(p, e);
    double count_variance = e->weight * (e->weight - 1);

    s->is_sampled |= e->weight != 1;
    s->unlocked += (e->flags & VST_MEMORY_UNLOCKED) != 0;
    s->stale += (e->flags & VST_MEMORY_STALE_STACK) != 0;
    vst__memory_amount_add(&s->views[VST_MEMORY_TOTAL], &amount);
    s->count_variance[VST_MEMORY_TOTAL] += count_variance;
    vst__memory_amount_add(&s->kinds[e->kind % VST_MEMORY_KINDS], &amount);
    vst__memory_amount_add(&s->sizes[size_class(e->size)], &amount);
    vst__memory_amount_add(&thread->sums.allocated, &amount);
    vst__memory_amount_add(&stack->total, &amount);
    vst__memory_amount_add(&stack->live, &amount);
    vst__memory_amount_add(&p->live, &amount);
    p->live_count_variance += count_variance;
    if (p->live.bytes > s->views[VST_MEMORY_PEAK].bytes)
        set_mark(p, e->time_ns);
    /* the pages were found in use; the thread made no call */
    if ((e->flags & VST_MEMORY_TOUCHED) != 0)
        return VST_OK;
    return vst__recent_add(&thread->recent, e->serial, p->k) ? VST_OK
                                                             : VST_E_NOMEM;
}

static vst_status on_free(pass *p, thread_state *thread,
                          const vst_memory_event *e)
{
    vst_memory_summary *s = p->summary;
    /* if part of a mapping is unmapped, as many blocks are live as before */
    double ended = (double)(int64_t)(p->live_count - e->live_count);
    vst_memory_amount amount = amount_of(e, ended);
    stack_sums *stack;

    if ((e->flags & VST_MEMORY_UNKNOWN) != 0) {
        s->unknown_frees++;
        return VST_OK;
    }
    s->frees++;
    s->lost_frees += (e->flags & VST_MEMORY_LOST_FREE) != 0;
    stack = stack_of(p, e);
    summary_subtract(&stack->live, &amount);
    summary_subtract(&p->live, &amount);
    p->live_count_variance -= e->weight * (e->weight - 1);
    vst__memory_amount_add(&thread->sums.freed, &amount);
    if (ended == 1 && vst__recent_has(&thread->recent, e->serial)) {
        vst__memory_amount_add(&stack->temporary, &amount);
        vst__memory_amount_add(&s->views[VST_MEMORY_TEMPORARY], &amount);
    }
    if (ended == 1 && p->freed != NULL &&
        !vst__serials_add(p->freed, e->serial))
        return VST_E_NOMEM;
    return VST_OK;
}

/* Counts the memory that is live at the end of a window as not freed. */
static void summary_end_window(pass *p)
{
    vst_memory_summary *s = p->summary;

    for (size_t i = 0; i < p->stack_count; i++) {
        stack_sums *stack = &p->stacks[i];

        if (stack->mark != p->mark)
            stack->peak = stack->live;
        stack->mark = p->mark;
        vst__memory_amount_add(&stack->leaks, &stack->live);
        stack->live = (vst_memory_amount){0};
    }
    vst__memory_amount_add(&s->views[VST_MEMORY_LEAKS], &p->live);
    s->count_variance[VST_MEMORY_LEAKS] += p->live_count_variance;
    p->live = (vst_memory_amount){0};
    p->live_count_variance = 0;
    p->live_bytes = p->live_count = 0;
}

/* Returns the bytes that were live before the event. */
static uint64_t live_before(const vst_memory_event *e)
{
    if ((e->flags & VST_MEMORY_UNKNOWN) != 0)
        return e->live_bytes;
    return (e->flags & VST_MEMORY_FREES) != 0 ? e->live_bytes + e->size
                                              : e->live_bytes - e->size;
}

static vst_status summary_on_event(void *ctx, const vst_memory_event *e)
{
    pass *p = ctx;
    vst_memory_summary *s = p->summary;
    thread_state *thread;
    vst_status status;

    if (vst_memory_is_framework(e->kind) != p->of_framework) {
        s->apart++;
        return VST_OK;
    }
    thread = thread_of(p, e->thread);
    if (thread == NULL)
        return VST_E_NOMEM;
    if (live_before(e) != p->live_bytes)
        summary_end_window(p);
    if (s->records++ == 0)
        s->first_ns = e->time_ns;
    s->last_ns = e->time_ns;
    status = (e->flags & VST_MEMORY_FREES) != 0 ? on_free(p, thread, e)
                                                : on_alloc(p, thread, e);
    p->live_bytes = e->live_bytes;
    p->live_count = e->live_count;
    if (status == VST_OK)
        vst__curve_add(&p->timeline, e->time_ns, p->live.bytes);
    return status;
}

static vst_status on_reserved(void *ctx, const vst_memory_event *e)
{
    pass *p = ctx;

    vst__reservations_add(&p->reserved, e);
    return VST_OK;
}

static vst_status on_resident(void *ctx, const vst_memory_resident *r)
{
    pass *p = ctx;

    vst__curve_add(&p->resident, r->time_ns, (double)r->bytes);
    vst__resident_add(p->summary, r, p->live.bytes);
    return VST_OK;
}

static vst_status on_loss(void *ctx, const vst_loss *loss)
{
    pass *p = ctx;

    p->summary->lost += loss->records;
    return VST_OK;
}

/* ---- from sums to the summary -------------------------------------------- */

/* Removes rounding errors of estimates that were added and subtracted. */
static void summary_tidy(vst_memory_amount *amount)
{
    if (amount->count < 0.5)
        *amount = (vst_memory_amount){0};
    if (amount->variance < 0)
        amount->variance = 0;
}

static vst_status build_nodes(pass *p, vst__memory_stacks *stacks)
{
    vst_status status = VST_OK;

    for (size_t i = 0; i < p->stack_count && status == VST_OK; i++) {
        stack_sums *s = &p->stacks[i];
        vst_memory_amount *own,
            reserved = vst__reservations_of(&p->reserved, i);
        uint32_t node;

        if (s->total.count == 0 && reserved.count == 0)
            continue;
        summary_tidy(&s->leaks);
        summary_tidy(&s->peak);
        if (p->summary->is_sampled)
            s->temporary = (vst_memory_amount){0};
        status = vst__memory_stacks_node(stacks, (vst_stack_id)i, &node);
        if (status != VST_OK)
            break;
        own = stacks->nodes[node].own;
        vst__memory_amount_add(&own[VST_MEMORY_TOTAL], &s->total);
        vst__memory_amount_add(&own[VST_MEMORY_PEAK], &s->peak);
        vst__memory_amount_add(&own[VST_MEMORY_LEAKS], &s->leaks);
        vst__memory_amount_add(&own[VST_MEMORY_TEMPORARY], &s->temporary);
        vst__memory_amount_add(&own[VST_MEMORY_RESERVED], &reserved);
    }
    return status;
}

/* The strings and arrays then belong to the summary. */
static vst_status take_stacks(vst__summary_owner *owner,
                              vst__memory_stacks *stacks)
{
    vst_memory_summary *s = &owner->summary;
    vst_memory_line *lines;
    vst_status status;

    vst__memory_tree_include(stacks->nodes, stacks->count);
    status = vst__memory_tree_lines(stacks->nodes, stacks->count,
                                    stacks->frames.items, stacks->frames.count,
                                    &lines, &s->line_count);
    s->lines = owner->lines = lines;
    s->nodes = owner->nodes = stacks->nodes;
    s->node_count = stacks->count;
    s->frames = owner->frames = stacks->frames.items;
    s->frame_count = stacks->frames.count;
    s->node_of_stack = owner->node_of_stack = stacks->leaf_of_stack;
    s->stack_count = stacks->stack_count;
    owner->strings = stacks->frames.strings;
    stacks->nodes = NULL;
    stacks->leaf_of_stack = NULL;
    stacks->frames.items = NULL;
    stacks->frames.strings = (vst__arena){0};
    return status;
}

static void take_points(pass *p, vst__summary_owner *owner)
{
    vst_memory_summary *s = &owner->summary;

    s->points = owner->points = p->timeline.points;
    s->point_count = p->timeline.count;
    s->resident.points = owner->resident_points = p->resident.points;
    s->resident.point_count = p->resident.count;
    p->timeline.points = p->resident.points = NULL;
}

static vst_status summary_finish(pass *p, vst__summary_owner *owner,
                                 vst_trace *trace)
{
    vst_memory_summary *s = &owner->summary;
    vst__memory_stacks stacks;
    vst_status status;

    summary_end_window(p);
    if (s->is_sampled)
        s->views[VST_MEMORY_TEMPORARY] = (vst_memory_amount){0};
    for (int view = 0; view < VST_MEMORY_VIEWS; view++) {
        summary_tidy(&s->views[view]);
        if (s->count_variance[view] < 0)
            s->count_variance[view] = 0;
    }
    take_points(p, owner);
    vst__resident_read_peak(s, trace);
    s->views[VST_MEMORY_RESERVED] = p->reserved.most;
    owner->threads = calloc(p->thread_count + 1, sizeof *owner->threads);
    if (owner->threads == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < p->thread_count; i++)
        owner->threads[i] = p->threads[i].sums;
    s->threads = owner->threads;
    s->thread_count = p->thread_count;
    status = vst__memory_stacks_begin(&stacks, trace);
    if (status == VST_OK)
        status = build_nodes(p, &stacks);
    if (status == VST_OK)
        status = take_stacks(owner, &stacks);
    vst__memory_stacks_free(&stacks);
    return status;
}

static void free_pass(pass *p)
{
    for (size_t i = 0; i < p->thread_count; i++)
        free(p->threads[i].recent.serials);
    free(p->threads);
    free(p->stacks);
    free(p->timeline.points);
    free(p->resident.points);
    free(p->reserved.stacks);
    vst__map64_free(&p->thread_places);
}

static vst_status run_pass(vst_trace *trace,
                           const vst_memory_report_options *options,
                           bool of_framework, vst__serials *freed,
                           vst__summary_owner *owner, vst_error *error)
{
    pass p = {.freed = freed,
              .of_framework = of_framework,
              .k = options->temporary != 0 ? options->temporary : 1,
              .summary = &owner->summary};
    const vst_memory_sink sink = {.ctx = &p,
                                  .event = summary_on_event,
                                  .loss = on_loss,
                                  .reserved = on_reserved,
                                  .resident = on_resident};
    vst_status status = VST_E_NOMEM;

    p.summary->temporary = p.k;
    p.summary->of_framework = of_framework;
    p.stack_count = vst__memory_stack_count(trace);
    p.stacks = calloc(p.stack_count, sizeof *p.stacks);
    if (p.stacks != NULL && vst__curve_begin(&p.timeline) &&
        vst__curve_begin(&p.resident) &&
        vst__reservations_begin(&p.reserved, p.stack_count)) {
        status = vst_trace_replay_memory(trace, options->window, &sink, error);
        if (status == VST_OK)
            status = summary_finish(&p, owner, trace);
    }
    free_pass(&p);
    if (status != VST_OK && (error == NULL || error->status != status))
        vst_error_set(error, status, 0, 0);
    return status;
}

vst_status vst__memory_summarize(vst_trace *trace,
                                 const vst_memory_report_options *options,
                                 vst__serials *freed,
                                 vst_memory_summary **summary, vst_error *error)
{
    vst__summary_owner *owner = NULL;
    vst_status status = VST_OK;
    bool again = true;

    *summary = NULL;
    vst_error_set(error, VST_OK, 0, 0);
    if (!vst_trace_has_memory(trace))
        return vst_error_set(error, VST_E_STATE, 0, 0);
    if (options->temporary > VST_MEMORY_TEMPORARY_MAX)
        return vst_error_set(error, VST_E_ARGUMENT, 0, 0);
    for (int of_framework = 0; again; of_framework++) {
        owner = calloc(1, sizeof *owner);
        if (owner == NULL)
            return vst_error_set(error, VST_E_NOMEM, 0, 0);
        status =
            run_pass(trace, options, of_framework != 0, freed, owner, error);
        again = status == VST_OK && of_framework == 0 &&
                owner->summary.records == 0 && owner->summary.apart != 0;
        if (again || status != VST_OK)
            vst__memory_summary_free(&owner->summary);
    }
    if (status == VST_OK)
        *summary = &owner->summary;
    return status;
}

vst_status vst__trace_summarize_memory(vst_trace *trace,
                                       const vst_memory_report_options *options,
                                       vst_memory_summary **summary,
                                       vst_error *error)
{
    static const vst_memory_report_options usual = {.window = VST_WINDOW_ALL};

    return vst__memory_summarize(trace, options != NULL ? options : &usual,
                                 NULL, summary, error);
}

void vst__memory_summary_free(vst_memory_summary *summary)
{
    /* the summary is the owner's first member */
    vst__summary_owner *owner = (vst__summary_owner *)summary;

    if (owner == NULL)
        return;
    free(owner->points);
    free(owner->resident_points);
    free(owner->threads);
    free(owner->nodes);
    free(owner->lines);
    free(owner->frames);
    free(owner->node_of_stack);
    vst__arena_free(&owner->strings);
    free(owner);
}
