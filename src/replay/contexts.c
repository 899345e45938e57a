/* The tree of calling contexts, built from spans in the order of their ends.
 * Nodes are numbered, 0 is none; children are lists. Nodes whose parent has
 * not ended wait in a list for their depth. Nothing recurses. One thread at
 * a time. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "replay/contexts.h"

/* A list that must be merged into another list, or must become rows. */
typedef struct task {
    uint32_t *into;
    uint32_t from;
} task;

/* The roots of the tree of one thread, or of all threads. */
typedef struct root_list {
    uint32_t thread; /* number of the thread; 0: several threads */
    uint32_t first;
} root_list;

struct vst_contexts {
    vst_context *nodes;
    uint32_t count, unused;
    size_t capacity;
    uint32_t *waiting; /* by depth: nodes whose parent is still open */
    size_t top, waiting_capacity;
    task *tasks;
    size_t task_capacity;
    root_list *roots;
    size_t root_count, root_capacity;
    bool by_thread;
    uint32_t thread;

    vst_context_row *rows;
    size_t row_count, row_capacity;
    uint32_t *family; /* scratch: children of one node while they are sorted */
    size_t family_capacity;
};

vst_status vst__contexts_create(vst_contexts **contexts)
{
    *contexts = calloc(1, sizeof **contexts);
    return *contexts != NULL ? VST_OK : VST_E_NOMEM;
}

void vst__contexts_by_thread(vst_contexts *contexts)
{
    contexts->by_thread = true;
}

void vst__contexts_destroy(vst_contexts *contexts)
{
    if (contexts == NULL)
        return;
    free(contexts->nodes);
    free(contexts->roots);
    free(contexts->waiting);
    free(contexts->tasks);
    free(contexts->rows);
    free(contexts->family);
    free(contexts);
}

/* ---- lists of nodes ------------------------------------------------------ */

static uint32_t make_node(vst_contexts *c)
{
    uint32_t index = c->unused;
    vst_context *nodes;

    if (index != 0) {
        c->unused = c->nodes[index].next;
        return index;
    }
    if (c->count >= UINT32_MAX - 2)
        return 0;
    nodes =
        vst__grow(c->nodes, &c->capacity, (size_t)c->count + 2, sizeof *nodes);
    if (nodes == NULL)
        return 0;
    c->nodes = nodes;
    return ++c->count;
}

/* Returns the node of this function in a list, and moves it to the front. */
static uint32_t contexts_find(vst_contexts *c, uint32_t *list,
                              const vst_context *key)
{
    uint32_t *link = list;

    for (uint32_t at = *list; at != 0; at = *link) {
        vst_context *n = &c->nodes[at];

        if (n->id == key->id && n->key == key->key) {
            *link = n->next;
            n->next = *list;
            *list = at;
            return at;
        }
        link = &n->next;
    }
    return 0;
}

static void contexts_add_to(vst_context *sum, const vst_context *n)
{
    sum->count += n->count;
    sum->raised += n->raised;
    sum->self_ns += n->self_ns;
    sum->total_ns += n->total_ns;
    sum->running_ns += n->running_ns;
    sum->unknown += n->unknown;
    if (n->compensated_ns == VST_RUNNING_UNKNOWN)
        sum->compensated_ns = VST_RUNNING_UNKNOWN;
    else if (sum->compensated_ns != VST_RUNNING_UNKNOWN)
        sum->compensated_ns += n->compensated_ns;
    sum->self_bytes += n->self_bytes;
    sum->total_bytes += n->total_bytes;
    sum->self_allocations += n->self_allocations;
    if (n->first_ns < sum->first_ns) {
        sum->first_ns = n->first_ns;
        sum->serial = n->serial;
    }
}

static bool push_task(vst_contexts *c, size_t count, uint32_t *into,
                      uint32_t from)
{
    if (!VST_RESERVE(c->tasks, count + 1, c->task_capacity))
        return false;
    c->tasks[count] = (task){into, from};
    return true;
}

/* Moves a list and everything below it into another list. Makes no nodes, so
 * pointers to nodes stay valid. */
