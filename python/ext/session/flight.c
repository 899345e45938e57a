/* Snapshots that a signal (snapshot_signal.c) or a trigger asks for while a
 * session is armed. The core's flight recorder writes them; this file starts
 * and ends it. */
#include "session/session.h"

#include "program/triggers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct vpy_flight_state *const state = &vpy_sessions.flight;

struct vpy_flight {
    vst_flight *core;
    vpy_triggers triggers;
    int signal; /* 0: none */
    uint32_t signal_reason;
    bool armed;
    bool ending; /* a thread waits for its end, without the GIL */
};

/* ---- making a flight recorder -------------------------------------------- */

static vst_ticks ticks_of(unsigned long long ns)
{
    double ticks = (double)ns * vst_clock_ticks_per_second() / 1e9;

    return ticks < 9e18 ? (vst_ticks)ticks : (vst_ticks)9e18;
}

/* Reads a trigger: ("slow" | "raise" | "rss", name, limit, text). The limit of
 * "slow" is in nanoseconds, that of "rss" in bytes. */
static bool take_trigger(vpy_flight *self, PyObject *item,
                         vst_flight_reason *reasons, uint32_t index)
{
    vpy_triggers *t = &self->triggers;
    const char *kind, *name;
    unsigned long long limit;
    char *copy;

    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "a trigger must be a tuple");
        return false;
    }
    if (!PyArg_ParseTuple(item, "ssKs:trigger", &kind, &name, &limit,
                          &reasons[index].text))
        return false;
    if (strcmp(kind, "rss") == 0) {
        reasons[index].rss_limit = limit;
        return true;
    }
    copy = strdup(name);
    if (copy == NULL) {
        PyErr_NoMemory();
        return false;
    }
    if (strcmp(kind, "slow") == 0)
        t->slow[t->slow_count++] =
            (vpy_slow){.name = copy, .limit = ticks_of(limit), .reason = index};
    else
        t->raises[t->raise_count++] = (vpy_raise_trigger){copy, index};
    return true;
}

static bool take_triggers(vpy_flight *self, PyObject *items,
                          vst_flight_reason *reasons)
{
    size_t count = (size_t)PyTuple_GET_SIZE(items);

    self->triggers.slow = calloc(count + 1, sizeof *self->triggers.slow);
    self->triggers.raises = calloc(count + 1, sizeof *self->triggers.raises);
    if (self->triggers.slow == NULL || self->triggers.raises == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; i < count; i++)
        if (!take_trigger(self, PyTuple_GET_ITEM(items, (Py_ssize_t)i), reasons,
                          (uint32_t)i))
            return false;
    return true;
}

void vpy_flight_destroy(vpy_flight *self)
{
    if (self == NULL)
        return;
    vpy_flight_end(self);
    vst__flight_destroy(self->core);
    for (size_t i = 0; i < self->triggers.slow_count; i++)
        free(self->triggers.slow[i].name);
    for (size_t i = 0; i < self->triggers.raise_count; i++)
        free(self->triggers.raises[i].name);
    free(self->triggers.slow);
    free(self->triggers.raises);
    free(self);
}

vpy_flight *vpy_flight_create(PyObject *args, PyObject *kw)
{
    static char *names[] = {"stem",          "triggers",  "signal", "overwrite",
                            "max_snapshots", "window_ns", NULL};
    vst_flight_reason reasons[VST_FLIGHT_REASONS_MAX] = {{NULL, 0}};
    vst_flight_options options = {.reasons = reasons};
    PyObject *stem = NULL, *triggers;
    int signal_number = 0, overwrite = 0;
    const char *signal_name = "";
    unsigned long long window_ns = 0;
    vpy_flight *self;
    vst_status status;
    size_t count;

    if (!PyArg_ParseTupleAndKeywords(
            args, kw, "O&O!$(is)pIK:arm", names, PyUnicode_FSConverter, &stem,
            &PyTuple_Type, &triggers, &signal_number, &signal_name, &overwrite,
            &options.max_snapshots, &window_ns)) {
        Py_XDECREF(stem);
        return NULL;
    }
    self = calloc(1, sizeof *self);
    status = VST_E_NOMEM;
    count = (size_t)PyTuple_GET_SIZE(triggers);
    if (self != NULL && count < VST_FLIGHT_REASONS_MAX &&
        take_triggers(self, triggers, reasons)) {
        options.stem = PyBytes_AS_STRING(stem);
        options.overwrite = overwrite;
        options.window_ns = window_ns;
        options.reason_count = count;
        if (signal_number) {
            self->signal = signal_number;
            self->signal_reason = (uint32_t)count;
            reasons[options.reason_count++].text = signal_name;
        }
        status = vst__flight_create(&options, &self->core);
        self->triggers.flight = self->core;
    } else if (count >= VST_FLIGHT_REASONS_MAX) {
        PyErr_Format(PyExc_ValueError, "at most %d triggers, not %zu",
                     (int)VST_FLIGHT_REASONS_MAX - 1, count);
    }
    Py_DECREF(stem);
    if (status == VST_OK)
        return self;
    vpy_flight_destroy(self);
    vpy_raise(status, NULL, NULL);
    return NULL;
}

