/* Scope: which calls of a thread are recorded, where a recording takes them
 * only to some depth or only inside of some functions. A thread with a scope
 * has every enter and exit go through here (vst__writer_set_limit keeps its
 * buffer from taking words by itself), so a recording without one pays nothing.
 *
 * A scope keeps the ids of the calls that are open, those that are left out
 * too: an exit may name a call further out, and a stack may be switched. Calls
 * that were open when the recording began do not count for the depth, so it is
 * the same wherever a program starts to record. Only calls are left out:
 * operators, garbage collections and annotations are recorded everywhere.
 *
 * Used by the thread whose calls they are. */
#ifndef VST_RECORD_SCOPE_H
#define VST_RECORD_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/record.h>

#include "base/map64.h"

/* What a recording wants; constant while it runs. All zero: every call. */
typedef struct vst__scope_options {
    uint32_t max_depth; /* 0: any */
    bool only;          /* only inside of functions that
                         * vst_recording_record_inside names */
} vst__scope_options;

typedef struct vst__scope_frame {
    vst_id id;
    bool is_recorded;
    bool counts;    /* for the depth */
    bool is_inside; /* of a function that is wanted, or is one */
} vst__scope_frame;

typedef struct vst__scope_stack {
    vst__scope_frame *frames; /* outermost first */
    size_t count, capacity;
    uint32_t depth;   /* frames that count */
    size_t inside;    /* frames that are inside */
    size_t forgotten; /* calls on top of them, for which there was no memory */
} vst__scope_stack;

typedef struct vst__scope {
    vst__scope_options wants;
    vst__scope_stack now;
    uint64_t number;   /* of the current stack, see VST_ESCAPE_SWITCH */
    vst__map64 others; /* number -> address of a vst__scope_stack */
    bool describes;    /* what describes the span on top is recorded */
} vst__scope;

static inline bool vst__scope_is_wanted(const vst__scope_options *options)
{
    return options->max_depth != 0 || options->only;
}

/* Makes *scope ready for a recording with these options, and frees it if they
 * want every call. False: out of memory; *scope is NULL. */
bool vst__scope_begin(vst__scope **scope, const vst__scope_options *options);
void vst__scope_free(vst__scope *scope);

/* Whether an enter or exit is recorded. */
bool vst__scope_takes(vst__scope *scope, vst_kind kind, vst_id id);
/* The same of an escape. */
bool vst__scope_takes_escape(vst__scope *scope, vst_escape type,
                             const uint64_t *payload);
/* Whether the call on top is; true if there is none. */
bool vst__scope_top_is_recorded(const vst__scope *scope);
/* The calls that are open, outermost first; those that are recorded move to the
 * front. Gives their number. at_start: the recording begins. */
size_t vst__scope_list(vst__scope *scope, vst_id *ids, size_t count,
                       bool at_start);

/* With the recorder's lock held: forgets what ids are, for another recording;
 * and notes what kind of definition a new one is. */
void vst__scope_ids_clear(void);
void vst__scope_id_define(vst_id id, uint32_t kind);
void vst__scope_id_want(vst_id id);

#endif
