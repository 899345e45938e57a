"""Describes the changes between the sides of a `vestige diff`, in at most five sentences: functions that are called
more often or less often, functions whose calls take longer or shorter, new functions and functions that are gone. Each
change is more than chance, and at least a hundredth of the time.
"""

from __future__ import annotations

from vestige.base.quantities import duration, plural, signed
from vestige.reading.kinds import PYTHON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .data import Comparison, Row

MOST = 5
EFFECT = 0.01  # share of the longer side; smaller changes are not mentioned
RATIO = 1.25  # factor by which calls, or the time of a call, must change
CALLS_TO_TELL = 10  # with at least this many calls on both sides, equal numbers of calls are not chance


class Finding:
    """A sentence about a change, with the members that findings of `vestige report` have."""

    def __init__(self, kind: str, row: Row, text: str, effect: float | None = None, **numbers: float) -> None:
        self.kind = kind
        self.row = row
        self.text = text
        self.numbers = {**numbers, "effect_ns": row.effect if effect is None else effect}

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "text": self.text,
            "where": {"function": self.row.name},
            "numbers": self.numbers,
        }


def find(comparison: Comparison) -> list[Finding]:
    """Returns the findings, the largest effect first."""
    least = EFFECT * max(comparison.whole.before, comparison.whole.after)
    rows = [row for row in comparison.rows if row.is_significant and abs(row.effect) >= least]
    found: dict[tuple[str, str], Finding] = {}  # each cause is mentioned once
    for row in sorted(rows, key=lambda row: -abs(row.effect)):
        finding = _about(row, comparison)
        if finding is not None:
            found.setdefault((finding.kind, finding.row.name), finding)
    return list(found.values())[:MOST]


def _around(row: Row, comparison: Comparison) -> Row:
    """Returns the function that explains a changed number of calls: a function around `row` that calls it once per
    call, so both have equal numbers of calls, before and after. Of several, returns the one with the longest total
    time.
    """
    rows = [other for other in comparison.rows if other.kind == PYTHON and other.calls == row.calls]
    rows = [other for other in rows if all(a >= b for a, b in zip(other.total_time, row.total_time))]
    return max(rows, key=lambda other: sum(other.total_time), default=row) if min(row.calls) >= CALLS_TO_TELL else row


def _about(row: Row, comparison: Comparison) -> Finding | None:
    before, after = row.calls
    effect = signed(duration(row.effect), row.effect)
    calls = {"calls_before": before, "calls_after": after}
    if row.is_new:
        return Finding("new", row, f"{row.name} is new: {plural(round(after), 'call')}, {effect}.", **calls)
    if row.is_gone:
        return Finding("gone", row, f"{row.name} is gone: it had {plural(round(before), 'call')}, {effect}.", **calls)
    ratio = after / before if before else 1.0
    if not 1 / RATIO < ratio < RATIO:
        around = _around(row, comparison)
        where = "" if around is row else f" in {row.name}"
        text = f"{around.name} is called {_times(ratio)} as often ({before:,.0f} → {after:,.0f} calls), {effect}"
        return Finding("calls", around, f"{text}{where}.", row.effect, **calls)
    # Compares median calls; if few calls make the median unsure, compares all calls together.
    change, what = row.self_call, "a call"
    if not change.is_significant:
        change, what = row.self_time, "in all"
    longer = change.after / change.before if change.before > 0 else 1.0
    if not change.is_significant or 1 / RATIO < longer < RATIO:
        return None
    text = (
        f"{row.name} takes {_times(longer)} as long {what} ({duration(change.before)} → {duration(change.after)}), "
        f"{effect}."
    )
    return Finding("time", row, text, before_ns=change.before, after_ns=change.after, **calls)


def _times(ratio: float) -> str:
    """Returns `3 times`, `2.5 times`, `0.33 times`."""
    shown = f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"
    return f"{shown} times"
