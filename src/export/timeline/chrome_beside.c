/* What a Chrome trace says beside the events of a replay: names and places of
 * processes and threads, overloads, arrows, and memory.
 *
 * Memory is a `[memory]` instant for each allocation and free, in torch's form,
 * and a counter of the bytes that are live. Clients pair the instants by Addr,
 * and take Bytes that are not positive for a free. One thread at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vestige/memory.h>

#include "export/timeline/chrome.h"

#define PUT(at, literal)                                                       \
    (memcpy((at), (literal), sizeof(literal) - 1), (at) + sizeof(literal) - 1)

enum {
    EVENT_MAX = 1024, /* of an instant without its place */
    TEXT_MAX = 1024   /* bytes of a file's or function's name that are shown */
};

static char *put_text(char *at, const char *text)
{
    size_t count = strlen(text);

    memcpy(at, text, count);
    return at + count;
}

/* ---- processes and threads ---------------------------------------------- */

/* An event about a process or a thread, up to the value it tells. In another
 * profiler's place it has the time that that one gives it: when the first
 * window began. */
void vst__chrome_put_about(vst__timeline *timeline, const char *name,
                           uint32_t pid, uint32_t tid, const char *what)
{
    vst__output *output = timeline->output;
    const vst_trace *trace = timeline->trace;
    const vst__timeline_process *process = timeline->process;
    bool has_place = vst__chrome_of(timeline)->profiler != NULL;
    vst_ticks start = has_place && process->window_count != 0
                          ? trace->windows[process->first_window].first
                          : trace->header.start.ticks;
    int64_t time_ns = vst__clockmap_to_ns(&timeline->trace->clock, start);

    vst__output_text(output, "{\"ph\": \"M\", \"name\": \"");
    vst__output_text(output, name);
    vst__output_text(output, "\", \"ts\": ");
    vst__json_put_us(output, vst__timeline_time(timeline, time_ns));
    vst__output_text(output, ", \"pid\": ");
    vst__json_put_u64(output, pid);
    vst__output_text(output, ", \"tid\": ");
    vst__json_put_u64(output, tid);
    vst__output_text(output, ", \"args\": {\"");
    vst__output_text(output, what);
    vst__output_text(output, "\": ");
}

static void put_about(vst__timeline *timeline, const char *name, uint32_t tid,
                      const char *what)
{
    vst__chrome_put_about(timeline, name, timeline->process->pid, tid, what);
}

static void put_about_thread(vst__timeline *timeline, uint32_t tid,
                             const char *name, size_t name_len, uint64_t place)
{
    vst__output *output = timeline->output;
    char fallback[48] = "thread ";

    if (name_len == 0) {
        name = fallback;
        name_len = (size_t)(vst__json_u64(fallback + strlen(fallback), tid) -
                            fallback);
    }
    vst__output_text(output, "}},\n");
    put_about(timeline, "thread_name", tid, "name");
    vst__json_string(output, name, name_len);
    vst__output_text(output, "}},\n");
    put_about(timeline, "thread_sort_index", tid, "sort_index");
    vst__json_put_u64(output, place);
}

/* The track of a thread's states lies below its own: viewers put tracks of the
 * same place in the order of their numbers. */
static void put_about_states(vst__timeline *timeline,
                             const vst__timeline_track *track,
                             const vst_trace_thread *thread, uint64_t place)
{
    char name[128];
    int count = snprintf(name, sizeof name, "states of %.*s",
                         (int)(thread->name_len < 100 ? thread->name_len : 100),
                         thread->name);

    if (thread->name_len == 0)
        count = snprintf(name, sizeof name, "states of thread %u", track->tid);
    put_about_thread(timeline, track->states_tid, name, (size_t)count, place);
}