static bool contexts_merge(vst_contexts *c, uint32_t *into, uint32_t from)
{
    size_t count = 0;

    if (*into == 0) {
        *into = from;
        return true;
    }
    if (!push_task(c, count++, into, from))
        return false;
    while (count != 0) {
        task now = c->tasks[--count];

        while (now.from != 0) {
            uint32_t at = now.from;
            vst_context *n = &c->nodes[at];
            uint32_t same = *now.into != 0 ? contexts_find(c, now.into, n) : 0;

            now.from = n->next;
            if (same == 0) {
                n->next = *now.into;
                *now.into = at;
                continue;
            }
            contexts_add_to(&c->nodes[same], n);
            if (n->first != 0 &&
                !push_task(c, count++, &c->nodes[same].first, n->first))
                return false;
            n->next = c->unused;
            c->unused = at;
        }
    }
    return true;
}

/* ---- spans --------------------------------------------------------------- */

static bool reserve_depth(vst_contexts *c, size_t depth)
{
    size_t before = c->waiting_capacity;

    if (!VST_RESERVE(c->waiting, depth + 1, c->waiting_capacity))
        return false;
    memset(c->waiting + before, 0,
           (c->waiting_capacity - before) * sizeof *c->waiting);
    return true;
}

/* Moves the nodes that wait deeper than `depth` into a list. */
static bool contexts_gather(vst_contexts *c, size_t depth, uint32_t *into)
{
    while (c->top > depth + 1) {
        uint32_t list = c->waiting[--c->top];

        c->waiting[c->top] = 0;
        if (list != 0 && !contexts_merge(c, into, list))
            return false;
    }
    return true;
}

/* Returns the roots of a thread, or NULL if memory ran out. */
static root_list *find_roots(vst_contexts *c, uint32_t thread)
{
    if (!c->by_thread)
        thread = 0;
    for (size_t i = 0; i < c->root_count; i++)
        if (c->roots[i].thread == thread)
            return &c->roots[i];
    if (c->root_count == VST_CONTEXTS_THREADS) {
        c->roots[c->root_count - 1].thread = 0;
        return &c->roots[c->root_count - 1];
    }
    if (!VST_RESERVE(c->roots, c->root_count + 1, c->root_capacity))
        return NULL;
    c->roots[c->root_count] = (root_list){.thread = thread};
    return &c->roots[c->root_count++];
}

static bool add_roots(vst_contexts *c, uint32_t thread, uint32_t list)
{
    root_list *roots = find_roots(c, thread);

    return roots != NULL && contexts_merge(c, &roots->first, list);
}

/* Ends the waiting of all nodes, because no open span is left. */
static bool gather_all(vst_contexts *c)
{
    uint32_t list;

    if (c->top == 0)
        return true;
    if (!contexts_gather(c, 0, &c->waiting[0]))
        return false;
    list = c->waiting[0];
    c->waiting[0] = 0;
    c->top = 0;
    return list == 0 || add_roots(c, c->thread, list);
}

/* Returns a node for a span, with the nodes that waited for it as children.
 * Returns 0 if memory ran out. */
static uint32_t node_of(vst_contexts *c, const vst_span *span, uint32_t key)
{
    int64_t duration = span->end_ns - span->start_ns;
    uint32_t index = make_node(c);

    if (index == 0)
        return 0;
    c->nodes[index] = (vst_context){
        .id = span->id,
        .key = key,
        .count = !(span->flags & VST_SPAN_RESUMED),
        .raised = (span->flags & VST_SPAN_RAISED) != 0,
        .total_ns = duration,
        .running_ns = span->running_ns > 0 ? span->running_ns : 0,
        .unknown = span->running_ns == VST_RUNNING_UNKNOWN,
        .compensated_ns = span->compensated_ns,
        .self_ns =
            duration > span->children_ns ? duration - span->children_ns : 0,
        .self_bytes = (int64_t)span->self_bytes,
        .total_bytes = (int64_t)span->total_bytes,
        .self_allocations = span->self_allocations,
        .first_ns = span->start_ns,
        .serial = span->serial,
    };
    return index;
}

