/* Reading a trace: a finished file, a torn one, one that is still being
 * written, or the recording of a live session. One thread at a time uses a
 * vst_trace. */
#ifndef VESTIGE_TRACE_H
#define VESTIGE_TRACE_H

#include <stdbool.h>

#include "record.h"
#include "span.h"
#include "status.h"
#include "tracer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vst_trace vst_trace;

typedef struct vst_trace_info {
    uint32_t version;
    uint32_t pid;
    uint8_t trace_id[16];
    bool clean;       /* a stop ended it, not the death of its process */
    uint32_t threads; /* threads that recorded something */
    uint32_t windows; /* periods between a start and a stop */
    uint64_t words;   /* 8-byte words of records */
    uint64_t lost;    /* records that could not be kept */
    uint64_t dropped; /* words dropped to stay within the size or time limit */
    uint64_t bytes;   /* size of the file */
    uint64_t damaged_at; /* first byte that cannot be read; in a bounded file
                            later ones may be readable; 0: undamaged */
    int64_t start_ns;    /* wall clock, of the range that is shown */
    int64_t complete_ns; /* from here on nothing was dropped */
    int64_t end_ns;
    vst_clock_kind clock;
    bool packed; /* the file is packed; `bytes` is its unpacked size */
    uint64_t packed_bytes;    /* size of the packed file now; 0: not packed */
    uint64_t min_duration_ns; /* shorter calls were left out; 0: none */
    uint64_t left_out; /* calls left out; a few too low if the process died */
    bool switches;  /* has the times when threads were running on a processor */
    bool gil_waits; /* has waits for the language's lock */
    bool object_waits; /* has waits for locks of objects */
} vst_trace_info;

typedef struct vst_trace_thread {
    uint32_t number;
    uint64_t system_tid;
    uint64_t words;
    const char *name; /* "" if it has none */
    size_t name_len;
    uint64_t left_out; /* calls; exact only if the thread ended or the recording
                          stopped */
} vst_trace_thread;

/* Opens a file; the caller closes *trace. Returns VST_E_NOT_A_TRACE,
 * VST_E_VERSION or VST_E_DAMAGED if nothing can be read; a file that is damaged
 * further on opens, and vst_trace_info.damaged_at says where. Also VST_E_IO,
 * VST_E_NOMEM, VST_E_NO_ZSTD. */
VST_API vst_status vst_trace_open(const char *path, vst_trace **trace,
                                  vst_error *error);
/* Opens a trace from an open file. Reads through a duplicate of fd. */
VST_API vst_status vst_trace_open_fd(int fd, vst_trace **trace,
                                     vst_error *error);
/* Frees the trace and everything that the functions below returned for it.
 * Ignores NULL. */
VST_API void vst_trace_close(vst_trace *trace);

/* Fills *info. */
VST_API void vst_trace_get_info(const vst_trace *trace, vst_trace_info *info);
/* Shifts all times of the trace by offset_ns against its own clock, to align
 * files of several machines; 0 undoes a shift. Returns VST_E_ARGUMENT, and
 * changes nothing, if the shift is too large. */
VST_API vst_status vst_trace_set_offset(vst_trace *trace, int64_t offset_ns);
/* Threads in the order of their numbers; index is less than the count. */
VST_API size_t vst_trace_thread_count(const vst_trace *trace);
VST_API const vst_trace_thread *vst_trace_thread_at(const vst_trace *trace,
                                                    size_t index);
/* Returns the thread with this number, or NULL. */
VST_API const vst_trace_thread *vst_trace_thread_find(const vst_trace *trace,
                                                      uint32_t number);
/* Returns NULL if the trace does not define this id. */
VST_API const vst_definition *vst_trace_definition(const vst_trace *trace,
                                                   vst_id id);
/* Returns the largest id that the trace defines. An array may be sized by it:
 * opening a trace drops ids that are too large for the size of the file. */
VST_API vst_id vst_trace_definition_max(const vst_trace *trace);
/* Returns the value of a key as JSON, or NULL if the key was not set. */
VST_API const char *vst_trace_metadata(const vst_trace *trace, const char *key);
/* Returns the value with this index, and sets *key if key is not NULL; returns
 * NULL behind the last. */
VST_API const char *vst_trace_metadata_at(const vst_trace *trace, size_t index,
                                          const char **key);

enum { VST_WINDOW_LAST = -1, VST_WINDOW_ALL = -2 };
/* Means the window with this number and all later ones. */
#define VST_WINDOW_SINCE(number) (-3 - (number))

/* Replays a window into sink, thread after thread. The tracer's get_events
 * turns the events into spans; if tracer is NULL, replay's own matcher does. */
VST_API vst_status vst_trace_replay(vst_trace *trace, int window,
                                    vst_tracer *tracer, const vst_sink *sink,
                                    vst_error *error);

