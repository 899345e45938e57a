"""Decides whether a difference is more than chance: the statistics of `vestige diff`. With several runs on a side, the
noise is how much the runs differ: Welch's test, in which the spread of one function is drawn towards the spread of all
functions, because few runs may agree by luck. With one run on each side, the noise has two parts: how much the calls of
a function differ within its run (the standard error of stretches of its calls), and how much functions in general
differ between the two runs after their common change is removed.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SIGMAS = 3.0  # standard errors that count as noise, with one run on each side
# Student's t for 99 %, two-sided, by degrees of freedom; for more degrees, the value of the normal distribution.
STUDENT: tuple[float, ...] = (63.66, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169)
STUDENT += (3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845)
STUDENT += (2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750)
NORMAL = 2.576
FLOOR, FLOOR_MAX = 0.02, 0.5  # relative noise between runs if it cannot be estimated, and the largest estimate
UNKNOWN = 0.05  # the least relative error of a function with too few calls to measure it
DISTURBANCE = 5e6  # the least error of such a function, in ns: some time slices of another program
PRIOR = 4  # weight of the spread of all functions in the estimate for a function, in degrees of freedom
FUNCTIONS_MIN = 5  # with fewer functions, their common noise cannot be estimated


class Change:
    """A quantity before and after, and the difference that chance may make."""

    __slots__ = ("after", "before", "noise")

    def __init__(self, before: float, after: float, noise: float) -> None:
        self.before = before
        self.after = after
        self.noise = noise

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def size(self) -> float:
        return abs(self.difference)

    @property
    def share(self) -> float:
        """Returns the change as a share of the value before; infinite if that was 0."""
        if self.before > 0:
            return self.difference / self.before
        return math.inf if self.after > 0 else 0.0

    @property
    def known_share(self) -> float | None:
        return self.share if math.isfinite(self.share) else None

    @property
    def is_significant(self) -> bool:
        return self.size > self.noise


def median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    if not ordered:
        return 0.0
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def floor_of(ratios: Sequence[float]) -> float:
    """Returns the relative noise between two runs, from the distances of the functions' ratios from the
    median ratio.
    """
    logs = [math.log(ratio) for ratio in ratios if ratio > 0]
    if len(logs) < FUNCTIONS_MIN:
        return FLOOR
    common = median(logs)
    return min(max(1.4826 * median(abs(one - common) for one in logs), FLOOR / 2), FLOOR_MAX)


def compare_single(before: float, after: float, errors: tuple[float, float], floor: float) -> Change:
    """Compares one run of each side; `errors` are their standard errors."""
    between = floor * (before + after) / 2
    return Change(before, after, SIGMAS * math.sqrt(between**2 + errors[0] ** 2 + errors[1] ** 2))


def spread_of(values: Sequence[float]) -> float | None:
    """Returns the relative standard deviation; None for fewer than two values."""
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1)) / mean if mean else 0.0


def compare_runs(before: Sequence[tuple[float, float]], after: Sequence[tuple[float, float]], general: float) -> Change:
    """Compares sides with several runs on at least one of them; each run has its standard error. `general` is the
    relative spread of functions between runs. The noise is at least as large as the runs' own errors.
    """
    means, squares, below = [], 0.0, 0.0
    for side in (before, after):
        values = [value for value, _ in side]
        mean = sum(values) / len(values)
        freedom = len(values) - 1
        own = (spread_of(values) or 0.0) * mean
        between = (PRIOR * (general * mean) ** 2 + freedom * own**2) / (PRIOR + freedom)
        within = sum(error**2 for _, error in side) / len(side)
        part = max(between, within) / len(values)
        means.append(mean)
        squares += part
        below += part**2 / (PRIOR + freedom)
    freedom_of_both = squares**2 / below if below else PRIOR
    return Change(means[0], means[1], _student(freedom_of_both) * math.sqrt(squares))


def _student(freedom: float) -> float:
    index = max(int(freedom), 1) - 1
    return STUDENT[index] if index < len(STUDENT) else NORMAL
