/* Folded stacks: "outer;inner N" with N bytes, of one view, for flame graphs.
 * With several processes each has a frame of its own outside of all. One thread
 * at a time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "export/memory_export.h"

static vst_status write_stacks(const vst__memory_job *job, const char *process,
                               const vst_memory_summary *s)
{
    vst__output *output = job->output;
    vst__memory_scratch scratch = {0};
    vst__memory_texts texts;
    vst_status status = vst__memory_texts_make(&texts, s, VST_TEXT_FOLDED);

    for (size_t i = 1; i < s->node_count && status == VST_OK; i++) {
        double bytes = round(s->nodes[i].own[job->options.view].bytes);

        if (bytes < 1)
            continue;
        vst__output_text(output, process);
        status =
            vst__memory_stack_text(output, s, &texts, (uint32_t)i, &scratch);
        vst__output_write(output, " ", 1);
        vst__memory_put_u64(output, (uint64_t)bytes);
        vst__output_write(output, "\n", 1);
        if (output->status != VST_OK)
            status = output->status;
    }
    free(scratch.nodes);
    vst__memory_texts_free(&texts);
    return status;
}

static vst_status write(vst__memory_job *job)
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
        status = vst__memory_job_summarize(job, i, 0, NULL, &summary);
        if (status != VST_OK)
            break;
        status = write_stacks(job, process, summary);
        vst_memory_summary_free(summary);
    }
    return status;
}

const vst__memory_format vst__memory_folded = {".folded", 1, write};