void vst__chrome_put_name(vst__timeline *timeline)
{
    const char *name = vst_trace_metadata(timeline->trace,
                                          VST_TIMELINE_INTERNAL "process_name");

    if (timeline->process_count > 1)
        vst__timeline_put_long_name(timeline, timeline->output);
    else if (name != NULL && name[0] == '"')
        vst__chrome_put_value(timeline->output, name);
    else
        vst__output_text(timeline->output, "\"python\"");
}

void vst__chrome_put_process(vst__timeline *timeline)
{
    static const char windows[] = "Recording windows";
    const vst_trace *trace = timeline->trace;
    const vst__timeline_process *process = timeline->process;
    vst__output *output = timeline->output;
    size_t index = (size_t)(process - timeline->processes);

    if (index != 0)
        vst__output_text(output, ",\n");
    put_about(timeline, "process_name", 0, "name");
    vst__chrome_put_name(timeline);
    vst__output_text(output, "}},\n");
    put_about(timeline, "process_labels", 0, "labels");
    vst__timeline_put_labels(timeline, output);
    vst__output_text(output, "}},\n");
    put_about(timeline, "process_sort_index", 0, "sort_index");
    vst__json_put_u64(output,
                      timeline->process_count > 1 ? index : process->pid);
    put_about_thread(timeline, process->windows_tid, windows,
                     sizeof windows - 1, 0);
    for (size_t i = 0; i < trace->thread_count; i++) {
        const vst__timeline_track *track = &process->tracks[i];

        if (!track->shown)
            continue;
        put_about_thread(timeline, track->tid, trace->threads[i].name,
                         trace->threads[i].name_len, i + 1);
        if (track->states_tid != 0)
            put_about_states(timeline, track, &trace->threads[i], i + 1);
    }
    vst__output_text(output, "}}");
    vst__chrome_put_devices(timeline);
}

void vst__chrome_put_state(vst__timeline *timeline, const vst__state *state)
{
    static const char *const names[] = {
        [VST_THREAD_UNKNOWN] = "?",
        [VST_THREAD_WAITS] = "waiting",
        [VST_THREAD_RUNS] = "running",
        [VST_THREAD_PREEMPTED] = "preempted",
    };
    size_t index = (size_t)(state->thread - timeline->trace->threads);
    vst__output *output = timeline->output;

    vst__output_text(output, ",\n{\"ph\": \"X\", \"cat\": \"thread_state\", "
                             "\"name\": \"");
    vst__output_text(output, names[state->what]);
    vst__output_text(output, "\", \"pid\": ");
    vst__json_put_u64(output, timeline->process->pid);
    vst__output_text(output, ", \"tid\": ");
    vst__json_put_u64(output, timeline->process->tracks[index].states_tid);
    vst__output_text(output, ", \"ts\": ");
    vst__json_put_us(output, vst__timeline_time(timeline, state->start_ns));
    vst__output_text(output, ", \"dur\": ");
    vst__json_put_us(output, state->end_ns - state->start_ns);
    vst__output_text(output, "}");
}

void vst__chrome_put_windows_place(vst__timeline *timeline)
{
    vst__output_text(timeline->output, ",\n");
    put_about(timeline, "thread_sort_index", timeline->process->windows_tid,
              "sort_index");
    vst__output_text(timeline->output, "0}}");
}

/* ---- tasks --------------------------------------------------------------- */

/* In the same place as its thread: clients put those behind each other. */
void vst__chrome_put_lane(vst__timeline *timeline, uint32_t thread,
                          uint32_t tid, const char *name, size_t name_len)
{
    const vst_trace_thread *found =
        vst_trace_thread_find(timeline->trace, thread);
    size_t place =
        found != NULL ? (size_t)(found - timeline->trace->threads) + 1 : 0;

    vst__output_text(timeline->output, ",\n");
    put_about(timeline, "thread_name", tid, "name");
    vst__json_string(timeline->output, name, name_len);
    vst__output_text(timeline->output, "}},\n");
    put_about(timeline, "thread_sort_index", tid, "sort_index");
    vst__json_put_u64(timeline->output, place);
    vst__output_text(timeline->output, "}}");
}

