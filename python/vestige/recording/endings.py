"""The end of the process: recordings that are still open then are finished, whether it ends with the functions of
atexit or by os._exit, which runs none of them.

os._exit may be called anywhere, by any thread: what runs then imports nothing and waits for nobody.
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

EXIT = "vestige.exit"  # in the metadata: how the process ended, and its code
FOREVER_S = 1e6  # for a thread to wait until it is given its turn

_unfinished: dict[ref[profile], int] = {}  # and the processes they record
_closing: Callable[[], list[bytes] | None] | None = None


def expect(prof: profile) -> None:
    """It was started, and is to be finished at the end of this process."""
    if not _unfinished:
        atexit.unregister(_finish_all)
        atexit.register(_finish_all)
    reference = ref(prof, _forget)
    forked.started.add(reference)
    _unfinished[reference] = os.getpid()
    _core.on_exit(_leave)


def close_with(closing: Callable[[], list[bytes] | None] | None) -> None:
    """At os._exit, when all is finished, this names a command whose output is for standard error."""
    global _closing
    _closing = closing


def forget(prof: profile) -> None:
    """It is finished."""
    _unfinished.pop(ref(prof), None)
    if not _unfinished:
        _core.on_exit(None)


def _forget(
    reference: ref[profile],
    unfinished: dict[ref[profile], int] = _unfinished,
    on_exit: Callable[[None], None] = _core.on_exit,
    discard: Callable[[ref[profile]], None] = forked.started.discard,
) -> None:
    """A function of ours, for one of C's would be a call that the program makes when it drops a profile while it
    records. It may be called when this module is no longer whole.
    """
    discard(reference)
    unfinished.pop(reference, None)
    if not unfinished:
        on_exit(None)


def _own() -> list[profile]:
    """Not those of a process that this one was forked from."""
    found = [reference() for reference, process in list(_unfinished.items()) if process == os.getpid()]
    return [prof for prof in found if prof is not None]


def _finish_all() -> None:
    for prof in _own():
        try:
            prof.finish()
        except Exception as error:
            if not prof._is_child:
                standard_error.say(str(error))


def _leave(code: int) -> list[bytes] | None:
    """os._exit(code) was called."""
    sys.setswitchinterval(FOREVER_S)
    for prof in _own():
        try:
            prof._session.set_metadata(EXIT, f'{{"by": "os._exit", "code": {code & 0xFF}}}')
            prof.finish()
        except Exception as error:
            if not prof._is_child:
                standard_error.say(str(error))
    return _closing() if _closing is not None else None
