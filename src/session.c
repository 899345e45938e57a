/* One recording from start to finish: the only file that knows the registry,
 * the recorder, the file and replay. Called by one thread at a time. A session
 * belongs to the process that made it; in a forked child it does nothing. */
#include <stdlib.h>

#include <vestige/session.h>

#include "base/short_text.h"
#include "os/os.h"
#include "os/storage_guard.h"
#include "record/recording.h"
#include "store/copy.h"
#include "store/writer.h"

struct vst_session {
    vst__file *file;
    vst_recording *recording;
    vst_tracer *tracer; /* NULL until the first start */
    /* NULL until the first start, and if it is not wanted */
    vst_memory_tracer *memory;
    vst__collectors collectors;
    uint32_t pid;
    const char *copier;
    vst__os_waits waits; /* times that threads waited for a processor */
    bool gc;
    bool wants_memory;
    bool wants_devices;
    bool runs_devices;
    bool is_recording;
    bool finished;
};

/* Returns at least one tick, unless ns is 0. */
static vst_ticks ticks_of(uint64_t ns)
{
    double ticks = (double)ns * vst_clock_ticks_per_second() / 1e9;

    if (ns == 0)
        return 0;
    return ticks < 1 ? 1 : ticks < 9e18 ? (vst_ticks)(ticks + 0.5) : INT64_MAX;
}

static bool session_is_ours(const vst_session *session)
{
    return session->pid == vst__os_process_id();
}

