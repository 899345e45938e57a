"""Selects the quick tests, for `make quick` and for the Pythons of `make test` that run only these.

slow.txt names the slow tests: those that took longer than SLOW seconds of CPU, child processes included, when the file
was last written. A test that is not in the file counts as quick. To measure the tests again:

    VESTIGE_TIMES=slow.txt pytest        # in tests/python, without VESTIGE_QUICK; writes it anew

CPU time is counted rather than elapsed time, so that the list does not depend on the machine's other load.
"""

import os
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("slow.txt")
SLOW = 0.5
spent = {}


def cpu():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def name(item):
    """Returns a test's name; all parameters of a test share one name."""
    return f"{item.path.name}::{getattr(item, 'originalname', item.name)}"


def listed():
    lines = LIST.read_text().splitlines() if LIST.exists() else []
    return [line.split()[1] for line in lines if not line.startswith("#")]


def leave_out_slow(config, items):
    """Deselects slow tests. VESTIGE_QUICK: all. VESTIGE_SLOW=newer: all except tests marked any_python, which run on
    one Python only. VESTIGE_SLOW=half: every second of these.
    """
    quick = bool(os.environ.get("VESTIGE_QUICK"))
    which = os.environ.get("VESTIGE_SLOW")
    if not quick and which not in ("newer", "half"):
        return
    slow = set(listed()[:: 2 if which == "half" and not quick else 1])
    left_out = [item for item in items if name(item) in slow and (quick or not item.get_closest_marker("any_python"))]
    left = set(left_out)
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    before = cpu()
    try:
        return (yield)
    finally:
        spent[name(item)] = spent.get(name(item), 0) + cpu() - before


def pytest_sessionfinish():
    if path := os.environ.get("VESTIGE_TIMES"):
        slow = sorted(((seconds, test) for test, seconds in spent.items() if seconds > SLOW), reverse=True)
        head = f"# Tests that take more than {SLOW} s of CPU, as measured; pace.py says how.\n"
        Path(path).write_text(head + "".join(f"{seconds:6.1f} {test}\n" for seconds, test in slow))
