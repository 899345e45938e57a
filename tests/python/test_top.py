"""`vestige top`: into a pipe, on a terminal with keys, and when the file or its process ends."""

import os
import signal
import subprocess

import pytest

from conftest import COMMAND
from live_terminal import LiveTerminal
from traces import record, steps
from vestige._core import Trace, can_see_switches, pack

pytestmark = pytest.mark.any_python

# Works, prints a line, and waits for a line; repeatedly.
PROGRAM = """\
import gc, sys, threading
def leaf(number):
    return number + 1
def busy(count):
    for number in range(count):
        leaf(number)
def deep(count):
    return deep(count - 1) if count else busy(10)
def idle():
    asked.wait()
asked = threading.Event()
thread = threading.Thread(target=idle, name="the idle one")
thread.start()
line = "first"
while line:
    busy(20000)
    deep(20)
    gc.collect()
    print("done", flush=True)
    line = sys.stdin.readline()
asked.set()
thread.join()
"""
WHOLE = ("--last", "1h")
LOCK = "acquire of _thread.lock"
IDLE = "program.py:9: idle"


class Program:
    def __init__(self, folder, *options):
        script = folder / "program.py"
        script.write_text(PROGRAM)
        self.trace = folder / "t.vst"
        self.process = subprocess.Popen(
            [COMMAND, "run", "-q", "--force", *options, "-o", str(self.trace), str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "done\n"

    def work(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self):
        self.process.stdin.close()
        assert self.process.wait() == 0
        self.process.stdout.close()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def program(tmp_path):
    started = Program(tmp_path)
    yield started
    if started.process.poll() is None:
        started.kill()


def top(*words, code=0):
    done = subprocess.run([COMMAND, "top", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def shares(table, name):
    """Returns a function's own and total share."""
    [line] = [line for line in table.splitlines() if line.endswith(name)]
    return [float(word.rstrip("%")) for word in line.split()[:2]]


# ---- into a pipe


def test_into_a_pipe_goes_one_table(program):
    table = top(program.process.pid, *WHOLE)
    assert f"process {program.process.pid}: recording for" in table
    assert "\033" not in table
    assert "records/s · recording costs about" in table
    assert ", by own time" in table
    assert shares(top(program.trace, *WHOLE, "--filter", "idle"), IDLE)[1] > 20
    own, total = shares(table, "program.py:4: busy")
    assert 0 <= own <= total <= 100
    assert "program.py:2: leaf" in table
    # A function that calls itself counts once.
    assert shares(top(program.trace, *WHOLE, "--filter", "deep"), "program.py:7: deep")[1] <= 100
    assert "Python GC" in table
    assert "2 threads" in table
    assert "the idle one" in table
    assert "waits: locks" in table
    assert LOCK not in table.partition("2 threads")[0]
    assert LOCK in top(program.trace, *WHOLE, "--waits").partition("2 threads")[0]


@pytest.mark.skipif(can_see_switches() != 0, reason="the system does not tell when threads run")
def test_functions_are_sorted_by_running_time_where_that_is_recorded(tmp_path):
    program = Program(tmp_path, "--sched")
    program.work()
    live = top(program.process.pid, *WHOLE, "--filter", "idle")
    program.end()
    for table in (live, top(program.trace, *WHOLE, "--filter", "idle")):
        assert ", by own running time, filter 'idle'; without waiting (" in table
        assert shares(table, IDLE)[1] < 20  # the function waits all the time
    assert shares(top(program.trace, *WHOLE), "program.py:4: busy")[1] > 0
    assert ", by total running time" in top(program.trace, *WHOLE, "--sort", "total")
    assert ", by calls" in top(program.trace, *WHOLE, "--sort", "calls")


def test_a_filter_and_an_order_are_options_too(program):
    table = top(program.trace, *WHOLE, "--filter", "LEAF", "--sort", "calls")
    assert "by calls, filter 'LEAF'" in table
    assert [line for line in table.splitlines() if "program.py:" in line and "%" in line][0].endswith(": leaf")
    assert "busy" not in table.partition("threads")[0]


def test_a_bounded_recording_is_watched_too(tmp_path):
    program = Program(tmp_path, "--max-size", "1M")
    for _ in range(4):
        program.work()
    assert "program.py:4: busy" in top(program.process.pid, *WHOLE)
    program.end()
    assert "the recording ended" in top(program.trace, *WHOLE)


def test_a_recording_that_ended_shows_its_last_seconds(program):
    program.end()
    table = top(program.trace, *WHOLE)
    assert "the recording ended" in table
    assert "program.py:2: leaf" in table


def test_text_of_a_trace_cannot_command_the_terminal(tmp_path):
    trace = record(tmp_path / "t.vst", steps(3, "a\033[31mb"))
    assert "a\ufffd[31mb" in top(trace, *WHOLE)


def test_a_budget_stands_beside_what_recording_costs(tmp_path):
    trace = record(tmp_path / "t.vst", steps(3), vestige_budget=0.02)
    assert "of a core, budget 2% of what the process runs" in top(trace, *WHOLE)
    trace = record(tmp_path / "t.vst", steps(3), vestige_budget="none of them")
    assert "of a core, budget" not in top(trace, *WHOLE)


# ---- what cannot be watched


def test_what_cannot_be_watched_gets_one_line(tmp_path):
    plain = tmp_path / "plain.txt"
    plain.write_text("no trace")
    newer = record(tmp_path / "newer.vst")
    data = bytearray(newer.read_bytes())
    data[8] = 99
    newer.write_bytes(data)
    packed = record(tmp_path / "packed.vst")
    pack(str(packed), str(packed), overwrite=True)
    empty = tmp_path / "empty.vst"
    empty.write_bytes(b"")
    for words, wanted in [
        ((os.getpid(),), f"process {os.getpid()} records nothing now"),
        ((2**22 + 1,), f"there is no process {2**22 + 1}, and no file of that name"),
        ((tmp_path / "none.vst",), "none.vst: No such file or directory"),
        ((plain,), "plain.txt: not a vestige trace"),
        ((newer,), "newer.vst: "),
        ((packed,), "packed.vst: is packed"),
        ((empty,), "empty.vst: "),
        ((tmp_path,), ": "),
    ]:
        line = top(*words, code=1)
        assert wanted in line
        assert line.startswith("vestige: ") and line.count("\n") == 1 and "/proc/self" not in line
    for words in [(plain, "--last", "soon"), (plain, "--every", "1ms"), (plain, "--sort", "name"), ()]:
        assert top(*words, code=2).count("\n") == 1


# ---- on a terminal


def test_keys_sort_filter_freeze_and_take_a_snapshot(program):
    screen = LiveTerminal([COMMAND, "top", program.process.pid, "--every", "100ms"])
    screen.wait_for("by own time")
    for keys, text in [
        ("t", "by total time"),
        ("c", "by calls"),
        ("w", "acquire"),
        (" ", "[frozen]"),
        (" ", "by calls"),
        ("/lex\x7faf\n", "filter 'leaf'"),
        ("\033", "s snapshot"),
    ]:
        screen.press(keys)
        screen.wait_for(text)
    screen.press("s")
    screen.wait_for("snapshot: ")
    assert Trace(str(program.trace.with_name("t-snapshot1.vst"))).info()["clean"]
    screen.press("\033[A?")  # keys without a meaning do nothing
    screen.press("q")
    seen, code = screen.end()
    assert code == 0
    assert "\033[?1049l" in seen  # the previous screen is back, with the last table on it
    assert "by calls" in seen.partition("\033[?1049l")[2]
    program.work()


def test_new_work_appears_and_any_size_will_do(program):
    screen = LiveTerminal([COMMAND, "top", program.trace, "--every", "100ms"], columns=100, rows=40)
    screen.wait_for("by own time")
    screen.press("")
    program.work()
    screen.wait_for("program.py:4: busy")
    for columns, rows in [(30, 10), (5, 2), (1, 1), (300, 5), (100, 40)]:
        screen.resize(columns, rows)
        screen.press("t")
        screen.wait_for("\033[J")
    screen.press("t")
    screen.wait_for("threads")
    screen.process.send_signal(signal.SIGINT)
    assert screen.end()[1] == 0


def test_it_ends_with_the_recording(program):
    screen = LiveTerminal([COMMAND, "top", program.process.pid, "--every", "100ms"])
    screen.wait_for("by own time")
    program.end()
    seen, code = screen.end()
    assert code == 0
    assert "the recording ended" in seen


def test_it_ends_where_the_process_is_killed(program):
    screen = LiveTerminal([COMMAND, "top", program.process.pid, "--every", "100ms"])
    screen.wait_for("by own time")
    program.kill()
    seen, code = screen.end()
    assert code == 0
    assert "the process is gone" in seen


def test_a_file_that_is_deleted_is_watched_on_and_one_that_is_cut_is_not(program):
    screen = LiveTerminal([COMMAND, "top", program.trace, "--every", "100ms"])
    screen.wait_for("by own time")
    held = os.open(program.trace, os.O_RDWR)
    program.trace.unlink()
    screen.wait_for("deleted")
    assert "program.py:4: busy" in top(program.process.pid, *WHOLE)
    os.ftruncate(held, 5000)
    os.close(held)
    seen, code = screen.end()
    assert code == 1
    assert "its file cannot be read any more" in seen
    assert seen.splitlines()[-1].startswith("vestige: ")
