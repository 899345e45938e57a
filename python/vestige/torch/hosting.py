"""Where nodes of the execution trace go: into the recording of a profile while there is one, else into one that the
observer makes itself. A profile tells of its beginning and its end; the running observer is told.

Loaded with profile; it must cost nothing there.
"""

from __future__ import annotations

import os
from _weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vestige import _core
    from vestige.profiler import profile

    from .execution_trace import ExecutionTraceObserver

NUMBERS = 255  # that observers have in one recording

_host: ref[profile] | None = None  # the profile that records or is about to; one that is dropped stops
_pid = 0  # in which it does: a child has only a copy
running: ref[ExecutionTraceObserver] | None = None  # the observer that runs; the program may drop it
_number = 0  # given last
_joined = 0  # observers with nodes in the session


def _observer() -> ExecutionTraceObserver | None:
    return None if running is None else running()


def session() -> _core.Session | None:
    """That of the profile which records, or is about to."""
    host = None if _host is None or _pid != os.getpid() else _host()
    return None if host is None else host._session


def begin(prof: profile) -> bool:
    """Before a profile records. False: another one does, and this one will be refused."""
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
    """It records."""
    observer = _observer()
    if observer is not None:
        observer._record_pg_config()


def end(prof: profile) -> None:
    """After it stopped: an observer that goes on does so alone."""
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
    except (OSError, RuntimeError) as error:  # which is no trouble of the profile's
        from .adapter import tell

        observer.stop()
        tell(f"{observer.output_file_path}: the execution trace ends here: {error}")


def new_number() -> int:
    """Of an observer, in all recordings that get its nodes."""
    global _number
    _number = _number % NUMBERS + 1
    return _number


def join() -> None:
    """An observer has nodes in the profile's recording, the first time."""
    global _joined
    if _joined == NUMBERS:
        raise RuntimeError(f"a recording holds {NUMBERS} execution traces, and they are used up: start a new profile()")
    _joined += 1


def after_fork_of_host() -> None:
    """In a child: the profile that records is its parent's."""
    global _host
    _host = None


def after_fork() -> None:
    """In a child: the recording and the observer are its parent's."""
    global _host, running
    _host = running = None
