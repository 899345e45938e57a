/* Records the names of imported modules. Replay takes the name of a module from
 * the file of its code (src/replay/imports.c), but some modules run no code:
 * modules written in C, namespace packages, modules that their parent has
 * imported meanwhile, and modules that are not found. So the name is recorded
 * in the functions that the import system calls for a module that is not loaded
 * yet. Since 3.15 there are two: the first imports the parent, and the second
 * is not called if that fails or has imported the module.
 *
 * Only calls of these functions come here, and no code of the program runs. */
#include "program/program.h"

#include "record/language.h"

#include <string.h>

bool vpy_is_import(PyObject *name)
{
    return PyUnicode_CompareWithASCIIString(name, "_find_and_load_unlocked") ==
               0 ||
           PyUnicode_CompareWithASCIIString(name, "_resolve_parents") == 0;
}

bool vpy_imports_module(const char *file, uint32_t length, PyObject *name)
{
    static const char importlib[] = "<frozen importlib._bootstrap>";

    return length == sizeof importlib - 1 &&
           memcmp(file, importlib, length) == 0 && vpy_is_import(name);
}

static vst_id import_define(const char *module, uint32_t length)
{
    static const char head[] = VST_MODULE_NAMED;
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
    if (vpy_calls.tracer.active == NULL ||
        vst_recording_define_id(vpy_calls.tracer.active->recording, &definition,
                                &id) != VST_OK)
        id = 0;
    vpy_state_give();
    return id;
}

/* The module's name is the first argument of the function. */
void vpy_module_imported(const vpy_iframe *frame)
{
    PyObject *name = vpy_iframe_argument(frame, 0);
    PyObject *encoded = NULL;
    const char *bytes;
    uint32_t length;
    vst_id id = 0;

    if (name != NULL && PyUnicode_Check(name))
        encoded = vpy_text(name, &bytes, &length);
    PyErr_Clear();
    if (encoded != NULL && length != 0)
        id = import_define(bytes, length);
    Py_XDECREF(encoded);
    if (id != 0)
        vst__record_import(id);
}
