"""Estimates of what a budget left out are possible, whatever a program does: random recordings, written by hand."""

from __future__ import annotations

import csv
import io
import json
import random
import subprocess
import sys

import pytest
from handmade import START, define, definitions, enter, entry, escape, leave, records, thread, trace
from hypothesis import given, settings
from hypothesis import strategies as st

from vestige import Trace

pytestmark = pytest.mark.any_python

METADATA, LEFT_OUT = 17, 24
ALL, WINDOW = 1, 2
MS = 1_000_000
FUNCTIONS = range(1, 7)
HIDDEN, NO_TIME = 1, 8  # marks


class Change:
    """From `start` on these functions are left out."""

    def __init__(self, start, cpu, out, flags, since, since_cpu):
        self.start, self.out = start, set(FUNCTIONS) if flags & ALL else out
        self.words = escape(LEFT_OUT, flags, cpu, 0, START + since, since_cpu, *sorted(out))


def changes(draw, length):
    """Windows in which nothing is left out, and what is left out between; the process may wait in any of them."""
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
    """(time, begins, function) of nested calls. One whose function is left out when it begins is not recorded."""
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
    """Short calls all the time, inside of one."""
    found, at = [(start, True, 1)], start
    step = max((end - start) // 300, 100)
    while at + step < end:
        out = next((change.out for change in reversed(changes) if change.start <= at), ())
        if 2 not in out:
            found += [(at, True, 2), (at + int(step * draw.random()), False, 2)]
        at += step
    return [*found, (end, False, 1)]


def words(events, changes, length):
    """The records of a thread; one of them has the changes."""
    last, result = 0, []
    order = sorted([(change.start, 0, change) for change in changes] + [(time, 1, call) for time, *call in events], key=lambda x: x[:2])
    for time, _, what in order:
        delta, last = time - last, time
        made = what.words if isinstance(what, Change) else (enter if what[0] else leave)(what[1], 0)
        first, *rest = made if isinstance(made, tuple) else (made,)
        result += [(first & 0xFFFFFFFF) | delta << 32, *rest]
    return result


def recording(draw):
    """A trace, and by thread which functions ran there and from when to when."""
    length = draw.choice((20 * MS, 300 * MS, 2000 * MS))
    told = changes(draw, length)
    threads, chunks = {}, []
    for number in range(1, draw.randrange(2, 5)):
        start = draw.randrange(length // 2) if number > 1 else 0
        end = draw.randrange(start + 1, length + 1)
        events = busy(draw, start, end, told) if draw.random() < 0.4 else calls(draw, start, end, told)
        threads[number] = events
        chunks.append(records(*words(events, told if number == 1 else [], length), thread=number))
    entries = [thread(number, 4242 + number) for number in threads]
    entries += [define(number, f"f{number}") for number in FUNCTIONS]
    entries.append(entry(METADATA, 0, "vestige.budget", "0.03"))
    return trace(definitions(*entries), *chunks), threads


def check(found, threads, marks=b""):
    """self ≤ total ≤ the time of the threads in which it ran, and own times add up to no more than that of all."""
    times = {row[0]: row[2] for row in found["threads"]}
    for number, ns in times.items():
        at = [time for time, *_ in threads[number]]
        assert 0 <= ns <= max(at) - min(at) + 1
    for row in found["functions"]:
        number, calls, _, self_ns, total_ns = row[:5]
        ran = sum(ns for at, ns in times.items() if any(call[-1] == number for call in threads[at]))
        error_ns = row[-1]
        assert 0 <= self_ns <= total_ns <= ran
        assert 0 <= error_ns <= ran
        recorded = sum(begins and function == number for events in threads.values() for _, begins, function in events)
        assert calls >= recorded
    assert sum(row[3] for row in found["functions"]) <= sum(times.values())


@settings(max_examples=300, deadline=None, database=None)
@given(st.integers(0, 1 << 64), st.integers(0, 3))
def test_estimates_stay_within_the_time_of_threads(tmp_path_factory, seed, marked):
    draw = random.Random(seed)
    made, threads = recording(draw)
    path = tmp_path_factory.getbasetemp() / "bounds.vst"
    path.write_bytes(made)
    marks = bytearray(len(FUNCTIONS) + 1)
    for number in draw.sample(FUNCTIONS, marked):
        marks[number] = draw.choice((HIDDEN, NO_TIME))
    check(Trace(path).report(functions=True, threads=True, marks=bytes(marks)), threads)
