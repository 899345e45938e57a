/* Ids of calls of objects that are no functions: a class (`bytes(n)`), and an
 * object that C code calls (`numpy.sin(x)`). This file also says which of them
 * are recorded, for every engine: see vpy_class_is_recorded and
 * vpy_type_is_called.
 *
 * An object is named as its own attributes say, or by its type if it has no
 * names. The last id of each object is kept beside a weak reference to it,
 * because another object may come to lie at its address. An object that allows
 * no weak reference is named anew in each call, unless its thunk knows the id.
 *
 * With the GIL; where there is none, the state lock guards the table. */
#include "calls/ids.h"

#include "calls/budget.h"
#include "program/program.h"
#include "thunks/thunks.h"

#include <stdio.h>
#include <string.h>
#include <vestige/memory.h>

static struct vpy_callable_ids_state *const state = &vpy_calls.callables;

int vpy_callable_ids_init(void)
{
    PyObject *probe = PyObject_CallFunction(
        (PyObject *)&PyType_Type, "s(){sOsOsO}", "probe", "__call__", Py_None,
        "__init__", Py_None, "__new__", Py_None);

    if (probe == NULL)
        return -1;
    state->python_call = ((PyTypeObject *)probe)->tp_call;
    state->python_init = ((PyTypeObject *)probe)->tp_init;
    state->python_new = ((PyTypeObject *)probe)->tp_new;
    state->python_dealloc = ((PyTypeObject *)probe)->tp_dealloc;
    Py_DECREF(probe);
    return 0;
}

/* ---- which calls are recorded -------------------------------------------- */

static bool is_named(const PyTypeObject *type, const char *name)
{
    return strcmp(type->tp_name, name) == 0;
}

static bool is_among(const PyTypeObject *type, const PyTypeObject *const *types,
                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (type == types[i])
            return true;
    return false;
}

/* Objects of these types hand the call on to a function, which is recorded, or
 * they are functions. The last one begins a step of a task. */
static bool hands_on(const PyTypeObject *type)
{
    static const PyTypeObject *const types[] = {
        &PyFunction_Type,       &PyMethod_Type,
        &PyCFunction_Type,      &PyCMethod_Type,
        &PyMethodDescr_Type,    &PyClassMethodDescr_Type,
        &PyInstanceMethod_Type, &PyStaticMethod_Type,
        &PyClassMethod_Type,    &PyWrapperDescr_Type,
        &Py_GenericAliasType,   &_PyWeakref_RefType,
        &_PyWeakref_ProxyType,  &_PyWeakref_CallableProxyType,
    };

    return is_among(type, types, sizeof types / sizeof *types) ||
           is_named(type, "method-wrapper") ||
           strstr(type->tp_name, "TaskStepMethWrapper") != NULL ||
           (!VPY_FREE_THREADED && is_named(type, "nanobind.nb_bound_method"));
}

bool vpy_type_is_called(const PyTypeObject *type)
{
    return type->tp_call != NULL && type->tp_call != state->python_call &&
           !hands_on(type) && strncmp(type->tp_name, "vestige.", 8) != 0;
}

/* The interpreter has instructions of its own for the first four and then calls
 * nothing. The others, and classes that only have what `object` has, take no
 * longer than a record does, whatever they are called with. */
static bool is_short(const PyTypeObject *class)
{
    static const PyTypeObject *const types[] = {
        &PyType_Type,         &PyUnicode_Type,     &PyTuple_Type,
        &PySuper_Type,        &PyLong_Type,        &PyFloat_Type,
        &PyBool_Type,         &PyBaseObject_Type,  &PyRange_Type,
        &PySlice_Type,        &PyEnum_Type,        &PyReversed_Type,
        &PyZip_Type,          &PyMap_Type,         &PyFilter_Type,
        &PyProperty_Type,     &PyComplex_Type,     &PyMethod_Type,
        &PyStaticMethod_Type, &PyClassMethod_Type, &PyCell_Type,
        &_PyWeakref_RefType,
    };

    return is_among(class, types, sizeof types / sizeof *types) ||
           (class->tp_new == PyBaseObject_Type.tp_new &&
            class->tp_init == PyBaseObject_Type.tp_init);
}

/* Returns whether a method that makes objects is a function in Python. A class
 * of pybind11 has the slot of a Python class, but a method in C. */
static bool makes_in_python(PyTypeObject *class, const char *method)
{
    PyObject *key = PyUnicode_FromString(method);
    PyObject *found = key != NULL ? _PyType_Lookup(class, key) : NULL;
    bool is_wrapped =
        found != NULL && (Py_IS_TYPE(found, &PyStaticMethod_Type) ||
                          Py_IS_TYPE(found, &PyClassMethod_Type));

    if (is_wrapped)
        found = vpy_wrapped_function(found);
    Py_XDECREF(key);
    PyErr_Clear();
    return found != NULL && PyFunction_Check(found);
}

