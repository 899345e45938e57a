"""DuckDB answers, in this process."""

from __future__ import annotations

import os
import re
import tempfile
import threading

from vestige._core import Table, table_names
from vestige.cli import Failure

from .answer import BATCH, Answer
from .questions import quote
from .tables import RUN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    from vestige.cli.console import Progress

    T = TypeVar("T")

    from .tables import Part, Tables

WAIT_S = 0.2
OLDEST = [1, 5]
LONGEST = 400  # of a message, in characters
FILE_ERRORS = ("IOException", "OutOfMemoryException", "InternalException")
STREAM = re.compile("reading the stream registered as '[^']*' failed: ")


class DuckAnswer(Answer):
    """A connection of its own, with the tables in it. It begins to compute when rows are asked for."""

    def __init__(self, sql: str, tables: Tables, *, memory: str | None, progress: Progress | None) -> None:
        self._duckdb = duckdb = load()
        self._progress = progress
        self._tables = tables
        self.columns: list[str] = []
        config: dict[str, Any] = {"temp_directory": os.path.join(tempfile.gettempdir(), f"vestige-{os.getpid()}")}
        if memory is not None:
            config["memory_limit"] = memory
        try:
            self._connection = duckdb.connect(":memory:", config=config)
        except duckdb.Error as error:
            raise explain(error) from None
        try:
            self._register()
            self._statements = self._connection.extract_statements(sql)
            if not self._statements:
                raise Failure("there is no SQL in the query", code=2)
        except duckdb.Error as error:
            self.close()
            raise explain(error) from None
        except BaseException:
            self.close()
            raise

    def _register(self) -> None:
        for name, streams in self._tables.streams(os.cpu_count() or 1).items():
            for number, stream in enumerate(streams):
                self._connection.register(f"{name}_{number}", stream)
            parts = " union all ".join(f"select * from {name}_{number}" for number in range(len(streams)))
            self._connection.execute(f"create or replace view {name} as {parts}")
        if self._tables.parts:
            self._register_parts(self._tables.parts)
        elif self._tables.runs:
            rows = ", ".join(f"({process}, {run}, {_text(path)})" for process, run, path in self._tables.runs)
            self._connection.execute("create or replace table run (process int, run int, path text)")
            self._connection.execute(f"insert into run values {rows}")

    def _register_parts(self, parts: list[Part]) -> None:
        """Each table of all parts together; processes of later ones get numbers after those of the earlier."""
        first = 0
        selects: dict[str, list[str]] = {}
        for part in parts:
            for name, files in part.files.items():
                source = f"read_parquet([{', '.join(map(_text, files))}])"
                select = f"select * replace (cast(process + {first} as int) as process) from {source}"
                selects.setdefault(name, []).append(select if first else f"select * from {source}")
            source = f"read_parquet([{', '.join(map(_text, part.files.get('process') or part.files['span']))}])"
            if RUN not in part.files:
                here = f"select distinct cast(process + {first} as int) as process, {part.run} as run"
                selects.setdefault(RUN, []).append(f"{here}, {_text(part.path)} as path from {source}")
            if len(parts) > 1:
                highest = self._connection.execute(f"select max(process) from {source}").fetchone()[0]
                first += 0 if highest is None else highest + 1
        for name, several in selects.items():
            self._connection.execute(f"create view {name} as {' union all by name '.join(several)}")

    def _execute(self, statements: Any) -> None:
        for statement in statements:
            self._connection.execute(statement)

    def batches(self) -> Iterator[list[tuple[Any, ...]]]:
        try:
            batch = self._without_broken(self._begin)
            while batch:
                yield batch
                batch = self._connection.fetchmany(BATCH)
        except self._duckdb.Error as error:
            raise explain(error) from None

    def _begin(self) -> list[tuple[Any, ...]]:
        self._execute(self._statements)
        self.columns = [column[0] for column in self._connection.description or ()]
        first: list[tuple[Any, ...]] = self._connection.fetchmany(BATCH) if self.columns else []
        return first

    def write_parquet(self, path: str) -> None:
        target = path.replace("'", "''")
        text = self._statements[-1].query.strip().rstrip(";")
        copy = f"copy ({text}\n) to '{target}' (format parquet, compression zstd)"
        try:
            self._without_broken(lambda: self._execute([*self._statements[:-1], copy]))
        except self._duckdb.Error as error:
            raise explain(error) from None

    def _without_broken(self, do: Callable[[], T]) -> T:
        """Once more, as long as that leaves a trace out which cannot be read."""
        while True:
            try:
                with Watch(self._connection, self._progress):
                    return do()
            except self._duckdb.Error as error:
                if not self._tables.leave_out(str(error)):
                    raise
                self._register()

    def close(self) -> None:
        self._connection.close()


class Watch:
    """Tells how far a query is while it runs. DuckDB knows of Parquet, but not of streams: of those, that it goes on."""

    def __init__(self, connection: Any, progress: Progress | None) -> None:
        self._connection = connection
        self._progress = progress
        self._done = threading.Event()

    def __enter__(self) -> None:
        if self._progress is not None:
            self._thread = threading.Thread(target=self._look, daemon=True)
            self._thread.start()

    def __exit__(self, *exc: object) -> None:
        if self._progress is not None:
            self._done.set()
            self._thread.join()
            self._progress.clear()

    def _look(self) -> None:
        assert self._progress is not None
        before = Table.rows_read()
        while not self._done.wait(WAIT_S):
            share = self._connection.query_progress() / 100
            if share >= 0:
                self._progress(share)
            else:
                self._progress.tell(f"{Table.rows_read() - before:,} rows read")


def load() -> Any:
    """The package; older ones can read a stream only once."""
    try:
        import duckdb
    except ImportError:
        raise Failure(
            "SQL is answered by DuckDB, which is not installed here: pip install duckdb, or 'vestige[sql]'"
        ) from None
    if [int(number) for number in duckdb.__version__.split(".")[:2]] < OLDEST:
        raise Failure(f"DuckDB {duckdb.__version__} is too old, 1.5 or later is needed: pip install -U duckdb")
    return duckdb


def _text(value: str) -> str:
    return quote(value, backslashes=False)


def explain(error: Exception) -> Failure:
    """One line of what DuckDB says in several."""
    lines = [line.strip() for line in str(error).splitlines()]
    kept = [line for line in lines if line and not line.startswith(("LINE ", "^"))]
    text = " ".join(kept)
    stream = STREAM.search(text)
    if stream is not None:
        return Failure(text[stream.end() :][:LONGEST])
    if type(error).__name__ == "CatalogException" and "Table with name" in text:
        text = f"{text.partition('!')[0]}; there are {', '.join((*table_names, RUN))}"
    usage = type(error).__name__ not in FILE_ERRORS
    return Failure(text[:LONGEST], code=2 if usage else 1)
