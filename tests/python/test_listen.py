"""vestige.listen(), VESTIGE_LISTEN and `vestige run --paused`: processes that others can ask to record."""

import os
import socket
import stat
import subprocess
import time

import pytest

import vestige
from conftest import COMMAND, PYTHON, TIMEOUT
from running import WORKER, need_a_way_in, running  # noqa: F401 (fixture)

LISTENS = "import sys, vestige\nvestige.listen(sys.path[0] + '/private/a.sock')\n" + WORKER


def attach(folder, *words):
    command = [COMMAND, "attach", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT)


def by_socket(folder, *words):
    return attach(folder, "--socket", "private/a.sock", *words)


def test_a_process_that_listens_is_recorded_without_any_other_right(running, tmp_path):
    program = running(LISTENS)
    assert len(os.listdir(f"/proc/{program.pid}/task")) == 3
    for number in range(3):
        result = by_socket(tmp_path, "-o", f"{number}.vst", "--for", "20ms")
        assert result.returncode == 0, result.stderr
        assert f"recording process {program.pid} (program0)" in result.stderr
        assert " calls, " in result.stdout
    assert (program.ask("hooks()"), program.ask("branch(7)")) == (0, 42)
    assert vestige.Trace(str(tmp_path / "0.vst")).info()["threads"] <= 2
    assert program.end() == ""
    assert not (tmp_path / "private/a.sock").exists()


def test_the_socket_is_private(running, tmp_path):
    running(LISTENS)
    assert stat.S_IMODE(os.stat(tmp_path / "private").st_mode) == 0o700
    assert stat.S_IMODE(os.stat(tmp_path / "private/a.sock").st_mode) == 0o600


def test_attach_finds_a_process_that_listens_at_the_usual_place(running, tmp_path):
    program = running("import vestige\nvestige.listen()\n" + WORKER)
    result = attach(tmp_path, str(program.pid), "-q", "-o", "t.vst", "--for", "20ms")
    assert result.returncode == 0, result.stderr
    assert "stands still" not in result.stderr


PATCHED = """
from gevent import monkey
monkey.patch_all()
import gevent, select, sys, time

def work():
    return sum(map(abs, range(100)))

def ask_again():
    while not os.path.exists("end"):
        work()
        time.sleep(0.001)

import os
{listen}
print("ready", flush=True)
ask_again()
print(hasattr(select, "epoll"), time.sleep.__module__, flush=True)
"""


@pytest.mark.parametrize("listens", [True, False], ids=["listen", "entered"])
def test_a_process_that_gevent_has_patched_is_recorded_and_stays_patched(running, tmp_path, listens):
    pytest.importorskip("gevent")
    if not listens:
        need_a_way_in()
    program = running(PATCHED.format(listen="import vestige; vestige.listen()" if listens else ""))
    for number in range(2):
        result = program.attach("-q", "-o", f"{number}.vst", "--for", "20ms")
        assert result.returncode == 0, result.stderr
        known = vestige.Trace(str(tmp_path / f"{number}.vst")).definitions()
        assert any(entry[1].endswith(": work") for entry in known if entry)
    (tmp_path / "end").touch()
    assert program.hear() == "False gevent.hub\n"
    assert program.end() == ""


def test_detach_by_the_socket_ends_the_recording_of_another(running, tmp_path):
    program = running(LISTENS)
    words = [COMMAND, "attach", "--socket", "private/a.sock", "-q", "-o", "t.vst"]
    command = subprocess.Popen(words, cwd=tmp_path, text=True, stderr=subprocess.PIPE)
    assert "recording process" in command.stderr.readline()
    busy = by_socket(tmp_path, "-o", "u.vst")
    assert busy.stderr == f"vestige: process {program.pid}: this process is being recorded already\n"
    ended = subprocess.run([COMMAND, "detach", "--socket", "private/a.sock"], cwd=tmp_path, capture_output=True)
    assert ended.returncode == 0
    command.communicate(timeout=TIMEOUT)
    assert command.returncode == 0
    again = subprocess.run([COMMAND, "detach", "--socket", "private/a.sock"], cwd=tmp_path, capture_output=True)
    assert again.stderr == b"vestige: nobody records this process by vestige attach\n"


def test_what_is_not_understood_is_answered_and_harms_nothing(running, tmp_path):
    program = running(LISTENS)
    for message in (
        b"\n",
        b"{}\n",
        b'{"do": "dance"}\n',
        b'{"do": "record"}\n',
        b"\xff\n",
        b'{"do": "record", "output": null, "folder": "/", "chosen": [], "options": {"engine": 5}}\n',
    ):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(TIMEOUT)
            connection.connect(str(tmp_path / "private/a.sock"))
            connection.sendall(message)
            assert b'{"error": ' in connection.recv(4096)
    with socket.socket(socket.AF_UNIX) as connection:  # closed without an answer
        connection.connect(str(tmp_path / "private/a.sock"))
    assert by_socket(tmp_path, "-q", "-o", "t.vst", "--for", "1ms").returncode == 0
    assert program.ask("hooks()") == 0


CHILD = """
import os, vestige
vestige.listen()
ours, theirs = os.pipe()
child = os.fork()
if child == 0:
    os.close(theirs)
    os.read(ours, 1)  # until the parent ends
    os._exit(0)
"""


def sockets_of(pid):
    folder = f"/proc/{pid}/fd"
    return [name for name in os.listdir(folder) if os.readlink(f"{folder}/{name}").startswith("socket:")]


def test_a_forked_child_does_not_answer_for_its_parent(running, tmp_path):
    program = running(CHILD + WORKER)
    child = program.ask("child")
    task = os.listdir(f"/proc/{child}/task")
    end = time.monotonic() + TIMEOUT
    while sockets_of(child) and time.monotonic() < end:  # the parent answers before the child returns from fork()
        time.sleep(0.01)
    assert (len(task), sockets_of(child)) == (1, [])
    assert attach(tmp_path, str(program.pid), "-q", "-o", "t.vst", "--for", "1ms").returncode == 0


