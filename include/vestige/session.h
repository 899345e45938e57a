/* A session is one recording: it makes the registered tracer, gives the tracer
 * a file to record into, and hands out what was recorded. A process records one
 * session at a time. Any thread may call these functions, but only one thread
 * at a time. */
#ifndef VESTIGE_SESSION_H
#define VESTIGE_SESSION_H

#include <stdbool.h>

#include "record.h"
#include "status.h"
#include "trace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vst_session vst_session;

typedef enum vst_storage_mode {
    /* Records are stored through a mapping of the file. */
    VST_STORAGE_MAPPED = 0,
    /* Copied if the file lies on a disk that may keep a thread waiting (NFS,
     * FUSE, …), else mapped. */
    VST_STORAGE_AUTO = 1,
    /* Records go to a local file; a process of its own copies them. */
    VST_STORAGE_COPIED = 2
} vst_storage_mode;

typedef struct vst_session_options {
    const char *path; /* NULL: an unlinked temporary file, or memory */
    bool overwrite;   /* replace an existing file */
    vst_storage_mode storage;
    /* The program vestige-copier, which copies; must stay valid as long as the
     * session. NULL: the next reader copies. */
    const char *copier;
    bool gc;     /* record garbage collections */
    bool memory; /* make and start the registered memory tracer */
    /* Bounds: the newest records stay, older ones are dropped and counted. */
    uint64_t max_size; /* bytes of the file, at least 1 MiB; definitions may
                          exceed it; 0: no limit */
    uint64_t last_ns;  /* keep the records of the last last_ns; 0: all */
    /* Begin each chunk with the calls that were open then, so that a reader
     * does not need earlier chunks. Limits of size and time imply this. */
    bool checkpoints;
    /* Leave out and count calls shorter than this (vst_record_end_of_call),
     * unless something else was recorded inside that stays; 0: none. */
    uint64_t min_duration_ns;
    /* Record when each recorded thread was running on a processor, as far as
     * the system reports it; see vst_session_can_see_switches. */
    bool sched;
    /* Make and start the registered collectors (device.h). */
    bool devices;
    /* Record calls only to this depth, counted from the calls that are open
     * when the recording begins; with `only`, from the selected functions. 0:
     * no limit. */
    uint32_t max_depth;
    /* Record calls only inside functions that the tracer selects
     * (vst_recording_record_inside). */
    bool only;
    /* For the registered tracers, which know the types (vst_tracer_context).
     * Must stay valid until the first start has returned. */
    const void *tracer_options, *memory_tracer_options;
} vst_session_options;

/* Makes a session and its file; nothing is recorded yet. The options may go
 * away when this returns, except what tracer_options and memory_tracer_options
 * point to. The caller destroys *session. On failure *session is not set;
 * returns VST_E_BUSY if this process is recording, or VST_E_EXISTS, VST_E_IO,
 * VST_E_NOMEM. */
VST_API vst_status vst_session_create(const vst_session_options *options,
                                      vst_session **session, vst_error *error);
/* Returns 0 if the system lets the calling thread see its context switches,
 * else the errno value of the refusal. */
VST_API int vst_session_can_see_switches(void);
/* Starts recording; after a stop, continues in a new window of the same file.
 * Returns VST_E_BUSY if this process records another session; VST_E_STATE if
 * this session is recording, is finished, or was made before a fork; or the
 * status of the tracer's start. On failure nothing is recorded. */
VST_API vst_status vst_session_start(vst_session *session, vst_error *error);
/* Stops recording: no hook records after this returns. Returns VST_E_STATE if
 * the session was not recording. */
VST_API vst_status vst_session_stop(vst_session *session);
/* Stops if necessary, and finishes the file; the session can still be read.
 * Returns VST_E_IO if the file was replaced, or if its unused space could not
 * be freed. */
VST_API vst_status vst_session_finish(vst_session *session, vst_error *error);
/* Finishes if necessary, and frees the session, its tracers and collectors.
 * Traces that were opened from it stay valid. Ignores NULL. */
