"""On a Python without the GIL, all threads record at the same time: every count is right, and nothing enables the GIL."""

import gc
import json
import threading
import time
from zlib import crc32

import pytest

import vestige
from arrow_reader import rows_of
from other_builds import HERE
from traces import totals
from tree import assert_nests, load, read, short
from vestige import _core, profile, record_function
from vestige._core import gather_traceback

pytestmark = pytest.mark.skipif(not HERE["nogil"], reason="this Python has the GIL")

THREADS = 8
TIMES = 100


def leaf():
    pass


def counting(number):
    yield from range(number)


def refuses():
    raise ValueError


def refused():
    try:
        refuses()
    except ValueError:
        pass


def makes():
    space = {}
    exec("def made(): pass", space)
    space["made"]()


def allocates():
    return [bytearray(size) for size in range(0, 2000, 100)]


def annotates():
    with record_function("named"):
        pass


def collects():
    gc.collect(0)


def together(*functions, times=TIMES):
    """Calls the functions on all threads, beginning at the same moment. An exception in a thread is raised here."""
    barrier, failures = threading.Barrier(THREADS), []

    def run():
        try:
            barrier.wait(60)
            for _ in range(times):
                for function in functions:
                    function()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def counts(prof):
    found = {}
    for name, calls, *_ in totals(prof._read().trace):
        found[short(name)] = found.get(short(name), 0) + calls
    return found


