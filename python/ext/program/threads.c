/* Records the program's threads: the Python calls that each is in when
 * recording begins, and their names. */
#include "program/program.h"

#include "base/inside.h"
#include "base/names.h"
#include "base/own_code.h"
#include "calls/ids.h"
#include "record/language.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct id_list {
    vst_id *ids;
    size_t count, capacity;
} id_list;

static bool threads_append(id_list *list, vst_id id)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 64;
        vst_id *ids = realloc(list->ids, capacity * sizeof *ids);
        if (ids == NULL)
            return false;
        list->ids = ids;
        list->capacity = capacity;
    }
    list->ids[list->count++] = id;
    return true;
}

/* Adds a frame's function, if it is recorded. Returns false if the frames
 * behind this one do not belong to the program. */
static bool collect_frame(PyObject *code, id_list *list)
{
    vst_id id = VPY_ID(vpy_code_value(code));

    if (id != 0)
        threads_append(list, id);
    return id != 0 || !vpy_code_is_launcher(code);
}

#if VPY_KNOWS_INSIDE
/* Makes no frame objects: a forked child would copy pages for each. */
static void collect_inside(PyThreadState *tstate, id_list *list)
{
    const vpy_iframe *frame = vpy_iframe_running(tstate);
    bool goes_on = true;

    for (; frame != NULL && goes_on;
         frame = vpy_iframe_without_shims(vpy_iframe_back(frame)))
        if (!vpy_iframe_is_incomplete(frame, vpy_iframe_instruction(frame)))
            goes_on = collect_frame((PyObject *)vpy_iframe_code(frame), list);
}
#endif

static void collect_public(PyThreadState *tstate, id_list *list)
{
    PyFrameObject *frame = PyThreadState_GetFrame(tstate);

    while (frame != NULL) {
        PyFrameObject *back = PyFrame_GetBack(frame);
        if (!collect_frame(vpy_frame_code(frame), list))
            Py_CLEAR(back);
        Py_DECREF(frame);
        frame = back;
    }
}

/* Lists the recorded calls of a thread, outermost first; under `vestige run`
 * beginning with the program's own first call. */
static void collect_stack(PyThreadState *tstate, id_list *list)
{
    list->count = 0;
#if VPY_KNOWS_INSIDE
    if (vpy_base.inside.works[VPY_PART_TRACEBACKS])
        collect_inside(tstate, list);
    else
#endif
        collect_public(tstate, list);
    for (size_t i = 0, j = list->count; i + 1 < j; i++) {
        vst_id id = list->ids[i];
        list->ids[i] = list->ids[--j];
        list->ids[j] = id;
    }
}

/* ---- reading the module threading ---------------------------------------- */

PyObject *vpy_plain_attribute(PyObject *object, const char *name)
{
    PyObject *key = PyUnicode_InternFromString(name);
    PyObject *value = key != NULL ? PyObject_GenericGetAttr(object, key) : NULL;

    Py_XDECREF(key);
    if (value == NULL)
        PyErr_Clear();
    return value;
}

/* Returns threading._active, {ident: Thread}: a new reference, or NULL if
 * threading is not imported. */
static PyObject *active_threads(void)
{
    PyObject *threading = vpy_loaded(VPY_NAME_THREADING);
    PyObject *active =
        threading != NULL ? vpy_plain_attribute(threading, "_active") : NULL;

    Py_XDECREF(threading);
    if (active != NULL && !PyDict_Check(active))
        Py_CLEAR(active);
    return active;
}

/* Returns the thread's number in the system according to threading, or 0. */
static uint64_t native_id_of(PyObject *thread)
{
    PyObject *native_id = vpy_plain_attribute(thread, "_native_id");
    uint64_t system_tid = 0;

    if (native_id != NULL && PyLong_Check(native_id)) {
        system_tid = PyLong_AsUnsignedLongLong(native_id);
        if (PyErr_Occurred() != NULL) {
            PyErr_Clear();
            system_tid = 0;
        }
    }
    Py_XDECREF(native_id);
    return system_tid;
}

/* Returns the Thread with this handle: a new reference, or NULL if threading
 * does not know it. */
static PyObject *thread_with(uint64_t handle)
{
    PyObject *active = active_threads();
    PyObject *ident =
        active != NULL ? PyLong_FromUnsignedLongLong(handle) : NULL;
    PyObject *thread =
        active != NULL && ident != NULL ? vpy_dict_get(active, ident) : NULL;

    Py_XDECREF(ident);
    Py_XDECREF(active);
    PyErr_Clear();
    return thread;
}

