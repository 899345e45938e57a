/* A pass over a trace: the records are read once, and each table takes the
 * parts of the replay that it needs. One thread at a time. */
#include "tables/pass.h"

#include <stdlib.h>
#include <string.h>

#include "memory/report.h"
#include "tables/schema.h"
#include "tables/sums.h"

/* ---- several sinks ------------------------------------------------------- */

/* Distributes a replay to every sink that wants it. */
typedef struct vst__fan {
    size_t count;
    vst_sink sinks[];
} fan;

#define HAND_ON(name, type)                                                    \
    static vst_status on_##name(void *ctx, type event)                         \
    {                                                                          \
        const fan *self = ctx;                                                 \
        vst_status status = VST_OK;                                            \
                                                                               \
        for (size_t i = 0; i < self->count && status == VST_OK; i++)           \
            if (self->sinks[i].name != NULL)                                   \
                status = self->sinks[i].name(self->sinks[i].ctx, event);       \
        return status;                                                         \
    }

HAND_ON(leave, uint32_t)
HAND_ON(instant, const vst_instant *)
HAND_ON(counter, const vst_counter *)
HAND_ON(loss, const vst_loss *)
HAND_ON(wait, const vst_wait *)
HAND_ON(task, const vst_task_event *)
HAND_ON(device, const vst_device_span *)
HAND_ON(loose, const vst_loose_bytes *)

/* A table gets the mark of recursion only if it asked for it: its rows must not
 * depend on the other tables of the pass. The tree of places also computes this
 * mark. */
static vst_status pass_on_span(void *ctx, const vst_span *span)
{
    const fan *self = ctx;
    vst_status status = VST_OK;
    vst_span plain = *span;

    plain.flags &= ~(uint32_t)VST_SPAN_RECURSIVE;
    for (size_t i = 0; i < self->count && status == VST_OK; i++) {
        const vst_sink *one = &self->sinks[i];

        if (one->span != NULL)
            status = one->span(one->ctx, one->recursion || one->inside != NULL
                                             ? span
                                             : &plain);
    }
    return status;
}

/* Makes a sink that takes everything that any of the sinks takes. */
static vst_sink pass_join(fan *self)
{
    vst_sink all = {.ctx = self, .no_args = true, .no_imports = true};

    for (size_t i = 0; i < self->count; i++) {
        const vst_sink *one = &self->sinks[i];

        all.recursion |= one->recursion;
        all.no_args &= one->no_args;
        all.no_imports &= one->no_imports;
        if (one->inside != NULL)
            all.inside = one->inside;
        all.every_block |= one->every_block;
        all.tensors |= one->tensors;
        all.keywords |= one->keywords;
        if (one->span != NULL)
            all.span = pass_on_span;
        if (one->leave != NULL)
            all.leave = on_leave;
        if (one->instant != NULL)
            all.instant = on_instant;
        if (one->counter != NULL)
            all.counter = on_counter;
        if (one->loss != NULL)
            all.loss = on_loss;
        if (one->wait != NULL)
            all.wait = on_wait;
        if (one->task != NULL)
            all.task = on_task;
        if (one->device != NULL)
            all.device = on_device;
        if (one->loose != NULL)
            all.loose = on_loose;
    }
    return all;
}

/* ---- a trace ------------------------------------------------------------- */

int vst__pass_window(const vst__table_pass *self)
{
    return self->options->window != 0 ? self->options->window : VST_WINDOW_ALL;
}

/* Begins the replay, if a table needs it. */
static vst_status begin_replay(vst__table_pass *self)
{
    fan *made = malloc(sizeof *made + (self->count + 1) * sizeof *made->sinks);
    vst_status status = VST_OK;
    vst_sink sink;

    if (made == NULL)
        return VST_E_NOMEM;
    self->fan = made;
    made->count = 0;
    for (size_t i = 0; i < self->count; i++)
        if (self->fillings[i].is_read)
            made->sinks[made->count++] = self->fillings[i].sink;
    if (self->sums != NULL)
        status = vst__sums_begin(self->sums, &made->sinks[made->count++]);
    self->is_replayed = made->count == 0;
    if (status != VST_OK || self->is_replayed)
        return status;
    sink = made->count == 1 ? made->sinks[0] : pass_join(made);
    return vst__replay_begin(self->trace, vst__pass_window(self), &sink,
                             &self->replay);
}

static vst_status begin_table(vst__table_pass *self, vst__filling *filling)
{
    const vst__table *table = filling->table;

    filling->at = 0;
    filling->is_read = filling->is_done = false;
    if (table->sums != 0 && self->sums == NULL) {
        self->sums = calloc(1, sizeof *self->sums);
        if (self->sums == NULL)
            return VST_E_NOMEM;
        self->sums->options = self->options;
        self->sums->trace = self->trace;
    }
    if (table->sums != 0)
        self->sums->wanted |= table->sums;
    return table->begin != NULL ? table->begin(filling) : VST_OK;
}

