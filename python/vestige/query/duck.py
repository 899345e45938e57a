"""Answers queries with DuckDB, in this process."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import tempfile
import threading

from vestige._core import Table, table_names
from vestige.base.failure import Failure
from vestige.base.new_files import replacing

from .answer import BATCH, Answer
from .questions import check_used
from .tables import RUN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeVar

    from vestige.base.terminal import Progress

    T = TypeVar("T")

    from .questions import Value
    from .tables import Part, Tables

WAIT_S, AGAIN_S = 0.2, 0.05  # seconds between checks of a running query, and between attempts to interrupt it
ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
WORD = re.compile(rb"[A-Za-z_]\w*")
OPERAND = re.compile(rb"[\w\"'\])}]")  # the last byte of an operand
OLDEST = [1, 5]
LONGEST = 400  # the longest error message, in characters
FILE_ERRORS = ("IOException", "OutOfMemoryException", "InternalException")
STREAM = re.compile("reading the stream registered as '[^']*' failed: ")


class DuckAnswer(Answer):
    """Runs a query on its own connection, in which the tables are registered. The query runs when rows are read."""

    def __init__(
        self,
        sql: str,
        values: Mapping[str, Value],
        tables: Tables,
        *,
        memory: str | None,
        progress: Progress | None,
        confined: int = 0,
    ) -> None:
        """`confined` is for SQL of a stranger, and gives the number of threads: only SELECT runs, and has access
        neither to files nor to Python's variables.
        """
        self._duckdb = load()
        self._values = values
        self._progress = progress
        self._tables = tables
        self.columns: list[str] = []
        self._connection: Any = None
        # for data that DuckDB moves out of memory
        self._folder = "" if confined else tempfile.mkdtemp(prefix="vestige-")
        try:
            self._connection = self._connect(memory, confined)
            self._register()
            self._statements = self._connection.extract_statements(mark_parameters(sql, values))
            if not self._statements:
                raise Failure("there is no SQL in the query", code=2)
            if confined:
                self._confine()
            check_used(values, set().union(*(each.named_parameters for each in self._statements)))
        except self._duckdb.Error as error:
            self.close()
            raise name_missing(sql, values, explain(error)) from None
        except BaseException:
            self.close()
            raise

    def _connect(self, memory: str | None, threads: int) -> Any:
        config: dict[str, Any] = {"temp_directory": self._folder}
        if threads:
            config["threads"] = min(threads, os.cpu_count() or 1)
        if memory is not None:
            config["memory_limit"] = memory
        return self._duckdb.connect(":memory:", config=config)

    def _confine(self) -> None:
        if any(each.type != self._duckdb.StatementType.SELECT for each in self._statements):
            raise Failure("only SELECT is answered here", code=2)
        for setting in ("python_enable_replacements = false", "enable_external_access = false"):
            self._connection.execute(f"set {setting}")
        self._connection.execute("set lock_configuration = true")

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
        """Registers each table of all parts together. The processes of a later part are numbered after those of earlier
        parts.
        """
        first = 0
        selects: dict[str, list[str]] = {}
        for part in parts:
            for name, files in part.files.items():
                source = f"read_parquet([{', '.join(map(_text, files))}])"
                select = f"select * replace (cast(process + {first} as int) as process) from {source}"
                selects.setdefault(name, []).append(select if first else f"select * from {source}")
            source = self._processes_of(part)
            if RUN not in part.files:
                here = f"select distinct cast(process + {first} as int) as process, {part.run} as run"
                selects.setdefault(RUN, []).append(f"{here}, {_text(part.path)} as path from {source}")
            if len(parts) > 1:
                highest = self._connection.execute(f"select max(process) from {source}").fetchone()[0]
                first += 0 if highest is None else highest + 1
        for name, several in selects.items():
            self._connection.execute(f"create view {name} as {' union all by name '.join(several)}")

    def _processes_of(self, part: Part) -> str:
        """Returns the SQL source of a part's process numbers."""
        files = part.files.get("process") or part.files.get("span")
        if not files:
            raise Failure(
                f"{part.path}: has neither process.parquet nor span.parquet; "
                "export the traces with `vestige export --to parquet`"
            )
        source = f"read_parquet([{', '.join(map(_text, files))}])"
        kind = self._connection.execute(f"describe select process from {source}").fetchone()[1]
        if "INT" not in kind:
            raise Failure(f"{part.path}: `process` is {kind} there, not a number: vestige export did not write it")
        return source

    def _execute(self, statements: Any) -> None:
        """Runs each statement with the values that it names."""
        for statement in statements:
            self._connection.execute(
                statement, {name: self._values[name] for name in statement.named_parameters if name in self._values}
            )

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
        try:
            with replacing(path) as temporary:
                self._copy_to(temporary)
        except self._duckdb.Error as error:
            raise explain(error) from None
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from None

    def _copy_to(self, path: str) -> None:
        text = self._statements[-1].query.strip().rstrip(";")
        copy = f"copy ({text}\n) to {_text(path)} (format parquet, compression zstd, use_tmp_file false)"
        statements = [*self._statements[:-1], *self._connection.extract_statements(copy)]
        self._without_broken(lambda: self._execute(statements))

    def _without_broken(self, do: Callable[[], T]) -> T:
        """Calls `do`. If a trace cannot be read, leaves the trace out and calls again."""
        while True:
            watch = Watch(self._connection, self._progress)
            try:
                with watch:
                    return do()
            except (self._duckdb.Error, RuntimeError) as error:
                watch.handle_signal()
                if isinstance(error, RuntimeError) or not self._tables.leave_out(str(error)):
                    raise
                self._register()

    def close(self) -> None:
        try:
            if self._connection is not None:
                self._connection.close()
        finally:
            if self._folder:
                shutil.rmtree(self._folder, ignore_errors=True)


