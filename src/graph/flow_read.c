/* Reads the flow of a trace in two passes: its operators from the events
 * themselves, then its memory. One thread at a time. */
#include "graph/flow.h"

#include <stdlib.h>
#include <string.h>

#include <vestige/memory.h>
#include <vestige/operator.h>

#include "base/effects.h"
#include "base/grow.h"
#include "base/map64.h"
#include "replay/replay.h"

/* Kinds of definitions. */
enum { KIND_NEW, KIND_OTHER, KIND_OPERATOR, KIND_ACCUMULATES, KIND_TAKES };

/* An open call. */
typedef struct frame {
    int64_t start_ns;
    vst_id id;
    uint8_t kind;
    bool has_called;  /* the call has called an operator */
    bool is_gradient; /* the first input of the operator is a gradient */
    size_t outer;     /* the operator around it: its place + 1; 0 if none */
} frame;

typedef struct reader {
    vst__flow *flow;
    const vst_trace *trace;
    uint8_t *kinds; /* by definition id */
    vst_id kinds_max;
    frame *frames;
    size_t depth, capacity;
    size_t inner; /* the innermost operator: its place + 1; 0 if none */
    size_t leaf;  /* the frame of the open node: its place + 1; 0 if none */
    uint32_t node;
} reader;

static vst_status add_touch(vst__flow *flow, int64_t time_ns, uint64_t storage,
                            uint64_t bytes, uint32_t node)
{
    if (!VST_RESERVE(flow->touches, flow->touch_count + 1,
                     flow->touch_capacity) ||
        flow->touch_count >= UINT32_MAX)
        return VST_E_NOMEM;
    flow->touches[flow->touch_count] =
        (vst__flow_touch){time_ns, storage, bytes, node};
    flow->touch_count++;
    return VST_OK;
}

static vst_status add_node(vst__flow *flow, int64_t start_ns, uint32_t thread,
                           bool backward)
{
    if (!VST_RESERVE(flow->nodes, flow->node_count + 1, flow->node_capacity) ||
        flow->node_count >= UINT32_MAX - 1)
        return VST_E_NOMEM;
    flow->nodes[flow->node_count++] = (vst__flow_node){
        .start_ns = start_ns,
        .end_ns = start_ns,
        .thread = thread,
        .backward = backward,
    };
    return VST_OK;
}

/* ---- operators ----------------------------------------------------------- */

static bool flow_is_named(const vst_definition *definition, const char *name)
{
    return definition->name_len == strlen(name) &&
           memcmp(definition->name, name, definition->name_len) == 0;
}

static uint8_t kind_of(reader *self, vst_id id)
{
    const vst_definition *known;

    if (id > self->kinds_max)
        return KIND_OTHER;
    if (self->kinds[id] != KIND_NEW)
        return self->kinds[id];
    known = vst_trace_definition(self->trace, id);
    self->kinds[id] = KIND_OTHER;
    if (known != NULL && known->kind == VST_DEF_OPERATOR) {
        self->kinds[id] = KIND_OPERATOR;
        if (flow_is_named(known, "torch::autograd::AccumulateGrad"))
            self->kinds[id] = KIND_ACCUMULATES;
        else if (flow_is_named(known, "aten::detach") ||
                 flow_is_named(known, "aten::add_"))
            self->kinds[id] = KIND_TAKES;
    }
    return self->kinds[id];
}

static vst_status flow_enter(reader *self, vst_id id, int64_t now_ns)
{
    frame *added;

    if (!VST_RESERVE(self->frames, self->depth + 1, self->capacity))
        return VST_E_NOMEM;
    added = &self->frames[self->depth++];
    *added = (frame){.start_ns = now_ns,
                     .id = id,
                     .kind = kind_of(self, id),
                     .outer = self->inner};
    if (added->kind == KIND_OTHER)
        return VST_OK;
    if (self->inner != 0) {
        frame *around = &self->frames[self->inner - 1];
        added->is_gradient = around->kind == KIND_ACCUMULATES &&
                             !around->has_called && added->kind == KIND_TAKES;
        around->has_called = true;
    }
    self->inner = self->depth;
    return VST_OK;
}

/* Closes all calls from `place` on. */
static void close_from(reader *self, size_t place, int64_t now_ns)
{
    if (self->leaf > place) {
        self->flow->nodes[self->node].end_ns = now_ns;
        self->leaf = 0;
    }
    while (self->inner > place)
        self->inner = self->frames[self->inner - 1].outer;
    self->depth = place;
}

static void flow_leave(reader *self, vst_id id, int64_t now_ns)
{
    for (size_t i = self->depth; i-- != 0;)
        if (self->frames[i].id == id) {
            close_from(self, i, now_ns);
            return;
        }
}

