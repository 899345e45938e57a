/* vestige._core.Lanes: the lanes of one kind in a picture of a trace
 * (src/view/lanes.h). Any thread may call its methods. */
#include "read/trace.h"

#include <stdlib.h>

#include "read/read.h"
#include "read/rows.h"
#include "read/view.h"
#include "view/lanes.h"

typedef struct lanes {
    PyObject_HEAD
    vst__lanes *handle; /* atomic: set once, see vpy_handle_set */
} lanes;

enum { ITEMS_MAX = 100000 }; /* the most items of a row in one list */

static bool lanes_is_usable(const lanes *self)
{
    bool is_made = vpy_handle_of(&self->handle) != NULL;

    if (!is_made)
        PyErr_SetString(PyExc_ValueError,
                        "this Lanes object was not made: Lanes() failed");
    return is_made;
}

/* Both of the following read lanes; on failure, they return NULL with an
 * exception set. */
static vst__lanes *lanes_of_trace(vpy_trace *trace, const char *kind,
                                  const vst__lanes_options *options,
                                  PyObject *progress)
{
    vst_error error = {VST_OK, 0, 0};
    vst__lanes *made = NULL;
    vst_status status;

    if (!vpy_trace_borrow(trace, progress))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = vst__lanes_create(trace->handle, kind, options, &made, &error);
    Py_END_ALLOW_THREADS;
    vpy_trace_end(trace);
    if (status != VST_OK)
        vpy_raise(status, &error, trace->path);
    return made;
}

static vst__lanes *lanes_of_view(vpy_view *view, const char *kind,
                                 vst__lanes_options *options,
                                 PyObject *progress)
{
    vst_error error = {VST_OK, 0, 0};
    vst__lanes *made = NULL;
    PyThreadState *saved;
    vst_status status;

    if (!vpy_view_is_usable(view))
        return NULL;
    options->view = view->handle;
    if (progress != NULL && progress != Py_None) {
        options->progress = vpy_report_progress;
        options->progress_ctx = progress;
    }
    saved = vpy_view_begin(view);
    status = vst__lanes_create(NULL, kind, options, &made, &error);
    vpy_view_end(view, saved);
    if (status != VST_OK)
        vpy_raise(status, &error, view->path);
    return made;
}

static int lanes_init(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"source",   "kind",         "wrappers",
                            "progress", "fold_imports", NULL};
    lanes *self = (lanes *)object;
    PyObject *source, *progress = NULL, *list = NULL;
    vst_view_ids wrappers = {NULL, 0};
    vst__lanes_options options = {.window = VST_WINDOW_ALL,
                                  .wrappers = &wrappers};
    vst_id *ids = NULL;
    int folds = 0;
    const char *kind;
    vst__lanes *made = NULL;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "Os|$OOp:Lanes", names, &source,
                                     &kind, &list, &progress, &folds) ||
        (list != NULL && (ids = vpy_to_numbers(list, &wrappers.count)) == NULL))
        return -1;
    wrappers.ids = ids;
    options.fold_imports = folds;
    if (PyObject_TypeCheck(source, vpy_reading.trace.type))
        made = lanes_of_trace((vpy_trace *)source, kind, &options, progress);
    else if (PyObject_TypeCheck(source, vpy_reading.view.type))
        made = lanes_of_view((vpy_view *)source, kind, &options, progress);
    else
        PyErr_SetString(PyExc_TypeError,
                        "lanes are read from a Trace or a View");
    free(ids);
    if (made != NULL && vpy_handle_set(&self->handle, made))
        return 0;
    vst__lanes_destroy(made);
    return -1;
}

static void lanes_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    vst__lanes_destroy(((lanes *)object)->handle);
    type->tp_free(object);
    Py_DECREF(type);
}

/* ---- lanes and facts ----------------------------------------------------- */

/* Sets a dict's item to a value of a curve. Returns false with an exception set
 * on failure. */
static bool put_value(PyObject *dict, const char *name, double value)
{
    PyObject *number = PyFloat_FromDouble(value);
    bool is_put =
        number != NULL && PyDict_SetItemString(dict, name, number) == 0;

    Py_XDECREF(number);
    return is_put;
}

