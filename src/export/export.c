/* vst_trace_export and vst_traces_export: choose the exporter by name or by the
 * path's suffix, give it an output, and combine the progress of all traces.
 * This file knows the formats only by name. One thread at a time uses a trace.
 */
#include <stdlib.h>
#include <string.h>

#include "export/exporter.h"
#include "store/reader.h"

static const vst__exporter *const exporters[] = {
    &vst__exporter_chrome,          &vst__exporter_execution_trace,
    &vst__exporter_memory_timeline, &vst__exporter_perfetto,
    &vst__exporter_speedscope,      &vst__exporter_flame,
    &vst__exporter_folded,          &vst__exporter_folded_ns,
    &vst__exporter_pprof,           &vst__exporter_pstats,
    &vst__exporter_callgrind,
};

static bool export_ends_with(const char *text, size_t length,
                             const char *suffix, size_t count)
{
    return length > count && memcmp(text + length - count, suffix, count) == 0;
}

static bool export_begins_with(const char *path, const char *prefix,
                               size_t count)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;

    return strncmp(name, prefix, count) == 0;
}

/* Returns how many characters of the path match this format; .speedscope.json
 * is a longer match than .json. */
static size_t export_count_matched(const vst__exporter *one, const char *path,
                                   size_t length)
{
    size_t most = 0;

    for (const char *at = one->suffix; at != NULL && *at != '\0';) {
        size_t count = strcspn(at, " ");
        bool prefix = at[count - 1] == '*';
        size_t matched = count - prefix;

        if (matched > most &&
            (prefix ? export_begins_with(path, at, matched)
                    : export_ends_with(path, length, at, matched)))
            most = matched;
        at += count + (at[count] == ' ');
    }
    return most;
}

static const vst__exporter *export_choose(const char *path, const char *format,
                                          bool *gzip)
{
    size_t length = strlen(path), most = 0;
    const vst__exporter *chosen = NULL;

    *gzip = export_ends_with(path, length, ".gz", strlen(".gz"));
    if (*gzip)
        length -= strlen(".gz");
    for (size_t i = 0; i < sizeof exporters / sizeof exporters[0]; i++) {
        const vst__exporter *one = exporters[i];
        size_t matched = format == NULL
                             ? export_count_matched(one, path, length)
                             : strcmp(format, one->name) == 0;

        if (matched > most) {
            most = matched;
            chosen = one;
        }
    }
    return chosen;
}

/* ---- progress ------------------------------------------------------------ */

/* One trace's part of the total progress. */
typedef struct share {
    vst_progress_fn fn; /* the function that was set for the first trace */
    void *ctx;
    double before, part;
    vst_progress_fn own_fn; /* the function that was set for this trace */
    void *own_ctx;
} share;

static int export_report_share(void *ctx, double done)
{
    const share *self = ctx;

    return self->fn(self->ctx, self->before + self->part * done);
}

static uint64_t export_count_words(const vst_trace *trace, int window)
{
    size_t first, count;
    uint64_t words = 1; /* even a trace without records takes a moment */

    if (vst__trace_select_windows(trace, window, &first, &count) == VST_OK)
        for (size_t i = first; i < first + count; i++)
            words += trace->windows[i].words;
    return words;
}

static void export_share_progress(vst_trace *const *traces, size_t count,
                                  int window, share *shares)
{
    double total = 0, before = 0;

    for (size_t i = 0; i < count; i++)
        total += (double)export_count_words(traces[i], window);
    for (size_t i = 0; i < count; i++) {
        double part = (double)export_count_words(traces[i], window) / total;

        shares[i] = (share){
            .fn = i == 0 ? traces[0]->progress : shares[0].fn,
            .ctx = i == 0 ? traces[0]->progress_ctx : shares[0].ctx,
            .before = before,
            .part = part,
            .own_fn = traces[i]->progress,
            .own_ctx = traces[i]->progress_ctx,
        };
        before += part;
        if (shares[0].fn != NULL)
            vst_trace_set_progress(traces[i], export_report_share, &shares[i]);
        else
            vst_trace_set_progress(traces[i], NULL, NULL);
    }
}

static void restore_progress(vst_trace *const *traces, size_t count,
                             const share *shares)
{
    for (size_t i = 0; i < count; i++)
        vst_trace_set_progress(traces[i], shares[i].own_fn, shares[i].own_ctx);
}

/* ---- vst_trace_export and vst_traces_export ------------------------------ */

vst_status vst_traces_export(vst_trace *const *traces, size_t count,
                             const char *path,
                             const vst_export_options *options,
                             vst_error *error)
{
    static const vst_export_options usual = {.window = VST_WINDOW_LAST};
    vst__output output;
    vst_status status;
    bool gzip;
    const vst__exporter *exporter;
    share *shares;

    vst_error_set(error, VST_OK, 0, 0);
    if (options == NULL)
        options = &usual;
    exporter = export_choose(path, options->format, &gzip);
    if (exporter == NULL || count == 0)
        return vst_error_set(error, VST_E_ARGUMENT, 0, 0);
    shares = calloc(count, sizeof *shares);
    if (shares == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    status = vst__output_create(path, gzip, &output, error);
    if (options->cut_depth != NULL)
        *options->cut_depth = 0;
    if (status == VST_OK) {
        vst__output_expect(&output, traces, count);
        export_share_progress(traces, count, options->window, shares);
        status = exporter->sums != NULL
                     ? vst__tree_write(exporter->sums, traces, count, options,
                                       &output, error)
                     : exporter->write(traces, count, options, &output, error);
        restore_progress(traces, count, shares);
        status = vst__output_finish(&output, status, error);
    }
    free(shares);
    return status;
}

vst_status vst_trace_export(vst_trace *trace, const char *path,
                            const vst_export_options *options, vst_error *error)
{
    return vst_traces_export(&trace, 1, path, options, error);
}
