/* Classifies the storages of a flow. Certain facts come first: parameters,
 * gradients and state that modules and optimizers hold, gradients that autograd
 * accumulates, and storages that an operator allocates and frees itself. The
 * others follow from the flow: an input helps to make a gradient and depends on
 * none; activations are made from inputs and parameters, before the backward
 * pass; everything else that the backward pass makes is a detail of that pass.
 * The steps come in torch.profiler's order, and find the same categories. One
 * thread at a time. */
#include "graph/categories.h"

#include <stdlib.h>
#include <string.h>

const char *const vst__category_names[VST_CATEGORIES] = {
    "PARAMETER",  "OPTIMIZER_STATE", "INPUT",           "TEMPORARY",
    "ACTIVATION", "GRADIENT",        "AUTOGRAD_DETAIL", "UNKNOWN",
};

/* Marks of a version. */
enum { MAKES_GRADIENT = 1, IS_CANDIDATE = 2, IS_FORWARD = 4, IS_USED = 8 };

typedef struct work {
    vst__flow *flow;
    uint8_t *categories; /* by version */
    uint8_t *marks;      /* by version */
    uint8_t *depends;    /* by key: whether any version depends on a gradient */
} work;

static const vst__flow_edge *edges_of(const vst__flow *flow, size_t node,
                                      const vst__flow_edge **end)
{
    *end =
        flow->edges + (node + 1 < flow->node_count ? flow->nodes[node + 1].edges
                                                   : flow->edge_count);
    return flow->edges + flow->nodes[node].edges;
}

#define FOR_EDGES(edge, flow, node)                                            \
    for (const vst__flow_edge *end_, *edge = edges_of(flow, node, &end_);      \
         edge != end_; edge++)

static uint64_t categories_place(const work *self, const vst__flow_edge *edge,
                                 uint32_t version)
{
    return self->flow->keys[edge->key].first + version;
}

static uint64_t categories_input(const work *self, const vst__flow_edge *edge)
{
    return categories_place(self, edge, edge->version);
}

static uint64_t categories_output(const work *self, const vst__flow_edge *edge)
{
    return categories_place(self, edge, vst__edge_output(edge));
}

static uint8_t category_in(const work *self, const vst__flow_edge *edge)
{
    return vst__category_of(self->flow, self->categories, edge->key,
                            edge->version);
}

static uint8_t category_out(const work *self, const vst__flow_edge *edge)
{
    return vst__category_of(self->flow, self->categories, edge->key,
                            vst__edge_output(edge));
}

/* Gives a category to a version that has none yet. */
static void categories_put(const work *self, uint64_t version,
                           vst__category category)
{
    if (self->categories[version] == VST_CATEGORY_UNKNOWN)
        self->categories[version] = (uint8_t)category;
}

/* ---- certain facts ------------------------------------------------------- */

static void set_noted(const work *self, vst_storage_role role,
                      vst__category category)
{
    for (size_t i = 0; i < self->flow->key_count; i++)
        if (self->flow->keys[i].noted >> role & 1)
            self->flow->keys[i].category = (uint8_t)category;
}

static void set_temporaries(const work *self)
{
    for (size_t i = 0; i < self->flow->edge_count; i++) {
        const vst__flow_edge *edge = &self->flow->edges[i];
        vst__flow_key *key = &self->flow->keys[edge->key];
        if (vst__edge_creates(edge) && vst__edge_destroys(edge) &&
            key->category == VST_CATEGORY_UNKNOWN)
            key->category = VST_CATEGORY_TEMPORARY;
    }
}

/* ---- inputs -------------------------------------------------------------- */

static bool is_of_gradients(uint8_t category)
{
    return category == VST_CATEGORY_GRADIENT ||
           category == VST_CATEGORY_PARAMETER;
}

/* Returns whether a node takes a key that depends on a gradient; marks the keys
 * that it makes. */
static bool takes_dependant(const work *self, size_t node, size_t *found)
{
    bool any = false;

    FOR_EDGES(edge, self->flow, node)
    {
        if (!vst__edge_is_input(edge))
            continue;
        if (!self->depends[edge->key] &&
            is_of_gradients(category_in(self, edge))) {
            self->depends[edge->key] = 1;
            ++*found;
        }
        any = any || self->depends[edge->key];
    }
    return any;
}

