/* Folded stacks of one view: "outer;inner N" with N bytes, for flame graphs. If
 * there are several processes, each has an outermost frame of its own. One
 * thread at a time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "export/memory/memory_export.h"

typedef struct folded {
    const vst__memory_job *job;
    const char *process;
    vst__memory_texts texts;
    vst__memory_paths paths;
    double *deeper; /* by node: bytes of the stacks below that are too deep */
} folded;

static double bytes_of(const folded *f, size_t node)
{
    return f->paths.summary->nodes[node].own[f->job->options.view].bytes;
}

static void put_line(folded *f, uint32_t node, const char *more, double bytes)
{
    vst__output *output = f->job->output;

    bytes = round(bytes);
    if (bytes < 1)
        return;
    vst__output_text(output, f->process);
    vst__memory_stack_text(output, &f->paths, &f->texts, node);
    vst__output_text(output, more);
    vst__output_write(output, " ", 1);
    vst__json_put_u64(output, (uint64_t)bytes);
    vst__output_write(output, "\n", 1);
}

static vst_status write_lines(folded *f)
{
    size_t count = f->paths.summary->node_count;
    vst_status status = VST_OK;

    for (size_t i = 1; i < count; i++)
        if (f->paths.outer[i] != i) {
            f->deeper[f->paths.outer[i]] += bytes_of(f, i);
            f->paths.is_cut = true;
        }
    for (size_t i = 1; i < count && status == VST_OK; i++) {
        if (f->paths.outer[i] != i)
            continue;
        put_line(f, (uint32_t)i, "", bytes_of(f, i));
        put_line(f, (uint32_t)i, ";" VST_MEMORY_DEEPER, f->deeper[i]);
        status = f->job->output->status;
    }
    return status;
}

static vst_status write_stacks(const vst__memory_job *job, const char *process,
                               const vst_memory_summary *s)
{
    folded f = {.job = job, .process = process};
    vst_status status = vst__memory_texts_make(&f.texts, s, VST_TEXT_FOLDED);

    if (status == VST_OK)
        status = vst__memory_paths_make(&f.paths, s, VST_MEMORY_DEPTH_MAX, 0);
    f.deeper = calloc(s->node_count + 1, sizeof *f.deeper);
    if (f.deeper == NULL)
        status = VST_E_NOMEM;
    if (status == VST_OK)
        status = write_lines(&f);
    free(f.deeper);
    vst__memory_paths_end(&f.paths, job);
    vst__memory_texts_free(&f.texts);
    return status;
}

static vst_status folded_write(vst__memory_job *job)
{
    vst_status status = VST_OK;

    for (size_t i = 0; i < job->count && status == VST_OK; i++) {
        vst_memory_summary *summary;
        vst_trace_info info;
        char process[32] = "";

        vst_trace_get_info(job->traces[i], &info);
        if (job->count > 1)
            snprintf(process, sizeof process, "process %u;",
                     (unsigned)info.pid);
        status = vst__memory_job_summarize(job, i, NULL, &summary);
        if (status != VST_OK)
            break;
        status = write_stacks(job, process, summary);
        vst__memory_summary_free(summary);
    }
    return status;
}

const vst__memory_format vst__memory_folded = {".folded", 1, folded_write};