def test_importing_it_and_recording_leave_the_gil_off(workplace):
    script = """
import sys, vestige, vestige.pytest_plugin
with vestige.profile(profile_memory=True):
    vestige._core.gather_traceback()
print(sys._is_gil_enabled())
"""
    done = workplace.python("-W", "error", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_a_run_of_pytest_which_loads_our_plugin_leaves_the_gil_off(workplace):
    workplace.write(
        "test_gil.py",
        """\
        import sys

        def test_it(request):
            assert request.config.pluginmanager.has_plugin("vestige")
            assert not sys._is_gil_enabled()
        """,
    )
    done = workplace.python("-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_gil.py")
    assert done.returncode == 0, done.stdout


def test_info_says_why_turbo_does_not_record(workplace):
    why = "  not turbo: this Python has no GIL, which it relies on; vestige records with the safe engine\n"
    assert why in workplace.vestige("info").stdout
    asked = workplace.trace("--engine", "turbo", "-c", "len('a')")
    assert "engine turbo is not usable here: this Python has no GIL" in asked.stderr
    assert why in workplace.vestige("info", "t.vst").stdout


def test_every_call_of_every_thread_is_counted():
    with profile() as prof:
        together(leaf, refused, makes, annotates, lambda: sum(counting(3)), lambda: crc32(b"abc"))
    found = counts(prof)
    once = ("leaf", "refused", "refuses", "makes", "made", "annotates", "named", "<crc32>")
    expected = {**dict.fromkeys(once, 1), "counting": 4}
    assert {name: found.get(name, 0) / THREADS / TIMES for name in expected} == expected
    assert prof._read().trace.info()["lost"] == 0


def test_calls_of_threads_that_allocate_and_collect_nest():
    with profile(profile_memory=True) as prof:
        together(leaf, allocates, annotates, times=20)
        together(leaf, collects, allocates, times=5)
    assert_nests(load(prof))


def test_functions_that_all_threads_define_at_once_have_one_id_each():
    space = {}
    source = "\n".join(f"def f{number}(): pass" for number in range(100))
    exec(source + "\ndef all_of_them():\n" + "\n".join(f"    f{number}()" for number in range(100)), space)
    with profile() as prof:
        together(space["all_of_them"], times=1)
    rows = [row for row in totals(prof._read().trace) if short(row[0])[1:].isdigit()]
    assert len(rows) == 100
    assert {row[1] for row in rows} == {THREADS}


def test_what_threads_were_in_when_it_started_is_complete(tmp_path):
    """In every recording, a call that ends either began in the recording, or was open at its start."""
    over, paths = threading.Event(), [tmp_path / f"{number}.vst" for number in range(4)]

    def busy():
        while not over.wait(0.0005):
            leaf()
            refused()
            sum(counting(2))

    threads = [threading.Thread(target=busy) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    try:
        for path in paths:
            with profile(output=str(path)):
                leaf()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    for path in paths:
        trace = _core.Trace(str(path))
        assert trace.info()["lost"] == 0
        trace.export(str(tmp_path / "t.json"))
        assert_nests(read(tmp_path / "t.json"))


def test_threads_that_start_and_stop_it_get_a_recording_or_an_error():
    got, refusals = [], []

    def start_and_stop():
        prof = profile()
        try:
            prof.start()
        except RuntimeError as refusal:
            refusals.append(str(refusal))
            return
        leaf()
        prof.stop()
        got.append(prof)

    together(start_and_stop, times=3)
    assert got
    assert len(got) + len(refusals) == THREADS * 3
    assert all("already running" in refusal for refusal in refusals)
    assert all(totals(prof._read().trace) for prof in got)
    assert _core.hooks_in_place() == 0


def test_whether_garbage_is_collected_is_for_the_program_alone_to_say():
    """A recording on one thread never enables or disables the collector for another thread."""
    over = threading.Event()

    def start_and_stop():
        while not over.is_set():
            with profile():
                makes()
                gather_traceback(True, False, False)

    thread = threading.Thread(target=start_and_stop)
    thread.start()
    seen = set()
    try:
        for number in range(60):
            wanted = bool(number % 2)
            (gc.enable if wanted else gc.disable)()
            until = time.monotonic() + 0.005
            while time.monotonic() < until:
                seen.add((wanted, gc.isenabled()))
    finally:
        over.set()
        thread.join()
        gc.enable()
    assert seen == {(True, True), (False, False)}


def test_equal_stacks_of_many_threads_are_one_object():
    taken, barrier = [], threading.Barrier(THREADS)

    def take():
        barrier.wait(60)
        for _ in range(100):
            taken.append(gather_traceback(True, False, False))
            taken.pop()
        return gather_traceback(True, False, False)

    kept = []
    threads = [threading.Thread(target=lambda: kept.append(take())) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(one) for one in kept}) == 1


def waits_of(path):
    with vestige.open(str(path)) as traces:
        return list(rows_of(traces.wait)), list(rows_of(traces.span))


def test_pauses_of_all_threads_are_waits_and_the_gil_has_none(tmp_path):
    path, over, runs = tmp_path / "t.vst", threading.Event(), threading.Event()

    def spins():
        while not over.is_set():
            leaf()
            runs.set()

    thread = threading.Thread(target=spins)
    with profile(output=str(path), sched=True) as prof:
        thread.start()
        runs.wait(60)
        for _ in range(5):
            gc.collect()  # stops all threads: the other thread runs Python, and must wait
        over.set()
        thread.join()
    trace = prof._read().trace
    assert (trace.info()["gil_waits"], trace.info()["object_waits"]) == (False, True)
    assert trace.metadata()["vestige.gil"] == '"there is no GIL"'
    waits, spans = waits_of(path)
    worlds = [row for row in waits if row["reason"] == "world"]
    assert worlds and all(row["duration_ns"] > 0 for row in worlds)
    assert {row["gil_ns"] for row in spans} == {None}
    assert _core.hooks_in_place() == 0


def test_a_lock_of_the_program_s_is_no_wait_for_an_object(tmp_path):
    path, lock = tmp_path / "t.vst", threading.Lock()
    thread = threading.Thread(target=lambda: (lock.acquire(), lock.release()))
    with profile(output=str(path), sched=True):
        lock.acquire()
        thread.start()
        time.sleep(0.01)
        lock.release()
        thread.join()
    waits, _ = waits_of(path)
    (held,) = [row for row in waits if row["name"] == "<acquire>" and row["duration_ns"] > 1_000_000] or [None]
    inside = [row for row in waits if row["reason"] == "object" and held and row["span"] == held["span"]]
    assert inside == []


def test_threads_that_want_one_object_wait_for_its_lock_and_reports_say_so(workplace):
    workplace.write(
        "fights.py",
        """
        import threading

        shared, over, turned = list(range(300_000)), threading.Event(), [0]

        def turns():
            while not over.is_set():
                shared.reverse()  # with the list's lock, nearly all the time
                turned[0] += 1

        thread = threading.Thread(target=turns)
        thread.start()
        for number in range(20):
            before = turned[0]
            while turned[0] == before:
                shared.append(number)
        over.set()
        thread.join()
        """,
    )
    assert workplace.trace("--sched", "fights.py").returncode == 0
    waits, _ = waits_of(workplace.path / "t.vst")
    found = [row for row in waits if row["reason"] == "object" and "append" in (row["name"] or "")]
    assert found
    rows = json.loads(workplace.vestige("report", "t.vst", "--threads", "--format", "json").stdout)["threads"]
    assert sum(row["object_ns"] for row in rows) >= sum(row["duration_ns"] for row in found) > 0
    assert {row["gil_ns"] for row in rows} == {None}
    if "running_ns" in rows[0]:
        shown = workplace.vestige("report", "t.vst", "--threads").stdout
        assert "    time  running   object    world     lock      I/O    sleep preempted  thread\n" in shown


def test_a_framework_s_modules_are_refused_in_one_line():
    with pytest.raises(RuntimeError, match="^this Python has no GIL$"):
        _core.set_framework_code(leaf.__code__, None, None)


def test_threads_that_share_what_reads_get_an_answer_or_an_error(tmp_path):
    path = tmp_path / "t.vst"
    with profile(output=str(path)):
        together(leaf, times=5)
    shared = {
        "view": _core.View(str(path), keep=False),
        "growing": _core.Growing(str(path)),
        "trace": _core.Trace(str(path)),
    }
    info, refusals = shared["view"].info(), []

    def ask(question):
        try:
            question()
        except RuntimeError as refusal:
            refusals.append(str(refusal))

    together(
        lambda: ask(lambda: shared["view"].window(info["start_ns"], info["end_ns"] + 1, 100)),
        lambda: ask(lambda: shared["view"].set_offset(0)),
        lambda: ask(shared["view"].threads),
        lambda: ask(lambda: shared["growing"].read(False)),
        lambda: ask(lambda: shared["growing"].function(1)),
        lambda: ask(lambda: _core.Lanes(shared["trace"], "marks").lanes()),
        lambda: ask(lambda: shared["trace"].tables(["functions"])),
        times=10,
    )
    assert set(refusals) <= {"another thread is reading this trace", "another thread uses this view"}
    with pytest.raises(RuntimeError, match="open already"):
        shared["view"].__init__(str(path))