vst_status vst__contexts_add(vst_contexts *c, const vst_span *span,
                             uint32_t key)
{
    uint32_t index = node_of(c, span, key);

    if (index == 0)
        return VST_E_NOMEM;
    if (span->flags & VST_SPAN_ASYNC) {
        c->nodes[index].self_ns = 0;
        return add_roots(c, span->thread, index) ? VST_OK : VST_E_NOMEM;
    }
    if (c->thread != span->thread) {
        if (!gather_all(c))
            return VST_E_NOMEM;
        c->thread = span->thread;
    }
    if (!reserve_depth(c, span->depth) ||
        !contexts_gather(c, span->depth, &c->nodes[index].first))
        return VST_E_NOMEM;
    if (c->top <= span->depth)
        c->top = (size_t)span->depth + 1;
    return contexts_merge(c, &c->waiting[span->depth], index) ? VST_OK
                                                              : VST_E_NOMEM;
}

vst_status vst__contexts_leave(vst_contexts *c, uint32_t depth)
{
    if (c->top <= (size_t)depth + 1)
        return VST_OK;
    return contexts_gather(c, depth, &c->waiting[depth]) ? VST_OK : VST_E_NOMEM;
}

/* ---- rows ---------------------------------------------------------------- */

/* Returns whether sibling a began before sibling b. */
static bool is_before(const vst_contexts *c, uint32_t a, uint32_t b)
{
    return c->nodes[a].serial < c->nodes[b].serial;
}

/* Sorts a list, by merging ever longer runs. */
static uint32_t contexts_sort(vst_contexts *c, uint32_t list)
{
    size_t count = 0, width;

    for (uint32_t at = list; at != 0; at = c->nodes[at].next) {
        if (!VST_RESERVE(c->family, 2 * (count + 1), c->family_capacity))
            return 0;
        c->family[count++] = at;
    }
    for (width = 1; width < count; width *= 2) {
        uint32_t *sorted = c->family + count;

        for (size_t i = 0; i < count; i += 2 * width) {
            size_t a = i, b = i + width < count ? i + width : count;
            size_t a_end = b;
            size_t b_end = b + width < count ? b + width : count;

            for (size_t k = i; k < b_end; k++)
                sorted[k] =
                    b == b_end || (a != a_end &&
                                   !is_before(c, c->family[b], c->family[a]))
                        ? c->family[a++]
                        : c->family[b++];
        }
        memcpy(c->family, sorted, count * sizeof *sorted);
    }
    for (size_t i = 0; i < count; i++)
        c->nodes[c->family[i]].next = i + 1 < count ? c->family[i + 1] : 0;
    return c->family[0];
}

static bool contexts_add_row(vst_contexts *c, uint32_t index, uint32_t parent,
                             uint32_t thread)
{
    if (!VST_RESERVE(c->rows, c->row_count + 1, c->row_capacity))
        return false;
    c->rows[c->row_count++] =
        (vst_context_row){parent, thread, c->nodes[index]};
    return true;
}

/* Adds the rows of a list and of everything below. A task here is the rest of a
 * list: if a node of the list has children, their rows come before the rest. */
static bool add_rows(vst_contexts *c, const root_list *roots)
{
    size_t waiting = 0;
    uint32_t *parents = NULL; /* parents of the waiting lists */
    size_t parent_capacity = 0;
    uint32_t list = contexts_sort(c, roots->first), parent = 0;
    bool failed = list == 0;

    while (!failed && (list != 0 || waiting != 0)) {
        uint32_t at, *grown;

        if (list == 0) {
            list = c->tasks[--waiting].from;
            parent = parents[waiting];
            continue;
        }
        at = list;
        list = c->nodes[at].next;
        if (!contexts_add_row(c, at, parent, roots->thread)) {
            failed = true;
        } else if (c->nodes[at].first != 0) {
            grown = vst__grow(parents, &parent_capacity, waiting + 1,
                              sizeof *parents);
            failed = grown == NULL || !push_task(c, waiting, NULL, list);
            parents = grown != NULL ? grown : parents;
            if (failed)
                break;
            parents[waiting++] = parent;
            list = contexts_sort(c, c->nodes[at].first);
            parent = (uint32_t)c->row_count;
            failed = list == 0;
        }
    }
    free(parents);
    return !failed;
}

vst_status vst__contexts_finish(vst_contexts *c, const vst_context_row **rows,
                                size_t *count)
{
    bool is_whole = gather_all(c);

    for (size_t i = 0; is_whole && i < c->root_count; i++)
        is_whole = c->roots[i].first == 0 || add_rows(c, &c->roots[i]);
    *rows = c->rows;
    *count = c->row_count;
    return is_whole ? VST_OK : VST_E_NOMEM;
}
