/* The events of a Chrome trace, as replay delivers them. What is the same in
 * all events of a definition (category, name, process) is made into text once
 * and copied; the rest is numbers.
 *
 * Times are whole nanoseconds written as microseconds with three decimals, and
 * a duration is the difference of two such times, so what nests in nanoseconds
 * nests in the text. One thread at a time. */
#include <stdlib.h>

#include "export/timeline/chrome.h"
#include "replay/imports.h"

/* What an event may take beyond its head and its arguments. */
enum { EVENT_MAX = 768 };

/* Stands for the track of the windows. */
#define NO_THREAD UINT32_MAX

/* Copies a literal without its NUL. */
#define PUT(at, literal)                                                       \
    (memcpy((at), (literal), sizeof(literal) - 1), (at) + sizeof(literal) - 1)

/* ---- heads -------------------------------------------------------------- */

const char *vst__chrome_category(vst_definition_kind kind)
{
    switch (kind) {
    case VST_DEF_PYTHON:
    case VST_DEF_NATIVE:
    case VST_DEF_GC:
    case VST_DEF_MODULE:
        return "python_function";
    case VST_DEF_OPERATOR:
        return "cpu_op";
    case VST_DEF_INSTANT:
        return "instant";
    case VST_DEF_COUNTER:
        return "counter";
    case VST_DEF_ANNOTATION:
        break;
    }
    return "user_annotation";
}

static char *put_text(char *at, const char *text)
{
    size_t count = strlen(text);

    memcpy(at, text, count);
    return at + count;
}

static char *put_escaped(char *at, const char *bytes, size_t count)
{
    return vst__json_escape(at, at + (count + 1) * VST_JSON_ESCAPE_MAX, &bytes,
                            bytes + count);
}

/* The name that a span of this definition is shown by, escaped. */
static char *put_name(char *at, const vst_definition *definition)
{
    if (definition->kind == VST_DEF_GC)
        return PUT(at, "Python GC");
    if (definition->kind == VST_DEF_PYTHON) {
        at = put_escaped(at, definition->file + definition->file_skip,
                         definition->file_len - definition->file_skip);
        *at++ = '(';
        at = vst__json_i64(at, definition->line);
        at = PUT(at, "): ");
    }
    return put_escaped(at, definition->name, definition->name_len);
}

static vst_status make_head(vst__timeline *timeline,
                            const vst_definition *definition,
                            vst__chrome_head *head)
{
    size_t strings = (size_t)definition->name_len + definition->file_len + 2;
    char *text = malloc(strings * VST_JSON_ESCAPE_MAX + EVENT_MAX);
    char *at;

    if (text == NULL)
        return VST_E_NOMEM;
    /* The phase stands where set_phase() finds it. */
    at = PUT(text, ",\n{\"ph\": \"X\", \"cat\": \"");
    at = put_text(at, vst__chrome_category(definition->kind));
    at = PUT(at, "\", \"name\": \"");
    at = put_name(at, definition);
    head->name_end = (size_t)(at - text);
    at = PUT(at, "\", \"pid\": ");
    at = vst__json_u64(at, timeline->process->pid);
    at = PUT(at, ", \"tid\": ");
    head->count = (size_t)(at - text);
    head->kind = definition->kind;
    head->is_step = vst__timeline_is_step(definition);
    head->line = definition->line;
    head->bytes = malloc(head->count); /* most of the room was not needed */
    if (head->bytes != NULL)
        memcpy(head->bytes, text, head->count);
    free(text);
    return head->bytes != NULL ? VST_OK : VST_E_NOMEM;
}

static void set_phase(char *event, char phase)
{
    event[sizeof ",\n{\"ph\": \"" - 1] = phase;
}