static PyObject *lane_to_dict(unsigned number, const vst__lane *l)
{
    PyObject *dict = Py_BuildValue(
        "{s:I,s:I,s:I,s:i,s:I,s:I,s:I,s:I,s:K,s:K,s:L,s:L,s:L,s:L,s:K,s:N,s:z,"
        "s:z}",
        "lane", number, "thread", l->thread, "device", l->device, "stream",
        (int)l->stream, "id", l->id, "first", l->first, "members", l->members,
        "rows", l->rows, "items", (unsigned long long)l->items, "steps",
        (unsigned long long)l->steps, "start_ns", (long long)l->start_ns,
        "end_ns", (long long)l->end_ns, "busy_ns", (long long)l->busy_ns,
        "awaiting_ns", (long long)l->awaiting_ns, "bytes",
        (unsigned long long)l->bytes, "name",
        vpy_trace_text(l->name != NULL ? l->name : "", l->name_len), "what",
        l->what, "end", l->end);

    if (dict != NULL && l->has_values &&
        (!put_value(dict, "least", l->least) ||
         !put_value(dict, "most", l->most)))
        Py_CLEAR(dict);
    return dict;
}

PyDoc_STRVAR(lanes_doc,
             "lanes(first=0, count=None)\n--\n\nA dict for each of "
             "`count` lanes, starting with the lane number `first`.");

