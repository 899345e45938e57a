/* Records annotations as nodes of the execution trace (<vestige/graph.h>), with
 * the arguments of record_function as values. Arrays are recorded as tensors;
 * views of one array share its storage. Nothing here raises. Called with the
 * GIL held. */
#include "annotate/annotate.h"

#include "annotate/arrays.h"

#include <stdlib.h>
#include <string.h>

#include <vestige/graph.h>

static struct vpy_graph_nodes_state *const state = &vpy_annotate.graph;

enum {
    LIST_MAX = 4097, /* equal to the limit in torch's observer */
    DEPTH_MAX = 32,
    BASES_MAX = 16,
    TEXT_MAX = 1 << 20
};

static VST_THREAD_LOCAL uint64_t own_thread;

static uint64_t thread_number(void)
{
    if (state->framework_thread != NULL)
        return state->framework_thread();
    if (!own_thread)
        own_thread =
            __atomic_add_fetch(&state->last_thread, 1, __ATOMIC_RELAXED);
    return own_thread;
}

/* ---- bytes --------------------------------------------------------------- */

static void node_put(vpy_node *node, const void *bytes, size_t count)
{
    if (count > node->capacity - node->count) {
        size_t capacity = (node->count + count) * 2;
        bool grows = node->bytes != node->own;
        unsigned char *grown = realloc(grows ? node->bytes : NULL, capacity);
        if (grown == NULL) {
            node->cut = true;
            return;
        }
        if (!grows)
            memcpy(grown, node->own, node->count);
        node->bytes = grown;
        node->capacity = capacity;
    }
    memcpy(node->bytes + node->count, bytes, count);
    node->count += count;
}

static void put_byte(vpy_node *node, unsigned value)
{
    unsigned char byte = (unsigned char)value;

    node_put(node, &byte, 1);
}

static void put_count(vpy_node *node, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_byte(node, (unsigned)(value & 0x7f) | 0x80);
    put_byte(node, (unsigned)value);
}

