"""Tables as files: Parquet and Arrow IPC, written by pyarrow batch by batch.

The files use only features of Parquet that every reader supports. 64-bit numbers are stored as differences, since the
rows of a thread follow each other in time. Names and texts use dictionaries, other columns are plain. Everything is
compressed by zstd at its fastest level.
"""

from __future__ import annotations

import os

from vestige.base.new_files import replacing

from .exports import TABLES, tables_format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from vestige._core import Progress
    from vestige.tables import Table, Traces

ROWS = 1 << 17  # rows in a row group: DuckDB hands a thread this many rows
DICTIONARY_BYTES = 64 << 20  # a dictionary that grows larger is abandoned, and names are then written out
# Columns with statistics, by which readers skip row groups. The minimum and maximum of other columns help nobody.
STATISTICS = ("process", "thread", "start_ns", "time_ns")
SHARE_OF_SPANS = 0.7  # the part of the work that spans take, for the progress line, if all tables are written


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
        return _write_folder(traces, path, format or "parquet", names or list(traces.tables), progress)
    if names is not None and len(names) != 1:
        raise ValueError(f"{path}: a file holds one table; name a folder for several")
    if format is None:
        by_name = tables_format(path)
        format = by_name.name if by_name is not None else "parquet"
    _write_file(traces.tables[names[0] if names else "span"], path, format, _rows(traces), progress)
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


def _write_folder(traces: Traces, folder: str, format: str, names: list[str], progress: Progress | None) -> list[str]:
    os.makedirs(folder, exist_ok=True)
    written = []
    share = SHARE_OF_SPANS if len(names) > 1 else 1.0
    before = 0.0
    for name in names:
        part = share if name == "span" else (1 - share) / max(1, len(names) - 1)
        path = os.path.join(folder, f"{name}.{format}")
        _write_file(traces.tables[name], path, format, _rows(traces), _scaled(progress, before, part))
        before += part
        written.append(path)
    return written


def _rows(traces: Traces) -> int:
    """Returns roughly how many rows a table of spans will have."""
    records: int = sum(source.facts["records"] for source in traces.sources)
    return records // 2 + 1


def _scaled(progress: Progress | None, before: float, part: float) -> Progress | None:
    return None if progress is None else lambda done: progress(before + part * done)


def _write_file(table: Table, path: str, format: str, rows: int, progress: Progress | None) -> None:
    """Writes a table. The file has a temporary name until it is complete."""
    with replacing(path) as temporary:
        (_write_parquet if format == "parquet" else _write_arrow)(table, temporary, rows, progress)


def _batches(reader: Any, rows: int, progress: Progress | None) -> Iterator[Any]:
    done = 0
    for batch in reader:
        yield batch
        done += batch.num_rows
        if progress is not None:
            progress(min(1.0, done / rows))


def _write_parquet(table: Table, path: str, rows: int, progress: Progress | None) -> None:
    import pyarrow
    from pyarrow import parquet

    reader = pyarrow.RecordBatchReader.from_stream(table)
    with parquet.ParquetWriter(path, reader.schema, **parquet_options(table)) as writer:
        group: list[Any] = []
        count = 0
        for batch in _batches(reader, rows, progress):
            group.append(batch)
            count += batch.num_rows
            if count >= ROWS:
                writer.write_table(pyarrow.Table.from_batches(group), row_group_size=count)
                group, count = [], 0
        if group:
            writer.write_table(pyarrow.Table.from_batches(group), row_group_size=count)


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


def _write_arrow(table: Table, path: str, rows: int, progress: Progress | None) -> None:
    """Writes a table without compression, so that a reader can use the columns of the mapped file directly."""
    import pyarrow

    reader = pyarrow.RecordBatchReader.from_stream(table)
    # A trace that is still being recorded may have more names at its end.
    options = pyarrow.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pyarrow.OSFile(path, "wb") as file, pyarrow.ipc.new_file(file, reader.schema, options=options) as writer:
        for batch in _batches(reader, rows, progress):
            writer.write_batch(batch)
