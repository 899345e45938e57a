/* vestige.snapshot(): writes a copy of the recording in progress. The calling
 * thread writes the copy without the GIL, or starts a thread that does and
 * never enters Python. The GIL, or the state lock, guards the list of copies
 * that threads write; a session waits for its copies before it finishes its
 * file. */
#include "session/session.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct vpy_snapshots_state *const state = &vpy_sessions.snapshots;

typedef struct vpy_snapshot_copy {
    struct vpy_snapshot_copy *next;
    const PyObject *session; /* borrowed: the session waits for this copy */
    const vst_session *handle;
    pthread_t thread;
    unsigned long long window_ns;
    bool overwrite;
    vst_error error;
    char note[64];
    char path[];
} copy;

static void *write_copy(void *argument)
{
    copy *self = argument;

    vst_session_snapshot(self->handle, self->path, self->overwrite,
                         self->window_ns, self->note, &self->error);
    return NULL;
}

static copy *new_copy(PyObject *session, PyObject *path)
{
    copy *self = calloc(1, sizeof *self + (size_t)PyBytes_GET_SIZE(path) + 1);

    if (self == NULL)
        return NULL;
    self->session = session;
    self->handle = vpy_session_handle(session);
    strcpy(self->path, PyBytes_AS_STRING(path));
    snprintf(self->note, sizeof self->note,
             "{\"reason\": \"snapshot()\", \"number\": %u}",
             __atomic_add_fetch(&state->last_number, 1, __ATOMIC_RELAXED));
    return self;
}

/* Starts a thread that writes the copy, with all signals blocked, as signals
 * are for the program's threads. Returns 0, or an error number. */
static int leave_to_thread(copy *self)
{
    sigset_t all, before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&self->thread, NULL, write_copy, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return failed;
    vpy_state_take();
    self->next = state->copies;
    state->copies = self;
    vpy_state_give();
    return 0;
}

/* Returns a new reference to the session that records, or NULL if there is none
 * or it is being freed. */
static PyObject *take_session(void)
{
    PyObject *session;

    vpy_state_take();
    session = vpy_sessions.session.recording;
    if (session != NULL && !vpy_try_incref(session))
        session = NULL;
    vpy_state_give();
    return session;
}

static PyObject *snapshot(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *names[] = {"path", "overwrite", "window_ns", "wait", NULL};
    PyObject *path = NULL, *session;
    unsigned long long window_ns = 0;
    int overwrite = 0, wait = 1, failed;
    copy *self;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O&|$pKp:snapshot", names,
                                     PyUnicode_FSConverter, &path, &overwrite,
                                     &window_ns, &wait))
        return NULL;
    session = take_session();
    if (session == NULL) {
        Py_DECREF(path);
        PyErr_SetString(PyExc_RuntimeError,
                        "nothing is being recorded, so no snapshot can be "
                        "taken");
        return NULL;
    }
    self = new_copy(session, path);
    if (self == NULL) {
        Py_DECREF(session);
        Py_DECREF(path);
        return PyErr_NoMemory();
    }
    self->overwrite = overwrite;
    self->window_ns = window_ns;
    failed = wait ? 0 : leave_to_thread(self);
    if (wait ||
        failed) { /* write in this thread if no other could be started */
        Py_BEGIN_ALLOW_THREADS
        write_copy(self);
        Py_END_ALLOW_THREADS
        if (self->error.status != VST_OK)
            vpy_raise(self->error.status, &self->error, path);
        free(self);
    }
    Py_DECREF(path);
    Py_DECREF(session);
    if (PyErr_Occurred() != NULL)
        return NULL;
    Py_RETURN_NONE;
}

/* Prints an error: the caller has gone on and gets no exception. */
static void snapshot_print_error(const copy *self)
{
    const vst_error *error = &self->error;

    if (error->status != VST_OK)
        PySys_WriteStderr("vestige: %.500s: %s\n", self->path,
                          error->sys_errno ? strerror(error->sys_errno)
                                           : vst_status_string(error->status));
}

/* Removes a copy of a session from the list and returns it, or NULL if none is
 * left. */
static copy *take_copy(const PyObject *session)
{
    copy **link = &state->copies, *taken;

    vpy_state_take();
    while (*link != NULL && (*link)->session != session)
        link = &(*link)->next;
    taken = *link;
    if (taken != NULL)
        *link = taken->next;
    vpy_state_give();
    return taken;
}

void vpy_snapshots_wait(const PyObject *session)
{
    copy *taken;

    while ((taken = take_copy(session)) != NULL) {
        Py_BEGIN_ALLOW_THREADS
        pthread_join(taken->thread, NULL);
        Py_END_ALLOW_THREADS
        snapshot_print_error(taken);
        free(taken);
    }
}

/* Call in a forked child. The copies belong to the parent. */
void vpy_snapshots_after_fork(void)
{
    state->copies = NULL;
}

PyMethodDef vpy_snapshot_functions[] = {
    {"snapshot", (PyCFunction)(void (*)(void))snapshot,
     METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("snapshot(path, *, overwrite=False, window_ns=0, wait=True)\n"
               "--\n\nWrite a copy of the recording so far.")},
    {NULL, NULL, 0, NULL},
};
