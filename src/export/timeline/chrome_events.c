/* The events of a Chrome trace, each on a line of its own. The text that all
 * events of a label share (category, name, process) is made once and copied;
 * the rest is numbers.
 *
 * Times are whole nanoseconds, written as microseconds with three decimals; a
 * duration is the difference of two such times. So spans that nest in
 * nanoseconds nest in the text. One thread at a time. */
#include "export/timeline/chrome_events.h"

#include <stdlib.h>

#include <vestige/record.h>

enum {
    EVENT_MAX = 2048,     /* an event without its head and its texts */
    SHORT_TEXT_MAX = 4096 /* bytes of a text that is escaped in place */
};

/* ---- the beginning of an event ------------------------------------------- */

static char *event_put_escaped(char *at, const char *bytes, size_t count)
{
    return vst__json_escape(at, at + (count + 1) * VST_JSON_ESCAPE_MAX, &bytes,
                            bytes + count);
}

static void set_phase(char *event, char phase)
{
    event[sizeof ",\n{\"ph\": \"" - 1] = phase;
}

/* Returns the text of an event up to its tid's value, which the caller frees;
 * NULL if memory ran out. set_phase() finds the phase at its fixed place; the
 * scope of instants of memory is at the place where torch has it. */
static char *make_head(vst__chrome *self, const vst__label *label,
                       vst__category category, int64_t pid, size_t *count)
{
    char *text = malloc((label->count + 1) * VST_JSON_ESCAPE_MAX + EVENT_MAX);
    char *at = text, *less;

    if (text == NULL) {
        vst__drawing_fail(&self->drawing, VST_E_NOMEM);
        return NULL;
    }
    at = VST_JSON_PUT(at, ",\n{\"ph\": \"X\", \"cat\": \"");
    at = vst__json_word(at, vst__category_name(category));
    if (category == VST_CATEGORY_MEMORY)
        at = VST_JSON_PUT(at, "\", \"s\": \"t");
    at = VST_JSON_PUT(at, "\", \"name\": \"");
    at = event_put_escaped(at, label->text, label->count);
    at = VST_JSON_PUT(at, "\", \"pid\": ");
    at = vst__json_i64(at, pid);
    at = VST_JSON_PUT(at, ", \"tid\": ");
    *count = (size_t)(at - text);
    less = realloc(text, *count); /* give back the unused room */
    if (less == NULL) {
        vst__drawing_fail(&self->drawing, VST_E_NOMEM);
        free(text);
    }
    return less;
}

static void set_tid(vst__chrome *self, int64_t tid)
{
    char *at = vst__json_i64(self->tid_text, tid);

    self->tid_count = (size_t)(VST_JSON_PUT(at, ", \"ts\": ") - self->tid_text);
    self->tid = tid;
    self->has_tid = true;
    self->time_from = 0;
}

/* Writes a time at `at`, the end of the tid's text. Consecutive times mostly
 * begin with equal digits, which are kept there. */
static inline char *put_time(vst__chrome *self, char *at, int64_t time_ns)
{
    int64_t shown_ns = vst__drawing_time(&self->drawing, time_ns);
    uint64_t behind = (uint64_t)shown_ns - self->time_from;

    if (behind >= VST_JSON_EIGHT || self->time_from == 0) {
        char *end = self->tid_text + self->tid_count;

        if (shown_ns < (int64_t)VST_JSON_EIGHT)
            return vst__json_us(at + self->tid_count, shown_ns);
        behind = (uint64_t)shown_ns % VST_JSON_EIGHT;
        self->time_from = (uint64_t)shown_ns - behind;
        end = vst__json_u64(end, self->time_from / VST_JSON_EIGHT);
        self->time_count = (size_t)(end - self->tid_text);
        memcpy(at, self->tid_text, sizeof self->tid_text);
    }
    return vst__json_point(at + self->time_count,
                           vst__json_eight((uint32_t)behind), 0);
}

/* Writes the beginning of an event whose label has no prepared text. */
static void event_put_head_once(vst__chrome *self, const vst__label *label,
                                char phase, vst__category category, int64_t pid)
{
    size_t count;
    char *head = make_head(self, label, category, pid, &count);

    if (head == NULL)
        return;
    set_phase(head, phase);
    vst__output_write(self->drawing.output, head, count);
    free(head);
}

/* Writes the tid and the time behind a head; there is room for EVENT_MAX more
 * bytes. */
static inline char *put_tid_and_time(vst__chrome *self, char *at,
                                     int64_t time_ns)
{
    /* Copying a constant size takes a few moves; later output overwrites the
     * rest. */
    memcpy(at, self->tid_text, sizeof self->tid_text);
    return put_time(self, at, time_ns);
}

