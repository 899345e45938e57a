/* The collector "cuda". Called by one thread at a time. */
#include "cupti.h"
#include "library.h"

const char *vst_cupti_register(const char *named, const char *const *paths)
{
    const char *trouble = cupti_load(named, paths);

    return trouble != NULL ? trouble : "vestige does not collect it yet";
}
