/* Spans, instants, counters and losses: replay produces them and exporters
 * consume them, thread by thread, in nanoseconds of the wall clock. */
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
    VST_SPAN_OPEN_AT_START =
        1, /* was running when recording began, or when the kept part begins */
    VST_SPAN_OPEN_AT_END = 2, /* was running when recording ended */
    VST_SPAN_RAISED = 4,      /* left by an exception */
    VST_SPAN_CUT = 8,         /* no exit was recorded */
    VST_SPAN_RESUMED = 16,    /* continues after its stack was switched away */
    VST_SPAN_SUSPENDED = 32,  /* ends because its stack is switched away */
    VST_SPAN_ASYNC = 64, /* overlaps its neighbours; is not on the call stack */
    VST_SPAN_RECURSIVE =
        128, /* an outer call of this function is open; only if the sink asks */
    VST_SPAN_IMPORT = 256, /* is the import of a module, see vst_import */
    VST_SPAN_MACHINERY =
        512, /* belongs to an import: a frame of the import system, a C function
                that such a frame calls, or the code of the module */
    VST_SPAN_STEP = 1024 /* is a step of a task, or a part of a step */
};

enum { VST_RUNNING_UNKNOWN = -1 };

/* The kind of module that a span of VST_SPAN_IMPORT imported. The file of a
 * module's code names the module. If no code of the module ran (it is written
 * in C, is a namespace package, was imported earlier by its parent, or was not
 * found), a VST_ESCAPE_IMPORT names it. Without such an escape the module has
 * no name. */
typedef enum vst_import {
    VST_IMPORT_NONE = 0,
    VST_IMPORT_MODULE,    /* vst_span.module is the definition of its name */
    VST_IMPORT_EXTENSION, /* written in C, in a shared library */
    VST_IMPORT_BUILTIN,   /* written in C, a part of the interpreter */
    VST_IMPORT_NAMESPACE, /* a namespace package, which has no code */
    /* an exception ended the import before any code of the module ran;
     * vst_span.module may be the definition of the module's name, else it is 0
     */
    VST_IMPORT_FAILED,
    VST_IMPORT_UNKNOWN /* the trace does not say which */
} vst_import;

/* Facts about an operator in addition to its arguments, see operator.h. */
typedef struct vst_operator {
    int64_t sequence; /* -1: none */
    uint32_t thread;  /* the framework's number, 0: not known */
    uint32_t forward_thread;
    uint32_t scope;
    uint64_t record; /* number of the node in the execution trace; 0: none */
} vst_operator;

typedef struct vst_span {
    vst_id id;       /* definition */
    uint32_t thread; /* number in the trace, see trace.h */
    int64_t start_ns;
    int64_t end_ns;
    /* When the call was left. end_ns is earlier if spans last as long as they
     * ran, or as they would have lasted without the recorder. 0 for a span that
     * is not on the call stack. */
    int64_t left_ns;
    uint64_t serial; /* 1, 2, 3 … in order of entering, over all threads */
    /* Serial of the enclosing span, 0 at a root. The enclosing span may leave
     * the stack (see vst_sink.leave) and become VST_SPAN_ASYNC. */
    uint64_t parent;
    uint64_t caller;     /* serial of the nearest enclosing call */
    int64_t children_ns; /* time spent in direct children */
    /* How much of its duration its thread was running on a processor;
     * VST_RUNNING_UNKNOWN if the trace does not say. */
    int64_t running_ns;
    /* How long its thread could have run but the system let other threads run;
     * VST_RUNNING_UNKNOWN if the trace does not say. */
    int64_t preempted_ns;
    /* How much of its duration its thread waited for the language's own lock;
     * VST_RUNNING_UNKNOWN if the trace does not say. */
    int64_t gil_ns;
    /* For builds without such a lock: how long its thread waited for locks of
     * objects, and while the world was stopped. */
    int64_t paused_ns;
    /* Its duration without the recorder's cost, with the error of this
     * estimate. VST_RUNNING_UNKNOWN if the trace does not say what records
     * cost, or if some are missing. */
    int64_t compensated_ns, compensated_error_ns;
    /* Bytes that it allocated itself, and including the calls inside. */
    uint64_t self_bytes, total_bytes;
    uint64_t self_allocations, total_allocations;
    /* Bytes of a framework's allocator (their blocks may lie inside the bytes
     * above), minus the freed bytes. */
    int64_t self_framework_bytes, total_framework_bytes;
    uint32_t depth; /* 0 at a root */
    uint32_t flags;
    /* place in the tree of calls, or 0 if the sink has no tree */
    uint32_t place;
    /* for VST_SPAN_IMPORT: the kind and code of the module */
    vst_import import;
    vst_id module;
    uint32_t task; /* number of the task that runs it, or 0 */
    /* Number of the stack that says where it was called: its innermost call is
     * the nearest open function of the language around the span, at the line
     * that called. 0: not known. */
    uint32_t called_at;
    /* Spans that are no calls of the language lie between the two. */
    bool called_through;
    const char *args; /* JSON members, NULL if none; valid during the call */
    size_t args_len;
    /* NULL if it is no operator; valid during the call */
    const vst_operator *op;
} vst_span;

