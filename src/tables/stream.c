/* A stream of a table's rows: opens one trace after the other, lets a pass with
 * that table add rows until a batch is full, and gives the batch away. Small
 * traces share a batch. After an error the stream always returns this error.
 * One thread at a time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tables/pass.h"
#include "tables/schema.h"

/* Rows that a step may add, usually. */
enum { ROWS_OF_STEP = 4096 };

typedef struct stream {
    vst__table_pass pass;      /* with one table */
    vst_table_source *sources; /* with copies of their texts */
    size_t source_count, next; /* next: the source to open next */
    bool named;                /* the names of all traces are known */
    vst_status status;
    char error[512];
} stream;

static vst__batch *batch_of(stream *self)
{
    return &self->pass.fillings[0].batch;
}

/* ---- sources ------------------------------------------------------------- */

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

/* ---- traces -------------------------------------------------------------- */

static vst_status stream_fail(stream *self, vst_status status, int sys_errno)
{
    const char *why =
        sys_errno != 0 ? strerror(sys_errno) : vst_status_string(status);

    self->status = status;
    snprintf(self->error, sizeof self->error, "%s: %s",
             self->pass.source != NULL ? self->pass.source->path
                                       : self->pass.fillings[0].table->name,
             why);
    return status;
}

static void close_trace(stream *self)
{
    vst__table_pass_end(&self->pass);
    if (self->pass.trace != NULL)
        vst_trace_close(self->pass.trace);
    self->pass.trace = NULL;
}

static vst_status open_trace(stream *self, size_t index)
{
    const vst_table_source *source = &self->sources[index];
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    self->pass.source = source;
    status = vst_trace_open(source->path, &self->pass.trace, &error);
    if (status != VST_OK) {
        self->pass.trace = NULL;
        return stream_fail(self, status, error.sys_errno);
    }
    if (source->offset_ns != 0)
        status = vst_trace_set_offset(self->pass.trace, source->offset_ns);
    if (source->from_ns != 0 || source->to_ns != 0)
        vst_trace_set_range(self->pass.trace,
                            source->from_ns != 0 ? source->from_ns : INT64_MIN,
                            source->to_ns != 0 ? source->to_ns : INT64_MAX);
    return status == VST_OK ? VST_OK : stream_fail(self, status, 0);
}

static vst_status begin_trace(stream *self)
{
    vst_status status = open_trace(self, self->next++);

    if (status == VST_OK) {
        status = vst__table_pass_begin(&self->pass);
        if (status != VST_OK)
            stream_fail(self, status, 0);
    }
    return status;
}

/* Reads the names of all traces first, so that all batches have one dictionary:
 * Arrow files have one dictionary, and so has a row group of Parquet. */
static vst_status stream_find_names(stream *self)
{
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < self->source_count; i++) {
        status = open_trace(self, i);
        if (status == VST_OK) {
            status = vst__names_define(&self->pass);
            if (status != VST_OK)
                stream_fail(self, status, 0);
        }
        close_trace(self);
    }
    return status;
}

static bool is_full(stream *self)
{
    return batch_of(self)->rows + ROWS_OF_STEP > VST_BATCH_ROWS ||
           batch_of(self)->text >= VST_BATCH_TEXT;
}

/* Adds rows until a batch is full or no trace is left. */
static vst_status stream_fill(stream *self)
{
    if (!self->named && self->pass.fillings[0].table->has_names &&
        self->source_count > 1) {
        vst_status status = stream_find_names(self);

        if (status != VST_OK)
            return status;
    }
    self->named = true;
    while (!is_full(self)) {
        bool done = false;
        vst_status status = VST_OK;

        if (self->pass.trace == NULL) {
            if (self->next == self->source_count)
                return VST_OK;
            status = begin_trace(self);
            if (status != VST_OK)
                return status;
        }
        status = vst__table_pass_step(&self->pass, &done);
        if (status != VST_OK)
            return stream_fail(
                self, status,
                status == VST_E_IO ? self->pass.trace->block.sys_errno : 0);
        if (done)
            close_trace(self);
    }
    return VST_OK;
}

/* ---- Arrow's interface --------------------------------------------------- */

static int stream_as_errno(vst_status status)
{
    return status == VST_OK ? 0 : status == VST_E_NOMEM ? ENOMEM : EIO;
}

static int get_schema(vst_arrow_stream *arrow, vst_arrow_schema *out)
{
    stream *self = arrow->private_data;
    vst_status status =
        vst__table_make_schema(self->pass.fillings[0].table, out);

    if (status != VST_OK)
        stream_fail(self, status, 0);
    return stream_as_errno(status);
}

static int get_next(vst_arrow_stream *arrow, vst_arrow_array *out)
{
    stream *self = arrow->private_data;
    vst__table_pass *pass = &self->pass;
    vst__dictionary *const names[VST_NAMES_COUNT] = {
        [VST_NAMES_SHOWN] = &pass->dictionaries[VST_NAMES_SHOWN],
        [VST_NAMES_FILES] = &pass->dictionaries[VST_NAMES_FILES],
        [VST_NAMES_KINDS] = &pass->dictionaries[VST_NAMES_KINDS],
        [VST_NAMES_OWN] = &pass->fillings[0].own_names};
    vst_status status = self->status;

    *out = (vst_arrow_array){.release = NULL};
    if (status == VST_OK)
        status = stream_fill(self);
    if (status != VST_OK || batch_of(self)->rows == 0)
        return stream_as_errno(status);
    status = vst__batch_take(batch_of(self), names, out);
    if (status != VST_OK)
        stream_fail(self, status, 0);
    return stream_as_errno(status);
}

static const char *get_last_error(vst_arrow_stream *arrow)
{
    const stream *self = arrow->private_data;

    return self->error[0] != '\0' ? self->error : NULL;
}

static void stream_destroy(stream *self)
{
    vst__buffers *buffers =
        self->pass.count != 0 ? batch_of(self)->buffers : NULL;

    close_trace(self);
    for (size_t i = 0; i < self->source_count; i++)
        free_source(&self->sources[i]);
    free(self->sources);
    vst__table_pass_free(&self->pass);
    if (buffers != NULL)
        vst__buffers_close(buffers);
    vst__buffers_let_go(buffers);
    free(self);
}

static void stream_release(vst_arrow_stream *arrow)
{
    stream_destroy(arrow->private_data);
    arrow->release = NULL;
}

vst_status vst__table_stream(const char *name, const vst_table_source *sources,
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
    if (vst__table_pass_create(&self->pass, &table, 1, NULL) == VST_OK)
        batch_of(self)->buffers = vst__buffers_create();
    self->sources = calloc(count + 1, sizeof *self->sources);
    for (size_t i = 0; self->sources != NULL && i < count && copied; i++) {
        copied = copy_source(&self->sources[i], &sources[i]);
        self->source_count++;
    }
    if (self->sources == NULL || self->pass.count == 0 ||
        batch_of(self)->buffers == NULL || !copied) {
        stream_destroy(self);
        return VST_E_NOMEM;
    }
    *arrow = (vst_arrow_stream){
        .get_schema = get_schema,
        .get_next = get_next,
        .get_last_error = get_last_error,
        .release = stream_release,
        .private_data = self,
    };
    return VST_OK;
}
