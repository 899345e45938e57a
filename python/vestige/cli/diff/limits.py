"""The verdict of `vestige diff --fail-on`: what grew by more than a limit, and its cause in a sentence. Times count if
they grew by more than the noise, too; counts (counts.py) are exact.
"""

from __future__ import annotations

import re

from vestige.base.failure import Failure
from vestige.base.quantities import percent

from .counts import FIGURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .counts import Count, CountsComparison
    from .data import Comparison
    from .noise import Change

JUDGED = 0.01  # share of the whole; a function that makes up less cannot exceed a limit
FORM = re.compile(r"\s*(\w+)\s*>\s*(\d+(?:\.\d+)?)\s*(%?)\s*")


class Limit:
    """A limit such as `time>10%`, `calls>5%` or `queries>0`."""

    def __init__(self, text: str) -> None:
        found = FORM.fullmatch(text)
        known = ("time", *FIGURES)
        if not found or found[1] not in known or (found[1] == "time" and not found[3]):
            raise Failure(
                f"--fail-on: not a limit: {text!r}; write 'time>10%', 'calls>5%' or 'queries>0'; "
                f"there are {', '.join(known)}",
                code=2,
            )
        self.text = "".join(found[0].split())
        self.what = found[1]
        self.is_share = bool(found[3])
        self.value = float(found[2]) / (100 if self.is_share else 1)

    def exceeded_by(self, count: Count) -> bool:
        most = count.before * self.value if self.is_share else self.value
        return count.difference > most


def judge_counts(compared: CountsComparison, limits: Sequence[Limit]) -> list[str]:
    """Returns a sentence for each limit that was exceeded, in all or by a function."""
    found = []
    for limit in limits:
        total = compared.totals.get(limit.what)
        if total is None:
            continue
        least = JUDGED * total.after
        worst = [
            count
            for count in compared.counts
            if count.what == limit.what and not count.doubt and limit.exceeded_by(count) and count.difference >= least
        ]
        if limit.exceeded_by(total):
            cause = compared.cause(limit.what)
            because = f": {cause}" if cause else ""
            found.append(f"{limit.text}: {total.after:,} {limit.what}, {total.before:,} before{because}")
        elif worst:
            count = max(worst, key=lambda one: one.difference)
            found.append(f"{limit.text}: {count.name}: {count.after:,} {limit.what}, {count.before:,} before")
    return found


def judge_times(comparison: Comparison, limit: Limit) -> list[tuple[str, str, Change]]:
    """Returns the functions that are slower by more than the limit and the noise: name, what is slower, and
    the change.
    """
    found = []
    if comparison.whole.is_significant and comparison.whole.share > limit.value:
        found.append(("the whole", "time", comparison.whole))
    for row in sorted(comparison.rows, key=lambda row: (not row.is_significant, -abs(row.effect), row.name)):
        if row.is_new or row.is_gone:
            continue
        judged = [
            ("per call", row.self_call, row.typical_share),
            ("own time", row.self_time, row.self_time.after / (comparison.whole.after or 1)),
            ("per call in all", row.total_call, row.total_share),
        ]
        for what, change, part in judged:
            if part >= JUDGED and change.is_significant and change.share > limit.value:
                found.append((row.name, what, change))
                break
    return found


def tell_times(slower: Sequence[tuple[str, str, Change]], limit: Limit) -> str:
    names = [f"{name} ({percent(change.share)} {what})" for name, what, change in slower[:3]]
    more = f", {len(slower) - 3} more" if len(slower) > 3 else ""
    return f"slower by more than {100 * limit.value:.3g}%: {', '.join(names)}{more}"
