/* Replaces native.c in builds without libunwind: no native frames. */
#include "traceback/traceback.h"

int (*vst__native_backtrace)(void **addresses, int max);
atomic_uint vst__native_inside;
atomic_bool vst__native_is_forking;

size_t vst__native_gather(const void *from, uintptr_t *addresses, size_t max)
{
    (void)from, (void)addresses, (void)max;
    return 0;
}

bool vst_traceback_has_native(void)
{
    return false;
}