/* ---- around a fork ------------------------------------------------------- */

/* Since 3.12 Python warns of a fork in a process with several threads. Our
 * thread must not cause that warning, so it is stopped for the fork. */
void vpy_flight_before_fork(void)
{
    vpy_control_take();
    if (state->armed != NULL && vst__flight_pause(state->armed->core))
        state->paused = true; /* may be true already after an earlier fork */
    vpy_control_give();
}

static int flight_resume(void *unused)
{
    (void)unused;
    vpy_control_take();
    if (state->paused && state->armed != NULL)
        vst__flight_resume(state->armed->core);
    state->paused = false;
    vpy_control_give();
    return 0;
}

/* Since 3.13 Python counts threads after it has called this function. So a
 * pending call in the main thread restarts our thread a little later. If
 * another thread forked, the program has several threads anyway. */
void vpy_flight_after_fork_in_parent(void)
{
    bool is_paused;

    vpy_control_take();
    is_paused = state->paused;
    vpy_control_give();
    if (is_paused && (vpy_thread_id() != getpid() ||
                      Py_AddPendingCall(flight_resume, NULL) < 0))
        flight_resume(NULL);
}

/* ---- arming -------------------------------------------------------------- */

int vpy_flight_begin(vpy_flight *self, const vst_session *session)
{
    if (self == NULL)
        return 0;
    if (self->armed || self->ending) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the recording is being stopped by another thread");
        return -1;
    }
    if (vst__flight_arm(self->core, session) != VST_OK) {
        PyErr_SetString(PyExc_RuntimeError,
                        "no thread could be started to write snapshots");
        return -1;
    }
    self->armed = true;
    state->armed = self;
    vpy_triggers_begin(&self->triggers);
    if (!self->signal)
        return 0;
    if (vpy_snapshot_signal_begin(self->signal, self->core,
                                  self->signal_reason) == 0)
        return 0;
    PyErr_SetFromErrno(PyExc_OSError);
    vpy_flight_end(self);
    return -1;
}

static void flight_release(vpy_flight *self)
{
    self->armed = false;
    if (state->armed == self)
        state->armed = NULL;
    if (vpy_program.triggers.active == &self->triggers)
        vpy_triggers_end();
    if (self->signal)
        vpy_snapshot_signal_end(self->core);
}

void vpy_flight_end(vpy_flight *self)
{
    if (self == NULL || !self->armed)
        return;
    flight_release(self);
    self->ending = true;
    Py_BEGIN_ALLOW_THREADS
    vst__flight_disarm(self->core);
    Py_END_ALLOW_THREADS
    self->ending = false;
}

/* Call in a forked child, which writes no snapshots for its parent. */
void vpy_flight_after_fork(void)
{
    vpy_snapshot_signal_after_fork();
    vpy_triggers_end();
    state->armed = NULL;
    state->paused = false;
}

/* ---- the snapshots that were written ------------------------------------- */

static PyObject *error_text(const vst_error *error)
{
    if (error->status == VST_OK)
        Py_RETURN_NONE;
    return PyUnicode_DecodeLocale(error->sys_errno
                                      ? strerror(error->sys_errno)
                                      : vst_status_string(error->status),
                                  "surrogateescape");
}

bool vpy_flight_waits_for_exceptions(const vpy_flight *self)
{
    return self != NULL && self->triggers.raise_count;
}

PyObject *vpy_flight_snapshots(const vpy_flight *self)
{
    size_t count = self != NULL ? vst__flight_count(self->core) : 0;
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < count; i++) {
        const vst_flight_snapshot *s = vst__flight_at(self->core, i);
        PyObject *error = error_text(&s->error);
        PyObject *path = PyUnicode_DecodeFSDefault(s->path);
        PyObject *item = error != NULL && path != NULL
                             ? Py_BuildValue("(OsO)", path, s->reason, error)
                             : NULL;
        if (!vpy_append(list, item))
            Py_CLEAR(list);
        Py_XDECREF(path);
        Py_XDECREF(error);
    }
    if (list == NULL)
        return NULL;
    return Py_BuildValue(
        "(NK)", list,
        (unsigned long long)(self != NULL ? vst__flight_refused(self->core)
                                          : 0));
}
