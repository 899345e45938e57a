/* Functions that want more than an enter and an exit: those whose arguments and
 * results are recorded, and the one in which a new thread gets its name. */
#include "vpy.h"

#include <stdio.h>
#include <string.h>

enum { VALUE_MAX = 200, TEXT_MAX = 4096 };

/* A bounded buffer of JSON. */
typedef struct text {
    char bytes[TEXT_MAX];
    size_t length;
} text;

static void put(text *t, const char *bytes, size_t length)
{
    if (t->length + length <= sizeof t->bytes) {
        memcpy(t->bytes + t->length, bytes, length);
        t->length += length;
    }
}

/* A JSON string of at most VALUE_MAX bytes of str, cut between characters. */
static void put_string(text *t, const char *s, size_t length)
{
    char escaped[VALUE_MAX * 6 + 8];
    size_t n = 0;
    bool cut = length > VALUE_MAX;

    if (cut) {
        length = VALUE_MAX;
        while (length && ((unsigned char)s[length] & 0xc0) == 0x80)
            length--;
    }
    escaped[n++] = '"';
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            n += (size_t)snprintf(escaped + n, 3, "\\%c", c);
        else if (c < 0x20)
            n += (size_t)snprintf(escaped + n, 7, "\\u%04x", c);
        else
            escaped[n++] = (char)c;
    }
    if (cut) {
        memcpy(escaped + n, "\xe2\x80\xa6", 3);
        n += 3;
    }
    escaped[n++] = '"';
    put(t, escaped, n);
}

/* repr() is the program's code: it may fail, which is noted in its place. */
static void put_repr(text *t, PyObject *value)
{
    PyObject *repr = PyObject_Repr(value);
    const char *bytes = "<repr failed>";
    uint32_t length = (uint32_t)strlen(bytes);
    PyObject *encoded = repr ? vpy_text(repr, &bytes, &length) : NULL;

    PyErr_Clear();
    put_string(t, bytes, length);
    Py_XDECREF(encoded);
    Py_XDECREF(repr);
}

static void put_arguments(text *t, PyCodeObject *code, PyFrameObject *frame)
{
    PyObject *names = PyObject_GetAttrString((PyObject *)code, "co_varnames");
    PyObject *locals = PyObject_GetAttrString((PyObject *)frame, "f_locals");
    Py_ssize_t count = code->co_argcount + code->co_kwonlyargcount +
                       !!(code->co_flags & CO_VARARGS) +
                       !!(code->co_flags & CO_VARKEYWORDS);

    for (Py_ssize_t i = 0; names && locals && i < count; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        PyObject *value = name ? PyObject_GetItem(locals, name) : NULL;
        const char *bytes;
        uint32_t length;
        PyObject *key = value ? vpy_text(name, &bytes, &length) : NULL;
        PyErr_Clear();
        if (key && t->length + VALUE_MAX * 6 + 256 + length < TEXT_MAX) {
            if (t->length)
                put(t, ", ", 2);
            put_string(t, bytes, length);
            put(t, ": ", 2);
            put_repr(t, value);
        }
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    Py_XDECREF(locals);
    Py_XDECREF(names);
    PyErr_Clear();
}

static bool is_thread_start(PyCodeObject *code)
{
    return PyUnicode_CompareWithASCIIString(code->co_name,
                                            "_bootstrap_inner") == 0;
}

void vpy_code_entered(uint32_t value, PyObject *code, PyFrameObject *frame)
{
    PyObject *type, *error, *traceback;
    text t = {.length = 0};

    vst_record(VST_ENTER, VPY_ID(value));
    PyErr_Fetch(&type, &error, &traceback);
    if (!frame)
        frame = PyEval_GetFrame();
    if (frame && is_thread_start((PyCodeObject *)code)) {
        vpy_threads_name_from_frame(vpy_active, frame);
    } else if (frame) {
        put_arguments(&t, (PyCodeObject *)code, frame);
        if (t.length)
            vst_record_args(t.bytes, t.length);
    }
    PyErr_Restore(type, error, traceback);
}

void vpy_code_returns(uint32_t value, PyObject *code, PyObject *result)
{
    PyObject *type, *error, *traceback;
    text t = {.length = 0};

    if (result && !is_thread_start((PyCodeObject *)code)) {
        PyErr_Fetch(&type, &error, &traceback);
        put(&t, "\"return\": ", 10);
        put_repr(&t, result);
        vst_record_args(t.bytes, t.length);
        PyErr_Restore(type, error, traceback);
    }
    vst_record(result ? VST_EXIT : VST_RAISE, VPY_ID(value));
}
