"""The columns of `vestige report`: one table defines the columns of text, JSON, CSV, --columns, --sort, --help and the
reference.
"""

import csv
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from conftest import Workplace
from handmade import define, definitions, enter, leave, records, thread, trace
from handmade_devices import COPY, Work, device
from in_process import vestige
from vestige.base.terminal import UNBOUNDED
from vestige.cli.report.command import VIEWS
from vestige.reading.layout import Layout
from vestige.reading.report_columns import DIFF, FUNCTIONS, ID, OPTIONAL, SHARES

pytestmark = pytest.mark.any_python
sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

PROGRAM = """\
import asyncio, gc, threading
import vestige


def leaf(n):
    return bytearray(n)


def fails():
    raise KeyError


async def main():
    await asyncio.sleep(0)


def run():
    for n in (10, 3000, 20):
        leaf(n)
    try:
        fails()
    except KeyError:
        gc.collect()


with vestige.profile(output="t.vst", profile_memory=True, exceptions=True):
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    run()
    import wave
    asyncio.run(main())
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Returns {view: a trace with data for this view}."""
    place = Workplace(tmp_path_factory.mktemp("columns"))
    place.write("work.py", PROGRAM)
    done = place.python("work.py")
    assert done.returncode == 0, done.stderr
    work = Work()
    work.launch("gemm", 300, 1000, 3000, correlation=1)
    work.launch("Memcpy HtoD", 850, 8500, 9000, correlation=3, kind=COPY, size=4_000_000, stream=20)
    (place.path / "device.vst").write_bytes(work.trace(device()))
    return {**dict.fromkeys(VIEWS, place.path / "t.vst"), "devices": place.path / "device.vst"}


def rows_of(said, view):
    assert said.code == 0, said.err
    return json.loads(said.out)[VIEWS[view].table.name]


def keys(table):
    """Returns the keys of columns that need nothing unrecorded."""
    return [column.key for column in table.columns if "switches" not in (column.text, column.files)]


@pytest.mark.parametrize("view", VIEWS)
def test_columns_are_chosen_and_ordered_in_every_view_and_format(traces, view):
    table, trace = VIEWS[view].table, traces[view]
    words = [*reversed(keys(table))]
    chosen = [table.find(word) for word in words]
    asked = "report", trace, f"--{view}", "--columns", ",".join(words)
    rows = rows_of(vestige(*asked, "--format", "json"), view)
    optional = {column.name for column in chosen if column.unit is OPTIONAL}
    names = [column.name for column in chosen]
    assert rows or view == "findings"
    for row in rows:
        assert [name for name in names if name in row or name not in optional] == list(row)
    header, *lines = csv.reader(io.StringIO(vestige(*asked, "--format", "csv").out))
    assert header == names and len(lines) == len(rows)
    if view != "findings":
        text = vestige(*asked).out
        figures = chosen if view != "tree" else [*(c for c in chosen if c is not table.naming), table.naming]
        assert " ".join(column.heading for column in figures) in " ".join(text.split())


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "findings"])
def test_every_column_sorts_its_view(traces, view):
    for column in map(VIEWS[view].table.find, keys(VIEWS[view].table)):
        asked = "report", traces[view], f"--{view}", "--sort", column.key
        rows = rows_of(vestige(*asked, "--columns", column.key, "--format", "json"), view)
        # in a tree, only siblings are sorted
        if view != "tree" and column.shown == column.of and column.unit.name != "list":
            values = [row.get(column.name) for row in rows]
            values = [value or ("" if column.unit.is_text else 0) for value in values]
            assert values == sorted(values, reverse=not column.unit.is_text), column.key
        assert vestige(*asked).code == 0


def test_the_column_that_names_the_row_is_there_even_if_it_is_not_chosen(traces):
    (row, *_) = rows_of(vestige("report", traces["flat"], "--columns", "calls,self", "--format", "json"), "flat")
    assert list(row) == ["calls", "self_ns", "function"]
    assert "      calls     self  function\n" in vestige("report", traces["flat"], "--columns", "calls, self").out
    # columns are given by their names in JSON
    named = vestige("report", traces["flat"], "--columns", "self_ns,function,calls").out
    assert "    self  function " in named and " calls\n" in named


