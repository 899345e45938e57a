/* Names of modules that have no code in Python: those written in C, and
 * namespace packages. Of any other module replay takes the name from the file
 * of its code (src/replay/imports.c). Here two functions of the import system
 * say it, which are given the module's spec: create_module of loaders, and
 * _init_module_attrs for what has no loader. The name becomes a definition of
 * its own, "<module> _decimal", with a span of no length inside that function.
 *
 * Only calls of these come here, and no code of the program's runs. */
#include "program/program.h"

#include <string.h>

static bool is_of_loader(PyObject *name)
{
    return PyUnicode_CompareWithASCIIString(name, "create_module") == 0;
}

bool vpy_is_given_spec(PyObject *name)
{
    return is_of_loader(name) ||
           PyUnicode_CompareWithASCIIString(name, "_init_module_attrs") == 0;
}

bool vpy_makes_module(const char *file, uint32_t length, PyObject *name)
{
    static const char head[] = "<frozen importlib._bootstrap";
    size_t size = sizeof head - 1;

    return length > size && memcmp(file, head, size) == 0 &&
           vpy_is_given_spec(name);
}

static bool is_name_of_loader(const char *name)
{
    static const char *const names[] = {"ExtensionFileLoader",
                                        "BuiltinImporter"};
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(dot != NULL ? dot + 1 : name, names[i]) == 0)
            return true;
    return false;
}

/* Whether what it loads is written in C. The loader of built-in modules is a
 * class, that of others an instance. */
static bool loads_c(PyObject *loader)
{
    PyTypeObject *type =
        PyType_Check(loader) ? (PyTypeObject *)loader : Py_TYPE(loader);
    PyObject *bases = type->tp_mro;

    for (Py_ssize_t i = 0; bases != NULL && i < PyTuple_GET_SIZE(bases); i++)
        if (is_name_of_loader(
                ((PyTypeObject *)PyTuple_GET_ITEM(bases, i))->tp_name))
            return true;
    return false;
}

static vst_id define(const char *module, uint32_t length)
{
    static const char head[] = VST_MODULE_WITHOUT_CODE;
    char text[sizeof head + VST_IMPORT_NAME_MAX];
    size_t size = sizeof head - 1;
    vst_definition definition = {
        .kind = VST_DEF_NATIVE, .name = text, .file = module};
    vst_id id = 0;

    if (length > VST_IMPORT_NAME_MAX)
        length = VST_IMPORT_NAME_MAX;
    memcpy(text, head, size);
    memcpy(text + size, module, length);
    definition.name_len = (uint32_t)size + length;
    definition.file_len = length;
    vpy_state_take();
    if (vpy_active == NULL ||
        vst_recording_define_id(vpy_active->recording, &definition, &id) !=
            VST_OK)
        id = 0;
    vpy_state_give();
    return id;
}

static void record_name(PyObject *name)
{
    const char *bytes;
    uint32_t length;
    PyObject *encoded = vpy_text(name, &bytes, &length);
    vst_id id = encoded != NULL && length != 0 ? define(bytes, length) : 0;

    Py_XDECREF(encoded);
    if (id == 0)
        return;
    vst_record(VST_ENTER, id);
    vst_record(VST_EXIT, id);
}

/* Of create_module the spec is the last argument: before 3.11, and in methods,
 * another one is before it. Of the other function it is the first. */
void vpy_module_made(const PyCodeObject *code, const vpy_iframe *frame)
{
    bool of_loader = is_of_loader(code->co_name);
    PyObject *spec =
        code->co_argcount > 0
            ? vpy_iframe_argument(frame, of_loader ? code->co_argcount - 1 : 0)
            : NULL;
    PyObject *members =
        spec != NULL ? PyObject_GenericGetDict(spec, NULL) : NULL;
    PyObject *name = NULL, *loader = NULL;

    if (members != NULL && PyDict_Check(members)) {
        name = vpy_dict_get_named(members, "name");
        loader = vpy_dict_get_named(members, "loader");
    }
    PyErr_Clear();
    if (name != NULL && PyUnicode_Check(name) && loader != NULL &&
        (of_loader ? loads_c(loader) : loader == Py_None))
        record_name(name);
    Py_XDECREF(loader);
    Py_XDECREF(name);
    Py_XDECREF(members);
}
