"""The end of the interpreter: requests for a recording during the end, and recordings that are still open."""

import json
import os
import socket
import subprocess
import sys
from contextlib import closing

import pytest

import vestige
from conftest import PYTHON, TIMEOUT
from running import running  # noqa: F401 (fixture)
from vestige import Trace
from vestige.recording.endings import TOO_LATE
from vestige.recording.sockets import folder_of_user, listen_at

pytestmark = pytest.mark.any_python
CAN_FORK_AT_THE_END = sys.version_info < (3, 12)

# Default arguments stay until the end. The codec registry and the list of at-fork functions are emptied after the
# modules.
ASKS = """
import builtins, codecs, os, sys
from vestige import profile

asked = []

def ask(*unused, sys=sys, profile=profile, asked=asked):
    if sys.is_finalizing() and not asked:
        asked.append(profile(output="t.vst"))
        with asked[0]:
            asked.append("recorded nothing")

class Last:
    def __del__(self, os=os, asked=asked):
        if {forks}:
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
        else:
            try:
                "".encode("unheard of")
            except LookupError:
                pass
        os.write(1, asked[1].encode())

if {forks}:
    os.register_at_fork(before=ask)
else:
    codecs.register(ask)
builtins.last = Last()
sys.exit(7)
"""


def run(folder, source):
    (folder / "program.py").write_text(source)
    return subprocess.run(
        [PYTHON, "program.py"], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


@pytest.mark.parametrize(
    "forks", [False] + [True] * CAN_FORK_AT_THE_END, ids=lambda forks: "fork" if forks else "codec"
)
def test_a_recording_that_is_asked_for_while_the_interpreter_shuts_down_is_refused_in_one_line(tmp_path, forks):
    result = run(tmp_path, ASKS.format(forks=forks))
    assert (result.returncode, result.stdout) == (7, "recorded nothing")
    assert result.stderr == f"vestige: {TOO_LATE}\n"
    assert not (tmp_path / "t.vst").exists()


OPEN = """
import atexit, codecs, os, sys, threading
from vestige import profile
from vestige.recording import endings

held = profile(output="t.vst", **{options})

def keep(*unused, held=held):
    return None

def work():
    return sum(map(abs, range(10)))

class Late:
    def __del__(self):
        late()

def late():
    work()

if {forks}:
    os.register_at_fork(before=keep)
else:
    codecs.register(keep)
held.start()
atexit.unregister(endings._finish_all)
threading.Thread(target=work).start()
work()
late.late = Late()
sys.exit(7)
"""


@pytest.mark.parametrize("forks", [False, True], ids=["codec", "fork"])
@pytest.mark.parametrize(
    "options",
    [
        {"engine": "turbo"},
        {"engine": "safe"},
        {"budget": 0.05},
        {"sched": True, "exceptions": True, "max_size": "4M", "snapshot_signal": "USR1"},
        {"profile_memory": True, "record_args": ["*"], "children": True},
    ],
    ids=lambda options: "-".join(options),
)
def test_a_recording_that_is_still_open_when_the_modules_are_gone_is_finished(tmp_path, options, forks):
    result = run(tmp_path, OPEN.format(options=options, forks=forks))
    assert (result.returncode, result.stdout, result.stderr) == (7, "", "")
    trace = Trace(str(tmp_path / "t.vst"))
    assert trace.info()["clean"]
    assert any(known[1].endswith(": work") for known in trace.definitions() if known)


# ---- who asks from outside ----------------------------------------------------

REQUEST = {"do": "record", "output": None, "folder": "/nowhere", "seconds": None, "chosen": [], "options": {}}

# vestige's own thread no longer answers. A request that comes now still waits when the functions of atexit run.
STOPS_LISTENING = """
import sys
import vestige
from vestige import _core

vestige.listen("private/a.sock")
print("ready", flush=True)
sys.stdin.readline()
_core.unwatch_descriptor()
print("deaf", flush=True)
sys.stdin.readline()
sys.exit(7)
"""


def ask(folder, request=REQUEST):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(TIMEOUT)
    connection.connect(str(folder / "private/a.sock"))
    connection.sendall(json.dumps(request).encode() + b"\n")
    return connection


def answers(connection):
    """Returns everything that the socket answers until it is closed."""
    with connection, connection.makefile() as lines:
        return [json.loads(line) for line in lines]


def test_a_request_that_waits_when_the_process_ends_is_refused(running, tmp_path):
    program = running(STOPS_LISTENING)
    program.tell("")
    assert program.hear() == "deaf\n"
    connections = [ask(tmp_path) for _ in range(3)]
    program.tell("")
    assert [answers(connection) for connection in connections] == [[{"error": TOO_LATE}]] * 3
    assert program.end() == ""
    assert program.process.returncode == 7
    assert not (tmp_path / "private/a.sock").exists()


# The second recording begins after the function that finishes recordings has run, and before the socket is closed.
BEGINS_LATE = """
import atexit, os, sys, time
import vestige
from vestige import _core

vestige.listen("private/a.sock")

def wait():
    print("waits", flush=True)
    while not _core.recording():
        time.sleep(0.001)

atexit.register(wait)
print("ready", flush=True)
sys.stdin.readline()
sys.exit(7)
"""


def test_a_recording_that_begins_while_functions_of_atexit_run_is_finished(running, tmp_path):
    program = running(BEGINS_LATE)
    first, second = ({**REQUEST, "folder": str(tmp_path), "output": str(tmp_path / name)} for name in "ab")
    connection = ask(tmp_path, first)
    assert b"recording" in connection.recv(4096)
    connection.sendall(b'{"do": "stop"}\n')
    assert b"stopped" in connection.recv(4096)
    program.tell("")
    assert program.hear() == "waits\n"
    [begun, ended] = answers(ask(tmp_path, second))
    assert (begun["recording"], ended["stopped"]) == (second["output"], second["output"])
    assert program.end() == ""
    assert program.process.returncode == 7
    assert Trace(second["output"]).info()["clean"]


LISTENS = """
import atexit, sys, time
import vestige

vestige.listen("private/a.sock")
atexit.register(time.sleep, 0.003)
print("ready", flush=True)
sys.stdin.readline()
sys.exit(7)
"""


def test_processes_that_end_while_others_ask_again_and_again_end_as_they_would(running, tmp_path):
    for _ in range(12):
        program = running(LISTENS)
        program.tell("")
        while program.process.poll() is None:
            try:
                ask(tmp_path, {**REQUEST, "folder": str(tmp_path)}).close()
            except OSError:  # the socket is removed
                pass
        assert (program.end(), program.process.returncode) == ("", 7)


# Runs like sys.remote_exec, in the main thread.
ENTERED = """
import atexit, sys

with open({script!r}) as file:
    source = file.read()

def enter():
    exec(source, {{}})

class Last:
    closed = False

    def flush(self):
        if sys.is_finalizing():
            enter()

{when}
sys.exit(7)
"""


@pytest.mark.parametrize(
    ("when", "said"),
    [
        pytest.param(
            "atexit.register(enter)",
            "no thread can be started there (can't create new thread at interpreter shutdown)",
            marks=pytest.mark.skipif(sys.version_info[:2] != (3, 12), reason="it starts threads then"),
        ),
        ("sys.stdout = Last()", TOO_LATE),
    ],
    ids=["atexit", "end"],
)
def test_who_enters_a_process_that_ends_is_told_so_and_the_process_says_nothing(running, when, said):
    script = os.path.join(os.path.dirname(vestige.__file__), "startup/attached.py")
    begin = "print('ready', flush=True); sys.stdin.readline()\n"
    program = running(ENTERED.format(script=script, when=begin + when))
    place = os.path.join(folder_of_user(), f"attach-{program.pid}.")
    with closing(listen_at(place + "sock")):
        try:
            program.tell("")
            assert (program.end(), program.process.returncode) == ("", 7)
            assert os.readlink(place + "why") == said
        finally:
            for end in ("sock", "why"):
                os.unlink(place + end)
