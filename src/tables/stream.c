/* Reads tables batch by batch: opens one trace after the other, lets a pass add
 * rows until the batch of a table is full, and gives the batch away. Small
 * traces share a batch. A stream in Arrow's interface reads one table. One
 * thread at a time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tables/pass.h"
#include "tables/schema.h"

/* Rows that a step may add, usually. */
enum { ROWS_OF_STEP = 4096 };

struct vst__table_reader {
    vst__table_pass pass;
    vst__buffers *buffers;
    vst_table_source *sources; /* owns copies of their texts */
    size_t source_count, next; /* next: the source to open next */
    bool named;                /* the names of all traces are known */
    vst_status status;
    char error[512];
};

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

static vst_status stream_fail(vst__table_reader *self, vst_status status,
                              int sys_errno)
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

static void close_trace(vst__table_reader *self)
{
    vst__table_pass_end(&self->pass);
    if (self->pass.trace != NULL)
        vst_trace_close(self->pass.trace);
    self->pass.trace = NULL;
}

static vst_status open_trace(vst__table_reader *self, size_t index)
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

static vst_status begin_trace(vst__table_reader *self)
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
static vst_status stream_find_names(vst__table_reader *self)
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

/* Returns the index of a table whose batch has at least so many rows, or is
 * full of text; the number of tables if there is none. */
static size_t stream_find_full(const vst__table_reader *self, size_t rows)
{
    size_t i = 0;

    while (i < self->pass.count && self->pass.fillings[i].batch.rows < rows &&
           self->pass.fillings[i].batch.text < VST_BATCH_TEXT)
        i++;
    return i;
}

static bool shows_names(const vst__table_reader *self)
{
    bool shows = false;

    for (size_t i = 0; i < self->pass.count; i++)
        shows |= self->pass.fillings[i].table->has_names;
    return shows;
}

/* Adds the rows of one step. */
static vst_status stream_step(vst__table_reader *self)
{
    vst_status status = self->pass.trace == NULL ? begin_trace(self) : VST_OK;
    bool done = false;

    if (status != VST_OK)
        return status;
    status = vst__table_pass_step(&self->pass, &done);
    if (status != VST_OK)
        return stream_fail(
            self, status,
            status == VST_E_IO ? self->pass.trace->block.sys_errno : 0);
    if (done)
        close_trace(self);
    return VST_OK;
}

/* Adds rows until a batch is full or no trace is left. Sets *table to the table
 * whose batch is due, or the number of tables at the end. */
static vst_status stream_fill(vst__table_reader *self, size_t *table)
{
    vst_status status = VST_OK;

    if (!self->named && self->source_count > 1 && shows_names(self))
        status = stream_find_names(self);
    self->named = true;
    while (status == VST_OK) {
        bool at_end =
            self->pass.trace == NULL && self->next == self->source_count;

        *table = stream_find_full(
            self, at_end ? 1 : VST_BATCH_ROWS - ROWS_OF_STEP + 1);
        if (at_end || *table < self->pass.count)
            break;
        status = stream_step(self);
    }
    return status;
}

vst_status vst__table_reader_next(vst__table_reader *self, size_t *table,
                                  vst_arrow_array *out)
{
    vst__dictionary *names[VST_NAMES_COUNT];
    vst_status status = self->status;

    *out = (vst_arrow_array){.release = NULL};
    if (status == VST_OK)
        status = stream_fill(self, table);
    if (status != VST_OK || *table == self->pass.count)
        return status;
    for (size_t i = 0; i < VST_NAMES_OWN; i++)
        names[i] = &self->pass.dictionaries[i];
    names[VST_NAMES_OWN] = &self->pass.fillings[*table].own_names;
    status = vst__batch_take(&self->pass.fillings[*table].batch, names, out);
    return status == VST_OK ? VST_OK : stream_fail(self, status, 0);
}

