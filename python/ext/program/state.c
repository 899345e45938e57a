/* See state.h. */
#include "program/state.h"

struct vpy_program_state vpy_program = {
    .gil_waits = {.trouble = "the GIL was not looked for yet"},
#if VPY_FREE_THREADED
    .object_waits = {.trouble = "locks of objects were not looked for yet"},
#endif
};
