"""Programs that run while a test attaches to them."""

import os
import select
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from conftest import COMMAND, PYTHON, TIMEOUT

PATIENT = ("--wait", f"{TIMEOUT}s", "--standstill", f"{TIMEOUT}s")  # the machine may be busy
FOLDER = Path(f"/tmp/vestige-{os.geteuid()}")
BY_REMOTE_EXEC = sys.version_info >= (3, 14)

# The main thread works. A second thread answers the test's questions, and ends the program when the test closes the
# pipe.
WORKER = """
import sys, threading, time

def leaf(n):
    return n * 2

def branch(n):
    return sum([leaf(i) for i in range(n)])

def hooks():
    core = sys.modules.get("vestige._core")
    return 0 if core is None else core.hooks_in_place()

def rss():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

def answer():
    for line in sys.stdin:
        print(eval(line), flush=True)

def main():
    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    print("ready", flush=True)
    while thread.is_alive():
        branch(20)
        time.sleep(0.001)

main()
"""


def need_a_way_in():
    """Skips the test if this Python cannot be entered from outside."""
    if not BY_REMOTE_EXEC and shutil.which("gdb") is None:
        pytest.skip("gdb is not installed, which attaching takes before Python 3.14")
    if not _may_trace():
        pytest.skip("this user may not trace processes that are not its children")


def _may_trace():
    """Returns whether this process may read the memory of others that are not its children (yama may forbid this)."""
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        reads = f"open('/proc/{sleeper.pid}/mem', 'rb').close()"
        return subprocess.run([sys.executable, "-c", reads], stderr=subprocess.DEVNULL).returncode == 0
    finally:
        sleeper.kill()
        sleeper.wait()


class Running:
    """A started program that has printed `ready`."""

    def __init__(self, folder, source=WORKER, *, command=(), flags=(), **options):
        path = folder / f"program{len(list(folder.glob('program*.py')))}.py"
        path.write_text(textwrap.dedent(source))
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        words = [*(command or (PYTHON, *flags)), path]
        self.folder = folder
        self.process = subprocess.Popen(words, cwd=folder, text=True, **{**pipes, **options})
        self.pid = self.process.pid
        assert self.hear() == "ready\n"

    def hear(self):
        """Returns the next line that the program prints."""
        assert select.select([self.process.stdout], [], [], TIMEOUT)[0], "it says nothing"
        return self.process.stdout.readline()

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, expression):
        self.tell(expression)
        return int(self.hear())

    def attach(self, *words, **options):
        options = {"cwd": self.folder, "capture_output": True, "text": True, "timeout": 2 * TIMEOUT, **options}
        return subprocess.run([COMMAND, "attach", str(self.pid), *PATIENT, *words], **options)

    def begin(self, *words):
        """Attaches, and returns the command once the recording has started."""
        words = [COMMAND, "attach", str(self.pid), *PATIENT, *words]
        command = subprocess.Popen(words, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        command.said = ""
        while "recording process" not in command.said:
            line = command.stderr.readline()
            assert line, command.said
            command.said += line
        return command

    def end(self):
        """Ends the program; returns its stderr."""
        _, stderr = self.process.communicate(timeout=TIMEOUT)
        return stderr

    def kill(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def running(tmp_path):
    """Starts programs, and ends them when the test ends."""
    started = []

    def start(*args, **options):
        started.append(Running(tmp_path, *args, **options))
        return started[-1]

    yield start
    for program in started:
        if program.process.poll() is None:
            program.kill()


def detach(pid):
    return subprocess.run([COMMAND, "detach", str(pid)], capture_output=True, text=True, timeout=TIMEOUT)


def refusal(result):
    """Returns the single line that says why a command did not attach."""
    assert result.returncode == 1, result.stderr
    lines = [line for line in result.stderr.splitlines() if " still for " not in line]
    assert len(lines) == 1 and lines[0].startswith("vestige: "), result.stderr
    return lines[0].removeprefix("vestige: ")
