"""`vestige attach` to processes that cannot be recorded now, or that end meanwhile: one line says why, and the process
is unchanged.
"""

import os
import re
import shutil
import subprocess
import sys
import time

import pytest

import compiled
import vestige
from conftest import COMMAND, TIMEOUT
from other_builds import HERE
from running import BY_REMOTE_EXEC, FOLDER, PATIENT, WORKER, need_a_way_in, refusal, running  # noqa: F401 (fixture)
from vestige.cli.attach import gdb
from vestige.cli.attach.target import Target

need_a_way_in()
SHORT = ("--wait", "300ms")

BLOCKED = """
import sys
print("ready", flush=True)
sys.stdin.readline()  # in the system, until the test lets it go on
for _ in range(1000):
    sum(range(100))
core = sys.modules.get("vestige._core")
print(core, flush=True)
sys.stdin.readline()
"""
# The whole match is one instruction, which takes very long.
HOLDS_THE_GIL = """
import re
print("ready", flush=True)
re.match(r"(a+)+$", "a" * 64 + "b")
"""
DIES = """
import os, sys, time
END = {end!r}

def work():
    return sum(range(100))

print("ready", flush=True)
while not os.path.exists("end"):
    work()
if END == "kill":
    os.kill(os.getpid(), 9)
elif END == "exec":
    os.execv("/bin/cat", ["cat"])
elif END == "exit":
    os._exit(3)
"""
SLOW_MALLOC = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
void *malloc(size_t size)
{
    static void *(*original)(size_t);
    if (original == NULL)
        original = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    while (size == 12345679 && access("end", F_OK) != 0)
        ;
    return original(size);
}
"""
IN_MALLOC = (
    """
import ctypes
malloc = ctypes.PyDLL(None).malloc  # holds the GIL, as the interpreter does
print("ready", flush=True)
malloc(12345679)
"""
    + WORKER
)


def test_all_threads_blocked_says_so_and_does_not_start_later(running, tmp_path):
    program = running(BLOCKED)
    line = refusal(program.attach("-o", "t.vst", *SHORT))
    assert re.match(rf"process {program.pid} ran no Python code.* for 0\.3 s: it waits in the system", line), line
    program.tell("")
    assert program.hear() == "None\n"  # vestige was not loaded
    assert program.end() == ""
    assert not (tmp_path / "t.vst").exists()


def test_the_gil_held_in_c_says_so(running, tmp_path):
    line = refusal(running(HOLDS_THE_GIL).attach("-o", "t.vst", *SHORT))
    assert "ran no Python code" in line and "it runs code that is not Python's" in line
    assert not (tmp_path / "t.vst").exists()


def test_inside_malloc_it_waits_until_that_is_over(running, tmp_path):
    program = running(IN_MALLOC, env={**os.environ, "LD_PRELOAD": str(compiled.library(SLOW_MALLOC, "-ldl"))})
    refusal(program.attach("-o", "t.vst", *SHORT))
    (tmp_path / "end").touch()
    assert program.hear() == "ready\n"
    assert program.attach("-q", "-o", "t.vst", "--for", "20ms").returncode == 0
    assert (program.ask("hooks()"), program.ask("branch(7)")) == (0, 42)
    assert program.end() == ""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 only the main thread takes requests")
def test_where_the_main_thread_waits_gdb_has_another_one_do_it(running):
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    program = running(
        WORKER.replace("\nmain()\n", "\nthreading.Thread(target=main, daemon=True).start()\nthreading.Event().wait()\n")
    )
    if BY_REMOTE_EXEC:
        assert "in its main thread" in refusal(program.attach(*SHORT))
    if HERE["nogil"]:  # on these Pythons, gdb asks the main thread only
        refusal(program.attach("--gdb", *SHORT))
        return
    result = program.attach("-q", "--for", "20ms", "--gdb")
    assert result.returncode == 0, result.stderr
    assert re.search(r"stands still for up to .*\n.*it stood still for \d+\.\d\d s", result.stderr)
    assert (program.ask("hooks()"), program.ask("branch(7)")) == (0, 42)


def waits_for(pid):
    """Returns the first argument of the main thread's system call; 0 if the thread runs."""
    with open(f"/proc/{pid}/syscall") as file:
        words = file.read().split()
    return int(words[1], 16) if len(words) > 3 else 0