/* Restricts replays and exports to [from_ns, to_ns], inclusive. Records before
 * the range are counted as dropped, and spans open at its beginning have
 * VST_SPAN_OPEN_AT_START. Spans that continue after the range end with it and
 * have VST_SPAN_OPEN_AT_END, with the arguments and the memory recorded by
 * then. A block that is freed after the range counts as not freed. Before the
 * range, a replay reads only enough of the file to know what was open; after
 * the range, nothing. INT64_MIN and INT64_MAX mean no bound; a file bounded in
 * time has a bound of its own. Times include the offset that was set before
 * this call. */
VST_API void vst_trace_set_range(vst_trace *trace, int64_t from_ns,
                                 int64_t to_ns);

/* Makes running time the measure: in replays, and in exports that sum up, a
 * span lasts as long as its thread was running on a processor, counted from the
 * span's start. Spans with unknown running time last 0 ns, and their running_ns
 * is VST_RUNNING_UNKNOWN. Instants, counters, losses and waits keep their
 * times. */
VST_API void vst_trace_set_by_running(vst_trace *trace, bool by_running);

/* Makes compensated time the measure: a span lasts as long as it would have
 * without the recorder (vst_span's compensated_ns), counted from the span's
 * start. Spans with unknown compensated time keep their duration. */
VST_API void vst_trace_set_compensated(vst_trace *trace, bool compensated);

/* Returns how many exits the last vst_trace_replay() with replay's own matcher
 * ignored because their span was not open. */
VST_API uint64_t vst_trace_unmatched_exits(const vst_trace *trace);

/* Calls fn about every 50 ms of a long replay or export, on the calling thread,
 * with the share that is done; if fn returns anything but 0, the work ends with
 * VST_E_CANCELLED. With fn NULL, nothing is called any more. */
typedef int (*vst_progress_fn)(void *ctx, double done);
VST_API void vst_trace_set_progress(vst_trace *trace, vst_progress_fn fn,
                                    void *ctx);

/* Writes the trace in the format that options or the suffix of path name (each
 * suffix also with .gz), through a temporary file that is renamed at the end.
 * Returns VST_E_ARGUMENT if there is no such format. */
typedef struct vst_export_options {
    int window; /* VST_WINDOW_LAST by default */
    /* Leave out the event of each allocation and free; the counter of live
     * memory stays. */
    bool no_memory_events;
    /* The format's name ("chrome", …); NULL: use the suffix of path. */
    const char *format;
    /* For an execution trace: the observer whose nodes are written (see
     * graph.h); 0: all. */
    unsigned observer;
    /* If not NULL, set to the depth from which calls were summed up or frames
     * left out, because formats that repeat whole stacks (folded, pprof) would
     * grow with the square of the depth; 0 if nothing was. */
    uint32_t *cut_depth;
} vst_export_options;

VST_API vst_status vst_trace_export(vst_trace *trace, const char *path,
                                    const vst_export_options *options,
                                    vst_error *error);

/* Writes several traces as one document and one timeline, with a process for
 * each trace and arrows from processes to the processes that they started. The
 * document has the metadata of the first trace. Progress covers all traces and
 * goes to the function set for the first. The traces must differ. */
VST_API vst_status vst_traces_export(vst_trace *const *traces, size_t count,
                                     const char *path,
                                     const vst_export_options *options,
                                     vst_error *error);

/* Writes a finished copy of a trace whose process died, with everything that
 * can be read of it. Reading does not require this: all functions here open
 * such a trace as it is. With overwrite, `to` is replaced once the copy is
 * complete; `to` may be `from`. */
VST_API vst_status vst_trace_recover(const char *from, const char *to,
                                     bool overwrite, vst_error *error);

/* Packing compresses a trace; every function here reads a packed trace like an
 * unpacked one, and unpacking gives the same bytes again. `to` may be `from`,
 * which stays until the new file is complete and on disk; do not replace a file
 * that is still being recorded this way. Returns VST_E_STATE if the trace is
 * packed, or unpacked, already; VST_E_NO_ZSTD if the library was built without
 * zstd. A packed trace that cannot be unpacked whole can be recovered as far as
 * it is readable. */
typedef struct vst_pack_options {
    int level; /* zstd's level, 1 to 19; 0: VST_PACK_LEVEL; unused for unpacking
                */
    bool overwrite;
    vst_progress_fn progress;
    void *progress_ctx;
} vst_pack_options;

enum { VST_PACK_LEVEL = 3, VST_PACK_LEVEL_MAX = 19 };

/* Both write `to` through a temporary file that is renamed at the end. They
 * need no vst_trace, and any thread may call them. */
VST_API vst_status vst_trace_pack(const char *from, const char *to,
                                  const vst_pack_options *options,
                                  vst_error *error);
VST_API vst_status vst_trace_unpack(const char *from, const char *to,
                                    const vst_pack_options *options,
                                    vst_error *error);

#ifdef __cplusplus
}
#endif
#endif
