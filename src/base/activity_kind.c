/* The names of kinds of activities. Any thread. */
#include <vestige/device.h>

const char *vst_activity_kind_name(uint32_t kind)
{
    static const char *const names[] = {
        [VST_ACTIVITY_KERNEL] = "kernel",
        [VST_ACTIVITY_COPY] = "copy",
        [VST_ACTIVITY_SET] = "set",
        [VST_ACTIVITY_SYNC] = "sync",
        [VST_ACTIVITY_OVERHEAD] = "overhead",
        [VST_ACTIVITY_RUNTIME] = "runtime",
        [VST_ACTIVITY_DRIVER] = "driver",
    };

    if (kind >= sizeof names / sizeof *names || names[kind] == NULL)
        return "unknown";
    return names[kind];
}
