"""Cases that `vestige attach` and `vestige detach` refuse before they touch a process."""

import ctypes
import os
import signal
import subprocess
import sys

import pytest

from conftest import COMMAND, TIMEOUT
from running import WORKER, refusal, running  # noqa: F401 (fixture)
from vestige.base.failure import Failure
from vestige.cli.attach import command, entry, gdb, remote
from vestige.cli.attach.elf import Library, NotElf
from vestige.cli.attach.target import Target

pytestmark = pytest.mark.any_python


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "100"])
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize(
    "words, line",
    [
        ((), "give the PID of a process, or --socket PATH"),
        (("1", "--socket", "x"), "give the PID of a process, or --socket PATH"),
        (("1", "--for", "soon"), "--for: not a time"),
        (("1", "--for", "0s"), "--for"),
        (("1", "--wait", "x"), "--wait"),
        (("1", "--max-size", "5"), "--max-size must be at least 1M"),
        (("1", "--engine", "fast"), "no engine 'fast'"),
        (("1", "--trigger", "x"), "trigger 'x' must be"),
        (("1", "-o", "/nowhere/t.vst"), "/nowhere/t.vst: its folder does not exist"),
        (("one",), "argument PID: invalid int value: 'one'"),
    ],
)
def test_wrong_usage_is_one_line(workplace, words, line):
    result = workplace.vestige("attach", *words)
    assert result.returncode == 2
    assert result.stderr.startswith(f"vestige: {line}") or line in result.stderr.splitlines()[0], result.stderr


def test_a_file_that_exists_is_kept(workplace):
    workplace.write("t.vst", "kept")
    result = workplace.vestige("attach", "1", "-o", "t.vst")
    assert (result.returncode, result.stderr) == (2, "vestige: t.vst: already exists; --force overwrites it\n")
    assert (workplace.path / "t.vst").read_text() == "kept"


def test_no_such_process(workplace):
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert workplace.vestige("attach", gone.pid).stderr == f"vestige: there is no process {gone.pid}\n"
    assert workplace.vestige("detach", gone.pid).stderr == f"vestige: vestige is not attached to process {gone.pid}\n"


def test_a_process_that_nobody_has_waited_for(workplace):
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert workplace.vestige("attach", ended.pid).stderr == f"vestige: process {ended.pid} has ended\n"
    ended.wait()


def test_not_a_python(workplace, sleeper):
    line = f"vestige: process {sleeper.pid} (sleep) is not a Python that vestige knows\n"
    assert workplace.vestige("attach", sleeper.pid).stderr == line


def test_not_itself():
    with pytest.raises(Failure, match="is this vestige itself"):
        Target(os.getpid())


class Other:
    """Pretends to be a process with unsupported properties."""

    pid = 77
    handle = -1
    refused = Target.refused
    trouble = Target.trouble

    def __init__(self, version=None):
        self._version = version

    def version(self):
        return self._version

    def status(self):
        return {"State": "R"}


def test_another_version_of_python_says_which_vestige_to_use():
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    with pytest.raises(Failure, match=f"process 77 is Python 3.9, this vestige is for {here}: use the vestige of 3.9"):
        entry.check_version(Other((3, 9)))
    entry.check_version(Other(sys.version_info[:2]))


def test_a_python_before_3_11_is_refused_as_unsupported():
    with pytest.raises(Failure, match="is a Python before 3.11, which vestige does not support$"):
        entry.check_version(Other(None))


def test_without_gdb_the_line_says_what_else_there_is(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Failure, match=r"needs gdb, which is not installed; a program that calls vestige.listen\(\)"):
        gdb.needs()


@pytest.mark.parametrize(
    "error, line",
    [
        (PermissionError(1, "no"), "the system does not let vestige attach to process 77"),
        (RuntimeError("Remote debugging is not enabled in the remote process"), "has remote debugging disabled"),
        (OSError(5, "strange"), "process 77: strange"),
        (RuntimeError("strange"), "process 77: strange"),
    ],
)
def test_what_remote_exec_refuses_is_one_line(monkeypatch, error, line):
    def refuse(*_):
        raise error

    monkeypatch.setattr(sys, "remote_exec", refuse, raising=False)
    with pytest.raises(Failure, match=line):
        remote.inject(Other(), "x.py")


def gdb_that(tmp_path, monkeypatch, text):
    """Puts another program in place of gdb."""
    (tmp_path / "gdb").write_text(f"#!/bin/sh\n{text}\n")
    (tmp_path / "gdb").chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)


