"""Checks the first screen about waits, locks, loops, threads and processes: findings name the cause, and there are none
where threads do their normal work. Most traces are made by hand.
"""

import contextlib
import json
import re
import subprocess
import sys

import pytest

from conftest import COMMAND
from handmade import define, definitions, enter, entry, leave, records, thread, trace
from in_process import vestige
from vestige import Trace
from vestige.cli.report import causes, waiting
from vestige.cli.report.data import FOR_FINDINGS, Data
from vestige.cli.report.findings import Evidence, find

pytestmark = pytest.mark.any_python
MS = 1_000_000
METADATA = 17  # kind of an entry


def evidence(path, **facts):
    data, opened = Data(), Trace(str(path))
    data.add(opened, {}, FOR_FINDINGS, fold_imports=True, awaits=True)
    return Evidence(data, [{**opened.info(), **facts}])


def made(tmp_path, *words, entries=(), name="made.vst"):
    path = tmp_path / name
    path.write_bytes(trace(definitions(thread(), define(1, "main"), *entries), records(*words)))
    return path


def kinds(found):
    return [finding.kind for finding in found]


# ---- functions that wait -----------------------------------------------------------

RUNNER = define(2, "Runner.run", "/usr/lib/python3.12/asyncio/runners.py", 86)
UVLOOP = define(2, "<built-in method run_until_complete of uvloop.loop.Loop object>", "uvloop.loop.Loop", 0, kind=2)
CALLBACK = define(3, "callback", "app.py")


@pytest.mark.parametrize("loop", [RUNNER, UVLOOP])
def test_the_own_time_of_an_event_loop_in_c_is_waiting(tmp_path, loop):
    """uvloop calls back: callbacks work, and the rest of the time it waits, open at an attach or not."""
    words = [enter(1), enter(2), enter(3, 60 * MS), leave(3, 40 * MS), leave(2, 50 * MS), leave(1)]
    path = made(tmp_path, *words, entries=[loop, CALLBACK])
    (row,) = json.loads(vestige("report", path, "--threads", "--format", "json").out)["threads"]
    assert row["waiting_ns"] == 110 * MS
    text = vestige("report", path, "--tree").out
    assert re.search(r"(Runner\.run|uvloop\.loop\.Loop object>)  \[waited 110 ms: input and output\]", text)


def test_a_python_function_that_took_less_did_not_wait_itself(tmp_path):
    """Its call in C that waits has been recorded, and is the wait."""
    poll = define(3, "<built-in method poll of select.epoll object>", "select.epoll", 0, kind=2)
    words = [enter(1), enter(2), enter(3), leave(3, 80 * MS), leave(2, 900_000), leave(1)]
    path = made(tmp_path, *words, entries=[RUNNER, poll])
    (row,) = json.loads(vestige("report", path, "--threads", "--format", "json").out)["threads"]
    assert row["waiting_ns"] == 80 * MS


SPIN = [
    define(2, "MessageQueue.acquire_read", "/x/vllm/distributed/device_communicators/shm_broadcast.py", 400),
    define(3, "memory_fence", "/x/vllm/distributed/device_communicators/shm_broadcast.py", 40),
    define(4, "<built-in function sched_yield>", "posix", 0, kind=2),
]


def test_a_loop_that_only_looks_again_is_folded_and_is_waiting(tmp_path):
    turns = [word for _ in range(100) for word in (enter(3), leave(3, 2000), enter(4), leave(4, 8000))]
    path = made(tmp_path, enter(1), enter(2), *turns, leave(2, MS), leave(1, MS), entries=SPIN)
    text = vestige("report", path, "--tree").out
    assert re.search(r"MessageQueue\.acquire_read  \[spun [\d.]+ ms, \d+ frames? hidden\]", text), text
    assert "sched_yield" not in text and "memory_fence" not in text
    told = evidence(path)
    assert sum(told.places.waited) <= 2 * MS + 100 * 10_000 + 1000  # once, not again inside
    assert told.worked_ns <= MS + 2000


