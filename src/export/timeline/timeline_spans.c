/* Draws what threads did, as replay delivers it: spans with their arguments,
 * instants, counters and losses. A call without arguments, the most common
 * span, is drawn immediately. One thread at a time. */
#include <stdlib.h>

#include "export/timeline/timeline.h"
#include "replay/imports.h"

/* ---- arguments ----------------------------------------------------------- */

/* Adds the numbers that link a span to other files; a call's number is the
 * span's own (vst__drawn_span). If there are nodes of an execution trace, only
 * these have a function id; otherwise it is never 0, which clients take for
 * none. */
static void add_ids(const vst__timeline *timeline, const vst_span *span,
                    vst__arg_list *args)
{
    static const vst__key external = VST_KEY("External id"),
                          function = VST_KEY("Record function id"),
                          index = VST_KEY("Ev Idx");
    uint64_t serial = timeline->serials_before + span->serial;

    vst__args_u64(args, &external, serial);
    if (span->op != NULL && span->op->record != 0)
        vst__args_u64(args, &function, span->op->record);
    else if (!timeline->has_nodes)
        vst__args_u64(args, &function, serial);
    vst__args_u64(args, &index, serial);
}

/* Adds a module's number; a module's spans are calls with this number. */
static void add_module(const vst__timeline *timeline, const vst_span *span,
                       int32_t number, vst__arg_list *args)
{
    static const vst__key parent = VST_KEY("Python parent id"),
                          module = VST_KEY("Python module id"),
                          own = VST_KEY("Python id"), index = VST_KEY("Ev Idx");
    bool numbers = timeline->drawing->ops->numbers_as_torch;
    uint64_t before = timeline->serials_before;

    if (numbers && span->caller != 0)
        vst__args_u64(args, &parent, before + span->caller);
    else if (numbers)
        vst__args_add(args, &parent, VST_ARG_NONE);
    vst__args_i64(args, &module, number);
    if (numbers) {
        vst__args_u64(args, &own, before + span->serial);
        vst__args_u64(args, &index, before + span->serial);
    }
}

