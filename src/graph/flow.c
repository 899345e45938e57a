/* Makes a flow from the touches that were read: which allocation an address
 * belonged to at each time, and what each node did with it. One thread at a
 * time. */
#include "graph/flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/map64.h"

void vst__flow_free(vst__flow *flow)
{
    free(flow->touches);
    free(flow->nodes);
    free(flow->keys);
    free(flow->edges);
    memset(flow, 0, sizeof *flow);
}

/* ---- keys ---------------------------------------------------------------- */

static uint32_t role_of(const vst__flow_touch *touch)
{
    return (uint32_t)(touch->storage >> 56);
}

static bool flow_allocates(uint32_t role)
{
    return role == VST_TOUCH_ALLOCATED || role == VST_TOUCH_FOUND;
}

/* Orders touches of equal time: memory comes first, because a record about a
 * storage has the time of the record before it. */
static int flow_rank(const vst__flow_touch *touch)
{
    uint32_t role = role_of(touch);

    return role == VST_TOUCH_FREED ? 0 : flow_allocates(role) ? 1 : 2;
}

static bool flow_comes_before(const vst__flow_touch *x,
                              const vst__flow_touch *y)
{
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns;
    if (flow_rank(x) != flow_rank(y))
        return flow_rank(x) < flow_rank(y);
    return x < y;
}

/* Touches lie as they were read, thread after thread: a few runs, each in order
 * of time. A heap of runs merges them. */
typedef struct run {
    vst__flow_touch *at, *end;
} run;

typedef struct runs {
    run *heap;
    size_t count, capacity;
} runs;

static void flow_sift_down(runs *self, size_t at)
{
    run moved = self->heap[at];
    size_t child;

    while ((child = 2 * at + 1) < self->count) {
        if (child + 1 < self->count &&
            flow_comes_before(self->heap[child + 1].at, self->heap[child].at))
            child++;
        if (!flow_comes_before(self->heap[child].at, moved.at))
            break;
        self->heap[at] = self->heap[child];
        at = child;
    }
    self->heap[at] = moved;
}

static vst_status find_runs(runs *self, const vst__flow *flow)
{
    vst__flow_touch *at = flow->touches, *end = at + flow->touch_count;

    while (at != end) {
        vst__flow_touch *next = at + 1;

        if (!VST_RESERVE(self->heap, self->count + 1, self->capacity))
            return VST_E_NOMEM;
        while (next != end && next[-1].time_ns <= next->time_ns)
            next++;
        self->heap[self->count++] = (run){at, next};
        at = next;
    }
    for (size_t i = self->count / 2; i-- != 0;)
        flow_sift_down(self, i);
    return VST_OK;
}

static vst__flow_touch *next_touch(runs *self)
{
    vst__flow_touch *next;

    if (self->count == 0)
        return NULL;
    next = self->heap[0].at++;
    if (self->heap[0].at == self->heap[0].end)
        self->heap[0] = self->heap[--self->count];
    if (self->count > 1)
        flow_sift_down(self, 0);
    return next;
}

static vst_status add_key(vst__flow *flow)
{
    if (!VST_RESERVE(flow->keys, flow->key_count + 1, flow->key_capacity) ||
        flow->key_count >= UINT32_MAX - 1)
        return VST_E_NOMEM;
    flow->keys[flow->key_count++] = (vst__flow_key){
        .created_ns = VST_FLOW_NEVER, .destroyed_ns = VST_FLOW_NEVER};
    return VST_OK;
}

static void flow_note(vst__flow_key *key, const vst__flow_touch *touch)
{
    uint32_t role = role_of(touch);

    if (flow_allocates(role)) {
        key->found = role == VST_TOUCH_FOUND;
        key->created_ns = touch->time_ns;
        key->bytes = touch->bytes;
    } else if (role == VST_TOUCH_FREED) {
        key->destroyed_ns = touch->time_ns;
        if (key->created_ns == VST_FLOW_NEVER && touch->bytes > key->bytes)
            key->bytes = touch->bytes;
    } else {
        key->is_tensor = true;
        if (role >= VST_STORAGE_PARAMETER)
            key->noted |= (uint8_t)(1u << role);
        if (key->created_ns == VST_FLOW_NEVER && touch->bytes > key->bytes)
            key->bytes = touch->bytes;
    }
}

/* Gives each touch its key, stored in place of `bytes`: the key that its
 * address has until the address is freed. */
static vst_status make_keys(vst__flow *flow)
{
    vst__map64 live = {0}; /* address -> key + 1 */
    runs all = {0};
    vst_status status = find_runs(&all, flow);
    vst__flow_touch *touch;

    while (status == VST_OK && (touch = next_touch(&all)) != NULL) {
        uint64_t *place =
            vst__map64_put(&live, touch->storage & VST_STORAGE_ADDRESS);

        if (place == NULL) {
            status = VST_E_NOMEM;
            break;
        }
        if (*place == 0 || flow_allocates(role_of(touch))) {
            status = add_key(flow);
            *place = flow->key_count;
        }
        if (status != VST_OK)
            break;
        flow_note(&flow->keys[*place - 1], touch);
        touch->bytes = *place - 1;
        if (role_of(touch) == VST_TOUCH_FREED)
            vst__map64_remove(&live, touch->storage & VST_STORAGE_ADDRESS);
    }
    vst__map64_free(&live);
    free(all.heap);
    return status;
}

