"""Estimates for calls that a budget left out are possible, whatever a program does: random recordings, written by hand."""

from __future__ import annotations

import csv
import io
import json
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handmade import START, define, definitions, enter, entry, escape, leave, records, thread, trace
from vestige import Trace
from vestige.cli.mcp.calls import functions
from vestige.cli.mcp.comparing import compare
from vestige.cli.mcp.folder import Folder

pytestmark = pytest.mark.any_python

METADATA, LEFT_OUT = 17, 24
ALL, WINDOW = 1, 2
MS = 1_000_000
FUNCTIONS = range(1, 7)
HIDDEN, NO_TIME = 1, 8  # marks


class Change:
    """From `start` on, these functions are left out."""

    def __init__(self, start, cpu, out, flags, since, since_cpu):
        self.start, self.out = start, set(FUNCTIONS) if flags & ALL else out
        self.words = escape(LEFT_OUT, flags, cpu, 0, START + since, since_cpu, *sorted(out))


def changes(draw, length):
    """Draws windows in which no function is left out, and the functions that are left out between; the process may wait
    in any of them.
    """
    found, at, cpu, since = [], draw.randrange(2 * MS), 1000, (0, 0)
    while at < length:
        is_window = len(found) % 2 == 0
        rests = not is_window and draw.random() < 0.3
        out = set() if is_window or rests else set(draw.sample(FUNCTIONS, draw.randrange(1, 5)))
        found.append(Change(at, cpu, out, WINDOW if is_window else ALL if rests else 0, *since))
        since = (at, cpu)
        wall = draw.choice((MS // 100, MS, 10 * MS, 100 * MS)) * (1 + draw.random())
        at += int(wall)
        cpu += int(wall * draw.choice((0.001, 0.1, 1, 1.5)))
    return found


def calls(draw, start, end, changes, depth=0):
    """Draws (time, begins, function) of nested calls. A call is not recorded if its function is left out when it
    begins.
    """
    at, found = start, []
    for _ in range(draw.randrange(1, 9)):
        begin = at + int((end - at) * draw.choice((0, 0.0001, 0.01, 0.3)) * draw.random())
        finish = begin + int((end - begin) * draw.choice((0.0001, 0.01, 0.3, 1)) * draw.random())
        function = draw.choice(FUNCTIONS)
        now = [change.out for change in changes if change.start <= begin]
        is_recorded = not now or function not in now[-1]
        inside = calls(draw, begin, finish, changes, depth + 1) if depth < 4 and draw.random() < 0.7 else []
        found += [(begin, True, function), *inside, (finish, False, function)] if is_recorded else inside
        at = finish
    return found


def busy(draw, start, end, changes):
    """Draws short calls without pauses, inside one long call."""
    found, at = [(start, True, 1)], start
    step = max((end - start) // 300, 100)
    while at + step < end:
        out = next((change.out for change in reversed(changes) if change.start <= at), ())
        if 2 not in out:
            found += [(at, True, 2), (at + int(step * draw.random()), False, 2)]
        at += step
    return [*found, (end, False, 1)]


def words(events, changes):
    """Returns the records of a thread, with the records of the changes."""
    order = [(change.start, 0, change) for change in changes] + [(time, 1, call) for time, *call in events]
    last, result = 0, []
    for time, _, what in sorted(order, key=lambda item: item[:2]):
        first, *rest = what.words if isinstance(what, Change) else ((enter if what[0] else leave)(what[1], 0),)
        result += [(first & 0xFFFFFFFF) | (time - last) << 32, *rest]
        last = time
    return result


def made(threads, changes):
    """Returns a trace, from calls by number of thread."""
    entries = [thread(number, 4242 + number) for number in threads]
    entries += [define(number, f"f{number}") for number in FUNCTIONS]
    entries.append(entry(METADATA, 0, "vestige.budget", "0.03"))
    chunks = [records(*words(calls, changes if n == 1 else []), thread=n) for n, calls in threads.items()]
    return trace(definitions(*entries), *chunks)


def recording(draw):
    """Draws a trace, and its calls by thread."""
    length = draw.choice((20 * MS, 300 * MS, 2000 * MS))
    told = changes(draw, length)
    threads = {}
    for number in range(1, draw.randrange(2, 5)):
        start = draw.randrange(length // 2) if number > 1 else 0
        end = draw.randrange(start + 1, length + 1)
        threads[number] = (busy if draw.random() < 0.4 else calls)(draw, start, end, told)
    return made(threads, told), threads


def check(found, threads):
    """Checks that self ≤ total ≤ the time of the threads that ran the function, and that own times sum up to at most
    the time of all threads.
    """
    times = {row.thread: row.self_ns for row in found["threads"]}
    for number, ns in times.items():
        at = [time for time, *_ in threads[number]]
        assert 0 <= ns <= max(at) - min(at) + len(at)  # no two calls begin at the same nanosecond
    for row in found["functions"]:
        ran = sum(ns for at, ns in times.items() if any(call[-1] == row.func for call in threads[at]))
        assert 0 <= row.self_ns <= row.total_ns <= ran
        assert 0 <= row.error_ns <= ran
        recorded = sum(begins and function == row.func for events in threads.values() for _, begins, function in events)
        assert row.calls >= recorded
    assert sum(found["functions"]["self_ns"]) <= sum(times.values())


@settings(max_examples=300, deadline=None, database=None)
@given(st.integers(0, 1 << 64), st.integers(0, 3))
def test_estimates_stay_within_the_time_of_threads(tmp_path_factory, seed, marked):
    draw = random.Random(seed)
    written, threads = recording(draw)
    path = tmp_path_factory.getbasetemp() / "bounds.vst"
    path.write_bytes(written)
    marks = bytearray(len(FUNCTIONS) + 1)
    for number in draw.sample(FUNCTIONS, marked):
        marks[number] = draw.choice((HIDDEN, NO_TIME))
    check(Trace(path).tables(["functions", "threads"], marks=bytes(marks)), threads)


# ---- what must come out ------------------------------------------------------


@pytest.fixture
def server(tmp_path):
    """A window of 10 ms each 100 ms, while f1 waits in f2 from the second one on. Another thread, in f3, calls f4 every
    millisecond. By CPU time, of which there is much more between windows, f4 would take more than all the time."""
    told = [Change(0, 0, set(), WINDOW, 0, 0)]
    f4 = []
    for at in range(0, 1000, 100):
        told.append(Change((at + 10) * MS, at * 5 * MS + 10 * MS, set(), ALL, at * MS, at * 5 * MS))
        told.append(Change((at + 100) * MS, (at + 100) * 5 * MS, set(), WINDOW, (at + 10) * MS, at * 5 * MS + 10 * MS))
        for call in range(9):
            begin = (at + call) * MS + 5000
            f4 += [(begin, True, 4), (begin + 900_000, False, 4)]
    waits = [(1000, True, 1), (101 * MS, True, 2), (999 * MS, False, 2), (999 * MS, False, 1)]
    path = tmp_path / "server.vst"
    path.write_bytes(made({1: waits, 2: [(1000, True, 3), *f4, (999 * MS, False, 3)]}, told))
    return path


def command(*words):
    done = subprocess.run(
        [sys.executable, "-m", "vestige", *words], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_a_call_that_waits_while_others_are_left_out_is_one(server):
    found = {row.func: row for row in Trace(server).tables(["functions"])["functions"]}
    assert found[2].calls == 1
    assert found[2].self_ns == found[2].total_ns == 898 * MS
    assert found[1].self_ns == 101 * MS - 1000
    assert found[4].calls > 500  # 90 of these calls were recorded


def test_every_output_says_which_estimates_were_reduced(server):
    rows = json.loads(command("report", "--format", "json", str(server)))["functions"]
    assert {row["function"][-2:]: row["estimate_reduced"] for row in rows} == {
        "f1": False,
        "f2": False,
        "f3": False,
        "f4": True,
    }
    by_name = {row["function"][-2:]: row for row in rows}
    assert 600 * MS < by_name["f4"]["total_ns"] <= by_name["f3"]["total_ns"] == 999 * MS - 1000
    table = list(csv.DictReader(io.StringIO(command("report", "--format", "csv", str(server)))))
    assert [row["function"][-2:] for row in table if row["estimate_reduced"] == "True"] == ["f4"]
    line = "estimates reduced to the time that their threads had: a.py:1: f4"
    assert line in command("report", str(server))
    compared = command("diff", str(server), str(server))
    assert compared.count(line) == 2
    assert ", estimated" in compared
    sides = json.loads(command("diff", "--format", "json", str(server), str(server)))
    assert sides["after"][0]["reduced_estimates"] == ["a.py:1: f4"]


def test_agents_are_told_which_estimates_were_reduced(server):
    place = Folder(str(server.parent))
    assert "estimates reduced to the time that their threads had: a.py:1: f4" in functions(place, "", "self", "", 900)
    assert "budget 3% of the CPU time" in functions(place, "", "self", "", 900)
    assert "server.vst: estimates reduced" in compare(place, "server.vst", "server.vst", 900)


@pytest.mark.parametrize("view", [["--include", "f4"], ["--exclude", "f3"], ["--threads", "--include", "f4"]])
def test_a_part_of_the_functions_has_no_more_time_than_the_threads(server, view):
    found = json.loads(command("report", "--format", "json", *view, str(server)))
    for row in found.get("functions", ()):
        assert row["self_ns"] <= row["total_ns"] <= 999 * MS
    for row in found.get("threads", ()):
        assert row["time_ns"] <= 999 * MS
