"""Calls that are numbered, for tests of recordings that keep some of them: what is missing can be seen."""

from tree import calls, read, short
from vestige import Trace
from vestige._core import instant

MIB = 1 << 20
COUNT = 100  # functions that are called in turn
TEXT = '"text": "' + 4000 * "x" + '"'


def numbered(count=COUNT):
    """Functions f0, f1, f2 …"""
    space = {}
    exec("\n".join(f"def f{number}(): pass" for number in range(count)), space)
    return [space[f"f{number}"] for number in range(count)]


def run_in_turn(functions, rounds):
    for _ in range(rounds):
        for function in functions:
            function()


def fill():
    """As many bytes as 250 calls take: files are full, and their slots in use again, after calls that are soon read."""
    instant("filler", TEXT)


def run_and_fill(functions, rounds):
    """A round takes 18 KiB."""
    for _ in range(rounds):
        for number, function in enumerate(functions):
            function()
            if number % 25 == 0:
                fill()


def numbers_of(trace, prefix="f"):
    """The numbers of the calls, in the order in which they ended, by thread."""
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
