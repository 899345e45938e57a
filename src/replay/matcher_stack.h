/* The state of a matcher, shared by matcher.c (events), matcher_stack.c
 * (frames), matcher_begin.c (spans that need not nest), matcher_switch.c
 * (several stacks), matcher_memory.c (allocations), matcher_tasks.c (tasks) and
 * matcher_exceptions.c. One thread at a time.
 *
 * The stack is an array of frames. A span that BEGIN opened has a slot as well,
 * found by its (id, instance) pair, because its END may come when it is no
 * longer on the stack: then the slot holds the frame. If such a span is taken
 * out from under others, a dead frame stays until it comes to the top. Every
 * operation costs the same however deep the stack is. */
#ifndef VST_REPLAY_MATCHER_STACK_H
#define VST_REPLAY_MATCHER_STACK_H

#include <vestige/tracer.h>

#include "base/map64.h"
#include "replay/costs.h"
#include "replay/devices.h"
#include "replay/matcher.h"
#include "replay/operator.h"
#include "replay/running.h"

/* Flags of a frame in addition to those of span.h. */
enum {
    VST_FRAME_BEGIN = 1 << 24, /* opened by BEGIN */
    VST_FRAME_DEAD = 1 << 25,  /* already delivered, or moved to its slot */
    VST_FRAME_INNER = VST_FRAME_BEGIN | VST_FRAME_DEAD,
    /* In a saved stack only: known from a checkpoint, and no piece of it was
     * delivered yet. */
    VST_FRAME_UNSEEN = 1 << 26,
    VST_FRAME_OPERATOR = 1 << 27, /* the frame is not a call of the language */
    VST_FRAME_PLUMBING = 1 << 28, /* VST_SPAN_MACHINERY outside an import */
    VST_FRAME_THROUGH = 1 << 29,  /* see vst_span.called_through */
    VST_FRAME_OWN = VST_FRAME_THROUGH | VST_FRAME_INNER | VST_FRAME_OPERATOR |
        VST_FRAME_PLUMBING
};

typedef struct vst__frame {
    int64_t start_ns;
    int64_t children_ns;
    /* running time of the thread when the frame began, or
     * VST_RUNNING_UNKNOWN */
    int64_t ran_ns;
    /* the other times by then, valid if ran_ns is known */
    int64_t lost_ns, waited_ns;
    vst__cost_clock costs; /* the cost clocks by then */
    uint64_t serial;
    uint64_t caller; /* serial of the nearest span below that a call opened */
    /* Memory allocated in the frame itself, and in everything it called. */
    uint64_t self_bytes, self_allocations;
    uint64_t inner_bytes, inner_allocations;
    int64_t self_framework, inner_framework; /* bytes */
    vst_id id;
    uint32_t flags;
    uint32_t slot; /* the frame's slot, if BEGIN opened it */
    uint32_t args; /* 1 + index of its arguments; 0 if none */
    /* 1 + index of the exception that is in the frame; 0 if none */
    uint32_t exception;
    /* In the order of the same members of vst_span, because they are copied
     * together. */
    uint32_t place;
    vst_import import; /* the kind of import, and the module's code */
    vst_id module;
    uint32_t task;      /* see span.h */
    uint32_t called_at; /* see span.h */
} vst__frame;

typedef enum vst__slot_state {
    VST_SLOT_FREE,
    VST_SLOT_ON_STACK,  /* on the current stack, at frames[index] */
    VST_SLOT_DETACHED,  /* on no stack; the slot holds the frame */
    VST_SLOT_SUSPENDED, /* on a stack that was switched away */
} vst__slot_state;

typedef struct vst__slot {
    vst__slot_state state;
    /* 1 + the next slot of the same pair, or the next free slot */
    uint32_t next;
    size_t index;
    vst__frame frame;
} vst__slot;

typedef struct vst__args {
    char *bytes;
    size_t count, capacity;
    uint32_t next_free; /* 1 + index of the next free entry */
    bool has_operator;
    vst_operator op;
} vst__args;

