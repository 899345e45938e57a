/* See report.h. */
#include "read/report.h"

#include <stdlib.h>
#include <string.h>

/* ---- which threads ----------------------------------------------------- */

bool vpy_chosen_set(vpy_chosen *chosen, PyObject *numbers)
{
    PyObject *fast;

    if (numbers == NULL || numbers == Py_None)
        return true;
    fast = PySequence_Fast(numbers, "threads are a sequence of numbers");
    if (fast == NULL)
        return false;
    chosen->count = (size_t)PySequence_Fast_GET_SIZE(fast);
    chosen->numbers = calloc(chosen->count + 1, sizeof *chosen->numbers);
    for (size_t i = 0; chosen->numbers != NULL && i < chosen->count; i++)
        chosen->numbers[i] = (uint32_t)PyLong_AsUnsignedLong(
            PySequence_Fast_GET_ITEM(fast, (Py_ssize_t)i));
    Py_DECREF(fast);
    if (chosen->numbers == NULL)
        PyErr_NoMemory();
    if (PyErr_Occurred() == NULL)
        return true;
    free(chosen->numbers);
    chosen->numbers = NULL;
    return false;
}

bool vpy_chosen_look(vpy_chosen *chosen, uint32_t number)
{
    chosen->asked = true;
    chosen->last = number;
    chosen->has = false;
    for (size_t i = 0; i < chosen->count; i++)
        chosen->has |= chosen->numbers[i] == number;
    return chosen->has;
}

/* ---- functions --------------------------------------------------------- */

bool vpy_sums_make(vpy_sums *sums, vst_id max, bool spread)
{
    size_t count = (size_t)max + 1;

    sums->max = max;
    sums->of = calloc(count, sizeof *sums->of);
    if (spread) {
        sums->self = calloc(count, sizeof *sums->self);
        sums->total = calloc(count, sizeof *sums->total);
    }
    return sums->of != NULL &&
           (!spread || (sums->self != NULL && sums->total != NULL));
}

void vpy_sums_free(vpy_sums *sums)
{
    for (vst_id id = 0;
         id <= sums->max && sums->self != NULL && sums->total != NULL; id++) {
        vpy_spread_free(&sums->self[id]);
        vpy_spread_free(&sums->total[id]);
    }
    free(sums->of);
    free(sums->self);
    free(sums->total);
}

/* In the total of a function that calls itself, inner calls do not count again.
 */
void vpy_sums_add(vpy_sums *sums, const vst_span *span, int64_t self_ns)
{
    vpy_sum *sum = &sums->of[span->id];
    int64_t duration = span->end_ns - span->start_ns;
    bool again = span->flags & VST_SPAN_RESUMED;

    sum->calls += !again;
    sum->self_ns += self_ns;
    sum->self_bytes += span->self_bytes;
    sum->allocations += span->self_allocations;
    if (sums->self != NULL)
        vpy_spread_add(&sums->self[span->id], self_ns);
    if (span->flags & VST_SPAN_RECURSIVE)
        return;
    sum->outer += !again;
    sum->total_ns += duration;
    if (span->running_ns == VST_RUNNING_UNKNOWN)
        sum->unknown++;
    else
        sum->running_ns += span->running_ns;
    if (span->compensated_ns == VST_RUNNING_UNKNOWN)
        sum->uncompensated++;
    else
        sum->error_ns += span->compensated_error_ns;
    sum->total_bytes += span->total_bytes;
    if (sums->total != NULL)
        vpy_spread_add(&sums->total[span->id], duration);
}

/* None where it is not known of all. */
static PyObject *running_of(int64_t running_ns, uint64_t unknown)
{
    if (unknown != 0)
        Py_RETURN_NONE;
    return PyLong_FromLongLong((long long)running_ns);
}

static PyObject *sum_of(const vpy_sums *sums, vst_id id)
{
    const vpy_sum *s = &sums->of[id];
    vpy_typical self = {-1, -1, -1}, total = {-1, -1, -1};

    if (sums->self != NULL && sums->total != NULL) {
        self = vpy_spread_typical(&sums->self[id]);
        total = vpy_spread_typical(&sums->total[id]);
    }
    return Py_BuildValue(
        "(IKKLLKKK(ddd)(ddd)NN)", (unsigned)id, (unsigned long long)s->calls,
        (unsigned long long)s->outer, (long long)s->self_ns,
        (long long)s->total_ns, (unsigned long long)s->self_bytes,
        (unsigned long long)s->total_bytes, (unsigned long long)s->allocations,
        self.error_of_mean, self.median, self.error_of_median,
        total.error_of_mean, total.median, total.error_of_median,
        running_of(s->running_ns, s->unknown),
        running_of(s->error_ns, s->uncompensated));
}