/* A torn file may have lost a definition. */
static vst_status make_unknown(vst__timeline *timeline, vst_id id)
{
    char name[48] = "unknown function ";
    vst_definition definition = {.kind = VST_DEF_NATIVE, .file = ""};

    definition.name = name;
    definition.name_len =
        (uint32_t)(vst__json_u64(name + strlen(name), id) - name);
    free(vst__chrome_of(timeline)->unknown.bytes);
    vst__chrome_of(timeline)->unknown.bytes = NULL;
    vst__chrome_of(timeline)->unknown_id = id;
    return make_head(timeline, &definition, &vst__chrome_of(timeline)->unknown);
}

static vst_status find_head(vst__timeline *timeline, vst_id id,
                            const vst__chrome_head **head)
{
    size_t index = vst__trace_definition_index(timeline->trace, id);
    vst_status status = VST_OK;

    if (index == VST_NO_DEFINITION) {
        if (vst__chrome_of(timeline)->unknown.bytes == NULL ||
            vst__chrome_of(timeline)->unknown_id != id)
            status = make_unknown(timeline, id);
        *head = &vst__chrome_of(timeline)->unknown;
        return status;
    }
    if (vst__chrome_of(timeline)->heads[index].bytes == NULL)
        status = make_head(timeline, &timeline->trace->definitions[index],
                           &vst__chrome_of(timeline)->heads[index]);
    *head = &vst__chrome_of(timeline)->heads[index];
    return status;
}

vst_status vst__chrome_make_heads(vst__timeline *timeline)
{
    vst__chrome_of(timeline)->heads =
        calloc(timeline->trace->definition_count + 1,
               sizeof *vst__chrome_of(timeline)->heads);
    return vst__chrome_of(timeline)->heads != NULL ? VST_OK : VST_E_NOMEM;
}

void vst__chrome_free_heads(vst__timeline *timeline)
{
    for (size_t i = 0; i < timeline->trace->definition_count; i++)
        free(vst__chrome_of(timeline)->heads[i].bytes);
    free(vst__chrome_of(timeline)->heads);
    free(vst__chrome_of(timeline)->unknown.bytes);
    vst__chrome_of(timeline)->heads = NULL;
    vst__chrome_of(timeline)->unknown.bytes = NULL;
}

/* ---- events ------------------------------------------------------------- */

void vst__chrome_set_thread(vst__timeline *timeline, uint32_t number)
{
    const vst_trace_thread *thread =
        vst_trace_thread_find(timeline->trace, number);
    uint32_t tid = timeline->process->windows_tid;
    char *at = vst__chrome_of(timeline)->thread_text;

    if (thread != NULL)
        tid = timeline->process->tracks[thread - timeline->trace->threads].tid;
    timeline->thread_tid = tid;
    at = vst__json_u64(at, tid);
    at = PUT(at, ", \"ts\": ");
    vst__chrome_of(timeline)->thread_count =
        (size_t)(at - vst__chrome_of(timeline)->thread_text);
    timeline->thread = number;
    timeline->has_thread = true;
    vst__chrome_of(timeline)->time_from = 0;
}

/* A time at the end of the thread's text, which is at `at`. One after the other
 * they begin with the same digits. */
static char *put_time(vst__timeline *timeline, char *at, int64_t time_ns)
{
    int64_t shown_ns = vst__timeline_time(timeline, time_ns);
    uint64_t behind = (uint64_t)shown_ns - vst__chrome_of(timeline)->time_from;

    if (behind >= VST_JSON_EIGHT || vst__chrome_of(timeline)->time_from == 0) {
        char *end = vst__chrome_of(timeline)->thread_text +
                    vst__chrome_of(timeline)->thread_count;

        if (shown_ns < (int64_t)VST_JSON_EIGHT)
            return vst__json_us(at + vst__chrome_of(timeline)->thread_count,
                                shown_ns);
        behind = (uint64_t)shown_ns % VST_JSON_EIGHT;
        vst__chrome_of(timeline)->time_from = (uint64_t)shown_ns - behind;
        end = vst__json_u64(end, vst__chrome_of(timeline)->time_from /
                                     VST_JSON_EIGHT);
        vst__chrome_of(timeline)->time_count =
            (size_t)(end - vst__chrome_of(timeline)->thread_text);
        memcpy(at, vst__chrome_of(timeline)->thread_text,
               sizeof vst__chrome_of(timeline)->thread_text);
    }
    return vst__json_point(at + vst__chrome_of(timeline)->time_count,
                           vst__json_eight((uint32_t)behind), 0);
}