FORKS = """
import os, vestige
vestige.listen()
for _ in range(50):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
print(len(os.listdir("/proc/self/task")))
"""


def test_forks_are_not_warned_of_and_the_thread_comes_back():
    result = subprocess.run([PYTHON, "-W", "error", "-c", FORKS], capture_output=True, text=True, timeout=TIMEOUT)
    assert (result.stdout, result.stderr) == ("2\n", "")


def test_a_variable_of_the_environment_does_the_same(running, tmp_path):
    path = str(tmp_path / "private" / "{pid}.sock")
    program = running("import vestige\n" + WORKER, env={**os.environ, "VESTIGE_LISTEN": path})
    result = attach(tmp_path, "--socket", f"private/{program.pid}.sock", "-q", "-o", "t.vst", "--for", "1ms")
    assert result.returncode == 0, result.stderr


def test_of_two_processes_with_one_variable_the_first_listens(running, tmp_path):
    environment = {**os.environ, "VESTIGE_LISTEN": str(tmp_path / "private/a.sock")}
    first = running("import vestige\n" + WORKER, env=environment)
    second = running("import vestige\n" + WORKER, env=environment)
    result = by_socket(tmp_path, "-q", "-o", "t.vst", "--for", "1ms")
    assert f"recording process {first.pid}" in result.stderr
    assert (second.end(), first.end()) == ("", "")


def test_a_folder_that_others_can_enter_is_refused(tmp_path):
    tmp_path.chmod(0o755)
    with pytest.raises(Exception, match="others can enter this folder; use one with mode 700"):
        vestige.listen(tmp_path / "a.sock")
    environment = {**os.environ, "VESTIGE_LISTEN": str(tmp_path / "a.sock")}
    result = subprocess.run([PYTHON, "-c", "import vestige; print(1)"], env=environment, capture_output=True, text=True)
    assert result.stdout == "1\n" and "VESTIGE_LISTEN: " in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_too_long_or_taken_is_refused(tmp_path):
    tmp_path.chmod(0o700)
    (tmp_path / "file").write_text("kept")
    with pytest.raises(ValueError, match="too long for a socket"):
        vestige.listen(tmp_path / ("a" * 100))
    with pytest.raises(FileExistsError):
        vestige.listen(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "kept"


def test_nobody_listens_at_a_socket_that_was_left(tmp_path):
    tmp_path.chmod(0o700)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "a.sock"))
    result = attach(tmp_path, "--socket", "a.sock")
    assert (result.returncode, result.stderr) == (1, "vestige: a.sock: Connection refused\n")
    code = "import sys, vestige; print(vestige.listen(sys.argv[1]))"
    again = subprocess.run([PYTHON, "-c", code, str(tmp_path / "a.sock")], capture_output=True, text=True)
    assert (again.returncode, again.stderr) == (0, "")


# ---- vestige run --paused ------------------------------------------------------------


def test_a_paused_program_is_recorded_while_somebody_is_attached(running, tmp_path):
    program = running(command=(COMMAND, "run", "--paused", "-o", "run.vst"))
    assert (program.ask("hooks()"), (tmp_path / "run.vst").exists()) == (0, False)
    for _ in range(2):
        result = attach(tmp_path, str(program.pid), "--for", "20ms")
        assert result.returncode == 0, result.stderr
        assert "into run.vst" in result.stderr and " calls, " in result.stdout
        assert program.ask("hooks()") == 0
    own = attach(tmp_path, str(program.pid), "--for", "20ms", "-q", "-o", "own.vst", "--no-c")
    assert own.returncode == 0, own.stderr
    refused = attach(tmp_path, str(program.pid), "--no-c")
    assert refused.stderr.endswith(
        "the process was started by vestige run --paused; options for another recording need -o FILE\n"
    )
    stderr = program.end()
    assert stderr.startswith(f"vestige: paused: vestige attach {program.pid} records it\n")
    assert "vestige view run.vst" in stderr
    assert vestige.Trace(str(tmp_path / "run.vst")).info()["clean"]


def test_a_paused_program_that_nobody_attached_to_leaves_no_file(workplace):
    result = workplace.vestige("run", "--paused", "-o", "t.vst", "-c", "print(1)")
    assert (result.returncode, result.stdout) == (0, "1\n")
    assert result.stderr.endswith("vestige: nothing was recorded: nobody attached\n")
    assert not (workplace.path / "t.vst").exists()
    assert workplace.vestige("run", "-q", "--paused", "-o", "t.vst", "-c", "print(1)").stderr == ""


def test_a_paused_program_does_not_overwrite_a_file(workplace):
    workplace.write("t.vst", "kept")
    result = workplace.vestige("run", "--paused", "-o", "t.vst", "-c", "print(1)")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "vestige: t.vst: already exists; --force overwrites it\n"


def test_two_calls_of_listen_are_one():
    code = "import vestige\na = vestige.listen()\nassert a == vestige.listen()\ntry:\n    vestige.listen('/tmp/x/y')\nexcept RuntimeError as error:\n    print(error)"
    result = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True)
    assert result.stdout.startswith("this process listens already, at "), result.stderr


def test_listening_loads_little():
    code = "import sys, vestige\nbefore = set(sys.modules)\nvestige.listen()\nprint(sorted(set(sys.modules) - before))"
    result = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True)
    loaded = {name for name in eval(result.stdout) if not name.startswith("vestige")}
    assert loaded <= {"_socket", "select", "atexit", "_json", "_weakref", "errno", "grp", "pwd"}, loaded
