/* See arrays.h: an object counts as an array if it has a buffer, an
 * __array_interface__ or __dlpack__. Nothing here raises; unknown facts stay
 * empty. Called with the GIL held. */
#include "annotate/arrays.h"

#include <stdlib.h>
#include <string.h>

/* ---- element types ------------------------------------------------------- */

/* kind: b(ool) i(nt) u(nsigned) f(loat) c(omplex) B (bfloat) */
static const char *type_name(char kind, long bytes)
{
    static const struct {
        char kind;
        long bytes;
        const char *name;
    } known[] = {
        {'b', 1, "bool"},
        {'i', 1, "signed char"},
        {'i', 2, "short int"},
        {'i', 4, "int"},
        {'i', 8, "long int"},
        {'u', 1, "unsigned char"},
        {'u', 2, "unsigned short"},
        {'u', 4, "unsigned int"},
        {'u', 8, "unsigned long"},
        {'f', 2, "c10::Half"},
        {'f', 4, "float"},
        {'f', 8, "double"},
        {'B', 2, "c10::BFloat16"},
        {'c', 4, "c10::complex<c10::Half>"},
        {'c', 8, "c10::complex<float>"},
        {'c', 16, "c10::complex<double>"},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].kind == kind && known[i].bytes == bytes)
            return known[i].name;
    return "";
}

/* Returns the type of a format in the struct module's letters. */
static const char *type_of_format(const char *format, long bytes)
{
    char kind;

    while (format != NULL && *format && strchr("@=<>!", *format) != NULL)
        format++;
    if (format == NULL || !*format)
        return type_name('u', 1);
    if (*format == 'Z')
        kind = 'c';
    else if (*format == '?')
        kind = 'b';
    else if (strchr("efd", *format) != NULL)
        kind = 'f';
    else if (strchr("bhilqn", *format) != NULL)
        kind = 'i';
    else if (strchr("BHILQNc", *format) != NULL)
        kind = 'u';
    else
        return "";
    return type_name(kind, bytes);
}

/* ---- the three ways ------------------------------------------------------ */

static void fill_strides(vpy_array *a)
{
    long long step = 1;

    for (int i = a->dims - 1; i >= 0; i--) {
        a->strides[i] = step;
        step *= a->shape[i] > 1 ? a->shape[i] : 1;
    }
}

static bool from_buffer(PyObject *object, vpy_array *a)
{
    Py_buffer view;

    if (!PyObject_CheckBuffer(object) ||
        PyObject_GetBuffer(object, &view, PyBUF_RECORDS_RO) < 0)
        return false;
    a->dims = view.ndim <= VPY_DIMS_MAX ? view.ndim : -1;
    for (int i = 0; i < a->dims; i++) {
        a->shape[i] = view.shape != NULL ? view.shape[i] : view.len;
        a->strides[i] = view.strides != NULL && view.itemsize
                            ? view.strides[i] / view.itemsize
                            : 1;
    }
    a->type = type_of_format(view.format, (long)view.itemsize);
    a->item_bytes = (long)view.itemsize;
    a->data = (uintptr_t)view.buf;
    PyBuffer_Release(&view);
    return a->dims >= 0;
}

/* Reads a shape. A size that is not an int may run code (its __index__), which
 * must not run with an error set, so the first error ends the reading. */
static void read_shape(PyObject *shape, vpy_array *a)
{
    int dims = (int)PyTuple_GET_SIZE(shape);

    for (int i = 0; i < dims; i++) {
        a->shape[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
        if (a->shape[i] == -1 && PyErr_Occurred() != NULL) {
            PyErr_Clear();
            return;
        }
    }
    a->dims = dims;
    fill_strides(a);
}

/* Returns a new reference: reading another item may run code that drops the
 * dict's reference. */
static PyObject *arrays_item_of(PyObject *dict, const char *key)
{
    return Py_XNewRef(PyDict_GetItemString(dict, key));
}

static bool from_interface(PyObject *object, vpy_array *a)
{
    PyObject *dict = PyObject_GetAttrString(object, "__array_interface__");
    PyObject *shape = NULL, *type = NULL, *data = NULL;
    const char *text;

    if (dict != NULL && PyDict_Check(dict)) {
        shape = arrays_item_of(dict, "shape");
        type = arrays_item_of(dict, "typestr");
        data = arrays_item_of(dict, "data");
    }
    if (shape != NULL && PyTuple_Check(shape) &&
        PyTuple_GET_SIZE(shape) <= VPY_DIMS_MAX) {
        read_shape(shape, a);
        text = type != NULL && PyUnicode_Check(type) ? PyUnicode_AsUTF8(type)
                                                     : NULL;
        if (text != NULL && strlen(text) > 2) {
            a->item_bytes = atol(text + 2);
            a->type = type_name(text[1], a->item_bytes);
        }
        if (data != NULL && PyTuple_Check(data) && PyTuple_GET_SIZE(data) > 0)
            a->data = (uintptr_t)PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0));
    }
    Py_XDECREF(shape);
    Py_XDECREF(type);
    Py_XDECREF(data);
    Py_XDECREF(dict);
    return a->dims >= 0;
}

/* The head of a DLManagedTensor, which all versions of the standard share. */
typedef struct dlpack_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dlpack_tensor;

static bool from_dlpack(PyObject *object, vpy_array *a)
{
    static const char kinds[] = "iufhBcb"; /* h: opaque */
    PyObject *capsule = PyObject_CallMethod(object, "__dlpack__", NULL);
    const dlpack_tensor *t =
        capsule != NULL ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;

    if (t != NULL && t->ndim >= 0 && t->ndim <= VPY_DIMS_MAX) {
        a->dims = t->ndim;
        for (int i = 0; i < a->dims; i++)
            a->shape[i] = t->shape[i];
        fill_strides(a);
        for (int i = 0; t->strides != NULL && i < a->dims; i++)
            a->strides[i] = t->strides[i];
        a->item_bytes = t->bits / 8;
        a->data = (uintptr_t)t->data + (uintptr_t)t->byte_offset;
        if (t->code < sizeof kinds - 1)
            a->type = type_name(kinds[t->code], t->bits / 8);
    }
    Py_XDECREF(capsule); /* frees the tensor, since it was not consumed */
    return a->dims >= 0;
}

bool vpy_array_read(PyObject *object, vpy_array *a)
{
    bool found;

    *a = (vpy_array){.dims = -1, .type = ""};
    if (PyUnicode_Check(object) || object == Py_None)
        return false;
    if (PyLong_Check(object) || PyFloat_Check(object)) {
        a->type = "Scalar";
        return false;
    }
    found = from_buffer(object, a);
    PyErr_Clear();
    if (!found)
        found = from_interface(object, a);
    PyErr_Clear();
    if (!found)
        found = from_dlpack(object, a);
    PyErr_Clear();
    return found;
}
