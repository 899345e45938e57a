/* Includes what only Python 3.11 needs, the header of py311/, or on later
 * versions definitions that do nothing. */
#ifndef VPY_COMPAT_PY311_H
#define VPY_COMPAT_PY311_H

#include "vpy.h"

#if PY_VERSION_HEX < 0x030C0000
#include "py311/py311.h"
#else

#define VPY_MAKES_FRAMES 0
#define vpy_frames_returns() 0u
#define vpy_frames_catch_up(tstate) ((void)(tstate), true)
#define vpy_getitem_is_code(code) ((void)(code), false)

#define vpy_states_are_counted(interpreter, shifted) true
#define vpy_call_is_known(shifted, frame, caller, callee, args)                \
    ((void)(args), (shifted) == PyThreadState_Get())
#define vpy_swapped_is_released(argument) true

#define vpy_passing_ns(python_ns) 0.0
#define vpy_passing_share() 0.0
#define vpy_passing_rests() false
#define vpy_passing_chosen(is_enough, share) ((void)(is_enough), (void)(share))
#define vpy_passing_end() ((void)0)
#define vpy_passing_apply() ((void)0)
#endif

#endif
