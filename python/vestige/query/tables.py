"""What a query is about: traces, or folders of tables that were exported from them.

Traces are read as they are, by streams, or through Parquet files that are made of them (cache.py). All processes of all
paths are one set, in which each has a number; `run` tells which path a process came from.
"""

from __future__ import annotations

import glob
import os

from vestige.cli import Failure
from vestige.cli.inputs import Inputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

SUFFIX = ".parquet"
TABLES = ("process", "thread", "func", "stack", "span", "op", "alloc", "counter", "lost")
WILD = "*?["


class Part:
    """Parquet files whose processes are numbered together. `run` is the number of the path they stand for, None where
    there are several of these in one, which `Tables.runs` tells then."""

    def __init__(self, path: str, files: dict[str, list[str]], run: int | None) -> None:
        self.path = path
        self.files = files
        self.run = run


class Tables:
    """`inputs` are traces, `parts` is Parquet; there is one of the two."""

    def __init__(self) -> None:
        self.inputs: Inputs | None = None
        self.parts: list[Part] = []
        self.streams: dict[str, Any] = {}  # of traces that are read as they are
        self.runs: list[tuple[int, int, str]] = []  # process, number of the path, path; of traces
        self.paths: list[str] = []

    @property
    def failed(self) -> bool:
        return self.inputs is not None and self.inputs.failed


def find_tables(paths: Sequence[str], *, children: bool) -> Tables:
    """What the paths stand for. Patterns that the shell left alone are expanded."""
    tables = Tables()
    exported = []
    for number, path in enumerate(paths):
        found = _expand(path)
        tables.paths.append(path)
        for one in found:
            files = exported_tables(one)
            if files:
                tables.parts.append(Part(one, files, number))
                exported.append(one)
    if not exported:
        _find_traces(tables, children=children)
    elif len(exported) < sum(len(_expand(path)) for path in paths):
        raise Failure(f"{exported[0]} holds tables, others are traces: ask about one or the other", code=2)
    return tables


def _find_traces(tables: Tables, *, children: bool) -> None:
    inputs = Inputs()
    of: dict[str, int] = {}
    for number, path in enumerate(tables.paths):
        for one in _expand(path):
            if os.path.isdir(one):
                inputs.add_folder(one, children=children)
            else:
                inputs.add(one, children=children)
        for source in inputs.sources:
            of.setdefault(source.path, number)
    inputs.finish()
    tables.inputs = inputs
    number_runs(tables, of)


def number_runs(tables: Tables, of: dict[str, int]) -> None:
    """The order of the sources is that of their processes."""
    assert tables.inputs is not None
    tables.runs = [
        (process, of[source.path], tables.paths[of[source.path]])
        for process, source in enumerate(tables.inputs.sources)
    ]


def _expand(path: str) -> list[str]:
    if os.path.lexists(path) or not any(sign in path for sign in WILD):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise Failure(f"{path}: nothing is called that", code=1)
    return found


def exported_tables(path: str) -> dict[str, list[str]]:
    """The Parquet files of each table: `span.parquet` or all of `span/`. One file by itself is the table it is named
    after, or spans."""
    if path.endswith(SUFFIX) and not os.path.isdir(path):
        name = os.path.basename(path).removesuffix(SUFFIX)
        return {name if name in TABLES else "span": [path]}
    files = {}
    for name in TABLES:
        single = os.path.join(path, name + SUFFIX)
        inside = sorted(glob.glob(os.path.join(glob.escape(os.path.join(path, name)), "*" + SUFFIX)))
        if os.path.isfile(single):
            files[name] = [single]
        elif inside:
            files[name] = inside
    return files