/* Writes an event up to its time, and returns the place to continue. */
static inline char *begin_event(vst__chrome *self, vst__label *label,
                                char phase, uint32_t tid, int64_t time_ns)
{
    vst__output *output = self->drawing.output;
    int64_t pid = self->drawing.process->pid;
    char *at;

    if (!self->has_tid || self->tid != tid)
        set_tid(self, tid);
    if (label->ready == NULL && label->lasts)
        label->ready =
            make_head(self, label, label->category, pid, &label->ready_count);
    if (VST_LIKELY(label->ready != NULL &&
                   label->ready_count <=
                       VST_OUTPUT_RESERVE_MAX - 2 * EVENT_MAX)) {
        at = vst__output_reserve(output, label->ready_count + 2 * EVENT_MAX);
        memcpy(at, label->ready, label->ready_count);
        set_phase(at, phase);
        at += label->ready_count;
    } else {
        event_put_head_once(self, label, phase, label->category, pid);
        at = vst__output_reserve(output, 2 * EVENT_MAX);
    }
    return put_tid_and_time(self, at, time_ns);
}

/* Writes the beginning of an event of another category than its label's, or on
 * a lane of another process. */
static char *event_begin_loose(vst__chrome *self, const vst__drawn_span *span)
{
    if (!self->has_tid || self->tid != span->lane->tid)
        set_tid(self, span->lane->tid);
    event_put_head_once(self, span->label, 'X', span->category,
                        span->lane->pid);
    return put_tid_and_time(
        self, vst__output_reserve(self->drawing.output, 2 * EVENT_MAX),
        span->start_ns);
}

/* ---- arguments ----------------------------------------------------------- */

/* Commits the output as far as needed for the text; returns the place to
 * continue. */
static char *put_text_arg(vst__output *output, char *at, const vst__arg *arg)
{
    size_t count = arg->text.count;

    vst__output_commit(output, at);
    if (count > SHORT_TEXT_MAX) {
        vst__json_string(output, arg->text.at, count);
        return vst__output_reserve(output, EVENT_MAX);
    }
    at = vst__output_reserve(output,
                             EVENT_MAX + (count + 1) * VST_JSON_ESCAPE_MAX);
    *at++ = '"';
    at = event_put_escaped(at, arg->text.at, count);
    *at++ = '"';
    return at;
}

static inline char *put_arg(vst__chrome *self, char *at, const vst__arg *arg)
{
    uint64_t value = arg->u64;

    *at++ = '"';
    memcpy(at, arg->key->text, sizeof arg->key->text);
    at = VST_JSON_PUT(at + arg->key->count, "\": ");
    switch (arg->type) {
    case VST_ARG_I64:
        if (arg->i64 < 0) {
            *at++ = '-';
            value = 0 - value;
        }
        /* fall through */
    case VST_ARG_U64:
        if (value >= 10)
            return vst__json_u64(at, value);
        *at = (char)('0' + value);
        return at + 1;
    case VST_ARG_DOUBLE:
        return vst__json_double(at, arg->number);
    case VST_ARG_TEXT:
        return put_text_arg(self->drawing.output, at, arg);
    case VST_ARG_WORD:
        *at++ = '"';
        memcpy(at, arg->text.at, arg->text.count);
        at += arg->text.count;
        *at++ = '"';
        return at;
    case VST_ARG_TIME:
        return vst__json_us(at, vst__drawing_time(&self->drawing, arg->i64));
    case VST_ARG_DURATION:
        return vst__json_us(at, arg->i64);
    case VST_ARG_NONE:
        break;
    }
    return VST_JSON_PUT(at, "null");
}

/* Commits up to `at`, then writes arguments that the program gave. */
static char *put_json(vst__output *output, char *at, const char *json,
                      size_t count)
{
    vst__output_commit(output, at);
    if (vst__json_is_members(json, count)) {
        vst__output_write(output, json, count);
    } else {
        vst__output_text(output, "\"args\": ");
        vst__json_string(output, json, count);
    }
    return vst__output_reserve(output, EVENT_MAX);
}

/* Writes the members between the braces; `more`: there are members already. */
static char *put_args(vst__chrome *self, char *at, const vst__arg_list *args,
                      bool more)
{
    const vst__arg *arg = args->items, *end = arg + args->count;

    for (; arg != end; arg++) {
        if (more)
            at = VST_JSON_PUT(at, ", ");
        at = put_arg(self, at, arg);
        more = true;
    }
    if (args->json_len == 0)
        return at;
    if (more)
        at = VST_JSON_PUT(at, ", ");
    return put_json(self->drawing.output, at, args->json, args->json_len);
}

/* Writes a call's place in the tree. */
static inline char *event_put_call(char *at, const vst__drawn_span *span)
{
    char number[VST_JSON_NUMBER_MAX] = "";
    size_t count = (size_t)(vst__json_u64(number, span->number) - number);

    at = VST_JSON_PUT(at, "\"Python parent id\": ");
    at = span->caller != 0 ? vst__json_u64(at, span->caller)
                           : VST_JSON_PUT(at, "null");
    at = VST_JSON_PUT(at, ", \"Python id\": ");
    memcpy(at, number, sizeof number);
    at = VST_JSON_PUT(at + count, ", \"Ev Idx\": ");
    memcpy(at, number, sizeof number);
    return at + count;
}

