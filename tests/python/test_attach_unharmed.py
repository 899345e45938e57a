"""`vestige attach` never harms a process, whatever the process does when somebody attaches."""

import ctypes
import os
import shutil
import signal
import subprocess
import time

import pytest

import compiled
from conftest import PYTHON, TIMEOUT
from running import BY_REMOTE_EXEC, FOLDER, PATIENT, WORKER, need_a_way_in, refusal, running  # noqa: F401 (fixture)
from vestige.base.failure import Failure
from vestige.cli.attach import command, gdb
from vestige.cli.attach.target import Target

need_a_way_in()
BY_GDB = pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
SHORT = ("--wait", "2s")

# Waits for a line either before Python begins or after it has ended.
WAITS_OUTSIDE = """
#include <stdlib.h>
#include <unistd.h>
static void wait_if(const char *when)
{
    char byte = 0;
    if (getenv("WAIT") == NULL || getenv("WAIT")[0] != when[0])
        return;
    if (write(1, "ready\\n", 6) == 6)
        while (read(0, &byte, 1) == 1 && byte != '\\n')
            ;
}
__attribute__((constructor)) static void begin(void) { wait_if("before"); }
__attribute__((destructor)) static void end(void) { wait_if("after"); }
"""
STRICT = """
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <pthread.h>
static void *strict(void *unused)
{
    char byte;
    if (prctl(PR_SET_SECCOMP, 1) == 0 && write(1, "ready\\n", 6) == 6 && read(0, &byte, 1) == 1)
        (void)!write(1, "unharmed\\n", 9);
    syscall(SYS_exit, 0);
    return unused;
}
void become_strict(void) { strict(NULL); }
void start_strict(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, strict, NULL);
    pthread_join(thread, NULL);
}
"""
ALL_ALLOWED = """
import ctypes
libc = ctypes.CDLL(None)
class Step(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint)]
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.POINTER(Step))]
allow = Filter(1, ctypes.pointer(Step(6, 0, 0, 0x7FFF0000)))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(allow), 0, 0) == 0
"""
KEEPS = """
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
int is_there(void) { return __builtin_cpu_supports("avx512f"); }
/* Until the file `end` is there: how often zmm16 did not keep what is in it. */
int keep(void)
{
    static const uint64_t before[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint64_t after[8];
    int count = 0;
    printf("ready\\n");
    fflush(stdout);
    while (access("end", 0) != 0) {
        __asm__ volatile("vzeroall\\n vmovdqu64 (%0), %%zmm16\\n mov $30000000, %%ecx\\n"
                         "1: dec %%ecx\\n jnz 1b\\n vmovdqu64 %%zmm16, (%1)"
                         :: "r"(before), "r"(after) : "rcx", "memory");
        for (int i = 0; i < 8; i++)
            count += before[i] != after[i];
    }
    return count;
}
"""
# Replaces itself by another program on request.
BECOMES = """
import os, sys
print("ready", flush=True)
sys.stdin.readline()
os.execv({program!r}, {words!r})
"""
DEEP = """
import sys, threading
end = [1]
def deep(n):
    if n:
        return deep(n - 1)
    while not end:
        pass
most = 1
try:
    while True:
        deep(most)
        most += 1
except RecursionError:
    pass
def answer():
    sys.stdin.readline()
    end.append(1)
end.clear()
threading.Thread(target=answer).start()
print("ready", flush=True)
deep(most - 1 - {room})
print("unharmed", flush=True)
"""


def attach(program, *words):
    return program.attach("-q", "--for", "20ms", "--force", "-o", "t.vst", *words)


def is_unharmed(program):
    """Returns whether the program works as before and has printed nothing."""
    return (program.ask("hooks()"), program.ask("branch(7)"), program.end(), program.process.returncode) == (
        0,
        42,
        "",
        0,
    )


