/* A trace that is being read: a file, finished, torn or still being written, or
 * the recording of a live session. One thread at a time uses a vst_trace. */
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
    bool clean;       /* ended by a stop, not by the death of its process */
    uint32_t threads; /* threads that recorded something */
    uint32_t windows; /* stretches between a start and a stop */
    uint64_t words;   /* 8-byte words of records */
    uint64_t lost;    /* records that could not be kept */
    uint64_t dropped; /* words dropped to stay within the size or time limit */
    uint64_t bytes;   /* size of the file */
    uint64_t damaged_at; /* no byte from here on can be read, in a bounded file
                          * some that follow; 0: undamaged */
    int64_t start_ns;    /* wall clock, of what is there to show: the range */
    int64_t complete_ns; /* nothing was dropped from here on */
    int64_t end_ns;
    vst_clock_kind clock;
    bool packed; /* the file is packed; bytes is its size before that */
    uint64_t packed_bytes;    /* its size now; 0: not packed */
    uint64_t min_duration_ns; /* calls that took less were left out; 0: none */
    uint64_t left_out; /* calls left out; a few less if its process died */
    bool switches;     /* it tells when threads had a processor */
    bool gil_waits;    /* and how long they waited for the language's lock */
    bool object_waits; /* or, where there is none, for locks of objects */
} vst_trace_info;

typedef struct vst_trace_thread {
    uint32_t number;
    uint64_t system_tid;
    uint64_t words;
    const char *name; /* "" if it has none */
    size_t name_len;
    uint64_t left_out; /* calls, as far as it ended or the recording stopped */
} vst_trace_thread;

/* Opens a file; *trace is the caller's to close. VST_E_NOT_A_TRACE, _VERSION,
 * _DAMAGED: nothing of it can be read; a file that is damaged further on opens,
 * and vst_trace_info.damaged_at says where. VST_E_IO, _NOMEM, _NO_ZSTD. */
VST_API vst_status vst_trace_open(const char *path, vst_trace **trace,
                                  vst_error *error);
/* The same of a file that is open. Reads through a duplicate of fd. */
VST_API vst_status vst_trace_open_fd(int fd, vst_trace **trace,
                                     vst_error *error);
/* Frees the trace, and with it all that functions below returned of it. NULL is
 * nothing. */
VST_API void vst_trace_close(vst_trace *trace);

/* Fills *info. */
VST_API void vst_trace_get_info(const vst_trace *trace, vst_trace_info *info);
/* Shifts all times of the trace by offset_ns against its own clock, to align
 * files of several machines. 0 undoes it. VST_E_ARGUMENT: that is too far;
 * nothing changed. */
VST_API vst_status vst_trace_set_offset(vst_trace *trace, int64_t offset_ns);
/* Threads in the order of their numbers; index is less than the count. */
VST_API size_t vst_trace_thread_count(const vst_trace *trace);
VST_API const vst_trace_thread *vst_trace_thread_at(const vst_trace *trace,
                                                    size_t index);
/* By number; NULL if there is none. */
VST_API const vst_trace_thread *vst_trace_thread_find(const vst_trace *trace,
                                                      uint32_t number);
/* NULL for an id that the trace does not define. */
VST_API const vst_definition *vst_trace_definition(const vst_trace *trace,
                                                   vst_id id);
/* The largest id it defines. An array may be sized by it: ids that the size of
 * the file does not explain are left out when a trace is opened. */
VST_API vst_id vst_trace_definition_max(const vst_trace *trace);
/* Returns the value of a key as JSON; NULL: it was not set. */
VST_API const char *vst_trace_metadata(const vst_trace *trace, const char *key);
/* The same by index, and the key if it is not NULL; NULL: there are no more. */
VST_API const char *vst_trace_metadata_at(const vst_trace *trace, size_t index,
                                          const char **key);

enum { VST_WINDOW_LAST = -1, VST_WINDOW_ALL = -2 };
/* The window of a number, and all that follow it. */
#define VST_WINDOW_SINCE(number) (-3 - (number))

/* Replays a window into sink, thread after thread. The tracer's get_events
 * turns the events into spans; with NULL replay's own matcher does. */
