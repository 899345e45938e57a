/* Instants and counters that the program names itself, and whether anything is
 * being recorded. Called with the GIL held. */
#include "annotate/annotate.h"

static PyObject *points_instant(PyObject *module, PyObject *args)
{
    PyObject *name, *members = NULL;

    (void)module;
    if (!PyArg_ParseTuple(args, "U|U:instant", &name, &members))
        return NULL;
    if (vpy_is_recording()) {
        const char *bytes = "";
        uint32_t length = 0;
        PyObject *text = vpy_text(members, &bytes, &length);
        vst_id id = vpy_define_name(VST_DEF_INSTANT, name);
        if (id)
            vst_record_instant(id, bytes, length);
        Py_XDECREF(text);
    }
    Py_RETURN_NONE;
}

static PyObject *points_counter(PyObject *module, PyObject *args)
{
    PyObject *name;
    double value;

    (void)module;
    if (!PyArg_ParseTuple(args, "Ud:counter", &name, &value))
        return NULL;
    if (vpy_is_recording()) {
        vst_id id = vpy_define_name(VST_DEF_COUNTER, name);
        if (id)
            vst_record_counter(id, value);
    }
    Py_RETURN_NONE;
}

static PyObject *points_recording(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(vpy_is_recording());
}

static PyObject *set_call_stacks(PyObject *module, PyObject *on)
{
    int truth = PyObject_IsTrue(on);

    (void)module;
    if (truth < 0)
        return NULL;
    __atomic_store_n(&vpy_annotate.call_stack.is_wanted, truth,
                     __ATOMIC_RELAXED);
    if (!truth)
        vpy_call_stacks_forget();
    Py_RETURN_NONE;
}

PyMethodDef vpy_points_functions[] = {
    {"set_annotation_stacks", set_call_stacks, METH_O,
     PyDoc_STR(
         "set_annotation_stacks(on)\n--\n\nSet whether every annotation "
         "gets its call stack. False also drops the texts that were kept.")},
    {"instant", points_instant, METH_VARARGS,
     PyDoc_STR("instant(name, json_members='')\n--\n\nRecord a moment.")},
    {"counter", points_counter, METH_VARARGS,
     PyDoc_STR("counter(name, value)\n--\n\nRecord a number at this moment.")},
    {"recording", points_recording, METH_NOARGS,
     PyDoc_STR("recording()\n--\n\nWhether something is being recorded.")},
    {NULL, NULL, 0, NULL},
};
