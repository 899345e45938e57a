/* Arrows of a timeline from the processes that started others, from the call in
 * the parent to the child's first span.
 *
 * A child says (metadata "vestige.parent") which process it comes from, when
 * and how; it cannot say which call of the parent's it was. Those calls are
 * noted while the parent is replayed, and given out once all processes are
 * written: a child gets the latest one that began before it did and that no
 * other child has. The kernel numbers processes in the order in which they are
 * made, so children choose from the last to the first, and those of a pool get
 * each its own.
 *
 * One thread at a time. */
#include <stdlib.h>

#include "base/grow.h"
#include "export/timeline/timeline.h"

/* How a process is started, and by which C functions. */
enum { HOW_NONE, HOW_FORK, HOW_SPAWN, HOW_EXEC };

/* No more calls than this are noted. An arrow without its call starts at the
 * time when the child was started. */
#define STARTS_MAX ((size_t)1 << 20)

/* No clock says more; sums with what clockmap.h allows fit 64 bits. */
#define TIME_MAX_NS ((int64_t)1 << 62)

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

/* ---- before the replays ------------------------------------------------- */

static bool on_same_host(const vst_trace *a, const vst_trace *b)
{
    const char *x = vst_trace_metadata(a, "host_name");
    const char *y = vst_trace_metadata(b, "host_name");

    return (x == NULL && y == NULL) ||
           (x != NULL && y != NULL && strcmp(x, y) == 0);
}

/* The last to have had the pid when the child began: a pid may be used again,
 * and a process that called exec has a trace for each program it was. */
static vst__timeline_process *find_parent(vst__timeline *timeline,
                                          const vst__timeline_process *child,
                                          int64_t pid)
{
    vst__timeline_process *found = NULL;
    int64_t child_ns = start_of(child->trace);

    for (size_t i = 0; i < timeline->process_count; i++) {
        vst__timeline_process *other = &timeline->processes[i];

        if (other == child || other->trace->header.pid != pid ||
            start_of(other->trace) > child_ns ||
            !on_same_host(other->trace, child->trace))
            continue;
        if (found == NULL || start_of(other->trace) > start_of(found->trace))
            found = other;
    }
    return found;
}

static void read_parent(vst__timeline *timeline, vst__timeline_process *child)
{
    vst__json_part said = vst__json_whole(
        vst_trace_metadata(child->trace, VST_TIMELINE_INTERNAL "parent"));
    vst__json_part how = vst__json_inside(vst__json_member(said, "how"));
    int64_t pid, tid;

    if (!vst__json_integer(vst__json_member(said, "pid"), &pid))
        return;
    child->parent = find_parent(timeline, child, pid);
    if (child->parent == NULL)
        return;
    child->how = pid == child->trace->header.pid                    ? HOW_EXEC
                 : how.count == 4 && memcmp(how.at, "fork", 4) == 0 ? HOW_FORK
                                                                    : HOW_SPAWN;
    if (!vst__json_integer(vst__json_member(said, "time_ns"),
                           &child->parent_ns) ||
        child->parent_ns < 0 || child->parent_ns > TIME_MAX_NS)
        child->parent_ns = start_of(child->trace);
    if (vst__json_integer(vst__json_member(said, "tid"), &tid) && tid > 0)
        child->parent_tid = (uint64_t)tid;
    child->parent->has_children = true;
}

void vst__timeline_find_parents(vst__timeline *timeline)
{
    if (timeline->process_count > 1)
        for (size_t i = 0; i < timeline->process_count; i++)
            read_parent(timeline, &timeline->processes[i]);
}

/* ---- while a process is replayed ---------------------------------------- */

uint32_t vst__timeline_tid(const vst__timeline_process *process,
                           uint32_t number)
{
    const vst_trace_thread *thread =
        vst_trace_thread_find(process->trace, number);

    return thread != NULL
               ? process->tracks[thread - process->trace->threads].tid
               : process->windows_tid;
}

static uint32_t how_it_starts(const vst_definition *definition)
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

/* Once for a process: a span is then known by its id alone. */
static void find_starters(vst__timeline_process *process)
{
    const vst_trace *trace = process->trace;
    size_t count = 0;

    for (size_t i = 0;
         i < trace->definition_count && count < VST_TIMELINE_STARTERS; i++) {
        uint32_t how = how_it_starts(&trace->definitions[i]);

        if (how == HOW_NONE)
            continue;
        process->starters[count] = trace->definition_ids[i];
        process->starter_how[count++] = how;
    }
}

static vst_status note_start(vst__timeline_process *process,
                             const vst_span *span, uint32_t how)
{
    vst__timeline_start *starts;

    if (process->start_count == STARTS_MAX)
        return VST_OK;
    starts = vst__grow(process->starts, &process->start_capacity,
                       process->start_count + 1, sizeof *starts);
    if (starts == NULL)
        return VST_E_NOMEM;
    process->starts = starts;
    starts[process->start_count++] = (vst__timeline_start){
        .start_ns = span->start_ns,
        .end_ns = span->end_ns,
        .tid = vst__timeline_tid(process, span->thread),
        .how = how,
    };
    return VST_OK;
}