/* Returns how long the thread waited, if the span is a call of a function that
 * only waits; VST_RUNNING_UNKNOWN if the trace does not say. */
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

/* How an exception ended. */
typedef enum vst_exception_end {
    VST_NO_EXCEPTION = 0,
    VST_EXCEPTION_CAUGHT,
    VST_EXCEPTION_NOT_CAUGHT, /* the exception left the outermost call */
    VST_EXCEPTION_UNKNOWN     /* the records that would say so are missing */
} vst_exception_end;

/* A point in time. The instant of an exception (VST_ESCAPE_EXCEPTION) comes
 * when it is known who caught it: the first call that the exception did not
 * leave. A call that handled the exception and raised it again did not catch
 * it, nor did a call whose `finally` or `with` it passed. The args are "raised
 * at", "raised in" and, if known, "caught in", which is null if nobody caught
 * it. */
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
    VST_LOSS_RECORDS = 1, /* `records` records could not be kept */
    VST_LOSS_GAP = 2,     /* the hooks were removed; records is 0 */
    VST_LOSS_DROPPED =
        3 /* `records` words were dropped to stay within the limit of size or
             time, or lie before the range that was asked for */
} vst_loss_kind;

/* A stretch of a thread about which the trace knows nothing. */
typedef struct vst_loss {
    vst_loss_kind kind;
    uint32_t thread;
    int64_t start_ns;
    int64_t end_ns;
    uint64_t records;
} vst_loss;

/* A framework's block that was allocated, or freed (bytes < 0), while no span
 * was open on its thread; with vst_sink.every_block, any block. */
typedef struct vst_loose_bytes {
    uint32_t thread;
    int64_t time_ns;
    int64_t bytes;
    uint64_t address;
    uint32_t depth; /* number of open spans on the stack */
} vst_loose_bytes;

/* A recorded wait (VST_ESCAPE_WAIT). */
typedef struct vst_wait {
    uint32_t reason; /* vst_wait_reason */
    uint32_t thread;
    /* thread that held what this thread waited for, 0: not known */
    uint32_t holder;
    vst_id id; /* definition and serial of the enclosing span; 0: none */
    uint64_t serial;
    int64_t start_ns;
    int64_t end_ns;
} vst_wait;

/* Returns "gil", "lock", "io", "sleep", "child", "world" or "object"; "" for
 * VST_WAIT_NONE and other numbers. */
VST_API const char *vst_wait_reason_name(uint32_t reason);

struct vst_device_span;
struct vst_sink_inside;

/* ---- tasks --------------------------------------------------------------- */

/* The kinds of tasks. */
typedef enum vst_task_kind {
    VST_TASK_OF_LOOP = 0, /* a task of asyncio */
    VST_TASK_GREENLET = 1,
    VST_TASK_HUB = 2 /* the greenlet that runs the event loop */
} vst_task_kind;

