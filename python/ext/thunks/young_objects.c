/* The collector's count of objects made since the last collection. Our objects
 * must not count: the thousands of weak references that we make at the start
 * would cause a collection at the program's next allocation, which the program
 * could notice. Call with the GIL held. */
#include "thunks/thunks.h"

#include "base/inside.h"

int vpy_young_objects(void)
{
    return vpy_base.inside.young_count != NULL ? *vpy_base.inside.young_count
                                               : 0;
}

void vpy_young_objects_set(int number)
{
    if (vpy_base.inside.young_count != NULL)
        *vpy_base.inside.young_count = number;
}
