"""The end of the process: finishes recordings that are still open, whether the process ends with the functions of
atexit or by os._exit, which runs none of them. Any thread may call os._exit anywhere, so the code for it imports
nothing and waits for nothing.
"""

from __future__ import annotations

import atexit
import os
import sys
from _weakref import ref

from vestige import _core

from . import forked, standard_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from vestige.profiler import profile

TOO_LATE = "the interpreter is shutting down: nothing is recorded any more"
EXIT = "vestige.exit"  # in the metadata: how the process ended, and its code
FOREVER_S = 1e6  # so that no other thread runs meanwhile

_unfinished: dict[ref[profile], int] = {}  # values: pids of the processes that they record
_closing: Callable[[], list[bytes] | None] | None = None


def is_too_late(prof: profile) -> bool:
    """Returns whether the interpreter is shutting down. Then the profile stays empty, and a line says so."""
    if not sys.is_finalizing():
        return False
    standard_error.say(TOO_LATE)
    forked.stay_empty(prof)
    return True


def expect(prof: profile) -> None:
    """Notes a profile that was started, so that the end of this process finishes it."""
    if not _unfinished:
        atexit.unregister(_finish_all)
        atexit.register(_finish_all)
    reference = ref(prof, _forget)
    forked.started.add(reference)
    _unfinished[reference] = os.getpid()
    _core.on_exit(_leave)


def close_with(closing: Callable[[], list[bytes] | None] | None) -> None:
    """Sets a function that is called at os._exit, when everything is finished: its result is a command whose output
    goes to standard error.
    """
    global _closing
    _closing = closing


def forget(prof: profile) -> None:
    """Forgets a profile that is finished."""
    _unfinished.pop(ref(prof), None)
    if not _unfinished:
        _core.on_exit(None)


def _forget(
    reference: ref[profile],
    unfinished: dict[ref[profile], int] = _unfinished,
    on_exit: Callable[[None], None] = _core.on_exit,
    discard: Callable[[ref[profile]], None] = forked.started.discard,
) -> None:
    """Called when a profile is dropped. This is a Python function of ours, because a C function would be recorded as a
    call of the program. Its defaults are the globals that it needs, because this module may be torn down by then.
    """
    discard(reference)
    unfinished.pop(reference, None)
    if not unfinished:
        on_exit(None)


def _own() -> list[profile]:
    """only profiles of this process, not of its parent"""
    found = [reference() for reference, process in list(_unfinished.items()) if process == os.getpid()]
    return [prof for prof in found if prof is not None]


def _finish_all() -> None:
    forked.notice()
    for prof in _own():
        try:
            prof.finish()
        except Exception as error:
            if not prof._is_child:
                standard_error.say(str(error))


def _leave(code: int) -> list[bytes] | None:
    """Called when the program called os._exit(code)."""
    forked.notice()
    sys.setswitchinterval(FOREVER_S)
    for prof in _own():
        try:
            prof._session.set_metadata(EXIT, f'{{"by": "os._exit", "code": {code & 0xFF}}}')
            prof.finish()
        except Exception as error:
            if not prof._is_child:
                standard_error.say(str(error))
    return _closing() if _closing is not None else None
