/* Encodes a str as bytes. */
#include "vpy.h"

PyObject *vpy_text(PyObject *str, const char **bytes, uint32_t *length)
{
    PyObject *encoded = NULL;

    if (str != NULL && PyUnicode_Check(str))
        encoded = PyUnicode_AsEncodedString(str, "utf-8", "surrogateescape");
    if (encoded == NULL) {
        PyErr_Clear();
        /* The str has lone surrogates that stand for no byte. */
        if (str != NULL && PyUnicode_Check(str))
            encoded = PyUnicode_AsEncodedString(str, "utf-8", "replace");
        if (encoded == NULL) {
            PyErr_Clear();
            return NULL;
        }
    }
    *bytes = PyBytes_AS_STRING(encoded);
    *length = (uint32_t)PyBytes_GET_SIZE(encoded);
    return encoded;
}