/* Makes the operator on top a node, unless an operator around it is a node. */
static vst_status flow_begin_node(reader *self, uint32_t thread, bool backward)
{
    vst_status status;

    if (self->leaf != 0 || self->inner == 0 || self->inner != self->depth)
        return VST_OK;
    status = add_node(self->flow, self->frames[self->inner - 1].start_ns,
                      thread, backward);
    if (status == VST_OK) {
        self->leaf = self->inner;
        self->node = (uint32_t)(self->flow->node_count - 1);
    }
    return status;
}

static vst_status take_storages(reader *self, const vst_compressed_event *event,
                                int64_t now_ns)
{
    const uint64_t *words = event->payload;
    uint32_t count = event->payload_words / 2;
    vst_status status = VST_OK;
    bool on_top = self->inner != 0 && self->inner == self->depth;

    if (count == 0 || words[0] >> 56 < VST_STORAGE_GIVEN)
        status = flow_begin_node(self, event->where.resource, false);
    for (uint32_t i = 0; i < count && status == VST_OK; i++) {
        uint64_t word = words[2 * i], role = word >> 56;
        bool is_input = role < VST_STORAGE_PARAMETER;
        uint32_t node =
            is_input && self->leaf != 0 ? self->node : VST_FLOW_NONE;

        if (role > VST_STORAGE_OPTIMIZER)
            continue;
        status = add_touch(self->flow, now_ns, word, words[2 * i + 1], node);
        if (i == 0 && is_input && on_top && status == VST_OK &&
            self->frames[self->depth - 1].is_gradient) {
            self->frames[self->depth - 1].is_gradient = false;
            status = add_touch(self->flow, now_ns,
                               vst_storage_word(word, VST_STORAGE_GRADIENT),
                               words[1], VST_FLOW_NONE);
        }
    }
    return status;
}

/* Returns whether an escape changes the stack in another way than call by call.
 * Operators are not followed across it: the open ones end there. */
static bool replaces_stack(uint32_t type)
{
    switch ((vst__effect)vst__escape_rule_of(type)->effect) {
    case VST_EFFECT_LISTS:
    case VST_EFFECT_SWITCHES:
    case VST_EFFECT_PAUSES:
    case VST_EFFECT_FORGETS:
        return true;
    default:
        return false;
    }
}

static vst_status flow_escape(reader *self, const vst_compressed_event *event,
                              int64_t now_ns)
{
    uint32_t type = vst_trace_key_escape_type(event->key);

    switch (type) {
    case VST_ESCAPE_OPERATOR:
        if (event->payload_words >= VST_OPERATOR_HEAD_WORDS &&
            (event->payload[1] >> 48 & 0xff) == VST_SCOPE_BACKWARD)
            return flow_begin_node(self, event->where.resource, true);
        return VST_OK;
    case VST_ESCAPE_STORAGES:
        return take_storages(self, event, now_ns);
    default:
        if (replaces_stack(type))
            close_from(self, 0, now_ns);
        return VST_OK;
    }
}

static vst_status take_events(void *ctx, const vst_time_converter *converter,
                              const vst_compressed_event *events, size_t count,
                              int64_t end_ns)
{
    reader *self = ctx;
    vst_status status = VST_OK;

    for (size_t i = 0; i < count && status == VST_OK; i++) {
        uint32_t kind = vst_trace_key_kind(events[i].key);
        vst_id id = vst_trace_key_id(events[i].key);
        int64_t now_ns;

        if (kind >= vst_trace_key_kind_of_escape(VST_ESCAPE_FIXED))
            continue;
        now_ns = converter->to_ns(converter->ctx, events[i].ticks);
        if (kind == VST_ENTER)
            status = flow_enter(self, id, now_ns);
        else if (kind == VST_EXIT || kind == VST_RAISE)
            flow_leave(self, id, now_ns);
        else
            status = flow_escape(self, &events[i], now_ns);
    }
    if (end_ns != VST_TIME_OPEN)
        close_from(self, 0, end_ns);
    return status;
}

