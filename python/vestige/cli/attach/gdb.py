"""A way into Pythons before 3.14: gdb has the interpreter run a script at its next safe point.

gdb stops the process wherever it is: maybe inside malloc, maybe without the GIL. So nothing is called there that
allocates or takes the GIL. Three things are done: mmap() gives a page, once for each process; the code is written
into it; and Py_AddPendingCall(), which may be called anywhere, or its like for any thread (_any_thread()), has
PyRun_SimpleString() run it later, between two instructions of Python. The addresses of these functions come from
elf.py. gdb reads no symbols: it is even told that the program is another one, so that a process with large libraries
does not stand still while gdb reads them.

If gdb takes too long, it is killed, which lets the process go. But not while it calls a function there: whoever first
renames the file `permit` may decide.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time

from vestige.base.failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .target import Target

TINY = "/bin/true"  # a program with few symbols
WITHOUT_GIL = "_Py_MergeZeroLocalRefcount"  # a function of Pythons that can do without
PAGE = 4096
SLOT = 512  # bytes of the page for one attempt: an earlier one may still have to be run
LOOK_EVERY_S = 0.005
START_S = 20.0  # for gdb to start, before the process is touched
END_S = 20.0  # for gdb to end, once it calls functions
COMMANDS = """\
set confirm off
set pagination off
set auto-solib-add off
set auto-load no
set exec-file-mismatch off
set print thread-events off
attach {pid}
shell mv {folder}/permit {folder}/taken
if $_shell_exitcode != 0
  quit 3
end
set $page = {page}
if $page == 0
  set $page = ((unsigned long(*)(unsigned long,unsigned long,int,int,int,long)){mmap})(0, {size}, 3, 0x22, -1, 0)
end
printf "page %lu\\n", $page
set {{char[{length}]}}($page + {slot}) = "{code}"
set $any = {any_thread}
printf "any %d\\n", $any
if $any
  printf "added %d\\n", {call_any}
else
  printf "added %d\\n", {call_main}
end
detach
quit
"""


def needs() -> str:
    """The path of gdb."""
    found = shutil.which("gdb")
    if found is None:
        raise Failure(
            "attaching to a Python before 3.14 takes gdb, which is not installed; vestige.listen() does without it"
        )
    return found


def inject(target: Target, script: str, folder: str, limit_s: float) -> tuple[float, bool]:
    """Has the process run a script soon. Returns for how many seconds it stood still, and whether any of its threads
    will run it, not the main thread alone.
    """
    program = needs()
    page, count = _known_page(target, folder)
    attempt = os.path.join(folder, f"gdb-{os.getpid()}")
    os.mkdir(attempt, 0o700)
    try:
        open(os.path.join(attempt, "permit"), "x").close()
        commands = os.path.join(attempt, "commands")
        with open(commands, "x") as file:
            file.write(_commands(target, script, attempt, page, count % (PAGE // SLOT) * SLOT))
        words = [program, "-nx", "-batch", "-x", commands, *([TINY] if os.path.exists(TINY) else [])]
        output, still_s = _run(target, words, attempt, limit_s)
    finally:
        shutil.rmtree(attempt, ignore_errors=True)
    lines = dict(line.split(" ", 1) for line in output.splitlines() if line.startswith(("page ", "any ", "added ")))
    if "page" in lines:
        _remember_page(target, folder, int(lines["page"]), count + 1)
    if lines.get("added") != "0":
        raise Failure(_why(target, output, added="added" in lines))
    return still_s, lines["any"] != "0"


def _commands(target: Target, script: str, folder: str, page: int, slot: int) -> str:
    python = target.library
    libc = target.find_library("libc.so") or target.find_library("libc-2") or target.find_library("ld-musl")
    mmap = libc.address("mmap") if libc is not None else 0
    run = python.address("PyRun_SimpleString")
    if not mmap or not run:
        raise Failure(f"process {target.pid}: functions of its Python or C library were not found")
    inner = f"try:\n with open({script!r}) as f: s=f.read()\n exec(s,{{}})\nexcept BaseException: pass"
    code = f"exec({inner!r},{{}})"
    if len(code) >= SLOT:
        raise Failure(f"{script}: the path is too long")
    return COMMANDS.format(
        pid=target.pid,
        folder=folder,
        page=page,
        mmap=mmap,
        size=PAGE,
        length=len(code) + 1,
        slot=slot,
        code=code.replace("\\", "\\\\").replace('"', '\\"'),
        any_thread=_any_thread(target),
        call_any=f"((int(*)(void*,unsigned long,unsigned long,int)){python.address('_PyEval_AddPendingCall')})"
        f"(((void*(*)(void)){python.address('PyInterpreterState_Main')})(), {run}, $page + {slot}, 0)",
        call_main=f"((int(*)(unsigned long,unsigned long)){python.address('Py_AddPendingCall')})"
        f"({run}, $page + {slot})",
    )


def _any_thread(target: Target) -> str:
    """What gdb evaluates: whether any thread may be asked to run the script, not the main thread alone.

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