void vst__chrome_put_task(vst__timeline *timeline, const vst__task_span *span)
{
    vst__output *output = timeline->output;

    vst__output_text(output, ",\n{\"ph\": \"X\", \"cat\": \"");
    vst__output_text(output, span->is_wait ? "await" : "task");
    vst__output_text(output, "\", \"name\": ");
    vst__json_string(output, span->name, span->name_len);
    vst__output_text(output, ", \"pid\": ");
    vst__json_put_u64(output, timeline->process->pid);
    vst__output_text(output, ", \"tid\": ");
    vst__json_put_u64(output, span->tid);
    vst__output_text(output, ", \"ts\": ");
    vst__json_put_us(output, vst__timeline_time(timeline, span->start_ns));
    vst__output_text(output, ", \"dur\": ");
    vst__json_put_us(output, span->end_ns - span->start_ns);
    vst__output_text(output, ", \"args\": {\"task\": ");
    vst__json_put_u64(output, span->task);
    vst__output_text(output, "}}");
}

/* ---- overloads ---------------------------------------------------------- */

vst_status vst__chrome_add_overload(const vst__chrome_head *head,
                                    const vst_span *span,
                                    vst__chrome_head *overloaded)
{
    static const char key[] = "\"Overload name\": \"";
    size_t key_count = sizeof key - 1, count = 0;
    const char *end = span->args + span->args_len, *name = NULL;
    char *at;

    if (span->op != NULL && span->args_len != 0)
        name = memmem(span->args, span->args_len, key, key_count);
    if (name == NULL)
        return VST_OK;
    name += key_count;
    while (name + count < end && name[count] != '"' && name[count] != '\\')
        count++;
    if (count == 0 || name + count == end || name[count] != '"')
        return VST_OK;
    *overloaded = *head;
    overloaded->count = head->count + 1 + count;
    at = overloaded->bytes = malloc(overloaded->count);
    if (at == NULL)
        return VST_E_NOMEM;
    memcpy(at, head->bytes, head->name_end);
    at += head->name_end;
    *at++ = '.';
    memcpy(at, name, count);
    memcpy(at + count, head->bytes + head->name_end,
           head->count - head->name_end);
    return VST_OK;
}

/* ---- arrows ------------------------------------------------------------- */

void vst__chrome_put_end(vst__timeline *timeline, const vst__arrow_end *end)
{
    vst__output *output = timeline->output;

    vst__output_text(output, ",\n{\"ph\": \"");
    vst__output_text(output, end->is_head ? "f\", \"bp\": \"e" : "s");
    vst__output_text(output, "\", \"cat\": \"");
    vst__output_text(output, end->category);
    vst__output_text(output, "\", \"name\": \"");
    vst__output_text(output, end->name);
    vst__output_text(output, "\", \"id\": ");
    vst__json_put_u64(output, end->id);
    vst__output_text(output, ", \"pid\": ");
    vst__json_put_u64(output, end->process->pid);
    vst__output_text(output, ", \"tid\": ");
    vst__json_put_u64(output, end->tid);
    vst__output_text(output, ", \"ts\": ");
    vst__json_put_us(output, vst__timeline_time(timeline, end->time_ns));
    vst__output_text(output, "}");
}

/* ---- memory ------------------------------------------------------------- */

void vst__chrome_put_point(vst__timeline *timeline, const char *name,
                           int64_t time_ns, uint64_t bytes)
{
    char *at = vst__output_reserve(timeline->output, EVENT_MAX);

    at = PUT(at, ",\n{\"ph\": \"C\", \"cat\": \"counter\", "
                 "\"name\": \"");
    at = put_text(at, name);
    at = PUT(at, "\", \"pid\": ");
    at = vst__json_u64(at, timeline->process->pid);
    at = PUT(at, ", \"tid\": ");
    at = vst__json_u64(at, timeline->process->windows_tid);
    at = PUT(at, ", \"ts\": ");
    at = vst__json_us(at, vst__timeline_time(timeline, time_ns));
    at = PUT(at, ", \"args\": {\"bytes\": ");
    at = vst__json_u64(at, bytes);
    at = PUT(at, "}}");
    vst__output_commit(timeline->output, at);
}

