"""The process to attach to: facts from /proc, and reasons why it cannot be recorded. Nothing here touches the
process.
"""

from __future__ import annotations

import glob
import os
from contextlib import contextmanager

from vestige.base.failure import Failure

from .elf import Library, NotElf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

STATES = {"T": "is stopped", "t": "is stopped by a debugger", "Z": "has ended", "X": "has ended"}
MARK = "Py_AddPendingCall"  # a function that every Python has
STRICT = "1"  # the strict mode of seccomp; 2 is a filter, which containers use
NEAR = "run vestige there"
OLDEST = "3.11"  # the first Python with the variable Py_Version


class Target:
    """A Python process of this user, in the same namespaces, that can be asked to record."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        if pid == os.getpid():
            raise Failure(f"{pid} is this vestige itself", code=2)
        self._check_status()
        try:
            self.handle = os.pidfd_open(pid)  # readable once the process has ended
        except OSError as error:
            raise Failure(f"process {pid}: {error.strerror}") from None
        self._check_place()
        self._program = self._read_program()
        self.library = self._find_python()
        self.libc = self.find_library("libc.so") or self.find_library("libc-2") or self.find_library("ld-musl")

    # ---- what every way of attaching needs ----

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Says why the system refuses a look into the process."""
        try:
            yield
        except PermissionError:
            raise Failure(self.refused()) from None
        except OSError:
            raise Failure(f"process {self.pid} has ended") from None

    def status(self) -> dict[str, str]:
        """Returns the lines of /proc/PID/status; empty if the process does not exist any more."""
        return _facts(f"/proc/{self.pid}/status")

    def _check_status(self) -> None:
        facts = self.status()
        if not facts:
            if not os.path.exists("/proc/self"):
                raise Failure(f"process {self.pid}: /proc is not mounted, and attaching needs it")
            raise Failure(f"there is no process {self.pid}")
        if facts.get("Tgid", "").strip() != str(self.pid):
            raise Failure(f"{self.pid} is a thread of process {facts.get('Tgid', '').strip()}: give that")
        if int(facts["Uid"].split()[1]) != os.geteuid():
            raise Failure(f"process {self.pid} belongs to {_user(int(facts['Uid'].split()[1]))}: {_as_user(facts)}")
        if trouble := self.trouble(facts):
            raise Failure(trouble)
        self._check_seccomp()

    def _check_seccomp(self) -> None:
        """Raises Failure in strict seccomp mode: the system ends such a thread when it starts another thread, opens a
        file or makes a socket.
        """
        for path in glob.glob(f"/proc/{self.pid}/task/*/status"):
            if _facts(path).get("Seccomp", "0").strip() == STRICT:
                raise Failure(f"process {self.pid} is in strict seccomp mode: it would end if it was recorded")

    def trouble(self, facts: dict[str, str]) -> str:
        """Returns why a process in this state does not answer requests; "" if it does."""
        tracer = facts.get("TracerPid", "0").strip()
        state = STATES.get(facts.get("State", "X")[0], "")
        if state == "has ended":
            return f"process {self.pid} has ended"
        if tracer != "0":
            return f"process {self.pid} is traced by another program ({_command(tracer)}, process {tracer})"
        return f"process {self.pid} {state}: let it go on first (kill -CONT {self.pid})" if state else ""

    def _check_place(self) -> None:
        """Raises Failure unless the process sees the same files, because it receives paths and writes the trace."""
        for kind, name in (("pid", "processes"), ("mnt", "mounts"), ("user", "users")):
            with self._looking():
                same = os.readlink(f"/proc/{self.pid}/ns/{kind}") == os.readlink(f"/proc/self/ns/{kind}")
            if not same:
                where = f"process {self.pid} is in another namespace of {name} (a container?)"
                raise Failure(f"{where}: {NEAR}, or use vestige.listen() and --socket")
        if not os.path.samefile(f"/proc/{self.pid}/root", "/"):
            raise Failure(f"process {self.pid} has another root folder (a chroot?): {NEAR}")

    def refused(self) -> str:
        """Returns what to do if the system does not let us look into the process. The system also refuses for a process
        that has just ended.
        """
        if trouble := self.trouble(self.status()):
            return trouble
        scope = _text("/proc/sys/kernel/yama/ptrace_scope").strip()
        if scope not in ("", "0"):
            hint = f"kernel.yama.ptrace_scope is {scope}; 0 allows it, and so does root"
        else:
            hint = "it needs the right to trace the process (CAP_SYS_PTRACE in a container)"
        refused = f"the system does not let vestige attach to process {self.pid}"
        return f"{refused}: {hint}; a program that calls vestige.listen() needs no such right"

    def _read_program(self) -> tuple[str, str]:
        """Returns when the program began, and its file. They distinguish it from an earlier program or an earlier
        process of this number. Notes where files are mapped, which may differ too.
        """
        begun = self._read_begun()
        self._read_maps()
        return begun, self._read_exe()

    def look_again(self) -> None:
        """Call while the process cannot run; before, it may become another program at any time. Raises Failure if it
        has.
        """
        libraries = [library for library in (self.library, self.libc) if library is not None]
        if self._read_program() != self._program or any(
            self._maps.get(library.path) != library.start
            or self.read(library.start, len(library.head())) != library.head()
            for library in libraries
        ):
            raise Failure(f"process {self.pid} runs another program now than when vestige looked")
        self._check_seccomp()

    def read(self, address: int, size: int) -> bytes:
        """Returns bytes of the process's memory; fewer, or none, if it has no memory there."""
        try:
            with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as file:
                file.seek(address)
                return file.read(size)
        except OSError:
            return b""

    def find_block(self, block: bytes) -> int:
        """Returns the address of a block that was put there for vestige before; 0 if there is none."""
        for begin, end in self._anonymous:
            for place in range(begin, end, len(block)):
                if self.read(place, len(block)) == block:
                    return place
        return 0

    def _read_exe(self) -> str:
        with self._looking():
            return os.readlink(f"/proc/{self.pid}/exe")

    def _read_begun(self) -> str:
        fields = _text(f"/proc/{self.pid}/stat").rpartition(")")[2].split()
        if len(fields) < 20:
            raise Failure(f"process {self.pid} has ended")
        return fields[19]

    def waits_in(self) -> str:
        """Returns the system call that the main thread waits in; "" if it runs."""
        return _text(f"/proc/{self.pid}/wchan").strip("0\n")

    # ---- its Python ----

    def _read_maps(self) -> None:
        """Reads which files are mapped from their beginning, and where; and the code that is not from a file."""
        self._maps: dict[str, int] = {}
        self._anonymous: list[tuple[int, int]] = []
        with self._looking(), open(f"/proc/{self.pid}/maps", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                span, mode, offset, _, _, *path = line.rstrip("\n").split(None, 5)
                begin, end = (int(number, 16) for number in span.split("-"))
                if path and path[0].startswith("/") and int(offset, 16) == 0:
                    self._maps.setdefault(path[0], begin)
                elif not path and mode == "r-xp":
                    self._anonymous.append((begin, end))

    def find_library(self, stem: str) -> Library | None:
        """Returns the mapped file whose name begins like this: `libc.so`."""
        for path, start in self._maps.items():
            if os.path.basename(path).startswith(stem):
                if path.endswith(" (deleted)"):
                    raise Failure(f"process {self.pid}: {path.removesuffix(' (deleted)')} was replaced since it began")
                try:
                    return Library(path, start)
                except (NotElf, OSError):
                    continue
        return None

    def _find_python(self) -> Library:
        library = self.find_library("libpython3")
        if library is None:
            program = self._read_exe()
            try:
                library = Library(f"/proc/{self.pid}/exe", self._maps.get(program, 0))
                library.path = program
            except PermissionError:
                raise Failure(self.refused()) from None
            except (NotElf, OSError):
                library = None
        if library is None or not library.address(MARK):
            raise Failure(f"process {self.pid} ({_command(str(self.pid))}) is not a Python that vestige knows")
        return library

    def version(self) -> tuple[int, int] | None:
        """Returns the version of the process's Python; None if it is older than OLDEST."""
        number = self.library.read("Py_Version", 8)
        if number is None:
            return None
        whole = int.from_bytes(number, "little")
        return whole >> 24 & 0xFF, whole >> 16 & 0xFF

    def takes_any_thread(self) -> bool:
        """Returns whether any thread may run the block, not only the main thread."""
        return (self.version() or (0, 0)) >= (3, 12) and bool(self.library.address("_PyEval_AddPendingCall"))


def _text(path: str) -> str:
    """Returns the content of a file; "" if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _facts(path: str) -> dict[str, str]:
    return dict(line.split(":\t", 1) for line in _text(path).split("\n") if ":\t" in line)


def _command(pid: str) -> str:
    return _text(f"/proc/{pid}/comm").strip() or "unknown"


def _user(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _as_user(facts: dict[str, str]) -> str:
    uid = int(facts["Uid"].split()[1])
    return "attach as root" if uid == 0 else f"attach as that user (sudo -u '{_user(uid)}' vestige attach …)"