bool vpy_class_is_recorded(PyTypeObject *class)
{
    return Py_TYPE(class)->tp_call != state->python_call &&
           !(class->tp_new == state->python_new &&
             makes_in_python(class, "__new__")) &&
           !(class->tp_init == state->python_init &&
             makes_in_python(class, "__init__")) &&
           !is_short(class) && !PyExceptionClass_Check((PyObject *)class) &&
           !PyType_IsSubtype(class, &PyType_Type) &&
           strncmp(class->tp_name, "vestige.", 8) != 0;
}

/* ---- names --------------------------------------------------------------- */

enum { NAME_MAX_BYTES = 256 };

typedef struct callable_name {
    char name[NAME_MAX_BYTES];  /* "" : it has none */
    char where[NAME_MAX_BYTES]; /* module, or class of a method */
    vpy_native_kind kind;
} callable_name;

static void put_text(char *place, PyObject *value)
{
    const char *text = value != NULL && PyUnicode_Check(value)
                           ? PyUnicode_AsUTF8(value)
                           : NULL;

    if (text != NULL)
        snprintf(place, NAME_MAX_BYTES, "%s", text);
    PyErr_Clear();
}

static void put_attribute(char *place, PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);

    put_text(place, value);
    Py_XDECREF(value);
}

static bool has_in_type(PyTypeObject *type, const char *name)
{
    PyObject *key = PyUnicode_FromString(name);
    bool has = key != NULL && _PyType_Lookup(type, key) != NULL;

    Py_XDECREF(key);
    PyErr_Clear();
    return has;
}

/* Whether objects of a type have names of their own, which can be read without
 * calling the program. A partial object is often made for one call; its
 * function is recorded. */
static bool names_itself(PyTypeObject *type)
{
    for (const PyTypeObject *t = type; t != NULL; t = t->tp_base)
        if (is_named(t, "functools.partial"))
            return false;
    if (has_in_type(type, "__getattr__"))
        return false;
    return type->tp_getattro != PyObject_GenericGetAttr ||
           has_in_type(type, "__name__") || type->tp_dictoffset != 0;
}

/* `numpy.core._multiarray_umath` has `sin`, but so has `numpy`: the outermost
 * package that has the object under its name is what people write. */
static void shorten_module(char *module, const char *name, PyObject *object)
{
    char outer[NAME_MAX_BYTES];

    for (const char *dot = strchr(module, '.'); dot != NULL;
         dot = strchr(dot + 1, '.')) {
        PyObject *package, *found = NULL;
        snprintf(outer, sizeof outer, "%.*s", (int)(dot - module), module);
        package = vpy_loaded_module(outer);
        if (package != NULL && PyModule_Check(package))
            found = vpy_dict_get_named(PyModule_GetDict(package), name);
        Py_XDECREF(found);
        Py_XDECREF(package);
        if (found == object) {
            snprintf(module, NAME_MAX_BYTES, "%s", outer);
            return;
        }
    }
}

/* `f.<locals>.g` is g. */
static void drop_locals(char *name)
{
    static const char locals[] = "<locals>.";
    char *found;

    while ((found = strstr(name, locals)) != NULL) {
        found += sizeof locals - 1;
        memmove(name, found, strlen(found) + 1);
    }
}

/* `Connection.execute` of module `db` is the method execute of
 * `db.Connection`. */
static void split_method(callable_name *n)
{
    char *dot = strrchr(n->name, '.');
    char class[NAME_MAX_BYTES];

    if (dot == NULL ||
        snprintf(class, sizeof class, "%s%s%.*s", n->where,
                 n->where[0] ? "." : "", (int)(dot - n->name), n->name) < 0)
        return;
    snprintf(n->where, sizeof n->where, "%s", class);
    memmove(n->name, dot + 1, strlen(dot + 1) + 1);
    n->kind = VPY_METHOD_OF_OBJECT;
}

/* where: the module in which it was found, or NULL. */
static void name_object(callable_name *n, PyObject *object, const char *where)
{
    n->kind = VPY_FUNCTION_OF_MODULE;
    put_attribute(n->name, object, "__qualname__");
    if (!n->name[0])
        put_attribute(n->name, object, "__name__");
    drop_locals(n->name);
    put_attribute(n->where, object, "__module__");
    if (!n->where[0] && where != NULL)
        snprintf(n->where, sizeof n->where, "%s", where);
    if (!n->where[0])
        snprintf(n->where, sizeof n->where, "%s", Py_TYPE(object)->tp_name);
    if (strchr(n->name, '.') == NULL)
        shorten_module(n->where, n->name, object);
    else
        split_method(n);
}

static void name_by_type(callable_name *n, PyTypeObject *type)
{
    n->kind = VPY_METHOD_OF_OBJECT;
    snprintf(n->name, sizeof n->name, "__call__");
    snprintf(n->where, sizeof n->where, "%s", type->tp_name);
}