/* Writes the arguments of a span, if it has any, and its end. */
static inline void finish_span(vst__chrome *self, char *at,
                               const vst__drawn_span *span)
{
    bool is_call = span->label->is_call && span->lane == NULL;

    if (is_call || span->args != NULL) {
        at = VST_JSON_PUT(at, ", \"args\": {");
        if (is_call)
            at = event_put_call(at, span);
        if (span->args != NULL)
            at = put_args(self, at, span->args, is_call);
        *at++ = '}';
    }
    *at++ = '}';
    vst__output_commit(self->drawing.output, at);
}

/* ---- events -------------------------------------------------------------- */

static void put_arrow_end(vst__chrome *self, bool is_head, const char *category,
                          const char *name, uint64_t id, int64_t pid,
                          int64_t tid, int64_t time_ns)
{
    vst__output *output = self->drawing.output;

    vst__output_text(output, ",\n{\"ph\": \"");
    vst__output_text(output, is_head ? "f\", \"bp\": \"e" : "s");
    vst__output_text(output, "\", \"cat\": \"");
    vst__output_text(output, category);
    vst__output_text(output, "\", \"name\": \"");
    vst__output_text(output, name);
    vst__output_text(output, "\", \"id\": ");
    vst__json_put_u64(output, id);
    vst__output_text(output, ", \"pid\": ");
    vst__json_put_i64(output, pid);
    vst__output_text(output, ", \"tid\": ");
    vst__json_put_i64(output, tid);
    vst__output_text(output, ", \"ts\": ");
    vst__json_put_us(output, vst__drawing_time(&self->drawing, time_ns));
    vst__output_text(output, "}");
}

void vst__chrome_arrow(vst__drawing *drawing, const vst__arrow *arrow)
{
    const char *category = vst__category_name(arrow->category);

    for (int i = 0; i < 2; i++) {
        const vst__arrow_end *end = i == 0 ? &arrow->from : &arrow->to;

        put_arrow_end(vst__chrome_of(drawing), i == 1, category, arrow->name,
                      arrow->id, end->process->pid, end->tid, end->time_ns);
    }
}

/* Draws a span that overlaps its neighbours as a pair of events, which viewers
 * put on a track of its own. */
static void draw_pair(vst__chrome *self, const vst__drawn_span *span)
{
    vst__output *output = self->drawing.output;
    char *at = begin_event(self, span->label, 'b', span->tid, span->start_ns);

    at = VST_JSON_PUT(at, ", \"id\": ");
    finish_span(self, vst__json_u64(at, span->number), span);
    at = begin_event(self, span->label, 'e', span->tid, span->end_ns);
    at = VST_JSON_PUT(at, ", \"id\": ");
    at = vst__json_u64(at, span->number);
    *at++ = '}';
    vst__output_commit(output, at);
}

void vst__chrome_span(vst__drawing *drawing, const vst__drawn_span *span)
{
    vst__chrome *self = vst__chrome_of(drawing);
    const vst__drawn_flow *flow = span->flow;
    char *at;

    if (span->fit == VST_FIT_OVERLAPS) {
        draw_pair(self, span);
        return;
    }
    at = span->lane == NULL
             ? begin_event(self, span->label, 'X', span->tid, span->start_ns)
             : event_begin_loose(self, span);
    at = VST_JSON_PUT(at, ", \"dur\": ");
    at = vst__json_us(at, span->end_ns - span->start_ns);
    finish_span(self, at, span);
    for (int i = 0; flow != NULL && i < 2; i++)
        if (i == 0 ? flow->starts != 0 : flow->ends)
            put_arrow_end(self, i == 1, vst__category_name(flow->category),
                          vst__category_name(flow->category), flow->id,
                          span->lane->pid, span->lane->tid, span->start_ns);
}

void vst__chrome_instant(vst__drawing *drawing,
                         const vst__drawn_instant *instant)
{
    vst__chrome *self = vst__chrome_of(drawing);
    char *at =
        begin_event(self, instant->label, 'i', instant->tid, instant->time_ns);

    if (instant->label->category != VST_CATEGORY_MEMORY)
        at = VST_JSON_PUT(at, ", \"s\": \"t\"");
    at = VST_JSON_PUT(at, ", \"args\": {");
    at = put_args(self, at, instant->args, false);
    at = VST_JSON_PUT(at, "}}");
    vst__output_commit(drawing->output, at);
}

void vst__chrome_counter(vst__drawing *drawing, vst__label *label, uint32_t tid,
                         int64_t time_ns, const vst__arg *value)
{
    vst__chrome *self = vst__chrome_of(drawing);
    char *at = begin_event(self, label, 'C', tid, time_ns);

    at = VST_JSON_PUT(at, ", \"args\": {");
    at = put_arg(self, at, value);
    at = VST_JSON_PUT(at, "}}");
    vst__output_commit(drawing->output, at);
}
