/* The table of effects.h. Any thread. */
#include "base/effects.h"

const vst__escape_rule vst__escape_rules[VST_ESCAPE_RULES] = {
    [VST_ESCAPE_TIME] = {.is_layout = true},
    /* readers of a segment stop here */
    [VST_ESCAPE_SEGMENT] = {.is_layout = true},
    [VST_ESCAPE_CHECKPOINT] = {.is_layout = true},

    [VST_ESCAPE_BEGIN] = {VST_EFFECT_BEGINS, .goes_on = true},
    [VST_ESCAPE_END] = {VST_EFFECT_ENDS, .goes_on = true},
    [VST_ESCAPE_STACK] = {VST_EFFECT_LISTS, .may_be_empty = true},
    [VST_ESCAPE_STACK_MORE] = {VST_EFFECT_LISTS_MORE, .may_be_empty = true},
    [VST_ESCAPE_SWITCH] = {VST_EFFECT_SWITCHES, .goes_on = true},
    [VST_ESCAPE_GAP] = {VST_EFFECT_PAUSES},
    [VST_ESCAPE_DROPPED] = {VST_EFFECT_FORGETS},
    [VST_ESCAPE_SETTLE] = {VST_EFFECT_SETTLES, .may_be_empty = true},

    [VST_ESCAPE_ARGS] = {VST_EFFECT_DESCRIBES, .goes_on = true},
    [VST_ESCAPE_OPERATOR] = {VST_EFFECT_DESCRIBES, .may_be_empty = true},
    [VST_ESCAPE_NODE] = {VST_EFFECT_DESCRIBES},

    [VST_ESCAPE_INSTANT] = {VST_EFFECT_NONE, .goes_on = true},
    [VST_ESCAPE_COUNTER] = {VST_EFFECT_NONE, .goes_on = true},
    [VST_ESCAPE_LOST] = {VST_EFFECT_NONE},
    [VST_ESCAPE_FAR_END] = {VST_EFFECT_NONE, .goes_on = true},
    [VST_ESCAPE_STORAGES] = {VST_EFFECT_NONE, .goes_on = true},
    [VST_ESCAPE_SWITCHES] = {VST_EFFECT_NONE},
    [VST_ESCAPE_WAIT] = {VST_EFFECT_NONE, .goes_on = true},
    /* unused number */
    [VST_ESCAPE_WAIT + 1] = {VST_EFFECT_NONE, .goes_on = true},
    [VST_ESCAPE_TASK] = {VST_EFFECT_DESCRIBES, .goes_on = true},
    [VST_ESCAPE_LEFT_OUT] = {VST_EFFECT_NONE}, /* concerns all threads */
    /* may be written while the hooks are away */
    [VST_ESCAPE_DEVICE] = {VST_EFFECT_NONE},
    [VST_ESCAPE_EXCEPTION] = {VST_EFFECT_NONE, .goes_on = true},
    [VST_ESCAPE_EXCEPTION + 1] = {VST_EFFECT_NONE, .goes_on = true},
    [VST_ESCAPE_IMPORT] = {VST_EFFECT_DESCRIBES, .goes_on = true},
    [VST_ESCAPE_LINES] = {VST_EFFECT_NONE, .goes_on = true},
};

const vst__escape_rule vst__escape_rule_memory = {VST_EFFECT_NONE,
                                                  .may_be_empty = true};
const vst__escape_rule vst__escape_rule_unknown = {VST_EFFECT_NONE,
                                                   .goes_on = true};
