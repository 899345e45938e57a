"""The formats that traces are exported to: one list for the help, for choosing by suffix, for errors and completion.

The core writes them (src/export/export.c has the same names and suffixes), except for tables, which pyarrow writes.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Writer = Literal["core", "tables"]


class Format:
    """A format, the names of files that stand for it, and which programs read it."""

    def __init__(
        self,
        name: str,
        files: str,
        readers: str,
        *,
        default: str | None = None,
        writer: Writer = "core",
        sums: bool = False,
    ) -> None:
        self.name = name
        self.patterns = files.split()  # `.json`: a suffix; `callgrind.out.*`: how a name begins
        self.readers = readers
        self.default = default or self.patterns[0]  # the suffix of a file that has no name yet
        self.writer = writer
        self.sums = sums  # it adds up, so its measure can be another than time that passed

    def fits(self, path: str) -> bool:
        """Whether the file's name says that it is of this format."""
        name = os.path.basename(path)
        if self.writer == "core":
            name = name.removesuffix(".gz")
        return any(_fits(name, pattern) for pattern in self.patterns)


def _fits(name: str, pattern: str) -> bool:
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name.endswith(pattern) if pattern.startswith(".") else name == pattern


FORMATS = {
    each.name: each
    for each in (
        Format("chrome", ".json", "ui.perfetto.dev, HTA, TensorBoard", default=".json.gz"),
        Format("perfetto", ".pftrace .perfetto-trace", "ui.perfetto.dev: small, quick"),
        Format("speedscope", ".speedscope.json", "speedscope.app"),
        Format("flamegraph", ".svg", "any browser", sums=True),
        Format("folded", ".folded", "flamegraph.pl; folded-ns: in ns", sums=True),
        Format("folded-ns", "", "", default=".folded", sums=True),
        Format("pprof", ".pb .pprof", "pprof: calls, time, allocations", default=".pb.gz", sums=True),
        Format("pstats", ".pstats .prof", "pstats, snakeviz, gprof2dot", sums=True),
        Format("callgrind", ".callgrind callgrind.out.*", "KCachegrind, callgrind_annotate", sums=True),
        Format("execution-trace", ".et.json et.json", "Chakra, et_replay; see vestige et"),
        Format("memory-timeline", "", "(by --to) memory over time", default=".html"),
        Format("parquet", ".parquet", "DuckDB, Spark; into OUT/: tables", writer="tables"),
        Format("arrow", ".arrow .feather", "the same, to be memory-mapped", writer="tables"),
    )
}
CHROME, EXECUTION_TRACE, MEMORY_TIMELINE = FORMATS["chrome"], FORMATS["execution-trace"], FORMATS["memory-timeline"]
TABLES = [each for each in FORMATS.values() if each.writer == "tables"]
MEMORY_SUFFIXES = (".html", ".pickle", ".json", ".csv", ".folded")  # of the history of a program's memory


def tables_format(path: str, name: str | None = None) -> Format | None:
    """The format of tables that is named, or that the path's suffix stands for; None for a format of the core."""
    if name is not None:
        return FORMATS[name] if FORMATS[name] in TABLES else None
    return next((each for each in TABLES if each.fits(path)), None)


def adds_up(path: str, name: str | None = None) -> bool:
    """Whether the format that is named, or that the path's suffix stands for, holds sums."""
    if name is not None:
        return FORMATS[name].sums
    return next((each.sums for each in FORMATS.values() if each.fits(path)), False)


def is_known(path: str) -> bool:
    """Whether some format has the name's suffix."""
    return any(each.fits(path) for each in FORMATS.values())


def suffixes() -> str:
    """All suffixes, for errors."""
    core = [pattern for each in FORMATS.values() if each.writer == "core" for pattern in each.patterns]
    tables = [pattern for each in TABLES for pattern in each.patterns]
    return f"{', '.join(core)}, each also with .gz, and {', '.join(tables)}"


def help_table() -> str:
    """The formats, their suffixes and the programs that read them."""
    rows = [(each.name, " ".join(each.patterns), each.readers) for each in FORMATS.values() if each.readers]
    width = max(len(files) for _, files, _ in rows)
    return "\n".join(f"  {name:<15} {files:<{width}}  {readers}" for name, files, readers in rows)
