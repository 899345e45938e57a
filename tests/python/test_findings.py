"""Findings: programs with one known cause each, which must be named at its place, and programs without one, of which
nothing must be said. Thresholds are tried on traces made by hand.
"""

import asyncio
import contextlib
import gc
import json
import os
import runpy
import sqlite3
import subprocess
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from conftest import COMMAND
from handmade import define, definitions, enter, leave, records, thread, trace
from in_process import vestige
from vestige import profile
from vestige.cli.report import causes
from vestige.cli.report.data import FOR_FINDINGS, Data
from vestige.cli.report.findings import Evidence, find

pytestmark = pytest.mark.any_python

LOADED = (asyncio, sqlite3, subprocess, threading)
HERE = Path(__file__).parent
# What each program is to be told: the kind, and what its place has.
PLANTED = {
    "import_that_sleeps": ("imports", {"module": "slow_to_import", "imported_by": "start"}),
    "import_deep_inside": ("imports", {"module": "outer_package", "slowest_alone": "outer_package.heavy"}),
    "poll": ("waiting", {"function": "poll", "waits_in": "sleep"}),
    "child_process": ("waiting", {"function": "build"}),
    "collects": ("garbage collection", {"function": "churn"}),
    "one_request_each": ("many requests", {"function": "<listcomp>|make_report", "calls": "fetch"}),
    "one_query_each": ("many requests", {"function": "load_orders", "calls": "execute"}),
    "tiny_function": ("short calls", {"function": "tiny", "called_by": "loop"}),
    "tiny_method": ("short calls", {"function": "split", "called_by": "collect"}),
    "blocks_the_loop": ("blocked loop", {"function": "handler"}),
    "takes_turns": ("GIL", {"function": "compute"}),
    "asks_again": ("same arguments", {"function": "lookup"}),
}
INNOCENT = sorted(path.stem for path in (HERE / "innocent").glob("*.py"))


DISTURBED = 3
TRIES = 5


def waited_for_a_processor():
    """The seconds that the main thread was ready to run and did not."""
    return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9


