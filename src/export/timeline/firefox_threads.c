/* A thread of a profile: its samples, made of the spans that were kept, and its
 * markers. See firefox.h. One thread at a time. */
#include <stdlib.h>

#include "base/grow.h"
#include "export/timeline/firefox.h"

/* ---- markers ------------------------------------------------------------ */

vst_status vst__ff_add_marker(vst__ff_thread *thread,
                              const vst__ff_marker *marker, const char *args,
                              size_t args_len)
{
    vst__ff_marker *markers =
        vst__grow(thread->markers, &thread->marker_capacity,
                  thread->marker_count + 1, sizeof *markers);
    char *text = vst__grow(thread->text, &thread->text_capacity,
                           thread->text_count + args_len + 1, 1);

    if (markers != NULL)
        thread->markers = markers;
    if (text != NULL)
        thread->text = text;
    if (markers == NULL || text == NULL)
        return VST_E_NOMEM;
    markers[thread->marker_count] = *marker;
    markers[thread->marker_count].args = thread->text_count;
    markers[thread->marker_count++].args_len = args_len;
    if (args_len != 0)
        memcpy(text + thread->text_count, args, args_len);
    thread->text_count += args_len;
    return VST_OK;
}

void vst__ff_free_thread(vst__ff_thread *thread)
{
    vst__kept_free(&thread->kept);
    free(thread->markers);
    free(thread->text);
}

static const vst__ff_marker *marker_at(const vst__firefox *self, size_t index)
{
    return &self->thread->markers[index];
}

static char *put_marker_name(vst__firefox *self, size_t index, char *at)
{
    return vst__json_u64(at, marker_at(self, index)->name);
}

static char *put_marker_start(vst__firefox *self, size_t index, char *at)
{
    return vst__json_ms(at, marker_at(self, index)->start_ns - self->base_ns);
}

static char *put_marker_end(vst__firefox *self, size_t index, char *at)
{
    const vst__ff_marker *marker = marker_at(self, index);

    if (!marker->is_instant)
        return vst__json_ms(at, marker->end_ns - self->base_ns);
    memcpy(at, "null", 4);
    return at + 4;
}

static char *put_marker_phase(vst__firefox *self, size_t index, char *at)
{
    *at = marker_at(self, index)->is_instant ? '0' : '1';
    return at + 1;
}

static char *put_marker_category(vst__firefox *self, size_t index, char *at)
{
    return vst__json_u64(at, marker_at(self, index)->kind);
}

/* Arguments are members of JSON, which is how they are shown. */
static void put_marker_data(vst__firefox *self)
{
    const vst__ff_thread *thread = self->thread;
    vst__output *output = self->timeline.output;

    vst__output_text(output, ",\"data\":[");
    for (size_t i = 0; i < thread->marker_count; i++) {
        const vst__ff_marker *marker = &thread->markers[i];

        vst__output_text(output, i != 0 ? ",\n{\"type\":\"" : "{\"type\":\"");
        vst__output_text(output, vst__ff_kind_names[marker->kind]);
        vst__output_text(output, "\"");
        if (marker->args_len != 0) {
            vst__output_text(output, ",\"args\":");
            vst__json_string(output, thread->text + marker->args,
                             marker->args_len);
        }
        vst__output_text(output, "}");
    }
    vst__output_text(output, "]");
}

static void put_markers(vst__firefox *self)
{
    size_t count = self->thread->marker_count;

    vst__output_text(self->timeline.output, ",\n\"markers\":{\"length\":");
    vst__json_put_u64(self->timeline.output, count);
    vst__ff_put_column(self, "name", count, put_marker_name);
    vst__ff_put_column(self, "startTime", count, put_marker_start);
    vst__ff_put_column(self, "endTime", count, put_marker_end);
    vst__ff_put_column(self, "phase", count, put_marker_phase);
    vst__ff_put_column(self, "category", count, put_marker_category);
    put_marker_data(self);
    vst__output_text(self->timeline.output, "}");
}

/* ---- samples ------------------------------------------------------------ */

static vst_status find_stack(vst__firefox *self, uint32_t parent,
                             uint32_t function, uint32_t *index)
{
    uint64_t *number =
        vst__map64_put(&self->stack_of, (uint64_t)parent << 32 | function);
    vst__ff_stack *stacks;

    if (number == NULL)
        return VST_E_NOMEM;
    if (*number == 0) {
        stacks = vst__grow(self->stacks, &self->stack_capacity,
                           self->stack_count + 1, sizeof *stacks);
        if (stacks == NULL || self->stack_count >= VST_FF_NO_STACK - 1)
            return VST_E_NOMEM;
        self->stacks = stacks;
        stacks[self->stack_count++] = (vst__ff_stack){parent, function};
        *number = self->stack_count;
    }
    *index = (uint32_t)(*number - 1);
    return VST_OK;
}

