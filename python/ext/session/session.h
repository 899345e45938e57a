/* session/ is a recording from start to finish as a Python object, and
 * everything that can happen to a recording: snapshots, signals, forks, a file
 * that somebody truncates. It knows all other folders; only core_module.c knows
 * it. */
#ifndef VPY_SESSION_SESSION_H
#define VPY_SESSION_SESSION_H

#include "calls/tracer.h"

#include "memory/memory.h"
#include "session/state.h"
#include "vpy.h"
#include <vestige/api.h>

#include "flight.h"

#pragma GCC visibility push(hidden)

/* ---- session.c ----------------------------------------------------------- */

static inline void vpy_control_take(void)
{
    vpy_lock_take(&vpy_sessions.session.control_lock);
}

static inline void vpy_control_give(void)
{
    vpy_lock_give(&vpy_sessions.session.control_lock);
}

void vpy_recording_session_set(PyObject *session);

int vpy_session_type_init(PyObject *module);
vst_session *vpy_session_handle(PyObject *session);
PyObject *vpy_session_path(PyObject *session); /* borrowed, or NULL */
/* Methods of Session. */
PyObject *vpy_session_start(PyObject *session, PyObject *unused);
PyObject *vpy_session_finish(PyObject *session, PyObject *unused);
/* Leaves the recording of the parent process, and makes another file. */
vst_status vpy_session_renew(PyObject *session, PyObject *path);
/* Frees the parent's session, which vpy_session_renew keeps. Call before a
 * fork, or each child of a child would keep one more. */
void vpy_session_free_inherited(void);
/* Stops the recording if somebody cut its file. */
void vpy_session_end_if_cut(void);

/* ---- session_options.c --------------------------------------------------- */

/* The options of a session. All zero: no options yet. */
typedef struct vpy_session_wishes {
    PyObject *path; /* bytes or NULL */
    vpy_options calls;
    vpy_memory_options memory;
    vst_session_options
        core; /* without the options of the tracers and the path */
} vpy_session_wishes;

/* Returns -1 with an exception set. */
int vpy_session_options_parse(PyObject *args, PyObject *kw,
                              vpy_session_wishes *wishes);
void vpy_session_wishes_clear(vpy_session_wishes *wishes);

/* ---- collectors.c: device activities ------------------------------------- */

struct vst_api;
int vpy_collectors_init(PyObject *module, const struct vst_api *api);
/* vpy_collectors_stop stops the collectors of a session. vpy_collector_notes
 * returns a list of notes that were not returned before. The session may be
 * NULL. */
void vpy_collectors_stop(vst_session *session);
PyObject *vpy_collector_notes(vst_session *session);

/* ---- metadata.c ---------------------------------------------------------- */

/* Methods of Session. */
PyObject *vpy_session_set_metadata(PyObject *session, PyObject *args);
PyObject *vpy_session_note_sources(PyObject *session, PyObject *unused);
/* Notes the name that multiprocessing gave this process, if any. */
PyObject *vpy_session_name_process(PyObject *session, PyObject *unused);

/* ---- copies.c: recordings that are copied to slow disks ------------------ */

extern PyMethodDef vpy_copies_functions[];
/* Returns the path of the program vestige-copier, which never changes. */
const char *vpy_copier(void);
/* Methods of Session. */
PyObject *vpy_session_storage(PyObject *session, PyObject *unused);
PyObject *vpy_session_wait_storage(PyObject *session, PyObject *seconds);

/* ---- source_files.c ------------------------------------------------------ */

/* Notes the recording's source files as metadata: [[id of one of the file's
 * functions, mtime in ns, size], ...]. The file's name is found by the id. */
void vpy_sources_note(vst_recording *recording);

/* ---- forked_child.c ------------------------------------------------------ */

/* Sets what children need to record without Python: None, or a tuple (file name
 * without its end, trace id, os.environ's dictionary, {key: JSON}, function).
 * The first two are bytes. Returns -1 with an exception set on failure. */
int vpy_child_plan_set(PyObject *plan);
bool vpy_child_has_plan(void);
/* Returns the plan's function (borrowed), or NULL. Call the function in a child
 * before the recording starts, if multiprocessing is loaded. */
PyObject *vpy_child_expects(void);
/* Records this child with the session of its parent, into a file of its own.
 * Returns the file's name (a new reference), or NULL if the child is not
 * recorded. */
PyObject *vpy_child_go_on(PyObject *session, const vpy_origin *origin);
/* Finishes the recording before os._exit(code). */
void vpy_child_leave(PyObject *session, int code);

/* ---- forks.c ------------------------------------------------------------- */

int vpy_forks_init(PyObject *module);
/* Checks whether this process was forked without the interpreter knowing, and
 * if so drops the parent's recording. Called before each operation for the
 * program. */
void vpy_forks_notice(void);
void vpy_forks_forget(const PyObject *session); /* call before freeing it */

/* ---- descriptor_watch.c: requests to a running process ------------------- */

extern PyMethodDef vpy_watch_functions[];
void vpy_watch_before_fork(void);
void vpy_watch_after_fork_in_parent(void);
void vpy_watch_after_fork(void);

/* ---- storage_guard.c ----------------------------------------------------- */

void vpy_storage_guard_init(void);
void vpy_storage_guard_after_fork(void);

/* ---- snapshot.c: snapshots that the program asks for --------------------- */

extern PyMethodDef vpy_snapshot_functions[];
/* Waits until the snapshots of this session are written. */
void vpy_snapshots_wait(const PyObject *session);
void vpy_snapshots_after_fork(void);

/* ---- flight.c: snapshots that a signal or a trigger asks for ------------- */

typedef struct vpy_flight vpy_flight;

vpy_flight *vpy_flight_create(PyObject *args, PyObject *kw);
/* vpy_flight_begin and vpy_flight_end do nothing for NULL. vpy_flight_end
 * releases the GIL for a while. */
int vpy_flight_begin(vpy_flight *flight, const vst_session *session);
void vpy_flight_end(vpy_flight *flight);
void vpy_flight_destroy(vpy_flight *flight);
void vpy_flight_before_fork(void);
void vpy_flight_after_fork_in_parent(void);
void vpy_flight_after_fork(void);
/* Returns ([(path, reason, error or None), ...], how many requests were
 * refused). */
PyObject *vpy_flight_snapshots(const vpy_flight *flight);
bool vpy_flight_waits_for_exceptions(const vpy_flight *flight);

/* ---- snapshot_signal.c --------------------------------------------------- */

/* Returns -1 with errno set on failure. */
int vpy_snapshot_signal_begin(int number, vst_flight *flight, uint32_t why);
void vpy_snapshot_signal_end(const vst_flight *flight);
void vpy_snapshot_signal_after_fork(void);

#pragma GCC visibility pop
#endif