static void name_class(callable_name *n, PyTypeObject *class)
{
    PyObject *name = PyType_GetQualName(class);
    PyObject *dict = vpy_type_dict(class);
    PyObject *module = PyType_HasFeature(class, Py_TPFLAGS_HEAPTYPE)
                           ? vpy_dict_get_named(dict, "__module__")
                           : NULL;
    const char *dot = strrchr(class->tp_name, '.');

    n->kind = VPY_CLASS;
    put_text(n->name, name);
    drop_locals(n->name);
    put_text(n->where, module);
    if (module == NULL && dot != NULL)
        snprintf(n->where, sizeof n->where, "%.*s", (int)(dot - class->tp_name),
                 class->tp_name);
    else if (module == NULL)
        snprintf(n->where, sizeof n->where, "builtins");
    shorten_module(n->where, n->name, (PyObject *)class);
    Py_XDECREF(module);
    Py_XDECREF(dict);
    Py_XDECREF(name);
}

/* ---- the table ----------------------------------------------------------- */

static vst_id callable_find(uintptr_t subject)
{
    vst_id id;

    vpy_state_take();
    id = vpy_callable_find(subject);
    vpy_state_give();
    return id;
}

/* Gives the id of a name to a subject and keeps it, unless the recording has
 * ended. n: NULL if calls are not recorded. */
static vst_id callable_keep(uintptr_t subject, const callable_name *n)
{
    PyObject *object = (PyObject *)(subject & ~(uintptr_t)1);
    bool stays =
        PyType_Check(object) &&
        !PyType_HasFeature((PyTypeObject *)object, Py_TPFLAGS_HEAPTYPE);
    PyObject *alive = stays ? NULL : vpy_weakref_new(object);
    vpy_callable *c = vpy_callable_place(subject);
    vst_id id = 0;

    PyErr_Clear();
    vpy_state_take();
    if (n != NULL)
        id = vpy_native_define(n->name, n->where, n->kind);
    if (vpy_budget_is_out(id))
        id |= VPY_LEFT_OUT;
    if ((stays || alive != NULL) && vpy_calls.natives.tracer != NULL) {
        PyObject *old = c->alive;
        state->are_used = true;
        *c = (vpy_callable){subject, alive, id, state->round};
        alive = old;
    }
    vpy_state_give();
    Py_XDECREF(alive);
    return id;
}

static vst_id define_class(PyTypeObject *class)
{
    callable_name n = {.name = ""};

    if (!vpy_class_is_recorded(class))
        return callable_keep((uintptr_t)class, NULL);
    name_class(&n, class);
    return callable_keep((uintptr_t)class, &n);
}

static vst_id define_object(PyObject *object, const char *where)
{
    PyTypeObject *type = Py_TYPE(object);
    uintptr_t subject = VPY_OF_ALL(type);
    callable_name n = {.name = ""};

    if (!vpy_type_is_called(type))
        return callable_keep(subject, NULL);
    if (names_itself(type)) {
        subject = (uintptr_t)object;
        name_object(&n, object, where);
    }
    if (!n.name[0] || n.name[0] == '<') /* `<cdata>` is no name */
        name_by_type(&n, type);
    return callable_keep(subject, &n);
}

/* Attributes are read by C code, but that may call anything: not as a part of
 * the program. */
static VST_COLD vst_id callable_define(PyObject *callable, const char *where)
{
    PyThreadState *tstate = vpy_thread_state();
    int young = vpy_young_objects();
    PyObject *type, *value, *traceback;
    vst_id id;

    if (vpy_is_finalizing())
        return 0;
    PyErr_Fetch(&type, &value, &traceback);
    vpy_hook_enter(tstate);
    vst_memory_enter();
    id = PyType_Check(callable) ? define_class((PyTypeObject *)callable)
                                : define_object(callable, where);
    vst_memory_leave();
    vpy_hook_leave(tstate);
    vpy_young_objects_set(young);
    PyErr_Restore(type, value, traceback);
    return id;
}

vst_id vpy_callable_id(PyObject *callable)
{
    bool is_class = PyType_Check(callable);
    vst_id id;

    if (!is_class && vpy_object_has_thunk(callable))
        return 0;
    id = callable_find((uintptr_t)callable);
    if (VST_LIKELY(id != VPY_NO_SLOT))
        return id;
    id = is_class ? VPY_NO_SLOT : callable_find(VPY_OF_ALL(Py_TYPE(callable)));
    return VST_LIKELY(id != VPY_NO_SLOT) ? id : callable_define(callable, NULL);
}

vst_id vpy_callable_id_found(PyObject *callable, const char *where)
{
    return callable_define(callable, where);
}

void vpy_callable_ids_rest(bool (*is_out)(vst_id id))
{
    for (size_t i = 0; i < VPY_CALLABLES_KEPT; i++) {
        vpy_callable *c = &state->kept[i];
        vst_id id = VPY_ID(c->id);
        if (c->subject != 0 && c->round == state->round && id != 0)
            c->id = is_out(id) ? id | VPY_LEFT_OUT : id;
    }
}

void vpy_callable_ids_clear(void)
{
    bool drops = state->are_used && !vpy_thunks_are_passed_on();

    vpy_state_take();
    state->round++;
    for (size_t i = 0; drops && i < VPY_CALLABLES_KEPT; i++) {
        Py_XDECREF(state->kept[i].alive);
        state->kept[i] = (vpy_callable){.subject = 0};
    }
    state->are_used &= !drops;
    vpy_state_give();
}
