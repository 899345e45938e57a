/* The inside of a matcher, shared by matcher.c (what events mean),
 * matcher_stack.c (frames), matcher_begin.c (spans that need not nest),
 * matcher_switch.c (several stacks), matcher_memory.c (what they allocate),
 * matcher_tasks.c (for which task) and matcher_exceptions.c.
 * One thread at a time.
 *
 * The stack is an array of frames. A span that BEGIN opened has a slot as well,
 * found by its (id, instance) pair, because its END may come when it is no
 * longer on the stack: then the slot holds what the frame held. Such a span
 * that is taken out from under others leaves a dead frame, which goes when it
 * comes to the top. Everything costs the same however deep the stack is. */
#ifndef VST_REPLAY_MATCHER_STACK_H
#define VST_REPLAY_MATCHER_STACK_H

#include <vestige/tracer.h>

#include "base/map64.h"
#include "replay/costs.h"
#include "replay/devices.h"
#include "replay/matcher.h"
#include "replay/operator.h"
#include "replay/running.h"

/* Beyond the flags of span.h, in a frame only. */
enum {
    VST_FRAME_BEGIN = 1 << 24, /* opened by BEGIN */
    VST_FRAME_DEAD = 1 << 25,  /* delivered, or moved to its slot */
    VST_FRAME_INNER = VST_FRAME_BEGIN | VST_FRAME_DEAD,
    /* In a saved stack only: known from a checkpoint, and no piece of it was
     * delivered yet. */
    VST_FRAME_UNSEEN = 1 << 26,
    VST_FRAME_OPERATOR = 1 << 27, /* no call of the language's */
    VST_FRAME_PLUMBING = 1 << 28, /* VST_SPAN_MACHINERY outside of an import */
    VST_FRAME_OWN = VST_FRAME_INNER | VST_FRAME_OPERATOR | VST_FRAME_PLUMBING
};

typedef struct vst__frame {
    int64_t start_ns;
    int64_t children_ns;
    int64_t ran_ns; /* of the thread when it began, or VST_RUNNING_UNKNOWN */
    int64_t lost_ns, waited_ns; /* the same, if that is known */
    vst__cost_clock costs;      /* the same */
    uint64_t serial;
    uint64_t caller; /* serial of the nearest span that a call opened */
    /* What was allocated in it, and in all that it called. */
    uint64_t self_bytes, self_allocations;
    uint64_t inner_bytes, inner_allocations;
    int64_t self_framework, inner_framework; /* bytes */
    vst_id id;
    uint32_t flags;
    uint32_t slot;      /* of a BEGIN */
    uint32_t args;      /* 1 + index of its arguments, 0: none */
    uint32_t exception; /* 1 + index of the one that it has not left, 0: none */
    /* As a span has them, and in that order: they are copied together. */
    uint32_t place;
    vst_import import; /* what it is, and the module's code */
    vst_id module;
    uint32_t task; /* see span.h */
} vst__frame;

typedef enum vst__slot_state {
    VST_SLOT_FREE,
    VST_SLOT_ON_STACK,  /* frames[index] */
    VST_SLOT_DETACHED,  /* in the slot itself */
    VST_SLOT_SUSPENDED, /* on a stack that was switched away */
} vst__slot_state;

typedef struct vst__slot {
    vst__slot_state state;
    uint32_t next; /* 1 + the next slot of the same pair, or free one */
    size_t index;
    vst__frame frame;
} vst__slot;

typedef struct vst__args {
    char *bytes;
    size_t count, capacity;
    uint32_t next_free; /* 1 + index */
    bool has_operator;
    vst_operator op;
} vst__args;

/* An exception of which it is not known yet who caught it. */
typedef struct vst__exception {
    vst_instant mark;
    uint32_t next_free; /* 1 + index */
} vst__exception;

/* A stack that was switched away. */
typedef struct vst__saved {
    vst__frame *frames;
    size_t count, capacity;
    uint32_t next_free; /* 1 + index */
} vst__saved;

struct vst_matcher {
    vst__frame *frames;
    size_t count, capacity;
    uint64_t serial;
    int64_t last_ns; /* time never goes back behind it */
    uint32_t thread;

    bool in_gap;
    int64_t gap_ns; /* when the hooks went away */
    bool after_gap; /* and nothing happened since */

    bool reconciling;  /* between a STACK and the last STACK_MORE */
    bool matching;     /* all ids of it so far were open already */
    size_t reconciled; /* frames that it confirmed */

    /* How often an id is open; kept only if the sink wants to know, or after an
     * exit matched nothing on a deep stack, so that many of those do not cost a
     * walk each. */
    bool indexed;
    vst__map64 open;

    vst__map64 pairs; /* pair -> 1 + the newest slot */
    vst__slot *slots;
    size_t slot_count, slot_capacity;
    uint32_t free_slot;
    uint32_t newest; /* 1 + slot of the operator's span detached last */
    /* The span on top has just begun, and another thread ends it. */
    bool begun_far;
    uint64_t far_pair;
    int64_t far_end_ns;