def test_a_project_names_functions_that_wait(tmp_path):
    bus = define(2, "<built-in method recv of mybus.Socket object>", "mybus.Socket", 0, kind=2)
    ring = define(3, "Ring.get", "/x/mybus/ring.py", 5)
    words = [enter(1), enter(2), leave(2, 70 * MS), enter(3), leave(3, 30 * MS), leave(1, MS)]
    more = entry(METADATA, 0, "vestige.waits", json.dumps("io mybus.Socket recv;spin mybus/ring.py Ring.get"))
    plain = made(tmp_path, *words, entries=[bus, ring])
    named = made(tmp_path, *words, entries=[bus, ring, more], name="named.vst")
    waited = [
        json.loads(vestige("report", path, "--threads", "--format", "json").out)["threads"][0]["waiting_ns"]
        for path in (plain, named)
    ]
    assert waited == [0, 100 * MS]


def test_a_project_adds_waits_by_its_pyproject_and_leaves_out_spins(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.vestige]\nwaits = ["spin spinner.py look", "io fetch"]\n')
    (tmp_path / "spinner.py").write_text(
        "import os\ndef look():\n    return 1\ndef turn():\n    for _ in range(5):\n        look()\n"
        "        os.sched_yield()\nturn()\n"
    )
    names = {}
    for option in ("-q", "--no-spins"):
        run = [COMMAND, "run", "-o", "t.vst", "--force", option, "spinner.py"]
        subprocess.run(run, cwd=tmp_path, check=True, capture_output=True)
        opened = Trace(str(tmp_path / "t.vst"))
        assert opened.metadata()["vestige.waits"] == '"spin spinner.py look;io fetch"'
        names[option] = {each.name: each.waits_for for each in opened.functions() if each}
    assert names["-q"]["look"] == names["-q"]["<built-in function sched_yield>"] == "spin"
    assert {"look", "<built-in function sched_yield>"}.isdisjoint(names["--no-spins"]) and "turn" in names["--no-spins"]


@pytest.mark.parametrize("entry", ["io", "wait x", "io a b c", "io a;b", 'io "x"', "io  x", ""])
def test_what_is_no_function_that_waits_is_refused(tmp_path, entry):
    said = vestige("run", "-o", tmp_path / "t.vst", "--waits", entry, "-c", "pass")
    assert said.code == 2 and said.err.count("\n") == 1 and repr(entry) in said.err
    assert not (tmp_path / "t.vst").exists()


# ---- locks -------------------------------------------------------------------------

CONVOY = """\
import threading, time
lock = threading.Lock()
def write_log():
    with lock:
        time.sleep(0.01)
def worker():
    for _ in range(12):
        write_log()
threads = [threading.Thread(target=worker) for _ in range(5)]
for each in threads:
    each.start()
for each in threads:
    each.join()
"""
READERS = """\
import threading, time
class Store:
    def __init__(self):
        self.mutex = threading.RLock()
    def compact(self):
        self.mutex.acquire()
        try:
            time.sleep(0.1)
        finally:
            self.mutex.release()
    def read(self):
        with self.mutex:
            pass
store = Store()
def reader():
    for _ in range(4):
        store.read()
        time.sleep(0.02)
def writer():
    for _ in range(4):
        store.compact()
threads = [threading.Thread(target=each) for each in (writer, reader, reader)]
for each in threads:
    each.start()
for each in threads:
    each.join()
"""
IDLE = """\
import queue, threading, time
jobs, done = queue.Queue(2), threading.Event()
condition = threading.Condition()
def worker():
    while True:
        job = jobs.get()
        if job is None:
            return
        time.sleep(0.002)
def waits():
    with condition:
        condition.wait(0.2)
threads = [threading.Thread(target=worker) for _ in range(4)] + [threading.Thread(target=waits) for _ in range(3)]
for each in threads:
    each.start()
for number in range(60):
    jobs.put(number)
for _ in range(4):
    jobs.put(None)
for each in threads:
    each.join()
"""


def found_in(tmp_path, source):
    (tmp_path / "program.py").write_text(source)
    run = [COMMAND, "run", "-q", "-o", "t.vst", "--force", "program.py"]
    subprocess.run(run, cwd=tmp_path, check=True, capture_output=True)
    said = vestige("report", tmp_path / "t.vst", "--findings", "--format", "json")
    return {each["kind"]: each for each in json.loads(said.out)["findings"]}


def test_a_lock_that_is_held_while_the_holder_sleeps_is_a_finding(tmp_path):
    lock = found_in(tmp_path, CONVOY)["lock"]
    assert lock["where"]["function"] == lock["where"]["waiter"] and lock["where"]["waiter"].endswith(": write_log")
    assert "program.py:5: write_log" in lock["text"]  # the line that sleeps
    assert "sleep" in lock["where"]["inside"] and "slept (sleep)" in lock["text"]
    assert lock["numbers"]["threads"] >= 4
    assert 0 < lock["numbers"]["wait_ns"] <= lock["numbers"]["threads_ns"]


