"""vestige.open: the tables agree with Chrome's export and the table `functions` of the same traces. Here ctypes reads the
streams; in tests/clients, data frames and databases read them.
"""

import gc
import json
import os
import re
import sys
import threading
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vestige
from arrow_reader import StreamError, rows_of, schema_of, stream_of
from traces import family, nothing, record, steps, totals
from vestige import Trace, TraceError, _core, counter, instant, profile, record_function

pytestmark = pytest.mark.any_python

ASYNC, RECURSIVE, RESUMED = 64, 128, 16


def leaf(x):
    return len([x])


def fall(n):
    return leaf(n) if n == 0 else fall(n - 1)


def work():
    for i in range(3):
        fall(4)
        sorted([3, 1, 2], key=leaf)
        with record_function("a step", f"n={i}"):
            counter("loss", i / 2)
    instant("done", why="all of it")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "t.vst"
    with profile(output=str(path)):
        work()
        thread = threading.Thread(target=work, name="a worker")
        thread.start()
        thread.join()
    return str(path)


@pytest.fixture(scope="module")
def tables(path):
    """Returns all rows of all tables."""
    with vestige.open(path) as traces:
        return {name: rows_of(table) for name, table in traces.tables.items()}


# ---- the same as elsewhere ---------------------------------------------------


def test_spans_are_those_of_chromes_export(path, tables, tmp_path):
    Trace(path).export(str(tmp_path / "t.json"), all_windows=True)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    tids = {row["thread"]: row["tid"] for row in tables["thread"]}
    theirs = Counter(
        (event["tid"], event["name"], round(event["ts"] * 1000), round(event["dur"] * 1000))
        for event in events
        if event["ph"] == "X" and event["cat"] != "Trace"
    )
    base = min(row["start_ns"] for row in tables["span"]) - min(start for _, _, start, _ in theirs)
    ours = Counter(
        (tids[row["thread"]], row["name"], row["start_ns"] - base, row["duration_ns"]) for row in tables["span"]
    )
    assert ours == theirs


def test_sums_are_those_of_the_report(path, tables):
    sums = defaultdict(lambda: [0, 0, 0])
    for row in tables["span"]:
        if row["flags"] & ASYNC:
            continue
        of = sums[row["name"]]
        of[0] += not row["flags"] & RESUMED
        of[1] += row["self_ns"]
        of[2] += 0 if row["flags"] & RECURSIVE else row["duration_ns"]
    assert {name: tuple(of) for name, of in sums.items()} == {
        name: (calls, self_ns, total_ns) for name, calls, self_ns, total_ns in totals(Trace(path), all_windows=True)
    }


def test_rows_point_at_each_other(tables):
    spans = {row["span"]: row for row in tables["span"]}
    stacks = {row["stack"]: row for row in tables["stack"]}
    funcs = {row["func"]: row for row in tables["func"]}
    assert len(spans) == len(tables["span"]) and len(stacks) == len(tables["stack"])
    for row in spans.values():
        stack = stacks[row["stack"]]
        assert stack["func"] == row["func"] and stack["name"] == row["name"] == funcs[row["func"]]["name"]
        assert row["kind"] == funcs[row["func"]]["kind"]
        if row["parent"] is not None:
            assert stack["parent"] == spans[row["parent"]]["stack"]
            assert row["depth"] == spans[row["parent"]]["depth"] + 1 == stack["depth"]
            assert spans[row["parent"]]["start_ns"] < row["start_ns"]
        assert bool(row["flags"] & RECURSIVE) == stack["recursive"] or row["kind"] == "annotation"


def test_what_lies_beside_spans_is_there(path, tables):
    assert [row["value"] for row in tables["counter"]] == [0, 0.5, 1] * 2
    assert {row["name"] for row in tables["counter"]} == {"loss"}
    assert [json.loads(row["args"]) for row in tables["instant"]] == [{"why": "all of it"}] * 2
    assert tables["lost"] == tables["op"] == tables["alloc"] == []
    args = [json.loads(row["args"]) for row in tables["span"] if row["name"] == "a step"]
    assert len(args) == 6 and all(args)
    (process,) = tables["process"]
    info = Trace(path).info()
    assert (process["pid"], process["file"], process["ended"]) == (os.getpid(), path, "clean")
    assert all(process[key] == info[key] for key in ("start_ns", "end_ns", "records", "lost", "trace_id"))
    assert {"MainThread", "a worker"} <= {row["name"] for row in tables["thread"]}
    (function,) = [row for row in tables["func"] if row["qualname"] == "fall"]
    assert (function["file"], function["line"]) == (__file__, fall.__code__.co_firstlineno)