/* An exception that nobody has caught yet. */
typedef struct vst__exception {
    vst_instant mark;
    uint32_t next_free; /* 1 + index of the next free entry */
} vst__exception;

/* A stack that was switched away. */
typedef struct vst__saved {
    vst__frame *frames;
    size_t count, capacity;
    uint32_t next_free; /* 1 + index of the next free entry */
} vst__saved;

struct vst_matcher {
    vst__frame *frames;
    size_t count, capacity;
    uint64_t serial;
    int64_t last_ns; /* times never go back before this */
    uint32_t thread;

    bool in_gap;
    int64_t gap_ns; /* when the hooks went away */
    bool after_gap; /* a gap ended, and nothing happened since */

    bool reconciling;  /* we are between a STACK and its last STACK_MORE */
    bool matching;     /* all ids of the list so far were open already */
    size_t reconciled; /* how many frames the list has confirmed */

    /* Counts how often each id is open. Kept only if the sink asks for it, or
     * after an exit matched nothing on a deep stack, so that many such exits do
     * not search the whole stack each time. */
    bool indexed;
    vst__map64 open; /* id -> how often it is open; ids that are not open stay,
                        with 0 */

    vst__map64 pairs; /* pair -> 1 + the pair's newest slot */
    vst__slot *slots;
    size_t slot_count, slot_capacity;
    uint32_t free_slot;
    /* 1 + slot of the operator's span that was detached last */
    uint32_t newest;
    /* The span on top has just begun, and another thread ends it. */
    bool begun_far;
    uint64_t far_pair;
    int64_t far_end_ns;

    uint64_t stack; /* number of the current stack */
    /* The task that the current stack belongs to; 0 if none. For every stack:
     * number -> task | VST_STACK_ flags << 32 */
    uint32_t stack_task, stack_flags;
    vst__map64 stack_tasks;
    vst__map64 collectors;      /* functions that the garbage collector calls */
    vst_task_waker switched_by; /* the code that ran before the last switch */
    vst__map64 stacks;          /* number -> 1 + index of a saved stack */
    vst__saved *saved;
    size_t saved_count, saved_capacity;
    uint32_t free_saved;

    vst__args *args;
    size_t args_count, args_capacity;
    uint32_t free_args;
    vst__exception *exceptions; /* never more than there are frames */
    size_t exception_count, exception_capacity;
    uint32_t free_exception;
    vst__text text;            /* text of an operator while it is read */
    struct vst_places *places; /* the sink's places; may be NULL */
    vst_running *running;      /* the sink's running times; may be NULL */
    /* frames need facts beyond their own fields, see vst__matcher_note_facts */
    bool wants_facts;
    bool measures; /* running, waiting or compensated times are wanted */
    /* how long the thread has waited for the language's lock */
    int64_t waited_ns;
    int64_t waited_until_ns; /* no wait begins before this */
    int64_t wait_event_ns;   /* time of the last event that reported a wait */
    /* Where the next call was made, 0: not known; and flags for its frame. */
    uint32_t next_called_at, next_flags;
    const struct vst_imports *imports;
    const vst_costs *costs; /* the sink's costs; NULL if unknown */
    vst__cost_clock costs_so_far;
    int64_t costs_lost_ns; /* records before this time are missing */
    int64_t costs_ran_ns;  /* how long the thread had run at the last event */

    vst_matcher_counts counts;
    /* spans counted before this thread, or before a DROPPED */
    uint64_t spans_before;
};

/* Returns when to open `frames` frames for an event at now_ns, so that each can
 * have its own start, and none starts before the previous event. */
static inline int64_t vst__matcher_make_room(int64_t now_ns,
                                             int64_t previous_ns, size_t frames)
{
    int64_t start_ns = now_ns - (int64_t)frames;

    return start_ns > previous_ns ? start_ns : previous_ns;
}

/* ---- matcher_stack.c ----------------------------------------------------- */

/* Opens a span inside the top one, now. */
vst_status vst__matcher_push(vst_matcher *matcher, vst_id id, uint32_t flags);
/* Closes the top span at end_ns and delivers it. */
vst_status vst__matcher_close(vst_matcher *matcher, int64_t end_ns,
                              uint32_t flags, const vst_sink *sink);