/* Writes an event up to its time, and returns where to go on: there is room for
 * EVENT_MAX bytes more. */
static char *begin_event(vst__timeline *timeline, const vst__chrome_head *head,
                         char phase, uint32_t thread, int64_t time_ns)
{
    vst__output *output = timeline->output;
    char *at;

    if (!timeline->has_thread || timeline->thread != thread)
        vst__chrome_set_thread(timeline, thread);
    if (VST_LIKELY(head->count <= VST_OUTPUT_RESERVE_MAX - 2 * EVENT_MAX)) {
        at = vst__output_reserve(output, head->count + 2 * EVENT_MAX);
        memcpy(at, head->bytes, head->count);
        set_phase(at, phase);
        at += head->count;
    } else {
        set_phase(head->bytes, phase);
        vst__output_write(output, head->bytes, head->count);
        at = vst__output_reserve(output, 2 * EVENT_MAX);
    }
    /* A constant size is a few moves; the rest is overwritten. */
    memcpy(at, vst__chrome_of(timeline)->thread_text,
           sizeof vst__chrome_of(timeline)->thread_text);
    return put_time(timeline, at, time_ns);
}

static char *put_flags(char *at, uint32_t flags)
{
    if (flags & VST_SPAN_OPEN_AT_START)
        at = PUT(at, ", \"open at start\": 1");
    if (flags & VST_SPAN_OPEN_AT_END)
        at = PUT(at, ", \"open at end\": 1");
    if (flags & VST_SPAN_RAISED)
        at = PUT(at, ", \"raised\": 1");
    if (flags & VST_SPAN_CUT)
        at = PUT(at, ", \"cut\": 1");
    if (flags & VST_SPAN_RESUMED)
        at = PUT(at, ", \"resumed\": 1");
    if (flags & VST_SPAN_SUSPENDED)
        at = PUT(at, ", \"suspended\": 1");
    return at;
}

/* Commits up to `at`, then writes arguments that the program gave; returns
 * where to go on. */
static char *put_args(vst__output *output, char *at, const char *args,
                      size_t count)
{
    vst__output_commit(output, at);
    if (vst__json_is_members(args, count)) {
        vst__output_write(output, args, count);
    } else {
        vst__output_text(output, "\"args\": ");
        vst__json_string(output, args, count);
    }
    return vst__output_reserve(output, EVENT_MAX);
}

/* The identities a span goes by: a Python call by its place in the tree, the
 * others by the numbers that link them to other files. */
static char *put_ids(const vst__timeline *timeline, char *at,
                     const vst_span *span, const vst__chrome_head *head)
{
    vst_definition_kind kind = head->kind;
    uint64_t before = timeline->serials_before;
    uint64_t serial = before + span->serial;
    bool call = kind == VST_DEF_PYTHON || kind == VST_DEF_NATIVE ||
                kind == VST_DEF_GC || kind == VST_DEF_MODULE;

    if (call) {
        at = PUT(at, "\"Python parent id\": ");
        at = span->caller != 0 ? vst__json_u64(at, before + span->caller)
                               : PUT(at, "null");
        if (kind == VST_DEF_MODULE) {
            at = PUT(at, ", \"Python module id\": ");
            at = vst__json_i64(at, head->line);
        }
        at = PUT(at, ", \"Python id\": ");
    } else {
        at = PUT(at, "\"External id\": ");
        at = vst__json_u64(at, serial);
        /* Where there are nodes of an execution trace these have it, and only
         * these; else it is never 0, which clients take for none. */
        if (vst__chrome_of(timeline)->has_nodes) {
            if (span->op != NULL && span->op->record != 0) {
                at = PUT(at, ", \"Record function id\": ");
                at = vst__json_u64(at, span->op->record);
            }
            at = PUT(at, ", \"Ev Idx\": ");
            return vst__json_u64(at, serial);
        }
        at = PUT(at, ", \"Record function id\": ");
    }
    at = vst__json_u64(at, serial);
    at = PUT(at, ", \"Ev Idx\": ");
    return vst__json_u64(at, serial);
}

