"""Recording allocations: which code holds memory, leaks it, or asks for it again and again.

    from vestige import memory

    with memory.track("out.vst"):
        work()

or memory.start() and memory.stop(), and memory.export_memory_history("m.html"). `vestige memory script.py` records a
whole program, `vestige memory-report out.vst` shows the result. profile(profile_memory=True) records calls and
allocations together.

Every allocation of Python's allocators and of malloc and its kin is recorded, with the Python stack it was made with.
Calls are not recorded: a program that allocates little runs as fast as without vestige.
"""

from __future__ import annotations

import os

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from types import TracebackType
    from typing import Any, Self, TypeVar

    from .profiler import profile

    Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
    Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = ["export_memory_history", "is_tracing", "start", "stop", "track"]


_recording: profile | None = None  # between start() and stop()
_last: profile | None = None  # the last recording, which export_memory_history() writes


def start(
    path: Path | None = None,
    *,
    native: bool = False,
    sample: str | int | None = None,
    native_allocators: bool = True,
    overwrite: bool = False,
    children: bool = False,
    max_size: str | int | None = None,
    last: str | float | timedelta | None = None,
) -> None:
    """Records every allocation and free from now on.

    path              the .vst file to write, readable even if the process is killed. Default: a temporary file, which
                      is deleted when it is no longer needed
    native            also record native frames (functions written in C and C++)
    sample            bytes, or "512K": record about one allocation for each such amount of memory, and estimate totals
    native_allocators False: record only Python's own allocators, not malloc and related functions
    overwrite         replace an existing file
    children          also record child processes; each child has its own file next to `path`
    max_size          bytes, or "256M": the largest size of the file; the oldest records are dropped
    last              seconds, a timedelta, or "30s": keep only the records of the last 30 seconds
    """
    global _recording, _last
    if _is_on():
        raise RuntimeError("memory is being recorded already: call vestige.memory.stop() first")
    from .profiler import profile

    prof = profile(
        with_stack=False,
        gc=False,
        profile_memory=True,
        memory_native_stacks=native,
        memory_sample=sample,
        memory_native_allocators=native_allocators,
        output=path,
        overwrite=overwrite,
        children=children,
        max_size=max_size,
        last=last,
    )
    prof.start()
    _recording = _last = prof


def stop() -> None:
    """Stops recording, completes the file if start() was given one, and restores every allocator."""
    global _recording
    prof, _recording = _recording, None
    if prof is None:
        raise RuntimeError("memory is not being recorded: call vestige.memory.start() first")
    if prof._running:
        prof.stop()
    if prof._output is not None:
        prof.finish()


def is_tracing() -> bool:
    """Returns whether allocations are being recorded in this process, by start(), track() or
    profile(profile_memory=True).
    """
    return _core.memory_is_tracing()


def export_memory_history(path: Path) -> None:
    """Writes the recording in progress, or else the last one, in the format that the suffix names.

    .html     a page on its own: usage over time, flame graphs of the peak, of leaks and of temporary allocations
    .json .csv .folded    every allocation; by stack
    .pickle   for torch's memory visualizer
    """
    if _last is None:
        raise RuntimeError("no memory was recorded: call vestige.memory.start() first")
    from .reading.exports import MEMORY_SUFFIXES

    name = os.fsdecode(path)
    if not name.removesuffix(".gz").endswith(MEMORY_SUFFIXES):
        raise ValueError(f"{name}: no format has this suffix; use one of {', '.join(MEMORY_SUFFIXES)}")
    _last._session.export_memory(name)


class track:
    """A recording of one block, or of each call of a function.

        with memory.track("out.vst"):
            work()

    Takes what start() takes. As a decorator, of a function that is called more than once, it needs overwrite=True.
    """

    def __init__(self, path: Path | None = None, **options: Any) -> None:
        unknown = options.keys() - (start.__kwdefaults__ or {}).keys()
        if unknown:
            raise TypeError(f"track() has no option {', '.join(sorted(unknown))}")
        self._path = path
        self._options = options

    def __enter__(self) -> Self:
        start(self._path, **self._options)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if _is_on():  # the block may have called stop()
            stop()

    def __call__(self, function: Function) -> Function:
        from functools import wraps

        @wraps(function)
        def tracked(*args: Any, **kwargs: Any) -> Any:
            with track(self._path, **self._options):
                return function(*args, **kwargs)

        return tracked  # type: ignore[return-value]


def _is_on() -> bool:
    """Returns whether start() records in this process. A forked child does not inherit the recording."""
    return _recording is not None and _recording._running and _recording._session.recording
