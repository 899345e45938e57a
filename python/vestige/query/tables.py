"""The tables that a query reads: traces, or folders of tables exported from traces.

Traces are read in place, as streams that hold one batch at a time, at ten million spans a second. If you ask more than
about five questions, export the traces to Parquet and query that folder. The processes of all paths are numbered
together; the table `run` says from which path a process came.
"""

from __future__ import annotations

import glob
import os
import shutil

from vestige._core import table_names
from vestige.base.failure import Failure
from vestige.reading.inputs import Inputs
from vestige.tables import Traces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from vestige.tables import Table

SUFFIX = ".parquet"
RUN = "run"  # the table that queries add to the tables of traces
WILD = "*?["


class Part:
    """Parquet files whose processes are numbered together. `run` is the number of their path. A part that is queried
    alone may have its own table of runs.
    """

    def __init__(self, path: str, files: dict[str, list[str]], run: int) -> None:
        self.path = path
        self.files = files
        self.run = run


class Tables:
    """The tables of a query: of `traces`, or Parquet files in `parts`."""

    def __init__(self) -> None:
        self.traces: Traces | None = None
        self.parts: list[Part] = []
        self.runs: list[tuple[int, int, str]] = []  # for `traces`: process, number of the path, path
        self.folder: str | None = None  # removed by close()
        self._inputs: Inputs | None = None
        self._places: list[int] = []  # the process numbers of `traces`

    @property
    def failed(self) -> bool:
        return self._inputs is not None and self._inputs.failed

    def set_traces(self, inputs: Inputs, runs: list[tuple[int, str]]) -> None:
        """Sets the traces. `runs` has the number and the path of each source."""
        self._inputs = inputs
        self._all = self.traces = Traces(inputs.sources)
        self._places = list(range(len(inputs.sources)))
        self.runs = [(process, number, path) for process, (number, path) in enumerate(runs)]

    def streams(self, count: int) -> dict[str, list[Table]]:
        """Returns each table of the traces as `count` streams, which can be read in parallel."""
        if self.traces is None:
            return {}
        count = min(count, len(self._places))
        shares = [self._all.some(self._places[first::count]) for first in range(count)]
        return {name: [share.tables[name] for share in shares] for name in table_names}

    def leave_out(self, message: str) -> bool:
        """Reports and drops the trace that an error names, if others remain. Returns whether one was dropped."""
        for place in self._places if len(self._places) > 1 else ():
            start = message.find(f"{self._all.sources[place].path}: ")
            if start >= 0:
                assert self._inputs is not None
                self._inputs.tell(message[start:])
                self._places.remove(place)
                self.traces = self._all.some(self._places)
                self.runs = [run for run in self.runs if run[0] != place]
                return True
        return False

    def close(self) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def find_tables(paths: Sequence[str], *, children: bool) -> Tables:
    """Returns the tables of the paths. Expands patterns that the shell left alone."""
    tables = Tables()
    found = [(number, one) for number, path in enumerate(paths) for one in _expand(path)]
    for number, one in found:
        files = exported_tables(one)
        if files:
            tables.parts.append(Part(one, files, number))
    if not tables.parts:
        _find_traces(tables, paths, found, children=children)
    elif len(tables.parts) < len(found):
        raise Failure(
            f"{tables.parts[0].path} holds tables, but other paths are traces: query either tables or traces", code=2
        )
    elif len(tables.parts) > 1:
        for part in tables.parts:
            part.files.pop(RUN, None)
    return tables


def _find_traces(tables: Tables, paths: Sequence[str], found: list[tuple[int, str]], *, children: bool) -> None:
    inputs = Inputs()
    of: dict[str, int] = {}  # by source: the index of the first path that has it
    for number, one in found:
        if os.path.isdir(one):
            inputs.add_folder(one, children=children)
        else:
            inputs.add(one, children=children)
        for source in inputs.sources[len(of) :]:
            of[source.path] = number
    inputs.finish()
    tables.set_traces(inputs, [(of[source.path], paths[of[source.path]]) for source in inputs.sources])


def _expand(path: str) -> list[str]:
    if os.path.lexists(path) or not any(sign in path for sign in WILD):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise Failure(f"{path}: no file matches this pattern", code=1)
    return found


def exported_tables(path: str) -> dict[str, list[str]]:
    """Returns the Parquet files of each table: `span.parquet`, or all files of `span/`. A single file is the table that
    it is named after, or else the table of spans.
    """
    if path.endswith(SUFFIX) and not os.path.isdir(path):
        name = os.path.basename(path).removesuffix(SUFFIX)
        return {name if name in table_names else "span": [path]}
    files = {}
    for name in (*table_names, RUN):
        single = os.path.join(path, name + SUFFIX)
        inside = sorted(glob.glob(os.path.join(glob.escape(os.path.join(path, name)), "*" + SUFFIX)))
        if os.path.isfile(single):
            files[name] = [single]
        elif inside:
            files[name] = inside
    return files