@pytest.mark.parametrize("option", ["--columns", "--sort"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_column_that_is_not_there_is_one_line_with_those_that_are(traces, view, option):
    said = vestige("report", traces[view], f"--{view}", option, "nothing", "--format", "csv")
    there = ", ".join(column.key for column in VIEWS[view].table.columns)
    expected = f"vestige: {option}: no column is called 'nothing'; --{view} has {there}\n"
    assert (said.code, said.out, said.err) == (2, "", expected)


def test_a_near_name_of_a_column_is_suggested(traces):
    assert vestige("report", traces["flat"], "--columns", "calls,totl").err.endswith(", did you mean total?\n")


def test_findings_are_sentences_and_have_no_columns_for_people(traces):
    said = vestige("report", traces["flat"], "--findings", "--columns", "kind")
    assert (said.code, said.err.count("\n")) == (2, 1) and "which are sentences" in said.err


def test_a_column_of_what_was_not_recorded_is_refused(traces):
    for view, key in (("flat", "running"), ("tree", "running"), ("threads", "lock")):
        said = vestige("report", traces[view], f"--{view}", "--columns", f"calls,{key}")
        expected = (
            f"vestige: --columns {key}: this trace does not say when threads ran; record with `vestige run --sched`\n"
        )
        assert (said.code, said.out, said.err) == (1, "", expected)


def test_shares_are_numbers_for_programs(traces):
    asked = "report", traces["flat"], "--format", "json"
    document = json.loads(vestige(*asked, "--columns", "self,share").out)
    for row in document["functions"]:
        assert row["self_share"] == row["self_ns"] / document["threads_ns"]


def test_a_tree_for_programs_names_imports_in_a_column_of_their_own(traces):
    said = vestige("report", traces["tree"], "--tree", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out), strict=True))
    assert all(None not in row for row in rows)  # no line has more cells than the header
    assert "wave" in {row["import"] for row in rows}
    same = rows_of(vestige("report", traces["tree"], "--tree", "--format", "json"), "tree")
    assert [row["import"] for row in rows] == [row.get("import", "") for row in same]


def test_help_and_the_reference_name_every_column(traces):
    from site_pages import commands

    text = " ".join(vestige("report", "--help").out.split())
    page = commands.columns()
    for view in VIEWS.values():
        assert ", ".join(column.key for column in view.table.columns) in text
    for table in {*(view.table for view in VIEWS.values()), DIFF}:
        for column in table.columns:
            assert f"| `{column.key}` | {'`' + column.name + '`' if column.files is not False else ''}" in page


def test_every_table_has_names_that_differ():
    for table in {*(view.table for view in VIEWS.values())}:
        words = [{column.key, column.name} for column in table.columns]
        assert len(set().union(*words)) == sum(map(len, words)), table.name
        assert sum(column.unit in SHARES for column in table.columns) <= 1
        assert all(column.about and not column.about.endswith(".") for column in table.columns)


def test_a_layout_cuts_the_last_name_alone_where_the_screen_ends():
    def entry(name, calls):
        return SimpleNamespace(shown=name, calls=calls)

    rows = [entry("a/long/path/of/some/file.py(3): function", 5), entry("f", 7)]
    columns = FUNCTIONS.pick("name", "calls")
    assert {len(line) for line in map(Layout(columns, rows, UNBOUNDED).line, rows)} == {40 + 12}
    assert {len(line) for line in map(Layout(columns, rows, 60).line, rows)} == {20 + 12}
    assert Layout(FUNCTIONS.pick("calls", "name"), rows, 30).line(rows[0]) == f"{5:>11}  ….py(3): function"
    assert [column for column in FUNCTIONS.in_text(()) if column.unit is ID] == []


def test_max_is_the_longest_call_with_what_it_called(tmp_path):
    """Nested calls of a function lie inside its outer call; of several traces, the longest call counts."""
    once = enter(1, 10), enter(2, 0), leave(2, 40), enter(2, 10), enter(2, 5), leave(2, 200), leave(2, 5), leave(1, 30)
    other = enter(1, 10), enter(2, 5), leave(2, 70), leave(1, 5)
    for name, words in (("a.vst", once), ("b.vst", other)):
        named = define(1, "main"), define(2, "f"), thread()
        (tmp_path / name).write_bytes(trace(definitions(*named), records(*words)))

    def longest(*names):
        files = [tmp_path / name for name in names]
        said = vestige("report", *files, "--columns", "max", "--sort", "max", "--format", "json")
        return [(row["function"], row["max_ns"]) for row in json.loads(said.out)["functions"]]

    assert longest("a.vst") == [("a.py:1: main", 290), ("a.py:1: f", 210)]
    assert longest("b.vst") == [("a.py:1: main", 80), ("a.py:1: f", 70)]
    assert longest("a.vst", "b.vst") == longest("a.vst")