/* The cause that made a task continue. */
typedef struct vst_task_waker {
    bool is_known;
    uint32_t task; /* the task in whose step the cause lies; 0: a callback of
                      the event loop, or calls outside steps */
    uint32_t thread;
    vst_id id; /* the function that woke the task, or the task's own function if
                  the end of a task did */
    int64_t time_ns;
} vst_task_waker;

/* An event of a task as sink->task gets it, in the order of the records. Texts
 * are valid during the call. */
typedef struct vst_task_event {
    vst_task_what what;
    uint32_t task; /* for WAKES, SUBMITS and RUNS: the task whose step this lies
                      in, 0: none */
    uint32_t thread;
    int64_t time_ns;  /* for a STEP: when the call began */
    vst_id id;        /* the innermost open span, 0: none */
    bool goes_on;     /* for a STEP: it lies inside a step of this task */
    const char *name; /* NULL if this event does not name the task */
    size_t name_len;
    vst_task_awaits awaits;
    vst_id awaiting;
    uint64_t address;
    uint32_t awaited; /* number of a task */
    bool raised;
    vst_task_kind kind;   /* for a STEP */
    vst_task_waker waker; /* for a STEP of a greenlet: what switched to it */
} vst_task_event;

/* The record of a node of the execution trace (VST_ESCAPE_NODE, see graph.h),
 * delivered while the span is open. Valid during the call. */
typedef struct vst_node {
    vst_id id; /* definition and serial of the span, and its thread */
    uint32_t thread;
    uint64_t serial;
    int64_t time_ns;
    const vst_operator *op; /* for the node's inputs, else NULL */
    const uint64_t *payload;
    uint32_t words; /* at least 1 */
} vst_node;

/* The receiver of a replay. Events whose function is NULL are dropped. The
 * spans of a thread arrive in the order in which they end; spans that another
 * thread ends arrive when they begin. A status other than VST_OK ends the
 * replay, which returns it. */
typedef struct vst_sink {
    void *ctx;
    /* Mark spans whose function is open further out already; costs a look-up
     * per span. */
    bool recursion;
    /* Deliver spans without args; making the text takes time. */
    bool no_args;
    /* Do not recognise imports (VST_SPAN_IMPORT, VST_SPAN_MACHINERY), which
     * takes a check at each call. */
    bool no_imports;
    vst_status (*span)(void *ctx, const vst_span *span);
    /* The frame at this depth left the stack without a span: it continues off
     * the stack, or ended there. Spans that ended inside it now belong to the
     * frame below. A sink that collects the finished children of each open
     * frame needs this function to know the whole tree. */
    vst_status (*leave)(void *ctx, uint32_t depth);
    vst_status (*instant)(void *ctx, const vst_instant *instant);
    vst_status (*counter)(void *ctx, const vst_counter *counter);
    vst_status (*loss)(void *ctx, const vst_loss *loss);
    vst_status (*loose)(void *ctx, const vst_loose_bytes *loose);
    vst_status (*node)(void *ctx, const vst_node *node);
    vst_status (*wait)(void *ctx, const vst_wait *wait);
    /* Events of tasks. */
    vst_status (*task)(void *ctx, const vst_task_event *event);
    /* Deliver every block of a framework to `loose`, including blocks inside
     * spans. */
    bool every_block;
    /* Let args of operators name the tensors that they were given, if recorded
     * (VST_FACT_TENSORS_AT, see operator.h). */
    bool tensors;
    /* Let args say how long spans would have taken without the recorder, if
     * known: "compensated_us" and "compensated_error_us". */
    bool tells_compensated;
    /* Let args of operators include the named inputs that files do not show
     * (VST_FACT_KEYWORDS). */
    bool keywords;
    /* Activities of devices, see device.h. */
    vst_status (*device)(void *ctx, const struct vst_device_span *span);
    /* NULL except in copies that the core makes. A tracer whose get_events
     * gives the matcher another sink passes this pointer on. */
    const struct vst_sink_inside *inside;
} vst_sink;

#ifdef __cplusplus
}
#endif
#endif
