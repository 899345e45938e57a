"""`vestige diff`: what got slower and what faster between runs of a program, and whether that is more than chance."""

from __future__ import annotations

import sys

from vestige.base.failure import Failure
from vestige.base.printable import one_line as clean
from vestige.base.quantities import duration, percent, plural
from vestige.base.terminal import Paint, cut, point, width_of
from vestige.cli.console import Parser, check_absent, check_least
from vestige.cli.patterns import Patterns, add_patterns
from vestige.cli.report.notes import reduced_estimates
from vestige.reading.layout import Layout
from vestige.reading.report_columns import DIFF, records, write_csv

from . import counts_shown, findings
from .counts import CountsComparison, inexact
from .data import Comparison, read_side, reduced_in
from .limits import Limit, judge_counts, judge_times, tell_times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any, TextIO

    from vestige.reading.report_columns import Column

    from .data import Row, Run
    from .noise import Change

EXCEEDED = 3  # exit code of --fail-on: 1 is a file that cannot be used, 2 wrong usage
SORTS = [column.key for column in DIFF.columns if column.text or column.key == "effect"]
EXAMPLES = """\
  vestige diff before.vst after.vst
  vestige diff main/ branch/ --fail-on 'time>10%'     a folder: all runs in it
  vestige diff a.vst b.vst --calls --fail-on 'calls>5%' --fail-on 'queries>0'
  vestige diff a.vst b.vst --sort total -n 10
  vestige diff a.vst b.vst --format json | jq '.regressions'
  vestige diff a.vst b.vst -o diff.svg           a flame graph: red is slower

Functions are matched by file and name. "self time" adds up all calls; self/call
and total/call are of the median call. A ~ marks a change within the noise. With
one run on each side, the noise is three standard errors, from how much calls
differ within a run and functions between runs; with several, it comes from how
much the runs differ. --fail-on exits with 3 if the whole, or a function that
makes up 1% of it, grew by more than the limit; a time also by more than the
noise. Limits are for time, calls, queries, exceptions, imports, operators,
allocations and bytes. Counts do not depend on the clock: functions that serve
threads, or whose counts differ between the runs of a side, are not judged.
"""


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    limits = [Limit(text) for text in options.fail_on]
    check_least("-n", options.n, 1)
    _check_files(options)
    patterns = Patterns(options.include, options.exclude)
    before, first = read_side(options.before, not options.no_children, patterns)
    after, second = read_side(options.after, not options.no_children, patterns)
    if not before or not after:
        return 1
    patterns.check(second)
    comparison = Comparison(before, after)
    slower = {limit: judge_times(comparison, limit) for limit in limits if limit.what == "time"}
    verdicts = [tell_times(found, limit) for limit, found in slower.items() if found]
    figures = {limit.what for limit in limits} - {"time"}
    if figures:
        for reason in inexact((*before, *after), figures):
            raise Failure(f"{reason}, so --fail-on cannot judge counts", code=1)
    if options.calls or figures:
        counted = CountsComparison(before, after)
        verdicts += judge_counts(counted, limits)
    if options.calls:
        counts_shown.show(counted, comparison, verdicts, options, sys.stdout)
    elif options.format == "text":
        _show(comparison, _sorted(comparison.rows, options.sort), options, sys.stdout)
    else:
        regressions = [found for each in slower.values() for found in each]
        _write(comparison, _sorted(comparison.rows, options.sort), regressions, options, sys.stdout)
    _draw(comparison, options)
    if first.failed or second.failed:
        return 1
    sys.stdout.flush()
    for verdict in verdicts:
        print(clean(f"vestige: {verdict}"), file=sys.stderr)
    return EXCEEDED if verdicts else 0


def _parser() -> Parser:
    parser = Parser(
        "diff",
        "Show what got slower and what faster from A to B, two recordings of a program or\n"
        "two folders of recordings. Compares functions by self time, time per call and\n"
        "number of calls, and says whether a change is more than chance. The traces of a\n"
        "file's child processes belong to it.",
        "A B [options]",
        EXAMPLES,
    )
    parser.add_argument("before", metavar="A", help="a trace (.vst) or a folder of runs from before the change")
    parser.add_argument("after", metavar="B", help="a trace (.vst) or a folder of runs from after the change")
    parser.add_argument(
        "--no-children", action="store_true", help="read only the files themselves, not the traces of child processes"
    )
    parser.add_argument(
        "--calls", action="store_true", help="compare counts, which do not depend on the clock, instead of times"
    )
    parser.add_argument(
        "--fail-on",
        metavar="LIMIT",
        action="append",
        default=[],
        help="exit with code 3 if B exceeds a limit such as 'time>10%%', 'calls>5%%' or 'queries>0'; may be repeated",
    )
    parser.add_argument("-n", metavar="N", type=int, default=30, help="functions to list (default: 30)")
    parser.add_argument("--sort", metavar="BY", choices=SORTS, default="effect", help=f"sort by {', '.join(SORTS)}")
    parser.add_argument("-o", "--output", metavar="FILE.svg", help="also write a flame graph of the difference")
    parser.add_argument(
        "--html", metavar="FILE", help="also write a page with that graph, which zooms, and the changes"
    )
    parser.add_argument("--view", action="store_true", help="open that page in the browser")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    add_patterns(parser)
    parser.add_argument("--format", choices=("text", "json", "csv"), default="text", help="output format")
    return parser


