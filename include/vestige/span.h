/* What replay produces and exporters consume: spans, instants, counters and
 * losses, thread by thread, in nanoseconds of the wall clock. */
#ifndef VESTIGE_SPAN_H
#define VESTIGE_SPAN_H

#include <stdbool.h>
#include <stddef.h>

#include "status.h"
#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VST_SPAN_OPEN_AT_START = 1, /* was running when recording began, or when
                                 * what is kept of it begins */
    VST_SPAN_OPEN_AT_END = 2,   /* was running when recording ended */
    VST_SPAN_RAISED = 4,        /* left by an exception */
    VST_SPAN_CUT = 8,           /* its exit was never seen */
    VST_SPAN_RESUMED = 16,      /* goes on after its stack was switched away */
    VST_SPAN_SUSPENDED = 32,    /* ends because its stack is switched away */
    VST_SPAN_ASYNC = 64,        /* overlaps its neighbours: not on the stack */
    VST_SPAN_RECURSIVE =
        128,               /* is open further out, if the sink asked for it */
    VST_SPAN_IMPORT = 256, /* of a module, see vst_import */
    VST_SPAN_MACHINERY = 512, /* another frame of the import system, what that
                               * calls in C, or the code of the module */
    VST_SPAN_STEP = 1024      /* is a step of a task, or a part of one */
};

enum { VST_RUNNING_UNKNOWN = -1 };

/* What a span of VST_SPAN_IMPORT imported. A module is named by the file of its
 * code. If no code of it ran (it is written in C, or a namespace package, or
 * its parent has imported it before, or it was not found), a VST_ESCAPE_IMPORT
 * names it. Where there is neither, it is not named. */
typedef enum vst_import {
    VST_IMPORT_NONE = 0,
    VST_IMPORT_MODULE,    /* vst_span.module is the definition of its name */
    VST_IMPORT_EXTENSION, /* written in C, in a shared library */
    VST_IMPORT_BUILTIN,   /* written in C, a part of the interpreter */
    VST_IMPORT_NAMESPACE, /* a package that has no code */
    /* An exception, before any code of the module ran. vst_span.module may be
     * the definition of its name, else it is 0 */
    VST_IMPORT_FAILED,
    VST_IMPORT_UNKNOWN /* the trace does not tell */
} vst_import;

/* What is known of an operator beyond its arguments, see operator.h. */
typedef struct vst_operator {
    int64_t sequence; /* -1: none */
    uint32_t thread;  /* as the framework counts, 0: not known */
    uint32_t forward_thread;
    uint32_t scope;
    uint64_t record; /* of a node of the execution trace: its number; 0: none */
} vst_operator;

typedef struct vst_span {
    vst_id id;       /* definition */
    uint32_t thread; /* number in the trace, see trace.h */
    int64_t start_ns;
    int64_t end_ns;
    /* When it was left; end_ns is earlier where spans last as long as they ran,
     * or would have without the recorder. 0 beside the stack. */
    int64_t left_ns;
    uint64_t serial; /* 1, 2, 3 … in order of entering, over all threads */
    /* Serial of the enclosing span, 0 at a root. That one may leave the stack
     * (see vst_sink) and be VST_SPAN_ASYNC in the end. */
    uint64_t parent;
    uint64_t caller;     /* the same, but of the nearest one that is a call */
    int64_t children_ns; /* time spent in direct children */
    /* Of its duration, how long its thread had a processor; VST_RUNNING_UNKNOWN
     * where the trace does not tell. */
    int64_t running_ns;
    /* Of the rest, how long it could have run but the system let others run; as
     * running_ns. */
    int64_t preempted_ns;
    /* Of its duration, how long its thread waited for the language's own lock;
     * VST_RUNNING_UNKNOWN where the trace does not tell. */
    int64_t gil_ns;
    /* The same where there is no such lock: for locks of objects, and while the
     * world stood still. */
    int64_t paused_ns;
    /* What it would have taken without the recorder, more or less by
     * compensated_error_ns; VST_RUNNING_UNKNOWN where the trace does not tell
     * what records cost, or where some are missing. */
    int64_t compensated_ns, compensated_error_ns;
    /* What it allocated by itself, and with all that it called. */
    uint64_t self_bytes, total_bytes;
    uint64_t self_allocations, total_allocations;
    /* The same of a framework's allocator, whose blocks may lie in those; what
     * was freed is taken off. */
    int64_t self_framework_bytes, total_framework_bytes;
    uint32_t depth; /* 0 at a root */
    uint32_t flags;
    uint32_t place;    /* in the tree of calls, if the sink has one; else 0 */
    vst_import import; /* of VST_SPAN_IMPORT: what, and the module's code */
    vst_id module;
    uint32_t task;    /* number of the task that runs it, 0: none */
    const char *args; /* JSON members, NULL if none; valid during the call */
    size_t args_len;
    const vst_operator *op; /* NULL: no operator; valid during the call */
} vst_span;

