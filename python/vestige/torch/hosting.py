"""Where nodes of the execution trace go: into the recording of a profile while there is one, else into one that the
observer makes itself. A profile calls begin() and end(), which move the running observer from one to the other.

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

NUMBERS = 255  # of observers in one recording, at most

_host: ref[profile] | None = None  # the profile that records or is about to; one that is dropped stops
_pid = 0  # the process it records in: a forked child has only a copy
running: ref[ExecutionTraceObserver] | None = None  # the observer that runs; the program may drop it
_number = 0  # given last
_joined = 0  # observers with nodes in the session


def _observer() -> ExecutionTraceObserver | None:
    return None if running is None else running()


def session() -> _core.Session | None:
    """The session of the profile that records, or is about to."""
    _core.notice_fork()
    host = None if _host is None or _pid != os.getpid() else _host()
    return None if host is None else host._session


def begin(prof: profile) -> bool:
    """Called before a profile records. Returns False if another one does: this one will be refused."""
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
    """Called once the profile records."""
    observer = _observer()
    if observer is not None:
        observer._record_pg_config()


def end(prof: profile) -> None:
    """Called after the profile stopped: an observer that still runs goes on alone."""
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
    except (OSError, RuntimeError) as error:  # the profile itself is complete
        from .adapter import tell

        observer.stop()
        tell(f"{observer.output_file_path}: the execution trace ends here: {error}")


def new_number() -> int:
    """A number for an observer, the same in all recordings that get its nodes."""
    global _number
    _number = _number % NUMBERS + 1
    return _number


def join() -> None:
    """Counts an observer whose nodes go to the profile's recording for the first time."""
    global _joined
    if _joined == NUMBERS:
        raise RuntimeError(f"a recording holds at most {NUMBERS} execution traces: start a new profile()")
    _joined += 1


def after_fork_of_host() -> None:
    """In a child: the profile that records is its parent's."""
    global _host
    _host = None


def after_fork() -> None:
    """In a child: the recording and the observer are its parent's."""
    global _host, running
    _host = running = None