vst_status vst_session_create(const vst_session_options *options,
                              vst_session **out, vst_error *error)
{
    vst_session *session;
    vst__file_bounds bounds;
    vst_status status;

    if (vst__recording_is_any())
        return vst_error_set(error, VST_E_BUSY, 0, 0);
    session = calloc(1, sizeof *session);
    if (session == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    session->pid = vst__os_process_id();
    session->copier = options->copier;
    session->gc = options->gc;
    session->wants_memory = options->memory;
    session->wants_devices = options->devices && vst__collectors_any();
    bounds = (vst__file_bounds){.max_size = options->max_size,
                                .keep_ns = options->last_ns,
                                .min_duration_ns = options->min_duration_ns};
    status = vst__file_create(
        options->path, options->overwrite, &bounds,
        &(vst__file_storage){options->storage, options->copier}, &session->file,
        error);
    if (status == VST_OK) {
        status = vst__recording_create(vst__file_provider(session->file),
                                       &session->recording);
        if (status != VST_OK) {
            vst_error_set(error, status, 0, 0);
            vst__file_discard(session->file, options->path);
        }
    }
    if (status != VST_OK) {
        vst_session_destroy(session);
        return status;
    }
    session->recording->checkpoints =
        options->checkpoints || options->max_size || options->last_ns;
    session->recording->switches.wanted = options->sched;
    session->recording->scope =
        (vst__scope_options){options->max_depth, options->only};
    session->recording->shortest = ticks_of(options->min_duration_ns);
    session->recording->tracer_context =
        (vst_tracer_context){session, options->tracer_options};
    session->recording->memory_tracer_context =
        (vst_tracer_context){session, options->memory_tracer_options};
    *out = session;
    return VST_OK;
}

int vst_session_can_see_switches(void)
{
    vst__os_switch_ring ring;
    int failed = vst__os_switches_open(0, 1, &ring);

    vst__os_switches_close(&ring);
    return failed;
}

/* The recording is open before the tracer is made, because a tracer records
 * while it starts (the open calls). */
static vst_status start_tracer(vst_session *session)
{
    vst_status status;

    if (session->tracer != NULL)
        return session->tracer->ops->restart(session->tracer);
    status = vst_tracer_make(session->recording, &session->tracer);
    if (status == VST_OK && session->gc)
        session->tracer->ops->register_gc_callback(session->tracer);
    return status;
}

static vst_status start_memory(vst_session *session)
{
    vst_status status = VST_OK;

    if (!session->wants_memory)
        return VST_OK;
    if (session->memory == NULL)
        status = vst_memory_tracer_make(session->recording, &session->memory);
    if (status == VST_OK)
        status = session->memory->ops->start(session->memory);
    return status;
}

/* Call with the recorder's lock held, because free-running threads may give
 * back chunks of the previous window. */
static vst_status session_begin_window(vst_session *session, vst_error *error)
{
    vst_status status;

    vst__recorder_take();
    status = vst__file_begin_window(session->file, error);
    vst__recorder_give();
    return status;
}

static void session_end_window(vst_session *session)
{
    vst__recorder_take();
    vst__file_end_window(session->file);
    vst__recorder_give();
}

vst_status vst_session_start(vst_session *session, vst_error *error)
{
    vst_status status;

    if (session->is_recording || session->finished || !session_is_ours(session))
        return vst_error_set(error, VST_E_STATE, 0, 0);
    if (vst__recording_is_any())
        return vst_error_set(error, VST_E_BUSY, 0, 0);
    vst__os_waits_begin(&session->waits);
    status = session_begin_window(session, error);
    if (status != VST_OK)
        return status;
    status = vst__recording_start(session->recording);
    if (status != VST_OK)
        return vst_error_set(error, status, 0, 0);
    status = start_tracer(session);
    if (status == VST_OK) {
        status = start_memory(session);
        if (status != VST_OK)
            session->tracer->ops->stop(session->tracer);
    }
    if (status != VST_OK) {
        vst__recording_stop(session->recording);
        session_end_window(session);
        return vst_error_set(error, status, 0, 0);
    }
    session->is_recording = true;
    session->runs_devices = session->wants_devices;
    if (session->wants_devices)
        vst__collectors_start(&session->collectors, session->recording);
    return VST_OK;
}

/* Writes {"tid": ns} as metadata. Without switches of threads, only this says
 * whether a call took long or the machine was busy. */
static void session_write_waits(vst_session *session)
{
    vst__os_waits *waits = &session->waits;
    char json[VST_OS_WAITS_MAX * 48];
    vst__short_text text = vst__short_text_in(json, sizeof json);

    vst__os_waits_end(waits);
    vst__put_word(&text, "{");
    for (size_t i = 0; i < waits->count; i++) {
        vst__put_word(&text, i != 0 ? ", \"" : "\"");
        vst__put_number(&text, (int64_t)waits->sums[i].tid);
        vst__put_word(&text, "\": ");
        vst__put_number(&text, (int64_t)waits->sums[i].ns);
    }
    vst__put_word(&text, "}");
    vst_recording_set_metadata(session->recording, "vestige.processor_waits",
                               json);
}

vst_status vst_session_stop(vst_session *session)
{
    if (!session->is_recording)
        return VST_E_STATE;
    /* stop the devices while activities can still be delivered */
    vst_session_stop_devices(session);
    session->is_recording = false;
    if (session->memory != NULL)
        session->memory->ops->stop(session->memory);
    session->tracer->ops->stop(session->tracer);
    if (session_is_ours(session)) {
        vst__recording_stop(session->recording);
        session_write_waits(session);
        session_end_window(session);
    }
    return VST_OK;
}

vst_status vst_session_finish(vst_session *session, vst_error *error)
{
    if (session->finished)
        return VST_OK;
    if (session->is_recording)
        vst_session_stop(session);
    session->finished = true;
    if (!session_is_ours(session))
        return VST_OK;
    if (session->wants_devices)
        vst__devices_write_late(session->recording);
    vst__recording_forget_leavers(session->recording);
    return vst__file_finish(session->file, error);
}

/* Returns whether the process came from a fork for which no handler ran:
 * threads that do not exist here may hold locks forever. */
static bool session_is_unnoticed_fork(const vst_session *session)
{
    return !session_is_ours(session) && session->recording != NULL &&
           vst__recording_is_ours(session->recording);
}

void vst_session_close_file(vst_session *session)
{
    if (session_is_ours(session) || session_is_unnoticed_fork(session))
        return;
    vst__file_destroy(session->file);
    session->file = NULL;
}

void vst_session_destroy(vst_session *session)
{
    if (session == NULL || session_is_unnoticed_fork(session))
        return;
    if (session->file != NULL && session->recording != NULL)
        vst_session_finish(session, NULL);
    if (session_is_ours(session))
        vst__collectors_destroy(&session->collectors);
    if (session->memory != NULL)
        session->memory->ops->destroy(session->memory);
    if (session->tracer != NULL)
        session->tracer->ops->destroy(session->tracer);
    vst__recording_destroy(session->recording);
    vst__file_destroy(session->file);
    free(session);
}

static const vst_storage_watcher *watcher; /* set once */

static void found_cut(void)
{
    vst__recording_chunks_are_gone();
    if (watcher->cut != NULL)
        watcher->cut();
}

void vst__storage_watch(const vst_storage_watcher *who)
{
    static vst_storage_watcher ours;

    watcher = who;
    ours = *who;
    ours.cut = found_cut;
    vst__os_storage_watch(&ours);
}

bool vst_storage_rescue(const void *address)
{
    return vst__os_storage_rescue(address);
}

bool vst_session_was_cut(const vst_session *session)
{
    return vst__file_was_cut(session->file);
}

bool vst_session_is_recording(const vst_session *session)
{
    return session->is_recording && session_is_ours(session);
}

vst_recording *vst_session_recording(vst_session *session)
{
    return session->recording;
}

uint64_t vst_session_lost(const vst_session *session)
{
    return vst__recording_lost(session->recording);
}

void vst_session_get_storage(const vst_session *session,
                             vst_session_storage *storage)
{
    vst__file_get_storage(session->file, storage);
}

bool vst_session_wait_storage(vst_session *session, uint64_t timeout_ns)
{
    return session_is_ours(session) &&
           vst__file_wait_storage(session->file, timeout_ns);
}

vst_status vst_session_open_trace(vst_session *session, vst_trace **trace,
                                  vst_error *error)
{
    vst_status status;
    int fd;

    status = vst__file_readable(session->file, &fd, error);
    if (status != VST_OK)
        return status;
    status = vst_trace_open_fd(fd, trace, error);
    vst__file_readable_close(session->file, fd);
    return status;
}

vst_status vst_session_snapshot(const vst_session *session, const char *path,
                                bool overwrite, uint64_t window_ns,
                                const char *note, vst_error *error)
{
    vst_session_storage storage;
    vst_status status;
    int fd;

    vst_error_set(error, VST_OK, 0, 0);
    if (!session_is_ours(session))
        return vst_error_set(error, VST_E_STATE, 0, 0);
    status = vst__file_readable(session->file, &fd, error);
    if (status != VST_OK)
        return status;
    vst__file_get_storage(session->file, &storage);
    status = storage.is_copied
                 ? vst__snapshot_copied(fd, path, overwrite, window_ns, note,
                                        session->copier, error)
                 : vst__snapshot(fd, path, overwrite, window_ns, note, error);
    vst__file_readable_close(session->file, fd);
    return status;
}

void vst_session_flush_devices(vst_session *session)
{
    if (session->is_recording && session->runs_devices &&
        session_is_ours(session))
        vst__collectors_flush(&session->collectors, session->recording);
}

void vst_session_stop_devices(vst_session *session)
{
    if (!session->is_recording || !session->runs_devices ||
        !session_is_ours(session))
        return;
    session->runs_devices = false;
    vst__collectors_stop(&session->collectors, session->recording);
}

bool vst_session_next_note(vst_session *session, char *line, size_t size)
{
    return session_is_ours(session) &&
           vst__notes_next(session->recording, line, size);
}

vst_status vst_session_export_memory(vst_session *session, const char *path,
                                     vst_error *error)
{
    vst_error_set(error, VST_OK, 0, 0);
    if (session->memory == NULL)
        return vst_error_set(error, VST_E_STATE, 0, 0);
    return session->memory->ops->export_memory_history(session->memory, path,
                                                       error);
}

vst_tracer *vst_session_tracer(vst_session *session)
{
    return session->tracer;
}
