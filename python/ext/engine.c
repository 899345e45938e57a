/* Engines: the ways to be told of calls. Each is a file of its own; this one
 * knows which there are on this Python, and which one runs. */
#include "vpy.h"

#include <string.h>

bool vpy_torch_mode;

const vpy_engine *const vpy_engines[] = {
#if PY_VERSION_HEX >= 0x030C0000
    &vpy_engine_monitoring,
#else
    &vpy_engine_profile,
#endif
    NULL,
};

static const vpy_engine *running; /* NULL: none */
static const vpy_engine *latest;  /* to run */

int vpy_engines_init(PyObject *module)
{
    for (size_t i = 0; vpy_engines[i]; i++)
        if (vpy_engines[i]->init(module) < 0)
            return -1;
    return 0;
}

PyObject *vpy_engine_names(void)
{
    PyObject *list = PyList_New(0);
    PyObject *tuple = NULL;

    for (size_t i = 0; list && vpy_engines[i]; i++) {
        PyObject *name = PyUnicode_FromString(vpy_engines[i]->name);
        if (!name || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    if (list)
        tuple = PyList_AsTuple(list);
    Py_XDECREF(list);
    return tuple;
}

static const vpy_engine *find(const char *name)
{
    if (strcmp(name, "auto") == 0)
        return vpy_engines[0];
    for (size_t i = 0; vpy_engines[i]; i++)
        if (strcmp(vpy_engines[i]->name, name) == 0)
            return vpy_engines[i];
    return NULL;
}

const char *vpy_engine_name(const char *wanted)
{
    const vpy_engine *engine = find(wanted);

    return engine ? engine->name : NULL;
}

bool vpy_engine_start(vpy_tracer *tracer)
{
    const vpy_engine *engine = find(tracer->options.engine);

    tracer->engine = running = engine; /* a fork may come before it is done */
    if (!engine->start(tracer)) {
        tracer->engine = running = NULL;
        return false;
    }
    latest = engine;
    return true;
}

void vpy_engine_stop(vpy_tracer *tracer)
{
    if (tracer->engine)
        tracer->engine->stop(tracer);
    tracer->engine = running = NULL;
}

void vpy_engine_native_defined(PyTypeObject *owner)
{
    if (running && running->native_defined)
        running->native_defined(owner);
}

void vpy_engine_check_thread(void)
{
    if (running && running->check_thread)
        running->check_thread();
}

const char *vpy_engine_of_recording(void)
{
    return (latest ? latest : vpy_engines[0])->name;
}