/* Notes facts about the top frame when it begins, and adds facts to its span
 * when it has ended and left the stack. */
vst_status vst__matcher_note_facts(vst_matcher *matcher);
/* Handles VST_ESCAPE_IMPORT; id: the definition in its payload. */
vst_status vst__matcher_import(vst_matcher *matcher, uint64_t id,
                               const vst_sink *sink);
vst_status vst__matcher_end_facts(vst_matcher *matcher, vst__frame *top,
                                  vst_span *span, const vst_sink *sink);
/* Delivers the frame as a span; `span` was measured and has its place and
 * flags. */
vst_status vst__matcher_deliver(vst_matcher *matcher, const vst__frame *frame,
                                vst_span *span, const vst_sink *sink);
/* Removes everything above the first `count` frames: calls are cut, spans that
 * BEGIN opened go on without the stack. */
vst_status vst__matcher_cut(vst_matcher *matcher, size_t count, int64_t end_ns,
                            const vst_sink *sink);
/* Returns the index of the innermost open call of id, or matcher->count. */
size_t vst__matcher_find(vst_matcher *matcher, vst_id id);
/* From now on counts how often each function is open. */
void vst__matcher_build_index(vst_matcher *matcher);
/* Adds JSON members to the top span. */
vst_status vst__matcher_add_args(vst_matcher *matcher, const char *bytes,
                                 size_t count);
/* Adds JSON members to any open span. */
vst_status vst__matcher_describe(vst_matcher *matcher, vst__frame *frame,
                                 const char *bytes, size_t count);
/* Makes the top span an operator. */
vst_status vst__matcher_add_operator(vst_matcher *matcher,
                                     const uint64_t *payload, uint32_t words,
                                     const vst_sink *sink);
/* Makes the top span a node of the execution trace; words is not 0. */
vst_status vst__matcher_add_node(vst_matcher *matcher, const uint64_t *payload,
                                 uint32_t words, const vst_sink *sink);
/* Empties the stack without delivering its spans. */
void vst__matcher_forget(vst_matcher *matcher);
/* Forgets everything except serials and counts. */
void vst__matcher_reset(vst_matcher *matcher);
/* matcher_copy.c: another matcher in the same state; to be destroyed. */
vst_status vst__matcher_copy(const vst_matcher *matcher, vst_matcher **copy);

/* ---- matcher_measure.c --------------------------------------------------- */

/* Call when a frame begins: notes how long its thread has run and waited by
 * then, and the costs. */
void vst__matcher_begin_measure(vst_matcher *matcher, vst__frame *frame);
/* Finds how long the span of a frame, whose end is known, ran and waited, and
 * how much of it was the recorder's. Also counts the cost of its own call. */
vst_status vst__matcher_measure(vst_matcher *matcher, vst__frame *frame,
                                vst_span *span, const vst_sink *sink);
/* If costs are known: the time from previous_ns to now belongs to the span on
 * top. */
void vst__matcher_pass_time(vst_matcher *matcher, int64_t previous_ns);

/* ---- matcher_begin.c ----------------------------------------------------- */

/* matcher_wait.c: handles an escape WAIT; the previous event was at
 * previous_ns. */
vst_status vst__matcher_waited(vst_matcher *matcher,
                               const vst_time_converter *converter,
                               const vst_compressed_event *event,
                               int64_t previous_ns, const vst_sink *sink);

/* matcher_losses.c: handle the escapes LOST, GAP and DROPPED. */
vst_status vst__matcher_lost(vst_matcher *matcher, uint64_t records,
                             int64_t previous_ns, const vst_sink *sink);
vst_status vst__matcher_gap(vst_matcher *matcher, bool ends,
                            const vst_sink *sink);
vst_status vst__matcher_dropped(vst_matcher *matcher,
                                const vst_time_converter *converter,
                                const vst_compressed_event *event,
                                int64_t previous_ns, const vst_sink *sink);

