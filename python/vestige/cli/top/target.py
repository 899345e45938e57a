"""The trace that `vestige top` watches, and the system's facts about the process that writes it."""

from __future__ import annotations

import os
import stat

from vestige._core import Growing, Trace, TraceError, recover
from vestige.base.failure import Failure, explain
from vestige.reading.inputs import SUFFIX, Source

MAGIC = b"vestige\n"
STATES = {"R": "runs", "S": "waits", "D": "waits for the disk", "T": "is stopped", "t": "is stopped", "Z": "ended"}


class Target:
    """A trace and the process that writes it. The file stays open: it may be renamed or deleted meanwhile."""

    def __init__(self, name: str, path: str, pid: int | None = None) -> None:
        """`path` is the file to open, `name` the name to show. The process may have another number in its own
        namespace; the trace has that number.
        """
        self.name = name
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Failure(explain(name, error)) from None
        self.path = f"/proc/self/fd/{self._fd}"
        self._identity = _identity(os.fstat(self._fd))
        self._writer_fd = ""
        try:
            self.source = Source(self.path)
        except (OSError, TraceError, ValueError) as error:
            raise Failure(_about(name, self.path, error)) from None
        if self.source.facts["packed"]:
            raise Failure(f"{name}: is packed, so nothing records into it; vestige report {name} shows it")
        self.pid = int(self.source.facts["pid"]) if pid is None else pid

    def open(self, before_ns: int) -> Growing:
        try:
            return Growing(self.path, before_ns)
        except (OSError, TraceError, ValueError) as error:
            raise Failure(_about(self.name, self.path, error)) from None

    def explain(self, error: Exception) -> str:
        return _about(self.name, self.path, error)

    def is_alive(self) -> bool:
        """Returns whether the process has the file open. A later process with an equal number has not."""
        folder = f"/proc/{self.pid}/fd"
        try:
            numbers = os.listdir(folder)
        except OSError:
            return False
        if self._writer_fd in numbers:  # usually the process still has the file under the same descriptor
            numbers.insert(0, self._writer_fd)
        for number in numbers:
            if _identity_of(f"{folder}/{number}") == self._identity:
                self._writer_fd = number
                return True
        return False

    def is_deleted(self) -> bool:
        return os.fstat(self._fd).st_nlink == 0

    def resident(self) -> int | None:
        """Returns how many bytes of the process are in RAM."""
        try:
            with open(f"/proc/{self.pid}/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            return None

    def cpu_ns(self, thread: int | None = None) -> int | None:
        """Returns how long the process, or one of its threads, has run."""
        fields = _stat(self.pid, thread)
        return None if fields is None else (int(fields[11]) + int(fields[12])) * 10**9 // os.sysconf("SC_CLK_TCK")

    def state(self, thread: int) -> str:
        """Returns the state of a thread according to the system; "" if the thread has ended."""
        fields = _stat(self.pid, thread)
        return "" if fields is None else STATES.get(fields[0], fields[0])

    def snapshot(self) -> str:
        """Writes a finished copy of the trace next to it, or into this folder if that is impossible. Returns the copy's
        path.
        """
        stem = self.name.removesuffix(SUFFIX)
        for folder in (os.path.dirname(stem) or ".", "."):
            number = 1
            while os.path.lexists(target := os.path.join(folder, f"{os.path.basename(stem)}-snapshot{number}{SUFFIX}")):
                number += 1
            try:
                recover(self.path, target)
                return target
            except OSError as error:
                problem = explain(target, error)
            except TraceError as error:
                raise Failure(_about(self.name, self.path, error)) from None
        raise Failure(problem)


def find_target(word: str) -> Target:
    """Finds a target by the number of a process, or by a file."""
    if not word.isdecimal() or os.path.exists(word):
        return Target(word, word)
    folder = f"/proc/{word}/fd"
    try:
        numbers = os.listdir(folder)
    except FileNotFoundError:
        raise Failure(f"there is no process {word}, and no file of that name") from None
    except OSError as error:
        raise Failure(f"process {word}: {error.strerror}; top looks into processes of the same user") from None
    found: dict[tuple[int, int], tuple[str, int]] = {}
    for number in numbers:
        path = f"{folder}/{number}"
        identity = _identity_of(path)
        writer = None if identity is None or identity in found else _writer_of(path)
        if identity is not None and writer is not None:
            found[identity] = path, writer
    # A forked process may still have its parent's trace open.
    paths = [path for path, writer in found.values() if len(found) == 1 or writer == int(word)]
    if len(paths) > 1:
        names = sorted(map(_name_of, paths))
        raise Failure(f"process {word} records into {len(names)} files: {', '.join(names)}; choose one")
    if not paths:
        raise Failure(f"process {word} records nothing now")
    return Target(_name_of(paths[0]), paths[0], int(word))


def _name_of(path: str) -> str:
    return os.readlink(path).removesuffix(" (deleted)")


def _writer_of(path: str) -> int | None:
    """Returns the process that is recording into a trace, which is given as a descriptor /proc/PID/fd/N."""
    try:
        with open(path.replace("/fd/", "/fdinfo/")) as file:
            flags = next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))
        if flags & os.O_ACCMODE == os.O_RDONLY or not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                return None
        facts = Trace(path).info()
    except (OSError, StopIteration, TraceError, ValueError):
        return None
    return None if facts["clean"] else int(facts["pid"])


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _identity_of(path: str) -> tuple[int, int] | None:
    try:
        return _identity(os.stat(path))
    except OSError:
        return None


def _stat(pid: int, thread: int | None) -> list[str] | None:
    """Returns the fields behind the name, because the name may contain anything."""
    task = f"/task/{thread}" if thread is not None else ""
    try:
        with open(f"/proc/{pid}{task}/stat", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return fields if len(fields) > 12 else None


def _about(name: str, path: str, error: Exception) -> str:
    """Returns an error about a file under the name that the user knows."""
    return explain(path, error).replace(path, name)