def test_allocations_are_those_of_the_history(tmp_path):
    path = str(tmp_path / "m.vst")
    with vestige.memory.track(path):
        kept = [bytearray(10_000 + i) for i in range(5)]
        del kept[2:]
    with vestige.open(path) as traces:
        rows = rows_of(traces.alloc)
        stacks = {row["stack"]: row for row in rows_of(traces.stack)}
    events = Trace(path).tables(["memory_events"])["memory_events"]
    made = {event.serial: event for event in events if not event.flags & 4}
    freed = {event.serial: event for event in events if event.flags & 4 and not event.flags & 8}
    assert len(rows) == len(made)
    for row in rows:
        kind, address, size, time_ns, *_ = made[row["alloc"]]
        assert (row["kind"], row["address"], row["size"], row["time_ns"]) == (kind, address, size, time_ns)
        assert row["freed_ns"] == (freed[row["alloc"]].time_ns if row["alloc"] in freed else None)
    ours = [row for row in rows if 10_000 <= row["size"] < 10_100]
    assert len(ours) == 5 and sum(row["freed_ns"] is None for row in ours) == 2
    for row in ours:
        assert row["line"] == stacks[row["stack"]]["line"] and stacks[row["stack"]]["name"] == row["name"]
        assert "test_tables.py" in row["name"]


# ---- any program -------------------------------------------------------------


def run(tree):
    for name, inner in tree:
        with record_function(name):
            run(inner)


def ran(spans, parent=None):
    inner = sorted((row for row in spans if row["parent"] == parent), key=lambda row: row["span"])
    return [(row["name"], ran(spans, row["span"])) for row in inner]


trees = st.recursive(
    st.just([]), lambda inner: st.lists(st.tuples(st.sampled_from("abcé"), inner), max_size=4), max_leaves=12
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees)
def test_any_nesting_is_found_again(tree, tmp_path):
    path = tmp_path / "t.vst"
    with profile(output=str(path), overwrite=True):
        run(tree)
    spans = rows_of(vestige.open(path).span)
    marks = [row for row in spans if row["kind"] == "annotation"]
    names = {row["span"]: row["parent"] for row in spans}
    marked = {row["span"] for row in marks}
    for row in marks:  # the nearest annotation around the mark
        parent = row["parent"]
        while parent is not None and parent not in marked:
            parent = names[parent]
        row["parent"] = parent
    assert ran(marks) == tree
    assert all(row["self_ns"] >= 0 and row["duration_ns"] >= row["self_ns"] for row in spans)


# ---- several traces ----------------------------------------------------------


def test_processes_are_numbered_and_told_apart(tmp_path):
    family(tmp_path, 1001, 1002)
    record(tmp_path / "other.vst", steps(2), distributedInfo={"rank": 3, "world_size": 8}, host_name="hostB")
    traces = vestige.open([tmp_path / "t.vst", tmp_path / "other.vst"])
    rows = rows_of(traces.process)
    assert [row["process"] for row in rows] == [0, 1, 2, 3]
    assert [row["file"] for row in rows] == traces.files
    assert sorted(row["pid"] for row in rows if row["parent_pid"] == 1000) == [1001, 1002]
    assert [(row["rank"], row["world_size"], row["host"]) for row in rows if row["rank"] is not None] == [
        (3, 8, "hostB")
    ]
    spans = rows_of(traces.span)
    number = traces.files.index(str(tmp_path / "other.vst"))
    assert [row["process"] for row in spans if row["name"] == "step"] == [number] * 2
    for process, source in enumerate(traces.sources):
        alone = rows_of(vestige.open(source.path, children=False).span)
        together = [{**row, "process": 0} for row in spans if row["process"] == process]
        assert alone == together
    some = traces.some([3, 1])
    assert [row["process"] for row in rows_of(some.process)] == [3, 1]
    assert rows_of(some.some([1]).span) == [row for row in spans if row["process"] == 1]
    assert len(rows_of(vestige.open(str(tmp_path / "t.1*.vst")).process)) == 2
    assert len(rows_of(vestige.open(tmp_path).process)) == 4
    assert len(vestige.open(tmp_path / "t.vst", children=False).sources) == 1