/* matcher_devices.c: notes the spans that are open at a call of a device's
 * runtime. */
void vst__matcher_call(const vst_matcher *matcher, const uint64_t *payload,
                       uint32_t words, vst_devices *devices);

/* `before` is the second word of the BEGIN, 0 if it has none. */
vst_status vst__matcher_begin(vst_matcher *matcher, uint64_t pair,
                              uint64_t before);
/* Opens a span that begins now. Handles an end on another thread. */
vst_status vst__matcher_begin_now(vst_matcher *matcher, uint64_t pair,
                                  const vst_sink *sink);
/* Adds JSON members to the span that the END of this pair will close. */
vst_status vst__matcher_describe_pair(vst_matcher *matcher, uint64_t pair,
                                      const char *bytes, size_t count);
vst_status vst__matcher_end(vst_matcher *matcher, uint64_t pair, bool inside,
                            const vst_sink *sink);
/* Delivers the span for which begun_far is set; its arguments are known by
 * now. */
vst_status vst__matcher_end_far(vst_matcher *matcher, const vst_sink *sink);
/* Moves the span of a BEGIN from its frame, which is dead then, to its slot. */
vst_status vst__matcher_detach(vst_matcher *matcher, size_t index,
                               const vst_sink *sink);
/* Handles VST_ESCAPE_SETTLE: an operator's span goes back to the stack, or
 * ends. */
vst_status vst__matcher_settle(vst_matcher *matcher, bool ends,
                               const vst_sink *sink);
/* Closes all open spans; flags says why. */
vst_status vst__matcher_close_all(vst_matcher *matcher, int64_t end_ns,
                                  uint32_t flags, const vst_sink *sink);

/* ---- matcher_switch.c ---------------------------------------------------- */

/* `before`: the current stack was put away earlier, so nothing is delivered. */
vst_status vst__matcher_switch(vst_matcher *matcher, uint64_t stack,
                               bool before, int64_t previous_ns,
                               const vst_sink *sink);

/* ---- matcher_tasks.c ----------------------------------------------------- */

/* Call when a call was entered on a stack that belongs to a task. */
vst_status vst__matcher_enter_on_stack(vst_matcher *matcher,
                                       const vst_sink *sink);
/* Call when the call on top of such a stack ends, for the reason in flags. */
vst_status vst__matcher_exit_on_stack(vst_matcher *matcher, uint32_t flags,
                                      const vst_sink *sink);
/* Call before the calls of the current stack are closed, and after the calls of
 * another stack went on. */
vst_status vst__matcher_switch_out(vst_matcher *matcher, const vst_sink *sink);
vst_status vst__matcher_switch_in(vst_matcher *matcher, uint64_t stack,
                                  const vst_sink *sink);
/* Handles VST_ESCAPE_TASK; words is not 0. */
vst_status vst__matcher_task(vst_matcher *matcher, const uint64_t *payload,
                             uint32_t words, const vst_sink *sink);

/* ---- matcher_lines.c ----------------------------------------------------- */

/* Handles VST_ESCAPE_LINES; number: that of its stack. */
vst_status vst__matcher_lines(vst_matcher *matcher, uint64_t number,
                              const vst_sink *sink);

/* ---- matcher_exceptions.c ------------------------------------------------ */

/* Handles VST_ESCAPE_EXCEPTION; word: its payload. */
vst_status vst__matcher_raise(vst_matcher *matcher, uint64_t word,
                              const vst_sink *sink);
/* Call when a frame with an exception was removed from the stack; flags as in a
 * span. */
VST_COLD vst_status vst__matcher_pass_exception(vst_matcher *matcher,
                                                const vst__frame *left,
                                                uint32_t flags,
                                                const vst_sink *sink);

/* ---- matcher_memory.c ---------------------------------------------------- */

/* type is the escape's type, VST_ESCAPE_FIXED or more. */
vst_status vst__matcher_memory(vst_matcher *matcher,
                               const vst_compressed_event *event, uint32_t type,
                               const vst_sink *sink);

#endif