const char *vst__table_reader_error(const vst__table_reader *self)
{
    return self->error[0] != '\0' ? self->error : NULL;
}

void vst__table_reader_destroy(vst__table_reader *self)
{
    close_trace(self);
    for (size_t i = 0; i < self->source_count; i++)
        free_source(&self->sources[i]);
    free(self->sources);
    vst__table_pass_free(&self->pass);
    if (self->buffers != NULL)
        vst__buffers_close(self->buffers);
    vst__buffers_let_go(self->buffers);
    free(self);
}

static vst_status stream_create(const vst__table *const *tables,
                                size_t table_count,
                                const vst_table_source *sources,
                                size_t source_count, vst__table_reader **out)
{
    vst__table_reader *self = calloc(1, sizeof *self);
    bool copied = true;

    if (self == NULL)
        return VST_E_NOMEM;
    self->buffers = vst__buffers_create();
    self->sources = calloc(source_count + 1, sizeof *self->sources);
    if (vst__table_pass_create(&self->pass, tables, table_count, NULL) ==
        VST_OK)
        for (size_t i = 0; i < table_count; i++)
            self->pass.fillings[i].batch.buffers = self->buffers;
    for (size_t i = 0; self->sources != NULL && i < source_count && copied;
         i++) {
        copied = copy_source(&self->sources[i], &sources[i]);
        self->source_count++;
    }
    if (self->sources == NULL || self->pass.count != table_count ||
        self->buffers == NULL || !copied) {
        vst__table_reader_destroy(self);
        return VST_E_NOMEM;
    }
    *out = self;
    return VST_OK;
}

vst_status vst__table_reader_create(const char *const *names, size_t name_count,
                                    const vst_table_source *sources,
                                    size_t source_count,
                                    vst__table_reader **reader)
{
    const vst__table **tables = calloc(name_count + 1, sizeof *tables);
    vst_status status = tables != NULL ? VST_OK : VST_E_NOMEM;

    for (size_t i = 0; status == VST_OK && i < name_count; i++) {
        tables[i] = vst__table_find(names[i]);
        status = tables[i] != NULL ? VST_OK : VST_E_ARGUMENT;
    }
    if (status == VST_OK)
        status =
            stream_create(tables, name_count, sources, source_count, reader);
    free(tables);
    return status;
}

/* ---- Arrow's interface --------------------------------------------------- */

static int stream_as_errno(vst_status status)
{
    return status == VST_OK ? 0 : status == VST_E_NOMEM ? ENOMEM : EIO;
}

static int get_schema(vst_arrow_stream *arrow, vst_arrow_schema *out)
{
    vst__table_reader *self = arrow->private_data;
    vst_status status =
        vst__table_make_schema(self->pass.fillings[0].table, out);

    if (status != VST_OK)
        stream_fail(self, status, 0);
    return stream_as_errno(status);
}

static int get_next(vst_arrow_stream *arrow, vst_arrow_array *out)
{
    size_t table;

    return stream_as_errno(
        vst__table_reader_next(arrow->private_data, &table, out));
}

static const char *get_last_error(vst_arrow_stream *arrow)
{
    return vst__table_reader_error(arrow->private_data);
}

static void stream_release(vst_arrow_stream *arrow)
{
    vst__table_reader_destroy(arrow->private_data);
    arrow->release = NULL;
}

vst_status vst__table_stream(const char *name, const vst_table_source *sources,
                             size_t count, vst_arrow_stream *arrow)
{
    vst__table_reader *reader = NULL;
    vst_status status =
        vst__table_reader_create(&name, 1, sources, count, &reader);

    *arrow = (vst_arrow_stream){.release = NULL};
    if (status == VST_OK)
        *arrow = (vst_arrow_stream){
            .get_schema = get_schema,
            .get_next = get_next,
            .get_last_error = get_last_error,
            .release = stream_release,
            .private_data = reader,
        };
    return status;
}
