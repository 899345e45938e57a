/* How many objects were made since the last garbage collection, as the
 * collector counts them. Ours are not the program's: thousands of weak
 * references, made at the start, would have it collect at the program's next
 * allocation, and be seen to. With the GIL. */
#include "thunks/thunks.h"

#define Py_BUILD_CORE 1
#undef _PyGC_FINALIZED /* which is another name for a function in there */
#include <internal/pycore_interp.h>
#undef Py_BUILD_CORE

/* NULL where it is not where we were built to find it: what lies beside it says
 * whether the collector is on, and we can turn that. */
static int *find(void)
{
#if !VPY_COUNTS_YOUNG_OBJECTS
    return NULL;
#else
    struct _gc_runtime_state *gc = &PyThreadState_Get()->interp->gc;
    int was_on = PyGC_Disable();
    bool is_it = gc->enabled == 0;

    PyGC_Enable();
    is_it = is_it && gc->enabled == 1;
    if (!was_on)
        PyGC_Disable();
    return is_it ? &gc->generations[0].count : NULL;
#endif
}

int vpy_young_objects(void)
{
    int *count = find();

    return count ? *count : 0;
}

void vpy_young_objects_set(int number)
{
    int *count = find();

    if (count)
        *count = number;
}