void vpy_threads_announce(vpy_tracer *tracer)
{
    PyThreadState *own = PyThreadState_Get();
    PyThreadState *tstate =
        PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    id_list list = {NULL, 0, 0};
    uint64_t handle;

    for (; tstate != NULL; tstate = PyThreadState_Next(tstate)) {
        if (tstate == own ? vpy_thread_is_ours : !vpy_thread_states_are_known())
            continue;
        collect_stack(tstate, &list);
        /* A thread that was made but has not started yet has no stack, and on
         * some versions it has the handle of the thread that made it. */
        if (tstate != own && !list.count)
            continue;
        handle =
            tstate == own ? PyThread_get_thread_ident() : tstate->thread_id;
        vst_recording_open_stack(tracer->recording, handle,
                                 tstate == own ? (uint64_t)vpy_thread_id()
                                               : tstate->native_thread_id,
                                 list.ids, list.count);
        vst__recording_key_thread(tracer->recording, handle, (uintptr_t)tstate);
    }
    free(list.ids);
    vpy_threads_name_all();
    PyErr_Clear();
}

void vpy_threads_record_stack(void)
{
    id_list list = {NULL, 0, 0};

    collect_stack(PyThreadState_Get(), &list);
    vst__record_stack(list.ids, list.count);
    free(list.ids);
}

/* ---- names --------------------------------------------------------------- */

static void threads_record_name(uint64_t handle, uint64_t system_tid,
                                const char *bytes, uint32_t length)
{
    vpy_state_take();
    if (vpy_calls.tracer.active != NULL)
        vst_recording_name_thread(vpy_calls.tracer.active->recording, handle,
                                  system_tid, bytes, length);
    vpy_state_give();
}

static void name_thread(uint64_t handle, PyObject *thread)
{
    PyObject *name = vpy_plain_attribute(thread, "_name");
    /* After a fork, threading has the parent's number of the current thread. */
    uint64_t system_tid = handle == vst_thread_handle()
                              ? (uint64_t)vpy_thread_id()
                              : native_id_of(thread);
    const char *bytes;
    uint32_t length;
    PyObject *text = vpy_text(name, &bytes, &length);

    if (text != NULL)
        threads_record_name(handle, system_tid, bytes, length);
    Py_XDECREF(text);
    Py_XDECREF(name);
}

/* Returns 0 if the main thread's handle is not known. */
static uint64_t main_thread_handle(void)
{
    PyThreadState *tstate =
        PyInterpreterState_ThreadHead(PyInterpreterState_Get());

    if (vpy_thread_id() == getpid())
        return vst_thread_handle();
    if (!vpy_thread_states_are_known())
        return 0;
    while (tstate != NULL && tstate->native_thread_id != (uint64_t)getpid())
        tstate = PyThreadState_Next(tstate);
    return tstate != NULL ? tstate->thread_id : 0;
}

/* Gives the main thread the name that threading would give it. */
static void name_main_thread(void)
{
    uint64_t handle = main_thread_handle();

    if (handle)
        threads_record_name(handle, 0, "MainThread", 10);
}

/* Returns whether a thread has this handle: gevent adds greenlets to
 * threading's list, by numbers of its own. */
static bool is_thread(uint64_t handle)
{
    PyThreadState *tstate =
        PyInterpreterState_ThreadHead(PyInterpreterState_Get());

    while (tstate != NULL && tstate->thread_id != handle)
        tstate = PyThreadState_Next(tstate);
    return tstate != NULL || !vpy_thread_states_are_known();
}

void vpy_threads_name_all(void)
{
    PyObject *active = active_threads();
    PyObject *copy = active != NULL ? PyDict_Copy(active) : NULL;
    PyObject *ident, *thread;
    Py_ssize_t position = 0;
    bool has_others = false;

    Py_XDECREF(active);
    if (copy == NULL) {
        PyErr_Clear();
        name_main_thread();
        return;
    }
    while (PyDict_Next(copy, &position, &ident, &thread)) {
        unsigned long long handle =
            PyLong_Check(ident) ? PyLong_AsUnsignedLongLong(ident) : 0;
        if (PyErr_Occurred() != NULL)
            PyErr_Clear();
        else if (is_thread(handle))
            name_thread(handle, thread);
        else
            has_others = true;
    }
    if (has_others) /* the main thread may be listed as a greenlet */
        name_main_thread();
    Py_DECREF(copy);
}

void vpy_threads_name_current(void)
{
    PyObject *thread = thread_with(vst_thread_handle());

    if (thread != NULL)
        name_thread(vst_thread_handle(), thread);
    Py_XDECREF(thread);
}

/* The frame is threading.Thread._bootstrap_inner, whose `self` is the thread,
 * which is not yet among the active ones. gevent runs this function in a
 * greenlet. */
void vpy_threads_name_from_frame(const vpy_iframe *frame)
{
    PyObject *self = vpy_iframe_argument(frame, 0);

    Py_XINCREF(self);
    if (self != NULL && !vpy_greenlets_is_in_one())
        name_thread(vst_thread_handle(), self);
    Py_XDECREF(self);
    PyErr_Clear();
}