    uint64_t stack; /* number of the current one */
    /* The task whose stack it is, 0: none. And of every stack: number -> task |
     * VST_STACK_ flags << 32 */
    uint32_t stack_task, stack_flags;
    vst__map64 stack_tasks;
    vst__map64 collectors;      /* functions that a collection calls */
    vst_task_waker switched_by; /* what ran before the last switch */
    vst__map64 stacks;          /* number -> 1 + index of a saved one */
    vst__saved *saved;
    size_t saved_count, saved_capacity;
    uint32_t free_saved;

    vst__args *args;
    size_t args_count, args_capacity;
    uint32_t free_args;
    vst__exception *exceptions; /* not more than there are frames */
    size_t exception_count, exception_capacity;
    uint32_t free_exception;
    vst__text text;            /* of an operator, while it is read */
    struct vst_places *places; /* the sink's, NULL: none */
    vst_running *running;      /* the same */
    bool wants_more;   /* of a frame than its own fields, see matcher_more.c */
    bool measures;     /* the same: how long it ran, waited, would have taken */
    int64_t waited_ns; /* by the thread so far, for the language's lock */
    int64_t waited_until_ns; /* no wait begins before this */
    int64_t wait_told_ns;    /* the time of the last event that told of one */
    const struct vst_imports *imports;
    const vst_costs *costs; /* the sink's, NULL: not known */
    vst__cost_clock costs_so_far;
    int64_t costs_lost_ns; /* records are missing before this */
    int64_t costs_ran_ns;  /* how long the thread had run by the last event */

    vst_matcher_counts counts;
    uint64_t spans_before; /* counted before this thread, or a DROPPED */
};

/* When to open `frames` frames for an event at now_ns, so that each can have a
 * start of its own and none of them starts before the event before. */
static inline int64_t vst__matcher_make_room(int64_t now_ns,
                                             int64_t previous_ns, size_t frames)
{
    int64_t start_ns = now_ns - (int64_t)frames;

    return start_ns > previous_ns ? start_ns : previous_ns;
}

/* ---- matcher_stack.c ---------------------------------------------------- */

/* Opens a span inside the top one, now. */
vst_status vst__matcher_push(vst_matcher *matcher, vst_id id, uint32_t flags);
/* Closes the top span at end_ns and delivers it. */
vst_status vst__matcher_close(vst_matcher *matcher, int64_t end_ns,
                              uint32_t flags, const vst_sink *sink);
/* matcher_more.c: the top frame began; it ends, and is off the stack. */
vst_status vst__matcher_note_more(vst_matcher *matcher);
/* VST_ESCAPE_IMPORT; id: what it has. */
vst_status vst__matcher_import(vst_matcher *matcher, uint64_t id,
                               const vst_sink *sink);
vst_status vst__matcher_settle_more(vst_matcher *matcher, vst__frame *top,
                                    vst_span *span, const vst_sink *sink);
/* Delivers what frame holds; span was measured and has the place and flags. */
vst_status vst__matcher_deliver(vst_matcher *matcher, const vst__frame *frame,
                                vst_span *span, const vst_sink *sink);
/* Takes everything above the first `count` frames off the stack: calls are cut,
 * spans that BEGIN opened go on beside it. */
vst_status vst__matcher_cut(vst_matcher *matcher, size_t count, int64_t end_ns,
                            const vst_sink *sink);
/* Index of the innermost open call of id, or matcher->count. */
size_t vst__matcher_find(vst_matcher *matcher, vst_id id);
/* From now on it is known how often each function is open. */
void vst__matcher_build_index(vst_matcher *matcher);
/* Adds JSON members to the top span. */
vst_status vst__matcher_add_args(vst_matcher *matcher, const char *bytes,
                                 size_t count);
/* The same for any open one. */
vst_status vst__matcher_describe(vst_matcher *matcher, vst__frame *frame,
                                 const char *bytes, size_t count);
/* Makes the top span an operator. */
vst_status vst__matcher_add_operator(vst_matcher *matcher,
                                     const uint64_t *payload, uint32_t words,
                                     const vst_sink *sink);
/* Makes it a node of the execution trace; words is not 0. */
vst_status vst__matcher_add_node(vst_matcher *matcher, const uint64_t *payload,
                                 uint32_t words, const vst_sink *sink);
/* Empties the stack without delivering what is on it. */
void vst__matcher_forget(vst_matcher *matcher);
/* Forgets everything but serials and counts. */
void vst__matcher_reset(vst_matcher *matcher);

/* ---- matcher_measure.c -------------------------------------------------- */

/* A frame begins: notes what its thread has run, waited and cost by then. */
void vst__matcher_begin_measure(vst_matcher *matcher, vst__frame *frame);
/* Finds how long the span of a frame, which has its end, ran and waited, and
 * what of it was the recorder's. Counts what its own call cost. */
