/* merge_histograms(): merges histograms of the tables `duration` and `steps`
 * (src/tables/histogram.h). Called with the GIL held. */
#include "read/read.h"

#include <stdlib.h>

#include "tables/histogram.h"

static bool histograms_read(PyObject *parts, vst__histogram *all)
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(parts); i++) {
        const char *text = PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(parts, i));
        vst_status status;

        if (text == NULL)
            return false;
        status = vst__histogram_read(all, text);
        if (status == VST_E_NOMEM)
            PyErr_NoMemory();
        else if (status != VST_OK)
            PyErr_SetString(PyExc_ValueError, "this is not a histogram");
        if (status != VST_OK)
            return false;
    }
    return true;
}

static PyObject *histograms_quantiles(const vst__histogram *all,
                                      PyObject *shares)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(shares);
    PyObject *made = PyTuple_New(count);

    for (Py_ssize_t i = 0; made != NULL && i < count; i++) {
        double share = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(shares, i));
        PyObject *value = NULL;

        if (PyErr_Occurred() == NULL && !(share >= 0 && share <= 1))
            PyErr_SetString(PyExc_ValueError, "a share must be from 0 to 1");
        if (PyErr_Occurred() == NULL)
            value = PyLong_FromLongLong(vst__histogram_quantile(all, share));
        if (value == NULL)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, value);
    }
    return made;
}

PyDoc_STRVAR(merge_doc,
             "merge_histograms(parts, shares)\n--\n\nMerge histograms. Return "
             "the histogram of all, and its quantiles at these shares.");

static PyObject *histograms_merge(PyObject *module, PyObject *args)
{
    PyObject *parts, *shares, *texts, *values = NULL, *made = NULL;
    char text[VST_HISTOGRAM_TEXT];
    vst__histogram all = {.count = 0};

    (void)module;
    if (!PyArg_ParseTuple(args, "OO:merge_histograms", &parts, &shares))
        return NULL;
    texts = PySequence_Fast(parts, "histograms are a sequence");
    shares = texts != NULL
                 ? PySequence_Fast(shares, "shares are a sequence of numbers")
                 : NULL;
    if (shares != NULL && histograms_read(texts, &all))
        values = histograms_quantiles(&all, shares);
    if (values != NULL)
        made = Py_BuildValue(
            "s#N", text, (Py_ssize_t)vst__histogram_write(&all, text), values);
    vst__histogram_free(&all);
    Py_XDECREF(shares);
    Py_XDECREF(texts);
    return made;
}

static PyMethodDef functions[] = {
    {"merge_histograms", histograms_merge, METH_VARARGS, merge_doc},
    {NULL, NULL, 0, NULL},
};

int vpy_histograms_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