def _check_files(options: Namespace) -> None:
    if options.output is not None and not options.output.endswith(".svg"):
        raise Failure(f"-o {options.output}: the picture is an .svg; a page is --html", code=2)
    for path in (options.output, options.html):
        check_absent(path, force=options.force)


def _draw(comparison: Comparison, options: Namespace) -> None:
    """Writes or shows the flame graph, if an option asks for one."""
    if options.output is None and options.html is None and not options.view:
        return
    from . import flame

    title = f"{_describe(comparison.before)}  →  {_describe(comparison.after)}"
    picture = flame.draw(flame.build(comparison.before, comparison.after), title)
    if options.output is not None:
        flame.write(options.output, flame.alone(picture))
    if options.html is not None or options.view:
        page = flame.page(picture, title, [finding.text for finding in findings.find(comparison)])
        if options.html is not None:
            flame.write(options.html, page)
        if options.view:
            _open_page(options.html, page)


def _open_page(path: str | None, page: str) -> None:
    """Opens the page in the browser. Without a path, writes a file that nobody removes, because it is unknown when the
    browser reads it.
    """
    import tempfile
    import webbrowser
    from pathlib import Path

    if path is None:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="diff-", suffix=".html", delete=False) as file:
            file.write(page)
        path = file.name
    address = Path(path).resolve().as_uri()
    print(f"the flame graph: {address}", file=sys.stderr)
    webbrowser.open(address)


def _sorted(rows: list[Row], by: str) -> list[Row]:
    """Sorts rows; changes that are more than chance come first."""
    ranked = DIFF.sorted(rows, DIFF.find(by))
    return ranked if by == "name" else sorted(ranked, key=lambda row: not row.is_significant)


# ---- text ----------------------------------------------------------------------


def _show(comparison: Comparison, rows: list[Row], options: Namespace, out: TextIO) -> None:
    paint, width = Paint(out), width_of(out)
    for side, runs in (("A", comparison.before), ("B", comparison.after)):
        print(cut(f"{side}  {_describe(runs)}", width), file=out)
        for line in reduced_estimates(reduced_in(runs)):
            print(cut(f"{side}  {line}", width), file=out)
    print(f"time  {_change(comparison.whole)}", file=out)
    print(f"noise between runs: {comparison.floor:.1%} of a function's time", file=out)
    found = [line for finding in findings.find(comparison) for line in point(finding.text, width)]
    print("\n".join(found or ["no finding: no function changed by 1% of the time and more than the noise"]), file=out)
    print(file=out)
    table = Layout(DIFF.in_text(()), rows[: options.n], width, style=_style)
    print(paint(table.head, "head"), file=out)
    for row in rows[: options.n]:
        print(table.line(row, paint), file=out)
    rest = rows[options.n :]
    if rest:
        significant = sum(row.is_significant for row in rest)
        text = f"and {plural(len(rest), 'more function')}, {significant:,} of them beyond the noise"
        print(paint(f"{'':>11} {text}", "dim"), file=out)


def _describe(runs: list[Run]) -> str:
    paths = runs[0].path if len(runs) == 1 else f"{runs[0].path} … {runs[-1].path}"
    mean = sum(run.ns for run in runs) / len(runs)
    calls = sum(run.calls for run in runs) / len(runs)
    lost = ", records are missing" if any(run.lost for run in runs) else ""
    estimated = ", estimated" if any(budget.functions for run in runs for budget in run.budgets) else ""
    return f"{plural(len(runs), 'run')}, {duration(mean)}, {calls:,.0f} calls{estimated}{lost}  {paths}"


def _change(change: Change) -> str:
    mark = "" if change.is_significant else ", within the noise"
    return (
        f"{duration(change.before)} → {duration(change.after)}, {percent(change.share)}"
        f" (noise ±{change.noise / (change.before or 1):.1%}{mark})"
    )


def _style(row: Row, column: Column) -> str | None:
    if not row.is_significant:
        return "dim" if column.key in ("time", "name") else None
    return ("worse" if row.effect > 0 else "better") if column.key == "time" else None


# ---- for programs -----------------------------------------------------------------


def _write(
    comparison: Comparison, rows: list[Row], slower: list[tuple[str, str, Change]], options: Namespace, out: TextIO
) -> None:
    if options.format == "csv":
        write_csv(DIFF.in_files(()), rows, out)
        return
    import json

    document = {
        "before": [_run(run) for run in comparison.before],
        "after": [_run(run) for run in comparison.after],
        "time_ns": _numbers(comparison.whole),
        "noise_between_runs": comparison.floor,
        "regressions": [{"function": name, "what": what, **_numbers(change)} for name, what, change in slower],
        "findings": [finding.as_json() for finding in findings.find(comparison)],
        "functions": records(DIFF.in_files(()), rows),
    }
    json.dump(document, out, indent=1)
    print(file=out)


def _run(run: Run) -> dict[str, Any]:
    files = [source.path for source in run.sources]
    told = {"files": files, "duration_ns": run.ns, "calls": run.calls, "missing_records": run.lost}
    return told | ({"reduced_estimates": reduced_in([run])} if run.budgets else {})


def _numbers(change: Change) -> dict[str, Any]:
    return {
        "before": change.before,
        "after": change.after,
        "change": change.known_share,
        "noise": change.noise,
        "significant": change.is_significant,
    }