@pytest.mark.parametrize("when", ["before", "after"])
def test_without_an_interpreter_it_says_so(running, when):
    preload = str(compiled.library(WAITS_OUTSIDE))
    program = running("pass", env={**os.environ, "LD_PRELOAD": preload, "WAIT": when})
    line = refusal(program.attach(*SHORT))
    if not BY_REMOTE_EXEC:
        assert "has no interpreter now" in line
    program.tell("")
    assert program.end() == ""
    assert program.process.returncode == 0


@BY_GDB
@pytest.mark.parametrize("flags", [(), ("setarch", "-R")])
def test_a_process_that_becomes_another_program_just_before_gdb_stops_it_is_left_alone(running, tmp_path, flags):
    if flags and subprocess.run([*flags, "true"], capture_output=True).returncode:
        pytest.skip("the system does not let us")
    (tmp_path / "worker.py").write_text(WORKER)
    program = running(BECOMES.format(program=PYTHON, words=[PYTHON, "worker.py"]), command=(*flags, PYTHON))
    target = Target(program.pid)
    program.tell("go")
    assert program.hear() == "ready\n"
    try:
        if flags:
            gdb.inject(target, TIMEOUT)  # nothing has moved, so this attach works
        else:
            with pytest.raises(Failure, match="runs another program now than when vestige looked"):
                gdb.inject(target, TIMEOUT)
    finally:
        os.close(target.handle)
    assert attach(program, "--gdb").returncode == 0
    assert is_unharmed(program)


@BY_GDB
def test_a_process_that_becomes_no_python_just_before_gdb_stops_it_is_left_alone(running):
    program = running(BECOMES.format(program="/bin/cat", words=["cat"]))
    target = Target(program.pid)
    program.tell("go")
    while "cat" not in os.readlink(f"/proc/{program.pid}/exe"):
        pass
    with pytest.raises(Failure, match="runs another program now than when vestige looked"):
        gdb.inject(target, TIMEOUT)
    os.close(target.handle)
    program.tell("unharmed")
    assert program.hear() == "unharmed\n"
    assert program.end() == ""


@pytest.mark.parametrize("flags", [(), ("setarch", "-R")])
def test_a_process_that_has_become_another_program_is_attached_again(running, tmp_path, flags):
    if flags and subprocess.run([*flags, "true"], capture_output=True).returncode:
        pytest.skip("the system does not let us")
    (tmp_path / "worker.py").write_text(WORKER)
    becoming = WORKER.replace("eval(line)", f"os.execv({PYTHON!r}, [{PYTHON!r}, 'worker.py'])").replace(
        "import sys,", "import os, sys,"
    )
    program = running(becoming, command=(*flags, PYTHON))
    for _ in range(2):
        assert attach(program).returncode == 0
    program.tell("go")
    assert program.hear() == "ready\n"
    for _ in range(2):
        result = attach(program)
        assert result.returncode == 0, result.stderr
    assert is_unharmed(program)


@pytest.mark.parametrize("room", [0, 1, 2])
def test_just_below_the_recursion_limit_it_records_and_the_program_does_not_notice(running, room):
    if BY_REMOTE_EXEC and room == 0:
        pytest.skip("the interpreter itself has no room for the script of sys.remote_exec, and says so")
    program = running(DEEP.format(room=room))
    result = attach(program)
    assert result.returncode == 0, result.stderr
    program.tell("")
    assert program.hear() == "unharmed\n"
    assert (program.end(), program.process.returncode) == ("", 0)


def test_a_program_without_exec_does_not_notice(running):
    program = running(WORKER.replace("\nmain()\n", "\nimport builtins; del builtins.exec\nmain()\n"))
    assert "vestige could not be loaded there (NameError: name 'exec'" in refusal(attach(program))
    assert is_unharmed(program)


