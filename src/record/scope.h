/* Scope: decides which calls of a thread are recorded, if a recording takes
 * calls only to some depth or only inside some functions. Every enter and exit
 * of a thread with a scope goes through here (vst__writer_set_limit keeps its
 * buffer from taking words itself), so a recording without a scope pays
 * nothing.
 *
 * A scope keeps the ids of all open calls, including those that are left out,
 * because an exit may name a call further out and a stack may be switched.
 * Calls that were open when the recording began do not count for the depth, so
 * the depth does not depend on where a program starts to record. Only calls are
 * left out: operators, garbage collections and annotations are always recorded.
 * A scope is used only by the thread that makes the calls. */
#ifndef VST_RECORD_SCOPE_H
#define VST_RECORD_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/record.h>

#include "base/map64.h"

/* The calls that a recording wants; constant while it runs. All zero: every
 * call. */
typedef struct vst__scope_options {
    uint32_t max_depth; /* 0: no limit */
    /* record only inside functions that vst_recording_record_inside names */
    bool only;
} vst__scope_options;

typedef struct vst__scope_frame {
    vst_id id;
    bool is_recorded;
    bool counts;    /* counts for the depth */
    bool is_inside; /* is a wanted function, or is inside one */
} vst__scope_frame;

typedef struct vst__scope_stack {
    vst__scope_frame *frames; /* outermost first */
    size_t count, capacity;
    uint32_t depth; /* number of frames that count */
    size_t inside;  /* number of frames that are inside */
    /* number of calls inside the innermost frame, for which there was no memory
     */
    size_t forgotten;
} vst__scope_stack;

typedef struct vst__scope {
    vst__scope_options wants;
    vst__scope_stack now;
    uint64_t number;   /* number of the current stack, see VST_ESCAPE_SWITCH */
    vst__map64 others; /* number -> address of a vst__scope_stack */
    /* whether records that describe the span on top are taken */
    bool describes;
} vst__scope;

static inline bool vst__scope_is_wanted(const vst__scope_options *options)
{
    return options->max_depth != 0 || options->only;
}

/* Makes *scope ready for a recording with these options, or frees the scope if
 * the options take every call. Returns false, with *scope NULL, if memory runs
 * out. */
bool vst__scope_begin(vst__scope **scope, const vst__scope_options *options);
void vst__scope_free(vst__scope *scope);

/* Returns whether an enter or exit is recorded. */
bool vst__scope_takes(vst__scope *scope, vst_kind kind, vst_id id);
/* Returns whether an escape is recorded. */
bool vst__scope_takes_escape(vst__scope *scope, vst_escape type,
                             const uint64_t *payload);
/* Returns whether the call on top is recorded; true if there is no call. */
bool vst__scope_top_is_recorded(const vst__scope *scope);
/* Lists the open calls, outermost first; recorded calls move to the front.
 * Returns how many are recorded. at_start: the recording begins. */
size_t vst__scope_list(vst__scope *scope, vst_id *ids, size_t count,
                       bool at_start);

/* Call these with the recorder's lock held. vst__scope_ids_clear forgets all
 * ids, for another recording; vst__scope_id_define notes the kind of a new
 * definition; vst__scope_id_want makes an id a function inside which calls are
 * recorded. */
void vst__scope_ids_clear(void);
void vst__scope_id_define(vst_id id, uint32_t kind);
void vst__scope_id_want(vst_id id);

#endif
