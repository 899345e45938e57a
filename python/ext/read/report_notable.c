/* Single calls that a report's findings need: the longest steps of event loops,
 * and calls with the same arguments. */
#include "read/report.h"

#include <stdlib.h>
#include <string.h>

enum {
    STEP_BLOCKS_NS = 50 * 1000 * 1000,
    ARGUMENTS_MAX = 512,    /* bytes; longer ones are not compared */
    DIFFERENT_MAX = 100000, /* what comes after so many is not counted */
    REPEATS_LISTED = 20
};

/* ---- steps -------------------------------------------------------------- */

void vpy_steps_add(vpy_steps *steps, const vst_span *span)
{
    int64_t ns = span->end_ns - span->start_ns;
    size_t at = VPY_STEPS;

    steps->count++;
    if (ns < STEP_BLOCKS_NS)
        return;
    steps->blocking++;
    steps->blocking_ns += ns;
    while (at != 0 && steps->longest[at - 1].ns < ns)
        at--;
    if (at == VPY_STEPS)
        return;
    memmove(&steps->longest[at + 1], &steps->longest[at],
            (VPY_STEPS - at - 1) * sizeof steps->longest[0]);
    steps->longest[at] = (vpy_step){span->start_ns, ns, span->thread};
}

PyObject *vpy_steps_tuple(const vpy_steps *steps)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < VPY_STEPS; i++) {
        const vpy_step *step = &steps->longest[i];
        PyObject *entry;

        if (step->ns == 0)
            break;
        entry = Py_BuildValue("(LLI)", (long long)step->start_ns,
                              (long long)step->ns, (unsigned)step->thread);
        if (!vpy_append(list, entry))
            Py_CLEAR(list);
    }
    return list != NULL
               ? Py_BuildValue("(KKLN)", (unsigned long long)steps->count,
                               (unsigned long long)steps->blocking,
                               (long long)steps->blocking_ns, list)
               : NULL;
}

/* ---- the same arguments ------------------------------------------------- */

/* The function and its arguments as one text. Arguments whose text was cut may
 * differ where they look the same. */
static bool describe(const vst_span *span, char *text, vpy_part *described)
{
    static const char dots[] = "\xe2\x80\xa6";
    vpy_part arguments = vpy_member(span->args, span->args_len, "arguments");
    size_t id_size = sizeof span->id;

    if (arguments.at == NULL || arguments.length > ARGUMENTS_MAX ||
        memmem(arguments.at, arguments.length, dots, sizeof dots - 1) != NULL ||
        memmem(arguments.at, arguments.length, "\\u2026", 6) != NULL)
        return false;
    memcpy(text, &span->id, id_size);
    memcpy(text + id_size, arguments.at, arguments.length);
    *described = (vpy_part){text, id_size + arguments.length};
    return true;
}

bool vpy_repeats_add(vpy_repeats *repeats, const vst_span *span)
{
    char text[sizeof(vst_id) + ARGUMENTS_MAX];
    struct vpy_repeat *grown;
    vpy_part described;
    uint32_t number;

    if (span->args_len == 0 || repeats->texts.count >= DIFFERENT_MAX ||
        !describe(span, text, &described))
        return true;
    if (!vpy_texts_number(&repeats->texts, described, &number))
        return false;
    if (number > repeats->count) {
        grown = realloc(repeats->of, (size_t)number * sizeof *grown);
        if (grown == NULL)
            return false;
        repeats->of = grown;
        repeats->count = number;
        repeats->of[number - 1] = (struct vpy_repeat){.ns = 0};
    }
    repeats->of[number - 1].calls += !(span->flags & VST_SPAN_RESUMED);
    repeats->of[number - 1].ns += span->end_ns - span->start_ns;
    return true;
}

void vpy_repeats_free(vpy_repeats *repeats)
{
    vpy_texts_free(&repeats->texts);
    free(repeats->of);
}

/* Puts number in its place among the `count` that were called most often. */
static size_t insert(const vpy_repeats *repeats, uint32_t *most, size_t count,
                     uint32_t number)
{
    size_t at = count;

    while (at != 0 &&
           repeats->of[most[at - 1]].calls < repeats->of[number].calls)
        at--;
    if (at == REPEATS_LISTED)
        return count;
    if (count < REPEATS_LISTED)
        count++;
    memmove(most + at + 1, most + at, (count - at - 1) * sizeof *most);
    most[at] = number;
    return count;
}

static PyObject *repeat_entry(const vpy_repeats *repeats, uint32_t number)
{
    vpy_part text = repeats->texts.of[number];
    vst_id id;

    memcpy(&id, text.at, sizeof id);
    return Py_BuildValue(
        "(INKL)", (unsigned)id,
        vpy_trace_text(text.at + sizeof id, text.length - sizeof id),
        (unsigned long long)repeats->of[number].calls,
        (long long)repeats->of[number].ns);
}

PyObject *vpy_repeats_list(const vpy_repeats *repeats)
{
    uint32_t most[REPEATS_LISTED];
    PyObject *list = PyList_New(0);
    size_t count = 0;

    for (uint32_t i = 0; i < repeats->count; i++)
        if (repeats->of[i].calls > 1)
            count = insert(repeats, most, count, i);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *entry = repeat_entry(repeats, most[i]);

        if (!vpy_append(list, entry))
            Py_CLEAR(list);
    }
    return list;
}
