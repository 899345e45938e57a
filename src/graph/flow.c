/* Makes a flow of what was read: which allocation an address stood for at each
 * time, and what each node did with it. One thread at a time. */
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

/* ---- keys --------------------------------------------------------------- */

static uint32_t role_of(const vst__flow_touch *touch)
{
    return (uint32_t)(touch->storage >> 56);
}

static bool allocates(uint32_t role)
{
    return role == VST_TOUCH_ALLOCATED || role == VST_TOUCH_FOUND;
}

/* At the same time memory comes first: what is told of a storage is told with
 * the time of the record before. */
static int rank(const vst__flow_touch *touch)
{
    uint32_t role = role_of(touch);

    return role == VST_TOUCH_FREED ? 0 : allocates(role) ? 1 : 2;
}

static int by_time(const void *a, const void *b)
{
    const vst__flow_touch *x = a, *y = b;

    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (rank(x) != rank(y))
        return rank(x) - rank(y);
    return (x->order > y->order) - (x->order < y->order);
}

static vst_status add_key(vst__flow *flow)
{
    vst__flow_key *keys = vst__grow(flow->keys, &flow->key_capacity,
                                    flow->key_count + 1, sizeof *keys);

    if (keys == NULL || flow->key_count >= UINT32_MAX - 1)
        return VST_E_NOMEM;
    flow->keys = keys;
    keys[flow->key_count++] = (vst__flow_key){.created_ns = VST_FLOW_NEVER,
                                              .destroyed_ns = VST_FLOW_NEVER};
    return VST_OK;
}

static void note(vst__flow_key *key, const vst__flow_touch *touch)
{
    uint32_t role = role_of(touch);

    if (allocates(role)) {
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

/* Gives each touch its key, in the place of `bytes`: the one that its address
 * has until it is freed. */
static vst_status make_keys(vst__flow *flow)
{
    vst__map64 live = {0}; /* address: key + 1 */
    vst_status status = VST_OK;

    for (size_t i = 0; i < flow->touch_count && status == VST_OK; i++) {
        vst__flow_touch *touch = &flow->touches[i];
        uint64_t *place =
            vst__map64_put(&live, touch->storage & VST_STORAGE_ADDRESS);

        if (place == NULL) {
            status = VST_E_NOMEM;
            break;
        }
        if (*place == 0 || allocates(role_of(touch))) {
            status = add_key(flow);
            *place = flow->key_count;
        }
        if (status != VST_OK)
            break;
        note(&flow->keys[*place - 1], touch);
        touch->bytes = *place - 1;
        if (role_of(touch) == VST_TOUCH_FREED)
            vst__map64_remove(&live, touch->storage & VST_STORAGE_ADDRESS);
    }
    vst__map64_free(&live);
    return status;
}

/* ---- nodes in order of time ---------------------------------------------- */

static int by_start(const void *a, const void *b)
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
        qsort(flow->nodes, flow->node_count, sizeof *flow->nodes, by_start);
    for (size_t i = 0; i < flow->node_count; i++)
        places[flow->nodes[i].edges] = (uint32_t)i;
    for (size_t i = 0; i < flow->touch_count; i++)
        if (flow->touches[i].node != VST_FLOW_NONE)
            flow->touches[i].node = places[flow->touches[i].node];
    free(places);
    return VST_OK;
}

/* ---- edges -------------------------------------------------------------- */

static int by_node(const void *a, const void *b)
{
    const vst__flow_edge *x = a, *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

static uint32_t did(uint32_t role)
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

/* An edge for each touch by a node, of tensors alone. */
static vst_status make_edges(vst__flow *flow)
{
    size_t count = 0;

    for (size_t i = 0; i < flow->touch_count; i++)
        count += flow->touches[i].node != VST_FLOW_NONE &&
                 flow->keys[flow->touches[i].bytes].is_tensor;
    flow->edges = malloc((count + 1) * sizeof *flow->edges);
    if (flow->edges == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < flow->touch_count; i++) {
        const vst__flow_touch *touch = &flow->touches[i];
        if (touch->node != VST_FLOW_NONE && flow->keys[touch->bytes].is_tensor)
            flow->edges[flow->edge_count++] =
                (vst__flow_edge){.node = touch->node,
                                 .key = (uint32_t)touch->bytes,
                                 .did = did(role_of(touch))};
    }
    free(flow->touches);
    flow->touches = NULL;
    flow->touch_count = flow->touch_capacity = 0;
    qsort(flow->edges, flow->edge_count, sizeof *flow->edges, by_node);
    return VST_OK;
}

/* Those of one node and key become one, which finds the version that there is.
 */
static void fold_edges(vst__flow *flow)
{
    size_t kept = 0;

    for (size_t i = 0; i < flow->edge_count; i++) {
        vst__flow_edge *edge = &flow->edges[i];
        vst__flow_edge *last = &flow->edges[kept != 0 ? kept - 1 : 0];
        if (kept != 0 && last->node == edge->node && last->key == edge->key)
            last->did |= edge->did;
        else
            flow->edges[kept++] = *edge;
    }
    flow->edge_count = kept;
    for (size_t i = 0; i < kept; i++) {
        vst__flow_edge *edge = &flow->edges[i];
        vst__flow_key *key = &flow->keys[edge->key];
        key->has_edges = true;
        edge->version = key->versions; /* how many writes so far */
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
    vst_status status;

    if (flow->touch_count != 0)
        qsort(flow->touches, flow->touch_count, sizeof *flow->touches, by_time);
    status = make_keys(flow);
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
