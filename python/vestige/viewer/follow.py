"""Follows traces that are still being recorded. New records are read when the page asks, so nothing is done for a page
that nobody looks at. Several threads of the server may ask in parallel.
"""

from __future__ import annotations

import contextlib
import os
import time
from threading import Lock

from vestige._core import TraceError
from vestige.base.child_files import named_as_children
from vestige.reading.inputs import SUFFIX, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .traces import Traces

LEAST = 0.1  # the least seconds between two readings
PROCESSES = 1.0  # seconds between two searches for new processes


class Follower:
    """Reads new records of a set of traces, and adds the traces of processes that began meanwhile."""

    def __init__(self, traces: Traces, paths: Sequence[str], *, children: bool = True) -> None:
        """`paths` are the files and folders that the user named."""
        self._traces = traces
        self._paths = paths
        self._children = children
        self._lock = Lock()
        self._read_at = self._looked_at = 0.0
        self.troubles: list[str] = []

    @property
    def goes_on(self) -> bool:
        """Whether a process may still be recording."""
        return any(shown.follows for shown in self._traces)

    def refresh(self) -> None:
        with self._lock:
            now = time.monotonic()
            if now - self._read_at < LEAST:
                return
            if now - self._looked_at >= PROCESSES and self.goes_on:
                self._looked_at = now
                self._add_processes()
            for shown in self._traces:
                if shown.follows:
                    try:
                        shown.refresh()
                    except (OSError, TraceError, ValueError) as error:
                        shown.follows = False  # the records read so far stay
                        self.troubles.append(f"{shown.source.path}: {error}")
            self._read_at = time.monotonic()

    def _add_processes(self) -> None:
        known = {os.path.abspath(shown.source.path) for shown in self._traces}
        families = {shown.source.family for shown in self._traces}
        for path, any_family in self._candidates():
            if os.path.abspath(path) in known:
                continue
            try:
                source = Source(path)
                if any_family or (source.family in families and self._children):
                    self._traces.add(source)
            except (OSError, TraceError, ValueError):  # the file may be incomplete; the next search tries again
                continue

    def _candidates(self) -> Iterable[tuple[str, bool]]:
        """Yields files that may be new traces, and whether a trace of any program is wanted."""
        for path in self._paths:
            if os.path.isdir(path):
                with contextlib.suppress(OSError):
                    names = sorted(name for name in os.listdir(path) if name.endswith(SUFFIX))
                    yield from ((os.path.join(path, name), self._children) for name in names)
            elif self._children:
                yield from ((child, False) for child in named_as_children(path))