def test_the_holder_of_a_lock_may_be_another_function(tmp_path):
    lock = found_in(tmp_path, READERS)["lock"]
    assert lock["where"]["function"].endswith("Store.compact") and lock["where"]["waiter"].endswith("Store.read")


def test_who_waits_for_work_or_for_a_condition_waits_for_no_lock(tmp_path):
    assert "lock" not in found_in(tmp_path, IDLE)


# ---- findings that were wrong --------------------------------------------------------


def test_indirect_recursion_counts_once(tmp_path):
    """f calls g, g calls f: no share is above 100%."""
    depth, each = 200, 600
    down = [word for _ in range(depth) for word in (enter(2, 100), enter(3, 100))]
    up = [word for _ in range(depth) for word in (leave(3, 100), leave(2, 100))]
    words = [word for _ in range(each) for word in (*down, *up)]
    path = made(tmp_path, enter(1), *words, leave(1), entries=[define(2, "f"), define(3, "g")])
    told = evidence(path)
    found = causes.short_calls(told)
    assert found is not None and found.numbers["total_ns"] <= told.passed_ns


def test_a_generators_send_asks_nobody(tmp_path):
    send = define(2, "<built-in method send of generator object>", "generator", 0, kind=2)
    words = [word for _ in range(2000) for word in (enter(2), leave(2, 400_000))]
    path = made(tmp_path, enter(1), *words, leave(1), entries=[send])
    assert causes.many_requests(evidence(path)) == []


def test_requests_of_one_loop_are_added_up(tmp_path):
    """None of the three takes a quarter of the time by itself."""
    entries = [define(2, "load"), define(6, "other")]
    entries += [
        define(at, f"<built-in method {name} of db.Cursor object>", "db.Cursor", 0, kind=2)
        for at, name in ((3, "execute"), (4, "fetchall"), (5, "fetchone"))
    ]
    body = [word for each in (3, 4, 5) for word in (enter(each), leave(each, 100_000))]
    words = [enter(1), enter(2), *(body * 1000), leave(2), enter(6), leave(6, 460 * MS), leave(1)]
    (found,) = causes.many_requests(evidence(made(tmp_path, *words, entries=entries)))
    assert found.where["function"].endswith("load") and found.numbers["total_ns"] == 300 * MS
    assert "execute, fetchall and fetchone 1,000 times each time it runs: 300 ms" in found.text


def test_a_server_that_receives_and_then_sends_makes_no_requests(tmp_path):
    names = {2: "recv", 3: "sendall"}
    entries = [
        define(at, f"<built-in method {name} of _socket.socket object>", "_socket.socket", 0, kind=2)
        for at, name in names.items()
    ]
    for order, count in (((2, 3), 0), ((3, 2), 1)):
        body = [word for each in order for word in (enter(each), leave(each, 2 * MS if each == 2 else 1000))]
        path = made(tmp_path, enter(1), *(body * 200), leave(1), entries=entries)
        assert len(causes.many_requests(evidence(path))) == count


SLEEP = define(2, "<built-in function sleep>", "time", 0, kind=2)


def test_a_parent_that_polls_its_recorded_child_does_not_leave_everybody_idle(tmp_path):
    """The parent sleeps and looks; the child works all the time."""
    naps = [word for _ in range(10) for word in (enter(2), leave(2, 90 * MS))]
    parent = made(tmp_path, enter(1), *naps, leave(1, 10 * MS), entries=[SLEEP])
    child = made(tmp_path, enter(1), leave(1, 900 * MS), name="child.vst")
    data = Data()
    facts = []
    for path in (parent, child):
        opened = Trace(str(path))
        data.add(opened, {}, FOR_FINDINGS, together=True, fold_imports=True)
        facts.append({**opened.info(), "start_ns": 0, "end_ns": 910 * MS})
    told = Evidence(data, facts)
    assert told.wall_ns == 910 * MS and waiting.waiting(told) is None
    assert kinds(find(evidence(parent, start_ns=0, end_ns=910 * MS))) == ["waiting"]


