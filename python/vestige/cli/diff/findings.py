"""Describes the changes between the sides of a `vestige diff`, in at most five sentences: calls that only one side
makes, below the user's own function that makes them (new_calls.py); functions that are called more often or less often,
functions whose calls take longer or shorter, and functions that are new or gone for no such caller. Each change is more
than chance, and at least a hundredth of the time.
"""

from __future__ import annotations

from vestige.base.quantities import duration, plural, signed
from vestige.reading.kinds import PYTHON

from .new_calls import find_groups

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

    def __init__(self, kind: str, where: dict[str, Any], text: str, effect: float, **numbers: float) -> None:
        self.kind = kind
        self.where = where
        self.text = text
        self.numbers = {**numbers, "effect_ns": effect}

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "text": self.text, "where": self.where, "numbers": self.numbers}


def find(comparison: Comparison) -> list[Finding]:
    """Returns the findings, the largest effect first."""
    least = EFFECT * max(comparison.whole.before, comparison.whole.after)
    rows = [row for row in comparison.rows if row.is_significant and abs(row.effect) >= least]
    found: dict[tuple[str, str], Finding] = {}  # each cause is mentioned once
    causes, explained = _causes(comparison, least) if rows else ([], {})
    for row in sorted(rows, key=lambda row: -abs(row.effect)):
        if 2 * abs(explained.get(row.name, 0.0)) > abs(row.effect):
            continue
        finding = _about(row, comparison)
        if finding is not None:
            found.setdefault((finding.kind, finding.where["function"]), finding)
    return sorted([*causes, *found.values()], key=lambda finding: -abs(finding.numbers["effect_ns"]))[:MOST]


def _causes(comparison: Comparison, least: float) -> tuple[list[Finding], dict[str, float]]:
    """Returns findings about calls that only one side makes, and how much they explain of each function's change."""
    found: list[Finding] = []
    explained: dict[str, float] = {}
    for group, text in find_groups(comparison):
        if abs(group.effect) >= least:
            where = {"function": group.caller.shown, "calls": [node.shown for node in group.called]}
            found.append(Finding("new" if group.effect > 0 else "gone", where, text, group.effect))
            for key, part in group.parts.items():
                name = comparison.by_key[key].name
                explained[name] = explained.get(name, 0.0) + part
    return found, explained


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
    where = {"function": row.name}
    if row.is_new:
        text = f"{row.name} is new: {plural(round(after), 'call')}, {effect}."
        return Finding("new", where, text, row.effect, **calls)
    if row.is_gone:
        text = f"{row.name} is gone: it had {plural(round(before), 'call')}, {effect}."
        return Finding("gone", where, text, row.effect, **calls)
    ratio = after / before if before else 1.0
    if not 1 / RATIO < ratio < RATIO:
        around = _around(row, comparison)
        inside = "" if around is row else f" in {row.name}"
        text = f"{around.name} is called {_times(ratio)} as often ({before:,.0f} → {after:,.0f} calls), {effect}"
        return Finding("calls", {"function": around.name}, f"{text}{inside}.", row.effect, **calls)
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
    return Finding("time", where, text, row.effect, before_ns=change.before, after_ns=change.after, **calls)


def _times(ratio: float) -> str:
    """Returns `3 times`, `2.5 times`, `0.33 times`."""
    shown = f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"
    return f"{shown} times"
