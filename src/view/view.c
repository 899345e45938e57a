/* Opens a view: finds its index, or builds it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "os/os.h"
#include "store/whole.h"
#include "view/follow/live.h"
#include "view/view_state.h"

enum { WINDOW_WORDS_MAX = 500000, SPAN_WORDS_MAX = 8000000 };
/* Flag in the identity of an index: imports are folded in it. */
#define FOLDED 0x80000000u

/* ---- ends on other threads ----------------------------------------------- */

static vst_status make_far_ends(vst_view *view)
{
    const vst_trace *trace = view->trace;

    if (!vst__trace_has_far_ends(trace))
        return VST_OK;
    view->far_ends = calloc(trace->window_count + 1, sizeof *view->far_ends);
    if (view->far_ends == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < view->stretch_count; i++)
        view->stretches[i].far_ends =
            &view->far_ends[view->stretches[i].window - trace->windows];
    return VST_OK;
}

static vst_status read_far_ends(vst_view *view)
{
    vst_trace *trace = view->trace;
    vst_time_converter converter = vst__clockmap_converter(&trace->clock);
    vst__decoder *decoder;
    vst_status status = VST_OK;

    if (view->far_ends == NULL)
        return VST_OK;
    decoder = vst__decoder_create();
    if (decoder == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; status == VST_OK && i < trace->window_count; i++)
        if (!vst__window_is_gone(trace, &trace->windows[i]))
            status =
                vst__far_ends_collect(&view->far_ends[i], trace,
                                      &trace->windows[i], decoder, &converter);
    vst__decoder_destroy(decoder);
    return status;
}

static vst_status load_far_ends(vst_view *view)
{
    const vst__index *index = &view->index;

    if (view->far_ends == NULL)
        return VST_OK;
    for (size_t i = 0; i < index->header->far_ends.count; i++) {
        const vst__index_far_end *end = &index->far_ends[i];
        uint64_t *place;

        if (end->window >= view->trace->window_count)
            continue;
        place = vst__map64_put(&view->far_ends[end->window].ends, end->pair);
        if (place == NULL)
            return VST_E_NOMEM;
        *place = (uint64_t)end->end_ns;
    }
    return VST_OK;
}

/* ---- the index ----------------------------------------------------------- */

typedef struct making {
    vst_view *view;
    const vst_view_options *options;
    vst__index_identity identity;
} making;

static vst_status build_into(void *ctx, int fd, vst_error *error)
{
    making *self = ctx;
    vst__index_job job = {
        .trace = self->view->trace,
        .reading = &self->view->reading,
        .stretches = self->view->stretches,
        .stretch_count = self->view->stretch_count,
        .far_ends = self->view->far_ends,
        .identity = &self->identity,
        .workers = self->options->workers,
        .progress = self->options->progress,
        .progress_ctx = self->options->progress_ctx,
    };

    vst__os_file_copy_access(self->view->trace->source.fd, fd, false);
    return vst__index_build(&job, fd, error);
}

static vst_status load_from(making *self, int fd)
{
    vst_view *view = self->view;

    return vst__index_load(&view->index, fd, view->trace, &self->identity,
                           view->stretches, view->stretch_count);
}

/* Loads an existing index. Sets *replace if the file at its place may be
 * replaced, because it was an index. */
static vst_status find_index(making *self, bool *replace)
{
    int trace = self->view->trace->source.fd;
    const char *path = self->view->index_path;
    char magic[sizeof VST_INDEX_MAGIC - 1];
    vst_status status;
    size_t got;
    int fd;

    *replace = true;
    if (!vst__os_file_exists(path))
        return VST_E_DAMAGED;
    *replace = false;
    if (vst__os_file_open(path, &fd) != 0)
        return VST_E_DAMAGED;
    /* In a shared folder, any user can put an index next to a trace. */
    status = vst__os_file_is_as_safe(fd, trace) ? load_from(self, fd)
                                                : VST_E_DAMAGED;
    if (vst__os_file_read(fd, magic, sizeof magic, 0, &got) == 0)
        *replace = got == 0 || memcmp(magic, VST_INDEX_MAGIC, got) == 0;
    vst__os_file_close(fd);
    return status;
}