vst_status vst__matcher_measure(vst_matcher *matcher, vst__frame *frame,
                                vst_span *span, const vst_sink *sink);
/* Where costs are known: the time from previous_ns to now was that of the span
 * on top. */
void vst__matcher_pass_time(vst_matcher *matcher, int64_t previous_ns);

/* ---- matcher_begin.c ---------------------------------------------------- */

/* matcher_wait.c: what an escape WAIT says; the event before it was at
 * previous_ns. */
vst_status vst__matcher_waited(vst_matcher *matcher,
                               const vst_time_converter *converter,
                               const vst_compressed_event *event,
                               int64_t previous_ns, const vst_sink *sink);

/* matcher_losses.c: what escapes LOST, GAP and DROPPED say. */
vst_status vst__matcher_lost(vst_matcher *matcher, uint64_t records,
                             int64_t previous_ns, const vst_sink *sink);
vst_status vst__matcher_gap(vst_matcher *matcher, bool ends,
                            const vst_sink *sink);
vst_status vst__matcher_dropped(vst_matcher *matcher,
                                const vst_time_converter *converter,
                                const vst_compressed_event *event,
                                int64_t previous_ns, const vst_sink *sink);

/* matcher_devices.c: what is open where a call of a device's runtime stands. */
void vst__matcher_call(const vst_matcher *matcher, const uint64_t *payload,
                       uint32_t words, vst_devices *devices);

/* `before` is BEGIN's second word, 0 if it has none. */
vst_status vst__matcher_begin(vst_matcher *matcher, uint64_t pair,
                              uint64_t before);
/* A span that begins now. Handles an end on another thread. */
vst_status vst__matcher_begin_now(vst_matcher *matcher, uint64_t pair,
                                  const vst_sink *sink);
/* Adds JSON members to the span that the END of this pair will close. */
vst_status vst__matcher_describe_pair(vst_matcher *matcher, uint64_t pair,
                                      const char *bytes, size_t count);
vst_status vst__matcher_end(vst_matcher *matcher, uint64_t pair, bool inside,
                            const vst_sink *sink);
/* Delivers the span that begun_far is about: its arguments are known by now. */
vst_status vst__matcher_end_far(vst_matcher *matcher, const vst_sink *sink);
/* Moves a BEGIN's span from its frame, which is dead then, to its slot. */
vst_status vst__matcher_detach(vst_matcher *matcher, size_t index,
                               const vst_sink *sink);
/* An operator's span goes back to the stack, or ends: VST_ESCAPE_SETTLE. */
vst_status vst__matcher_settle(vst_matcher *matcher, bool ends,
                               const vst_sink *sink);
/* Closes all that is open; flags says why. */
vst_status vst__matcher_close_all(vst_matcher *matcher, int64_t end_ns,
                                  uint32_t flags, const vst_sink *sink);

/* ---- matcher_switch.c --------------------------------------------------- */

/* `before`: the current stack was put away earlier, nothing is delivered. */
vst_status vst__matcher_switch(vst_matcher *matcher, uint64_t stack,
                               bool before, int64_t previous_ns,
                               const vst_sink *sink);

/* ---- matcher_tasks.c ---------------------------------------------------- */

/* The current stack is a task's, and a call was entered on it. */
vst_status vst__matcher_enter_on_stack(vst_matcher *matcher,
                                       const vst_sink *sink);
/* The same: the call on top ends, for the reason that flags say. */
vst_status vst__matcher_exit_on_stack(vst_matcher *matcher, uint32_t flags,
                                      const vst_sink *sink);
/* Before the calls of the current stack are closed, and after those of
 * another one went on. */
vst_status vst__matcher_switch_out(vst_matcher *matcher, const vst_sink *sink);
vst_status vst__matcher_switch_in(vst_matcher *matcher, uint64_t stack,
                                  const vst_sink *sink);
/* VST_ESCAPE_TASK; words is not 0. */
vst_status vst__matcher_task(vst_matcher *matcher, const uint64_t *payload,
                             uint32_t words, const vst_sink *sink);

/* ---- matcher_exceptions.c ----------------------------------------------- */

/* VST_ESCAPE_EXCEPTION; word: what it has. */
vst_status vst__matcher_raise(vst_matcher *matcher, uint64_t word,
                              const vst_sink *sink);
/* A frame that has an exception was taken off the stack; flags as a span's. */
VST_COLD vst_status vst__matcher_pass_exception(vst_matcher *matcher,
                                                const vst__frame *left,
                                                uint32_t flags,
                                                const vst_sink *sink);

/* ---- matcher_memory.c --------------------------------------------------- */

/* type is that of the escape, VST_ESCAPE_FIXED or more. */
vst_status vst__matcher_memory(vst_matcher *matcher,
                               const vst_compressed_event *event, uint32_t type,
                               const vst_sink *sink);

#endif
