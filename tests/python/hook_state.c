/* Shows which hooks are installed in an interpreter, independently of vestige:
 * every reachable PyMethodDef, the evaluation function, and the profile and
 * trace functions of thread states. Also makes C functions whose definition is
 * freed with them, as binding libraries do. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stdlib.h>

/* ---- every method definition --------------------------------------------- */

typedef struct pair {
    PyMethodDef *def;
    PyCFunction meth;
} pair;

typedef struct snapshot {
    pair *pairs;
    size_t count, capacity;
} snapshot;

static void free_snapshot(PyObject *capsule)
{
    snapshot *all = PyCapsule_GetPointer(capsule, "snapshot");

    free(all->pairs);
    free(all);
}

/* Adds a definition only if it is static: a definition on the heap may be freed
 * meanwhile. */
static int add(snapshot *all, PyMethodDef *def)
{
    Dl_info info;

    if (!def || !def->ml_name || !dladdr(def, &info))
        return 0;
    if (all->count == all->capacity) {
        size_t capacity = all->capacity ? all->capacity * 2 : 4096;
        pair *pairs = realloc(all->pairs, capacity * sizeof *pairs);
        if (!pairs)
            return -1;
        all->pairs = pairs;
        all->capacity = capacity;
    }
    all->pairs[all->count++] = (pair){def, def->ml_meth};
    return 0;
}

static int add_table(snapshot *all, PyMethodDef *table)
{
    Dl_info info;

    if (!table || !dladdr(table, &info))
        return 0;
    for (; table->ml_name; table++)
        if (add(all, table) < 0)
            return -1;
    return 0;
}

static int add_object(snapshot *all, PyObject *object)
{
    if (PyCFunction_Check(object))
        return add(all, ((PyCFunctionObject *)object)->m_ml);
    if (Py_TYPE(object) == &PyMethodDescr_Type ||
        Py_TYPE(object) == &PyClassMethodDescr_Type)
        return add(all, ((PyMethodDescrObject *)object)->d_method);
    if (PyType_Check(object))
        return add_table(all, ((PyTypeObject *)object)->tp_methods);
    if (PyModule_Check(object) && PyModule_GetDef(object))
        return add_table(all, PyModule_GetDef(object)->m_methods);
    return 0;
}

static int by_address(const void *a, const void *b)
{
    const pair *left = a, *right = b;

    return left->def < right->def ? -1 : left->def > right->def;
}

static void without_doubles(snapshot *all)
{
    size_t kept = 0;

    qsort(all->pairs, all->count, sizeof *all->pairs, by_address);
    for (size_t i = 0; i < all->count; i++)
        if (!kept || all->pairs[kept - 1].def != all->pairs[i].def)
            all->pairs[kept++] = all->pairs[i];
    all->count = kept;
}

/* take(objects): copies the definitions behind these objects. */
static PyObject *take(PyObject *module, PyObject *objects)
{
    snapshot *all = calloc(1, sizeof *all);
    PyObject *list = PySequence_Fast(objects, "a list of objects");

    (void)module;
    if (!list || !all) {
        free(all);
        Py_XDECREF(list);
        return list ? PyErr_NoMemory() : NULL;
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); i++)
        if (add_object(all, PySequence_Fast_GET_ITEM(list, i)) < 0) {
            Py_DECREF(list);
            return PyErr_NoMemory();
        }
    Py_DECREF(list);
    without_doubles(all);
    return PyCapsule_New(all, "snapshot", free_snapshot);
}

static PyObject *size(PyObject *module, PyObject *capsule)
{
    snapshot *all = PyCapsule_GetPointer(capsule, "snapshot");

    (void)module;
    return all ? PyLong_FromSize_t(all->count) : NULL;
}

/* changed(snapshot): returns the names of definitions that differ now. */
static PyObject *changed(PyObject *module, PyObject *capsule)
{
    snapshot *all = PyCapsule_GetPointer(capsule, "snapshot");
    PyObject *names = all ? PyList_New(0) : NULL;

    (void)module;
    for (size_t i = 0; names && i < all->count; i++) {
        if (all->pairs[i].def->ml_meth == all->pairs[i].meth)
            continue;
        PyObject *name = PyUnicode_FromString(all->pairs[i].def->ml_name);
        if (!name || PyList_Append(names, name) < 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

/* ---- the interpreter ----------------------------------------------------- */

static PyObject *evaluator(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromVoidPtr(
        (void *)_PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()));
}

/* Returns the number of profile and trace functions in thread states. */
static PyObject *thread_hooks(PyObject *module, PyObject *unused)
{
    long count = 0;

    (void)module, (void)unused;
    for (PyThreadState *tstate =
             PyInterpreterState_ThreadHead(PyInterpreterState_Get());
         tstate; tstate = PyThreadState_Next(tstate))
        count +=
            (tstate->c_profilefunc != NULL) + (tstate->c_tracefunc != NULL);
    return PyLong_FromLong(count);
}

/* ---- functions whose definition lies on the heap ------------------------ */

static PyObject *heap_body(PyObject *self, PyObject *argument)
{
    (void)self;
    return Py_NewRef(argument);
}

static void free_definition(PyObject *capsule)
{
    PyMethodDef *def = PyCapsule_GetPointer(capsule, NULL);

    memset(def, 0xAB, sizeof *def);
    free(def);
}

/* heap_function(): returns a new C function, which returns its argument. */
static PyObject *heap_function(PyObject *module, PyObject *unused)
{
    PyMethodDef *def = malloc(sizeof *def);

    (void)module, (void)unused;
    if (!def)
        return PyErr_NoMemory();
    *def = (PyMethodDef){"heap_body", heap_body, METH_O, NULL};
    PyObject *capsule = PyCapsule_New(def, NULL, free_definition);
    if (!capsule) {
        free(def);
        return NULL;
    }
    PyObject *function = PyCFunction_New(def, capsule);
    Py_DECREF(capsule);
    return function;
}

static PyMethodDef functions[] = {
    {"take", take, METH_O, NULL},
    {"size", size, METH_O, NULL},
    {"changed", changed, METH_O, NULL},
    {"evaluator", evaluator, METH_NOARGS, NULL},
    {"thread_hooks", thread_hooks, METH_NOARGS, NULL},
    {"heap_function", heap_function, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "hook_state",
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_hook_state(void)
{
    PyObject *module = PyModule_Create(&definition);

#ifdef Py_GIL_DISABLED
    if (module != NULL)
        PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}
