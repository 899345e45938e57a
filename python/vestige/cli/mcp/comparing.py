"""Compares two traces for agents: `vestige diff` in fewer words."""

from __future__ import annotations

from vestige.base.failure import Failure
from vestige.base.quantities import duration, percent, signed
from vestige.cli.diff.data import Comparison, read_side, reduced_in
from vestige.cli.diff.findings import find
from vestige.cli.patterns import Patterns
from vestige.cli.report.notes import reduced_estimates

from .bounded import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vestige.cli.diff.data import Row
    from vestige.cli.diff.noise import Change

    from .folder import Folder


def compare(folder: Folder, before: str, after: str, max_tokens: int) -> str:
    paths = [folder.trace(before), folder.trace(after)]
    patterns = Patterns(None, None)
    sides = [read_side(path, True, patterns)[0] for path in paths]
    if not all(sides):
        raise Failure("a trace could not be read to its end")
    comparison = Comparison(*sides)
    answer = Answer(max_tokens)
    answer.add(f"{folder.id_of(paths[0])} → {folder.id_of(paths[1])}: {_change(comparison.whole)}")
    rows = sorted(comparison.rows, key=lambda row: (not row.is_significant, -abs(row.effect), row.name))
    for finding in find(comparison):
        answer.add(f"• {finding.text}")
    for path, runs in zip(paths, sides, strict=True):
        for line in reduced_estimates(reduced_in(runs)):
            answer.add(f"{folder.id_of(path)}: {line}")
    beyond = sum(row.is_significant for row in rows)
    answer.add(f"{beyond:,} of {len(rows):,} functions changed by more than chance may explain; `~`: within chance")
    answer.add(" self time      calls       self a call  function")
    for row in rows:
        answer.add(_line(row))
    return answer.text()


def _change(change: Change) -> str:
    chance = "" if change.is_significant else ", within chance"
    return f"{duration(change.before)} → {duration(change.after)}, {percent(change.share)}{chance}"


def _line(row: Row) -> str:
    mark = " " if row.is_significant else "~"
    difference = signed(duration(row.self_time.difference), row.self_time.difference)
    before, after = row.calls
    calls = "new" if row.is_new else "gone" if row.is_gone else f"{before:,.0f} → {after:,.0f}"
    each = f"{duration(row.self_call.before)} → {duration(row.self_call.after)}"
    return f"{mark}{difference:>9} {calls:>14}  {'' if row.is_new or row.is_gone else each:>18}  {row.name}"