PyObject *vpy_sums_list(const vpy_sums *sums)
{
    PyObject *list = PyList_New(0);

    for (vst_id id = 1; list != NULL && id <= sums->max; id++) {
        const vpy_sum *s = &sums->of[id];
        if ((s->calls || s->self_ns) && !vpy_append(list, sum_of(sums, id)))
            Py_CLEAR(list);
    }
    return list;
}

/* ---- the tree ---------------------------------------------------------- */

static PyObject *row_of(const vst_context_row *row, long long parent)
{
    const vst_context *n = &row->node;

    return Py_BuildValue(
        "(LIKLLLLKNI)", parent, (unsigned)n->id, (unsigned long long)n->count,
        (long long)n->self_ns, (long long)n->total_ns, (long long)n->self_bytes,
        (long long)n->total_bytes, (unsigned long long)n->self_allocations,
        running_of(n->running_ns, n->unknown), (unsigned)n->key);
}

/* Which rows are long enough. Those around a wait are, too, though it is not
 * among their time. */
static void keep_long(const vst_context_row *rows, size_t count,
                      long long min_ns, bool *kept)
{
    for (size_t i = count; i-- != 0;) {
        kept[i] |= rows[i].node.total_ns >= min_ns;
        if (kept[i] && rows[i].parent != 0 &&
            (rows[i].node.key & VPY_IMPORT_MASK) == VPY_KEY_AWAITS)
            for (uint32_t at = rows[i].parent; at != 0 && !kept[at - 1];
                 at = rows[at - 1].parent)
                kept[at - 1] = true;
    }
}

/* Parents come first. A call that is too short is left out with all that it
 * called, so that every parent is in the list. */
PyObject *vpy_tree_list(const vst_context_row *rows, size_t count,
                        long long min_ns)
{
    PyObject *list = PyList_New(0);
    long long *places = calloc(count + 1, sizeof *places); /* 1 + index */
    bool *kept = calloc(count + 1, sizeof *kept);
    long long made = 0;

    if (places == NULL || kept == NULL) {
        PyErr_NoMemory();
        Py_CLEAR(list);
    } else {
        keep_long(rows, count, min_ns, kept);
    }
    for (size_t i = 0; list != NULL && i < count; i++) {
        uint32_t parent = rows[i].parent;
        if (!kept[i] || (parent && !places[parent]))
            continue;
        if (!vpy_append(list,
                        row_of(&rows[i], parent ? places[parent] - 1 : -1)))
            Py_CLEAR(list);
        places[i + 1] = ++made;
    }
    free(places);
    free(kept);
    return list;
}

/* ---- threads ----------------------------------------------------------- */

/* By what they were for; what is not known is left out at the end. */
static PyObject *waited_of(const vpy_thread_sums *sums, bool has_pauses)
{
    static const vst_wait_reason order[] = {VST_WAIT_LOCK,   VST_WAIT_IO,
                                            VST_WAIT_SLEEP,  VST_WAIT_CHILD,
                                            VST_WAIT_OBJECT, VST_WAIT_WORLD};
    Py_ssize_t size = has_pauses ? 6 : 4;
    PyObject *tuple = PyTuple_New(size);

    for (Py_ssize_t i = 0; tuple != NULL && i < size; i++) {
        PyObject *ns = PyLong_FromLongLong(sums->waited_ns[order[i]]);

        if (ns == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, ns);
    }
    return tuple;
}

void vpy_thread_sums_add(vpy_thread_sums *sums, const vst_span *span)
{
    if (span->running_ns == VST_RUNNING_UNKNOWN) {
        sums->unknown++;
    } else {
        sums->running_ns += span->running_ns;
        sums->preempted_ns += span->preempted_ns;
    }
    if (span->gil_ns == VST_RUNNING_UNKNOWN)
        sums->unknown_gil++;
    else
        sums->gil_ns += span->gil_ns;
}

unsigned char *vpy_wait_reasons(const vst_trace *trace, vst_id max)
{
    unsigned char *reasons = calloc((size_t)max + 1, 1);

    for (vst_id id = 1; reasons != NULL && id <= max; id++) {
        const vst_definition *d = vst_trace_definition(trace, id);

        if (d != NULL && d->kind == VST_DEF_NATIVE)
            reasons[id] =
                (unsigned char)vst_wait_reason_of(d->name, d->name_len);
    }
    return reasons;
}

PyObject *vpy_thread_sums_list(const vpy_thread_sums *sums, size_t count,
                               bool has_pauses)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *entry = Py_BuildValue(
            "(IKLLLLLNNNNI)", (unsigned)sums[i].number,
            (unsigned long long)sums[i].calls, (long long)sums[i].self_ns,
            (long long)sums[i].waiting_ns, (long long)sums[i].gc_ns,
            (long long)sums[i].first_ns, (long long)sums[i].last_ns,
            running_of(sums[i].running_ns, sums[i].unknown),
            running_of(sums[i].gil_ns, sums[i].unknown_gil),
            running_of(sums[i].preempted_ns, sums[i].unknown),
            waited_of(&sums[i], has_pauses), (unsigned)sums[i].top);
        if (!vpy_append(list, entry))
            Py_CLEAR(list);
    }
    return list;
}

