"""Traces as tables for polars, pandas, DuckDB and pyarrow.

    import vestige

    with vestige.open("traces/") as traces:
        polars.DataFrame(traces.span)
        duckdb.sql("select name, sum(self_ns) from span group by name", ...)

Each use of a table reads the trace again, as a stream that holds one batch at a time. Nothing is copied, and
no pyarrow is needed. docs/reference/tables.md explains the columns.
"""

from __future__ import annotations

import os

from ._core import Table as _Table
from ._core import TableReader, TraceError, table_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType
    from typing import Any

    from ._core import Progress
    from .reading.inputs import Source

    Files = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

TABLES = table_names


class Table(_Table):
    """One table of the traces, which can be read as an Arrow stream."""

    def __init__(self, traces: Traces, name: str, sources: Iterable[Any]) -> None:
        super().__init__(name, sources)
        self._traces = traces

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        self._traces._check_open()
        return super().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        columns = ", ".join(f"{name} {kind}{'?' if nullable else ''}" for name, kind, nullable in self.columns)
        return f"<vestige table {self.name}: {columns}>"

    def to_arrow(self) -> Any:
        """Returns a pyarrow.Table."""
        return _import("pyarrow").table(self)

    def to_polars(self) -> Any:
        """Returns a polars.DataFrame."""
        return _import("polars").DataFrame(self)

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame; names are categories."""
        return self.to_arrow().to_pandas()


class Traces:
    """Traces that are read together, one per process. Has an attribute for each table."""

    process: Table
    thread: Table
    func: Table
    stack: Table
    span: Table
    op: Table
    alloc: Table
    counter: Table
    instant: Table
    lost: Table
    wait: Table

    def __init__(
        self, sources: Sequence[Source], *, offsets: Sequence[int] = (), from_ns: int = 0, to_ns: int = 0
    ) -> None:
        """`offsets` has the ns by which each trace is moved in time. Records before from_ns or after to_ns are left
        out.
        """
        if not sources:
            raise ValueError("there are no traces to read")
        self.sources = list(sources)
        self.closed = False
        facts = [
            _facts(source, (number, offsets[number] if offsets else 0, from_ns, to_ns))
            for number, source in enumerate(self.sources)
        ]
        self._set_tables(facts)

    def _set_tables(self, facts: list[tuple[Any, ...]]) -> None:
        self._facts = facts
        self.tables = {name: Table(self, name, facts) for name in TABLES}
        self.__dict__.update(self.tables)

    def some(self, places: Iterable[int]) -> Traces:
        """Returns only these sources; their processes keep the numbers that they have here."""
        places = list(places)
        part = Traces([self.sources[place] for place in places])
        part._set_tables([self._facts[place] for place in places])
        return part

    def _repr_html_(self) -> str:
        """Returns the HTML that a notebook shows."""
        from .reading.overview import of_sources

        return of_sources(self.sources).html()

    @property
    def files(self) -> list[str]:
        """The files of the traces; a process's number is its index here."""
        return [source.path for source in self.sources]

    def reader(self, tables: Sequence[Table]) -> TableReader:
        """Returns a reader of tables, which reads the traces once for all of them."""
        self._check_open()
        return TableReader(tables)

    def close(self) -> None:
        """Closes the traces: no new stream can be opened. Open streams continue."""
        self.closed = True

    def __enter__(self) -> Traces:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        first = self.sources[0].path
        files = repr(first) if len(self.sources) == 1 else f"{first!r} and {len(self.sources) - 1:,} more"
        return f"<vestige traces {files}{', closed' if self.closed else ''}: {', '.join(TABLES)}>"

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("the traces are closed")


def open(files: Files, *, children: bool = True, from_ns: int = 0, to_ns: int = 0) -> Traces:
    """Opens the traces that files, folders and patterns name, as tables. The traces of child processes are opened with
    that of their parent, unless `children` is false. Records before from_ns or after to_ns (ns since 1970, 0: no limit)
    are left out. A warning names traces that cannot be read; TraceError is raised if none can be read.
    """
    from vestige.base.failure import Failure

    from .reading.inputs import Inputs, find_traces

    class Warning(Inputs):
        def tell(self, line: str, *, failed: bool = True) -> None:
            import warnings

            self.failed |= failed
            warnings.warn(line, stacklevel=5)

    paths = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    if not paths:
        raise ValueError("no files were given")
    try:
        inputs = find_traces([os.fspath(path) for path in paths], children=children, inputs=Warning())
    except Failure as failure:
        raise TraceError(str(failure)) from None
    return Traces(inputs.sources, from_ns=from_ns, to_ns=to_ns)


def write(
    traces: Traces | Files,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    tables: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> list[str]:
    """Writes tables as Parquet or Arrow IPC files, by pyarrow; returns the files. A path that ends in .parquet or
    .arrow gets the spans, or the one table of `tables`; any other is a folder, which gets a file for each of
    `tables`, or for all, in `format`."""
    from .reading.table_files import write_tables

    traces = traces if isinstance(traces, Traces) else open(traces)
    return write_tables(traces, os.fspath(path), format=format, tables=tables, progress=progress)


def _facts(source: Source, numbers: tuple[int, int, int, int]) -> tuple[Any, ...]:
    """Returns a trace's facts in the form that _core.Table takes."""
    world_size = source.metadata.get("distributedInfo", {}).get("world_size")
    host = source.metadata.get("host_name")
    return (
        source.path,
        *numbers,
        -1 if source.parent_pid is None else source.parent_pid,
        _small(source.rank),
        _small(world_size),
        None if host is None else _text(str(host)),
        _text(source.name),
        _text(source.command),
        source.ended,
    )


def _small(number: object) -> int:
    return number if isinstance(number, int) and 0 <= number < 1 << 31 else -1


def _text(text: str) -> str:
    """Replaces what UTF-8 cannot encode, and NUL, which ends a text in C."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _import(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"this needs {name}: pip install {name}") from error