def _run(target: Target, words: list[str], attempt: str, limit_s: float) -> tuple[str, float]:
    """gdb's output, and how long it held the process."""
    # gdb has a Python of its own, which what is set for this one could keep from starting.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment.update(DEBUGINFOD_URLS="", LC_ALL="C")
    with open(os.path.join(attempt, "output"), "x+") as output:
        gdb = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True
        )
        try:
            still_s = _watch(target, gdb, attempt, limit_s)
        except BaseException:
            if _take(attempt):
                _kill(target, gdb)
            raise
        output.seek(0)
        return output.read(), still_s


def _watch(target: Target, gdb: subprocess.Popen[bytes], attempt: str, limit_s: float) -> float:
    """Waits for the end of gdb, or ends it. Returns for how many seconds it held the process."""
    begun, held_since, late = time.monotonic(), None, False
    while gdb.poll() is None:
        now = time.monotonic()
        if held_since is None and target.status().get("TracerPid", "0").strip() == str(gdb.pid):
            held_since = now
        too_long = now - held_since > limit_s if held_since is not None else now - begun > START_S
        if too_long and not late and _take(attempt):
            late = True
            _kill(target, gdb)
        if now - begun > START_S + limit_s + END_S:  # inside a call: only a person can decide what to do
            raise Failure(f"gdb (process {gdb.pid}) does not end and holds process {target.pid}")
        time.sleep(LOOK_EVERY_S)
    if late:
        raise Failure(
            f"gdb would have held process {target.pid} for more than {limit_s:g} s: it was let go as it was; "
            "try again, or allow more by --standstill"
        )
    return time.monotonic() - held_since if held_since is not None else 0.0


def _kill(target: Target, gdb: subprocess.Popen[bytes]) -> None:
    """Ends gdb, which lets the process go. The signal by which gdb stops a process may still be under way then, and
    would stop it for good: SIGCONT takes that back.
    """
    gdb.kill()
    gdb.wait()
    try:
        signal.pidfd_send_signal(target.handle, signal.SIGCONT)
    except OSError:  # it has ended
        pass


def _take(attempt: str) -> bool:
    try:
        os.rename(os.path.join(attempt, "permit"), os.path.join(attempt, "withdrawn"))
    except OSError:
        return False
    return True


def _why(target: Target, output: str, *, added: bool) -> str:
    if added:
        return f"process {target.pid} has too many calls pending already"
    if "not permitted" in output:
        return target.refused()
    state = target.status()
    if not state:
        return f"process {target.pid} has ended"
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "it said nothing")
    return target.trouble(state) or f"gdb could not do it: {last.strip()}"


# ---- the page ---------------------------------------------------------------------


def _note(target: Target, folder: str) -> str:
    return os.path.join(folder, f"page-{target.pid}-{target.begun}")


def _known_page(target: Target, folder: str) -> tuple[int, int]:
    """The page of an earlier attempt, 0 if there was none, and how many there were."""
    try:
        with open(_note(target, folder)) as file:
            page, count = map(int, file.read().split())
            return page, count
    except (OSError, ValueError):
        return 0, 0


def _remember_page(target: Target, folder: str, page: int, count: int) -> None:
    with open(_note(target, folder), "w") as file:
        file.write(f"{page} {count}\n")