static vst_status build_unnamed(making *self, int (*create)(int *),
                                vst_error *error)
{
    vst_status status;
    int fd, failed = create(&fd);

    if (failed != 0)
        return vst_error_set(error, VST_E_IO, failed, 0);
    status = build_into(self, fd, error);
    if (status == VST_OK)
        status = load_from(self, fd);
    vst__os_file_close(fd);
    return status;
}

static vst_status build_in_memory(making *self, vst_error *error)
{
    vst_status status =
        build_unnamed(self, vst__os_file_create_temporary, error);

    if (status == VST_E_IO)
        status = build_unnamed(self, vst__os_file_create_in_memory, error);
    free(self->view->index_path);
    self->view->index_path = NULL;
    return status;
}

static vst_status build_file(making *self, vst_error *error)
{
    vst_status status =
        vst__write_whole(self->view->index_path, true, build_into, self, error);
    bool replace;

    return status == VST_OK ? find_index(self, &replace) : status;
}

static vst_status get_index(making *self, vst_error *error)
{
    vst_view *view = self->view;
    bool replace = false;
    vst_status status = VST_E_DAMAGED;

    if (!self->options->no_file) {
        status = find_index(self, &replace);
        if (status == VST_OK)
            return load_far_ends(view);
        if (status == VST_E_NOMEM)
            return status;
    }
    view->built = true;
    status = read_far_ends(view);
    if (status != VST_OK)
        return vst_error_set(error, status, view->trace->block.sys_errno, 0);
    status = replace ? build_file(self, error) : VST_E_IO;
    /* The index could not be kept for lack of room or permission. If the trace
     * could not be read instead, the second build reports that. */
    if (status == VST_E_IO || status == VST_E_EXISTS || status == VST_E_DAMAGED)
        status = build_in_memory(self, error);
    return status;
}

/* ---- the view ------------------------------------------------------------ */

/* Decides whether imports are folded: the trace must have imports, and a
 * rectangle's id must have room for their ids. Returns false if memory ran out.
 */
static bool choose_folding(vst_view *view, bool wanted)
{
    if (!vst__imports_make(&view->imports, view->trace) ||
        !vst__costs_make(&view->costs, view->trace))
        return false;
    if (wanted && view->imports.class_of != NULL &&
        view->imports.max < (VST_VIEW_ID_MASK - VST_VIEW_IMPORT_IDS) / 3)
        view->reading.imports = &view->imports;
    return true;
}

static bool choose_path(vst_view *view, const char *path,
                        const vst_view_options *options)
{
    const char *suffix = options->index != NULL ? "" : ".view";
    const char *base = options->index != NULL ? options->index : path;
    size_t size = strlen(base) + strlen(suffix) + 1;

    view->index_path = malloc(size);
    if (view->index_path != NULL)
        snprintf(view->index_path, size, "%s%s", base, suffix);
    return view->index_path != NULL;
}

static vst_status set_up(vst_view *view, const char *path,
                         const vst_view_options *options, vst_error *error)
{
    making self = {.view = view, .options = options};
    vst_status status = vst_trace_open(path, &view->trace, error);

    if (status != VST_OK)
        return status;
    vst_trace_get_info(view->trace, &view->info);
    vst__reading_init(&view->reading, view->trace);
    if (!choose_folding(view, options->fold_imports) ||
        (!options->no_file && !choose_path(view, path, options)))
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    status = vst__stretches_find(view->trace, &view->stretches,
                                 &view->stretch_count);
    if (status == VST_OK)
        status = make_far_ends(view);
    if (status == VST_OK)
        status = vst__index_identify(view->trace, view->stretches,
                                     view->stretch_count, &self.identity);
    if (view->reading.imports != NULL)
        self.identity.state |= FOLDED;
    if (status != VST_OK)
        return vst_error_set(error, status, 0, 0);
    status = get_index(&self, error);
    if (status != VST_OK && error != NULL && error->status == VST_OK)
        vst_error_set(error, status, 0, 0);
    return status;
}

/* ---- a trace that grows -------------------------------------------------- */

