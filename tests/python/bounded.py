"""Numbered calls, for tests of recordings that keep only some calls: a test sees which calls are missing."""

from tree import calls, read, short
from vestige import Trace
from vestige._core import instant

MIB = 1 << 20
COUNT = 100  # functions that are called in rotation
TEXT = '"text": "' + 4000 * "x" + '"'


def numbered(count=COUNT):
    """Returns functions f0, f1, f2 …"""
    space = {}
    exec("\n".join(f"def f{number}(): pass" for number in range(count)), space)
    return [space[f"f{number}"] for number in range(count)]


def run_in_turn(functions, rounds):
    for _ in range(rounds):
        for function in functions:
            function()


def fill():
    """A bound of as many bytes as 250 calls take: the file is full, and its slots are reused, after few calls, which
    are read quickly.
    """
    instant("filler", TEXT)


def run_and_fill(functions, rounds):
    """One round takes 18 KiB."""
    for _ in range(rounds):
        for number, function in enumerate(functions):
            function()
            if number % 25 == 0:
                fill()


def numbers_of(trace, prefix="f"):
    """Returns the numbers of the calls by thread, in the order in which the calls ended."""
    found = {}
    for event in calls(trace):
        name = short(event["name"])
        if name[0] == prefix and name[1:].isdigit():
            found.setdefault(event["tid"], []).append(int(name[1:]))
    return found


def assert_contiguous(numbers, count=COUNT):
    assert all((b - a) % count == 1 for a, b in zip(numbers, numbers[1:], strict=False))


def dropped_marks(trace):
    return [event for event in trace["traceEvents"] if event["name"] == "dropped records"]


def export(path):
    out = path.with_suffix(".json")
    Trace(str(path)).export(str(out), all_windows=True)
    return read(out)
