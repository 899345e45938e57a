/* See spans.h. */
#include "read/spans.h"

/* ---- time -------------------------------------------------------------- */

static int64_t now_ns(void)
{
    vst_clock_sample now;

    vst_clock_sample_now(&now);
    return now.monotonic_ns;
}

bool vpy_deadline_set(vpy_deadline *deadline, PyObject *seconds)
{
    double value;

    if (seconds == NULL || seconds == Py_None)
        return true;
    value = PyFloat_AsDouble(seconds);
    if (value == -1.0 && PyErr_Occurred() != NULL)
        return false;
    if (value < 1e9)
        deadline->at_ns = now_ns() + (int64_t)(value * 1e9);
    return true;
}

bool vpy_deadline_look(vpy_deadline *deadline)
{
    deadline->passed = now_ns() >= deadline->at_ns;
    return deadline->passed;
}

bool vpy_reading_parse(vpy_reading *reading, vpy_trace *trace, PyObject *args,
                       PyObject *kw, const char *format)
{
    static char *names[] = {"all_windows",  "since",     "calls",   "shapes",
                            "overloads",    "framework", "timeout", "tree",
                            "fold_imports", NULL};
    PyObject *timeout = NULL;

    *reading = (vpy_reading){.since = -1, .calls = 1};
    return PyArg_ParseTupleAndKeywords(args, kw, format, names, &reading->all,
                                       &reading->since, &reading->calls,
                                       &reading->shapes, &reading->overloads,
                                       &reading->framework, &timeout,
                                       &reading->tree, &reading->folds) &&
           vpy_trace_is_usable(trace) &&
           vpy_deadline_set(&reading->deadline, timeout);
}