VST_API vst_status vst_trace_replay(vst_trace *trace, int window,
                                    vst_tracer *tracer, const vst_sink *sink,
                                    vst_error *error);

/* Restricts replays and exports to [from_ns, to_ns], inclusive. Records before
 * the range are counted as dropped, and spans open at its beginning have
 * VST_SPAN_OPEN_AT_START. Spans that go on after the range end with it and have
 * VST_SPAN_OPEN_AT_END, with the arguments and the memory recorded by then. A
 * block that is freed after the range is not freed in it. No more of the file
 * is read than it takes to know what was open; of what comes after the range,
 * nothing. INT64_MIN, INT64_MAX: no such bound; a file bounded in time has one
 * of its own. Times include the offset that was set before this call. */
VST_API void vst_trace_set_range(vst_trace *trace, int64_t from_ns,
                                 int64_t to_ns);

/* Makes running time the measure: in replays, and in exports that add up, a
 * span lasts as long as its thread had a processor, from its start on. Spans of
 * which that is not known last no time, and their running_ns says so. Instants,
 * counters, losses and waits keep their times. */
VST_API void vst_trace_set_by_running(vst_trace *trace, bool by_running);

/* The same: a span lasts as long as it would have without the recorder
 * (vst_span's compensated_ns), from its start on. Spans of which that is not
 * known keep their length. */
VST_API void vst_trace_set_compensated(vst_trace *trace, bool compensated);

/* Returns how many exits the last vst_trace_replay() with replay's own matcher
 * ignored, because what they leave was not open. */
VST_API uint64_t vst_trace_unmatched_exits(const vst_trace *trace);

/* Has fn called about every 50 ms of a long replay or export, by the thread
 * that asked for it, with the share done; a return other than 0 cancels, and
 * the status is VST_E_CANCELLED. fn NULL: no more. */
typedef int (*vst_progress_fn)(void *ctx, double done);
VST_API void vst_trace_set_progress(vst_trace *trace, vst_progress_fn fn,
                                    void *ctx);

/* Writes the trace in the format that options or the suffix of path name, each
 * also with .gz behind it, through a temporary file that is renamed at the end.
 * VST_E_ARGUMENT: there is no such format. */
typedef struct vst_export_options {
    int window; /* VST_WINDOW_LAST unless said otherwise */
    /* Leaves out the event of each allocation and free; the counter of live
     * memory stays. */
    bool no_memory_events;
    /* The format's name ("chrome", …); NULL: the suffix of path names it. */
    const char *format;
    /* Of an execution trace: whose nodes (see graph.h); 0: all. */
    unsigned observer;
    /* If not NULL: gets the depth from which calls were summed up, or frames
     * left out, because formats that repeat whole stacks (folded, pprof) would
     * grow with its square; 0 where nothing was. */
    uint32_t *cut_depth;
} vst_export_options;

VST_API vst_status vst_trace_export(vst_trace *trace, const char *path,
                                    const vst_export_options *options,
                                    vst_error *error);

/* The same for several traces: one document and one timeline, a process for
 * each trace, arrows from the processes that started others. Metadata of the
 * document is that of the first trace. Progress covers all traces and goes to
 * the function set for the first one. The traces must differ. */
VST_API vst_status vst_traces_export(vst_trace *const *traces, size_t count,
                                     const char *path,
                                     const vst_export_options *options,
                                     vst_error *error);

/* Writes a finished copy of a trace whose process died: all that can be read
 * of it, and no more. No function here needs one. With overwrite, `to` is
 * replaced once the copy is complete; it may be `from`. */
VST_API vst_status vst_trace_recover(const char *from, const char *to,
                                     bool overwrite, vst_error *error);

/* A trace at rest: compressed, and read by every function here as it was
 * before. Unpacking gives the same bytes again. As with recover, `to` may be
 * `from`, which stays until the other is complete and on disk; a file that is
 * still being recorded must not be replaced this way. VST_E_STATE if it is
 * packed, or unpacked, already; VST_E_NO_ZSTD where the library was built
 * without. What cannot be unpacked whole, recover copies as far as it goes. */
typedef struct vst_pack_options {
    int level; /* of zstd, 1 to 19; 0: VST_PACK_LEVEL. Unpacking: unused */
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
