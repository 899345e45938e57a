"""The formats that traces are exported to: one list for the help, for the choice by suffix, for errors and for
completion. The core writes these formats (src/export/export.c has equal names and suffixes), except tables, which
pyarrow writes.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Writer = Literal["core", "tables"]


class Format:
    """A format, the patterns of its file names, and the programs that read it."""

    def __init__(
        self,
        name: str,
        files: str,
        readers: str,
        *,
        default: str | None = None,
        writer: Writer = "core",
        sums: bool = False,
        also: str = "",
        opens: str = "",
    ) -> None:
        self.name = name
        self.patterns = files.split()  # `.json`: a suffix; `callgrind.out.*`: how a name begins
        self.readers = readers
        self.default = default or self.patterns[0]  # the suffix of a file that has no name yet
        self.writer = writer
        self.also = also.split()  # patterns of other formats that a file of this format may have
        self.opens = opens or readers.partition(",")[0].partition(":")[0].partition(";")[0]  # a program that opens it
        self.sums = sums  # the format holds sums, so it can count CPU time instead of wall time

    def fits(self, path: str) -> bool:
        """Returns whether a pattern of this format fits the file's name."""
        return self._length(path, self.patterns) > 0

    def may_be(self, path: str) -> bool:
        """Returns whether a file of this format may have this name."""
        return self._length(path, [*self.patterns, *self.also]) > 0

    def _length(self, path: str, patterns: list[str]) -> int:
        """Returns the length of the longest pattern that fits."""
        name = os.path.basename(path)
        if self.writer == "core":
            name = name.removesuffix(".gz")
        return max((len(pattern) for pattern in patterns if _fits(name, pattern)), default=0)


def _fits(name: str, pattern: str) -> bool:
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name.endswith(pattern) if pattern.startswith(".") else name == pattern


FORMATS = {
    each.name: each
    for each in (
        Format("chrome", ".json", "ui.perfetto.dev, HTA, TensorBoard", default=".json.gz"),
        Format("perfetto", ".pftrace .perfetto-trace", "ui.perfetto.dev: small, quick"),
        Format("speedscope", ".speedscope.json", "speedscope.app", also=".json"),
        Format("flamegraph", ".svg", "any browser", sums=True),
        Format("folded", ".folded", "flamegraph.pl; folded-ns: in ns", sums=True),
        Format("folded-ns", "", "", default=".folded", sums=True, also=".folded", opens="flamegraph.pl"),
        Format("pprof", ".pb .pprof", "pprof: calls, time, allocations", default=".pb.gz", sums=True),
        Format("pstats", ".pstats .prof", "pstats, snakeviz, gprof2dot", sums=True),
        Format("callgrind", ".callgrind callgrind.out.*", "KCachegrind, callgrind_annotate", sums=True),
        Format("execution-trace", ".et.json et.json", "Chakra, et_replay; see vestige et", also=".json"),
        Format(
            "memory-timeline",
            "",
            "(by --to) memory over time",
            default=".html",
            also=".html .json",
            opens="any browser",
        ),
        Format("parquet", ".parquet", "DuckDB, Spark; into OUT/: tables", writer="tables"),
        Format("arrow", ".arrow .feather", "tables to be memory-mapped", writer="tables", opens="pyarrow"),
    )
}
CHROME, EXECUTION_TRACE, MEMORY_TIMELINE = FORMATS["chrome"], FORMATS["execution-trace"], FORMATS["memory-timeline"]
TABLES = [each for each in FORMATS.values() if each.writer == "tables"]
MEMORY_SUFFIXES = (".html", ".pickle", ".json", ".csv", ".folded")  # of the history of a program's memory


def tables_format(path: str, name: str | None = None) -> Format | None:
    """Returns the format of tables with this name, or else with the path's suffix; None for a format of the core."""
    if name is not None:
        return FORMATS[name] if FORMATS[name] in TABLES else None
    return next((each for each in TABLES if each.fits(path)), None)


def adds_up(path: str, name: str | None = None) -> bool:
    """Returns whether the format with this name, or else with the path's suffix, holds sums."""
    if name is not None:
        return FORMATS[name].sums
    named = named_by(path)
    return named is not None and named.sums


def named_by(path: str) -> Format | None:
    """Returns the format with the longest suffix that fits the name."""
    found = max(FORMATS.values(), key=lambda each: each._length(path, each.patterns))
    return found if found.fits(path) else None


def suffixes() -> str:
    """Returns all suffixes, for errors."""
    core = [pattern for each in FORMATS.values() if each.writer == "core" for pattern in each.patterns]
    tables = [pattern for each in TABLES for pattern in each.patterns]
    return f"{', '.join(core)}, each also with .gz, and {', '.join(tables)}"


def help_table() -> str:
    """Returns the lines of the help: each format, its suffixes and the programs that read it."""
    rows = [(each.name, " ".join(each.patterns), each.readers) for each in FORMATS.values() if each.readers]
    width = max(len(files) for _, files, _ in rows)
    return "\n".join(f"  {name:<15} {files:<{width}}  {readers}" for name, files, readers in rows)