static vst_status read_operators(vst__flow *flow, vst_trace *trace, int window,
                                 vst_error *error)
{
    reader self = {.flow = flow,
                   .trace = trace,
                   .kinds_max = vst_trace_definition_max(trace)};
    vst_status status;

    self.kinds = calloc((size_t)self.kinds_max + 1, 1);
    if (self.kinds == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    status = vst__trace_replay_events(
        trace, window, &(vst_event_sink){&self, take_events}, error);
    free(self.kinds);
    free(self.frames);
    return status;
}

/* ---- memory -------------------------------------------------------------- */

typedef struct memory_reader {
    vst__flow *flow;
    bool framework; /* only blocks of the framework's allocator count */
    /* addresses that operators were given; without `framework`, only blocks at
     * these addresses count */
    vst__map64 tensors;
    /* The operators' nodes, by thread and then by time. */
    const vst__flow_node **by_thread;
    size_t count;
} memory_reader;

static int compare_threads(const void *a, const void *b)
{
    const vst__flow_node *x = *(const vst__flow_node *const *)a;
    const vst__flow_node *y = *(const vst__flow_node *const *)b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Returns the node that the thread was in, or NULL. */
static const vst__flow_node *find_node(const memory_reader *self,
                                       uint32_t thread, int64_t time_ns)
{
    size_t low = 0, high = self->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const vst__flow_node *one = self->by_thread[middle];
        if (one->thread < thread ||
            (one->thread == thread && one->start_ns <= time_ns))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || self->by_thread[low - 1]->thread != thread ||
        self->by_thread[low - 1]->end_ns < time_ns)
        return NULL;
    return self->by_thread[low - 1];
}

/* Returns the role of a memory event in the flow; 0 if it has none. A framework
 * that does not report its blocks gets them from the system's allocator,
 * aligned. Any other block at a tensor's address may belong to the tensor, or
 * may have come after it. */
static uint64_t role_of(memory_reader *self, const vst_memory_event *event)
{
    bool frees = event->flags & VST_MEMORY_FREES;
    uint64_t address = event->address & VST_STORAGE_ADDRESS;
    uint64_t own = frees ? VST_TOUCH_FREED : VST_TOUCH_ALLOCATED;

    if (self->framework)
        return vst_memory_is_framework(event->kind) ? own : 0;
    if (event->kind == VST_MEMORY_POSIX_MEMALIGN)
        return vst__map64_put(&self->tensors, address) != NULL ? own : 0;
    if (vst__map64_find(&self->tensors, address) == NULL)
        return 0;
    return frees ? own : VST_TOUCH_FOUND;
}

static vst_status take_memory(void *ctx, const vst_memory_event *event)
{
    memory_reader *self = ctx;
    vst__flow *flow = self->flow;
    const vst__flow_node *in;
    uint64_t role = role_of(self, event);
    uint32_t node;
    vst_status status = VST_OK;

    if (role == 0)
        return VST_OK;
    flow->has_memory = true;
    in = find_node(self, event->thread, event->time_ns);
    if (in != NULL) {
        node = (uint32_t)in->edges;
    } else {
        node = (uint32_t)flow->node_count;
        status = add_node(flow, event->time_ns, event->thread, false);
    }
    return status == VST_OK
               ? add_touch(flow, event->time_ns,
                           (event->address & VST_STORAGE_ADDRESS) | role << 56,
                           event->size, node)
               : status;
}

static vst_status find_tensors(memory_reader *self)
{
    for (size_t i = 0; i < self->flow->touch_count; i++)
        if (vst__map64_put(&self->tensors, self->flow->touches[i].storage &
                                               VST_STORAGE_ADDRESS) == NULL)
            return VST_E_NOMEM;
    return VST_OK;
}

static vst_status read_memory(vst__flow *flow, vst_trace *trace, int window,
                              vst_error *error)
{
    memory_reader self = {
        .flow = flow, .framework = true, .count = flow->node_count};
    vst__flow_node *copy = malloc((self.count + 1) * sizeof *copy);
    const vst_memory_sink sink = {.ctx = &self, .event = take_memory};
    vst_status status = VST_E_NOMEM;

    self.by_thread = malloc((self.count + 1) * sizeof *self.by_thread);
    if (copy != NULL && self.by_thread != NULL) {
        for (size_t i = 0; i < self.count; i++) {
            copy[i] = flow->nodes[i];
            copy[i].edges = i; /* the node's index, until there are edges */
            self.by_thread[i] = &copy[i];
        }
        qsort(self.by_thread, self.count, sizeof *self.by_thread,
              compare_threads);
        status = vst_trace_replay_memory(trace, window, &sink, error);
        if (status == VST_OK && !flow->has_memory && flow->touch_count != 0) {
            self.framework = false;
            status = find_tensors(&self);
            if (status == VST_OK)
                status = vst_trace_replay_memory(trace, window, &sink, error);
            else
                vst_error_set(error, status, 0, 0);
        }
    } else {
        vst_error_set(error, status, 0, 0);
    }
    vst__map64_free(&self.tensors);
    free(self.by_thread);
    free(copy);
    return status;
}

vst_status vst__flow_read(vst__flow *flow, vst_trace *trace, int window,
                          vst_error *error)
{
    vst_status status = read_operators(flow, trace, window, error);

    flow->has_tensors = flow->touch_count != 0;
    return status == VST_OK ? read_memory(flow, trace, window, error) : status;
}
