/* Names frames: Python frames for the core, and the source of generated code.
 * Returns the core's answer as lists of dicts. */
#include "traceback/traceback.h"

#include "traceback/language.h"

#include <stdlib.h>
#include <string.h>

static struct vpy_frame_names_state *const state = &vpy_tracebacks.names;

/* ---- one frame ----------------------------------------------------------- */

typedef struct text {
    const char *bytes;
    size_t length;
    PyObject *holder; /* owns the bytes; NULL: the str does */
} text;

static text open_text(PyObject *str)
{
    text of = {"", 0, NULL};
    Py_ssize_t length = 0;
    uint32_t short_length = 0;
    const char *bytes =
        PyUnicode_Check(str) ? PyUnicode_AsUTF8AndSize(str, &length) : NULL;

    if (bytes != NULL) {
        of.bytes = bytes;
        of.length = (size_t)length;
        return of;
    }
    PyErr_Clear();
    of.holder = vpy_text(str, &of.bytes, &short_length);
    of.length = short_length;
    return of;
}

/* Adds a frame with a name and a file; `named` has the rest. */
static vst_status add_named(PyObject *name, PyObject *file,
                            vst_named_frame named, const vst_named_sink *sink)
{
    text name_text = open_text(name), file_text = open_text(file);
    vst_status status;

    named.name = name_text.bytes;
    named.name_len = name_text.length;
    named.file = file_text.bytes;
    named.file_len = file_text.length;
    status = sink->add(sink->ctx, &named);
    Py_XDECREF(name_text.holder);
    Py_XDECREF(file_text.holder);
    return status;
}

static uint32_t frame_names_one_based(int number)
{
    return number < 0 ? 0 : (uint32_t)number + 1;
}

vst_status vpy_traceback_append(void *object, uint32_t instruction,
                                unsigned flags, const vst_named_sink *sink)
{
    PyCodeObject *code = object;
    vpy_location at;

    (void)flags; /* columns are always included */
    if (instruction & VPY_FRAME_HIDDEN)
        return VST_OK;
    at =
        vpy_code_location(code, (int)(instruction & VPY_FRAME_INSTRUCTION) - 1);
    return add_named(
        code->co_name, code->co_filename,
        (vst_named_frame){
            .line = at.line < 0 ? 0 : (uint32_t)at.line,
            .end_line = at.end_line < 0 ? 0 : (uint32_t)at.end_line,
            .column = frame_names_one_based(at.column),
            .end_column = frame_names_one_based(at.end_column),
        },
        sink);
}

/* ---- generated code ------------------------------------------------------ */

static vst_status add_extra_frame(PyObject *frame, const vst_named_sink *sink)
{
    PyObject *name = PyObject_GetItem(frame, state->key_name);
    PyObject *file =
        name != NULL ? PyObject_GetItem(frame, state->key_filename) : NULL;
    PyObject *line =
        file != NULL ? PyObject_GetItem(frame, state->key_line) : NULL;
    long number = line != NULL && line != Py_None ? PyLong_AsLong(line) : 0;
    vst_status status = VST_OK;

    if (line != NULL && PyErr_Occurred() == NULL)
        status = add_named(
            name, file,
            (vst_named_frame){.line = number > 0 && number <= INT32_MAX
                                          ? (uint32_t)number
                                          : 0},
            sink);
    Py_XDECREF(line);
    Py_XDECREF(file);
    Py_XDECREF(name);
    return status;
}

/* Adds the frames that the callable returns. If it fails, the frame stays as it
 * is. */
static vst_status frame_names_add_from(PyObject *callable, PyObject *file,
                                       uint32_t line,
                                       const vst_named_sink *sink)
{
    PyObject *answer =
        PyObject_CallFunction(callable, "OI", file, (unsigned int)line);
    PyObject *frames = answer != NULL && answer != Py_None
                           ? PySequence_Fast(answer, "")
                           : NULL;
    vst_status status = VST_OK;

    if (frames != NULL) {
        /* The callable may change this list. */
        for (Py_ssize_t i = 0;
             i < PySequence_Fast_GET_SIZE(frames) && status == VST_OK; i++) {
            PyObject *frame = PySequence_Fast_GET_ITEM(frames, i);
            Py_INCREF(frame);
            status = add_extra_frame(frame, sink);
            Py_DECREF(frame);
            PyErr_Clear();
        }
    }
    PyErr_Clear();
    Py_XDECREF(frames);
    Py_XDECREF(answer);
    return status;
}

/* Returns torch's own function if its module is imported: a new reference, or
 * NULL. */
static PyObject *find_torch(void)
{
    PyObject *module = vpy_loaded_module("torch._inductor.codecache");
    PyObject *cache, *function;

    if (module == NULL)
        return NULL;
    cache = PyObject_GetAttrString(module, "PyCodeCache");
    function = cache != NULL
                   ? PyObject_GetAttrString(cache, "stack_frames_for_code")
                   : NULL;
    PyErr_Clear();
    Py_XDECREF(cache);
    Py_DECREF(module);
    return function;
}