/* How long the thread waited in a call of a function that only waits for what
 * that waits for; VST_RUNNING_UNKNOWN where the trace does not tell.
 */
static inline int64_t vst_span_waiting(const vst_span *span)
{
    int64_t ns = span->end_ns - span->start_ns;

    if (span->running_ns == VST_RUNNING_UNKNOWN)
        return VST_RUNNING_UNKNOWN;
    ns -= span->running_ns + span->preempted_ns;
    if (span->gil_ns != VST_RUNNING_UNKNOWN)
        ns -= span->gil_ns;
    if (span->paused_ns != VST_RUNNING_UNKNOWN)
        ns -= span->paused_ns;
    return ns > 0 ? ns : 0;
}

/* What became of an exception. */
typedef enum vst_exception_end {
    VST_NO_EXCEPTION = 0,
    VST_EXCEPTION_CAUGHT,
    VST_EXCEPTION_NOT_CAUGHT, /* it left the outermost call */
    VST_EXCEPTION_UNKNOWN     /* the records that would tell are missing */
} vst_exception_end;

/* A point in time. One of an exception (VST_ESCAPE_EXCEPTION) comes when it is
 * known who caught it: the call that it did not leave. A call that handled it
 * and raised it again did not catch it, nor did one whose `finally` or `with`
 * it passed. Its args are "raised at", "raised in" and, where that is known,
 * "caught in", which is null if nobody did. */
typedef struct vst_instant {
    vst_id id;
    uint32_t thread;
    int64_t time_ns;
    const char *args;
    size_t args_len;
    vst_exception_end end;
    vst_id raised_in, caught_in; /* calls; 0: none, or not known */
} vst_instant;

typedef struct vst_counter {
    vst_id id;
    uint32_t thread;
    int64_t time_ns;
    double value;
} vst_counter;

typedef enum vst_loss_kind {
    VST_LOSS_RECORDS = 1, /* so many could not be kept */
    VST_LOSS_GAP = 2,     /* the hooks were away; records is 0 */
    VST_LOSS_DROPPED = 3  /* so many words were dropped to stay within the limit
                           * of size or time, or lie before what was asked for */
} vst_loss_kind;

/* A stretch of a thread about which the trace knows nothing. */
typedef struct vst_loss {
    vst_loss_kind kind;
    uint32_t thread;
    int64_t start_ns;
    int64_t end_ns;
    uint64_t records;
} vst_loss;

/* A block of a framework's that was allocated, or freed (less than 0), while no
 * span was open on its thread; with vst_sink's every_block any block. */
typedef struct vst_loose_bytes {
    uint32_t thread;
    int64_t time_ns;
    int64_t bytes;
    uint64_t address;
    uint32_t depth; /* how many spans are open on the stack */
} vst_loose_bytes;

/* A wait that was recorded as such (VST_ESCAPE_WAIT). */
typedef struct vst_wait {
    uint32_t reason; /* vst_wait_reason */
    uint32_t thread;
    uint32_t holder; /* the thread that had what it waited for, 0: not known */
    vst_id id;       /* of the span that it is in, as serial is; 0: in none */
    uint64_t serial;
    int64_t start_ns;
    int64_t end_ns;
} vst_wait;

/* "gil", "lock", "io", "sleep", "child", "world", "object"; "" for none and for
 * other numbers. */
VST_API const char *vst_wait_reason_name(uint32_t reason);

struct vst_device_span;
struct vst_sink_inside;

/* ---- tasks --------------------------------------------------------------- */