static PyObject *lanes_lanes(PyObject *object, PyObject *args)
{
    const lanes *self = (lanes *)object;
    unsigned first = 0, count = UINT32_MAX;
    PyObject *list;
    vst__lane l;

    if (!PyArg_ParseTuple(args, "|II:lanes", &first, &count) ||
        !lanes_is_usable(self) || (list = PyList_New(0)) == NULL)
        return NULL;
    for (uint64_t at = first; at < (uint64_t)first + count; at++) {
        if (at > UINT32_MAX || !vst__lanes_get(self->handle, (uint32_t)at, &l))
            break;
        if (!vpy_append(list, lane_to_dict((unsigned)at, &l))) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

PyDoc_STRVAR(left_out_doc, "left_out()\n--\n\nHow many items, and texts of "
                           "items, were not kept.");

static PyObject *lanes_left_out(PyObject *object, PyObject *unused)
{
    const lanes *self = (lanes *)object;
    uint64_t items, texts;

    (void)unused;
    if (!lanes_is_usable(self))
        return NULL;
    items = vst__lanes_left_out(self->handle, &texts);
    return Py_BuildValue("(KK)", (unsigned long long)items,
                         (unsigned long long)texts);
}

PyDoc_STRVAR(
    facts_doc,
    "facts()\n--\n\n[(name, unit)] of the facts of each item, in the "
    "order of pack(). The unit says what a value is: a \"number\", 1 + the "
    "number of an \"item\" or of its \"origin\" (0: none), or the number of "
    "a \"text\".");

static PyObject *lanes_facts(PyObject *object, PyObject *unused)
{
    static const char *const units[] = {"number", "item", "origin", "text"};
    const lanes *self = (lanes *)object;
    const vst__lane_fact *facts;
    PyObject *list;
    size_t count;

    (void)unused;
    if (!lanes_is_usable(self) || (list = PyList_New(0)) == NULL)
        return NULL;
    facts = vst__lanes_facts(self->handle, &count);
    for (size_t i = 0; i < count; i++)
        if (!vpy_append(list, Py_BuildValue("(ss)", facts[i].name,
                                            units[facts[i].unit]))) {
            Py_DECREF(list);
            return NULL;
        }
    return list;
}

PyDoc_STRVAR(text_doc,
             "text(number)\n--\n\nThe text with this number, or None.");

static PyObject *lanes_text_of(const lanes *self, uint64_t number)
{
    size_t length;
    const char *text = vst__lanes_text(self->handle, number, &length);

    return text != NULL ? vpy_trace_text(text, length) : Py_NewRef(Py_None);
}

static PyObject *lanes_text(PyObject *object, PyObject *number)
{
    const lanes *self = (lanes *)object;
    unsigned long value = PyLong_AsUnsignedLong(number);

    return PyErr_Occurred() == NULL && lanes_is_usable(self)
               ? lanes_text_of(self, value)
               : NULL;
}

/* ---- items --------------------------------------------------------------- */

static bool add_facts(const lanes *self, uint32_t number, PyObject *dict)
{
    uint64_t values[VST_LANE_FACTS_MAX];
    size_t count;
    const vst__lane_fact *facts = vst__lanes_facts(self->handle, &count);
    bool is_added = true;

    vst__lanes_facts_of(self->handle, number, values);
    for (size_t i = 0; is_added && i < count; i++) {
        PyObject *value = facts[i].unit == VST_LANE_TEXT
                              ? lanes_text_of(self, values[i])
                              : PyLong_FromUnsignedLongLong(values[i]);
        is_added = value != NULL &&
                   PyDict_SetItemString(dict, facts[i].name, value) == 0;
        Py_XDECREF(value);
    }
    return is_added;
}

static PyObject *lanes_to_dict(const lanes *self, const vst__lane_item *item)
{
    vst_view_value value;
    PyObject *dict = Py_BuildValue(
        "{s:I,s:I,s:I,s:L,s:L,s:I}", "number", item->number, "lane", item->lane,
        "row", item->row, "start_ns", (long long)item->start_ns, "end_ns",
        (long long)item->end_ns, "id", item->id);

    if (dict != NULL && !add_facts(self, item->number, dict))
        Py_CLEAR(dict);
    if (dict != NULL &&
        vst__lanes_value_of(self->handle, item->number, &value) &&
        !put_value(dict, "value", value.last))
        Py_CLEAR(dict);
    return dict;
}

PyDoc_STRVAR(at_doc, "at(lane, row, time_ns)\n--\n\nThe item that a row shows "
                     "at a time, or None.");

static PyObject *lanes_at(PyObject *object, PyObject *args)
{
    const lanes *self = (lanes *)object;
    vst__lane_item found;
    long long time_ns;
    unsigned lane, row;

    if (!PyArg_ParseTuple(args, "IIL:at", &lane, &row, &time_ns) ||
        !lanes_is_usable(self))
        return NULL;
    if (!vst__lanes_at(self->handle, lane, row, time_ns, &found))
        Py_RETURN_NONE;
    return lanes_to_dict(self, &found);
}

PyDoc_STRVAR(item_doc, "item(number)\n--\n\nAn item by its number, or None.");

static PyObject *lanes_item(PyObject *object, PyObject *number)
{
    const lanes *self = (lanes *)object;
    unsigned long value = PyLong_AsUnsignedLong(number);
    vst__lane_item found;

    if (PyErr_Occurred() != NULL || !lanes_is_usable(self))
        return NULL;
    if (value > UINT32_MAX ||
        !vst__lanes_item(self->handle, (uint32_t)value, &found))
        Py_RETURN_NONE;
    return lanes_to_dict(self, &found);
}

PyDoc_STRVAR(
    linked_doc,
    "linked(number, most)\n--\n\nThe items that an item has caused, at "
    "most `most`, and how many there are.");

static PyObject *lanes_linked(PyObject *object, PyObject *args)
{
    const lanes *self = (lanes *)object;
    unsigned number, most;
    uint32_t *numbers;
    vst__lane_item item;
    PyObject *list;
    size_t found;

    if (!PyArg_ParseTuple(args, "II:linked", &number, &most) ||
        !lanes_is_usable(self))
        return NULL;
    most = most < ITEMS_MAX ? most : ITEMS_MAX;
    numbers = malloc(((size_t)most + 1) * sizeof *numbers);
    if (numbers == NULL)
        return PyErr_NoMemory();
    found = vst__lanes_linked(self->handle, number, numbers, most);
    list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < found && i < most; i++)
        if (vst__lanes_item(self->handle, numbers[i], &item) &&
            !vpy_append(list, lanes_to_dict(self, &item)))
            Py_CLEAR(list);
    free(numbers);
    return list != NULL ? Py_BuildValue("(Nn)", list, (Py_ssize_t)found) : NULL;
}

PyDoc_STRVAR(between_doc,
             "between(lane, row, from_ns, to_ns, most)\n--\n\nThe items of a "
             "row that begin in a range: how many there are, and the first of "
             "them.");

static PyObject *lanes_between(PyObject *object, PyObject *args)
{
    const lanes *self = (lanes *)object;
    vst__lane_item *items;
    long long from_ns, to_ns;
    unsigned lane, row, most;
    PyObject *list;
    size_t count;

    if (!PyArg_ParseTuple(args, "IILLI:between", &lane, &row, &from_ns, &to_ns,
                          &most) ||
        !lanes_is_usable(self))
        return NULL;
    most = most < ITEMS_MAX ? most : ITEMS_MAX;
    items = calloc((size_t)most + 1, sizeof *items);
    if (items == NULL)
        return PyErr_NoMemory();
    count = vst__lanes_between(self->handle, lane, row, from_ns, to_ns, items,
                               most);
    list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count && i < most; i++)
        if (!vpy_append(list, lanes_to_dict(self, &items[i])))
            Py_CLEAR(list);
    free(items);
    return list != NULL ? Py_BuildValue("(nN)", (Py_ssize_t)count, list) : NULL;
}

