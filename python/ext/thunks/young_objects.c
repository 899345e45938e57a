/* The collector's count of objects made since the last collection. Ours must
 * not count: the thousands of weak references that we make at the start would
 * cause a collection at the program's next allocation, which the program could
 * notice. With the GIL. */
#include "thunks/thunks.h"

#define Py_BUILD_CORE 1
#undef _PyGC_FINALIZED /* the internal header has a function of this name */
#include <internal/pycore_interp.h>
#undef Py_BUILD_CORE

/* Where the count is, or NULL if the structure differs from what we were built
 * for. To check that, we turn the collector off and on and look at the field
 * beside the count. */
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
