"""`vestige report`, and the report after `vestige run`: where the time went, as a table 80 columns wide."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

    from vestige._core import Trace

    from .inputs import Inputs, Source

    # name, calls, self_ns, total_ns; and where memory was recorded self_bytes, total_bytes, allocations
    Totals = list[tuple[Any, ...]]

EXAMPLES = """\
  vestige report t.vst
  vestige report t.vst -n 40
  vestige report t.vst --sort memory     by bytes allocated, callees included
  vestige report traces/
"""
ROWS = 12
NAME_WIDTH = 44
NAME_WIDTH_MEMORY = 26
SORTS = {"self": 2, "total": 3, "calls": 1, "self-memory": 4, "memory": 5}
COMMAND_WIDTH = 34


def main(argv: list[str]) -> int:
    import sys

    from . import Failure
    from .console import Parser
    from .inputs import add_arguments, find_traces

    parser = Parser(
        "report",
        "List the functions that took most time themselves, and where memory was\n"
        "recorded the bytes that each allocated, freed or not. FILE stands for the\n"
        "processes it started too, a folder for all traces in it; the figures are then\n"
        "those of all of them together.",
        "FILE… [--no-children] [-n N] [--sort BY]",
        EXAMPLES,
    )
    add_arguments(parser)
    parser.add_argument("-n", metavar="N", type=int, default=30, help="functions to list (default: 30)")
    parser.add_argument(
        "--sort", metavar="BY", choices=SORTS, default="self", help=f"{', '.join(SORTS)} (default: self)"
    )
    options = parser.parse_args(argv)
    if options.n < 1:
        raise Failure(f"-n must be at least 1, not {options.n}", code=2)

    inputs = find_traces(options.files, children=not options.no_children)
    if SORTS[options.sort] > 3 and not any(source.facts["memory"] for source in inputs.sources):
        raise Failure(f"--sort {options.sort}: no memory was recorded here; see vestige memory --help")
    totals, calls = _read_all(inputs)
    if calls:
        _show_head([source.facts for source, _ in calls], totals, sys.stdout)
        _show_functions(totals, options.n, sys.stdout, options.sort)
        if len(inputs.sources) > 1:
            _show_processes(calls, sys.stdout)
    return int(inputs.failed)


def show(trace: Trace, totals: Totals, rows: int, out: TextIO) -> None:
    """The table of one trace."""
    _show_head([trace.info()], totals, out)
    _show_functions(totals, rows, out)


def duration(ns: int) -> str:
    """Three digits that matter, with their unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            value = ns / size
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{ns} ns"


def size(count: int) -> str:
    """Three digits that matter, with their unit, a power of 1024 each."""
    for unit, one in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if count >= one:
            value = count / one
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{count} B"


def plural(count: int, one: str, more: str = "") -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def _read_all(inputs: Inputs) -> tuple[Totals, list[tuple[Source, int]]]:
    """Totals by function over all traces, and the calls of each."""
    from vestige._core import TraceError

    from .console import Progress

    sums: dict[str, list[int]] = {}
    read: list[tuple[Source, int]] = []
    totals: Totals = []
    records = sum(source.facts["records"] for source in inputs.sources) or 1
    memory = any(source.facts["memory"] for source in inputs.sources)
    done = 0
    for source in inputs.sources:
        progress = Progress(f"reading {source.path}", done / records, source.facts["records"] / records)
        done += source.facts["records"]
        try:
            totals = source.open().totals(all_windows=True, progress=progress, memory=memory)
        except (OSError, TraceError) as error:
            inputs.fail(source, error)
            continue
        finally:
            progress.clear()
        read.append((source, sum(entry[1] for entry in totals)))
        if len(inputs.sources) > 1:
            for name, *numbers in totals:
                sums[name] = [a + b for a, b in zip(sums.get(name, [0] * len(numbers)), numbers)]
    if len(inputs.sources) > 1:
        totals = [(name, *numbers) for name, numbers in sums.items()]
    return totals, read


def _show_head(facts: list[dict[str, Any]], totals: Totals, out: TextIO) -> None:
    span = max(each["end_ns"] for each in facts) - min(each["start_ns"] for each in facts)
    calls = f"{sum(entry[1] for entry in totals):,} calls"
    processes = f", {len(facts):,} processes" if len(facts) > 1 else ""
    threads = plural(sum(each["threads"] for each in facts), "thread")
    print(f"{duration(span)}, {calls}{processes}, {threads}", file=out)
    lost = sum(each["lost"] for each in facts)
    if lost:
        print(f"{lost:,} records could not be kept and are missing here", file=out)
    if any(each["dropped"] for each in facts):
        print(_dropped(facts), file=out)


def _dropped(facts: list[dict[str, Any]]) -> str:
    count = sum(each["dropped"] for each in facts)
    complete = duration(max(each["end_ns"] for each in facts) - max(each["complete_ns"] for each in facts))
    return f"{count:,} older records were dropped to stay within the bound; the last {complete} are complete"


def _show_functions(totals: Totals, rows: int, out: TextIO, sort: str = "self") -> None:
    whole = sum(entry[2] for entry in totals) or 1
    if not totals:
        return
    memory = len(totals[0]) > 4
    width = NAME_WIDTH_MEMORY if memory else NAME_WIDTH
    more = f" {'self mem':>8} {'all mem':>8}" if memory else ""
    print(f"{'calls':>11} {'self':>8} {'%':>4} {'total':>8}{more}  function", file=out)
    by = SORTS[sort]
    ranked = sorted(totals, key=lambda entry: (-entry[by], -entry[2], entry[0]))
    for name, count, self_ns, total_ns, *bytes_ in ranked[:rows]:
        share = f"{self_ns / whole:4.0%}"
        more = "".join(f" {size(number):>8}" for number in bytes_[:2])
        print(
            f"{count:>11,} {duration(self_ns):>8} {share} {duration(total_ns):>8}{more}  {_fit(name, width)}", file=out
        )
    if len(ranked) > rows:
        print(f"{'':>11} and {len(ranked) - rows:,} more functions", file=out)


def _show_processes(calls: list[tuple[Source, int]], out: TextIO) -> None:
    print(f"\n{'calls':>11} {'time':>8} {'pid':>7} {'rank':>4} {'ended':<9}  process", file=out)
    for source, count in calls:
        span = duration(source.facts["end_ns"] - source.facts["start_ns"])
        rank = "" if source.rank is None else str(source.rank)
        where = f"{source.facts['pid']:>7} {rank:>4} {source.ended:<9}"
        print(f"{count:>11,} {span:>8} {where}  {_cut(source.name, COMMAND_WIDTH)}", file=out)


def _fit(name: str, width: int) -> str:
    """A long name loses the part that tells least: a path its beginning, a C function's `… object>`."""
    name = " ".join(name.split())
    if len(name) <= width or name.startswith("<built-in"):
        return _cut(name, width)
    return "…" + name[1 - width :]


def _cut(text: str, width: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"
