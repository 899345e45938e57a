"""The one folder that agents may ask about. Refuses a name that leads out of the folder, by `..`, by a link or as an
absolute path. The id of a trace is its path below the folder.
"""

from __future__ import annotations

import os
import time

from vestige._core import TraceError
from vestige.base.child_files import named_as_children
from vestige.base.failure import Failure, explain
from vestige.base.printable import one_line
from vestige.base.quantities import duration, size
from vestige.reading.inputs import SUFFIX, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FILES_MAX = 10_000  # limit for the files that are searched for traces
NEWEST = ""  # the id of the newest trace
COMMAND = 200  # characters of a command that are shown


class Folder:
    """`root` has no link in it."""

    def __init__(self, path: str) -> None:
        if not os.path.isdir(path):
            raise Failure(f"{path}: there is no such folder", code=2)
        self.root = os.path.realpath(path)

    def resolve(self, name: str) -> str:
        """Returns the path that a name stands for, without links."""
        if "\0" in name:
            raise Failure("a name with a NUL in it names no file")
        path = os.path.realpath(os.path.join(self.root, name))
        if not self.holds(path):
            raise Failure(f"{name} is outside of the folder that this server may read")
        return path

    def holds(self, path: str) -> bool:
        """Returns whether a path without links is in the folder."""
        return path == self.root or path.startswith(self.root.rstrip("/") + "/")

    def id_of(self, path: str) -> str:
        return os.path.relpath(path, self.root)

    def trace(self, name: str) -> str:
        """Returns the path of a trace by its id; for an empty id, of the newest trace. The traces of its child
        processes are read together with it, so they must be in the folder, too.
        """
        path = self.newest() if name == NEWEST else self.resolve(name)
        if not os.path.isfile(path):
            raise Failure(f"there is no trace {name}; list_traces tells which there are")
        for child in named_as_children(path):
            if not self.holds(os.path.realpath(child)):
                raise Failure(f"{self.id_of(child)} leads out of the folder that this server may read")
        return path

    def newest(self) -> str:
        found = self.traces()
        if not found:
            raise Failure("there is no trace in the folder yet")
        return found[0].path

    def traces(self) -> list[Source]:
        """Returns the readable traces whose process was not started by another recorded process, the newest first."""
        found = []
        for path in self._files():
            try:
                source = Source(path)
            except (OSError, TraceError, ValueError):
                continue
            if source.is_root:
                found.append(source)
        return sorted(found, key=lambda source: -source.facts["start_ns"])

    def _files(self) -> Iterator[str]:
        left = FILES_MAX
        for folder, folders, names in os.walk(self.root):  # os.walk follows no links to folders
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                left -= 1
                if left < 0:
                    return
                path = os.path.join(folder, name)
                if name.endswith(SUFFIX) and not os.path.islink(path) and os.path.isfile(path):
                    yield path


def describe(source: Source, trace: str) -> str:
    """Returns a line that describes a trace."""
    facts = source.facts
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(facts["start_ns"] / 1e9))
    return (
        f"{trace}  {started}  {duration(facts['end_ns'] - facts['start_ns'])}  {facts['records']:,} records  "
        f"{size(facts['bytes'])}  {source.ended}  {one_line(source.command)[:COMMAND]}"
    )


def open_source(folder: Folder, path: str) -> Source:
    try:
        return Source(path)
    except (OSError, TraceError, ValueError) as error:
        raise Failure(explain(folder.id_of(path), error)) from None