/* Marks the keys that depend on a gradient, until no more are found. */
static void find_dependants(const work *self)
{
    const vst__flow *flow = self->flow;
    size_t found;

    memset(self->depends, 0, flow->key_count);
    do {
        found = 0;
        for (size_t i = 0; i < flow->node_count; i++) {
            if (!takes_dependant(self, i, &found))
                continue;
            FOR_EDGES(edge, flow, i)
            {
                if (!vst__edge_is_output(edge) || self->depends[edge->key])
                    continue;
                self->depends[edge->key] = 1;
                found++;
            }
        }
    } while (found != 0);
}

/* Returns whether a storage that a node takes or makes helps to make a
 * gradient. */
static bool categories_helps(const work *self, size_t node)
{
    FOR_EDGES(edge, self->flow, node)
    {
        if (vst__edge_is_input(edge) &&
            (is_of_gradients(category_in(self, edge)) ||
             self->marks[categories_input(self, edge)] & MAKES_GRADIENT))
            return true;
        if (vst__edge_is_output(edge) &&
            (is_of_gradients(category_out(self, edge)) ||
             self->marks[categories_output(self, edge)] & MAKES_GRADIENT))
            return true;
    }
    return false;
}

static void set_inputs(const work *self)
{
    const vst__flow *flow = self->flow;

    find_dependants(self);
    for (size_t i = flow->node_count; i-- != 0;) {
        if (!categories_helps(self, i))
            continue;
        FOR_EDGES(edge, flow, i)
        {
            if (vst__edge_is_input(edge))
                self->marks[categories_input(self, edge)] |=
                    MAKES_GRADIENT | IS_CANDIDATE;
            if (vst__edge_is_output(edge))
                self->marks[categories_output(self, edge)] |=
                    MAKES_GRADIENT | IS_CANDIDATE;
        }
    }
    /* Storages that the backward pass makes are not inputs. */
    for (size_t i = 0; i < flow->edge_count; i++) {
        const vst__flow_edge *edge = &flow->edges[i];
        if (flow->nodes[edge->node].backward && vst__edge_is_output(edge))
            self->marks[categories_output(self, edge)] &=
                (uint8_t)~IS_CANDIDATE;
    }
    for (size_t i = 0; i < flow->key_count; i++)
        for (uint32_t v = 0; !self->depends[i] && v < flow->keys[i].versions;
             v++)
            if (self->marks[flow->keys[i].first + v] & IS_CANDIDATE)
                categories_put(self, flow->keys[i].first + v,
                               VST_CATEGORY_INPUT);
}

/* ---- parameters that were not reported ----------------------------------- */

/* Returns whether a node may belong to the forward pass. */
static bool is_forward(const work *self, size_t node)
{
    bool any = false;

    if (self->flow->nodes[node].backward)
        return false;
    FOR_EDGES(edge, self->flow, node)
    {
        if (vst__edge_is_input(edge)) {
            if (category_in(self, edge) == VST_CATEGORY_GRADIENT)
                return false;
            any = any || self->marks[categories_input(self, edge)] & IS_FORWARD;
        }
        if (vst__edge_is_output(edge) &&
            category_out(self, edge) == VST_CATEGORY_GRADIENT)
            return false;
    }
    return any;
}

/* Finds storages that are used together with inputs and with storages made from
 * inputs. */
static void find_candidates(const work *self)
{
    const vst__flow *flow = self->flow;

    for (size_t i = 0; i < flow->key_count; i++)
        for (uint32_t v = 0; v < flow->keys[i].versions; v++) {
            uint64_t at = flow->keys[i].first + v;
            self->marks[at] =
                vst__category_of(flow, self->categories, (uint32_t)i, v) ==
                        VST_CATEGORY_INPUT
                    ? IS_FORWARD
                    : 0;
        }
    for (size_t i = 0; i < flow->node_count; i++) {
        if (!is_forward(self, i))
            continue;
        FOR_EDGES(edge, flow, i)
        if (vst__edge_is_output(edge))
            self->marks[categories_output(self, edge)] |= IS_FORWARD;
        FOR_EDGES(edge, flow, i)
        if (vst__edge_is_input(edge) &&
            !(self->marks[categories_input(self, edge)] & IS_FORWARD))
            self->marks[categories_input(self, edge)] |= IS_CANDIDATE;
    }
}

