/* vestige._core.Session: a vst_session as a Python object. The control lock
 * guards the fields of a session. */
#include "session/session.h"

#include "annotate/annotate.h"
#include "calls/budget.h"
#include "calls/engine.h"
#include "memory/memory.h"
#include "program/program.h"
#include "read/read.h"

struct vpy_sessions_state vpy_sessions = {
    .watch = {.bell = -1},
    .guard = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

typedef struct session {
    PyObject_HEAD
    vst_session *handle; /* NULL until the first start */
    vpy_session_wishes wishes;
    vpy_flight
        *flight; /* NULL: neither signals nor triggers ask for snapshots */
    const vpy_engine
        *engine; /* the engine that recorded last; NULL: none did */
} session;

void vpy_recording_session_set(PyObject *object)
{
    vpy_state_take();
    vpy_sessions.session.recording = object;
    vpy_state_give();
}

vst_session *vpy_session_handle(PyObject *object)
{
    return ((session *)object)->handle;
}

PyObject *vpy_session_path(PyObject *object)
{
    return ((session *)object)->wishes.path;
}

/* ---- making a session ---------------------------------------------------- */

static int session_init(PyObject *object, PyObject *args, PyObject *kw)
{
    session *self = (session *)object;

    if (self->handle != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the session was started already");
        return -1;
    }
    vpy_may_be_tried(object); /* snapshot.c tries to take references */
    return vpy_session_options_parse(args, kw, &self->wishes);
}

static void is_no_longer_recording(session *self)
{
    if (vpy_annotate.ids.recording == vst_session_recording(self->handle))
        vpy_recording_set(NULL);
    if (vpy_sessions.session.recording == (PyObject *)self)
        vpy_recording_session_set(NULL);
    vpy_call_stacks_forget();
}

void vpy_session_end_if_cut(void)
{
    session *self;

    vpy_control_take();
    self = (session *)vpy_sessions.session.recording;
    if (self != NULL && vst_session_was_cut(self->handle)) {
        vst_session_stop(self->handle);
        is_no_longer_recording(self);
        vpy_flight_end(self->flight);
    }
    vpy_control_give();
}

/* Takes the core's session, which the caller destroys; NULL if there is
 * none. */
static vst_session *take_handle(session *self)
{
    vst_session *handle = self->handle;

    if (handle == NULL)
        return NULL;
    vpy_annotation_forget(vst_session_recording(handle));
    if (vpy_sessions.session.recording ==
        (PyObject *)self) /* the session was not stopped */
        vpy_fast_contexts_unwatch();
    is_no_longer_recording(self);
    vpy_snapshots_wait((PyObject *)self);
    vpy_flight_end(self->flight);
    self->handle = NULL;
    return handle;
}

static void drop_handle(session *self)
{
    vst_session_destroy(take_handle(self));
}

/* In a forked child: freeing the parent's session would copy pages. */
static void leave_handle(session *self)
{
    vst_session *handle = take_handle(self);

    vpy_session_free_inherited();
    if (handle != NULL)
        vst_session_close_file(handle);
    vpy_sessions.session.inherited = handle;
}

void vpy_session_free_inherited(void)
{
    vst_session_destroy(vpy_sessions.session.inherited);
    vpy_sessions.session.inherited = NULL;
}

static void session_dealloc(PyObject *object)
{
    session *self = (session *)object;
    PyTypeObject *type = Py_TYPE(object);

    vpy_control_take();
    vpy_forks_forget(object);
    drop_handle(self);
    vpy_flight_destroy(self->flight);
    vpy_control_give();
    vpy_session_wishes_clear(&self->wishes);
    type->tp_free(object);
    Py_DECREF(type);
}

/* ---- using a session ----------------------------------------------------- */

static PyObject *session_fail(session *self, vst_status status,
                              const vst_error *error)
{
    if (status == VST_E_BUSY) {
        PyErr_SetString(
            PyExc_RuntimeError,
            "a recording is already running in this process and goes "
            "on; stop it before starting another");
        return NULL;
    }
    if (status == VST_E_TRACER && vpy_calls.tracer.message[0]) {
        PyErr_SetString(PyExc_RuntimeError, vpy_calls.tracer.message);
        return NULL;
    }
    return vpy_raise(status, error, self->wishes.path);
}

static const vpy_engine *choose_engine(session *self)
{
    self->wishes.calls.raises = vpy_flight_waits_for_exceptions(self->flight);
    return vpy_engine_choose(&self->wishes.calls);
}

/* Python takes the note before recording, because showing a warning runs code
 * of the program. */
static PyObject *take_engine_note(PyObject *object, PyObject *unused)
{
    session *self = (session *)object;

    (void)unused;
    if (self->wishes.calls.with_stack || self->wishes.calls.c_functions)
        choose_engine(self);
    return vpy_engine_take_note();
}

static vst_status session_make(session *self, vst_error *error)
{
    vst_session_options options = self->wishes.core;
    vst_status status;

    options.path =
        self->wishes.path != NULL ? PyBytes_AS_STRING(self->wishes.path) : NULL;
    options.tracer_options = &self->wishes.calls;
    options.memory_tracer_options = &self->wishes.memory;
    status = vst_session_create(&options, &self->handle, error);
    if (status != VST_OK)
        self->handle = NULL;
    return status;
}

/* Makes the file, if there is none yet. */
static PyObject *create(PyObject *object, PyObject *unused)
{
    session *self = (session *)object;
    vst_error error = {VST_OK, 0, 0};
    vst_status status = VST_OK;

    (void)unused;
    vpy_forks_notice();
    if (self->handle == NULL)
        status = session_make(self, &error);
    if (status != VST_OK)
        return session_fail(self, status, &error);
    Py_RETURN_NONE;
}

static PyObject *session_start(PyObject *object, PyObject *unused)
{
    session *self = (session *)object;
    vst_error error = {VST_OK, 0, 0};
    PyObject *created;
    vst_status status;

    if (PyInterpreterState_Get() != PyInterpreterState_Main() ||
        vpy_is_finalizing()) {
        PyErr_SetString(PyExc_RuntimeError,
                        vpy_is_finalizing()
                            ? "the interpreter is shutting down"
                            : "vestige does not record sub-interpreters");
        return NULL;
    }
    if (vpy_engine_warn_if_unproven() < 0)
        return NULL;
    created = create(object, unused);
    if (created == NULL)
        return NULL;
    Py_DECREF(created);
    if (vpy_sessions.session.recording != NULL)
        return session_fail(
            self,
            vpy_sessions.session.recording == object ? VST_E_STATE : VST_E_BUSY,
            NULL);
    if (vst_session_was_cut(self->handle))
        Py_RETURN_NONE; /* the recording is over; session_finish() reports why
                         */
    if (vpy_flight_begin(self->flight, self->handle) < 0)
        return NULL;
    self->wishes.calls.raises = vpy_flight_waits_for_exceptions(self->flight);
    if (self->wishes.calls.with_stack || self->wishes.calls.c_functions)
        vpy_engine_prepare(&self->wishes.calls);
    if (self->wishes.calls.sched) {
        vpy_gil_waits_prepare();
        vpy_object_waits_prepare();
    }
    status = vst_session_start(self->handle, &error);
    vpy_engine_give_up(); /* another tracer may have taken our place */
    if (status != VST_OK) {
        vpy_flight_end(self->flight);
        return session_fail(self, status, &error);
    }
    if (vpy_engine_running() != NULL)
        self->engine = vpy_engine_running();
    vpy_recording_set(vst_session_recording(self->handle));
    vpy_recording_session_set(object);
    Py_RETURN_NONE;
}

static PyObject *stop(PyObject *object, PyObject *unused)
{
    session *self = (session *)object;

    (void)unused;
    vpy_collectors_stop(self->handle);
    if (self->handle == NULL || vst_session_stop(self->handle) != VST_OK) {
        if (self->handle != NULL && vst_session_was_cut(self->handle))
            Py_RETURN_NONE;
        PyErr_SetString(PyExc_RuntimeError, "the recording is not running");
        return NULL;
    }
    is_no_longer_recording(self);
    vpy_flight_end(self->flight);
    Py_RETURN_NONE;
}

static PyObject *session_finish(PyObject *object, PyObject *unused)
{
    session *self = (session *)object;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    (void)unused;
    if (self->handle == NULL)
        Py_RETURN_NONE;
    vpy_collectors_stop(self->handle);
    is_no_longer_recording(self);
    vpy_snapshots_wait(object);
    status = vst_session_finish(self->handle, &error);
    vpy_flight_end(self->flight);
    if (status != VST_OK)
        return vpy_raise(status, &error, self->wishes.path);
    Py_RETURN_NONE;
}

static bool is_started(session *self)
{
    if (self->handle == NULL)
        PyErr_SetString(PyExc_RuntimeError, "nothing was recorded yet");
    return self->handle != NULL;
}

static PyObject *session_storage_ns(PyObject *object, PyObject *unused)
{
    session *self = (session *)object;

    (void)unused;
    return is_started(self) ? PyFloat_FromDouble(vpy_budget_word_ns(
                                  vst_session_recording(self->handle),
                                  self->wishes.calls.budget))
                            : NULL;
}

static PyObject *session_notes(PyObject *object, PyObject *unused)
{
    (void)unused;
    return vpy_collector_notes(((session *)object)->handle);
}

/* set_budget(share of CPU time, ns of a call in Python, ns of a call in C). */
static PyObject *session_set_budget(PyObject *object, PyObject *args)
{
    vpy_options *calls = &((session *)object)->wishes.calls;

    if (!PyArg_ParseTuple(args, "ddd:set_budget", &calls->budget,
                          &calls->budget_python_ns, &calls->budget_native_ns))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *session_trace(PyObject *object, PyObject *unused)
{
    session *self = (session *)object;

    (void)unused;
    return is_started(self) ? vpy_trace_of_session(self->handle) : NULL;
}

static PyObject *session_export_memory(PyObject *object, PyObject *path)
{
    session *self = (session *)object;
    vst_error error = {VST_OK, 0, 0};
    PyObject *bytes;
    vst_status status;

    if (!is_started(self) || !PyUnicode_FSConverter(path, &bytes))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = vst_session_export_memory(self->handle, PyBytes_AS_STRING(bytes),
                                       &error);
    Py_END_ALLOW_THREADS;
    if (status != VST_OK)
        vpy_raise(status, &error, bytes);
    Py_DECREF(bytes);
    return status == VST_OK ? Py_NewRef(Py_None) : NULL;
}

static PyObject *arm(PyObject *object, PyObject *args, PyObject *kw)
{
    session *self = (session *)object;

    if (self->handle != NULL || self->flight != NULL) {
        PyErr_SetString(PyExc_RuntimeError,
                        "arm a session only once, before its first start");
        return NULL;
    }
    self->flight = vpy_flight_create(args, kw);
    if (self->flight == NULL)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *session_snapshots(PyObject *object, PyObject *unused)
{
    (void)unused;
    return vpy_flight_snapshots(((session *)object)->flight);
}

static PyObject *session_recording(PyObject *object, void *unused)
{
    session *self = (session *)object;

    (void)unused;
    return PyBool_FromLong(self->handle != NULL &&
                           vst_session_is_recording(self->handle));
}

static PyObject *session_lost(PyObject *object, void *unused)
{
    session *self = (session *)object;

    (void)unused;
    return PyLong_FromUnsignedLongLong(
        self->handle != NULL ? vst_session_lost(self->handle) : 0);
}

static PyObject *session_was_cut(PyObject *object, void *unused)
{
    session *self = (session *)object;

    (void)unused;
    return PyBool_FromLong(self->handle != NULL &&
                           vst_session_was_cut(self->handle));
}

static PyObject *session_engine(PyObject *object, void *unused)
{
    session *self = (session *)object;
    const vpy_engine *engine;

    (void)unused;
    vpy_control_take();
    engine = self->engine != NULL ? self->engine : choose_engine(self);
    vpy_control_give();
    return PyUnicode_FromString(engine->name);
}

/* ---- methods under the control lock -------------------------------------- */

static PyObject *session_controlled(PyCFunction function, PyObject *object)
{
    PyObject *result;

    vpy_control_take();
    result = function(object, NULL);
    vpy_control_give();
    return result;
}

static PyObject *session_create(PyObject *object, PyObject *unused)
{
    (void)unused;
    return session_controlled(create, object);
}

/* The next file lies beside the one before, so where that lies is not looked up
 * again. */
static void keep_storage(session *self)
{
    vst_session_storage storage;

    if (self->handle == NULL || self->wishes.core.storage != VST_STORAGE_AUTO)
        return;
    vst_session_get_storage(self->handle, &storage);
    if (!storage.is_copied)
        self->wishes.core.storage = VST_STORAGE_MAPPED;
}

vst_status vpy_session_renew(PyObject *object, PyObject *path)
{
    session *self = (session *)object;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    vpy_control_take();
    keep_storage(self);
    leave_handle(self);
    self->wishes.core.overwrite =
        false; /* only the first file may be overwritten */
    Py_XSETREF(self->wishes.path, Py_NewRef(path));
    status = session_make(self, &error);
    vpy_control_give();
    return status;
}

PyObject *vpy_session_start(PyObject *object, PyObject *unused)
{
    (void)unused;
    return session_controlled(session_start, object);
}

static PyObject *session_stop(PyObject *object, PyObject *unused)
{
    (void)unused;
    return session_controlled(stop, object);
}

PyObject *vpy_session_finish(PyObject *object, PyObject *unused)
{
    (void)unused;
    return session_controlled(session_finish, object);
}

static PyObject *session_engine_note(PyObject *object, PyObject *unused)
{
    (void)unused;
    return session_controlled(take_engine_note, object);
}

static PyObject *session_arm(PyObject *object, PyObject *args, PyObject *kw)
{
    PyObject *result;

    vpy_control_take();
    result = arm(object, args, kw);
    vpy_control_give();
    return result;
}

static PyMethodDef session_methods[] = {
    {"create", session_create, METH_NOARGS, NULL},
    {"start", vpy_session_start, METH_NOARGS, NULL},
    {"stop", session_stop, METH_NOARGS, NULL},
    {"finish", vpy_session_finish, METH_NOARGS, NULL},
    {"set_metadata", vpy_session_set_metadata, METH_VARARGS, NULL},
    {"storage_ns", session_storage_ns, METH_NOARGS, NULL},
    {"notes", session_notes, METH_NOARGS, NULL},
    {"set_budget", session_set_budget, METH_VARARGS, NULL},
    {"storage", vpy_session_storage, METH_NOARGS, NULL},
    {"wait_storage", vpy_session_wait_storage, METH_O, NULL},
    {"trace", session_trace, METH_NOARGS, NULL},
    {"name_process", vpy_session_name_process, METH_NOARGS, NULL},
    {"note_sources", vpy_session_note_sources, METH_NOARGS, NULL},
    {"export_memory", session_export_memory, METH_O, NULL},
    {"arm", (PyCFunction)(void (*)(void))session_arm,
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"snapshots", session_snapshots, METH_NOARGS, NULL},
    {"engine_note", session_engine_note, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef session_getset[] = {
    {"recording", session_recording, NULL, NULL, NULL},
    {"lost", session_lost, NULL, NULL, NULL},
    {"was_cut", session_was_cut, NULL, NULL, NULL},
    {"engine", session_engine, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(session_doc, "Session(path=None, **options)\n--\n\n"
                          "One recording. Options are described in _core.pyi.");

static PyType_Slot session_slots[] = {
    {Py_tp_init, session_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, session_dealloc},
    {Py_tp_methods, session_methods},
    {Py_tp_getset, session_getset},
    {Py_tp_doc, (void *)session_doc},
    {0, NULL},
};

static PyType_Spec session_spec = {
    .name = "vestige._core.Session",
    .basicsize = sizeof(session),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = session_slots,
};

int vpy_session_type_init(PyObject *module)
{
    return vpy_type_add(module, &session_spec);
}
