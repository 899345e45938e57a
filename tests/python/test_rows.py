"""Tables of sums in Python: columns by name, and rows with attributes, all from one reading."""

import asyncio
import gc
import threading

import pytest

from arrow_reader import rows_of
from vestige import Trace, _core, profile, record_function

TABLES = {
    "functions": "calls",
    "calls": "total_ns",
    "threads": "self_ns",
    "waits": "self_ns",
    "collections": "collections",
    "long_collections": "duration_ns",
    "collection_callers": "collections",
    "steps": "steps",
    "long_steps": "duration_ns",
    "repeats": "calls",
    "exceptions": "exceptions",
    "task_awaits": "waits",
    "task_steps": "duration_ns",
    "blocked_steps": "duration_ns",
    "blocked_calls": "duration_ns",
    "budget": "cpu_ns",
    "reduced_estimates": "reduced_ns",
}
OF_ALL_THREADS = (
    "averages",
    "contexts",
    "events",
    "tree_events",
    "activities",
    "device_sums",
    "device_uses",
    "device_gaps",
    "gil_holders",
    "lock_waits",
    "left_out",
)
STREAMS = (
    "process",
    "thread",
    "func",
    "stack",
    "span",
    "op",
    "alloc",
    "counter",
    "instant",
    "lost",
    "task",
    "wait",
    "device",
    "activity",
    "duration",
)
COLLECTS = 4


def leaf(x):
    return x + 1


def work():
    gc.collect()
    return [leaf(x) for x in range(10)]


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "t.vst"
    with profile(output=path):
        work()
    return Trace(str(path))


def test_a_row_has_the_columns_as_attributes(trace):
    rows = trace.tables(["functions"])["functions"]
    names = trace.functions()
    [found] = [row for row in rows if names[row.func][1] == "leaf"]
    assert found.calls == found.outer_calls == 10
    assert found.self_ns == found.total_ns
    assert found.self_median_ns is None  # computed only on request
    assert rows.columns[:4] == ("func", "calls", "outer_calls", "self_ns")


def test_a_column_is_a_memoryview_unless_it_has_nulls(trace):
    rows = trace.tables(["functions"])["functions"]
    for name in rows.columns:
        column = rows[name]
        assert len(column) == len(rows)
        assert list(column) == [getattr(row, name) for row in rows]
    assert (rows["func"].format, rows["self_ns"].format) == ("i", "q")
    assert rows["self_ns"].readonly
    nullable = rows["running_ns"]
    assert not isinstance(nullable, memoryview) and nullable[0] == rows[0].running_ns
    with pytest.raises(BufferError):
        memoryview(nullable)


def test_a_column_stays_when_its_rows_are_gone(trace):
    column = trace.tables(["functions"])["functions"]["self_ns"]
    gc.collect()
    assert sum(column) == sum(trace.tables(["functions"])["functions"]["self_ns"]) > 0


def test_parents_are_numbers_of_earlier_rows(trace):
    rows = trace.tables(["calls"])["calls"]
    for number, row in enumerate(rows):
        assert row.parent is None or 0 <= row.parent < number
        assert rows[number].func == rows[number - len(rows)].func == row.func


def test_what_is_not_there_is_an_error(trace):
    with pytest.raises(ValueError, match="there is no table nothing"):
        trace.tables(["calls", "nothing"])
    rows = trace.tables(["calls"])["calls"]
    with pytest.raises(KeyError, match="nothing"):
        rows["nothing"]
    for number in (len(rows), -len(rows) - 1):
        with pytest.raises(IndexError):
            rows[number]
    with pytest.raises(TypeError):
        rows[None]


def test_one_pass_fills_all_tables_as_a_pass_for_each_does(trace):
    marks = bytes(COLLECTS if entry and entry[0] == 2 else 0 for entry in trace.functions())
    names = [*TABLES, *OF_ALL_THREADS]
    together = trace.tables(names, marks=marks, awaits=True, spread=True)
    assert list(together) == names
    for name in names:
        [(_, alone)] = trace.tables([name], marks=marks, awaits=True, spread=True).items()
        assert alone.columns == together[name].columns
        assert list(map(repr, alone)) == list(map(repr, together[name])), name


def test_sums_of_tables_agree(trace):
    read = trace.tables(["functions", "calls", "threads", "collections", "collection_callers"])
    assert sum(read["functions"]["calls"]) == sum(read["calls"]["calls"]) == sum(read["threads"]["calls"])
    assert sum(read["functions"]["self_ns"]) == sum(read["calls"]["self_ns"]) == sum(read["threads"]["self_ns"])


def test_a_reading_without_time_has_nothing_and_says_so(trace):
    for name in ("averages", "contexts", "functions"):
        whole, cut = trace.tables([name])[name], trace.tables([name], timeout=0)[name]
        assert len(whole) > 0 and not whole.is_cut
        assert (len(cut) == 0 or name == "functions") and cut.is_cut
        assert not trace.tables([name], timeout=1000)[name].is_cut


def test_tables_without_rows_have_columns(trace):
    for name, column in TABLES.items():
        rows = trace.tables([name], threads=[])[name]
        assert len(rows[column]) == len(rows) == len(list(rows))
        assert all(value == 0 for value in rows[column])


def test_tables_are_the_same_as_in_a_stream_of_their_own(trace, tmp_path):
    path = tmp_path / "t.vst"
    with profile(output=path, sched=False, profile_memory=True):
        work()
        with record_function("mine"):
            [threading.Thread(target=work).start() for _ in range(2)]
    source = (str(path), 0, 0, 0, 0, -1, -1, -1, None, None, None, None)
    together = Trace(str(path)).tables([*STREAMS, "functions"])
    assert sum(together["functions"]["calls"]) == len(together["span"])
    for name in STREAMS:
        rows = [{column: getattr(row, column) for column in together[name].columns} for row in together[name]]
        wanted = rows_of(_core.Table(name, [source]))
        if name == "process":  # a trace does not know its own path
            wanted = [{**row, "file": ""} for row in wanted]
        assert rows == wanted, name
    assert {"mine", "python"} <= {*together["span"]["name"], *together["span"]["kind"]}


def test_events_are_in_order_of_time_and_each_names_its_parent_children_and_siblings(tmp_path):
    def work(depth):
        for _ in range(depth and 3):
            work(depth - 1)

    async def step(turns):
        for _ in range(turns):
            await asyncio.sleep(0)
            work(2)

    async def steps():
        await asyncio.gather(*map(step, range(5)))

    path = str(tmp_path / "t.vst")
    with profile(output=path):
        threads = [threading.Thread(target=work, args=(4,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        asyncio.run(steps())
        for thread in threads:
            thread.join()
    for name, rows in Trace(path).tables(["events", "tree_events"]).items():
        times = [(row.start_ns, -row.end_ns, row.span) for row in rows]
        assert times == sorted(times) and len({row.span for row in rows}) == len(rows) > 500, name
        assert len({row.thread for row in rows}) == 4
        children = {-1: []}
        for number, row in enumerate(rows):
            children.setdefault(row.parent, []).append(number)
            if row.parent >= 0:
                above = rows[row.parent]
                assert (above.thread, above.start_ns <= row.start_ns, row.end_ns <= above.end_ns) == (row.thread, 1, 1)
        for parent, below in children.items():
            assert parent < 0 or rows[parent].first == below[0]
            following = [*below[1:], -1] if parent >= 0 else [-1] * len(below)
            assert [rows[number].next for number in below] == following
        assert all(row.first == -1 for number, row in enumerate(rows) if number not in children)