static bool gives_gradient(const work *self, size_t node)
{
    FOR_EDGES(edge, self->flow, node)
    if (vst__edge_is_output(edge) &&
        (category_out(self, edge) == VST_CATEGORY_GRADIENT ||
         self->marks[categories_output(self, edge)] & IS_USED))
        return true;
    return false;
}

/* A parameter is used in the forward pass, helps to make a gradient, and
 * depends on one. */
static void set_parameters(const work *self)
{
    const vst__flow *flow = self->flow;

    find_candidates(self);
    for (size_t i = flow->node_count; i-- != 0;) {
        if (!gives_gradient(self, i))
            continue;
        FOR_EDGES(edge, flow, i)
        if (vst__edge_is_input(edge))
            self->marks[categories_input(self, edge)] |= IS_USED;
    }
    find_dependants(self);
    for (size_t i = 0; i < flow->key_count; i++)
        for (uint32_t v = 0; self->depends[i] && v < flow->keys[i].versions;
             v++) {
            uint8_t both = IS_CANDIDATE | IS_USED;
            if ((self->marks[flow->keys[i].first + v] & both) == both)
                flow->keys[i].category = VST_CATEGORY_PARAMETER;
        }
}

/* ---- activations and details --------------------------------------------- */

/* Returns whether a node of the forward pass works on inputs or activations,
 * and otherwise only on parameters and temporaries. */
static bool categories_activates(const work *self, size_t node)
{
    const unsigned required =
        1u << VST_CATEGORY_INPUT | 1u << VST_CATEGORY_ACTIVATION;
    const unsigned allowed =
        required | 1u << VST_CATEGORY_PARAMETER | 1u << VST_CATEGORY_TEMPORARY;
    unsigned seen = 0;

    if (self->flow->nodes[node].backward)
        return false;
    FOR_EDGES(edge, self->flow, node)
    if (vst__edge_is_input(edge))
        seen |= 1u << category_in(self, edge);
    return seen & required && !(seen & ~allowed);
}

static void set_activations(const work *self)
{
    for (size_t i = 0; i < self->flow->node_count; i++) {
        if (!categories_activates(self, i))
            continue;
        FOR_EDGES(edge, self->flow, i)
        if (vst__edge_is_output(edge))
            categories_put(self, categories_output(self, edge),
                           VST_CATEGORY_ACTIVATION);
    }
}

static void set_autograd_detail(const work *self)
{
    for (size_t i = 0; i < self->flow->edge_count; i++) {
        const vst__flow_edge *edge = &self->flow->edges[i];
        uint8_t before;
        if (!self->flow->nodes[edge->node].backward ||
            !vst__edge_is_output(edge))
            continue;
        before = vst__edge_creates(edge) ? (uint8_t)VST_CATEGORY_UNKNOWN
                                         : category_in(self, edge);
        if (before == VST_CATEGORY_UNKNOWN || before == VST_CATEGORY_AUTOGRAD)
            categories_put(self, categories_output(self, edge),
                           VST_CATEGORY_AUTOGRAD);
    }
}

uint8_t *vst__flow_classify(vst__flow *flow)
{
    work self = {
        .flow = flow,
        .categories = malloc(flow->version_count + 1),
        .marks = calloc(flow->version_count + 1, 1),
        .depends = malloc(flow->key_count + 1),
    };

    if (self.categories != NULL && self.marks != NULL && self.depends != NULL) {
        memset(self.categories, VST_CATEGORY_UNKNOWN, flow->version_count + 1);
        for (size_t i = 0; i < flow->key_count; i++)
            flow->keys[i].category = VST_CATEGORY_UNKNOWN;
        set_noted(&self, VST_STORAGE_GRADIENT, VST_CATEGORY_GRADIENT);
        set_temporaries(&self);
        set_noted(&self, VST_STORAGE_PARAMETER, VST_CATEGORY_PARAMETER);
        set_inputs(&self);
        set_parameters(&self);
        set_activations(&self);
        set_noted(&self, VST_STORAGE_OPTIMIZER, VST_CATEGORY_OPTIMIZER);
        set_autograd_detail(&self);
    } else {
        free(self.categories);
        self.categories = NULL;
    }
    free(self.marks);
    free(self.depends);
    return self.categories;
}
