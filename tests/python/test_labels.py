"""Labels that distinguish functions with equal names, and which end of a name is kept if there is little room."""

import json

import pytest

from handmade import define, definitions, enter, leave, records, thread, trace
from in_process import vestige
from vestige import Trace
from vestige.base.terminal import fit
from vestige.reading.labels import short_name

pytestmark = pytest.mark.any_python

NAMES = [
    ("<module>", "pandas/core/frame.py", 1, "<module> pandas.core.frame"),
    ("<module>", "<string>", 1, "<module> <string>"),
    ("<lambda>", "app/work.py", 12, "<lambda> work.py:12"),
    ("load.<locals>.<genexpr>", "work.py", 3, "load.<locals>.<genexpr> work.py:3"),
    ("forward", "net.py", 7, "forward net.py:7"),
    ("Net.forward", "net.py", 7, "Net.forward"),
    ("plain", "work.py", 1, "plain"),
]


@pytest.fixture
def made(tmp_path):
    path = tmp_path / "t.vst"
    entries = [define(1 + at, name, file, line) for at, (name, file, line, _) in enumerate(NAMES)]
    words = [word for at in range(len(NAMES)) for word in (enter(1 + at), leave(1 + at))]
    long_name = "a thread whose name is longer than a column"
    path.write_bytes(trace(definitions(thread(name=long_name), *entries), records(*words)))
    return path


def test_names_that_many_functions_share_are_told_apart(made):
    opened = Trace(str(made))
    functions = opened.functions()
    told = [short_name(opened, 1 + at, functions[1 + at]) for at in range(len(NAMES))]
    assert told == [shown for *_, shown in NAMES]


def test_the_viewer_has_the_same_names(made):
    page = made.with_suffix(".html")
    assert vestige("view", made, "--html", page).code == 0
    from vestige.reading.inputs import find_traces
    from vestige.viewer.api import name_table
    from vestige.viewer.traces import Shown

    (source,) = find_traces([str(made)], children=False).sources
    names = json.loads(json.dumps(name_table(Shown(0, source))["names"]))
    assert [row[1] for row in names if row] == [shown for *_, shown in NAMES]


def test_nothing_is_cut_where_a_program_reads(made):
    said = vestige("report", made, "--threads").out
    assert "a thread whose name is longer than a column" in said


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("import pandas.core.frame", "…core.frame"),
        ("pandas/core/frame.py(1): f", "…e.py(1): f"),
        ("a_function_with_a_long_name", "a_function…"),
        ("<built-in method x of y.z object>", "<built-in …"),
    ],
)
def test_the_end_that_differs_is_kept(name, shown):
    assert fit(name, 11) == shown
