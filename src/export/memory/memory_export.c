/* vst_traces_export_memory: chooses the format by the path's suffix, gives it
 * an output, and combines the progress of all passes. This file knows the
 * formats only by name. One thread at a time uses a trace. */
#include <stdlib.h>
#include <string.h>

#include "export/memory/memory_export.h"
#include "store/reader.h"

static const vst__memory_format *const formats[] = {
    &vst__memory_pickle, &vst__memory_json, &vst__memory_csv,
    &vst__memory_folded, &vst__memory_html,
};

static bool export_ends_with(const char *text, size_t length,
                             const char *suffix)
{
    size_t count = strlen(suffix);

    return length > count && memcmp(text + length - count, suffix, count) == 0;
}

static const vst__memory_format *export_choose(const char *path, bool *gzip)
{
    size_t length = strlen(path);

    *gzip = export_ends_with(path, length, ".gz");
    if (*gzip)
        length -= strlen(".gz");
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (export_ends_with(path, length, formats[i]->suffix))
            return formats[i];
    return NULL;
}

/* ---- passes -------------------------------------------------------------- */

static int export_report_progress(void *ctx, double done)
{
    const vst__memory_job *job = ctx;

    return job->progress(job->progress_ctx, job->before + job->part * done);
}

static double words_of(const vst_trace *trace)
{
    vst_trace_info info;

    vst_trace_get_info(trace, &info);
    return (double)info.words + 1;
}

/* Makes the i-th trace report the job's progress from now on. */
static void begin_pass(vst__memory_job *job, size_t i, unsigned number)
{
    double total = 0, before = 0;

    for (size_t k = 0; k < job->count; k++) {
        double words = words_of(job->traces[k]);
        total += words;
        before += k < i ? words : 0;
    }
    job->part = words_of(job->traces[i]) / total / job->passes;
    job->before = before / total + job->part * number;
    vst_trace_set_progress(
        job->traces[i], job->progress != NULL ? export_report_progress : NULL,
        job);
}

vst_status vst__memory_job_summarize(vst__memory_job *job, size_t i,
                                     vst__serials *freed,
                                     vst_memory_summary **summary)
{
    begin_pass(job, i, 0);
    return vst__memory_summarize(job->traces[i], &job->options, freed, summary,
                                 job->error);
}

vst_status vst__memory_job_replay(vst__memory_job *job, size_t i,
                                  const vst_memory_sink *sink)
{
    begin_pass(job, i, 1);
    return vst_trace_replay_memory(job->traces[i], job->options.window, sink,
                                   job->error);
}

/* ---- the function -------------------------------------------------------- */

typedef struct told {
    vst_progress_fn fn;
    void *ctx;
} told;

vst_status vst_traces_export_memory(vst_trace *const *traces, size_t count,
                                    const char *path,
                                    const vst_memory_report_options *options,
                                    vst_error *error)
{
    vst__memory_job job = {
        .traces = traces,
        .count = count,
        .options = {.window = VST_WINDOW_ALL, .view = VST_MEMORY_PEAK},
        .error = error};
    vst__output output;
    vst_status status;
    bool gzip;
    const vst__memory_format *format = export_choose(path, &gzip);
    told *before;

    vst_error_set(error, VST_OK, 0, 0);
    if (options != NULL)
        job.options = *options;
    if (format == NULL || count == 0 || job.options.view >= VST_MEMORY_VIEWS)
        return vst_error_set(error, VST_E_ARGUMENT, 0, 0);
    for (size_t i = 0; i < count; i++)
        if (!vst_trace_has_memory(traces[i]))
            return vst_error_set(error, VST_E_STATE, 0, 0);
    before = calloc(count, sizeof *before);
    if (before == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    for (size_t i = 0; i < count; i++)
        before[i] = (told){traces[i]->progress, traces[i]->progress_ctx};
    if (job.options.cut_depth != NULL)
        *job.options.cut_depth = 0;
    job.progress = before[0].fn;
    job.progress_ctx = before[0].ctx;
    job.passes = format->passes;
    status = vst__output_create(path, gzip, &output, error);
    if (status == VST_OK) {
        job.output = &output;
        vst__output_expect(&output, traces, count);
        status = format->write(&job);
        if (status != VST_OK && (error == NULL || error->status != status))
            vst_error_set(error, status, 0, 0);
        status = vst__output_finish(&output, status, error);
    }
    for (size_t i = 0; i < count; i++)
        vst_trace_set_progress(traces[i], before[i].fn, before[i].ctx);
    free(before);
    return status;
}