def test_dropped_records_are_no_idle_time(tmp_path):
    path = made(tmp_path, enter(1), enter(2), leave(2, 120 * MS), leave(1, 180 * MS), entries=[SLEEP])
    whole = {"start_ns": 0, "end_ns": 1000 * MS}
    assert kinds(find(evidence(path, **whole))) == ["waiting"]
    assert kinds(find(evidence(path, **whole, dropped=5000, complete_ns=700 * MS))) == []


def test_waiting_for_events_is_no_cause(tmp_path):
    poll = define(2, "<built-in method poll of select.epoll object>", "select.epoll", 0, kind=2)
    path = made(tmp_path, enter(1), enter(2), leave(2, 900 * MS), leave(1, 100 * MS), entries=[poll])
    assert find(evidence(path)) == []


def test_a_loop_is_judged_by_its_own_steps(tmp_path):
    """A helper's loop with one coroutine that waits does not block the loop of the main thread."""
    from types import SimpleNamespace

    told = evidence(made(tmp_path, enter(1), leave(1)), start_ns=0, end_ns=1000 * MS)
    histogram = '{"values": []}'
    main = SimpleNamespace(thread=1, steps=400, blocking=0, blocking_ns=0, histogram=histogram)
    helper = SimpleNamespace(thread=2, steps=1, blocking=1, blocking_ns=900 * MS, histogram=histogram)
    long = SimpleNamespace(start_ns=5, duration_ns=900 * MS, thread=2)
    told.data.steps.add([main, helper], [long], 1, {1: ("MainThread", 7), 2: ("helper", 8)})
    assert causes.blocked_loop(told) is None
    told.data.steps.loops[1, 2].count = 40
    found = causes.blocked_loop(told)
    assert found.where["thread"] == "helper" and "The event loop of helper was blocked once" in found.text


def test_imports_inside_of_a_step_are_reported_once(tmp_path):
    from types import SimpleNamespace

    frozen, module = define(2, "_find_and_load", "<frozen importlib._bootstrap>"), define(3, "<module>", "m.py")
    path = made(
        tmp_path, enter(1), enter(2), enter(3), leave(3, 300 * MS), leave(2), leave(1), entries=[frozen, module]
    )
    told = evidence(path, start_ns=0, end_ns=1000 * MS)
    sums = SimpleNamespace(thread=1, steps=40, blocking=6, blocking_ns=300 * MS, histogram='{"values": []}')
    long = SimpleNamespace(start_ns=5, duration_ns=300 * MS, thread=1)
    told.data.steps.add([sums], [long], 1, {1: ("MainThread", 7)})
    told.look = lambda step: told.data.tree
    assert kinds(find(told)) == ["imports"]


@pytest.mark.parametrize(("waited", "told"), [(340_000, []), (60 * MS, ["GIL"])])
def test_a_short_wait_for_the_gil_is_no_finding(tmp_path, waited, told):
    seen = evidence(made(tmp_path, enter(1), leave(1, 240 * MS)), start_ns=0, end_ns=240 * MS)
    (main,) = seen.data.threads
    main.last_ns = main.first_ns + (waited * 4)
    main.gil_ns = waited
    found = causes.gil(seen)
    assert ([found.kind] if found else []) == told


def test_a_call_that_hardly_ran_waited_whatever_its_name(tmp_path):
    tick = define(2, "<built-in method tick of engine.Clock object>", "engine.Clock", 0, kind=2)
    words = [word for _ in range(50) for word in (enter(2), leave(2, 19 * MS))]
    path = made(tmp_path, enter(1), *words, leave(1, 10 * MS), entries=[tick])
    seen = evidence(path)
    assert waiting.waiting(seen) is None
    (at,) = [node for node in seen.places.nodes if node.name.endswith("Clock object>")]
    at.running_ns = MS
    found = waiting.waiting(seen)
    assert found.where["waits_in"] == "tick" and "something that the trace does not name" in found.text


def test_a_script_of_pip_is_not_the_place(tmp_path):
    """The function below it is."""
    entries = [define(2, "<module>", "/venv/bin/scrapy"), define(3, "parse", "/project/spider.py"), SLEEP]
    entries[2] = define(4, "<built-in function sleep>", "time", 0, kind=2)
    path = made(tmp_path, enter(2), enter(3), enter(4), leave(4, 900 * MS), leave(3), leave(2), entries=entries)
    (found,) = find(evidence(path))
    assert found.where["function"].endswith("spider.py:1: parse")


