"""The way into Pythons before 3.14: gdb makes the interpreter run a block of code (entry_block.py) at its next safe
point.

gdb stops the process wherever it is: maybe inside malloc, maybe without the GIL, maybe before Python is initialized. So
nothing is called there that allocates or takes the GIL: Py_IsInitialized() says whether there is an interpreter, mmap()
makes room for the block once for each program, and Py_AddPendingCall(), which may be called anywhere, or its like for
any thread (_any_thread()), has the block run later, between two instructions of Python. The addresses of these
functions come from elf.py. gdb reads no symbols: it gets the name of another, small program, so that a process with
large libraries does not stand still while gdb reads symbols.

gdb gets its commands one by one. At their end, which comes at the latest when this command has ended, however it ends,
gdb lets the process go. All facts about the process are read again once gdb has stopped it, because the process may
have become another program meanwhile. If gdb takes too long before the first call, it is killed, which lets the process
go.

During a call, which takes some milliseconds, gdb must not be killed: nobody would restore the registers that gdb has
changed, and the process would die. vestige never kills gdb then. If somebody else does, a breakpoint of gdb in the
dynamic loader would remain and end the process later. Therefore gdb gets a `sysroot` without a loader, and sets no such
breakpoint.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import time

from vestige.base.failure import Failure

from . import entry_block, registers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from .target import Target

TINY = "/bin/true"  # a program with few symbols
WITHOUT_GIL = "_Py_MergeZeroLocalRefcount"  # exists in Pythons that can run without the GIL
START_S = 20.0  # longest time until gdb has started; before that, it does not touch the process
CALL_S = 20.0  # longest time for a call, and for gdb to end
OVER = "vestige: over"
# A signal that arrives during a call goes to the program. If the call itself fails by a signal, gdb undoes the call.
PREPARE = """\
set prompt
set confirm off
set pagination off
set width 0
set sysroot /proc/self/fdinfo
set auto-solib-add off
set auto-load no
set exec-file-mismatch off
set print thread-events off
set print inferior-events off
set unwindonsignal on
handle all nostop noprint pass
handle SIGSEGV SIGBUS SIGILL SIGFPE stop"""


def needs() -> str:
    """Returns the path of gdb."""
    found = shutil.which("gdb")
    if found is None:
        raise Failure(
            "attaching to a Python before 3.14 needs gdb, which is not installed; "
            "a program that calls vestige.listen() does not need gdb"
        )
    return found


def inject(target: Target, limit_s: float) -> tuple[float, bool]:
    """Makes the process run the block soon. Returns for how many seconds the process stood still, and whether any of
    its threads may run the block, or only the main thread.
    """
    block = entry_block.make(target)
    with _Gdb(needs(), target) as gdb:
        begun = time.monotonic()
        try:
            gdb.prepare()
            begun = time.monotonic()
            said = gdb.ask(f"attach {target.pid}", limit_s)
            gdb.check(said)
            target.look_again()
            left_s = begun + limit_s - time.monotonic()
        except _Late:
            left_s = 0.0
        if left_s <= 0:
            gdb.kill()
            raise Failure(
                f"gdb would have held process {target.pid} for more than {limit_s:g} s: the process was released "
                "unchanged; try again, or allow more time by --standstill"
            )
        any_thread = _call_all(target, gdb, block)
    return time.monotonic() - begun, any_thread


def _call_all(target: Target, gdb: _Gdb, block: bytes) -> bool:
    """Makes the calls. Returns whether any thread may run the block."""
    python = target.library
    gdb.ask("set scheduler-locking on", CALL_S)  # other threads stay stopped
    if not gdb.call(f"((int(*)(void)){python.address('Py_IsInitialized')})()"):
        raise Failure(f"process {target.pid} has no interpreter now: Python has not begun there, or has ended")
    place = target.find_block(block)
    if not place:
        assert target.libc is not None
        made = f"((long(*)(long,long,int,int,int,long)){target.libc.address('mmap')})(0, {len(block)}, 5, 0x22, -1, 0)"
        place = gdb.call(made)
        if place <= 0:
            raise Failure(
                f"process {target.pid} is not allowed to map more code; "
                "a program that calls vestige.listen() needs no such mapping"
            )
        gdb.put(place, block)
    gdb.ask("set scheduler-locking off", CALL_S)  # another thread may hold a lock that the call needs
    any_thread = bool(gdb.call(_any_thread(target)))
    begin = place + entry_block.BEGIN_AT
    if any_thread:
        add = python.address("_PyEval_AddPendingCall")
        main = f"((void*(*)(void)){python.address('PyInterpreterState_Main')})()"
        added = gdb.call(f"((int(*)(void*,long,long,int)){add})({main}, {begin}, {place}, 0)")
    else:
        added = gdb.call(f"((int(*)(long,long)){python.address('Py_AddPendingCall')})({begin}, {place})")
    if added:
        raise Failure(f"process {target.pid} has too many calls pending already")
    return any_thread


def _any_thread(target: Target) -> str:
    """Returns an expression for gdb: whether any thread may run the block, not only the main thread.

    On 3.13 and later, the call for that takes a mutex of the GIL. The main thread, in which gdb makes the call, must
    neither hold that mutex nor wait for the GIL: a thread that gives the GIL to a waiter holds the mutex until the
    waiter has woken up, which is impossible here. So the main thread must be waiting in the system, but not for
    something inside the interpreter's own state. Without the GIL, the call takes a lock that the main thread may hold
    or wait for at any time.
    """
    if not target.takes_any_thread() or not target.library.address("PyInterpreterState_Main"):
        return "0"
    if target.version() == (3, 12):
        return "1"
    begin, end = target.library.place("_PyRuntime")
    if begin == end or target.library.address(WITHOUT_GIL) or os.uname().machine != "x86_64":
        return "0"
    return f"$orig_rax >= 0 && ($rdi < {begin} || $rdi >= {end})"


class _Late(Exception):
    """Raised if gdb has not answered in time."""


class _Gdb:
    """A running gdb, and the process that it may hold."""

    def __init__(self, program: str, target: Target) -> None:
        self._target = target
        # gdb contains a Python of its own, which variables for this Python could keep from starting.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment.update(DEBUGINFOD_URLS="", LC_ALL="C")
        self._file = os.memfd_create("vestige")
        self._process = subprocess.Popen(
            [program, "-nx", "-q", *([TINY] if os.path.exists(TINY) else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            pass_fds=(self._file,),
            start_new_session=True,
            restore_signals=False,  # if nobody reads gdb's output any more, that must not end gdb
        )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends gdb: at the end of its commands, gdb lets the process go."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
        except OSError:  # gdb has ended
            pass
        try:
            self._process.wait(CALL_S)
        except subprocess.TimeoutExpired:  # only a person can decide what to do now
            raise Failure(f"gdb (process {self.pid}) does not end and holds process {self._target.pid}") from None
        finally:
            self._process.stdout.close()
            os.close(self._file)
        if self._process.returncode < 0:  # gdb was killed
            self._continue()

    def _continue(self) -> None:
        """Continues the process, because a signal with which gdb stops it may arrive only now."""
        try:
            signal.pidfd_send_signal(self._target.handle, signal.SIGCONT)
        except OSError:  # the process has ended
            pass

    def prepare(self) -> None:
        """Sends the commands that come before gdb attaches."""
        self.ask(PREPARE, START_S)
        if os.uname().machine == "x86_64":
            os.pwrite(self._file, registers.describe().encode(), 0)
            self.ask(f"set tdesc filename /proc/self/fd/{self._file}", START_S)

    def ask(self, commands: str, patience_s: float) -> str:
        """Returns gdb's answer to commands. Raises _Late if it takes longer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(f"{commands}\necho \\n{OVER}\\n\n".encode())
            self._process.stdin.flush()
        except OSError:  # gdb has ended; its output shows why
            pass
        said = b""
        until = time.monotonic() + patience_s
        waits = select.poll()
        waits.register(self._process.stdout.fileno(), select.POLLIN)
        while not said.endswith(f"{OVER}\n".encode()):
            if not waits.poll(max(until - time.monotonic(), 0) * 1000):
                raise _Late
            more = os.read(self._process.stdout.fileno(), 65536)
            if not more:
                break
            said += more
        return said.decode(errors="replace").replace(OVER, "")

    def call(self, expression: str) -> int:
        """Returns the value of an expression, which may contain a call."""
        said = self._answer(f'printf "= %ld\\n", (long)({expression})')
        found = re.search(r"^= (-?\d+)$", said, re.MULTILINE)
        if found is None:
            raise Failure(self.why(said))
        return int(found[1])

    def put(self, place: int, data: bytes) -> None:
        os.truncate(self._file, len(data))
        os.pwrite(self._file, data, 0)
        said = self._answer(f"restore /proc/self/fd/{self._file} binary {place}")
        if self._target.read(place, len(data)) != data:
            raise Failure(self.why(said))

    def _answer(self, command: str) -> str:
        """Returns the answer to a command that may call. Interrupts gdb if the call does not end; gdb then restores the
        process.
        """
        try:
            return self.ask(command, CALL_S)
        except _Late:
            self._process.send_signal(signal.SIGINT)
            raise Failure(
                f"process {self._target.pid} could not run gdb's call; the process was released unchanged"
            ) from None

    def kill(self) -> None:
        """Kills gdb, which lets the process go. gdb may have a child, with which it tests the system."""
        os.killpg(self.pid, signal.SIGKILL)

    def why(self, said: str) -> str:
        """Returns why gdb could not do what was asked, from its answer."""
        state = self._target.status()
        if not self._holds(state):
            if trouble := self._target.trouble(state):
                return trouble
            if "not permitted" in said:
                return self._target.refused()
        last = next((line for line in reversed(said.splitlines()) if line.strip()), "it has ended")
        return f"gdb failed: {last.strip()}"

    def check(self, said: str) -> None:
        """Raises Failure unless gdb holds the process now."""
        if not self._holds(self._target.status()):
            raise Failure(self.why(said))

    def _holds(self, state: dict[str, str]) -> bool:
        return state.get("TracerPid", "0").strip() == str(self.pid)
