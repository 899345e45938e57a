"""Difficult cases with threads, forks and sub-interpreters, tried with every engine: threads in the middle of a call
when a recording starts, stops or is copied.
"""

import ctypes
import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import hooked
import vestige
from family import family
from tree import assert_nests, calls, load, names, read, record, short, threads
from vestige import profile

pytestmark = pytest.mark.parametrize("engine", vestige._core.engines)


def leaf():
    pass


def cut(trace):
    return [event["name"] for event in calls(trace) if event["args"].get("cut")]


class Waiting:
    """A thread that waits for a lock in C, and continues when the test releases the lock."""

    def __init__(self, rounds=1):
        self.gates = [threading.Lock() for _ in range(rounds)]
        for gate in self.gates:
            gate.acquire()
        self.arrived = [threading.Event() for _ in range(rounds)]
        self.thread = threading.Thread(target=self.body, name="waiting")
        self.thread.start()

    def body(self):
        for gate, arrived in zip(self.gates, self.arrived, strict=True):
            arrived.set()
            self.waits(gate)
            leaf()

    def waits(self, gate):
        gate.acquire()
        leaf()

    def until(self, number):
        """Waits until the thread has reached this number, and had time to enter the C function."""
        self.arrived[number].wait()
        time.sleep(0.01)

    def end(self):
        for gate in self.gates:
            if gate.locked():
                gate.release()
        self.thread.join()


# ---- threads in the middle of a call ---------------------------------------


def test_a_thread_inside_a_c_call_at_the_start_goes_on_as_recorded(engine):
    waiting = Waiting(2)
    waiting.until(0)
    with profile(engine=engine) as prof:
        waiting.gates[0].release()
        waiting.until(1)
        waiting.gates[1].release()
        waiting.thread.join()
    trace = load(prof)
    assert not cut(trace)
    (root,) = threads(trace)["waiting"]
    found = [(short(span.name), span.marks) for span in root.walk() if short(span.name) in ("body", "waits")]
    assert found == [("body", ["open at start"]), ("waits", ["open at start"]), ("waits", [])]
    # Two leaves in each round: one inside waits(), one after it.
    assert [short(span.parent.name) for span in root.walk() if short(span.name) == "leaf"] == ["waits", "body"] * 2


def test_a_thread_inside_a_c_call_at_the_stop_comes_back_unharmed(engine):
    hooks = hooked.Hooks()
    waiting = None
    prof = profile(engine=engine)
    prof.start()
    waiting = Waiting(1)
    waiting.until(0)
    prof.stop()
    assert hooks.trouble() == ""
    waiting.end()
    trace = load(prof)
    (root,) = threads(trace)["waiting"]
    inside = [short(span.name) for span in root.walk() if "open at stop" in span.marks]
    assert inside[-2:] == ["waits", "<_thread.lock.acquire>"]
    assert not cut(trace)


def test_a_call_that_began_in_one_recording_does_not_end_in_the_next(engine):
    first, second = profile(engine=engine), profile(engine=engine)
    first.start()
    waiting = Waiting(2)
    waiting.until(0)
    first.stop()
    second.start()
    waiting.gates[0].release()
    waiting.until(1)
    second.stop()
    third = profile(engine=engine)
    third.start()
    waiting.end()
    third.stop()
    for prof in (first, second, third):
        assert not cut(load(prof))
    (root,) = threads(load(second))["waiting"]
    assert [short(span.name) for span in root.walk() if short(span.name) == "leaf"] == ["leaf"] * 2
    assert [span.marks for span in root.walk() if short(span.name) == "body"] == [["open at start", "open at stop"]]


def test_windows_of_one_recording_with_a_thread_that_waits_over_all_of_them(engine):
    waiting = Waiting(1)
    waiting.until(0)
    prof = profile(engine=engine, acc_events=True)
    for _ in range(5):
        prof.start()
        leaf()
        prof.stop()
    prof.start()
    waiting.end()
    prof.stop()
    trace = load(prof)
    assert not cut(trace)
    assert names(trace)["leaf"] == 7