@pytest.mark.skipif(BY_REMOTE_EXEC, reason="sys.remote_exec has the interpreter compile, which says that it may not")
def test_a_program_that_lets_nobody_compile_does_not_notice(running):
    source = WORKER.replace("eval(line)", "{'hooks()': hooks, 'branch(7)': lambda: branch(7)}[line.strip()]()")
    refuse = "\ndef refuse(event, _):\n    if event == 'compile':\n        raise RuntimeError(event)\n"
    program = running(source.replace("\nmain()\n", f"{refuse}sys.addaudithook(refuse)\nmain()\n"))
    attach(program)  # vestige's modules are compiled already
    assert is_unharmed(program)


@pytest.mark.parametrize("whose", ["become", "start"])
def test_strict_seccomp_mode_is_left_alone(running, whose):
    path = str(compiled.library(STRICT, "-lpthread"))
    program = running(f"import ctypes\nctypes.PyDLL({path!r}).{whose}_strict()\n")
    line = refusal(program.attach(*SHORT))
    assert line == f"process {program.pid} is in strict seccomp mode: it would end if it was recorded"
    program.tell("")
    assert program.hear() == "unharmed\n"
    assert program.end() == ""


def test_a_seccomp_filter_is_no_reason_to_refuse(running):
    program = running(ALL_ALLOWED + WORKER)
    result = attach(program)
    assert result.returncode == 0, result.stderr
    assert is_unharmed(program)


@BY_GDB
def test_gdb_leaves_no_breakpoint_if_it_is_killed(running):
    program = running()
    target = Target(program.pid)
    with gdb._Gdb(gdb.needs(), target) as held:
        held.prepare()
        held.check(held.ask(f"attach {program.pid}", TIMEOUT))
        said = held.ask("maint info breakpoints", TIMEOUT)
    os.close(target.handle)
    assert "No breakpoints or watchpoints." in said
    assert is_unharmed(program)


@BY_GDB
def test_gdb_may_be_killed_between_all_that_it_does(running, monkeypatch):
    program = running()
    ask, left = gdb._Gdb.ask, 0

    def ask_and_die(self, commands, patience_s):
        nonlocal left
        left -= 1
        if left == 0:
            self.kill()
        return ask(self, commands, patience_s)

    monkeypatch.setattr(gdb._Gdb, "ask", ask_and_die)
    for count in range(1, 10):
        left = count
        target = Target(program.pid)
        try:
            gdb.inject(target, TIMEOUT)
        except Failure:
            pass
        os.close(target.handle)
        assert program.ask("branch(7)") == 42
        if left > 0:
            break
    assert count > 5
    assert attach(program, "--gdb").returncode == 0
    assert is_unharmed(program)


@BY_GDB
def test_gdb_may_be_killed_while_it_stops_the_process(running, monkeypatch):
    program = running()
    ask = gdb._Gdb.ask

    def ask_and_be_killed(self, commands, patience_s):
        if commands.startswith("attach "):
            self._process.stdin.write(f"{commands}\n".encode())
            self._process.stdin.flush()
            while self._target.status()["TracerPid"].strip() != str(self.pid):
                pass
            os.kill(self._process.pid, signal.SIGKILL)
        return ask(self, commands, patience_s)

    monkeypatch.setattr(gdb._Gdb, "ask", ask_and_be_killed)
    for _ in range(10):
        target = Target(program.pid)
        with pytest.raises(Failure):
            gdb.inject(target, TIMEOUT)
        os.close(target.handle)
    assert is_unharmed(program)


@BY_GDB
def test_a_call_that_does_not_end_is_taken_back(running, monkeypatch):
    program = running()
    target = Target(program.pid)
    pause = next(target.libc.address(name) for name in ("pause", "sigpause") if target.libc.address(name))
    with gdb._Gdb(gdb.needs(), target) as held:
        held.prepare()
        held.check(held.ask(f"attach {program.pid}", TIMEOUT))
        monkeypatch.setattr(gdb, "CALL_S", 0.5)
        with pytest.raises(Failure, match="the process was released unchanged"):
            held.call(f"((int(*)(void)){pause})()")
        monkeypatch.setattr(gdb, "CALL_S", TIMEOUT)
    os.close(target.handle)
    assert is_unharmed(program)


