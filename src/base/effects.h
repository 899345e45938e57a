/* The effect of each escape record on the stack of its thread, in one table for
 * its three readers: replay's matcher (replay/matcher.c) delivers spans, a fold
 * (base/fold.c) keeps only the open calls, and a walk (view/walk_match.c)
 * matches calls that nest and leaves the others to the matcher. Each reader
 * decides how to carry an effect out. Any thread. */
#ifndef VST_BASE_EFFECTS_H
#define VST_BASE_EFFECTS_H

#include <stdbool.h>
#include <stdint.h>

#include <vestige/wire.h>

typedef enum vst__effect {
    /* Leaves the stack as it is. */
    VST_EFFECT_NONE,
    /* Describes the span on top. */
    VST_EFFECT_DESCRIBES,
    /* Opens a span on top of the stack, which need not nest. */
    VST_EFFECT_BEGINS,
    /* Closes a span that BEGIN opened, wherever it is. */
    VST_EFFECT_ENDS,
    /* Lists the open calls: a call that is missing in the list is closed. */
    VST_EFFECT_LISTS,
    /* Continues the list. */
    VST_EFFECT_LISTS_MORE,
    /* Puts the stack away and takes another stack. */
    VST_EFFECT_SWITCHES,
    /* The hooks go away or come back. A call that a later list closes had ended
     * by the time the hooks went away. */
    VST_EFFECT_PAUSES,
    /* Closes everything: the open calls are not known any more. */
    VST_EFFECT_FORGETS,
    /* Puts the span of an operator back on the stack, or closes it there. A
     * fold ignores this, because the span's END comes later. */
    VST_EFFECT_SETTLES
} vst__effect;

typedef struct vst__escape_rule {
    uint8_t effect; /* a vst__effect */
    /* The escape is part of the stream's layout, not an event: a list of calls
     * around it continues behind it. */
    bool is_layout;
    /* The escape has a meaning without payload words; other escapes without
     * payload are ignored. */
    bool may_be_empty;
    /* The escape shows that the thread went on after a gap. Other escapes do
     * not show that, because they may be written while the hooks are away. */
    bool goes_on;
} vst__escape_rule;

enum { VST_ESCAPE_RULES = VST_ESCAPE_LINES + 1 };

extern const vst__escape_rule vst__escape_rules[VST_ESCAPE_RULES];
/* The rules for a record of memory, and for an escape that this version does
 * not know. */
extern const vst__escape_rule vst__escape_rule_memory;
extern const vst__escape_rule vst__escape_rule_unknown;

static inline const vst__escape_rule *vst__escape_rule_of(uint32_t type)
{
    if (type < VST_ESCAPE_RULES)
        return &vst__escape_rules[type];
    return type >= VST_ESCAPE_FIXED ? &vst__escape_rule_memory
                                    : &vst__escape_rule_unknown;
}

/* Returns whether an escape is ignored because it lacks its payload. */
static inline bool vst__escape_is_void(const vst__escape_rule *rule,
                                       uint32_t words)
{
    return words == 0 && !rule->may_be_empty;
}

/* ---- the second word of a BEGIN ------------------------------------------ */

/* In a checkpoint: the span was open before. */
enum {
    VST_BEGIN_OPEN_BEFORE = 1,
    /* in a checkpoint: the span is no longer on a stack */
    VST_BEGIN_DETACHED = 2
};

/* Returns the second word of a BEGIN, 0 if there is none. */
static inline uint64_t vst__begin_before(const uint64_t *payload,
                                         uint32_t words)
{
    return words > 1 ? payload[1] : 0;
}

/* Returns whether an escape may stand inside a list of calls: a BEGIN of a
 * checkpoint, an escape that continues the list, or one that is no event. Any
 * other escape ends the list. */
static inline bool vst__escape_is_in_list(const vst__escape_rule *rule,
                                          const uint64_t *payload,
                                          uint32_t words)
{
    return rule->is_layout || rule->effect == VST_EFFECT_LISTS_MORE ||
           (rule->effect == VST_EFFECT_BEGINS &&
            vst__begin_before(payload, words) != 0);
}

#endif
