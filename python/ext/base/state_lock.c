/* The lock of the extension's own state, where there is no GIL: see vpy.h. */
#include "vpy.h"

vpy_lock vpy_state_lock;
