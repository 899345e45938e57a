"""Waits for the GIL (sched): the waiting thread, the thread that held the GIL, and that a stop leaves nothing behind."""

import ctypes
import json
import os
import sys
import threading
import time

import pytest

import vestige
from arrow_reader import rows_of
from vestige import profile

EDGE = 0.0005  # a switch interval at which threads often exchange the GIL


@pytest.fixture
def quick_turns():
    before = sys.getswitchinterval()
    sys.setswitchinterval(EDGE)
    yield
    sys.setswitchinterval(before)


def holds_on(steps):
    """Works with the GIL until another thread asks for the GIL."""
    for _ in range(steps):
        sum(range(500))


def fights(threads=2, turns=8):
    """Starts threads that all need the GIL; returns when each has often seen that another thread had it."""
    worked, seen = [0] * threads, [0] * threads

    def works(me):
        last = -1
        while min(seen) < turns:
            sum(range(200))
            worked[me] += 1
            others = sum(worked) - worked[me]
            seen[me] += others != last
            last = others

    started = [threading.Thread(target=works, args=(me,), name=f"worker {me}") for me in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def read(path):
    with vestige.open(path) as traces:
        return list(rows_of(traces.wait)), list(rows_of(traces.span)), list(rows_of(traces.thread))


def traced(tmp_path, work, **options):
    path = str(tmp_path / "gil.vst")
    with profile(sched=True, output=path, **options):
        work()
    return read(path)


def test_the_gil_is_found():
    assert vestige._core.gil_waits_trouble() == ""


@pytest.mark.parametrize("engine", ["turbo", "safe"])
def test_threads_that_fight_for_it_wait_for_each_other(tmp_path, quick_turns, engine):
    waits, spans, threads = traced(tmp_path, fights, engine=engine)
    names = {row["thread"]: row["name"] for row in threads}
    found = [row for row in waits if row["reason"] == "gil"]
    workers = [row for row in found if names[row["thread"]].startswith("worker")]
    assert {names[row["thread"]] for row in workers} == {"worker 0", "worker 1"}
    held = {(names[row["thread"]], names.get(row["holder"])) for row in workers}
    assert ("worker 0", "worker 1") in held and ("worker 1", "worker 0") in held
    assert all(row["thread"] != row["holder"] for row in found)
    assert all(row["duration_ns"] == row["waiting_ns"] > 0 for row in found)
    for name in ("worker 0", "worker 1"):
        (number,) = [row["thread"] for row in threads if row["name"] == name]
        mine = sorted((row for row in workers if row["thread"] == number), key=lambda row: row["start_ns"])
        ends = [row["start_ns"] + row["duration_ns"] for row in mine]
        assert all(end <= row["start_ns"] for end, row in zip(ends, mine[1:]))  # one after the other
        roots = [row for row in spans if row["thread"] == number and row["parent"] is None]
        inside = [row for row in mine if row["span"] is not None]
        assert sum(row["gil_ns"] for row in roots) == sum(row["duration_ns"] for row in inside)
        assert all(row["gil_ns"] <= row["duration_ns"] for row in spans if row["thread"] == number)


def holds(seconds):
    """Keeps the GIL: this function never gives it up, and sleeps with it."""
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


def test_a_wait_that_goes_on_lasts_until_the_stop(tmp_path):
    """A thread that wakes up while another holds the GIL waits until the recording has ended."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        for seconds in (0.05, 0.9, 9):  # repeated until the other thread gets far enough, on a busy machine
            naps, path = threading.Event(), str(tmp_path / f"{seconds}.vst")
            thread = threading.Thread(target=lambda naps=naps: (naps.set(), time.sleep(0.001)), name="sleeper")
            with profile(sched=True, output=path):
                thread.start()
                naps.wait()
                holds(seconds)
            thread.join()
            waits, spans, threads = read(path)
            (number,) = [row["thread"] for row in threads if row["name"] == "sleeper"]
            found = [row for row in waits if (row["thread"], row["reason"]) == (number, "gil")]
            if found and found[-1]["duration_ns"] > seconds * 5e8:
                break
    finally:
        sys.setswitchinterval(before)
    last = found[-1]
    (held,) = [row for row in spans if row["name"].endswith("holds")]
    (slept,) = [row for row in spans if row["thread"] == number and "sleep" in row["name"]]
    assert last["holder"] == held["thread"] and last["span"] == slept["span"]
    assert last["start_ns"] + last["duration_ns"] >= held["start_ns"] + held["duration_ns"]
    assert slept["gil_ns"] == last["duration_ns"]


def test_a_thread_alone_waits_for_nobody(tmp_path):
    waits, spans, _ = traced(tmp_path, lambda: holds_on(200))
    assert not [row for row in waits if row["reason"] == "gil"]
    assert {row["gil_ns"] for row in spans} == {0}


def test_without_sched_nothing_is_known_of_it(tmp_path):
    path = str(tmp_path / "plain.vst")
    with profile(output=path):
        fights()
    waits, spans, _ = read(path)
    assert not [row for row in waits if row["reason"] == "gil"]
    assert {row["gil_ns"] for row in spans} == {None}
    assert [row for row in waits if row["reason"] == "lock"]  # reasons are given by name
    assert {row["waiting_ns"] for row in waits} == {None}


def test_who_waits_while_it_starts_or_stops_is_no_trouble(quick_turns):
    stop = threading.Event()

    def works():
        while not stop.is_set():
            holds_on(5)

    threads = [threading.Thread(target=works) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            with profile(sched=True) as prof:
                holds_on(20)
            assert prof._session.lost == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_forked_child_records_its_own(workplace):
    workplace.write(
        "forks.py",
        """
        import os, sys, threading

        sys.setswitchinterval(0.0005)

        def fights():
            worked, seen = [0, 0], [0, 0]

            def works(me):
                last = -1
                while min(seen) < 8:
                    sum(range(200))
                    worked[me] += 1
                    seen[me] += worked[1 - me] != last
                    last = worked[1 - me]

            threads = [threading.Thread(target=works, args=(me,)) for me in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        fights()
        pid = os.fork()
        if pid == 0:
            fights()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        """,
    )
    workplace.trace("--sched", "forks.py")
    waits, _, _ = read(str(workplace.path / "t.vst"))
    assert {row["process"] for row in waits if row["reason"] == "gil"} == {0, 1}


def test_reports_tell_of_it(workplace):
    """One thread holds the GIL for long in a function that does not release it; another thread waits."""
    workplace.write(
        "fights.py",
        """
        import threading

        done = []

        def keeps():
            sum(range(40_000_000))
            done.append(True)

        def waits():
            while not done:
                pass

        threads = [threading.Thread(target=keeps, name="worker 1"), threading.Thread(target=waits, name="worker 2")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """,
    )
    ran = workplace.vestige("run", "--sched", "-o", "t.vst", "fights.py")
    said = " ".join((ran.stdout + ran.stderr).split())
    assert "% of the time for the GIL, mostly held by sum in worker 1." in said
    found = json.loads(workplace.vestige("report", "t.vst", "--findings", "--format", "json").stdout)["findings"]
    (gil,) = [finding for finding in found if finding["kind"] == "GIL"]
    assert gil["where"] == {"thread": "worker 1", "function": "sum"} and gil["numbers"]["gil_ns"] > 1_000_000
    shown = workplace.vestige("report", "t.vst", "--threads").stdout
    assert "    time  running      GIL     lock      I/O    sleep preempted  thread\n" in shown
    rows = json.loads(workplace.vestige("report", "t.vst", "--threads", "--format", "json").stdout)["threads"]
    waited = {row["thread"]: row["gil_ns"] for row in rows}
    assert max(waited.values()) > 1_000_000
    kinds = ("running_ns", "gil_ns", "lock_ns", "io_ns", "sleep_ns", "child_ns", "preempted_ns")
    assert all(kind in row for kind in kinds for row in rows)


def test_errno_is_kept(quick_turns):
    """The errno of a failing call is kept, even if its thread then waits for the GIL."""
    wrong = []

    def fails():
        for _ in range(300):
            try:
                os.read(-1, 1)
            except OSError as error:
                if error.errno != 9:
                    wrong.append(error)

    with profile(sched=True):
        threads = [threading.Thread(target=fails) for _ in range(3)]
        for thread in threads:
            thread.start()
        holds_on(200)
        for thread in threads:
            thread.join()
    assert not wrong


def test_waits_of_the_program_are_left_alone():
    """Waits with timeouts for other objects end in time, with their results."""
    with profile(sched=True) as prof:
        condition = threading.Condition()
        with condition:
            assert not condition.wait(0.01)
        lock = threading.Lock()
        lock.acquire()
        assert not lock.acquire(timeout=0.01)
    assert prof._session.lost == 0


def test_info_says_whether_it_can_be_recorded(workplace):
    told = json.loads(workplace.vestige("info", "--json").stdout)["sched"]
    assert told["waits for the GIL"] == ""
    assert "waits for the GIL\n" in workplace.vestige("info").stdout
