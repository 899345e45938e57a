/* JSON: {"format", "version", "processes": [{facts, "threads", "frames",
 * "stacks", "columns", "events"}]}. A frame is [function, file, line, native];
 * a stack is [parent, frame], and the first is empty; an event is a row of
 * `columns`, in order of time. One thread at a time. */
#include "export/memory/memory_export.h"
#include "export/output/json.h"

typedef struct events {
    vst__output *output;
    const vst_memory_summary *summary;
    bool is_first;
} events;

enum { NUMBERS_MAX = 12 * VST_JSON_NUMBER_MAX + 64 };

static vst_status json_on_event(void *ctx, const vst_memory_event *e)
{
    events *self = ctx;
    vst__output *output = self->output;
    bool frees = (e->flags & VST_MEMORY_FREES) != 0;
    const char *head = frees ? "[\"free\", \"" : "[\"alloc\", \"";
    char *at;

    vst__output_text(output, self->is_first ? "\n" : ",\n");
    self->is_first = false;
    vst__output_text(output, head);
    vst__output_text(output, vst_memory_kind_name(e->kind));
    at = vst__output_reserve(output, NUMBERS_MAX);
    memcpy(at, "\", ", 3);
    at = vst__json_i64(at + 3, e->time_ns);
    *at++ = ',';
    at = vst__json_u64(at, e->thread);
    *at++ = ',';
    at = vst__json_u64(at, e->address);
    *at++ = ',';
    at = vst__json_u64(at, e->size);
    *at++ = ',';
    at = vst__json_u64(at, e->serial);
    *at++ = ',';
    at = vst__json_u64(at, (e->flags & VST_MEMORY_UNKNOWN) != 0
                               ? 0
                               : vst__memory_node_of(self->summary, e));
    *at++ = ',';
    at = vst__json_double(at, e->weight);
    *at++ = ',';
    at = vst__json_u64(at, e->live_bytes);
    *at++ = ']';
    vst__output_commit(output, at);
    return output->status;
}

static void json_put_frames(vst__output *output, const vst_memory_summary *s)
{
    vst__output_text(output, ",\n\"frames\": [");
    for (size_t i = 0; i < s->frame_count; i++) {
        const vst_memory_frame *frame = &s->frames[i];

        vst__output_text(output, i == 0 ? "\n[" : ",\n[");
        vst__memory_put_string(output, frame->name, frame->name_len);
        vst__output_text(output, ", ");
        vst__memory_put_string(output, frame->file, frame->file_len);
        vst__output_text(output, ", ");
        vst__json_put_u64(output, frame->line);
        vst__output_text(output, frame->is_native ? ", true]" : ", false]");
    }
    vst__output_text(output, "\n],\n\"stacks\": [");
    for (size_t i = 0; i < s->node_count; i++) {
        vst__output_text(output, i == 0 ? "[" : ",[");
        vst__json_put_u64(output, s->nodes[i].parent);
        vst__output_text(output, ",");
        vst__json_put_u64(output, s->nodes[i].frame);
        vst__output_text(output, "]");
    }
    vst__output_text(output, "]");
}

static void json_put_threads(vst__output *output, const vst_trace *trace)
{
    vst__output_text(output, ",\n\"threads\": [");
    for (size_t i = 0; i < vst_trace_thread_count(trace); i++) {
        const vst_trace_thread *thread = vst_trace_thread_at(trace, i);

        vst__output_text(output, i == 0 ? "[" : ", [");
        vst__json_put_u64(output, thread->number);
        vst__output_text(output, ", ");
        vst__json_put_u64(output, thread->system_tid);
        vst__output_text(output, ", ");
        vst__memory_put_string(output, thread->name, thread->name_len);
        vst__output_text(output, "]");
    }
    vst__output_text(output, "]");
}

static vst_status write_process(vst__memory_job *job, size_t i)
{
    vst__output *output = job->output;
    events self = {.output = output, .is_first = true};
    const vst_memory_sink sink = {.ctx = &self, .event = json_on_event};
    vst_memory_summary *summary;
    vst_status status = vst__memory_job_summarize(job, i, NULL, &summary);

    if (status != VST_OK)
        return status;
    self.summary = summary;
    vst__output_text(output, i == 0 ? "\n{" : ",\n{");
    vst__memory_put_facts(output, job->traces[i], summary);
    json_put_threads(output, job->traces[i]);
    json_put_frames(output, summary);
    vst__output_text(output,
                     ",\n\"columns\": [\"action\", \"allocator\", \"time_ns\", "
                     "\"thread\", \"address\", \"size\", \"serial\", "
                     "\"stack\", \"weight\", \"live_bytes\"],\n\"events\": [");
    status = vst__memory_job_replay(job, i, &sink);
    vst__output_text(output, "\n]}");
    vst__memory_summary_free(summary);
    return status;
}

static vst_status json_write(vst__memory_job *job)
{
    vst_status status = VST_OK;

    vst__output_text(job->output,
                     "{\"format\": \"vestige memory history\", \"version\": 1,"
                     " \"processes\": [");
    for (size_t i = 0; i < job->count && status == VST_OK; i++)
        status = write_process(job, i);
    vst__output_text(job->output, "\n]}\n");
    return status;
}

const vst__memory_format vst__memory_json = {".json", 2, json_write};