static char *put_cut(char *at, const char *bytes, size_t count)
{
    return vst__json_escape(at, at + (count + 1) * VST_JSON_ESCAPE_MAX, &bytes,
                            bytes + count);
}

/* `"At": "file:line function", `, of a long file name its end. */
static char *put_place(const vst_trace *trace, char *at, const vst_stack *stack)
{
    const vst_definition *d = vst_trace_definition(trace, stack->function);
    size_t skip, count;

    if (d == NULL)
        return at;
    skip = d->file_skip;
    count = d->file_len - skip;
    if (count > TEXT_MAX) {
        skip += count - TEXT_MAX;
        count = TEXT_MAX;
    }
    at = PUT(at, "\"At\": \"");
    at = put_cut(at, d->file + skip, count);
    *at++ = ':';
    at = vst__json_i64(at, stack->line);
    *at++ = ' ';
    at = put_cut(at, d->name, d->name_len < TEXT_MAX ? d->name_len : TEXT_MAX);
    return PUT(at, "\", ");
}

void vst__chrome_put_memory_instant(vst__timeline *timeline, const char *name,
                                    const vst_memory_event *event,
                                    uint64_t size)
{
    const vst_stack *stack =
        vst__timeline_find_place(timeline->trace, event->stack);
    bool frees = (event->flags & VST_MEMORY_FREES) != 0;
    char *at = vst__output_reserve(
        timeline->output, EVENT_MAX + (2 * TEXT_MAX + 2) * VST_JSON_ESCAPE_MAX);

    if (!timeline->has_thread || timeline->thread != event->thread)
        vst__chrome_set_thread(timeline, event->thread);
    at = PUT(at, ",\n{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", "
                 "\"s\": \"t\", \"name\": \"");
    at = put_text(at, name);
    at = PUT(at, "\", \"pid\": ");
    at = vst__json_u64(at, timeline->process->pid);
    at = PUT(at, ", \"tid\": ");
    memcpy(at, vst__chrome_of(timeline)->thread_text,
           sizeof vst__chrome_of(timeline)->thread_text);
    at = vst__json_us(at + vst__chrome_of(timeline)->thread_count,
                      vst__timeline_time(timeline, event->time_ns));
    at = PUT(at, ", \"args\": {\"Total Reserved\": 0, \"Total Allocated\": ");
    at = vst__json_u64(at, event->live_bytes);
    at = PUT(at, ", \"Bytes\": ");
    if (frees)
        *at++ = '-';
    at = vst__json_u64(at, event->size);
    at = PUT(at, ", \"Device Id\": -1, \"Device Type\": 0, \"Addr\": ");
    at = vst__json_u64(at, event->address);
    at = PUT(at, ", \"Kind\": \"");
    at = put_text(at, vst_memory_kind_name(event->kind));
    at = PUT(at, "\", ");
    if (stack != NULL)
        at = put_place(timeline->trace, at, stack);
    if (event->stack != 0) {
        at = PUT(at, "\"Stack id\": ");
        at = vst__json_u64(at, event->stack);
        at = PUT(at, ", ");
    }
    if (event->flags & VST_MEMORY_STALE_STACK)
        at = PUT(at, "\"stale stack\": 1, ");
    if (event->weight != 1) {
        at = PUT(at, "\"Size\": ");
        at = vst__json_u64(at, size);
        at = PUT(at, ", \"Weight\": ");
        at = vst__json_double(at, event->weight);
        at = PUT(at, ", ");
    }
    at = PUT(at, "\"Ev Idx\": ");
    at = vst__json_u64(at, ++timeline->serial_max);
    at = PUT(at, "}}");
    vst__output_commit(timeline->output, at);
}
