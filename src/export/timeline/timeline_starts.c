/* Starts of processes on a timeline: an arrow from the parent's call that
 * started a process to the first span of the child.
 *
 * A child says (metadata "vestige.parent") which process it comes from, when
 * and how, but not from which call. These calls are noted while the parent is
 * replayed, and assigned when all processes are written: a child gets the
 * latest unassigned call that began before the child did. The kernel numbers
 * processes in the order in which they are made, so children choose from the
 * last to the first, and each process of a pool gets its own call.
 *
 * One thread at a time. */
#include <stdlib.h>

#include "base/grow.h"
#include "export/timeline/timeline.h"

/* How a process is started; starters[] has the C functions. */
enum { HOW_NONE, HOW_FORK, HOW_SPAWN, HOW_EXEC };

/* Most definitions of functions that start processes. */
enum { STARTERS_MAX = 16 };

/* Most calls that are noted. An arrow without its call starts at the time when
 * the child was started. */
#define STARTS_MAX ((size_t)1 << 20)

/* Times are limited to this, so that sums with the times that clockmap.h allows
 * fit 64 bits. */
#define TIME_MAX_NS ((int64_t)1 << 62)

/* A call that starts a process. */
typedef struct start {
    int64_t start_ns, end_ns;
    uint32_t tid; /* in the document */
    uint32_t how;
    bool taken; /* assigned to a child */
} start;

typedef struct vst__timeline_birth birth;

/* The origin of a process, and its calls that start others. */
struct vst__timeline_birth {
    const vst__timeline_process *process;
    birth *parent; /* NULL: not in the document */
    uint32_t how;
    int64_t parent_ns;   /* when the parent started this process */
    uint64_t parent_tid; /* the system's number; 0: not known */
    /* The process has children, so its calls that start processes are noted: */
    bool has_children;
    /* ids of the functions that start processes, or 0 */
    vst_id starters[STARTERS_MAX];
    uint32_t starter_how[STARTERS_MAX];
    int64_t first_ns;   /* start of the first span, if there was one */
    uint32_t first_tid; /* in the document; 0: none yet */
    start *starts;
    size_t start_count, start_capacity;
};

static const struct {
    const char *name;
    uint32_t how;
} starters[] = {
    {"<built-in function fork>", HOW_FORK},
    {"<built-in function forkpty>", HOW_FORK},
    {"<built-in function fork_exec>", HOW_SPAWN},
    {"<built-in function posix_spawn>", HOW_SPAWN},
    {"<built-in function posix_spawnp>", HOW_SPAWN},
    {"<built-in function system>", HOW_SPAWN},
    {"<built-in function execv>", HOW_EXEC},
    {"<built-in function execve>", HOW_EXEC},
};

static int64_t start_of(vst_trace *trace)
{
    return vst__clockmap_to_ns(&trace->clock, trace->header.start.ticks) -
           trace->clock.offset_ns;
}

/* ---- before the replays -------------------------------------------------- */

static bool on_same_host(const vst_trace *a, const vst_trace *b)
{
    const char *x = vst_trace_metadata(a, "host_name");
    const char *y = vst_trace_metadata(b, "host_name");

    return (x == NULL && y == NULL) ||
           (x != NULL && y != NULL && strcmp(x, y) == 0);
}

/* Returns the last process that had the pid when the child began: a pid may be
 * used again, and a process that called exec has a trace for each of its
 * programs. */
static birth *find_parent(const vst__timeline *timeline, const birth *child,
                          int64_t pid)
{
    birth *found = NULL;
    int64_t child_ns = start_of(child->process->trace);

    for (size_t i = 0; i < timeline->drawing->process_count; i++) {
        birth *other = &timeline->births[i];
        vst_trace *trace = other->process->trace;

        if (other == child || trace->header.pid != pid ||
            start_of(trace) > child_ns ||
            !on_same_host(trace, child->process->trace))
            continue;
        if (found == NULL || start_of(trace) > start_of(found->process->trace))
            found = other;
    }
    return found;
}