static char *put_import(const vst__timeline *timeline, char *at,
                        const vst_span *span)
{
    char module[VST_IMPORT_NAME_MAX];
    size_t length =
        vst__import_name(timeline->trace, span->import, span->module, module);

    vst__output_commit(timeline->output, PUT(at, ", \"imports\": "));
    vst__json_string(timeline->output, module, length);
    return vst__output_reserve(timeline->output, EVENT_MAX);
}

static char *finish_args(vst__timeline *timeline, char *at,
                         const vst_span *span)
{
    if (span->flags != 0)
        at = put_flags(at, span->flags);
    if (span->flags & VST_SPAN_IMPORT)
        at = put_import(timeline, at, span);
    if (span->total_allocations != 0) {
        at = PUT(at, ", \"Allocated Bytes\": ");
        at = vst__json_u64(at, span->total_bytes);
        at = PUT(at, ", \"Self Allocated Bytes\": ");
        at = vst__json_u64(at, span->self_bytes);
    }
    if (span->args_len != 0) {
        at = PUT(at, ", ");
        at = put_args(timeline->output, at, span->args, span->args_len);
    }
    return PUT(at, "}}");
}

/* Overlaps its neighbours: a pair of events that viewers put on a track of its
 * own. */
static vst_status write_async(vst__timeline *timeline,
                              const vst__chrome_head *head,
                              const vst_span *span)
{
    char *at = begin_event(timeline, head, 'b', span->thread, span->start_ns);

    at = PUT(at, ", \"id\": ");
    at = vst__json_u64(at, timeline->serials_before + span->serial);
    at = PUT(at, ", \"args\": {");
    at = put_ids(timeline, at, span, head);
    at = finish_args(timeline, at, span);
    vst__output_commit(timeline->output, at);
    at = begin_event(timeline, head, 'e', span->thread, span->end_ns);
    at = PUT(at, ", \"id\": ");
    at = vst__json_u64(at, timeline->serials_before + span->serial);
    *at++ = '}';
    vst__output_commit(timeline->output, at);
    return timeline->output->status;
}

static vst_status write_with_head(vst__timeline *timeline,
                                  const vst__chrome_head *head,
                                  const vst_span *span)
{
    uint32_t thread = span->thread;
    vst_status status = VST_OK;
    char *at;

    if (timeline->serials_before + span->serial > timeline->serial_max)
        timeline->serial_max = timeline->serials_before + span->serial;
    if (span->flags & VST_SPAN_ASYNC) {
        if (!head->is_step || !vst__timeline_make_room_for_step(timeline, span))
            return write_async(timeline, head, span);
        thread = NO_THREAD;
    }
    at = begin_event(timeline, head, 'X', thread, span->start_ns);
    at = PUT(at, ", \"dur\": ");
    at = vst__json_us(at, span->end_ns - span->start_ns);
    at = PUT(at, ", \"args\": {");
    at = put_ids(timeline, at, span, head);
    at = finish_args(timeline, at, span);
    vst__output_commit(timeline->output, at);
    if (span->op != NULL)
        status =
            vst__timeline_note_operator(timeline, span, timeline->thread_tid);
    if (span->flags & VST_SPAN_STEP && status == VST_OK)
        status = vst__timeline_note_step(timeline, span);
    return status != VST_OK ? status : timeline->output->status;
}