PyObject *vpy_waits_list(const vpy_waits *waits, vst_id max)
{
    PyObject *list = PyList_New(0);

    for (vst_id id = 1; list != NULL && id <= max; id++) {
        const struct vpy_wait *wait = &waits->of[id];
        if (wait->calls == 0 && wait->ns == 0)
            continue;
        if (!vpy_append(list, Py_BuildValue("(IKL)", (unsigned)id,
                                            (unsigned long long)wait->calls,
                                            (long long)wait->ns)))
            Py_CLEAR(list);
    }
    return list;
}

/* ---- garbage collections ----------------------------------------------- */

static long long number_of(const vst_span *span, const char *key)
{
    vpy_part part = vpy_member(span->args, span->args_len, key);
    char text[32];

    if (part.at == NULL || part.length >= sizeof text)
        return -1;
    memcpy(text, part.at, part.length);
    text[part.length] = '\0';
    return strtoll(text, NULL, 10);
}

static void note_long_one(vpy_collections *gc, const vpy_collection *one)
{
    size_t at = gc->count < VPY_LONGEST ? gc->count++ : VPY_LONGEST - 1;

    if (at == VPY_LONGEST - 1 && gc->longest[at].ns >= one->ns)
        return;
    for (; at && gc->longest[at - 1].ns < one->ns; at--)
        gc->longest[at] = gc->longest[at - 1];
    gc->longest[at] = *one;
}

void vpy_collections_add(vpy_collections *gc, const vst_span *span)
{
    int64_t ns = span->end_ns - span->start_ns;
    long long generation = number_of(span, "generation");
    long long collected = number_of(span, "collected");
    long long uncollectable = number_of(span, "uncollectable");
    vpy_collection one;

    if (generation < 0 || generation >= VPY_GENERATIONS)
        generation = VPY_GENERATIONS - 1;
    gc->of[generation].count++;
    gc->of[generation].ns += ns;
    if (ns > gc->of[generation].longest_ns)
        gc->of[generation].longest_ns = ns;
    gc->of[generation].collected += collected > 0 ? collected : 0;
    gc->of[generation].uncollectable += uncollectable > 0 ? uncollectable : 0;
    one = (vpy_collection){span->start_ns, ns, span->thread, (int)generation,
                           collected};
    note_long_one(gc, &one);
}

static PyObject *generations(const vpy_collections *gc)
{
    PyObject *list = PyList_New(0);

    for (int i = 0; list != NULL && i < VPY_GENERATIONS; i++) {
        PyObject *entry;

        if (!gc->of[i].count)
            continue;
        entry = Py_BuildValue("(iKLLLL)", i == VPY_GENERATIONS - 1 ? -1 : i,
                              (unsigned long long)gc->of[i].count,
                              (long long)gc->of[i].ns,
                              (long long)gc->of[i].longest_ns,
                              gc->of[i].collected, gc->of[i].uncollectable);
        if (!vpy_append(list, entry))
            Py_CLEAR(list);
    }
    return list;
}

PyObject *vpy_collections_dict(const vpy_collections *gc)
{
    PyObject *longest = PyList_New(0);

    for (size_t i = 0; longest != NULL && i < gc->count; i++) {
        const vpy_collection *c = &gc->longest[i];
        PyObject *entry = Py_BuildValue(
            "(LLIiL)", (long long)c->start_ns, (long long)c->ns,
            (unsigned)c->thread,
            c->generation == VPY_GENERATIONS - 1 ? -1 : c->generation,
            c->collected);
        if (!vpy_append(longest, entry))
            Py_CLEAR(longest);
    }
    return longest != NULL ? Py_BuildValue("{s:N,s:N}", "generations",
                                           generations(gc), "longest", longest)
                           : NULL;
}

/* The function of a row; of an import, the code of the module. */
static unsigned function_of(const vst_context *node)
{
    vst_id module = node->key >> VPY_IMPORT_BITS;

    return module != 0 ? (unsigned)module : (unsigned)node->id;
}

PyObject *vpy_gc_callers(const vst_context_row *rows, size_t count,
                         const unsigned char *marks)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < count; i++) {
        const vst_context *n = &rows[i].node;
        uint32_t parent = rows[i].parent;
        PyObject *entry;
        if (marks == NULL || !(marks[n->id] & VPY_MARK_GC))
            continue;
        entry = Py_BuildValue(
            "(IKL)", parent ? function_of(&rows[parent - 1].node) : 0u,
            (unsigned long long)n->count, (long long)n->total_ns);
        if (!vpy_append(list, entry))
            Py_CLEAR(list);
    }
    return list;
}