def record_once(program, path):
    """In a process of its own, where what programs import is there already (LOADED), and what the tests hold is not
    looked through by the garbage collector. Gives its exit code: DISTURBED where other processes had the processor
    for half of the time, so that the trace tells of them, too.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            gc.freeze()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            began, waited = time.monotonic(), waited_for_a_processor()
            with profile(with_stack=True, output=str(path), record_args=["lookup"]):
                runpy.run_path(str(program))
            waited = waited_for_a_processor() - waited
            code = DISTURBED if waited > 0.5 * (time.monotonic() - began) else 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextlib.contextmanager
def recorded(program, path):
    """The findings of a program, at a moment when the machine had time for it. If there is none, they may tell of other
    programs: what is wrong then proves nothing.
    """
    for attempt in range(TRIES):
        path.unlink(missing_ok=True)
        code = record_once(program, path)
        if code == 0:
            break
        assert code == DISTURBED, attempt
    said = vestige("report", path, "--findings", "--format", "json")
    assert said.code == 0, said.err
    try:
        yield json.loads(said.out)["findings"]
    except (AssertionError, KeyError):
        if code == DISTURBED:
            pytest.skip(f"in each of {TRIES} tries other processes had the processor for half of the time")
        raise


def test_there_are_programs_of_each_sort():
    assert len(PLANTED) >= 11 and len(INNOCENT) >= len(PLANTED)
    assert {path.stem for path in (HERE / "planted").glob("*.py")} == set(PLANTED)


@pytest.mark.parametrize("name", PLANTED)
def test_a_cause_is_named_at_its_place(tmp_path, name):
    kind, where = PLANTED[name]
    with recorded(HERE / "planted" / f"{name}.py", tmp_path / "t.vst") as found:
        assert [finding["kind"] for finding in found] == [kind], found
        (finding,) = found
        assert set(finding) == {"kind", "text", "where", "numbers", "next"}
        for key, wanted in where.items():
            assert any(part in finding["where"][key] for part in wanted.split("|")), finding["where"]
    assert finding["next"].startswith("vestige report ") and str(tmp_path / "t.vst") in finding["next"]
    assert all(isinstance(value, (int, str)) for value in finding["numbers"].values())


@pytest.mark.parametrize("name", INNOCENT)
def test_nothing_is_said_of_a_program_without_a_cause(tmp_path, name):
    with recorded(HERE / "innocent" / f"{name}.py", tmp_path / "t.vst") as found:
        assert found == []


def test_a_blocked_loop_is_told_of_its_own_thread(tmp_path):
    program = tmp_path / "beside.py"
    program.write_text(
        "import threading\n"
        "def bystander():\n"
        "    done.wait()\n"
        "done = threading.Event()\n"
        "threading.Thread(target=bystander).start()\n"
        + (HERE / "planted" / "blocks_the_loop.py").read_text()
        + "done.set()\n"
    )
    with recorded(program, tmp_path / "t.vst") as told:
        found = {finding["kind"]: finding for finding in told}
        assert "handler" in found["blocked loop"]["where"]["function"]


# ---- what is told, and of what ---------------------------------------------------


def made(tmp_path, *words, entries=()):
    path = tmp_path / "made.vst"
    path.write_bytes(trace(definitions(thread(), define(1, "main"), *entries), records(*words)))
    return path


def evidence(path, **facts):
    from vestige import Trace

    opened = Trace(str(path))
    data = Data()
    data.add(opened, {}, FOR_FINDINGS, fold_imports=True)
    return Evidence(data, [{**opened.info(), **facts}])


def test_a_program_without_a_finding_is_told_so(tmp_path):
    path = made(tmp_path, enter(1), leave(1, delta=1000))
    assert "No cause stands out. Not examined: " in vestige("report", path, "--findings").out
    assert json.loads(vestige("report", path, "--findings", "--format", "json").out) == {"findings": []}
    assert vestige("report", path, "--findings", "--format", "csv").out == "kind,text,next\n"


def test_a_recording_of_some_calls_has_no_finding_in_what_was_recorded(tmp_path):
    (tmp_path / "program.py").write_text("def f():\n    return 1\nf()\n")
    run = [COMMAND, "run", "-o", "t.vst", "--force", "--max-depth", "1", "program.py"]
    said = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True).stderr
    for text in (said, vestige("report", tmp_path / "t.vst", "--findings").out):
        assert "No cause stands out. Not examined: deeper calls are not recorded: --max-depth 1,\n" in text
    run[5:7] = []
    said = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True).stderr
    assert "No cause stands out. Not examined: " in said and "--max-depth" not in said


def test_lost_records_come_first(tmp_path):
    path = made(tmp_path, enter(1), leave(1, delta=1000))
    (finding,) = find(evidence(path, lost=12_000))
    assert finding.kind == "lost records" and finding.numbers == {"lost": 12_000}
    assert finding.text.startswith("12,000 records could not be kept")
    finding.files = ["t.vst"]
    assert finding.next == "vestige info t.vst"


SLEEP = define(2, "<built-in function sleep>", "time", 0, kind=2)


@pytest.mark.parametrize(("slept", "kinds"), [(499_000_000, []), (501_000_000, ["waiting"])])
def test_waiting_is_told_from_half_of_the_time_on(tmp_path, slept, kinds):
    work = 1_000_000_000 - slept
    path = made(tmp_path, enter(1, delta=0), enter(2, delta=work), leave(2, delta=slept), leave(1, 1), entries=[SLEEP])
    found = find(evidence(path, start_ns=0, end_ns=1_000_000_000))
    assert [finding.kind for finding in found] == kinds
    assert all(finding.where["waits_in"] == "sleep" for finding in found)


SITE = [define(2, "step"), define(4, "<built-in method recv of _socket.socket object>", "_socket", 0, kind=2)]
LOOP = [define(2, "step"), define(4, "<built-in method acquire of _thread.lock object>", "_thread", 0, kind=2)]


POLL = [define(2, "step"), define(4, "<built-in method poll of select.epoll object>", "select", 0, kind=2)]


@pytest.mark.parametrize(("entries", "kinds"), [(SITE, ["many requests"]), (LOOP, []), (POLL, [])])
def test_waits_until_something_happens_are_no_requests(tmp_path, entries, kinds):
    """A loop that takes from a queue, or that serves, waits as often as one that asks a server."""
    words = [word for _ in range(1000) for word in (enter(2), enter(4), leave(4, 900_000), leave(2))]
    path = made(tmp_path, enter(1), *words, leave(1), entries=entries)
    told = find(evidence(path, start_ns=0, end_ns=2_000_000_000))
    assert [finding.kind for finding in told if finding.kind == "many requests"] == kinds


@pytest.mark.parametrize(
    "name", ["<built-in method execute of _duckdb.DuckDBPyConnection object>", "<built-in function wait_c>"]
)
def test_queries_by_callables_that_are_no_functions_of_c_are_requests(tmp_path, name):
    entries = [define(2, "load"), define(4, name, "database", 0, kind=2)]
    words = [word for _ in range(1000) for word in (enter(2), enter(4), leave(4, 900_000), leave(2))]
    path = made(tmp_path, enter(1), *words, leave(1), entries=entries)
    (told,) = find(evidence(path, start_ns=0, end_ns=1_000_000_000))
    assert told.kind == "many requests" and told.where["function"].endswith("main") and "load" in told.where["calls"]


@pytest.mark.parametrize(("name", "shown"), [("<built-in function add>", "add"), ("<built-in type deque>", "deque")])
def test_short_calls_of_ufuncs_and_classes_are_told(tmp_path, name, shown):
    words = [word for _ in range(100_000) for word in (enter(2), leave(2, 1000))]
    path = made(tmp_path, enter(1), *words, leave(1), entries=[define(2, name, "numpy", 0, kind=2)])
    (told,) = find(evidence(path, start_ns=0, end_ns=200_000_000))
    assert told.kind == "short calls" and told.text.startswith(f"{shown} is called 100,000 times")


@pytest.mark.parametrize("name", ["exec of QApplication", "exec of type"])
def test_an_event_loop_of_qt_waits_between_its_callbacks(tmp_path, name):
    entries = [define(2, f"<built-in method {name} object>", "QApplication", 0, kind=2), define(3, "clicked")]
    words = [enter(2), enter(3), leave(3, 900_000_000), leave(2, 100_000_000)]
    path = made(tmp_path, enter(1), *words, leave(1), entries=entries)
    seen = evidence(path, start_ns=0, end_ns=1_000_000_000)
    assert find(seen) == []
    (loop,) = [node for node in seen.places.nodes if "exec" in node.name]
    assert loop.waits_for == "io" and loop.waited_ns // 1_000_000 == 100


WAITPID = define(2, "<built-in function waitpid>", "posix", 0, kind=2)


def test_what_the_first_thread_waits_in_comes_before_its_helpers(tmp_path):
    """One that sleeps again and again beside it would wait longer."""
    entries = [*SITE, define(3, "Thread._bootstrap", "threading.py"), define(5, "looks", "helper.py")]
    entries.append(define(6, "<built-in function sleep>", "time", 0, kind=2))
    helper = [enter(3), enter(5), enter(6), leave(6, 990_000_000), leave(5), leave(3)]
    first = [enter(1), enter(2), enter(4), leave(4, 600_000_000), leave(2), leave(1)]
    path = made(tmp_path, *helper, *first, entries=entries)  # on one thread here; what counts is how it began
    (told,) = find(evidence(path, start_ns=0, end_ns=1_100_000_000))
    assert told.kind == "waiting" and told.where["waits_in"] == "recv"


def test_a_child_that_is_recorded_is_no_time_in_which_nobody_works(tmp_path):
    path = made(tmp_path, enter(1), enter(2), leave(2, 900_000_000), leave(1), entries=[WAITPID])
    seen = evidence(path, start_ns=0, end_ns=1_000_000_000)
    assert [finding.kind for finding in find(seen)] == ["waiting"]
    seen.data.traces = 2
    assert find(seen) == []


FROZEN = "<frozen importlib._bootstrap>"
IMPORTS = [
    define(2, "_find_and_load", FROZEN),
    define(3, "_find_and_load_unlocked", FROZEN),
    define(4, "_load_unlocked", FROZEN),
    define(5, "exec_module", "<frozen importlib._bootstrap_external>"),
    define(6, "_call_with_frames_removed", FROZEN),
    define(7, "<module>", "/site-packages/some/slow.py"),
    define(8, "Python GC", "", 0, kind=4),
    define(9, "create_module", "<frozen importlib._bootstrap_external>"),
]


def imported(*words, delta=10):
    chain = (2, 3, 4, 5, 6, 7)
    return [
        *(enter(each) for each in chain),
        *words,
        *(leave(each, delta if each == 7 else 10) for each in chain[::-1]),
    ]


def test_collections_inside_of_imports_are_part_of_these(tmp_path):
    inside = imported(enter(8), leave(8, 300_000_000), delta=200_000_000)
    path = made(tmp_path, enter(1), *inside, leave(1, 400_000_000), entries=IMPORTS)
    told = find(evidence(path, start_ns=0, end_ns=1_000_000_000))
    assert [finding.kind for finding in told] == ["imports"]
    path = made(tmp_path, enter(1), enter(8), leave(8, 300_000_000), leave(1, 600_000_000), entries=IMPORTS)
    told = find(evidence(path, start_ns=0, end_ns=1_000_000_000))
    assert [(finding.kind, finding.where["function"]) for finding in told] == [("garbage collection", "a.py:1: main")]


def test_a_module_without_a_name_is_not_the_slowest(tmp_path):
    """An extension module has no code that says which it is."""
    nameless = [*map(enter, (2, 3, 4, 9)), *(leave(each, 300_000_000 if each == 9 else 10) for each in (9, 4, 3, 2))]
    path = made(tmp_path, enter(1), *imported(*nameless, delta=200_000_000), leave(1), entries=IMPORTS)
    (told,) = find(evidence(path, start_ns=0, end_ns=1_000_000_000))
    assert told.kind == "imports" and "(" not in told.where["slowest_alone"] and "extension" not in told.text


def test_without_a_function_of_the_users_the_nearest_in_python_is_the_place(tmp_path):
    entries = [define(2, "match", "text.py", 7), define(4, "<built-in method match of re.Pattern object>", kind=2)]
    entries.append(define(8, "Python GC", "", 0, kind=4))
    path = made(tmp_path, *map(enter, (1, 2, 4, 8)), *map(leave, (8, 4, 2, 1)), entries=entries)
    places = evidence(path).places
    at = next(at for at, node in enumerate(places.nodes) if node.name == "Python GC")
    assert places.caller(at).shown == "text.py:7: match"
    places.own = [-1] * len(places.own)
    assert places.caller(at).shown == "text.py:7: match"


@pytest.mark.parametrize(("busy", "kinds"), [(0, ["waiting"]), (100_000_000, ["waiting"]), (300_000_000, [])])
def test_what_waited_for_a_processor_did_not_wait_for_the_program(tmp_path, busy, kinds):
    path = made(tmp_path, enter(1, 0), enter(2, 300_000_000), leave(2, 700_000_000), leave(1, 1), entries=[SLEEP])
    told = evidence(path, start_ns=0, end_ns=1_000_000_000)
    told.data.processor_waits = {7: busy, 8: 50_000_000}
    found = find(told)
    assert [finding.kind for finding in found] == kinds
    assert all(finding.numbers["processor_wait_ns"] == max(busy, 50_000_000) for finding in found)


@pytest.mark.parametrize(("busy", "told_of"), [(0, True), (300_000_000, True), (950_000_000, False)])
def test_what_imports_and_collections_took_because_others_had_the_processor_does_not_count(tmp_path, busy, told_of):
    """Of one second, 500 ms in an import and 150 ms in a collection, without what the thread waited for a processor."""
    frozen, module = define(5, "_find_and_load", "<frozen importlib._bootstrap>", 1), define(6, "<module>", "m.py", 1)
    gone = [
        enter(1, 0),
        enter(3, 1),
        leave(3, 150_000_000),
        enter(5, 1),
        enter(6, 1),
        leave(6, 500_000_000),
        leave(5, 1),
    ]
    collection = define(3, "Python GC", "", 0, kind=4)
    path = made(tmp_path, *gone, leave(1, 1), entries=[collection, frozen, module])
    told = evidence(path, start_ns=0, end_ns=1_000_000_000)
    told.data.processor_waits = {7: busy}
    found = {finding.kind: finding for finding in find(told)}
    assert ("imports" in found, "garbage collection" in found) == (told_of, told_of)
    assert all(finding.numbers["processor_wait_ns"] == busy for finding in found.values())
    if found:
        beside = "A thread waited 300 ms for a processor, which may be a part of that."
        assert (beside in found["imports"].text) == (busy == 300_000_000)


def blocked(tmp_path, waits, look=None):
    """A loop of 100 steps, six of which took 60 ms of two seconds, on the thread with the tid 7."""
    told = evidence(made(tmp_path, enter(1), leave(1)), start_ns=0, end_ns=2_000_000_000)
    sums = SimpleNamespace(thread=1, steps=100, blocking=6, blocking_ns=360_000_000, histogram='{"values": []}')
    long = SimpleNamespace(start_ns=5, duration_ns=60_000_000, thread=1)
    told.data.steps.add([sums], [long], 1, {1: ("MainThread", 7)})
    told.data.processor_waits = waits
    told.look = look
    return causes.blocked_loop(told)


def test_a_loop_that_other_processes_blocked_is_not_told_of(tmp_path):
    assert blocked(tmp_path, {}).numbers["processor_wait_ns"] == 0
    assert blocked(tmp_path, {7: 300_000_000}) is None
    assert blocked(tmp_path, {8: 300_000_000}) is not None  # another thread's


def test_a_blocked_loop_says_how_long_its_thread_waited_for_a_processor(tmp_path):
    few, more = blocked(tmp_path, {7: 10_000_000}), blocked(tmp_path, {7: 155_000_000})
    assert "processor" not in few.text and few.numbers["processor_wait_ns"] == 10_000_000
    assert more is not None and "; the longest step took 60.0 ms. Await" in more.text

    def look(step):
        data = Data()
        path = made(tmp_path, enter(1, 0), enter(2, 1), leave(2, 60_000_000), leave(1, 1), entries=[SLEEP])
        from vestige import Trace

        data.add(Trace(str(path)), {}, ["calls"])
        return data.tree

    asleep = blocked(tmp_path, {7: 500_000_000}, look)  # in sleep() it needs no processor
    assert "Its thread waited 500 ms for a processor, which may be a part of that." in asleep.text


def test_the_wait_for_a_processor_is_in_the_metadata(tmp_path):
    from vestige import Trace

    with profile(output=str(tmp_path / "t.vst")):
        pass
    told = json.loads(Trace(str(tmp_path / "t.vst")).metadata()["vestige.processor_waits"])
    assert all(tid.isdecimal() and ns > 0 for tid, ns in told.items())


@pytest.mark.parametrize("told", ["7", "[1]", '{"a": 1, "7": "x", "8": -3}', "null"])
def test_what_is_no_wait_is_not_believed(told):
    from vestige.reading.metadata import check_shapes

    checked = check_shapes({"vestige.processor_waits": json.loads(told)})
    data = Data()
    path = HERE.parent / "golden" / "traces" / "threads.vst"
    from vestige import Trace

    data.add(Trace(str(path)), checked, ["calls"])
    assert data.processor_waits == {}


def test_at_most_five_are_told(tmp_path, monkeypatch):
    path = made(tmp_path, enter(1), leave(1))
    one = causes.lost_records
    monkeypatch.setattr(causes, "CAUSES", (one,) * 7)
    assert len(find(evidence(path, lost=1))) == 5


def test_findings_look_at_waiting(tmp_path):
    path = made(tmp_path, enter(1), leave(1))
    said = vestige("report", path, "--findings", "--no-waits")
    assert said.code == 2 and "--no-waits" in said.err and said.err.count("\n") == 1


def test_the_report_after_a_run_begins_with_findings(tmp_path):
    program = HERE / "planted" / "poll.py"
    run = subprocess.run(
        [COMMAND, "run", "-o", "t.vst", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    told = [line for line in run.stderr.splitlines() if "poll" in line]
    assert told[0].startswith("• No thread worked for") and "poll waits in sleep (sleep), 6 calls" in told[0]
    assert any(line.endswith("poll.py:4: poll") for line in told[1:])  # the tree