/* What takes turns. */
typedef enum vst_task_kind {
    VST_TASK_OF_LOOP = 0, /* a task of asyncio */
    VST_TASK_GREENLET = 1,
    VST_TASK_HUB = 2 /* the greenlet that runs the loop of the others */
} vst_task_kind;

/* What made a task go on. */
typedef struct vst_task_waker {
    bool is_known;
    uint32_t task; /* whose step did, 0: a callback of the event loop, or calls
                    * that are in no step */
    uint32_t thread;
    vst_id id; /* of the function that did, or of the task that ended */
    int64_t time_ns;
} vst_task_waker;

/* What sink->task gets, when it is met. Texts are valid during the call. */
typedef struct vst_task_event {
    vst_task_what what;
    uint32_t task; /* of a WAKES, SUBMITS or RUNS: the one whose step this is
                    * inside of, 0: none */
    uint32_t thread;
    int64_t time_ns; /* of a STEP: when the call began */
    vst_id id;       /* of the span on top, 0: none */
    bool
        goes_on; /* of a STEP: it lies inside a step of the same task already */
    const char *name; /* NULL: it is not told here */
    size_t name_len;
    vst_task_awaits awaits;
    vst_id awaiting;
    uint64_t address;
    uint32_t awaited; /* number of a task */
    bool raised;
    vst_task_kind kind;   /* of a STEP */
    vst_task_waker waker; /* of a STEP of a greenlet: what switched to it */
} vst_task_event;

/* What is recorded of a node of the execution trace (VST_ESCAPE_NODE, see
 * graph.h), when it is met: the span is open. Valid during the call. */
typedef struct vst_node {
    vst_id id; /* of the span, as serial and thread are */
    uint32_t thread;
    uint64_t serial;
    int64_t time_ns;
    const vst_operator *op; /* of what it was given, else NULL */
    const uint64_t *payload;
    uint32_t words; /* 1 at least */
} vst_node;

/* Where they go. A function left NULL drops its events. The spans of one thread
 * arrive in the order in which they end, those that another thread ends when
 * they begin. A status other than VST_OK ends the replay and is returned by it.
 */
typedef struct vst_sink {
    void *ctx;
    /* Mark spans of functions that are open further out already, which costs a
     * look-up a span. */
    bool recursion;
    /* Deliver spans without args: making their text takes time. */
    bool no_args;
    /* Do not tell imports apart (VST_SPAN_IMPORT, VST_SPAN_MACHINERY): that
     * takes a look at each call. */
    bool no_imports;
    vst_status (*span)(void *ctx, const vst_span *span);
    /* The frame at this depth left the stack without becoming a span there: it
     * goes on beside the stack, or ended beside it. Spans that ended inside it
     * belong to the frame below. A sink that keeps, for each depth, the spans
     * that wait for the span around them needs this to know the whole tree. */
    vst_status (*leave)(void *ctx, uint32_t depth);
    vst_status (*instant)(void *ctx, const vst_instant *instant);
    vst_status (*counter)(void *ctx, const vst_counter *counter);
    vst_status (*loss)(void *ctx, const vst_loss *loss);
    vst_status (*loose)(void *ctx, const vst_loose_bytes *loose);
    vst_status (*node)(void *ctx, const vst_node *node);
    vst_status (*wait)(void *ctx, const vst_wait *wait);
    /* What happens to tasks. */
    vst_status (*task)(void *ctx, const vst_task_event *event);
    /* Deliver each block of a framework to `loose`, those inside of spans,
     * too. */
    bool every_block;
    /* Args of operators tell which tensors they were given, if that is
     * recorded (VST_FACT_TENSORS_AT, see operator.h). */
    bool tensors;
    /* Args tell what spans would have taken without the recorder, where that is
     * known: "compensated_us" and "compensated_error_us". */
    bool tells_compensated;
    /* Of operators: named inputs that files do not show (VST_FACT_KEYWORDS). */
    bool keywords;
    /* What devices did, see device.h. */
    vst_status (*device)(void *ctx, const struct vst_device_span *span);
    /* NULL: only the core sets this, in copies of its own. A tracer whose
     * get_events hands another sink to the matcher passes the pointer on. */
    const struct vst_sink_inside *inside;
} vst_sink;

#ifdef __cplusplus
}
#endif
#endif