/* ---- ranges -------------------------------------------------------------- */

static PyObject *lanes_refuse(vst_status status)
{
    if (status == VST_E_NOMEM)
        return PyErr_NoMemory();
    PyErr_SetString(
        PyExc_ValueError,
        "the picture's range, pixels, lanes or parts are not valid");
    return NULL;
}

/* Returns whether these are times that a trace can have and whose difference
 * fits in 64 bits. */
static bool lanes_is_range(long long from_ns, long long to_ns, unsigned pixels)
{
    const long long most = 1ll << 62;

    if (from_ns < to_ns && from_ns > -most && to_ns < most && pixels != 0 &&
        pixels <= VST_VIEW_PIXELS_MAX)
        return true;
    lanes_refuse(VST_E_ARGUMENT);
    return false;
}

PyDoc_STRVAR(busy_doc, "busy(lane, from_ns, to_ns)\n--\n\nHow much of a "
                       "range the items of each row of a lane cover.");

static PyObject *lanes_busy(PyObject *object, PyObject *args)
{
    const lanes *self = (lanes *)object;
    long long from_ns, to_ns;
    vst__lane lane;
    unsigned number;
    PyObject *list;

    if (!PyArg_ParseTuple(args, "ILL:busy", &number, &from_ns, &to_ns) ||
        !lanes_is_usable(self) ||
        (from_ns != to_ns && !lanes_is_range(from_ns, to_ns, 1)) ||
        (list = PyList_New(0)) == NULL)
        return NULL;
    vst__lanes_get(self->handle, number, &lane);
    for (uint32_t i = 0; list != NULL && i < lane.rows; i++)
        if (!vpy_append(list, PyLong_FromLongLong(vst__lanes_busy(
                                  self->handle, number, i, from_ns, to_ns))))
            Py_CLEAR(list);
    return list;
}

/* ---- pictures ------------------------------------------------------------ */

PyDoc_STRVAR(draw_doc,
             "draw(from_ns, to_ns, pixels, lanes)\n--\n\nA picture in "
             "the format of View.window(), where `thread` is the lane.");

static PyObject *lanes_draw(PyObject *object, PyObject *args)
{
    const lanes *self = (lanes *)object;
    PyObject *list, *result;
    long long from_ns, to_ns;
    unsigned pixels;
    size_t count, size = 0;
    uint32_t *numbers;
    void *bytes = NULL;
    vst_status status;

    if (!PyArg_ParseTuple(args, "LLIO:draw", &from_ns, &to_ns, &pixels,
                          &list) ||
        !lanes_is_usable(self) || !lanes_is_range(from_ns, to_ns, pixels) ||
        (numbers = vpy_to_numbers(list, &count)) == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = vst__lanes_draw(self->handle, from_ns, to_ns, pixels, numbers,
                             count, &bytes, &size);
    Py_END_ALLOW_THREADS;
    free(numbers);
    result = status == VST_OK
                 ? PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size)
                 : lanes_refuse(status);
    free(bytes);
    return result;
}

PyDoc_STRVAR(
    pack_doc,
    "pack(lane, row, base_ns, before_ns, width_ns=0)\n--\n\nThe items "
    "of a row that begin up to a time, for a page without a server: the "
    "number of the first, how many there are, and varints "
    "(src/view/lanes.h).");

static PyObject *lanes_pack(PyObject *object, PyObject *args)
{
    const lanes *self = (lanes *)object;
    long long base_ns, before_ns, width_ns = 0;
    unsigned lane, row;
    PyObject *result;
    uint8_t *bytes = NULL;
    size_t size = 0, count = 0;
    uint32_t first = 0;
    vst_status status;

    if (!PyArg_ParseTuple(args, "IILL|L:pack", &lane, &row, &base_ns,
                          &before_ns, &width_ns) ||
        !lanes_is_usable(self))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = vst__lanes_pack(self->handle, lane, row, base_ns, before_ns,
                             width_ns, &bytes, &size, &first, &count);
    Py_END_ALLOW_THREADS;
    if (status != VST_OK)
        return lanes_refuse(status);
    result = Py_BuildValue("(Iny#)", first, (Py_ssize_t)count,
                           bytes != NULL ? (const char *)bytes : "",
                           (Py_ssize_t)size);
    free(bytes);
    return result;
}