VST_API void vst_session_destroy(vst_session *session);
/* Closes the file of a session that was made before a fork. After that, only
 * vst_session_destroy may be called, at any time: freeing memory makes a child
 * copy pages of its parent. Does nothing in the process that made the
 * session. */
VST_API void vst_session_close_file(vst_session *session);

/* Returns whether the session is recording. False in a forked child. */
VST_API bool vst_session_is_recording(const vst_session *session);
/* Returns the recording to define and record into; valid until destroy. */
VST_API vst_recording *vst_session_recording(vst_session *session);
/* Returns how many records could not be kept so far. If another process cut the
 * file, this includes the words behind the cut in chunks that were being
 * written (a record has one or more words): a thread's words as soon as that
 * thread records again or ends, all other threads' words at the stop. Chunks
 * that were sealed before the cut are not included, nor are words of a
 * free-running thread that neither records nor ends before the stop. In that
 * case the number is a lower bound. */
VST_API uint64_t vst_session_lost(const vst_session *session);
/* Returns whether another process made the file shorter during the recording.
 * Later records are lost and counted; the file is left as it is. */
VST_API bool vst_session_was_cut(const vst_session *session);
/* Call from a handler of SIGBUS: a store to a file that was cut raises this
 * signal, which otherwise ends the program. address is the fault's. Returns
 * true if address lay in a recording's file: memory has replaced the file's
 * pages, the recording takes no more records (vst_session_was_cut), and the
 * handler can return. Any thread, inside a signal handler. */
VST_API bool vst_storage_rescue(const void *address);
typedef struct vst_session_storage {
    bool is_copied;
    /* The members below say nothing unless is_copied. */
    const char *local;       /* the local file; NULL if it has no name */
    const char *file_system; /* where the target lies; "" if nobody asked */
    bool is_complete;        /* the target lacks nothing */
    bool is_freed;    /* the target has chunks that the local file lacks */
    int sys_errno;    /* why the target could not be written last, or 0 */
    int copier_errno; /* why no copier runs, or 0 */
} vst_session_storage;
/* Reports where the session's records are. The texts stay valid until
 * destroy. */
VST_API void vst_session_get_storage(const vst_session *session,
                                     vst_session_storage *storage);
/* Waits until everything in a finished file is at its path, but at most
 * timeout_ns. Returns whether it is. */
VST_API bool vst_session_wait_storage(vst_session *session,
                                      uint64_t timeout_ns);
/* Opens what was recorded so far; the caller closes the trace
 * (vst_trace_close). Errors as for vst_trace_open_fd. */
VST_API vst_status vst_session_open_trace(vst_session *session,
                                          vst_trace **trace, vst_error *error);
/* Writes a finished copy of what was recorded so far; the file appears under
 * its name when it is complete. If the recording has checkpoints and window_ns
 * is not 0, the copy holds the last window_ns, otherwise everything. note is
 * JSON, kept as the metadata "vestige.snapshot", or NULL. Any thread may call
 * this between create and destroy, several threads concurrently; recording
 * threads do not wait. */
VST_API vst_status vst_session_snapshot(const vst_session *session,
                                        const char *path, bool overwrite,
                                        uint64_t window_ns, const char *note,
                                        vst_error *error);
/* Makes the collectors deliver what the devices have done so far. Call between
 * start and stop; any thread. */
VST_API void vst_session_flush_devices(vst_session *session);
/* Stops the collectors before vst_session_stop() would. For programs that hold
 * a lock at the stop which the devices' libraries might wait for. */
VST_API void vst_session_stop_devices(vst_session *session);
/* Copies the next line that a collector has reported ("cuda: …"), cut to the
 * size and NUL-terminated. Returns false if there is none. */
VST_API bool vst_session_next_note(vst_session *session, char *line,
                                   size_t size);
/* Calls the memory tracer's export_memory_history. Returns VST_E_STATE if no
 * memory tracer was made. */
VST_API vst_status vst_session_export_memory(vst_session *session,
                                             const char *path,
                                             vst_error *error);
/* Returns the tracer to replay with; valid until destroy. */
VST_API vst_tracer *vst_session_tracer(vst_session *session);

#ifdef __cplusplus
}
#endif
#endif
