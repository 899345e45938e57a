"""`vestige report`, and the report after `vestige run`: where the time went, as a table 80 columns wide."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

    from vestige._core import Trace

EXAMPLES = """\
  vestige report t.vst
  vestige report t.vst -n 40
"""
ROWS = 12
NAME_WIDTH = 44


def main(argv: list[str]) -> None:
    import sys

    from . import Failure
    from .console import Parser, Progress, open_trace

    parser = Parser("report", "List the functions that took most time themselves.", "FILE [-n N]", EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="a trace (.vst)")
    parser.add_argument("-n", metavar="N", type=int, default=30, help="functions to list (default: 30)")
    options = parser.parse_args(argv)
    if options.n < 1:
        raise Failure(f"-n must be at least 1, not {options.n}", code=2)

    trace = open_trace(options.file)
    progress = Progress(f"reading {options.file}")
    try:
        totals = trace.totals(all_windows=True, progress=progress)
    finally:
        progress.clear()
    show(trace, totals, options.n, sys.stdout)


def show(trace: Trace, totals: list[tuple[str, int, int, int]], rows: int, out: TextIO) -> None:
    """The table for totals, which are (name, calls, self_ns, total_ns)."""
    facts = trace.info()
    calls = sum(entry[1] for entry in totals)
    whole = sum(entry[2] for entry in totals) or 1
    threads = f"{facts['threads']:,} thread{'' if facts['threads'] == 1 else 's'}"
    print(f"{duration(facts['end_ns'] - facts['start_ns'])}, {calls:,} calls, {threads}", file=out)
    if facts["lost"]:
        print(f"{facts['lost']:,} records could not be kept and are missing here", file=out)
    if facts["dropped"]:
        print(_dropped(facts), file=out)
    if not totals:
        return
    print(f"{'calls':>11} {'self':>8} {'%':>4} {'total':>8}  function", file=out)
    ranked = sorted(totals, key=lambda entry: (-entry[2], entry[0]))
    for name, count, self_ns, total_ns in ranked[:rows]:
        share = f"{self_ns / whole:4.0%}"
        print(f"{count:>11,} {duration(self_ns):>8} {share} {duration(total_ns):>8}  {_fit(name)}", file=out)
    if len(ranked) > rows:
        print(f"{'':>11} and {len(ranked) - rows:,} more functions", file=out)


def duration(ns: int) -> str:
    """Three digits that matter, with their unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            value = ns / size
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{ns} ns"


def _dropped(facts: dict[str, Any]) -> str:
    complete = duration(facts["end_ns"] - facts["complete_ns"])
    return f"{facts['dropped']:,} older records were dropped to stay within the bound; the last {complete} are complete"


def _fit(name: str) -> str:
    """A long name loses the part that tells least: a path its beginning, a C function's `… object>`."""
    name = " ".join(name.split())
    if len(name) <= NAME_WIDTH:
        return name
    return name[: NAME_WIDTH - 1] + "…" if name.startswith("<built-in") else "…" + name[1 - NAME_WIDTH :]
