"""The traces that a command reads: the given files, their child processes' files, and the traces in given folders. A
trace that cannot be read is reported on stderr and left out; this is an error only if no trace is left.
"""

from __future__ import annotations

import os
import re
import stat
import sys

from vestige._core import Trace, TraceError
from vestige.base.child_files import named_as_children
from vestige.base.copies import complete_copies
from vestige.base.failure import Failure, explain
from vestige.base.printable import printable

from .metadata import check_shapes, load_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from vestige.base.terminal import Progress


SUFFIX = ".vst"
STORAGE = "vestige.storage"  # metadata of a trace that is copied to a slow disk
SNAPSHOT = re.compile(r"-snapshot\d+\.vst$")
NO_RANK = 1 << 40
GENERIC = ("python", "command")  # names of processes that say nothing
C_FUNCTION = 2
EXEC = ("execv", "execve")  # every os.exec* calls one of these


class Source:
    """A readable trace file, with the facts that are known without reading its records."""

    def __init__(self, path: str) -> None:
        trace = Trace(path)
        self.path = path
        self.facts: dict[str, Any] = trace.info()
        self.written: dict[str, Any] = {key: load_json(text) for key, text in trace.metadata().items()}
        self.metadata = check_shapes(self.written)
        self.threads: list[dict[str, Any]] = trace.threads()
        self.pid: int = self.facts["pid"]
        self.duration_ns: int = self.facts["end_ns"] - self.facts["start_ns"]
        self.calls = 0  # calls that a report has read

    def open(self) -> Trace:
        return Trace(self.path)

    @property
    def family(self) -> str:
        """The trace id of the first process, from which this process and its relatives come."""
        return str(self.metadata.get("vestige.root", self.facts["trace_id"]))

    @property
    def is_root(self) -> bool:
        return self.family == str(self.facts["trace_id"])

    @property
    def parent_pid(self) -> int | None:
        pid: int | None = self.metadata.get("vestige.parent", {}).get("pid")
        return pid if pid is not None and 0 <= pid < 1 << 31 else None

    @property
    def rank(self) -> int | None:
        rank: int | None = self.metadata.get("distributedInfo", {}).get("rank")
        return rank

    @property
    def host(self) -> str:
        return str(self.metadata.get("host_name", "?"))

    @property
    def title(self) -> str:
        """`rank 1 on hostB`, else `process 1234 on hostB`."""
        who = f"process {self.facts['pid']}" if self.rank is None else f"rank {self.rank}"
        return f"{who} on {self.host}"

    @property
    def command(self) -> str:
        """The command line of the process."""
        command = self.metadata.get("vestige.command", "")
        if isinstance(command, str):
            return command
        from shlex import join

        return join(command)

    @property
    def name(self) -> str:
        """The command line. If it does not contain the process's name, the name comes first, as in exports."""
        name = self.metadata.get("vestige.process_name")
        program, *words = self.command.split(" ")
        command = " ".join([os.path.basename(program), *words])
        if name is None or name in command or (command and name in GENERIC):
            return command or "python"
        return f"{name}: {command}" if command else name

    @property
    def ended(self) -> str:
        """How the recording ended: clean, torn, recording or damaged."""
        if self.facts["clean"]:
            return "clean"
        if self.facts["damaged_at"]:
            return "damaged"
        storage = self.metadata.get(STORAGE)
        local = str(storage.get("local", "")) if isinstance(storage, dict) else ""  # the file that its process has open
        return "recording" if is_open_in(self.facts["pid"], local or self.path) else "torn"

    def was_replaced(self) -> bool:
        """Returns whether the process became another program by os.exec*, which means that a call of such a function
        did not return. Reads all records, but only if the trace is torn and has such calls.
        """
        trace = self.open() if self.ended == "torn" else None
        if trace is None or not trace.names().intersection(EXEC):
            return False
        shown = [f"<built-in function {name}>" for name in EXEC]
        wanted = {
            number
            for number, function in enumerate(trace.functions())
            if function and function.kind == C_FUNCTION and function.name in shown and function.file == "posix"
        }
        begun = sum(row.calls for row in trace.tables(["functions"])["functions"] if row.func in wanted)
        return bool(begun > sum(len(trace.spans(name)) for name in shown))

    @property
    def order(self) -> tuple[bool, int, int]:
        """The key to sort by: first processes first, then by rank, then by start."""
        return (not self.is_root, NO_RANK if self.rank is None else self.rank, self.facts["start_ns"])