def test_rows_that_were_read_are_counted(path):
    with vestige.open(path) as traces:
        before = traces.span.rows_read()
        count = len(rows_of(traces.span))
        assert count > 0 and traces.span.rows_read() == before + count


def test_a_range_of_time_can_be_asked_for(path, tables):
    marks = sorted(row["start_ns"] for row in tables["span"] if row["name"] == "a step")
    traces = vestige.open(path, from_ns=marks[1], to_ns=marks[2])
    assert len(rows_of(traces.counter)) == 1
    assert 0 < len(rows_of(traces.span)) < len(tables["span"])


def test_what_cannot_be_read_is_told(path, tmp_path):
    with pytest.raises(TraceError, match="nothing.vst"):
        vestige.open(tmp_path / "nothing.vst")
    with pytest.raises(ValueError, match="no files"):
        vestige.open([])
    with pytest.warns(UserWarning, match="nothing.vst"):
        assert len(vestige.open([path, tmp_path / "nothing.vst"]).sources) == 1
    gone = record(tmp_path / "gone.vst", nothing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traces = vestige.open(gone)
    gone.unlink()
    with pytest.raises(StreamError, match="gone.vst: No such file"):
        rows_of(traces.span)


# ---- objects -----------------------------------------------------------------


def test_tables_are_as_they_say(path):
    traces = vestige.open(path)
    assert list(traces.tables) == list(_core.table_names)
    for name, table in traces.tables.items():
        assert getattr(traces, name) is table and table.name == name
        capsule = table.__arrow_c_schema__()
        schema = schema_of(capsule)
        assert [schema.children[i][0].name.decode() for i in range(schema.n_children)] == [
            column for column, _, _ in table.columns
        ]
        assert all(column in repr(table) for column, _, _ in table.columns)
        table.__arrow_c_stream__(capsule)  # nobody reads the stream
    assert path in repr(traces) and "span" in repr(traces)
    capsule = traces.span.__arrow_c_stream__(requested_schema=None)
    traces.close()
    stream_of(capsule)  # which had begun before
    with pytest.raises(ValueError, match="closed"):
        traces.span.__arrow_c_stream__()
    del traces, capsule, table
    gc.collect()


def test_every_column_is_documented(path):
    text = (Path(__file__).parents[2] / "docs" / "reference" / "tables.md").read_text()
    documented = {}
    for section in text.split("\n## ")[1:]:
        rows = re.findall(r"^\| `(\w+)` \| (\w+)(\??) \|", section, re.MULTILINE)
        if rows:
            documented[section.partition("\n")[0]] = [(name, kind, bool(null)) for name, kind, null in rows]
    assert documented == {name: table.columns for name, table in vestige.open(path).tables.items()}


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="no table spam"):
        _core.Table("spam", [])
    with pytest.raises(TypeError):
        _core.Table("span", ["t.vst"])
    with pytest.raises(TypeError):
        _core.Table("span", [("t.vst", 1)])
    with pytest.raises(ValueError):
        vestige.tables.Traces([])
    with pytest.raises(TypeError, match="tables must be Table objects"):
        _core.TableReader(["span"])
    with pytest.raises(ValueError):
        _core.TableReader([])
    with pytest.raises(RuntimeError, match="not open"):
        _core.TableReader.__new__(_core.TableReader).next()


# ---- files -------------------------------------------------------------------


def test_files_need_pyarrow_and_say_so(path, tmp_path, monkeypatch):
    from vestige.cli import Failure, export

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'vestige\[arrow\]'"):
        vestige.tables.write(path, tmp_path / "t.parquet")
    with pytest.raises(Failure, match=r"pip install 'vestige\[arrow\]'") as failure:
        export.main([path, "-o", str(tmp_path / "t.parquet")])
    assert failure.value.code == 1
    assert os.listdir(tmp_path) == []


def test_outputs_are_checked_before_anything_is_read(path, tmp_path):
    from vestige.cli import Failure, export

    (tmp_path / "t.arrow").write_text("precious")
    (tmp_path / "span.parquet").write_text("precious")
    for output, options, message in [
        ("t.parquet.gz", [], "no format"),
        ("t.arrow", [], "--force"),
        ("", ["--to", "parquet"], "span.parquet.*--force"),
    ]:
        with pytest.raises(Failure, match=message) as failure:
            export.main([path, "-o", str(tmp_path / output), *options])
        assert failure.value.code == 2