static vst_status add_extra_frames(void *ctx, const char *file, size_t file_len,
                                   uint32_t line, const vst_named_sink *sink)
{
    PyObject *torch = find_torch();
    PyObject *name = NULL;
    vst_status status = VST_OK;

    (void)ctx;
    if (torch != NULL || PyList_GET_SIZE(state->extra_frames))
        name =
            PyUnicode_DecodeUTF8(file, (Py_ssize_t)file_len, "surrogateescape");
    if (name != NULL) {
        for (Py_ssize_t i = 0;
             i < PyList_GET_SIZE(state->extra_frames) && status == VST_OK;
             i++) {
            PyObject *callable = PyList_GET_ITEM(state->extra_frames, i);
            Py_INCREF(callable);
            status = frame_names_add_from(callable, name, line, sink);
            Py_DECREF(callable);
        }
        if (torch != NULL && status == VST_OK)
            status = frame_names_add_from(torch, name, line, sink);
        Py_DECREF(name);
    }
    PyErr_Clear();
    Py_XDECREF(torch);
    return status;
}

static PyObject *register_extra_frames(PyObject *module, PyObject *callable)
{
    (void)module;
    if (!PyCallable_Check(callable))
        return PyErr_Format(PyExc_TypeError,
                            "register_extra_frames: a function is needed, not "
                            "%.100s",
                            Py_TYPE(callable)->tp_name);
    if (PyList_Append(state->extra_frames, callable) < 0)
        return NULL;
    Py_INCREF(callable);
    return callable;
}

static PyObject *unregister_extra_frames(PyObject *module, PyObject *callable)
{
    Py_ssize_t at = PySequence_Index(state->extra_frames, callable);

    (void)module;
    if (at < 0 || PySequence_DelItem(state->extra_frames, at) < 0) {
        if (PyErr_ExceptionMatches(PyExc_ValueError))
            PyErr_SetString(
                PyExc_ValueError,
                "unregister_extra_frames: the function is not registered");
        return NULL;
    }
    Py_RETURN_NONE;
}

/* ---- the answer ---------------------------------------------------------- */

/* Sets a key and takes over the reference to the value. A value of NULL is an
 * error. */
static bool frame_names_put(PyObject *dict, PyObject *key, PyObject *value)
{
    bool done = value != NULL && PyDict_SetItem(dict, key, value) == 0;

    Py_XDECREF(value);
    return done;
}

static PyObject *frame_names_make_text(const char *bytes, size_t length)
{
    PyObject *made =
        PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)length, "surrogateescape");

    if (made != NULL)
        PyUnicode_InternInPlace(&made); /* few names for many frames */
    return made;
}

static PyObject *none_or(bool known, uint32_t number)
{
    if (known)
        return PyLong_FromUnsignedLong(number);
    Py_RETURN_NONE;
}

static PyObject *make_frame(const vst_named_frame *frame, bool positions)
{
    PyObject *dict = PyDict_New();
    bool done =
        dict != NULL &&
        frame_names_put(dict, state->key_name,
                        frame_names_make_text(frame->name, frame->name_len)) &&
        frame_names_put(dict, state->key_filename,
                        frame_names_make_text(frame->file, frame->file_len)) &&
        frame_names_put(dict, state->key_line,
                        PyLong_FromUnsignedLong(frame->line));

    if (done && positions)
        done =
            frame_names_put(dict, state->key_end_line,
                            none_or(frame->end_line, frame->end_line)) &&
            frame_names_put(dict, state->key_column,
                            none_or(frame->column, frame->column - 1)) &&
            frame_names_put(dict, state->key_end_column,
                            none_or(frame->end_column, frame->end_column - 1));
    if (!done)
        Py_CLEAR(dict);
    return dict;
}

/* The objects that were made so far: dicts by frame, lists by place. */
typedef struct made {
    PyObject **frames, **lists;
    size_t frame_count, list_count;
    bool positions;
} made;

static PyObject *make_list(const vst_symbols *symbols, size_t i, made *have)
{
    size_t count, place;
    const uint32_t *indexes = vst_symbols_of(symbols, i, &count, &place);
    PyObject *list = have->lists[place];

    if (list != NULL) {
        Py_INCREF(list);
        return list;
    }
    list = PyList_New((Py_ssize_t)count);
    for (size_t k = 0; list != NULL && k < count; k++) {
        PyObject **frame = &have->frames[indexes[k]];
        if (*frame == NULL)
            *frame = make_frame(vst_symbols_frame(symbols, indexes[k]),
                                have->positions);
        if (*frame == NULL) {
            Py_CLEAR(list);
            break;
        }
        Py_INCREF(*frame);
        PyList_SET_ITEM(list, (Py_ssize_t)k, *frame);
    }
    Py_XINCREF(list);
    have->lists[place] = list;
    return list;
}

static void free_made(made *have)
{
    for (size_t i = 0; have->frames != NULL && i < have->frame_count; i++)
        Py_XDECREF(have->frames[i]);
    for (size_t i = 0; have->lists != NULL && i < have->list_count; i++)
        Py_XDECREF(have->lists[i]);
    free(have->frames);
    free(have->lists);
}