static void add_flags(uint32_t flags, vst__arg_list *args)
{
    static const struct {
        uint32_t flag;
        vst__key key;
    } known[] = {
        {VST_SPAN_OPEN_AT_START, VST_KEY("open at start")},
        {VST_SPAN_OPEN_AT_END, VST_KEY("open at end")},
        {VST_SPAN_RAISED, VST_KEY("raised")},
        {VST_SPAN_CUT, VST_KEY("cut")},
        {VST_SPAN_RESUMED, VST_KEY("resumed")},
        {VST_SPAN_SUSPENDED, VST_KEY("suspended")},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (flags & known[i].flag)
            vst__args_u64(args, &known[i].key, 1);
}

/* `module` is room for the name of an import. */
static void add_args(const vst__timeline *timeline, const vst_span *span,
                     const vst__timeline_name *name,
                     char module[VST_IMPORT_NAME_MAX], vst__arg_list *args)
{
    static const vst__key imports = VST_KEY("imports"),
                          all = VST_KEY("Allocated Bytes"),
                          own = VST_KEY("Self Allocated Bytes");

    args->count = 0;
    if (name->kind == VST_DEF_MODULE)
        add_module(timeline, span, name->line, args);
    else if (!name->label.is_call)
        add_ids(timeline, span, args);
    add_flags(span->flags, args);
    if (span->flags & VST_SPAN_IMPORT)
        vst__args_text(args, &imports, module,
                       vst__import_name(timeline->trace, span->import,
                                        span->module, module));
    if (span->total_allocations != 0) {
        vst__args_u64(args, &all, span->total_bytes);
        vst__args_u64(args, &own, span->self_bytes);
    }
    args->json = span->args;
    args->json_len = span->args_len;
}

/* ---- spans --------------------------------------------------------------- */

/* Makes a label with the overload's name behind the operator's, if the span has
 * one. The caller frees the returned text; NULL: none. */
static char *add_overload(vst__timeline *timeline, const vst_span *span,
                          vst__label *label)
{
    static const char key[] = "\"Overload name\": \"";
    size_t key_count = sizeof key - 1, count = 0;
    const char *end = span->args + span->args_len, *name = NULL;
    char *text;

    if (timeline->overloads && span->op != NULL && span->args_len != 0)
        name = memmem(span->args, span->args_len, key, key_count);
    if (name == NULL)
        return NULL;
    name += key_count;
    while (name + count < end && name[count] != '"' && name[count] != '\\')
        count++;
    if (count == 0 || name + count == end || name[count] != '"')
        return NULL;
    text = malloc(label->count + 1 + count);
    if (text == NULL) {
        vst__drawing_fail(timeline->drawing, VST_E_NOMEM);
        return NULL;
    }
    memcpy(text, label->text, label->count);
    text[label->count] = '.';
    memcpy(text + label->count + 1, name, count);
    *label = vst__label_of(text, label->count + 1 + count, label->category);
    return text;
}

/* A step that one callback begins and another ends overlaps the calls around
 * it, but clients look for steps among spans that do not overlap. Steps follow
 * each other, so they fit on the windows' lane. Returns false if this step does
 * not. */
static bool make_room_for_step(vst__timeline_process *process,
                               const vst_span *span)
{
    if (process->steps_end_ns > span->start_ns)
        return false;
    process->steps_end_ns = span->end_ns;
    return true;
}

static vst_status draw_with_args(vst__timeline *timeline, const vst_span *span,
                                 const vst__timeline_name *name,
                                 vst__drawn_span drawn)
{
    char module[VST_IMPORT_NAME_MAX];
    vst__arg_list args;
    vst__label overloaded = name->label;
    char *text = add_overload(timeline, span, &overloaded);
    vst_status status = VST_OK;

    add_args(timeline, span, name, module, &args);
    drawn.args = &args;
    if (text != NULL)
        drawn.label = &overloaded;
    if (span->flags & VST_SPAN_ASYNC) {
        drawn.fit = VST_FIT_OVERLAPS;
        if (name->is_step && make_room_for_step(timeline->process, span)) {
            drawn.fit = VST_FIT_ALONE;
            drawn.tid = timeline->process->drawn->windows_tid;
        }
    }
    timeline->drawing->ops->span(timeline->drawing, &drawn);
    free(text);
    if (span->flags & VST_SPAN_ASYNC)
        return vst__timeline_status(timeline);
    if (span->op != NULL)
        status = vst__timeline_note_operator(timeline, span, drawn.tid);
    if (status == VST_OK && span->flags & VST_SPAN_STEP)
        status = vst__timeline_note_step(timeline, span);
    return status != VST_OK ? status : vst__timeline_status(timeline);
}

vst_status vst__timeline_draw_span(vst__timeline *timeline,
                                   const vst_span *span)
{
    const uint32_t unsaid = VST_SPAN_RECURSIVE | VST_SPAN_MACHINERY;
    vst__drawing *drawing = timeline->drawing;
    vst__timeline_name *name = vst__timeline_find_name(timeline, span->id);
    uint64_t before = timeline->serials_before, has_args;
    vst__drawn_span *drawn = &timeline->plain;

    if (name == NULL)
        return VST_E_NOMEM;
    drawn->label = &name->label;
    drawn->depth = span->depth;
    drawn->tid = vst__timeline_thread(timeline, span->thread);
    drawn->start_ns = span->start_ns;
    drawn->end_ns = span->end_ns;
    drawn->number = before + span->serial;
    drawn->caller = span->caller != 0 ? before + span->caller : 0;
    if (drawn->number > timeline->serial_max)
        timeline->serial_max = drawn->number;
    has_args = (span->flags & ~unsaid) | span->args_len |
               span->total_allocations | (uintptr_t)span->op;
    if (!VST_LIKELY(name->label.is_call && has_args == 0))
        return draw_with_args(timeline, span, name, *drawn);
    drawing->ops->span(drawing, drawn);
    return vst__drawing_status(drawing);
}

/* ---- instants, counters and losses --------------------------------------- */

static vst_status draw_span(void *ctx, const vst_span *span)
{
    return vst__timeline_draw_span(ctx, span);
}

static vst_status draw_instant(void *ctx, const vst_instant *instant)
{
    vst__timeline *timeline = ctx;
    vst__timeline_name *name = vst__timeline_find_name(timeline, instant->id);
    vst__arg_list args;

    if (name == NULL)
        return VST_E_NOMEM;
    args.count = 0;
    args.json = instant->args;
    args.json_len = instant->args_len;
    timeline->drawing->ops->instant(
        timeline->drawing,
        &(vst__drawn_instant){&name->label,
                              vst__timeline_thread(timeline, instant->thread),
                              instant->time_ns, &args});
    return vst__timeline_status(timeline);
}

static vst_status draw_counter(void *ctx, const vst_counter *counter)
{
    static const vst__key key = VST_KEY("value");
    vst__timeline *timeline = ctx;
    vst__timeline_name *name = vst__timeline_find_name(timeline, counter->id);
    const vst__arg value = {&key, VST_ARG_DOUBLE, .number = counter->value};

    if (name == NULL)
        return VST_E_NOMEM;
    timeline->drawing->ops->counter(
        timeline->drawing, &name->label,
        vst__timeline_thread(timeline, counter->thread), counter->time_ns,
        &value);
    return vst__timeline_status(timeline);
}

/* Draws a loss as a mark, because a span could overlap the spans around it. */
static vst_status draw_loss(void *ctx, const vst_loss *loss)
{
    static const vst__key start = VST_KEY("start"),
                          duration = VST_KEY("duration"),
                          records = VST_KEY("records");
    vst__timeline *timeline = ctx;
    bool dropped = loss->kind == VST_LOSS_DROPPED;
    const char *text = dropped                      ? "dropped records"
                       : loss->kind == VST_LOSS_GAP ? "hooks away"
                                                    : "lost records";
    vst__label label = vst__label_of(text, strlen(text), VST_CATEGORY_INSTANT);
    vst__arg_list args;

    args.count = args.json_len = 0;
    vst__args_add(&args, &start, VST_ARG_TIME)->i64 = loss->start_ns;
    vst__args_add(&args, &duration, VST_ARG_DURATION)->i64 =
        loss->end_ns - loss->start_ns;
    vst__args_u64(&args, &records, loss->records);
    /* Dropped records lie before everything shown: mark the end of the loss. */
    timeline->drawing->ops->instant(
        timeline->drawing,
        &(vst__drawn_instant){&label,
                              vst__timeline_thread(timeline, loss->thread),
                              dropped ? loss->end_ns : loss->start_ns, &args});
    return vst__timeline_status(timeline);
}

void vst__timeline_watch_spans(vst__timeline *timeline, vst_sink *sink)
{
    (void)timeline;
    sink->span = draw_span;
    sink->instant = draw_instant;
    sink->counter = draw_counter;
    sink->loss = draw_loss;
}