static void read_parent(const vst__timeline *timeline, birth *child)
{
    vst_trace *trace = child->process->trace;
    vst__json_part origin = vst__json_whole(
        vst_trace_metadata(trace, VST_DRAWING_INTERNAL "parent"));
    vst__json_part how = vst__json_inside(vst__json_member(origin, "how"));
    int64_t pid, tid;

    if (!vst__json_integer(vst__json_member(origin, "pid"), &pid))
        return;
    child->parent = find_parent(timeline, child, pid);
    if (child->parent == NULL)
        return;
    child->how = pid == trace->header.pid                           ? HOW_EXEC
                 : how.count == 4 && memcmp(how.at, "fork", 4) == 0 ? HOW_FORK
                                                                    : HOW_SPAWN;
    if (!vst__json_integer(vst__json_member(origin, "time_ns"),
                           &child->parent_ns) ||
        child->parent_ns < 0 || child->parent_ns > TIME_MAX_NS)
        child->parent_ns = start_of(trace);
    if (vst__json_integer(vst__json_member(origin, "tid"), &tid) && tid > 0)
        child->parent_tid = (uint64_t)tid;
    child->parent->has_children = true;
}

vst_status vst__timeline_find_parents(vst__timeline *timeline)
{
    size_t count = timeline->drawing->process_count;

    if (count == 1)
        return VST_OK;
    timeline->births = calloc(count, sizeof *timeline->births);
    if (timeline->births == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < count; i++)
        timeline->births[i].process = &timeline->processes[i];
    for (size_t i = 0; i < count; i++)
        read_parent(timeline, &timeline->births[i]);
    return VST_OK;
}

void vst__timeline_forget_starts(vst__timeline *timeline)
{
    for (size_t i = 0;
         timeline->births != NULL && i < timeline->drawing->process_count; i++)
        free(timeline->births[i].starts);
    free(timeline->births);
}

/* ---- while a process is replayed ----------------------------------------- */

static uint32_t starts_kind_of(const vst_definition *definition)
{
    if (definition->kind != VST_DEF_NATIVE)
        return HOW_NONE;
    for (size_t i = 0; i < sizeof starters / sizeof starters[0]; i++)
        if (definition->name_len == strlen(starters[i].name) &&
            memcmp(definition->name, starters[i].name, definition->name_len) ==
                0)
            return starters[i].how;
    return HOW_NONE;
}

/* Finds the starters of a process once, so that a span is recognised by its id
 * alone. */
static void find_starters(birth *self)
{
    const vst_trace *trace = self->process->trace;
    size_t count = 0;

    for (size_t i = 0; i < trace->definition_count && count < STARTERS_MAX;
         i++) {
        uint32_t how = starts_kind_of(&trace->definitions[i]);

        if (how == HOW_NONE)
            continue;
        self->starters[count] = trace->definition_ids[i];
        self->starter_how[count++] = how;
    }
}

static vst_status note_start(birth *self, const vst_span *span, uint32_t how)
{
    if (self->start_count == STARTS_MAX)
        return VST_OK;
    if (!VST_RESERVE(self->starts, self->start_count + 1, self->start_capacity))
        return VST_E_NOMEM;
    self->starts[self->start_count++] = (start){
        .start_ns = span->start_ns,
        .end_ns = span->end_ns,
        .tid = vst__timeline_tid(self->process, span->thread),
        .how = how,
    };
    return VST_OK;
}

static vst_status watch_span(void *ctx, const vst_span *span)
{
    vst__timeline *timeline = ctx;
    birth *self = &timeline->births[timeline->process->drawn->index];
    vst_status status = VST_OK;

    if (span->flags & VST_SPAN_ASYNC)
        return vst__timeline_draw_span(timeline, span);
    for (size_t i = 0; i < STARTERS_MAX && self->starters[i] != 0; i++)
        if (self->starters[i] == span->id)
            status = note_start(self, span, self->starter_how[i]);
    if (self->first_tid == 0 || span->start_ns < self->first_ns) {
        self->first_ns = span->start_ns;
        self->first_tid = vst__timeline_tid(self->process, span->thread);
    }
    return status == VST_OK ? vst__timeline_draw_span(timeline, span) : status;
}

static void starts_watch(vst__timeline *timeline, vst_sink *sink)
{
    birth *self;

    if (timeline->births == NULL)
        return;
    self = &timeline->births[timeline->process->drawn->index];
    if (self->has_children)
        find_starters(self);
    if (self->has_children || self->parent != NULL)
        sink->span = watch_span;
}

