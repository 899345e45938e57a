"""Tables as files: Parquet and Arrow IPC, written by pyarrow batch by batch.

The files use only features of Parquet that every reader supports. 64-bit numbers are stored as differences, since the
rows of a thread follow each other in time. Names and texts use dictionaries, other columns are plain. Everything is
compressed by zstd at its fastest level.
"""

from __future__ import annotations

import contextlib
import os

from vestige.base.new_files import replacing

from .exports import TABLES, tables_format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from vestige._core import Progress
    from vestige.tables import Table, Traces

ROWS = 1 << 17  # rows in a row group: DuckDB hands a thread this many rows
DICTIONARY_BYTES = 64 << 20  # a dictionary that grows larger is abandoned, and names are then written out
# Columns with statistics, by which readers skip row groups. The minimum and maximum of other columns help nobody.
STATISTICS = ("process", "thread", "start_ns", "time_ns")


def write_tables(
    traces: Traces, path: str, *, format: str | None, tables: Iterable[str] | None, progress: Progress | None
) -> list[str]:
    """See vestige.tables.write."""
    require_pyarrow()
    known = [each.name for each in TABLES]
    if format is not None and format not in known:
        raise ValueError(f"format must be one of {', '.join(known)}, not {format!r}")
    names = list(tables) if tables is not None else None
    for name in names or ():
        if name not in traces.tables:
            raise ValueError(f"there is no table {name!r}; there are {', '.join(traces.tables)}")
    if is_folder(path):
        os.makedirs(path, exist_ok=True)
        format = format or "parquet"
        paths = {os.path.join(path, f"{name}.{format}"): name for name in names or traces.tables}
        _write_files(traces, paths, format, progress)
        return list(paths)
    if names is not None and len(names) != 1:
        raise ValueError(f"{path}: a file holds one table; name a folder for several")
    if format is None:
        by_name = tables_format(path)
        format = by_name.name if by_name is not None else "parquet"
    _write_files(traces, {path: names[0] if names else "span"}, format, progress)
    return [path]


def is_folder(path: str) -> bool:
    """Returns whether a path stands for a folder of tables, not for a single table."""
    return path.endswith(os.sep) or os.path.isdir(path) or tables_format(path) is None


def require_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Parquet and Arrow files are written by pyarrow, which is not installed: pip install 'vestige[arrow]'"
        ) from error


class _Batch:
    """A batch of rows, for pyarrow."""

    def __init__(self, table: Table, array: object) -> None:
        self._table = table
        self._array = array

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._table.__arrow_c_schema__(), self._array


def _write_files(traces: Traces, paths: dict[str, str], format: str, progress: Progress | None) -> None:
    """Reads tables in one pass, and writes each to its path. The files have temporary names until all are
    complete.
    """
    import pyarrow

    make: type[_ParquetFile | _ArrowFile] = _ParquetFile if format == "parquet" else _ArrowFile
    tables = [traces.tables[name] for name in paths.values()]
    rows, done = _rows(traces), [0] * len(tables)
    with contextlib.ExitStack() as stack:
        files: list[_ParquetFile | _ArrowFile] = []
        for path, table in zip(paths, tables):
            files.append(make(table, stack.enter_context(replacing(path))))
            stack.enter_context(files[-1])
        for number, array in iter(traces.reader(tables).next, None):
            batch = pyarrow.record_batch(_Batch(tables[number], array))
            files[number].write(batch)
            done[number] += batch.num_rows
            if progress is not None:
                progress(min(1.0, max(done) / rows))


def _rows(traces: Traces) -> int:
    """Returns roughly how many rows a table of spans will have."""
    records: int = sum(source.facts["records"] for source in traces.sources)
    return records // 2 + 1


class _ParquetFile:
    def __init__(self, table: Table, path: str) -> None:
        import pyarrow
        from pyarrow import parquet

        self._writer = parquet.ParquetWriter(path, pyarrow.schema(table), **parquet_options(table))
        self._group: list[Any] = []

    def __enter__(self) -> _ParquetFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self._finish_group()
        self._writer.close()

    def write(self, batch: Any) -> None:
        self._group.append(batch)
        if sum(each.num_rows for each in self._group) >= ROWS:
            self._finish_group()

    def _finish_group(self) -> None:
        import pyarrow

        if self._group:
            rows = pyarrow.Table.from_batches(self._group)
            self._writer.write_table(rows, row_group_size=rows.num_rows)
        self._group = []


class _ArrowFile:
    """A file without compression, so that a reader can use the columns of the mapped file directly."""

    def __init__(self, table: Table, path: str) -> None:
        import pyarrow

        # A trace that is still being recorded may have more names at its end.
        options = pyarrow.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        self._file = pyarrow.OSFile(path, "wb")
        self._writer = pyarrow.ipc.new_file(self._file, pyarrow.schema(table), options=options)

    def __enter__(self) -> _ArrowFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()
        self._file.close()

    def write(self, batch: Any) -> None:
        self._writer.write_batch(batch)


def parquet_options(table: Table) -> dict[str, Any]:
    """Returns the options for a pyarrow.parquet.ParquetWriter."""
    texts = [name for name, kind, _ in table.columns if kind in ("name", "text")]
    numbers = {name: kind for name, kind, _ in table.columns if name not in texts}
    return {
        "compression": "zstd",
        "compression_level": 1,
        "column_encoding": {
            name: "DELTA_BINARY_PACKED" if kind == "int64" else "PLAIN" for name, kind in numbers.items()
        },
        "use_dictionary": texts,
        "dictionary_pagesize_limit": DICTIONARY_BYTES,
        "write_statistics": [name for name, _, _ in table.columns if name in STATISTICS],
    }
