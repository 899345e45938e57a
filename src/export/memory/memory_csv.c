/* CSV: a row for each allocation or free, in order of time. Only the row of an
 * allocation has the stack; its free has the same serial. One thread at a time.
 */
#include <stdlib.h>

#include "export/memory/memory_export.h"
#include "export/output/json.h"

typedef struct rows {
    vst__output *output;
    const vst_memory_summary *summary;
    vst__memory_texts texts;
    vst__memory_paths paths;
    uint32_t pid;
} rows;

enum { NUMBERS_MAX = 12 * VST_JSON_NUMBER_MAX + 64 };

static char *csv_put_numbers(char *at, const rows *r, const vst_memory_event *e)
{
    bool frees = (e->flags & VST_MEMORY_FREES) != 0;

    at = vst__json_u64(at, r->pid);
    *at++ = ',';
    at = vst__json_i64(at, e->time_ns);
    *at++ = ',';
    at = vst__json_u64(at, e->thread);
    at = vst__json_word(at, frees ? ",free," : ",alloc,");
    at = vst__json_word(at, vst_memory_kind_name(e->kind));
    *at++ = ',';
    at = vst__json_u64(at, e->address);
    *at++ = ',';
    at = vst__json_u64(at, e->size);
    *at++ = ',';
    at = vst__json_u64(at, e->serial);
    *at++ = ',';
    at = vst__json_double(at, e->weight);
    *at++ = ',';
    return vst__json_u64(at, e->live_bytes);
}

static void csv_put_text(rows *r, uint32_t frame)
{
    vst__output_write(r->output, r->texts.texts[frame],
                      r->texts.lengths[frame]);
}

static vst_status csv_on_event(void *ctx, const vst_memory_event *e)
{
    rows *r = ctx;
    vst__output *output = r->output;
    uint32_t node = vst__memory_node_of(r->summary, e);
    bool frees = (e->flags & VST_MEMORY_FREES) != 0;
    bool is_known = (e->flags & VST_MEMORY_UNKNOWN) == 0;
    char *at = vst__output_reserve(output, NUMBERS_MAX);

    at = csv_put_numbers(at, r, e);
    vst__output_commit(output, at);
    vst__output_text(output, ",\"");
    if (is_known)
        csv_put_text(r, vst__memory_line_frame(r->summary->nodes, node,
                                               r->summary->frames));
    vst__output_text(output, "\",\"");
    if (!frees)
        vst__memory_stack_text(output, &r->paths, &r->texts, node);
    vst__output_text(output, "\"\n");
    return output->status;
}

static vst_status write_rows(vst__memory_job *job, size_t i)
{
    rows r = {.output = job->output};
    const vst_memory_sink sink = {.ctx = &r, .event = csv_on_event};
    vst_memory_summary *summary;
    vst_trace_info info;
    vst_status status = vst__memory_job_summarize(job, i, NULL, &summary);

    if (status != VST_OK)
        return status;
    vst_trace_get_info(job->traces[i], &info);
    r.pid = info.pid;
    r.summary = summary;
    status = vst__memory_texts_make(&r.texts, summary, VST_TEXT_QUOTED);
    if (status == VST_OK)
        status = vst__memory_paths_make(&r.paths, summary, VST_MEMORY_OUTER_MAX,
                                        VST_MEMORY_INNER_MAX);
    if (status == VST_OK)
        status = vst__memory_job_replay(job, i, &sink);
    vst__memory_paths_end(&r.paths, job);
    vst__memory_texts_free(&r.texts);
    vst__memory_summary_free(summary);
    return status;
}

static vst_status csv_write(vst__memory_job *job)
{
    vst_status status = VST_OK;

    vst__output_text(job->output,
                     "process,time_ns,thread,action,allocator,address,size,"
                     "serial,weight,live_bytes,line,stack\n");
    for (size_t i = 0; i < job->count && status == VST_OK; i++)
        status = write_rows(job, i);
    return status;
}

const vst__memory_format vst__memory_csv = {".csv", 2, csv_write};