class Inputs:
    """The traces found. `failed` is true if a requested trace could not be read."""

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self.failed = False
        self._seen: dict[tuple[int, int], Source] = {}
        self._errors: list[str] = []

    def tell(self, line: str, *, failed: bool = True) -> None:
        """Reports a problem on stderr; the command goes on with other traces."""
        self.failed |= failed
        print(printable(f"vestige: {line}"), file=sys.stderr)

    def fail(self, source: Source, error: Exception) -> None:
        """Reports a trace that could not be read although it could be opened."""
        self.tell(explain(source.path, error))

    def read_each(self, read: Callable[[Source, Progress], object]) -> None:
        """Calls `read` for each trace and shows the progress. Reports a trace that cannot be read, and continues with
        the next.
        """
        from vestige.base.terminal import Progress

        records = sum(source.facts["records"] for source in self.sources) or 1
        done = 0
        for source in self.sources:
            progress = Progress(f"reading {source.path}", done / records, source.facts["records"] / records)
            done += source.facts["records"]
            try:
                read(source, progress)
            except (OSError, TraceError) as error:
                self.fail(source, error)
            finally:
                progress.clear()

    def add(self, path: str, *, children: bool) -> None:
        """Adds a file and, if it is the file of a first process, its children's files."""
        source = self._take(path)
        if source is not None and children and source.is_root:
            for child in named_as_children(path):
                self._take(child, root=source)

    def add_folder(self, folder: str, *, children: bool) -> None:
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            self._errors.append(explain(folder, error))
            return
        before = len(self._errors)
        found = False
        for name in names:
            if name.endswith(SUFFIX) and not SNAPSHOT.search(name):
                found |= self._take(os.path.join(folder, name), skip=True, roots_only=not children) is not None
        if not found and len(self._errors) == before:
            self._errors.append(f"{folder}: there is no trace ({SUFFIX}) in it")

    def finish(self) -> None:
        """Reports traces that could not be read; raises Failure if no trace is left."""
        if not self.sources:
            for line in self._errors[:-1]:
                self.tell(line)
            raise Failure(self._errors[-1])
        for line in self._errors:
            self.tell(line)
        self.sources.sort(key=lambda source: source.order)

    def _take(
        self, path: str, *, root: Source | None = None, skip: bool = False, roots_only: bool = False
    ) -> Source | None:
        """Opens a file unless it was opened before. With `root`, the file must be a child of that trace. If `root` or
        `skip` is given, a file that is not a trace is no error.
        """
        try:
            status = os.stat(path)
            if not stat.S_ISREG(status.st_mode):
                raise ValueError("a pipe, device or folder, not a trace file")
            key = (status.st_dev, status.st_ino)
            if key in self._seen:
                return self._seen[key]
            source = Source(path)
        except (OSError, TraceError, ValueError) as error:
            self._note(explain(path, error), soft=root is not None or (skip and "not a vestige trace" in str(error)))
            return None
        if (root is not None and source.family != root.family) or (roots_only and not source.is_root):
            return None
        self._seen[key] = source
        self.sources.append(source)
        return source

    def _note(self, line: str, *, soft: bool) -> None:
        if soft:
            self.tell(f"{line}; skipped", failed=False)
        else:
            self._errors.append(line)


def find_traces(paths: Iterable[str], *, children: bool = True, inputs: Inputs | None = None) -> Inputs:
    """Returns the traces that the paths stand for, in the order to show them. Raises Failure if there is none."""
    inputs = inputs or Inputs()
    for path in _expand(paths):
        complete_copies(path, lambda line: inputs.tell(line, failed=False))
        if os.path.isdir(path):
            inputs.add_folder(path, children=children)
        else:
            inputs.add(path, children=children)
    inputs.finish()
    return inputs


def _expand(paths: Iterable[str]) -> Iterable[str]:
    """Expands patterns that the shell left alone. A pattern that matches nothing is kept, and is then reported as a
    missing file.
    """
    for path in paths:
        matches: list[str] = []
        if any(sign in path for sign in "*?[") and not os.path.lexists(path):
            from glob import glob

            matches = sorted(glob(path, recursive=True))
        yield from matches or [path]


def is_open_in(pid: int, path: str) -> bool:
    """Returns whether process `pid` has the file open. A later process with an equal number has not."""
    folder = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(folder)
    except OSError:
        return False
    return any(_is_same(path, f"{folder}/{number}") for number in numbers)


def _is_same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False
