/* Tasks: what takes turns on one thread, run by an event loop or as greenlets.
 * This header is the specification of what is recorded of them
 * (VST_ESCAPE_TASK), and of what a replay tells of it.
 *
 * A task runs in steps. A step is a call of the task's coroutine: the ENTER of
 * that call is followed by a TASK escape, and the step lasts as long as the
 * call. Right before the call's end there may be another one, that says what
 * the task waits for now, or that it has ended. If an exception is thrown into
 * a task that waits inside several coroutines, these are called one after the
 * other instead of one inside the other; then the step has several calls, and
 * only the last of them is followed by a wait or an end.
 *
 * A greenlet is a task with a stack of its own (VST_ESCAPE_SWITCH). Behind the
 * first SWITCH to it in each chunk a TASK escape says whose stack that is. The
 * rest follows from the switches: what is called on the stack while it is the
 * current one is a step, and between two steps it is switched out. */
#ifndef VESTIGE_TASKS_H
#define VESTIGE_TASKS_H

#include <stdbool.h>
#include <stddef.h>

#include "record.h"
#include "span.h"
#include "status.h"
#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the record ---------------------------------------------------------- */

/* The payload's first word: what (8 bits), number of the task << 8 (32 bits).
 * Numbers are given out one after the other from 1, in one file. The words
 * behind it: */
typedef enum vst_task_what {
    /* The call on top is a step of the task. Nothing, or where the task is
     * introduced the byte length of its name and its bytes */
    VST_TASK_STEP = 1,
    /* The task has this name from now on: the same */
    VST_TASK_NAMED = 2,
    /* The step ends here, and the task waits: vst_task_awaits | id of the
     * innermost function that waits << 32, address of the object that it waits
     * for, unless that is nothing, number of the task if that is one (0: not
     * known) */
    VST_TASK_AWAITS = 3,
    /* The task ends here: 0, or 1 if an exception ends it */
    VST_TASK_ENDS = 4,
    /* Whoever waits for the object with this address may go on: address. The
     * task's number is 0 */
    VST_TASK_WAKES = 5,
    /* Work is handed to another thread, or begins there: address of the object
     * that stands for it. The task's number is 0 */
    VST_TASK_SUBMITS = 6,
    VST_TASK_RUNS = 7,
    /* The current stack is this task's: byte length of its name | VST_STACK_
     * flags << 32, the name's bytes */
    VST_TASK_STACK = 8,
    /* A garbage collection calls these functions of the program, wherever the
     * thread is: an id each. The task's number is 0 */
    VST_TASK_COLLECTORS = 9
} vst_task_what;

enum {
    VST_STACK_BEGINS = 1, /* nothing was called on it yet */
    VST_STACK_HUB = 2     /* it runs an event loop */
};

/* What kind of object a task waits for. */
typedef enum vst_task_awaits {
    VST_AWAITS_NOTHING = 0, /* the other tasks shall have their turn */
    VST_AWAITS_FUTURE = 1,
    VST_AWAITS_TASK = 2,
    VST_AWAITS_GATHER = 3, /* several futures */
    VST_AWAITS_OTHER = 4,
    VST_AWAITS_SWITCH = 5 /* to be switched to; not in a file */
} vst_task_awaits;

enum { VST_TASK_NAME_MAX = 200 }; /* bytes; what is longer is cut */

static inline uint64_t vst_task_word(vst_task_what what, uint32_t task)
{
    return (uint64_t)task << 8 | (uint64_t)what;
}

/* Records a payload as above, behind the record before it and at the same time.
 * The same rule as vst_record. */
VST_API void vst_record_task(const uint64_t *payload, uint32_t words);
/* WAKES, now: where the recorder does not see calls in C, the record before it
 * may be some time ago. */
VST_API void vst_record_task_wakes(uint64_t address);

/* Of the two functions below: delta ticks after the record before it. words is
 * a constant. */
VST_INLINE bool vst_record_task_later_at_once(const uint64_t *payload,
                                              uint32_t words, uint64_t delta)
{
    vst_buffer *buffer = vst_thread_buffer;
    uint64_t *at = buffer->cursor;

    if (!VST_LIKELY(buffer->epoch == vst_record_epoch() &&
                    buffer->limit - at > (ptrdiff_t)words && delta >> 32 == 0))
        return false;
    for (uint32_t i = 0; i < words; i++)
        vst_store_word(at + 1 + i, payload[i]);
    vst_store_word(at,
                   vst_word_escape(VST_ESCAPE_TASK, words, (uint32_t)delta));
    buffer->last += delta;
    buffer->cursor = buffer->floor = at + 1 + words;
    return true;
}

/* The same two for hooks that must be small: they call nothing. False: nothing
 * was recorded, the function above does it. */
VST_INLINE bool vst_record_task_at_once(const uint64_t *payload, uint32_t words)
{
    return vst_record_task_later_at_once(payload, words, 0);
}

VST_INLINE bool vst_record_task_wakes_at_once(uint64_t address)
{
    const uint64_t payload[2] = {vst_task_word(VST_TASK_WAKES, 0), address};

    return vst_clock_is_at_hand() &&
           vst_record_task_later_at_once(
               payload, 2, vst_clock_ticks() - vst_thread_buffer->last);
}

/* The same for STEP with a name, and NAMED. */
VST_API void vst_record_task_name(vst_task_what what, uint32_t task,
                                  const char *name, size_t length);
/* The same for STACK, behind the record of the switch. */
VST_API void vst_record_task_stack(uint32_t task, uint32_t flags,
                                   const char *name, size_t length);

/* ---- reading: what happens to a task ------------------------------------- */

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

#ifdef __cplusplus
}
#endif
#endif
