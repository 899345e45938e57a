/* The names of kinds of definitions. Any thread. */
#include <vestige/record.h>

const char *vst_definition_kind_name(vst_definition_kind kind)
{
    static const char *const names[] = {
        [VST_DEF_PYTHON] = "python",         [VST_DEF_NATIVE] = "native",
        [VST_DEF_ANNOTATION] = "annotation", [VST_DEF_GC] = "gc",
        [VST_DEF_INSTANT] = "instant",       [VST_DEF_COUNTER] = "counter",
        [VST_DEF_OPERATOR] = "operator",     [VST_DEF_MODULE] = "module",
        [VST_DEF_ACTIVITY] = "activity",
    };
    size_t number = (size_t)kind;

    if (number >= sizeof names / sizeof *names || names[number] == NULL)
        return "unknown";
    return names[number];
}