const vst__timeline_part vst__timeline_starts = {starts_watch, NULL, NULL};

/* ---- after the replays --------------------------------------------------- */

static int starts_by_start(const void *a, const void *b)
{
    const start *x = a, *y = b;

    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Returns the thread with a system tid; by default the main thread, else the
 * first. */
static uint32_t find_tid(const vst__timeline_process *process, uint64_t tid)
{
    const vst_trace *trace = process->trace;
    uint32_t found = process->drawn->windows_tid;
    bool any = false;

    if (tid == 0)
        tid = trace->header.pid;
    for (size_t i = 0; i < trace->thread_count; i++) {
        if (!process->tracks[i].shown)
            continue;
        if (trace->threads[i].system_tid == tid)
            return process->tracks[i].tid;
        if (!any)
            found = process->tracks[i].tid;
        any = true;
    }
    return found;
}

static start *starts_take_call(birth *parent, uint32_t how, uint32_t tid,
                               int64_t time_ns)
{
    size_t low = 0, high = parent->start_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (parent->starts[middle].start_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    while (low-- > 0) {
        start *one = &parent->starts[low];

        if (one->taken || one->how != how || (tid != 0 && one->tid != tid))
            continue;
        one->taken = true;
        return one;
    }
    return NULL;
}

static void draw_arrow(vst__timeline *timeline, birth *child, uint64_t id)
{
    static const char *const names[] = {"", "fork", "spawn", "exec"};
    birth *parent = child->parent;
    const vst__timeline_process *from = parent->process, *to = child->process;
    int64_t from_ns = child->parent_ns + from->trace->clock.offset_ns;
    uint32_t from_tid = find_tid(from, child->parent_tid);
    start *call = starts_take_call(
        parent, child->how,
        child->how == HOW_FORK && child->parent_tid != 0 ? from_tid : 0,
        from_ns);

    if (call != NULL) {
        from_tid = call->tid;
        /* The child's clock notes a fork a little late. */
        if (child->how != HOW_FORK)
            from_ns = call->start_ns;
        /* keep the time before the end of the call */
        else if (from_ns >= call->end_ns)
            from_ns = call->end_ns - (call->end_ns > call->start_ns);
    }
    if (child->first_tid == 0) { /* no spans: use the start of its window */
        child->first_tid = to->drawn->windows_tid;
        child->first_ns = to->drawn->first_window_ns;
    }
    /* Viewers ignore arrows that point back in time. */
    if (from_ns > child->first_ns)
        from_ns = child->first_ns;
    timeline->drawing->ops->arrow(
        timeline->drawing,
        &(vst__arrow){.category = VST_CATEGORY_START,
                      .name = names[child->how],
                      .id = id,
                      .from = {from->drawn, from_tid, from_ns},
                      .to = {to->drawn, child->first_tid, child->first_ns}});
}

/* Returns a child's rank among those of its parent: pids count up, and begin
 * again at some point. */
static uint64_t starts_order_of(const birth *child)
{
    uint32_t pid = child->process->trace->header.pid;

    return pid + (pid < child->parent->process->trace->header.pid
                      ? UINT64_C(1) << 32
                      : 0);
}

static int starts_by_age(const void *a, const void *b)
{
    const birth *x = *(birth *const *)a, *y = *(birth *const *)b;

    if (starts_order_of(x) != starts_order_of(y))
        return starts_order_of(x) > starts_order_of(y) ? -1 : 1;
    return (x < y) - (x > y);
}

vst_status vst__timeline_draw_starts(vst__timeline *timeline)
{
    size_t all =
        timeline->births != NULL ? timeline->drawing->process_count : 0;
    birth **children = calloc(all + 1, sizeof(birth *));
    size_t count = 0;

    if (children == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < all; i++) {
        birth *one = &timeline->births[i];

        if (one->start_count != 0)
            qsort(one->starts, one->start_count, sizeof *one->starts,
                  starts_by_start);
        if (one->parent != NULL)
            children[count++] = one;
    }
    qsort(children, count, sizeof *children, starts_by_age);
    for (size_t i = 0; i < count; i++)
        draw_arrow(timeline, children[i], i + 1);
    free(children);
    return VST_OK;
}