static vst_status watch_span(void *ctx, const vst_span *span)
{
    vst__timeline *timeline = ctx;
    vst__timeline_process *process = timeline->process;
    vst_status status = VST_OK;

    if (span->flags & VST_SPAN_ASYNC)
        return timeline->drawing->span(timeline, span);
    for (size_t i = 0; i < VST_TIMELINE_STARTERS && process->starters[i] != 0;
         i++)
        if (process->starters[i] == span->id)
            status = note_start(process, span, process->starter_how[i]);
    if (process->first_tid == 0 || span->start_ns < process->first_ns) {
        process->first_ns = span->start_ns;
        process->first_tid = vst__timeline_tid(process, span->thread);
    }
    return status == VST_OK ? timeline->drawing->span(timeline, span) : status;
}

void vst__timeline_watch(vst__timeline *timeline, vst_sink *sink)
{
    vst__timeline_watch_tasks(timeline, sink);
    vst__timeline_watch_devices(timeline, sink);
    if (timeline->process->has_children)
        find_starters(timeline->process);
    if (timeline->process->has_children || timeline->process->parent != NULL)
        sink->span = watch_span;
}

/* ---- after the replays -------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
    const vst__timeline_start *x = a, *y = b;

    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* The thread with a system tid; by default the main one, else the first. */
static uint32_t find_tid(const vst__timeline_process *process, uint64_t tid)
{
    const vst_trace *trace = process->trace;
    uint32_t found = process->windows_tid;
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

static vst__timeline_start *take_start(vst__timeline_process *parent,
                                       uint32_t how, uint32_t tid,
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
        vst__timeline_start *start = &parent->starts[low];

        if (start->taken || start->how != how ||
            (tid != 0 && start->tid != tid))
            continue;
        start->taken = true;
        return start;
    }
    return NULL;
}

static void put_arrow(vst__timeline *timeline, vst__timeline_process *child,
                      uint64_t id)
{
    static const char *const names[] = {"", "fork", "spawn", "exec"};
    vst__timeline_process *parent = child->parent;
    vst_trace *trace = child->trace;
    int64_t from_ns = child->parent_ns + parent->trace->clock.offset_ns;
    uint32_t from_tid = find_tid(parent, child->parent_tid);
    vst__timeline_start *start = take_start(
        parent, child->how,
        child->how == HOW_FORK && child->parent_tid != 0 ? from_tid : 0,
        from_ns);

    if (start != NULL) {
        from_tid = start->tid;
        /* The child's clock notes a fork a little late. */
        if (child->how != HOW_FORK)
            from_ns = start->start_ns;
        else if (from_ns >= start->end_ns) /* where it is still open */
            from_ns = start->end_ns - (start->end_ns > start->start_ns);
    }
    if (child->first_tid == 0) { /* no spans: its window is all there is */
        child->first_tid = child->windows_tid;
        child->first_ns = vst__clockmap_to_ns(
            &trace->clock, child->window_count != 0
                               ? trace->windows[child->first_window].first
                               : trace->header.start.ticks);
    }
    /* Viewers ignore arrows that point back in time. */
    if (from_ns > child->first_ns)
        from_ns = child->first_ns;
    timeline->drawing->end(timeline, &(vst__arrow_end){
                                         .process = parent,
                                         .tid = from_tid,
                                         .time_ns = from_ns,
                                         .category = "process",
                                         .name = names[child->how],
                                         .id = id,
                                     });
    timeline->drawing->end(timeline, &(vst__arrow_end){
                                         .process = child,
                                         .tid = child->first_tid,
                                         .time_ns = child->first_ns,
                                         .category = "process",
                                         .name = names[child->how],
                                         .id = id,
                                         .is_head = true,
                                     });
}

/* Where a child stands among those of its parent: pids count up, and begin anew
 * some time. */
static uint64_t birth(const vst__timeline_process *child)
{
    uint32_t pid = child->trace->header.pid;

    return pid +
           (pid < child->parent->trace->header.pid ? UINT64_C(1) << 32 : 0);
}

static int last_born_first(const void *a, const void *b)
{
    const vst__timeline_process *x = *(vst__timeline_process *const *)a;
    const vst__timeline_process *y = *(vst__timeline_process *const *)b;

    if (birth(x) != birth(y))
        return birth(x) > birth(y) ? -1 : 1;
    return (x < y) - (x > y);
}

vst_status vst__timeline_put_arrows(vst__timeline *timeline)
{
    vst__timeline_process **children =
        calloc(timeline->process_count, sizeof(vst__timeline_process *));
    size_t count = 0;

    if (children == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < timeline->process_count; i++) {
        vst__timeline_process *process = &timeline->processes[i];

        if (process->start_count != 0)
            qsort(process->starts, process->start_count,
                  sizeof *process->starts, by_start);
        if (process->parent != NULL)
            children[count++] = process;
    }
    qsort(children, count, sizeof *children, last_born_first);
    for (size_t i = 0; i < count; i++)
        put_arrow(timeline, children[i], i + 1);
    free(children);
    return VST_OK;
}
