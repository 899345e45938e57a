/* The state of all folders: see vpy.h. */
#include "vpy.h"

struct vpy_shared_state vpy_shared;