class Watch:
    """A thread that watches a running query. It shows the progress: DuckDB knows how far it has read Parquet files, but
    not streams, for which only rows are counted. It also interrupts the query when a signal arrives that ends the
    command: Python handles a signal only after DuckDB returns, and DuckDB does not look for signals while it computes.
    """

    def __init__(self, connection: Any, progress: Progress | None) -> None:
        self._connection = connection
        self._progress = progress
        self._is_main = threading.current_thread() is threading.main_thread()
        self._signal = 0  # the signal that ends the command

    def __enter__(self) -> None:
        # signals arrive here; the other end is closed when the query has ended
        self._news, self._end = socket.socketpair()
        self._news.settimeout(WAIT_S)
        self._end.setblocking(False)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        if self._is_main:
            self._before = signal.set_wakeup_fd(self._end.fileno(), warn_on_full_buffer=False)

    def __exit__(self, *exc: object) -> None:
        if self._is_main:
            signal.set_wakeup_fd(self._before)
        self._end.close()
        self._thread.join()
        self._news.close()
        if self._progress is not None:
            self._progress.clear()

    def handle_signal(self) -> None:
        """Call after the query has failed. If a signal arrived, calls its handler as Python would, because DuckDB
        swallows an exception that the handler raises.
        """
        handler = signal.getsignal(self._signal) if self._signal else None
        if callable(handler):
            handler(self._signal, None)

    def _run(self) -> None:
        from duckdb import ConnectionException

        try:
            self._look()
        except ConnectionException:
            # the connection is closed: a signal's exception can come before __exit__, which then does not stop this
            # thread
            pass

    def _look(self) -> None:
        before = Table.rows_read()
        while True:
            try:
                numbers = self._news.recv(64)
                if not numbers:
                    return
                self._signal = next((number for number in numbers if number in ENDING), self._signal)
            except TimeoutError:
                pass
            if self._signal:
                self._news.settimeout(AGAIN_S)  # the query may not have begun yet, so try again soon
                self._connection.interrupt()
            elif self._progress is not None:
                self._show_progress(self._progress, Table.rows_read() - before)

    def _show_progress(self, progress: Progress, rows: int) -> None:
        share = self._connection.query_progress() / 100
        if share >= 0:
            progress(share)
        else:
            progress.count(f"{rows:,} rows read")


def parameters_in(sql: str) -> dict[int, str]:
    """Returns the names of `:name` parameters in a query, by the position of their colon in bytes. DuckDB's tokenizer
    recognizes strings, comments and quoted names; `{'a':b}` and `a[b:c]` contain no parameters.
    """
    import duckdb

    data = sql.encode("utf-8", "replace")
    starts = {at for at, _ in duckdb.tokenize(data.decode())}
    found = {}
    for at in sorted(starts):
        word = WORD.match(data, at + 1) if data[at : at + 1] == b":" and at + 1 in starts else None
        if word and not OPERAND.match(data, max(at - 1, 0)):
            found[at] = word[0].decode()
    return found


def mark_parameters(sql: str, values: Mapping[str, Value]) -> str:
    """Replaces `:name` by DuckDB's `$name`, for names that have a value."""
    data = bytearray(sql.encode("utf-8", "replace"))
    for at, name in parameters_in(sql).items():
        if name in values:
            data[at : at + 1] = b"$"
    return data.decode()


def name_missing(sql: str, values: Mapping[str, Value], failure: Failure) -> Failure:
    """Returns an error that names the missing value, because DuckDB reports a `:name` without a value as a syntax
    error.
    """
    missing = [name for name in dict.fromkeys(parameters_in(sql).values()) if name not in values]
    if not missing or 'at or near ":"' not in str(failure):
        return failure
    names = " and ".join(f":{name}" for name in missing)
    return Failure(f"the query needs a value for {names}: {' '.join(f'-p {name}=…' for name in missing)}", code=2)


def load() -> Any:
    """Returns the duckdb package. Versions before OLDEST can read a stream only once."""
    try:
        import duckdb
    except ImportError:
        raise Failure(
            "SQL is answered by DuckDB, which is not installed here: pip install duckdb, or 'vestige[query]'"
        ) from None
    if [int(number) for number in duckdb.__version__.split(".")[:2]] < OLDEST:
        raise Failure(f"DuckDB {duckdb.__version__} is too old, 1.5 or later is needed: pip install -U duckdb")
    return duckdb


def _text(value: str) -> str:
    """Returns a string literal of SQL."""
    return "'" + value.replace("'", "''") + "'"


def explain(error: Exception) -> Failure:
    """Returns an error of DuckDB, which has several lines, as one line."""
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
