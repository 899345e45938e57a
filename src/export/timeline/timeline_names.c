/* The names of definitions on a timeline: each definition gets a label when it
 * is first used. Also the names of categories. One thread at a time. */
#include <stdlib.h>

#include "export/timeline/timeline.h"

const char *vst__category_name(vst__category category)
{
    /* Operators and devices have torch.profiler's categories. */
    static const char *const names[VST_CATEGORIES] = {
        [VST_CATEGORY_CALL] = "python_function",
        [VST_CATEGORY_OPERATOR] = "cpu_op",
        [VST_CATEGORY_ANNOTATION] = "user_annotation",
        [VST_CATEGORY_INSTANT] = "instant",
        [VST_CATEGORY_COUNTER] = "counter",
        [VST_CATEGORY_WINDOW] = "Trace",
        [VST_CATEGORY_MEMORY] = "cpu_instant_event",
        [VST_CATEGORY_GRADIENT] = "fwdbwd",
        [VST_CATEGORY_START] = "process",
        [VST_CATEGORY_TASK] = "task",
        [VST_CATEGORY_AWAIT] = "await",
        [VST_CATEGORY_KERNEL] = "kernel",
        [VST_CATEGORY_MEMCPY] = "gpu_memcpy",
        [VST_CATEGORY_MEMSET] = "gpu_memset",
        [VST_CATEGORY_SYNC] = "cuda_sync",
        [VST_CATEGORY_OVERHEAD] = "overhead",
        [VST_CATEGORY_CUDA_RUNTIME] = "cuda_runtime",
        [VST_CATEGORY_CUDA_DRIVER] = "cuda_driver",
        [VST_CATEGORY_XPU_RUNTIME] = "xpu_runtime",
        [VST_CATEGORY_XPU_DRIVER] = "xpu_driver",
        [VST_CATEGORY_DEVICE_ANNOTATION] = "gpu_user_annotation",
        [VST_CATEGORY_STATE] = "thread_state",
        [VST_CATEGORY_LAUNCH] = "ac2g",
    };

    return names[category];
}

static vst__category category_of(vst_definition_kind kind)
{
    switch (kind) {
    case VST_DEF_PYTHON:
    case VST_DEF_NATIVE:
    case VST_DEF_GC:
    case VST_DEF_MODULE:
        return VST_CATEGORY_CALL;
    case VST_DEF_OPERATOR:
        return VST_CATEGORY_OPERATOR;
    case VST_DEF_INSTANT:
        return VST_CATEGORY_INSTANT;
    case VST_DEF_COUNTER:
        return VST_CATEGORY_COUNTER;
    case VST_DEF_ANNOTATION:
        break;
    }
    return VST_CATEGORY_ANNOTATION;
}

/* ---- labels -------------------------------------------------------------- */

vst__label vst__label_of(const char *text, size_t count, vst__category category)
{
    return (vst__label){.text = text, .count = count, .category = category};
}

void vst__label_free(vst__label *label)
{
    free(label->ready);
    label->ready = NULL;
}

/* Returns `file(line): name` for Python code; NULL if memory ran out. */
static char *names_make_text(const vst_definition *d, size_t *count)
{
    size_t file = d->file_len - d->file_skip;
    char *text = malloc(file + d->name_len + VST_JSON_NUMBER_MAX + 4);
    char *at = text;

    if (text == NULL)
        return NULL;
    memcpy(at, d->file + d->file_skip, file);
    at += file;
    *at++ = '(';
    at = vst__json_i64(at, d->line);
    memcpy(at, "): ", 3);
    memcpy(at + 3, d->name, d->name_len);
    *count = (size_t)(at + 3 - text) + d->name_len;
    return text;
}

static bool is_step(const vst_definition *definition)
{
    static const char prefix[] = "ProfilerStep#";

    return definition->kind == VST_DEF_ANNOTATION &&
           definition->name_len >= sizeof prefix - 1 &&
           memcmp(definition->name, prefix, sizeof prefix - 1) == 0;
}

static vst_status make_name(vst__timeline *timeline, const vst_definition *d,
                            vst__timeline_name *name)
{
    static const char gc[] = "Python GC";
    vst__label *label = &name->label;

    *label = vst__label_of(d->name, d->name_len, category_of(d->kind));
    if (d->kind == VST_DEF_GC) {
        label->text = gc;
        label->count = sizeof gc - 1;
    } else if (d->kind == VST_DEF_PYTHON) {
        label->text = names_make_text(d, &label->count);
        if (label->text == NULL)
            return VST_E_NOMEM;
    }
    label->definition = d;
    label->lasts = true;
    label->is_call = d->kind == VST_DEF_PYTHON || d->kind == VST_DEF_NATIVE ||
                     d->kind == VST_DEF_GC;
    label->number = ++timeline->name_count;
    name->kind = d->kind;
    name->line = d->line;
    name->is_step = is_step(d);
    return VST_OK;
}

static void free_name(vst__timeline_name *name)
{
    if (name->kind == VST_DEF_PYTHON && name->label.number != 0)
        free((char *)name->label.text);
    vst__label_free(&name->label);
}

/* Returns the name for an id whose definition a torn file has lost. */
static vst__timeline_name *find_unknown(vst__timeline *timeline, vst_id id)
{
    static const char what[] = "unknown function ";
    vst__timeline_name *name = &timeline->unknown;
    char *text = timeline->unknown_text;

    if (timeline->unknown_id == id && name->label.count != 0)
        return name;
    vst__label_free(&name->label);
    memcpy(text, what, sizeof what - 1);
    *name = (vst__timeline_name){
        .label = vst__label_of(
            text, (size_t)(vst__json_u64(text + sizeof what - 1, id) - text),
            VST_CATEGORY_CALL),
        .kind = VST_DEF_NATIVE,
    };
    name->label.is_call = name->label.lasts = true;
    timeline->unknown_id = id;
    return name;
}

vst__timeline_name *vst__timeline_make_name(vst__timeline *timeline, vst_id id)
{
    size_t index = vst__trace_definition_index(timeline->trace, id);
    vst__timeline_name *name;

    if (index == VST_NO_DEFINITION)
        return find_unknown(timeline, id);
    name = &timeline->names[index];
    if (name->label.number == 0 &&
        make_name(timeline, &timeline->trace->definitions[index], name) !=
            VST_OK)
        return NULL;
    return name;
}

/* ---- the names of a process ---------------------------------------------- */

vst_status vst__timeline_make_names(vst__timeline *timeline)
{
    const vst_trace *trace = timeline->trace;
    size_t count = trace->definition_count;

    timeline->name_count = 0;
    timeline->first_id = count != 0 ? trace->definition_ids[0] : 0;
    timeline->dense =
        count != 0 && trace->definition_ids[count - 1] - timeline->first_id ==
                          count - 1
            ? count
            : 0;
    timeline->names = calloc(count + 1, sizeof *timeline->names);
    return timeline->names != NULL ? VST_OK : VST_E_NOMEM;
}

void vst__timeline_free_names(vst__timeline *timeline)
{
    for (size_t i = 0;
         timeline->names != NULL && i < timeline->trace->definition_count; i++)
        free_name(&timeline->names[i]);
    free(timeline->names);
    timeline->names = NULL;
    vst__label_free(&timeline->unknown.label);
    timeline->unknown = (vst__timeline_name){.kind = VST_DEF_NATIVE};
}
