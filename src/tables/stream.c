/* A stream of a table's rows: opens one trace after the other, lets the table
 * add rows until a batch is full, and gives that away. Small traces share a
 * batch. After an error it returns the same error for ever. One thread at a
 * time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tables/schema.h"

/* Rows that a step may add, as a rule. */
enum { ROWS_OF_STEP = 4096 };

typedef vst__table_stream stream;

/* ---- sources ------------------------------------------------------------ */

static bool copy_text(const char **text)
{
    if (*text == NULL)
        return true;
    *text = strdup(*text);
    return *text != NULL;
}

static bool copy_source(vst_table_source *to, const vst_table_source *from)
{
    bool copied = true;

    *to = *from;
    copied &= copy_text(&to->path);
    copied &= copy_text(&to->host);
    copied &= copy_text(&to->name);
    copied &= copy_text(&to->command);
    copied &= copy_text(&to->ended);
    return copied;
}

static void free_source(vst_table_source *source)
{
    const char *texts[] = {source->path, source->host, source->name,
                           source->command, source->ended};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free((char *)(uintptr_t)texts[i]);
}

/* ---- traces ------------------------------------------------------------- */

static vst_status fail(stream *self, vst_status status, int sys_errno)
{
    const char *why =
        sys_errno != 0 ? strerror(sys_errno) : vst_status_string(status);

    self->status = status;
    snprintf(self->error, sizeof self->error, "%s: %s",
             self->source != NULL ? self->source->path : self->table->name,
             why);
    return status;
}

static void close_trace(stream *self)
{
    vst__replay_end(self->replay);
    self->replay = NULL;
    if (self->table->end != NULL)
        self->table->end(self);
    vst__places_clear(&self->places);
    if (self->trace != NULL)
        vst_trace_close(self->trace);
    self->trace = NULL;
}

static vst_status open_trace(stream *self, size_t index)
{
    const vst_table_source *source = &self->sources[index];
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    self->source = source;
    status = vst_trace_open(source->path, &self->trace, &error);
    if (status != VST_OK) {
        self->trace = NULL;
        return fail(self, status, error.sys_errno);
    }
    if (source->offset_ns != 0)
        status = vst_trace_set_offset(self->trace, source->offset_ns);
    if (source->from_ns != 0 || source->to_ns != 0)
        vst_trace_set_range(self->trace,
                            source->from_ns != 0 ? source->from_ns : INT64_MIN,
                            source->to_ns != 0 ? source->to_ns : INT64_MAX);
    return status == VST_OK ? VST_OK : fail(self, status, 0);
}

static vst_status begin_trace(stream *self)
{
    vst_status status = open_trace(self, self->next++);

    self->at = 0;
    if (status == VST_OK) {
        status = self->table->begin(self);
        if (status != VST_OK)
            fail(self, status, 0);
    }
    return status;
}

/* So that all batches have the same dictionary, also those of several traces:
 * files of Arrow's have one, and a group of rows of Parquet. */
static vst_status find_names(stream *self)
{
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < self->source_count; i++) {
        status = open_trace(self, i);
        if (status == VST_OK) {
            status = vst__names_define(self);
            if (status != VST_OK)
                fail(self, status, 0);
        }
        close_trace(self);
    }
    return status;
}

static bool is_full(const stream *self)
{
    return self->batch.rows + ROWS_OF_STEP > VST_BATCH_ROWS ||
           self->batch.text >= VST_BATCH_TEXT;
}

/* Adds rows until a batch is full or no trace is left. */
static vst_status fill(stream *self)
{
    if (!self->named && self->table->has_names && self->source_count > 1) {
        vst_status status = find_names(self);

        if (status != VST_OK)
            return status;
    }
    self->named = true;
    while (!is_full(self)) {
        bool done = false;
        vst_status status = VST_OK;

        if (self->trace == NULL) {
            if (self->next == self->source_count)
                return VST_OK;
            status = begin_trace(self);
            if (status != VST_OK)
                return status;
        }
        status = self->table->step(self, &done);
        if (status != VST_OK)
            return fail(self, status,
                        status == VST_E_IO ? self->trace->block.sys_errno : 0);
        if (done)
            close_trace(self);
    }
    return VST_OK;
}

/* ---- Arrow's interface -------------------------------------------------- */

static int as_errno(vst_status status)
{
    return status == VST_OK ? 0 : status == VST_E_NOMEM ? ENOMEM : EIO;
}

static int get_schema(vst_arrow_stream *arrow, vst_arrow_schema *out)
{
    stream *self = arrow->private_data;
    vst_status status = vst__table_make_schema(self->table, out);

    if (status != VST_OK)
        fail(self, status, 0);
    return as_errno(status);
}

static int get_next(vst_arrow_stream *arrow, vst_arrow_array *out)
{
    stream *self = arrow->private_data;
    vst_status status = self->status;

    *out = (vst_arrow_array){.release = NULL};
    if (status == VST_OK)
        status = fill(self);
    if (status != VST_OK || self->batch.rows == 0)
        return as_errno(status);
    status = vst__batch_take(&self->batch, self->dictionaries, out);
    if (status != VST_OK)
        fail(self, status, 0);
    return as_errno(status);
}

static const char *get_last_error(vst_arrow_stream *arrow)
{
    const stream *self = arrow->private_data;

    return self->error[0] != '\0' ? self->error : NULL;
}

static void destroy(stream *self)
{
    close_trace(self);
    for (size_t i = 0; i < self->source_count; i++)
        free_source(&self->sources[i]);
    for (size_t i = 0; i < VST_NAMES_COUNT; i++)
        vst__dictionary_free(&self->dictionaries[i]);
    vst__batch_free(&self->batch);
    if (self->batch.buffers != NULL)
        vst__buffers_close(self->batch.buffers);
    vst__buffers_let_go(self->batch.buffers);
    vst__places_free(&self->places);
    free(self->sources);
    free(self->defined);
    free(self);
}

static void release(vst_arrow_stream *arrow)
{
    destroy(arrow->private_data);
    arrow->release = NULL;
}

vst_status vst_table_stream(const char *name, const vst_table_source *sources,
                            size_t count, vst_arrow_stream *arrow)
{
    const vst__table *table = vst__table_find(name);
    bool copied = true;
    stream *self;

    *arrow = (vst_arrow_stream){.release = NULL};
    if (table == NULL)
        return VST_E_ARGUMENT;
    self = calloc(1, sizeof *self);
    if (self == NULL)
        return VST_E_NOMEM;
    self->table = table;
    self->unknown.shown = -1;
    self->batch.specs = table->columns;
    self->batch.column_count = table->column_count;
    self->batch.buffers = vst__buffers_create();
    self->sources = calloc(count + 1, sizeof *self->sources);
    for (size_t i = 0; self->sources != NULL && i < count && copied; i++) {
        copied = copy_source(&self->sources[i], &sources[i]);
        self->source_count++;
    }
    if (self->sources == NULL || self->batch.buffers == NULL || !copied) {
        destroy(self);
        return VST_E_NOMEM;
    }
    *arrow = (vst_arrow_stream){
        .get_schema = get_schema,
        .get_next = get_next,
        .get_last_error = get_last_error,
        .release = release,
        .private_data = self,
    };
    return VST_OK;
}