@BY_GDB
def test_registers_keep_what_is_in_them(running, tmp_path):
    path = str(compiled.library(KEEPS))
    if not ctypes.CDLL(path).is_there():
        pytest.skip("the processor has no such registers")
    program = running(f"import ctypes\nprint(ctypes.CDLL({path!r}).keep(), flush=True)\n")
    for _ in range(3):
        target = Target(program.pid)
        gdb.inject(target, TIMEOUT)
        os.close(target.handle)
    (tmp_path / "end").touch()
    assert program.hear() == "0\n"
    assert (program.end(), program.process.returncode) == ("", 0)


@BY_GDB
def test_signals_go_to_the_program_while_gdb_calls_functions(running):
    handled = "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: None)\n"
    program = running(handled + WORKER)
    storm = f"import os\nwhile True: os.kill({program.pid}, 10)"
    sender = subprocess.Popen([PYTHON, "-c", storm], stderr=subprocess.DEVNULL)
    try:
        results = [attach(program, "--gdb") for _ in range(3)]
    finally:
        sender.kill()
        sender.wait()
    assert [result.returncode for result in results] == [0, 0, 0], results[0].stderr
    assert is_unharmed(program)


def test_a_command_that_is_killed_leaves_no_file_but_its_socket(running, tmp_path):
    program = running("import sys\nprint('ready', flush=True)\nsys.stdin.readline()\n")
    words = [PYTHON, "-m", "vestige", "attach", str(program.pid), *PATIENT, "--wait", "1000s"]
    waiting = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE)
    socket = FOLDER / f"attach-{program.pid}.sock"
    while not socket.exists():
        assert waiting.poll() is None
    time.sleep(0.5)  # attach waits for the process now, or gdb is at work: both cases must work
    waiting.kill()
    waiting.communicate()
    assert [name for name in os.listdir(FOLDER) if str(program.pid) in name] == [socket.name]
    program.tell("")
    assert (program.end(), program.process.returncode) == ("", 0)
    other = running()
    assert attach(other).returncode == 0
    assert not socket.exists()  # the next command has removed the socket


def test_a_process_that_has_just_ended_says_so(running):
    program = running()
    target = Target(program.pid)
    program.process.kill()
    os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
    assert target.refused() == f"process {program.pid} has ended"
    os.close(target.handle)


def test_a_script_that_fails_says_why(running):
    program = running(WORKER.replace("\nmain()\n", "\nsys.modules['_socket'] = None\nmain()\n"))
    line = refusal(attach(program))
    assert line.startswith(f"process {program.pid}: vestige could not be started there (ModuleNotFoundError: import")
    assert is_unharmed(program)


def test_a_user_without_a_shell_may_attach(running):
    program = running()
    result = program.attach("-q", "--for", "1ms", env={**os.environ, "SHELL": "/usr/sbin/nologin"})
    assert result.returncode == 0, result.stderr
    assert is_unharmed(program)


@pytest.mark.parametrize("me, other, taken", [(0, 65534, True), (1000, 0, True), (1000, 65534, False)])
def test_root_may_attach_to_every_socket_and_others_to_their_own(running, tmp_path, monkeypatch, me, other, taken):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    program = running(f"import vestige\nvestige.listen({str(folder / 's')!r})\n" + WORKER)
    monkeypatch.setattr(command, "peer", lambda _: (program.pid, other))
    monkeypatch.setattr(command.os, "geteuid", lambda: me)
    words = ["--socket", str(folder / "s"), "-q", "--for", "1ms", "-o", str(tmp_path / "t.vst")]
    if taken:
        assert command.main(words) == 0
    else:
        with pytest.raises(Failure, match="a process of another user listens there"):
            command.main(words)
    monkeypatch.undo()
    assert is_unharmed(program)