@pytest.mark.skipif(
    sys.version_info < (3, 13) or HERE["nogil"], reason="only from 3.13 on, with the GIL, is its lock taken"
)
def test_where_the_main_thread_waits_for_the_gil_it_alone_is_asked(running, tmp_path):
    """A thread that gives the GIL to the main thread waits for it, and the main thread waits for a lock of this thread."""
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    program = running(
        """
import re, sys, threading, time
print("ready", flush=True)
sys.stdin.readline()
threading.Thread(target=lambda: re.match(r"(a+)+$", "a" * 64 + "b"), daemon=True).start()
time.sleep(0.01)
"""
    )
    program.tell("go")
    target = Target(program.pid)
    begin, end = target.library.place("_PyRuntime")
    while not begin <= waits_for(program.pid) < end:
        time.sleep(0.001)
    _, any_thread = gdb.inject(target, TIMEOUT)
    os.close(target.handle)
    program.kill()
    assert not any_thread


def test_a_process_that_gdb_would_hold_too_long_is_let_go(running):
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    program = running()
    result = program.attach("-q", "--for", "1ms", "--gdb", "--standstill", "1us")
    if result.returncode:  # otherwise gdb was faster than the timeout
        assert "the process was released unchanged" in refusal(result)
    assert (program.ask("hooks()"), program.ask("branch(7)")) == (0, 42)
    assert program.end() == ""


@pytest.mark.parametrize("end, clean", [("kill", False), ("exec", False), ("exit", True), ("return", True)])
def test_a_process_that_ends_meanwhile_leaves_its_trace(running, tmp_path, end, clean):
    program = running(DIES.format(end=end))
    command = program.begin("-o", "t.vst")
    (tmp_path / "end").touch()
    stdout, stderr = command.communicate(timeout=TIMEOUT)
    assert command.returncode == 0
    assert f"process {program.pid} has ended, or runs another program now" in stderr
    assert "<module>" in stdout
    assert vestige.Trace(str(tmp_path / "t.vst")).info()["clean"] is clean


def test_a_process_that_vestige_run_records_is_left_alone(running, tmp_path):
    program = running(command=(COMMAND, "run", "-q", "-o", "run.vst"))
    line = refusal(program.attach("-o", "t.vst"))
    assert line == f"process {program.pid}: this process is being recorded already"
    assert program.ask("branch(7)") == 42
    assert program.end() == ""
    assert not (tmp_path / "t.vst").exists()
    assert vestige.Trace(str(tmp_path / "run.vst")).info()["clean"]


def test_one_that_is_attached_already_is_left_alone(running):
    program = running()
    command = program.begin("-q", "-o", "t.vst")
    line = refusal(program.attach("-o", "u.vst"))
    assert line.startswith(f"vestige is attached to process {program.pid} already")
    command.terminate()
    command.communicate(timeout=TIMEOUT)
    assert command.returncode == 0


def test_another_vestige_in_the_process_says_so(running):
    fake = "import sys, types\nmodule = sys.modules['vestige'] = types.ModuleType('vestige')\nmodule.__version__ = '0.0.1'\n"
    program = running(fake + WORKER)
    assert f"process {program.pid}: it has loaded vestige 0.0.1, and this is " in refusal(program.attach())
    assert program.end() == ""


@pytest.mark.skipif(not BY_REMOTE_EXEC, reason="sys.remote_exec came with 3.14")
def test_disabled_remote_debugging_says_so(running):
    program = running(env={**os.environ, "PYTHON_DISABLE_REMOTE_DEBUG": "1"})
    assert refusal(program.attach()).startswith(f"process {program.pid} has remote debugging disabled")
    assert program.end() == ""


def test_a_command_that_gives_up_leaves_no_request(running, tmp_path):
    program = running(BLOCKED)
    command = subprocess.Popen([COMMAND, "attach", str(program.pid), *PATIENT], cwd=tmp_path, stderr=subprocess.PIPE)
    until = time.monotonic() + TIMEOUT
    while not (FOLDER / f"attach-{program.pid}.sock").exists() and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.5)  # attach waits for the process now or is about to; both cases must work
    command.terminate()
    command.communicate(timeout=TIMEOUT)
    assert command.returncode == 130
    program.tell("")
    assert program.hear() == "None\n"
    assert program.end() == ""