def test_gdb_that_takes_too_long_is_ended_before_it_calls_anything(tmp_path, monkeypatch, running):
    gdb_that(tmp_path, monkeypatch, "exec sleep 100")
    monkeypatch.setattr(gdb, "START_S", 0.2)
    program = running()
    target = Target(program.pid)
    continued = []
    monkeypatch.setattr(gdb.signal, "pidfd_send_signal", lambda *words: continued.append(words))
    with pytest.raises(Failure, match="the process was released unchanged"):
        gdb.inject(target, 0.2)
    assert continued == [(target.handle, signal.SIGCONT)]
    os.close(target.handle)


def test_gdb_gets_no_variables_that_are_for_another_python(tmp_path, monkeypatch):
    gdb_that(tmp_path, monkeypatch, "env\necho vestige: over\nexec cat >/dev/null")
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    monkeypatch.setenv("KEPT", "1")
    with gdb._Gdb(gdb.needs(), Other()) as started:
        lines = started.ask("", TIMEOUT).splitlines()
    assert "KEPT=1" in lines
    assert not [line for line in lines if line.startswith("PYTHON")]


def test_files_that_are_no_libraries_are_no_libraries(tmp_path):
    library = Library(os.path.realpath(f"/proc/{os.getpid()}/exe"), 0)
    whole = bytes(library._data[:4096])
    for content in (b"", b"#!/bin/sh\n", whole[:20], whole):
        path = tmp_path / "x"
        path.write_bytes(content)
        with pytest.raises(NotElf):
            Library(str(path), 0)


def test_help_of_the_seldom_options_is_not_on_the_first_screen(workplace):
    assert "--standstill" not in workplace.vestige("--help").stdout
    assert command._parser().prog == "vestige attach"


# ---- processes that are there ----------------------------------------------------------


def before_ready(line):
    """Returns the worker's source with an additional line before it prints "ready"."""
    return WORKER.replace('    print("ready"', f'    {line}\n    print("ready"')


def test_a_process_that_is_traced_already_says_so(running):
    program = running()
    seize = f"import ctypes; assert ctypes.CDLL(None).ptrace(0x4206, {program.pid}, None, None) == 0; print(); input()"
    tracer = subprocess.Popen([sys.executable, "-c", seize], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if not tracer.stdout.readline():
        pytest.skip("this user may not trace")
    line = refusal(program.attach())
    tracer.communicate(b"\n")
    assert line.startswith(f"process {program.pid} is traced by another program (python")
    assert program.end() == ""


def test_a_stopped_process_says_so_and_stays_stopped(running):
    program = running()
    os.kill(program.pid, 19)
    os.waitid(os.P_PID, program.pid, os.WSTOPPED | os.WNOWAIT)
    assert (
        refusal(program.attach()) == f"process {program.pid} is stopped: let it go on first (kill -CONT {program.pid})"
    )
    os.kill(program.pid, 18)
    assert program.ask("branch(7)") == 42


def test_a_thread_is_not_a_process(running):
    program = running()
    thread = next(int(tid) for tid in os.listdir(f"/proc/{program.pid}/task") if int(tid) != program.pid)
    result = subprocess.run([COMMAND, "attach", str(thread)], capture_output=True, text=True)
    assert refusal(result) == f"{thread} is a thread of process {program.pid}: give that"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_process_of_another_user_says_so(running, tmp_path):
    program = running(before_ready("import os; os.setuid(65534)"))
    assert f"process {program.pid} belongs to " in refusal(program.attach())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change the root folder")
def test_another_root_folder_says_so(running, tmp_path):
    program = running(before_ready(f"import os; os.chroot({str(tmp_path)!r})"))
    assert f"process {program.pid} has another root folder" in refusal(program.attach())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make namespaces")
def test_another_namespace_of_mounts_says_so(running):
    if ctypes.CDLL(None).unshare(0):
        pytest.skip("the system does not let us")
    program = running(before_ready("import ctypes; ctypes.CDLL(None).unshare(0x20000)"))
    if os.readlink(f"/proc/{program.pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt"):
        pytest.skip("the system lets nobody make a namespace here")
    assert f"process {program.pid} is in another namespace of mounts" in refusal(program.attach())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make namespaces")
def test_another_namespace_of_processes_says_so(tmp_path):
    source = "import ctypes, os\nif ctypes.CDLL(None).unshare(0x20000000): raise SystemExit\nchild = os.fork()\nif child == 0:\n    input()\n    os._exit(0)\nprint(child, flush=True)\ninput()\n"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    parent = subprocess.Popen([sys.executable, "-W", "ignore", "-c", source], **pipes)
    child = parent.stdout.readline().strip()
    if not child:
        parent.communicate()
        pytest.skip("the system lets nobody make a namespace here")
    result = subprocess.run([COMMAND, "attach", child], capture_output=True, text=True)
    parent.communicate("\n\n")
    assert f"process {child} is in another namespace of processes" in refusal(result)
