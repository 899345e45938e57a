/* A session is one recording: it makes the registered tracer, gives it a file
 * to record into, and hands out what was recorded. A process records one
 * session at a time. The thread that calls these functions need not be the same
 * each time; two must not call at once. */
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

typedef struct vst_session_options {
    const char *path; /* NULL: an unlinked temporary file, or memory */
    bool overwrite;   /* replace an existing file */
    bool gc;          /* record garbage collections */
    bool memory;      /* make the registered memory tracer, and start it */
    /* Bounds: the newest records stay, older ones are dropped and counted. */
    uint64_t max_size; /* bytes of the file, definitions may exceed it; at least
                        * 1 MiB, 0: any */
    uint64_t last_ns;  /* keep the records of the last so many ns; 0: all */
    /* Begin each chunk with what was open then, so that it can be read without
     * those before it. Bounds imply it. */
    bool checkpoints;
    /* Calls that took less (vst_record_end_of_call), and in which nothing else
     * was recorded that stays, are left out and counted; 0: none. */
    uint64_t min_duration_ns;
    /* Record when each thread that records had a processor, as far as the
     * system tells; see vst_session_can_see_switches. */
    bool sched;
    /* Make the registered collectors (device.h), and start them. */
    bool devices;
    /* Calls are recorded only to this depth, which counts from the calls that
     * are open when the recording begins; with `only`, from the functions that
     * it is about. 0: to any. */
    uint32_t max_depth;
    /* Calls are recorded only in functions that the tracer names
     * (vst_recording_record_inside). */
    bool only;
    /* For the registered tracers (vst_tracer_context), which know what it is.
     * It must be there until the first start has returned. */
    const void *tracer_options, *memory_tracer_options;
} vst_session_options;

/* Makes a session and its file; nothing is recorded yet. The options are not
 * needed any more when this returns, but for what tracer_options point to.
 * *session is the caller's to destroy, and is not set if this fails:
 * VST_E_BUSY, because this process is recording; VST_E_EXISTS, _IO, _NOMEM. */
VST_API vst_status vst_session_create(const vst_session_options *options,
                                      vst_session **session, vst_error *error);
/* 0, or the errno value with which the system refuses to tell the calling
 * thread of its switches. */
VST_API int vst_session_can_see_switches(void);
/* Starts recording; after a stop, goes on in a new window of the same file.
 * VST_E_BUSY: this process records another session. VST_E_STATE: it is
 * recording already, or finished, or was made before a fork. Or what the
 * tracer's start returned; then nothing is recorded. */
VST_API vst_status vst_session_start(vst_session *session, vst_error *error);
/* Stops recording: no hook records after this returns. VST_E_STATE: it was not
 * recording. */
VST_API vst_status vst_session_stop(vst_session *session);
/* Stops if need be, and finishes the file. What was recorded can still be read.
 * VST_E_IO: the file was replaced, or the room that it did not need could not
 * be given back. */
VST_API vst_status vst_session_finish(vst_session *session, vst_error *error);
/* Finishes if need be, and frees the session, its tracers and collectors.
 * Traces that were opened of it stay. NULL is nothing. */
VST_API void vst_session_destroy(vst_session *session);

/* Whether it is between start and stop. False in a forked child. */
VST_API bool vst_session_is_recording(const vst_session *session);
/* The recording to define and record into; valid until destroy. */
VST_API vst_recording *vst_session_recording(vst_session *session);
/* How many records could not be kept, so far. If another process cut the file,
 * the words behind the cut in chunks that were being written are counted too (a
 * record has one or more words): those of a thread as soon as it records again
 * or ends, those of all others at the stop. What was sealed before the cut is
 * not counted, nor is a free-running thread that does neither before the stop.
 * The number is then the least that was lost. */
VST_API uint64_t vst_session_lost(const vst_session *session);
/* Whether another process made the file shorter while it was written. Later
 * records are lost, and counted; the file is left as it is. */
VST_API bool vst_session_was_cut(const vst_session *session);
/* For a handler of SIGBUS, which a store to a file that was cut raises and
 * which otherwise ends the program; address is that of the fault. Returns
 * whether it lay in a recording's file: then memory is in its place, the
 * recording takes no more (vst_session_was_cut), and the handler can return.
 * Any thread, inside of a signal handler. */
VST_API bool vst_storage_rescue(const void *address);
/* Opens what was recorded so far; the caller closes it (vst_trace_close).
 * Errors as vst_trace_open_fd. */
VST_API vst_status vst_session_open_trace(vst_session *session,
                                          vst_trace **trace, vst_error *error);
/* Writes a finished copy of what was recorded so far, which appears under its
 * name when it is complete. Of a recording whose chunks can be read alone it
 * holds the last window_ns; of any other, and with 0, all of it. note is JSON,
 * kept as the metadata "vestige.snapshot", or NULL. Any thread may call this
 * between create and destroy, several at once; threads that record do not wait.
 */
VST_API vst_status vst_session_snapshot(const vst_session *session,
                                        const char *path, bool overwrite,
                                        uint64_t window_ns, const char *note,
                                        vst_error *error);
/* Has the collectors deliver what devices have done so far. Between start and
 * stop, by any thread. */
VST_API void vst_session_flush_devices(vst_session *session);
/* Stops the collectors ahead of vst_session_stop(), which does it otherwise:
 * for programs with a lock that the devices' libraries might wait for. */
VST_API void vst_session_stop_devices(vst_session *session);
/* Copies the next line that a collector has told, "cuda: …", cut to the size
 * and ended by NUL. False: there is none. */
VST_API bool vst_session_next_note(vst_session *session, char *line,
                                   size_t size);
/* The memory tracer's export_memory_history; VST_E_STATE if none was made. */
VST_API vst_status vst_session_export_memory(vst_session *session,
                                             const char *path,
                                             vst_error *error);
/* The tracer to replay with, until destroy. */
VST_API vst_tracer *vst_session_tracer(vst_session *session);

#ifdef __cplusplus
}
#endif
#endif