static PyObject *make_lists(const vst_symbols *symbols, size_t count,
                            bool positions)
{
    made have = {
        .frame_count = vst_symbols_frame_count(symbols),
        .list_count = count,
        .positions = positions,
    };
    /* Thousands of new lists would start garbage collections. */
    int were_on = vpy_collections_put_off();
    PyObject *result = PyList_New((Py_ssize_t)count);

    have.frames = calloc(have.frame_count + 1, sizeof *have.frames);
    have.lists = calloc(count + 1, sizeof *have.lists);
    if (result != NULL && (have.frames == NULL || have.lists == NULL)) {
        Py_CLEAR(result);
        PyErr_NoMemory();
    }
    for (size_t i = 0; result != NULL && i < count; i++) {
        PyObject *list = make_list(symbols, i, &have);
        if (list != NULL)
            PyList_SET_ITEM(result, (Py_ssize_t)i, list);
        else
            Py_CLEAR(result);
    }
    free_made(&have);
    vpy_collections_go_on(were_on);
    return result;
}

static bool read_handles(PyObject *items, vst_traceback **handles)
{
    Py_ssize_t count = PyTuple_GET_SIZE(items);

    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(items, i);
        if (Py_TYPE(item) != &vpy_traceback_type) {
            PyErr_Format(PyExc_TypeError,
                         "symbolize_tracebacks: the list must contain results "
                         "of gather_traceback; item %zd is %.100s",
                         i, Py_TYPE(item)->tp_name);
            return false;
        }
        handles[i] = ((vpy_traceback *)item)->handle;
    }
    return true;
}

static bool has_native(vst_traceback *const *handles, size_t count)
{
    size_t native = 0;

    for (size_t i = 0; i < count && native == 0; i++)
        if (handles[i] != NULL)
            vst_traceback_native(handles[i], &native);
    return native != 0;
}

/* Releases the GIL if there are native frames: naming them takes long and needs
 * the loader's lock, whose holder may wait for the GIL. For Python frames the
 * core takes the GIL again through the unwinder. */
static vst_status find_names(vst_traceback *const *handles, size_t count,
                             bool positions, vst_symbols **symbols,
                             vst_error *error)
{
    unsigned flags = positions ? VST_SYMBOLS_POSITIONS : 0u;
    PyThreadState *own = has_native(handles, count) && vpy_frames_may_return()
                             ? PyEval_SaveThread()
                             : NULL;
    vst_status status =
        vst_traceback_symbolize(handles, count, flags, symbols, error);

    if (own != NULL)
        PyEval_RestoreThread(own);
    return status;
}

static PyObject *frame_names_symbolize(PyObject *module, PyObject *args,
                                       PyObject *kw)
{
    static char *names[] = {"tracebacks", "positions", NULL};
    PyObject *given, *items, *result = NULL;
    vst_traceback **handles;
    vst_symbols *symbols = NULL;
    vst_error error = {0};
    vst_status status;
    int positions = 0;
    size_t count;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O|p:symbolize_tracebacks",
                                     names, &given, &positions))
        return NULL;
    items = PySequence_Tuple(
        given); /* a tuple, since the program may change a list */
    if (items == NULL)
        return NULL;
    count = (size_t)PyTuple_GET_SIZE(items);
    handles = calloc(count + 1, sizeof *handles);
    if (handles == NULL) {
        PyErr_NoMemory();
    } else if (read_handles(items, handles)) {
        status = find_names(handles, count, positions, &symbols, &error);
        result = status == VST_OK ? make_lists(symbols, count, positions)
                                  : vpy_raise(status, &error, NULL);
        vst_symbols_free(symbols);
    }
    free(handles);
    Py_DECREF(items);
    return result;
}

static PyMethodDef functions[] = {
    {"symbolize_tracebacks", (PyCFunction)(void (*)(void))frame_names_symbolize,
     METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("symbolize_tracebacks(tracebacks, positions=False)\n--\n\n"
               "The frames of each traceback as dicts, innermost first.")},
    {"register_extra_frames", register_extra_frames, METH_O,
     PyDoc_STR("register_extra_frames(function)\n--\n\nfunction(filename, "
               "line) returns the source frames of generated code.")},
    {"unregister_extra_frames", unregister_extra_frames, METH_O,
     PyDoc_STR(
         "unregister_extra_frames(function)\n--\n\nStop calling function.")},
    {NULL, NULL, 0, NULL},
};

int vpy_traceback_names_init(PyObject *module)
{
    struct {
        PyObject **key;
        const char *text;
    } keys[] = {
        {&state->key_name, "name"},     {&state->key_filename, "filename"},
        {&state->key_line, "line"},     {&state->key_end_line, "end_line"},
        {&state->key_column, "column"}, {&state->key_end_column, "end_column"}};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        *keys[i].key = PyUnicode_InternFromString(keys[i].text);
        if (*keys[i].key == NULL)
            return -1;
    }
    state->extra_frames = PyList_New(0);
    if (state->extra_frames == NULL)
        return -1;
    vst__traceback_set_extra_frames(add_extra_frames, NULL);
    return PyModule_AddFunctions(module, functions);
}