static void put_integer(vpy_node *node, int64_t value)
{
    put_count(node, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static void put_integers(vpy_node *node, const long long *values, int count)
{
    put_count(node, (uint64_t)count);
    for (int i = 0; i < count; i++)
        put_integer(node, values[i]);
}

static void node_put_text(vpy_node *node, const char *text, size_t length)
{
    if (length > TEXT_MAX) {
        length = TEXT_MAX;
        node->cut = true;
    }
    put_count(node, length);
    node_put(node, text, length);
}

/* ---- values -------------------------------------------------------------- */

/* Returns where the memory of an array begins, or of the array of which it is a
 * view. */
static uintptr_t storage_of(PyObject *object, const vpy_array *a)
{
    uintptr_t storage = a->data;
    PyObject *base = Py_NewRef(object);

    for (int i = 0; i < BASES_MAX; i++) {
        PyObject *next = PyObject_HasAttrString(base, "__array_interface__")
                             ? PyObject_GetAttrString(base, "base")
                             : NULL;
        vpy_array under;

        PyErr_Clear();
        if (next == NULL || next == Py_None || !vpy_array_read(next, &under) ||
            under.data == 0 || under.data > a->data) {
            Py_XDECREF(next);
            break;
        }
        storage = under.data;
        Py_SETREF(base, next);
    }
    Py_DECREF(base);
    return storage;
}

static void put_array(vpy_node *node, PyObject *object, const vpy_array *a)
{
    uintptr_t storage = a->data ? storage_of(object, a) : 0;
    long long elements = 1;

    for (int i = 0; i < a->dims; i++)
        elements *= a->shape[i];
    put_byte(node, VST_VALUE_TENSOR);
    put_count(node, (uintptr_t)object);
    put_count(node, storage);
    put_integer(node, storage && a->item_bytes > 0
                          ? (int64_t)(a->data - storage) / a->item_bytes
                          : 0);
    put_integer(node, elements);
    put_count(node, (uint64_t)(a->item_bytes > 0 ? a->item_bytes : 0));
    node_put_text(node, "cpu", 3);
    node_put_text(node, a->type, strlen(a->type));
    put_integers(node, a->shape, a->dims);
    put_integers(node, a->strides, a->dims);
}

static void node_put_string(vpy_node *node, PyObject *object)
{
    const char *bytes = "";
    uint32_t length = 0;
    PyObject *text = vpy_text(object, &bytes, &length);

    put_byte(node, VST_VALUE_STRING);
    node_put_text(node, bytes, length);
    Py_XDECREF(text);
}

static void put_other(vpy_node *node, PyObject *object)
{
    const char *name = Py_TYPE(object)->tp_name;

    put_byte(node, VST_VALUE_OTHER);
    node_put_text(node, name, strlen(name));
}

static void node_put_long(vpy_node *node, PyObject *object)
{
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);

    PyErr_Clear();
    if (overflow) {
        put_other(node, object);
        return;
    }
    put_byte(node, VST_VALUE_INTEGER);
    put_integer(node, value);
}

static void node_put_value(vpy_node *node, PyObject *object, int depth);

/* Copies the list: looking at an item may run code that changes it. */
static void put_items(vpy_node *node, PyObject *list, int depth)
{
    PyObject *items = PySequence_Tuple(list);
    Py_ssize_t count = items != NULL ? PyTuple_GET_SIZE(items) : 0, all = count;

    PyErr_Clear();
    if (depth >= DEPTH_MAX)
        count = 0;
    else if (count > LIST_MAX)
        count = LIST_MAX;
    node->cut |= count != all;
    put_byte(node, PyTuple_Check(list) ? VST_VALUE_TUPLE : VST_VALUE_LIST);
    put_count(node, (uint64_t)count);
    for (Py_ssize_t i = 0; i < count; i++)
        node_put_value(node, PyTuple_GET_ITEM(items, i), depth + 1);
    Py_XDECREF(items);
}

static void node_put_value(vpy_node *node, PyObject *object, int depth)
{
    vpy_array a;

    if (object == Py_None) {
        put_byte(node, VST_VALUE_NONE);
    } else if (PyBool_Check(object)) {
        put_byte(node, VST_VALUE_BOOL);
        put_byte(node, object == Py_True);
    } else if (PyLong_Check(object)) {
        node_put_long(node, object);
    } else if (PyFloat_Check(object)) {
        double value = PyFloat_AS_DOUBLE(object);
        put_byte(node, VST_VALUE_DOUBLE);
        node_put(node, &value, sizeof value);
    } else if (PyUnicode_Check(object)) {
        node_put_string(node, object);
    } else if (PyList_Check(object) || PyTuple_Check(object)) {
        put_items(node, object, depth);
    } else if (vpy_array_read(object, &a)) {
        put_array(node, object, &a);
    } else {
        put_other(node, object);
    }
}

/* ---- nodes --------------------------------------------------------------- */

void vpy_node_prepare(vpy_node *node, PyObject *text, PyObject *values)
{
    Py_ssize_t count = values != NULL ? PyTuple_GET_SIZE(values) : 0;

    node->observer = vpy_graph_observer_now();
    node->record = __atomic_add_fetch(&state->last_record, 1, __ATOMIC_RELAXED);
    node->cut = false;
    node->bytes = node->own;
    node->count = 0;
    node->capacity = sizeof node->own;
    put_byte(node, VST_VALUE_THREAD);
    put_count(node, thread_number());
    if (text != NULL && text != Py_None)
        node_put_string(node, text);
    for (Py_ssize_t i = 0; i < count; i++)
        node_put_value(node, PyTuple_GET_ITEM(values, i), 0);
}

void vpy_node_record(vpy_node *node)
{
    uint64_t words[VST_ESCAPE_WORDS_MAX];
    const size_t most = (VST_ESCAPE_WORDS_MAX - 1) * sizeof words[0];
    size_t at = 0;

    do {
        size_t part = node->count - at < most ? node->count - at : most;
        size_t filled = (part + 7) / 8;
        bool more = at + part < node->count;
        unsigned flags =
            (more ? VST_NODE_MORE : 0u) | (node->cut ? VST_NODE_CUT : 0u);
        words[0] = vst_node_word(node->record, flags, node->observer);
        words[filled] =
            0; /* zeros behind the last byte read as VST_VALUE_END */
        memcpy(words + 1, node->bytes + at, part);
        vst_record_node(words, (uint32_t)filled + 1);
        at += part;
    } while (at < node->count);
    if (node->bytes != node->own)
        free(node->bytes);
}

/* ---- switching ----------------------------------------------------------- */

static PyObject *set_graph(PyObject *module, PyObject *args)
{
    unsigned observer;
    unsigned long long address = 0;

    (void)module;
    if (!PyArg_ParseTuple(args, "I|K:set_graph", &observer, &address))
        return NULL;
    __atomic_store_n(&state->observer, observer, __ATOMIC_RELAXED);
    if (address)
        state->framework_thread = (uint64_t (*)(void))(uintptr_t)address;
    Py_RETURN_NONE;
}

PyMethodDef vpy_nodes_functions[] = {
    {"set_graph", set_graph, METH_VARARGS,
     PyDoc_STR(
         "set_graph(observer, thread_function=0)\n--\n\nSet the observer in "
         "whose execution trace annotations are nodes; 0: none.")},
    {NULL, NULL, 0, NULL},
};