/* ---- nodes in order of time ---------------------------------------------- */

static int flow_by_start(const void *a, const void *b)
{
    const vst__flow_node *x = a, *y = b;

    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->edges > y->edges) - (x->edges < y->edges);
}

static vst_status sort_nodes(vst__flow *flow)
{
    uint32_t *places = malloc((flow->node_count + 1) * sizeof *places);

    if (places == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < flow->node_count; i++)
        flow->nodes[i].edges = i;
    if (flow->node_count != 0)
        qsort(flow->nodes, flow->node_count, sizeof *flow->nodes,
              flow_by_start);
    for (size_t i = 0; i < flow->node_count; i++)
        places[flow->nodes[i].edges] = (uint32_t)i;
    for (size_t i = 0; i < flow->touch_count; i++)
        if (flow->touches[i].node != VST_FLOW_NONE)
            flow->touches[i].node = places[flow->touches[i].node];
    free(places);
    return VST_OK;
}

/* ---- edges --------------------------------------------------------------- */

static int by_node(const void *a, const void *b)
{
    const vst__flow_edge *x = a, *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

static uint32_t flow_action_of(uint32_t role)
{
    switch (role) {
    case VST_STORAGE_READ:
        return VST_EDGE_READ;
    case VST_STORAGE_WRITTEN:
        return VST_EDGE_WRITTEN;
    case VST_STORAGE_GIVEN:
        return VST_EDGE_GIVEN;
    case VST_TOUCH_ALLOCATED:
    case VST_TOUCH_FOUND:
        return VST_EDGE_CREATES;
    default:
        return VST_EDGE_DESTROYS;
    }
}

static bool makes_edge(const vst__flow *flow, const vst__flow_touch *touch)
{
    return touch->node != VST_FLOW_NONE && flow->keys[touch->bytes].is_tensor;
}

/* Makes an edge for each touch of a tensor by a node: counts the edges of each
 * node, places them, and sorts the few that one node has. */
static vst_status make_edges(vst__flow *flow)
{
    size_t count = 0;

    for (size_t i = 0; i < flow->node_count; i++)
        flow->nodes[i].edges = 0;
    for (size_t i = 0; i < flow->touch_count; i++)
        if (makes_edge(flow, &flow->touches[i]))
            flow->nodes[flow->touches[i].node].edges++;
    for (size_t i = 0; i < flow->node_count; i++) {
        size_t own = flow->nodes[i].edges;
        flow->nodes[i].edges = count;
        count += own;
    }
    flow->edges = malloc((count + 1) * sizeof *flow->edges);
    if (flow->edges == NULL)
        return VST_E_NOMEM;
    flow->edge_count = count;
    for (size_t i = 0; i < flow->touch_count; i++) {
        const vst__flow_touch *touch = &flow->touches[i];
        if (makes_edge(flow, touch))
            flow->edges[flow->nodes[touch->node].edges++] =
                (vst__flow_edge){.node = touch->node,
                                 .key = (uint32_t)touch->bytes,
                                 .actions = flow_action_of(role_of(touch))};
    }
    free(flow->touches);
    flow->touches = NULL;
    flow->touch_count = flow->touch_capacity = 0;
    /* the end of a node's edges is where the next node's edges begin */
    for (size_t i = 0, at = 0; i < flow->node_count; i++) {
        size_t end = flow->nodes[i].edges;
        if (end - at > 1)
            qsort(flow->edges + at, end - at, sizeof *flow->edges, by_node);
        at = end;
    }
    return VST_OK;
}

/* Joins the edges of one node and key into one edge, which finds the key's
 * current version. */
static void fold_edges(vst__flow *flow)
{
    size_t kept = 0;

    for (size_t i = 0; i < flow->edge_count; i++) {
        vst__flow_edge *edge = &flow->edges[i];
        vst__flow_edge *last = &flow->edges[kept != 0 ? kept - 1 : 0];
        if (kept != 0 && last->node == edge->node && last->key == edge->key)
            last->actions |= edge->actions;
        else
            flow->edges[kept++] = *edge;
    }
    flow->edge_count = kept;
    for (size_t i = 0; i < kept; i++) {
        vst__flow_edge *edge = &flow->edges[i];
        vst__flow_key *key = &flow->keys[edge->key];
        key->has_edges = true;
        edge->version = key->versions; /* how many writes the key had so far */
        key->versions += vst__edge_writes(edge) && !vst__edge_creates(edge);
    }
}

static void number_versions(vst__flow *flow)
{
    size_t at = 0;

    for (size_t i = 0; i < flow->key_count; i++) {
        vst__flow_key *key = &flow->keys[i];
        key->versions++;
        key->first = flow->version_count;
        flow->version_count += key->versions;
    }
    for (size_t i = 0; i < flow->node_count; i++) {
        flow->nodes[i].edges = at;
        while (at < flow->edge_count && flow->edges[at].node == i)
            at++;
    }
}

vst_status vst__flow_link(vst__flow *flow)
{
    vst_status status = make_keys(flow);

    if (status == VST_OK)
        status = sort_nodes(flow);
    if (status == VST_OK)
        status = make_edges(flow);
    if (status != VST_OK)
        return status;
    fold_edges(flow);
    number_versions(flow);
    return VST_OK;
}
