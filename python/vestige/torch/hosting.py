"""Directs nodes of the execution trace into the recording of a profile while there is one, else into a recording that
the observer makes itself. A profile calls begin() and end(), which move the running observer from one to the other.

profile imports this module, so loading it must cost next to nothing.
"""

from __future__ import annotations

import os
from _weakref import ref

from vestige import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vestige.profiler import profile

    from .execution_trace import ExecutionTraceObserver

NUMBERS = 255  # the most observers in one recording

_host: ref[profile] | None = None  # the profile that records or is about to; None after the program dropped it
_pid = 0  # the process in which it records: a forked child has only a copy
running: ref[ExecutionTraceObserver] | None = None  # the running observer, which the program may drop
_number = 0  # the last number given to an observer
_joined = 0  # observers that have nodes in the session


def _observer() -> ExecutionTraceObserver | None:
    return None if running is None else running()


def session() -> _core.Session | None:
    """Returns the session of the profile that records or is about to."""
    _core.notice_fork()
    host = None if _host is None or _pid != os.getpid() else _host()
    return None if host is None else host._session


def begin(prof: profile) -> bool:
    """Call before a profile records. Returns False if another profile already records, because then this profile will
    be refused.
    """
    global _host, _pid, _joined
    if session() is not None:
        return False
    observer = _observer()
    if observer is not None:
        observer._leave()
    _host, _pid, _joined = ref(prof), os.getpid(), 0
    if observer is not None:
        observer._join()
    return True


def begun() -> None:
    """Call once the profile records."""
    observer = _observer()
    if observer is not None:
        observer._record_pg_config()


def end(prof: profile) -> None:
    """Call after the profile stopped. An observer that still runs continues in a recording of its own."""
    global _host
    if session() is not prof._session:
        return
    observer = _observer()
    if observer is not None:
        observer._leave()
    _host = None
    if observer is None:
        return
    try:
        observer._join()
    except (OSError, RuntimeError) as error:  # the profile itself is complete; only the execution trace ends
        from .adapter import tell

        observer.stop()
        tell(f"{observer.output_file_path}: the execution trace ends here: {error}")


def new_number() -> int:
    """Returns a number for an observer, which is valid in all recordings that get its nodes."""
    global _number
    _number = _number % NUMBERS + 1
    return _number


def join() -> None:
    """Counts an observer when its nodes first go to the profile's recording."""
    global _joined
    if _joined == NUMBERS:
        raise RuntimeError(f"a recording holds at most {NUMBERS} execution traces: start a new profile()")
    _joined += 1


def after_fork_of_host() -> None:
    """Call in a forked child: forgets the profile, which records only in the parent."""
    global _host
    _host = None


def after_fork() -> None:
    """Call in a forked child: forgets the recording and the observer, which belong to the parent."""
    global _host, running
    _host = running = None