/* Updates everything that moves when a trace grows. */
static void take_live(vst_view *view)
{
    view->trace = vst__live_trace(view->live);
    view->reading = *vst__live_reading(view->live);
    view->stretches = vst__live_stretches(view->live, &view->stretch_count);
    view->index = *vst__live_index(view->live);
    vst_trace_get_info(view->trace, &view->info);
}

static vst_status open_live(vst_view *view, const char *path, vst_error *error)
{
    vst_status status = vst__live_open(&view->live, path, error);

    if (status == VST_OK)
        take_live(view);
    view->built = true;
    return status;
}

vst_status vst__view_refresh(vst_view *view, vst_error *error)
{
    vst_status status;

    if (view->live == NULL)
        return vst_error_set(error, VST_E_STATE, 0, 0);
    status = vst__live_grow(view->live, error);
    take_live(view); /* even after an error, because the data has moved */
    return status;
}

const vst_trace *vst__view_trace(const vst_view *view)
{
    return view->trace;
}

static void close_live(vst_view *view)
{
    vst__live_close(view->live);
    pthread_mutex_destroy(&view->lock);
    free(view);
}

vst_status vst__view_open(const char *path, const vst_view_options *options,
                          vst_view **out, vst_error *error)
{
    static const vst_view_options usual;
    vst_view *view = calloc(1, sizeof *view);
    vst_status status;

    vst_error_set(error, VST_OK, 0, 0);
    if (view == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    pthread_mutex_init(&view->lock, NULL);
    view->window_words_max = WINDOW_WORDS_MAX;
    view->span_words_max = SPAN_WORDS_MAX;
    options = options != NULL ? options : &usual;
    status = options->follow ? open_live(view, path, error)
                             : set_up(view, path, options, error);
    if (status != VST_OK) {
        vst__view_close(view);
        return status;
    }
    vst_error_set(error, VST_OK, 0, 0);
    *out = view;
    return VST_OK;
}

void vst__view_close(vst_view *view)
{
    if (view == NULL)
        return;
    if (view->live != NULL) {
        close_live(view);
        return;
    }
    vst__index_unload(&view->index);
    if (view->far_ends != NULL)
        for (size_t i = 0; i < view->trace->window_count; i++)
            vst__far_ends_free(&view->far_ends[i]);
    free(view->far_ends);
    free(view->stretches);
    free(view->index_path);
    vst__imports_free(&view->imports);
    vst__costs_free(&view->costs);
    vst_trace_close(view->trace);
    pthread_mutex_destroy(&view->lock);
    free(view);
}

void vst__view_get_info(const vst_view *view, vst_view_info *info)
{
    const vst__index_header *header = view->index.header;

    memset(info, 0, sizeof *info);
    info->trace = view->info;
    info->records = header->identity.words;
    info->spans = header->spans;
    for (size_t i = 0; i < header->threads.count; i++)
        info->has_tasks |= view->index.threads[i].has_tasks != 0;
    info->index_bytes = header->size;
    info->index_path = view->index_path;
    info->built = view->built;
    info->start_ns = info->trace.start_ns + view->offset_ns;
    info->end_ns = info->trace.end_ns + view->offset_ns;
}

size_t vst__view_thread_count(const vst_view *view)
{
    return (size_t)view->index.header->threads.count;
}

void vst__view_get_thread(const vst_view *view, size_t number,
                          vst_view_thread *thread)
{
    const vst__index_thread *of = &view->index.threads[number];
    const vst_trace_thread *known = vst_trace_thread_at(view->trace, number);

    *thread = (vst_view_thread){
        .number = of->number,
        .system_tid = known->system_tid,
        .name = known->name,
        .name_len = known->name_len,
        .levels = of->levels,
        .off_stack = of->off_stack,
        .spans = of->spans,
        .records = known->words,
    };
    if (of->spans != 0) {
        thread->start_ns = of->start_ns + view->offset_ns;
        thread->end_ns = of->end_ns + view->offset_ns;
    }
}

vst_status vst__view_set_offset(vst_view *view, int64_t offset_ns)
{
    const int64_t limit = (int64_t)1 << 60;

    if (offset_ns < -limit || offset_ns > limit)
        return VST_E_ARGUMENT;
    view->offset_ns = offset_ns;
    return VST_OK;
}