vst_status vst__table_pass_begin(vst__table_pass *self)
{
    vst_status status = VST_OK;
    bool has_names = false;

    for (size_t i = 0; i < self->count; i++)
        has_names |= self->fillings[i].table->has_names;
    if (has_names)
        status = vst__names_define(self);
    for (size_t i = 0; i < self->count && status == VST_OK; i++)
        status = begin_table(self, &self->fillings[i]);
    return status == VST_OK ? begin_replay(self) : status;
}

static vst_status step_table(const vst__table_pass *self, vst__filling *filling)
{
    const vst__table *table = filling->table;

    filling->is_done =
        table->step != NULL ? table->step(filling) : self->is_replayed;
    if (filling->is_done && table->put != NULL)
        table->put(filling);
    return filling->batch.status;
}

static bool is_late(int64_t deadline_ns)
{
    vst_clock_sample now = {.monotonic_ns = 0};

    if (deadline_ns != 0)
        vst_clock_sample_now(&now);
    return deadline_ns != 0 && now.monotonic_ns >= deadline_ns;
}

vst_status vst__table_pass_step(vst__table_pass *self, bool *done)
{
    vst_status status = VST_OK;

    if (!self->is_replayed) {
        self->is_cut = is_late(self->options->deadline_ns);
        self->is_replayed = self->is_cut;
        if (!self->is_cut)
            status = vst__replay_step(self->replay, &self->is_replayed);
        if (status == VST_OK && self->is_replayed && self->sums != NULL)
            status = vst__sums_finish(self->sums);
    }
    *done = self->is_replayed;
    for (size_t i = 0; i < self->count && status == VST_OK; i++) {
        if (!self->fillings[i].is_done)
            status = step_table(self, &self->fillings[i]);
        *done &= self->fillings[i].is_done;
    }
    return status;
}

void vst__table_pass_end(vst__table_pass *self)
{
    vst__replay_end(self->replay);
    self->replay = NULL;
    for (size_t i = 0; i < self->count; i++)
        if (self->fillings[i].table->end != NULL)
            self->fillings[i].table->end(&self->fillings[i]);
    if (self->sums != NULL)
        vst__sums_free(self->sums);
    free(self->sums);
    self->sums = NULL;
    vst__memory_summary_free(self->memory);
    self->memory = NULL;
    free(self->fan);
    self->fan = NULL;
    vst__places_clear(&self->places);
}

/* ---- a pass -------------------------------------------------------------- */

vst_status vst__table_pass_create(vst__table_pass *self,
                                  const vst__table *const *tables, size_t count,
                                  const vst__table_options *options)
{
    static const vst__table_options none;

    *self = (vst__table_pass){.options = options != NULL ? options : &none};
    self->unknown.shown = self->unknown.function = -1;
    self->inside.places = &self->places;
    self->fillings = calloc(count + 1, sizeof *self->fillings);
    if (self->fillings == NULL)
        return VST_E_NOMEM;
    self->count = count;
    for (size_t i = 0; i < count; i++) {
        vst__filling *filling = &self->fillings[i];

        filling->table = tables[i];
        filling->pass = self;
        filling->batch.specs = tables[i]->columns;
        filling->batch.column_count = tables[i]->column_count;
        for (size_t at = 0; at < tables[i]->column_count; at++)
            if (tables[i]->columns[at].type == VST_COLUMN_NAME)
                self->shown_names |= 1u << tables[i]->columns[at].names;
    }
    return VST_OK;
}

void vst__table_pass_free(vst__table_pass *self)
{
    vst__table_pass_end(self);
    for (size_t i = 0; i < self->count; i++) {
        vst__dictionary_free(&self->fillings[i].own_names);
        vst__batch_free(&self->fillings[i].batch);
    }
    for (size_t i = 0; i < VST_NAMES_OWN; i++)
        vst__dictionary_free(&self->dictionaries[i]);
    vst__places_free(&self->places);
    free(self->fillings);
    free(self->defined);
}

vst_status vst__table_pass_read(vst__table_pass *self, vst_trace *trace,
                                vst_error *error)
{
    static const vst_table_source unknown = {
        .parent_pid = -1, .rank = -1, .world_size = -1};
    vst_status status;
    bool done = false;

    self->trace = trace;
    self->source = &unknown;
    status = vst__table_pass_begin(self);
    while (status == VST_OK && !done)
        status = vst__table_pass_step(self, &done);
    vst__table_pass_end(self);
    vst_error_set(error, status,
                  status == VST_E_IO ? trace->source.sys_errno : 0, 0);
    return status;
}