def test_starting_and_stopping_under_threads_that_call_all_the_time(engine, tmp_path):
    """The recordings are short because threads fill them quickly. Sessions start and stop without Python code in
    between.
    """
    ended = False
    wrong = []

    def busy():
        while not ended:
            found = []
            for number in range(20):
                found.append(len(str(number)))
                leaf()
            if sum(found) != 30:
                wrong.append(found)

    sessions = [vestige._core.Session(engine=engine) for _ in range(6)]
    crowd = [threading.Thread(target=busy) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        for thread in crowd:
            thread.start()
        for session in sessions:
            session.start()
            session.stop()
    finally:
        ended = True
        for thread in crowd:
            thread.join()
        sys.setswitchinterval(interval)
    assert not wrong
    for session in sessions:
        path = tmp_path / "t.json"
        session.trace().export(str(path))
        if path.stat().st_size < 1_000_000:  # otherwise reading it takes too long
            trace = read(path)
            assert_nests(trace)
            assert not cut(trace)


# ---- forks -----------------------------------------------------------------


def wait(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_child_forked_inside_a_c_call_comes_back_through_it(engine):
    """The child is not recorded, and has no hooks."""
    hooks = hooked.Hooks()
    children = []

    def key(item):
        if item == 2:
            children.append(os.fork())
        return -item

    def outer():
        result = sorted([1, 2, 3], key=key)
        if children[-1] == 0:
            code = 1
            try:
                leaf()
                code = 0 if result == [3, 2, 1] and hooks.trouble() == "" else 3
            finally:
                os._exit(code)
        leaf()

    trace = record(outer, engine=engine)
    assert wait(children[0]) == 0
    assert names(trace)["leaf"] == 1
    assert names(trace)["<sorted>"] == 1
    assert not cut(trace)
    assert hooks.trouble() == ""


def test_a_followed_child_forked_inside_a_c_call_has_its_own_part(engine, tmp_path):
    program = """
    import os, sys
    from vestige import profile
    sys.path.insert(0, sys.argv[2])
    from counted import work

    def key(item):
        if item == 2:
            children.append(os.fork())
        return -item

    children = []
    with profile(output="t.vst", engine=sys.argv[1], children=True):
        result = sorted([1, 2, 3], key=key)
        work(3 if children[0] == 0 else 2)
    assert result == [3, 2, 1]
    if children[0]:
        assert os.waitpid(children[0], 0)[1] == 0
    """
    (tmp_path / "main.py").write_text(textwrap.dedent(program))
    counted = "def step():\n    len([])\n\ndef work(n):\n    for _ in range(n):\n        step()\n"
    (tmp_path / "counted.py").write_text(counted)
    command = [sys.executable, "main.py", engine, str(tmp_path)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    root, [child] = family(tmp_path)
    assert (root.steps, child.steps) == (2, 3)
    assert [file.calls["<built-in function len>"] for file in (root, child)] == [2, 3]
    assert root.calls["<built-in function sorted>"] == 1


def test_a_child_forked_by_c_runs_on(engine):
    libc = ctypes.PyDLL(None)

    def outer():
        child = libc.fork()
        if child == 0:
            code = 1
            try:
                found = []
                for number in range(200):
                    found.append(len(str(number)))
                    leaf()
                code = 0 if len(found) == 200 else 2
            finally:
                libc._exit(code)
        assert wait(child) == 0

    trace = record(outer, engine=engine)
    assert names(trace).get("leaf", 0) == 0


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forks_beside_threads_inside_c_calls(engine):
    hooks = hooked.Hooks()
    waiting = Waiting(1)
    waiting.until(0)

    def outer():
        for _ in range(3):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    leaf()
                    code = 3 if hooks.trouble() else 0
                    with profile(engine=engine):
                        leaf()
                    code = 4 if hooks.trouble() else code
                finally:
                    os._exit(code)
            assert wait(child) == 0
        leaf()

    with profile(engine=engine) as prof:
        outer()
        waiting.end()
    trace = load(prof)
    assert names(trace)["leaf"] == 3
    assert not cut(trace)


# ---- sub-interpreters --------------------------------------------------------

INTERPRETERS = """
import sys, threading
sys.path.insert(0, sys.argv[3])
import hooked, vestige
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

BODY = '''
import math, _struct
def leaf(n):
    return len("x" * n)
def numbers(n):
    for i in range(n):
        yield leaf(i)
total = 0
for _ in range(300):
    total += sum(numbers(5)) + abs(-0) + isinstance(3, int) + [3, 1].index(1)
    try:
        [].pop()
    except IndexError:
        pass
assert total == 300 * 12, total
'''

def own_gil():
    if sys.version_info >= (3, 13):
        return interpreters.create("isolated")
    return interpreters.create(isolated=True) if sys.version_info >= (3, 12) else interpreters.create()

def run(other):
    failed = interpreters.run_string(other, BODY)
    assert not failed, failed

def leaf():
    abs(-1)

hooks = hooked.Hooks()
engine, path = sys.argv[1:3]
prof = vestige.profile(engine=engine)
early = own_gil()
run(early)
prof.start()
run(early)                      # made before
inside = interpreters.create()
run(inside)                     # made while recording
leaf()
beside = own_gil()
thread = threading.Thread(target=run, args=[beside])
thread.start()                  # runs beside us, with a GIL of its own where there is one
for _ in range(200):
    leaf()
thread.join()
interpreters.destroy(inside)    # ends while recording
prof.stop()
print(hooks.trouble())
run(early)
run(beside)
thread = threading.Thread(target=lambda: [run(beside) for _ in range(10)])
thread.start()
while thread.is_alive():        # starts and stops while another interpreter runs
    with vestige.profile(engine=engine):
        leaf()
thread.join()
print(hooks.trouble())
interpreters.destroy(early)
interpreters.destroy(beside)
prof.export_chrome_trace(path)
print("fine")
"""


def test_sub_interpreters_made_run_and_ended_meanwhile_are_none_of_ours(engine, tmp_path):
    path = tmp_path / "t.json"
    command = [sys.executable, "-X", "faulthandler", "-c", INTERPRETERS, engine, str(path), os.path.dirname(__file__)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout) == (0, "\n\nfine\n"), result.stdout + result.stderr
    trace = read(path)
    assert_nests(trace)
    counts = names(trace)
    assert (counts["leaf"], counts["<abs>"]) == (201, 201)
    assert not {"numbers", "<list.index>", "<list.pop>"} & set(counts)
    assert not cut(trace)
