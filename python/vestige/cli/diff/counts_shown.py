"""The counts of `vestige diff --calls`, as text, JSON and CSV."""

from __future__ import annotations

from vestige.base.printable import one_line as clean
from vestige.base.quantities import percent, plural
from vestige.base.terminal import Paint, cut, point, width_of
from vestige.reading.layout import Layout
from vestige.reading.report_columns import DIFF_COUNTS, records, write_csv

from .counts import inexact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence
    from typing import TextIO

    from vestige.reading.report_columns import Column

    from .counts import Count, CountsComparison
    from .data import Comparison


def show(
    counted: CountsComparison, comparison: Comparison, verdicts: list[str], options: Namespace, out: TextIO
) -> None:
    rows = counted.changed()
    if options.format == "csv":
        write_csv(DIFF_COUNTS.in_files(()), rows, out)
    elif options.format == "json":
        import json

        document = {
            "before": [[source.path for source in run.sources] for run in comparison.before],
            "after": [[source.path for source in run.sources] for run in comparison.after],
            "totals": {what: {"before": one.before, "after": one.after} for what, one in counted.totals.items()},
            "exceeded": verdicts,
            "counts": records(DIFF_COUNTS.in_files(()), rows),
        }
        json.dump(document, out, indent=1)
        print(file=out)
    else:
        _show(counted, comparison, rows, options, out)


def _show(
    counted: CountsComparison, comparison: Comparison, rows: Sequence[Count], options: Namespace, out: TextIO
) -> None:
    paint, width = Paint(out), width_of(out)
    for side, runs in (("A", comparison.before), ("B", comparison.after)):
        print(cut(f"{side}  {plural(len(runs), 'run')}  {runs[0].path}", width), file=out)
    for reason in inexact((*comparison.before, *comparison.after), ()):
        print(cut(reason, width), file=out)
    for what, total in counted.totals.items():
        print(f"{what}  {total.before:,} → {total.after:,}, {_share(total)}", file=out)
    causes = [
        cause for what, total in counted.totals.items() if total.difference > 0 and (cause := counted.cause(what))
    ]
    for cause in dict.fromkeys(causes):
        print("\n".join(point(clean(cause), width)), file=out)
    doubted = sum(bool(row.doubt) for row in rows)
    if doubted:
        print(f"~ {plural(doubted, 'count')} not judged: threads, timers or hash seeds decide", file=out)
    if not rows:
        print("no count differs", file=out)
        return
    print(file=out)
    table = Layout(DIFF_COUNTS.in_text(()), rows[: options.n], width, style=_style)
    print(paint(table.head, "head"), file=out)
    for row in rows[: options.n]:
        print(table.line(row, paint) + " ~" * bool(row.doubt), file=out)
    if rows[options.n :]:
        print(paint(f"{'':>11} and {plural(len(rows) - options.n, 'more count')}", "dim"), file=out)


def _share(total: Count) -> str:
    if not total.difference:
        return "no change"
    return percent(total.difference / total.before) if total.before else "new"


def _style(row: Count, column: Column) -> str | None:
    if row.doubt:
        return "dim"
    return ("worse" if row.difference > 0 else "better") if column.key == "change" else None
