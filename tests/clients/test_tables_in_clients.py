"""Tables in data-frame libraries: pyarrow, DuckDB, polars and pandas read them from vestige.open without a file, and
find equal rows in Parquet and Arrow files. Counts and times equal the table `functions`.
"""

import json
import os
import re
import statistics
from collections import defaultdict
from pathlib import Path

import pytest

import vestige
from vestige import Trace, TraceError
from vestige.cli import export
from vestige.reading.sums import called_functions
from vestige.tables import write

from .conftest import run

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "reference" / "tables.md"
PROGRAM = Path(__file__).with_name("timeline.py")
SUMS = """
    select name, count(*) filter (flags & 16 = 0) as calls, sum(self_ns)::bigint as self_ns,
           coalesce(sum(duration_ns) filter (flags & 128 = 0), 0)::bigint as total_ns
    from span where flags & 64 = 0 group by name
"""
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    run(PROGRAM, folder / "t.vst", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def traces(folder):
    return vestige.open(folder / "t.vst")


@pytest.fixture(scope="module")
def totals(folder):
    """Sums by name, because several functions may share a name."""
    found = defaultdict(lambda: [0, 0, 0])
    for known, row in called_functions(Trace(str(folder / "t.vst"))):
        found[known.name] = [a + b for a, b in zip(found[known.name], (row.calls, row.self_ns, row.total_ns))]
    assert sum(calls for calls, _, _ in found.values()) > 20
    return {name: tuple(of) for name, of in found.items()}


@pytest.fixture(scope="module")
def written(folder, traces):
    """The folder of all tables in either format, and a file of the spans alone."""
    for format in ("parquet", "arrow"):
        files = write(traces, folder / format, format=format)
        assert [os.path.basename(file) for file in files] == [f"{name}.{format}" for name in traces.tables]
    assert export.main([str(folder / "t.vst"), "-o", str(folder / "t.parquet")]) == 0
    return folder


def sums(columns):
    """Returns {column: values} in the form of totals()."""
    found = defaultdict(lambda: [0, 0, 0])
    for name, flags, self_ns, duration in zip(*(columns[key] for key in ("name", "flags", "self_ns", "duration_ns"))):
        if not flags & 64:
            of = found[name]
            of[0] += not flags & 16
            of[1] += self_ns
            of[2] += 0 if flags & 128 else duration
    return {name: tuple(of) for name, of in found.items()}


def call(x):
    return len(x)


def by_duckdb(duckdb, span):
    return {name: tuple(rest) for name, *rest in duckdb.sql(SUMS).fetchall()}


# ---- without a file ----------------------------------------------------------


def test_pyarrow_reads_every_table(traces, totals):
    for name, table in traces.tables.items():
        read = pyarrow.table(table)
        read.validate(full=True)
        assert read.column_names == [column for column, _, _ in table.columns]
        assert read.schema == pyarrow.schema(table), name
    assert sums(pyarrow.table(traces.span).to_pydict()) == totals


def test_a_batch_outlives_its_stream_and_its_traces(folder):
    traces = vestige.open(folder / "t.vst")
    batch = next(iter(pyarrow.RecordBatchReader.from_stream(traces.span)))
    wanted = batch.to_pydict()
    traces.close()
    del traces
    assert batch.to_pydict() == wanted


def test_duckdb_joins_and_sums_them(traces, totals):
    duckdb = pytest.importorskip("duckdb")
    span, func, stack, process = traces.span, traces.func, traces.stack, traces.process
    assert by_duckdb(duckdb, span) == totals
    joined = duckdb.sql("""
        select count(*), count(*) filter (func.name = span.name and stack.func = span.func and process.pid > 0)
        from span join func using (process, func) join stack using (process, stack) join process using (process)
    """)
    rows = pyarrow.table(span).num_rows
    assert joined.fetchall() == [(rows, rows)]
    assert func and stack and process


def test_the_questions_in_the_documentation_have_answers(traces):
    duckdb = pytest.importorskip("duckdb")
    span, process = traces.span, traces.process
    questions = re.findall(r"```sql\n(.*?)```", DOCUMENTATION.read_text(), re.DOTALL)
    assert len(questions) == 2
    for question in questions:
        assert duckdb.sql(question).fetchall()
    assert span and process


def test_polars_takes_them_as_they_are(traces, totals):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(traces.span)
    assert sums(frame.to_dict(as_series=False)) == totals
    assert traces.func.to_polars().shape[0] == pyarrow.table(traces.func).num_rows


def test_pandas_gets_names_as_categories(traces, totals):
    frame = traces.span.to_pandas()
    assert frame["name"].dtype == "category"
    assert sums(frame.to_dict("list")) == totals


def test_arguments_are_json(traces):
    args = [text for text in pyarrow.table(traces.span)["args"].to_pylist() if text is not None]
    assert args and all(isinstance(json.loads(text), dict) for text in args)


# ---- files -------------------------------------------------------------------


def test_parquet_and_arrow_files_hold_the_same(traces, written):
    for name, table in traces.tables.items():
        wanted = pyarrow.table(table)
        assert parquet.read_table(written / "parquet" / f"{name}.parquet").to_pydict() == wanted.to_pydict()
        with pyarrow.memory_map(str(written / "arrow" / f"{name}.arrow")) as file:
            read = pyarrow.ipc.open_file(file).read_all()
            assert read.schema == wanted.schema and read.to_pydict() == wanted.to_pydict()
    assert parquet.read_table(written / "t.parquet").to_pydict() == pyarrow.table(traces.span).to_pydict()


def test_tables_that_one_reading_fills_are_those_of_a_reading_each(folder, traces, tmp_path):
    both = vestige.open([folder / "t.vst", folder / "t.vst"])
    for name, shown in (("one", traces), ("two", both)):
        for file in map(Path, write(shown, tmp_path / name)):
            alone = tmp_path / f"{name}-{file.name}"
            write(shown, alone, tables=[file.stem])
            assert alone.read_bytes() == file.read_bytes(), file.name


def test_no_file_is_left_of_a_trace_that_is_gone(folder, tmp_path):
    copy = tmp_path / "t.vst"
    copy.write_bytes((folder / "t.vst").read_bytes())
    traces = vestige.open(copy)
    copy.unlink()
    with pytest.raises(TraceError, match=r"t\.vst: No such file or directory"):
        write(traces, tmp_path / "tables")
    assert os.listdir(tmp_path / "tables") == []


def test_duckdb_and_polars_read_the_files(written, totals):
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    span = duckdb.read_parquet(str(written / "t.parquet"))
    assert by_duckdb(duckdb, span) == totals
    assert sums(polars.read_parquet(written / "t.parquet").to_dict(as_series=False)) == totals
    assert sums(polars.read_ipc(written / "arrow" / "span.arrow").to_dict(as_series=False)) == totals


def test_several_processes_share_a_file_and_its_names(tmp_path):
    """Names that only one of two processes has are in the file's one dictionary."""
    for path, name in ((tmp_path / "a.vst", "one"), (tmp_path / "b.vst", "two")):
        with vestige.profile(output=str(path)), vestige.record_function(name):
            len([])
    traces = vestige.open([tmp_path / "a.vst", tmp_path / "b.vst"])
    for format in ("parquet", "arrow"):
        write(traces, tmp_path / f"all.{format}")
    tables = [parquet.read_table(tmp_path / "all.parquet")]
    with pyarrow.memory_map(str(tmp_path / "all.arrow")) as file:
        tables.append(pyarrow.ipc.open_file(file).read_all())
        for table in tables:
            rows = zip(table["process"].to_pylist(), table["name"].to_pylist())
            assert sorted(row for row in rows if row[1] in ("one", "two")) == [(0, "one"), (1, "two")]
    metadata = parquet.ParquetFile(tmp_path / "all.parquet").metadata
    names = metadata.row_group(0).column(5)
    assert names.path_in_schema == "name" and names.has_dictionary_page
    assert "RLE_DICTIONARY" in names.encodings


def test_files_are_small_and_in_groups_of_rows(tmp_path):
    with vestige.profile(output=str(tmp_path / "many.vst")):
        for _ in range(100_000):
            call("")
    (path,) = write(tmp_path / "many.vst", tmp_path / "many.parquet")
    metadata = parquet.ParquetFile(path).metadata
    assert metadata.num_rows >= 200_000 and metadata.num_row_groups >= 2
    assert os.path.getsize(path) / metadata.num_rows < 12
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


def test_a_time_range_and_force_are_heeded(folder, traces, tmp_path, capsys):
    output = tmp_path / "some.parquet"
    output.write_text("old")
    every = pyarrow.table(traces.span)
    middle = statistics.median_low(every["start_ns"].to_pylist())
    begun = pyarrow.table(traces.process)["start_ns"][0].as_py()
    after = f"{(middle - begun) / 1e9:.9f}s"
    assert export.main([str(folder / "t.vst"), "-o", str(output), "--force", "--from", after]) == 0
    some = parquet.read_table(output)
    assert 0 < some.num_rows < every.num_rows
    assert capsys.readouterr().err.startswith(f"vestige: wrote {output} (")