vst_status vst__chrome_write_span(vst__timeline *timeline, const vst_span *span)
{
    vst__chrome_head overloaded;
    const vst__chrome_head *head;
    vst_status status = find_head(timeline, span->id, &head);

    if (status != VST_OK)
        return status;
    if (!vst__chrome_of(timeline)->overloads)
        return write_with_head(timeline, head, span);
    overloaded = *head;
    overloaded.bytes = NULL;
    status = vst__chrome_add_overload(head, span, &overloaded);
    if (status == VST_OK)
        status = write_with_head(
            timeline, overloaded.bytes != NULL ? &overloaded : head, span);
    free(overloaded.bytes);
    return status;
}

static vst_status write_span(void *ctx, const vst_span *span)
{
    return vst__chrome_write_span(ctx, span);
}

static vst_status write_instant(void *ctx, const vst_instant *instant)
{
    vst__timeline *timeline = ctx;
    const vst__chrome_head *head;
    vst_status status = find_head(timeline, instant->id, &head);
    char *at;

    if (status != VST_OK)
        return status;
    at = begin_event(timeline, head, 'i', instant->thread, instant->time_ns);
    at = PUT(at, ", \"s\": \"t\", \"args\": {");
    if (instant->args_len != 0)
        at = put_args(timeline->output, at, instant->args, instant->args_len);
    at = PUT(at, "}}");
    vst__output_commit(timeline->output, at);
    return timeline->output->status;
}

static vst_status write_counter(void *ctx, const vst_counter *counter)
{
    vst__timeline *timeline = ctx;
    const vst__chrome_head *head;
    vst_status status = find_head(timeline, counter->id, &head);
    char *at;

    if (status != VST_OK)
        return status;
    at = begin_event(timeline, head, 'C', counter->thread, counter->time_ns);
    at = PUT(at, ", \"args\": {\"value\": ");
    at = vst__json_double(at, counter->value);
    at = PUT(at, "}}");
    vst__output_commit(timeline->output, at);
    return timeline->output->status;
}

/* A mark, not a span: a span of its own could overlap those around it. */
static vst_status write_loss(void *ctx, const vst_loss *loss)
{
    vst__timeline *timeline = ctx;
    vst__chrome_head head;
    const char *name = loss->kind == VST_LOSS_DROPPED ? "dropped records"
                       : loss->kind == VST_LOSS_GAP   ? "hooks away"
                                                      : "lost records";
    vst_definition definition = {
        .kind = VST_DEF_INSTANT,
        .name = name,
        .name_len = (uint32_t)strlen(name),
        .file = "",
    };
    vst_status status = make_head(timeline, &definition, &head);
    char *at;

    if (status != VST_OK)
        return status;
    /* What was dropped lies before all that is shown: marked where it ends. */
    at = begin_event(timeline, &head, 'i', loss->thread,
                     loss->kind == VST_LOSS_DROPPED ? loss->end_ns
                                                    : loss->start_ns);
    at = PUT(at, ", \"s\": \"t\", \"args\": {\"start\": ");
    at = vst__json_us(at, vst__timeline_time(timeline, loss->start_ns));
    at = PUT(at, ", \"duration\": ");
    at = vst__json_us(at, loss->end_ns - loss->start_ns);
    at = PUT(at, ", \"records\": ");
    at = vst__json_u64(at, loss->records);
    at = PUT(at, "}}");
    vst__output_commit(timeline->output, at);
    free(head.bytes);
    return timeline->output->status;
}

void vst__chrome_sink(vst__timeline *timeline, vst_sink *sink)
{
    *sink = (vst_sink){
        .ctx = timeline,
        .span = write_span,
        .instant = write_instant,
        .counter = write_counter,
        .loss = write_loss,
        .tells_compensated = true,
    };
}
