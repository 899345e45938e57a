"""Answers queries with an existing Spark: the same SQL over the same Parquet tables.

PySpark is optional, and needs Java. Java's output during the start of Spark is shown only if the start fails.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import contextmanager

from vestige.base.failure import Failure

from .answer import BATCH, Answer
from .questions import check_used
from .tables import RUN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from .questions import Value
    from .tables import Tables

LONGEST = 400
# Spark's strings, quoted names and comments, which contain no parameters; `a::int` is a cast, `:name` a parameter.
TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|::|:([A-Za-z_]\w*)""", re.DOTALL)
QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}


class SparkAnswer(Answer):
    """Runs a query in the program's active session. If there is none, begins a session and stops it at the end."""

    def __init__(
        self, sql: str, values: Mapping[str, Value], tables: Tables, *, master: str, conf: Mapping[str, str]
    ) -> None:
        check_used(values, {match[1] for match in TOKEN.finditer(sql) if match[1]})
        self._session, self._is_own = _connect(master, conf)
        self._errors = _errors()
        self._frame: Any = None
        self.columns: list[str] = []
        try:
            self._register(tables)
            for statement in statements(sql):
                self._frame = self._session.sql(statement, dict(values))
        except self._errors as error:
            self.close()
            raise explain(error) from None
        except BaseException:
            self.close()
            raise
        if self._frame is None:
            self.close()
            raise Failure("there is no SQL in the query", code=2)
        self.columns = list(self._frame.columns)

    def _register(self, tables: Tables) -> None:
        """Makes the views that duck.py makes."""
        first = 0
        frames: dict[str, Any] = {}
        for part in tables.parts:
            read = {name: self._session.read.parquet(*files) for name, files in part.files.items()}
            who = read["process" if "process" in read else "span"].select("process").distinct()
            if RUN not in read:
                read[RUN] = who.selectExpr("process", f"{part.run} as run").withColumn("path", _constant(part.path))
            for name, frame in read.items():
                if first:
                    frame = frame.withColumn("process", (frame["process"] + first).cast("int"))
                known = frames.get(name)
                frames[name] = frame if known is None else known.unionByName(frame, allowMissingColumns=True)
            if len(tables.parts) > 1:
                highest = who.selectExpr("max(process)").collect()[0][0]
                first += 0 if highest is None else highest + 1
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)

    def batches(self) -> Iterator[list[tuple[Any, ...]]]:
        batch: list[tuple[Any, ...]] = []
        try:
            for row in self._frame.toLocalIterator():
                batch.append(tuple(row))
                if len(batch) == BATCH:
                    yield batch
                    batch = []
        except self._errors as error:
            raise explain(error) from None
        if batch:
            yield batch

    def write_parquet(self, path: str) -> None:
        """Writes a folder, as Spark does."""
        try:
            self._frame.write.mode("overwrite").parquet(path)
        except self._errors as error:
            raise explain(error) from None

    def close(self) -> None:
        if self._is_own:
            with _hushed():
                self._session.stop()


def _constant(text: str) -> Any:
    from pyspark.sql.functions import lit

    return lit(text)


def _connect(master: str, conf: Mapping[str, str]) -> tuple[Any, bool]:
    """Returns the session, and whether it was begun here."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise Failure("--engine spark needs PySpark, which is not installed here: pip install pyspark") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        return active, False
    builder = SparkSession.builder.master(master).appName("vestige query")
    for key, value in {**QUIET, **conf}.items():
        builder = builder.config(key, value)
    with _hushed() as said:
        try:
            session = builder.getOrCreate()
        except Exception as error:  # errors of Java, Python and the gateway share no base class
            raise Failure(f"no Spark at {master}: {_reason(said(), error)}") from None
        session.sparkContext.setLogLevel("ERROR")
    return session, True


@contextmanager
def _hushed() -> Iterator[Any]:
    """Sends everything written to stderr, by Java too, to a temporary file. Yields a function that reads the file."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)

        def said() -> str:
            file.seek(0)
            return file.read().decode(errors="replace")

        try:
            yield said
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _reason(said: str, error: Exception) -> str:
    if "JAVA_HOME is not set" in said or "java: not found" in said or "JAVA_GATEWAY_EXITED" in str(error):
        java = [line for line in said.splitlines() if "java" in line.lower()]
        return f"Spark needs Java 17 or later ({java[0].strip() if java else 'none was found'})"[:LONGEST]
    return _first(error)


def _errors() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JJavaError


def _first(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    caused = [line for line in lines if line.startswith("Caused by: ")]
    return (caused[-1] if caused else lines[0] if lines else type(error).__name__)[:LONGEST]


def explain(error: Exception) -> Failure:
    """Returns Spark's message, without the plan and the Java stack that follow it."""
    name = type(error).__name__
    usage = name in ("AnalysisException", "ParseException", "IllegalArgumentException")
    return Failure(_first(error).split("; line ")[0], code=2 if usage else 1)


def statements(sql: str) -> list[str]:
    """Splits SQL into single statements, because Spark runs one at a time."""
    parts, at = [], 0
    quoted = [match.span() for match in TOKEN.finditer(sql)]
    for place, sign in enumerate(sql):
        if sign == ";" and not any(begin <= place < end for begin, end in quoted):
            parts.append(sql[at:place])
            at = place + 1
    parts.append(sql[at:])
    return [part for part in parts if _without_comments(part).strip()]


def _without_comments(sql: str) -> str:
    return TOKEN.sub(lambda match: "" if match[0].startswith(("--", "/*")) else match[0], sql)
