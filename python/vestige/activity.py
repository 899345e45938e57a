"""ProfilerActivity, as torch has it, and what becomes of the activities that a program asks for."""

from __future__ import annotations

import enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class ProfilerActivity(enum.Enum):
    """Where work is done. vestige records the CPU's."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5


_warned = False


def check_activities(activities: Iterable[ProfilerActivity] | None) -> frozenset[ProfilerActivity]:
    """The activities to collect; None and empty stand for all that there are. torch's own members count as ours."""
    if activities is None:
        return frozenset({ProfilerActivity.CPU})
    try:
        wanted = list(activities)
    except TypeError:
        kind = type(activities).__name__
        raise TypeError(f"activities must be a list or set of ProfilerActivity, not {kind}") from None
    chosen = frozenset(map(_member, wanted)) or frozenset({ProfilerActivity.CPU})
    if chosen != {ProfilerActivity.CPU}:
        _warn_of_devices(chosen)
    return chosen


def _member(activity: object) -> ProfilerActivity:
    if isinstance(activity, ProfilerActivity):
        return activity
    name = str(getattr(activity, "name", ""))
    if type(activity).__name__ == "ProfilerActivity" and name in ProfilerActivity.__members__:
        return ProfilerActivity[name]  # torch's
    raise TypeError(f"activities must hold members of ProfilerActivity, not {activity!r}")


def _warn_of_devices(chosen: frozenset[ProfilerActivity]) -> None:
    global _warned
    if _warned:
        return
    _warned = True
    import warnings

    names = ", ".join(sorted(activity.name for activity in chosen - {ProfilerActivity.CPU}))
    message = f"vestige records the CPU only: no {names} activity is collected"
    warnings.warn(message, stacklevel=4)  # of profile() in the program