/* The stack that was open until then has a sample, if that took any time. */
static vst_status pass(vst__firefox *self, int64_t until_ns)
{
    vst__ff_sample *samples;

    if (!self->begun)
        self->now_ns = until_ns;
    self->begun = true;
    if (until_ns <= self->now_ns)
        return VST_OK;
    samples = vst__grow(self->samples, &self->sample_capacity,
                        self->sample_count + 2, sizeof *samples);
    if (samples == NULL)
        return VST_E_NOMEM;
    self->samples = samples;
    samples[self->sample_count++] = (vst__ff_sample){self->now_ns, self->stack};
    self->now_ns = until_ns;
    return VST_OK;
}

static vst_status open_span(void *ctx, const vst__kept_span *span)
{
    vst__firefox *self = ctx;
    vst_status status = pass(self, span->start_ns);

    return status == VST_OK
               ? find_stack(self, self->stack, span->function, &self->stack)
               : status;
}

static vst_status close_span(void *ctx, const vst__kept_span *span)
{
    vst__firefox *self = ctx;
    vst_status status = pass(self, span->end_ns);

    self->stack = self->stacks[self->stack].parent;
    return status;
}

static char *put_sample_stack(vst__firefox *self, size_t index, char *at)
{
    if (self->samples[index].stack != VST_FF_NO_STACK)
        return vst__json_u64(at, self->samples[index].stack);
    memcpy(at, "null", 4);
    return at + 4;
}

static char *put_sample_delta(vst__firefox *self, size_t index, char *at)
{
    int64_t before =
        index != 0 ? self->samples[index - 1].time_ns : self->base_ns;

    return vst__json_ms(at, self->samples[index].time_ns - before);
}

static char *put_sample_weight(vst__firefox *self, size_t index, char *at)
{
    const vst__ff_sample *sample = &self->samples[index];

    if (sample->stack == VST_FF_NO_STACK) {
        *at = '0';
        return at + 1;
    }
    return vst__json_ms(at, sample[1].time_ns - sample->time_ns);
}

/* The last sample says that nothing is open any more. */
static vst_status put_samples(vst__firefox *self)
{
    vst__kept_walk walk = {self, open_span, close_span};
    vst_status status;
    size_t count;

    self->sample_count = 0;
    self->stack = VST_FF_NO_STACK;
    self->begun = false;
    status = vst__kept_tell(&self->thread->kept, &walk);
    if (status != VST_OK)
        return status;
    if (self->sample_count != 0)
        self->samples[self->sample_count++] =
            (vst__ff_sample){self->now_ns, VST_FF_NO_STACK};
    count = self->sample_count;
    vst__output_text(self->timeline.output, ",\n\"samples\":{\"length\":");
    vst__json_put_u64(self->timeline.output, count);
    vst__output_text(self->timeline.output, ",\"weightType\":\"tracing-ms\"");
    vst__ff_put_column(self, "stack", count, put_sample_stack);
    vst__ff_put_column(self, "timeDeltas", count, put_sample_delta);
    vst__ff_put_column(self, "weight", count, put_sample_weight);
    vst__output_text(self->timeline.output, "}");
    return self->timeline.output->status;
}

/* ---- the thread --------------------------------------------------------- */

static void put_name(vst__firefox *self, const vst_trace_thread *thread)
{
    vst__output *output = self->timeline.output;

    if (thread != NULL && thread->name_len != 0) {
        vst__json_string(output, thread->name, thread->name_len);
        return;
    }
    vst__output_text(output, "\"thread ");
    vst__json_put_u64(output, self->thread->number);
    vst__output_text(output, "\"");
}

static void put_head(vst__firefox *self)
{
    vst__timeline *timeline = &self->timeline;
    const vst__timeline_process *process = timeline->process;
    const vst_trace *trace = timeline->trace;
    const vst_trace_thread *thread =
        vst_trace_thread_find(trace, self->thread->number);
    bool is_main = thread != NULL && thread->system_tid == trace->header.pid;
    vst__output *output = timeline->output;

    if (is_main)
        self->main_threads[process - timeline->processes] =
            (uint32_t)self->thread_total;
    vst__output_text(output, self->thread_total != 0 ? ",\n" : "\n");
    vst__output_text(output,
                     "{\"processType\":\"default\",\"processStartupTime\":0,"
                     "\"processShutdownTime\":null,\"registerTime\":0,"
                     "\"unregisterTime\":null,\"pausedRanges\":[],"
                     "\"showMarkersInTimeline\":true,\"name\":");
    put_name(self, thread);
    vst__output_text(output, ",\"isMainThread\":");
    vst__output_text(output, is_main ? "true" : "false");
    vst__output_text(output, ",\"processName\":");
    vst__timeline_put_long_name(timeline, output);
    vst__output_text(output, ",\"pid\":\"");
    vst__json_put_u64(output, process->pid);
    vst__output_text(output, "\",\"tid\":");
    vst__json_put_u64(output, thread != NULL
                                  ? process->tracks[thread - trace->threads].tid
                                  : self->thread->number);
}

vst_status vst__ff_put_thread(vst__firefox *self, vst__ff_thread *thread)
{
    vst_status status;

    self->thread = thread;
    put_head(self);
    status = put_samples(self);
    put_markers(self);
    vst__output_text(self->timeline.output, "}");
    self->thread_total++;
    vst__kept_clear(&thread->kept);
    thread->marker_count = thread->text_count = 0;
    return status;
}