def test_a_wait_in_the_users_own_function_comes_before_a_library_that_polls(tmp_path):
    """As in streamlit: the main thread looks now and then, and a page sleeps."""
    entries = [
        define(2, "poll_forever", "/venv/lib/python3.12/site-packages/server/loop.py"),
        define(3, "Thread._bootstrap", "/usr/lib/python3.12/threading.py"),
        define(4, "page", "/project/page.py"),
        define(5, "<built-in function sleep>", "time", 0, kind=2),
    ]
    words = [enter(2), enter(5), leave(5, 900 * MS), leave(2), enter(3), enter(4), enter(5), leave(5, 800 * MS)]
    path = made(tmp_path, *words, leave(4), leave(3), entries=entries)
    found = waiting.waiting(evidence(path, start_ns=0, end_ns=1000 * MS))
    assert found.where["function"].endswith("page.py:1: page")


GC = define(2, "Python GC", "", 0, kind=4)


@pytest.mark.parametrize(("ns", "told"), [(99 * MS, []), (101 * MS, ["garbage collection"])])
def test_a_single_long_collection_is_a_finding(tmp_path, ns, told):
    path = made(tmp_path, enter(1), enter(2), leave(2, ns), leave(1, 3_000 * MS), entries=[GC])
    found = find(evidence(path))
    assert kinds(found) == told
    assert all("freed nothing" in finding.text and "gc.freeze()" in finding.text for finding in found)


# ---- the screen ------------------------------------------------------------------------


def test_every_finding_ends_with_what_people_do_and_where_to_read_more(tmp_path):
    from pathlib import Path

    from vestige.cli.report.advice import ADVICE, PAGE

    page = (Path(__file__).resolve().parents[2] / PAGE).read_text()
    headings = {line.removeprefix("### ") for line in page.splitlines() if line.startswith("### ")}
    assert set(ADVICE) == headings
    path = made(tmp_path, enter(1), enter(2), leave(2, 900 * MS), leave(1, 1), entries=[SLEEP])
    (found,) = find(evidence(path))
    assert found.text.endswith(f"{ADVICE['waiting']} ({PAGE}#waiting).")


def test_the_tree_explains_the_wall_time_of_the_main_thread(tmp_path):
    """With a second thread, too, and with what is in no call."""
    (tmp_path / "two.py").write_text(
        "import threading, time\n"
        "def helper():\n    sum(range(1000))\n"
        "other = threading.Thread(target=helper)\nother.start()\ntime.sleep(0.3)\nother.join()\n"
    )
    run = [COMMAND, "run", "-o", "t.vst", "two.py"]
    said = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True).stderr
    nap = next(line for line in said.splitlines() if "<built-in function sleep>" in line)
    assert "[waits: sleep]" in nap and int(re.search(r"(\d+)%", nap)[1]) >= 50
    assert "waiting is left out" not in said


def test_the_end_of_a_run_has_the_findings_of_its_children(tmp_path):
    (tmp_path / "child.py").write_text("import time\ndef nap():\n    time.sleep(0.4)\nnap()\n")
    (tmp_path / "parent.py").write_text(
        "import subprocess, sys\ndef build():\n    subprocess.run([sys.executable, 'child.py'], check=True)\nbuild()\n"
    )
    run = [COMMAND, "run", "-o", "t.vst", "parent.py"]
    said = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True).stderr
    later = vestige("report", tmp_path / "t.vst", "--findings").out
    told = [[line for line in text.splitlines() if line.startswith("•")] for text in (said, later)]
    assert told[0] and told[0] == told[1] and "child.py:3: nap waits in sleep" in told[0][0]
    assert "2 processes" in said.splitlines()[0]


def test_children_that_are_still_running_are_mentioned(tmp_path):
    (tmp_path / "parent.py").write_text(
        "import subprocess, sys, time\n"
        "code = 'import sys, time; sys.stdin.read()'\n"
        "child = subprocess.Popen([sys.executable, '-c', code], stdin=subprocess.PIPE)\n"
        "time.sleep(1)\n"
        "open('pid', 'w').write(str(child.pid))\n"
        "import os; os.dup2(child.stdin.fileno(), 9); os.set_inheritable(9, True)\n"
        "sys.stdin = None; child.returncode = 0\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-m", "vestige", "run", "-o", "t.vst", "parent.py"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = run.communicate()[1]
    with contextlib.suppress(OSError, ValueError):
        import os
        import signal

        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert "1 child process is still running or did not end" in said
