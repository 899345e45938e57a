"""A way into Pythons before 3.14: gdb has the interpreter run a block of code (entry_block.py) at its next safe point.

gdb stops the process wherever it is: maybe inside malloc, maybe without the GIL, maybe before Python is initialized. So
nothing is called there that allocates or takes the GIL: Py_IsInitialized() says whether there is an interpreter, mmap()
makes room for the block once for each program, and Py_AddPendingCall(), which may be called anywhere, or its like for
any thread (_any_thread()), has the block run later, between two instructions of Python. The addresses of these
functions come from elf.py. gdb reads no symbols: it is even told that the program is another one, so that a process
with large libraries does not stand still while gdb reads them.

gdb gets its commands one by one. Whatever this command does meanwhile, gdb lets the process go at the end of them: when
this command has ended, however it did. All that is known of the process is read again once gdb has stopped it: it may
have become another program until then. If gdb takes too long before the first call, it is killed, which lets the
process go.

Between a call's begin and its end, some milliseconds, gdb itself must not be killed: then nobody puts back the
registers that it has changed, and the process dies. vestige does not do that. gdb would also leave a breakpoint in the
dynamic loader at such a moment, for which the process would die later: it is told of a `sysroot` where there is no
loader, and sets none.
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
WITHOUT_GIL = "_Py_MergeZeroLocalRefcount"  # a function of Pythons that can do without
START_S = 20.0  # for gdb to start, before the process is touched
CALL_S = 20.0  # for a call, and for gdb to end
OVER = "vestige: over"
# A signal that comes during a call goes to the program, unless it is the call that fails: then gdb takes it back.
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
    """The path of gdb."""
    found = shutil.which("gdb")
    if found is None:
        raise Failure(
            "attaching to a Python before 3.14 takes gdb, which is not installed; vestige.listen() does without it"
        )
    return found


def inject(target: Target, limit_s: float) -> tuple[float, bool]:
    """Has the process run the block soon. Returns for how many seconds it stood still, and whether any of its threads
    will run it, not the main thread alone.
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
                f"gdb would have held process {target.pid} for more than {limit_s:g} s: it was let go as it was; "
                "try again, or allow more by --standstill"
            )
        any_thread = _call_all(target, gdb, block)
    return time.monotonic() - begun, any_thread


def _call_all(target: Target, gdb: _Gdb, block: bytes) -> bool:
    """Returns whether any thread will run the block."""
    python = target.library
    gdb.ask("set scheduler-locking on", CALL_S)  # the other threads stay where they are
    if not gdb.call(f"((int(*)(void)){python.address('Py_IsInitialized')})()"):
        raise Failure(f"process {target.pid} has no interpreter now: Python has not begun there, or has ended")
    place = target.find_block(block)
    if not place:
        assert target.libc is not None
        made = f"((long(*)(long,long,int,int,int,long)){target.libc.address('mmap')})(0, {len(block)}, 5, 0x22, -1, 0)"
        place = gdb.call(made)
        if place <= 0:
            raise Failure(f"process {target.pid} may not have memory for more code; vestige.listen() needs none")
        gdb.put(place, block)
    gdb.ask("set scheduler-locking off", CALL_S)  # another thread may hold a lock that is needed
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
    """What gdb evaluates: whether any thread may be asked to run the block, not the main thread alone.

    From 3.13 on that takes a mutex of the GIL. The main thread, which has to call it here, must not hold that mutex nor
    be waiting for the GIL: a thread that gives the GIL to a waiter holds the mutex until the waiter has awoken, which
    it could not. So it must wait in the system, and not for something inside the interpreter's own state. Without the
    GIL it takes a lock that the main thread may hold or wait for at any time.
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
    """gdb has not answered in time."""


class _Gdb:
    """gdb, and the process that it may hold."""

    def __init__(self, program: str, target: Target) -> None:
        self._target = target
        # gdb has a Python of its own, which what is set for this one could keep from starting.
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
            restore_signals=False,  # once nobody reads what it says, that must not end it
        )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Without more commands it lets the process go, and ends."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
        except OSError:  # it has ended
            pass
        try:
            self._process.wait(CALL_S)
        except subprocess.TimeoutExpired:  # only a person can decide what to do
            raise Failure(f"gdb (process {self.pid}) does not end and holds process {self._target.pid}") from None
        finally:
            self._process.stdout.close()
            os.close(self._file)
        if self._process.returncode < 0:  # it was killed
            self._continue()

    def _continue(self) -> None:
        """The signal by which gdb stops a process may still be under way, and would stop it for good."""
        try:
            signal.pidfd_send_signal(self._target.handle, signal.SIGCONT)
        except OSError:  # it has ended
            pass

    def prepare(self) -> None:
        """Before it attaches."""
        self.ask(PREPARE, START_S)
        if os.uname().machine == "x86_64":
            os.pwrite(self._file, registers.describe().encode(), 0)
            self.ask(f"set tdesc filename /proc/self/fd/{self._file}", START_S)

    def ask(self, commands: str, patience_s: float) -> str:
        """What gdb says to that. Raises _Late if it takes longer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(f"{commands}\necho \\n{OVER}\\n\n".encode())
            self._process.stdin.flush()
        except OSError:  # it has ended: so says what it says
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
        """The value of what may be a call."""
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
        """In a call that does not end gdb is interrupted: it puts back what it has changed."""
        try:
            return self.ask(command, CALL_S)
        except _Late:
            self._process.send_signal(signal.SIGINT)
            raise Failure(f"process {self._target.pid} was not able to answer gdb; it was let go as it was") from None

    def kill(self) -> None:
        """Lets the process go. gdb may have a child, to find out what the system can do."""
        os.killpg(self.pid, signal.SIGKILL)

    def why(self, said: str) -> str:
        """Why gdb could not do what it was asked, which it answered so."""
        state = self._target.status()
        if not self._holds(state):
            if trouble := self._target.trouble(state):
                return trouble
            if "not permitted" in said:
                return self._target.refused()
        last = next((line for line in reversed(said.splitlines()) if line.strip()), "it has ended")
        return f"gdb could not do it: {last.strip()}"

    def check(self, said: str) -> None:
        """Raises Failure unless it holds the process now."""
        if not self._holds(self._target.status()):
            raise Failure(self.why(said))

    def _holds(self, state: dict[str, str]) -> bool:
        return state.get("TracerPid", "0").strip() == str(self.pid)
