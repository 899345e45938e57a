/* What each escape record does to the stack of its thread: the one place that
 * says so. Three readers consult it. Replay's matcher (replay/matcher.c)
 * delivers spans, a fold (base/fold.c) keeps what is open and nothing else, a
 * walk (view/walk_match.c) matches what nests and leaves the rest to the
 * matcher. How an effect is carried out is up to each reader.
 *
 * Any thread. */
#ifndef VST_BASE_EFFECTS_H
#define VST_BASE_EFFECTS_H

#include <stdbool.h>
#include <stdint.h>

#include <vestige/wire.h>

typedef enum vst__effect {
    /* Leaves the stack as it is. */
    VST_EFFECT_NONE,
    /* Says something of the span on top. */
    VST_EFFECT_DESCRIBES,
    /* Opens a span on top of the stack, which need not nest. */
    VST_EFFECT_BEGINS,
    /* Closes such a span, wherever it is. */
    VST_EFFECT_ENDS,
    /* Lists the calls that are open: what is not among them is closed. */
    VST_EFFECT_LISTS,
    /* Goes on with the list. */
    VST_EFFECT_LISTS_MORE,
    /* Puts the stack away and takes another one. */
    VST_EFFECT_SWITCHES,
    /* The hooks go away or come back: what a list closes after that was closed
     * when they went. */
    VST_EFFECT_PAUSES,
    /* Closes everything: what is open is not known any more. */
    VST_EFFECT_FORGETS,
    /* Puts the span of an operator back on the stack, or closes it there. A
     * fold does not follow it: the span's END comes later. */
    VST_EFFECT_SETTLES
} vst__effect;

typedef struct vst__escape_rule {
    uint8_t effect; /* vst__effect */
    /* It is part of the stream's layout and no event: a list of calls that it
     * stands in goes on behind it. */
    bool is_layout;
    /* It means something without payload words too; others without are ignored.
     */
    bool may_be_empty;
    /* It shows that the thread went on after a gap. Other escapes do not: they
     * may be written while the hooks are away. */
    bool goes_on;
} vst__escape_rule;

enum { VST_ESCAPE_RULES = VST_ESCAPE_IMPORT + 1 };

extern const vst__escape_rule vst__escape_rules[VST_ESCAPE_RULES];
/* Of a record of memory, and of one that this version does not know. */
extern const vst__escape_rule vst__escape_rule_memory;
extern const vst__escape_rule vst__escape_rule_unknown;

static inline const vst__escape_rule *vst__escape_rule_of(uint32_t type)
{
    if (type < VST_ESCAPE_RULES)
        return &vst__escape_rules[type];
    return type >= VST_ESCAPE_FIXED ? &vst__escape_rule_memory
                                    : &vst__escape_rule_unknown;
}

/* Whether an escape is ignored: it lacks the payload that it needs. */
static inline bool vst__escape_is_void(const vst__escape_rule *rule,
                                       uint32_t words)
{
    return words == 0 && !rule->may_be_empty;
}

/* ---- the second word of a BEGIN ----------------------------------------- */

/* In a checkpoint: the span was open before. */
enum {
    VST_BEGIN_OPEN_BEFORE = 1,
    VST_BEGIN_DETACHED = 2 /* and is on no stack any more */
};

/* The second word, 0 if there is none. */
static inline uint64_t vst__begin_before(const uint64_t *payload,
                                         uint32_t words)
{
    return words > 1 ? payload[1] : 0;
}

/* Whether an escape may stand inside of a list of calls: such a BEGIN, what
 * continues the list, and what is no event. Any other ends the list. */
static inline bool vst__escape_is_in_list(const vst__escape_rule *rule,
                                          const uint64_t *payload,
                                          uint32_t words)
{
    return rule->is_layout || rule->effect == VST_EFFECT_LISTS_MORE ||
           (rule->effect == VST_EFFECT_BEGINS &&
            vst__begin_before(payload, words) != 0);
}

#endif
