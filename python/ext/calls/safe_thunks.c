/* Thunks for the safe engine: for calls that the interpreter does not report to
 * it. With sys.monitoring these are operators of arrays, which call the object
 * numpy.add and its like in C. A profile function is told of no call but those
 * of functions. Where turbo does not work, there are no thunks. With the GIL.
 */
#include "calls/engine.h"

#include "thunks/thunks.h"

static const unsigned covers =
    VPY_COVERS_OBJECTS | (VPY_HAS_MONITORING ? 0 : VPY_COVERS_CALLABLES);

static bool are_wanted(const vpy_options *options)
{
    return options->c_functions && vpy_thunks_trouble() == NULL;
}

void vpy_safe_thunks_prepare(const vpy_options *options)
{
    if (are_wanted(options) && !vpy_thunks_prepare(covers))
        vpy_calls.tracer.message[0] = 0; /* the engine records without */
}

void vpy_safe_thunks_start(const vpy_options *options)
{
    if (are_wanted(options) && !vpy_thunks_start(covers))
        vpy_calls.tracer.message[0] = 0;
}
