"""On a Python without the GIL all threads record at once: nothing is miscounted, and nothing turns the GIL on."""

import gc
import threading
from zlib import crc32

import pytest

from other_builds import HERE
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
    """Calls the functions on all threads, which begin at one moment. What fails in one fails here."""
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
    for name, calls, *_ in prof._read().trace.totals():
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


def test_info_says_why_turbo_does_not_record(workplace):
    why = "  not turbo: this Python has no GIL, which it relies on; the safe engine records\n"
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
    rows = [row for row in prof._read().trace.totals() if short(row[0])[1:].isdigit()]
    assert len(rows) == 100
    assert {row[1] for row in rows} == {THREADS}


def test_what_threads_were_in_when_it_started_is_complete(tmp_path):
    """However often it starts, a call that ends was seen to begin, or was open at the start."""
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
    assert all(prof._read().trace.totals() for prof in got)
    assert _core.hooks_in_place() == 0


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


def test_there_is_no_time_of_waiting_for_the_gil(tmp_path):
    with profile(output=str(tmp_path / "t.vst"), sched=True) as prof:
        together(leaf, times=5)
    trace = prof._read().trace
    assert not trace.info()["gil_waits"]
    assert trace.metadata()["vestige.gil"] == '"there is no GIL"'
