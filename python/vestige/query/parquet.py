"""Writes traces as Parquet, for an engine that reads nothing else: only the tables that the SQL names."""

from __future__ import annotations

import os
import re
import tempfile

from vestige._core import TraceError, table_names
from vestige.base.failure import Failure, explain
from vestige.tables import write

from .tables import RUN, SUFFIX, Part, exported_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vestige.base.terminal import Progress

    from .tables import Tables

WORD = re.compile(r"\w+")


def make_parquet(sql: str, tables: Tables, folder: str | None, progress: Progress) -> None:
    """Writes the tables that the SQL names. Does nothing if `tables` are Parquet files already. Without a `folder`, the
    files are removed when `tables` is closed.
    """
    if tables.parts:
        return
    assert tables.traces is not None
    if folder is None:
        folder = tables.folder = tempfile.mkdtemp(prefix="vestige-")
    elif exported_tables(folder):
        raise Failure(f"{folder} already holds tables; query this folder instead of the traces, or remove it", code=2)
    words = set(WORD.findall(sql.lower()))
    names = [name for name in table_names if name in words] or ["process"]
    while True:
        try:
            write(tables.traces, os.path.join(folder, ""), format="parquet", tables=names, progress=progress)
            break
        except ImportError as error:
            raise Failure(str(error)) from None
        except (OSError, TraceError, ValueError) as error:  # pyarrow's errors derive from these
            if not tables.leave_out(str(error)):
                raise Failure(explain(folder, error)) from None
        finally:
            progress.clear()
    _write_runs(tables, os.path.join(folder, RUN + SUFFIX))
    tables.parts = [Part(folder, exported_tables(folder), 0)]


def _write_runs(tables: Tables, path: str) -> None:
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema([("process", pyarrow.int32()), ("run", pyarrow.int32()), ("path", pyarrow.string())])
    columns = [pyarrow.array(column, field.type) for column, field in zip(zip(*tables.runs), schema)]
    parquet.write_table(pyarrow.table(columns, schema=schema), path)
