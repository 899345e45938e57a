/* Reads names and lines of code objects directly from memory: names as UTF-8,
 * and the line of an instruction. The interpreter's own functions make objects
 * or need the GIL, which an allocator's hook must not.
 *
 * Any thread enters this, for a code object that one of its frames runs. */
#include "memory/memory.h"

#include <sys/mman.h>

/* ---- lines --------------------------------------------------------------- */

/* Reads a number of six bits a byte, lowest bits first; bit 6 says that another
 * byte follows. The number's lowest bit is its sign. */
static int read_signed(const uint8_t *p, const uint8_t *end)
{
    uint32_t value = 0;

    for (unsigned shift = 0; p < end && shift < 32; p++, shift += 6) {
        value |= (uint32_t)(*p & 63u) << shift;
        if (!(*p & 64u))
            break;
    }
    return value & 1u ? -(int)(value >> 1) : (int)(value >> 1);
}

/* Returns the difference between an entry's line and the previous entry's. */
static int line_delta(const uint8_t *entry, const uint8_t *end)
{
    unsigned form = *entry >> 3 & 15u;

    if (form == 13 || form == 14)
        return read_signed(entry + 1, end);
    return form >= 10 && form <= 12 ? (int)form - 10 : 0;
}

int vpy_code_line(const PyCodeObject *code, int instruction)
{
    const uint8_t *p = (const uint8_t *)PyBytes_AS_STRING(code->co_linetable);
    const uint8_t *end = p + PyBytes_GET_SIZE(code->co_linetable);
    int line = code->co_firstlineno, next = 0;

    if (instruction < 0)
        return line;
    while (p < end) {
        unsigned form = *p >> 3 & 15u;
        line += line_delta(p, end);
        next += (int)(*p & 7u) + 1;
        if (next > instruction)
            return form == 15 ? -1 : line;
        do /* entries begin with a byte whose highest bit is set */
            p++;
        while (p < end && !(*p & 128u));
    }
    return -1;
}

/* ---- text ---------------------------------------------------------------- */

static bool is_surrogate(uint32_t c)
{
    return c >= 0xd800 && c <= 0xdfff;
}

/* Returns whether a surrogate stands for a byte that could not be decoded. */
static bool is_escaped_byte(uint32_t c)
{
    return c >= 0xdc80 && c <= 0xdcff;
}

static char *put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    }
    return out;
}

/* Encodes a str as UTF-8. If one surrogate does not stand for a byte, all
 * surrogates become question marks, as in vpy_text. */
static bool code_text_encode(PyObject *str, vpy_plain_text *text)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(str);
    int kind = (int)PyUnicode_KIND(str);
    const void *data = PyUnicode_DATA(str);
    bool escapes = true;
    char *out;

    text->mapped_size = (size_t)length * 4 + 1;
    text->mapped = mmap(NULL, text->mapped_size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text->mapped == MAP_FAILED) {
        text->mapped = NULL;
        return false;
    }
    for (Py_ssize_t i = 0; i < length; i++) {
        uint32_t c = PyUnicode_READ(kind, data, i);
        escapes = escapes && (!is_surrogate(c) || is_escaped_byte(c));
    }
    out = text->mapped;
    for (Py_ssize_t i = 0; i < length; i++) {
        uint32_t c = PyUnicode_READ(kind, data, i);
        if (is_surrogate(c))
            *out++ = escapes ? (char)(c & 0xff) : '?';
        else
            out = put_utf8(out, c);
    }
    text->bytes = text->mapped;
    text->length = (uint32_t)(out - text->bytes);
    return true;
}

bool vpy_plain_text_get(PyObject *str, vpy_plain_text *text)
{
    *text = (vpy_plain_text){.bytes = ""};
    if (str == NULL || !PyUnicode_Check(str) || !vpy_text_is_ready(str) ||
        PyUnicode_GET_LENGTH(str) > INT32_MAX / 4)
        return false;
    if (!PyUnicode_IS_COMPACT_ASCII(str))
        return code_text_encode(str, text);
    text->bytes = PyUnicode_DATA(str);
    text->length = (uint32_t)PyUnicode_GET_LENGTH(str);
    return true;
}

void vpy_plain_text_drop(vpy_plain_text *text)
{
    if (text->mapped != NULL)
        munmap(text->mapped, text->mapped_size);
}

/* ---- for tests ----------------------------------------------------------- */

static PyObject *code_lines(PyObject *module, PyObject *object)
{
    PyCodeObject *code = (PyCodeObject *)object;
    Py_ssize_t count;
    PyObject *list, *bytes;

    (void)module;
    if (!PyCode_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "not a code object");
        return NULL;
    }
    bytes = PyObject_GetAttrString(object, "co_code");
    if (bytes == NULL)
        return NULL;
    count = PyBytes_GET_SIZE(bytes) / 2;
    Py_DECREF(bytes);
    list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *line = PyLong_FromLong(vpy_code_line(code, (int)i));
        if (line == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, line);
    }
    return list;
}

static PyObject *plain_text(PyObject *module, PyObject *str)
{
    vpy_plain_text text;
    PyObject *bytes = NULL;

    (void)module;
    if (vpy_plain_text_get(str, &text))
        bytes = PyBytes_FromStringAndSize(text.bytes, text.length);
    else
        PyErr_SetString(PyExc_ValueError, "the text cannot be read");
    vpy_plain_text_drop(&text);
    return bytes;
}

PyMethodDef vpy_memory_names_functions[] = {
    {"_code_lines", code_lines, METH_O,
     PyDoc_STR("_code_lines(code)\n--\n\nThe line of each instruction, as the "
               "memory tracer finds it.")},
    {"_plain_text", plain_text, METH_O,
     PyDoc_STR("_plain_text(text)\n--\n\nThe text's bytes, as the memory "
               "tracer reads them.")},
    {NULL, NULL, 0, NULL},
};