/* ---- search -------------------------------------------------------------- */

PyDoc_STRVAR(find_doc,
             "find(ids, from_ns, to_ns, parts)\n--\n\nHow many items with "
             "these ids begin in each part of a range: `<I` each.");

static PyObject *lanes_find(PyObject *object, PyObject *args)
{
    const lanes *self = (lanes *)object;
    PyObject *list, *result;
    long long from_ns, to_ns;
    unsigned parts;
    vst_view_ids ids = {NULL, 0};
    uint32_t *numbers;
    vst_status status = VST_E_NOMEM;

    if (!PyArg_ParseTuple(args, "OLLI:find", &list, &from_ns, &to_ns, &parts) ||
        !lanes_is_usable(self) || !lanes_is_range(from_ns, to_ns, parts) ||
        (numbers = vpy_to_numbers(list, &ids.count)) == NULL)
        return NULL;
    ids.ids = numbers;
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)parts * 4);
    if (result != NULL) {
        uint32_t *counts = (uint32_t *)(void *)PyBytes_AS_STRING(result);

        memset(counts, 0, (size_t)parts * 4);
        Py_BEGIN_ALLOW_THREADS;
        status =
            vst__lanes_find(self->handle, &ids, from_ns, to_ns, parts, counts);
        Py_END_ALLOW_THREADS;
        if (status != VST_OK)
            Py_SETREF(result, lanes_refuse(status));
    }
    free(numbers);
    return result;
}

PyDoc_STRVAR(next_doc,
             "next(ids, time_ns, back)\n--\n\nThe first item with one of these "
             "ids that begins after a time, or the last before it, or None.");

static PyObject *lanes_next(PyObject *object, PyObject *args)
{
    const lanes *self = (lanes *)object;
    PyObject *list;
    long long time_ns;
    int back;
    vst_view_ids ids = {NULL, 0};
    uint32_t *numbers;
    vst__lane_item found;
    vst_status status;

    if (!PyArg_ParseTuple(args, "OLp:next", &list, &time_ns, &back) ||
        !lanes_is_usable(self) ||
        (numbers = vpy_to_numbers(list, &ids.count)) == NULL)
        return NULL;
    ids.ids = numbers;
    Py_BEGIN_ALLOW_THREADS;
    status = vst__lanes_next(self->handle, &ids, time_ns, back != 0, &found);
    Py_END_ALLOW_THREADS;
    free(numbers);
    if (status == VST_E_NOMEM)
        return PyErr_NoMemory();
    if (status != VST_OK)
        Py_RETURN_NONE;
    return lanes_to_dict(self, &found);
}

static PyMethodDef methods[] = {
    {"lanes", lanes_lanes, METH_VARARGS, lanes_doc},
    {"left_out", lanes_left_out, METH_NOARGS, left_out_doc},
    {"facts", lanes_facts, METH_NOARGS, facts_doc},
    {"text", lanes_text, METH_O, text_doc},
    {"at", lanes_at, METH_VARARGS, at_doc},
    {"item", lanes_item, METH_O, item_doc},
    {"linked", lanes_linked, METH_VARARGS, linked_doc},
    {"between", lanes_between, METH_VARARGS, between_doc},
    {"busy", lanes_busy, METH_VARARGS, busy_doc},
    {"draw", lanes_draw, METH_VARARGS, draw_doc},
    {"pack", lanes_pack, METH_VARARGS, pack_doc},
    {"find", lanes_find, METH_VARARGS, find_doc},
    {"next", lanes_next, METH_VARARGS, next_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(class_doc, "Lanes(trace, kind, *, wrappers=(), "
                        "progress=None)\n--\n\nThe lanes of one kind "
                        "in a picture of a trace.");

static const vpy_class described = {
    .name = "vestige._core.Lanes",
    .doc = class_doc,
    .size = sizeof(lanes),
    .init = lanes_init,
    .dealloc = lanes_dealloc,
    .methods = methods,
};

int vpy_lanes_init(PyObject *module)
{
    return vpy_class_add(module, &described);
}
