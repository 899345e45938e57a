"""ProfilerActivity with torch's members, and the activities that a program asks for."""

from __future__ import annotations

import enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class ProfilerActivity(enum.Enum):
    """Kinds of work that a profile can collect. vestige records the CPU's work and that of CUDA devices."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5


CPU_TYPES = frozenset(  # torch's names for activities of the CPU
    (
        "CPU_INSTANT_EVENT",
        "CPU_OP",
        "CUDA_DRIVER",
        "CUDA_RUNTIME",
        "EXTERNAL_CORRELATION",
        "PRIVATEUSE1_DRIVER",
        "PRIVATEUSE1_RUNTIME",
        "PYTHON_FUNCTION",
        "USER_ANNOTATION",
        "XPU_DRIVER",
        "XPU_RUNTIME",
    )
)


def supported_activities() -> set[ProfilerActivity]:
    """Returns the activities that can be collected: CPU, and CUDA if its driver and libcupti are available."""
    from vestige.recording.devices import cuda_trouble

    return {ProfilerActivity.CPU} if cuda_trouble() else {ProfilerActivity.CPU, ProfilerActivity.CUDA}


def listed(activities: Iterable[Any]) -> list[Any]:
    """Returns the activities as a list, because they are read twice."""
    try:
        return list(activities)
    except TypeError:
        kind = type(activities).__name__
        raise TypeError(f"activities must be a list or set of ProfilerActivity, not {kind}") from None


def check_activities(activities: Iterable[object] | None) -> frozenset[ProfilerActivity]:
    """Returns the activities to collect; None stands for all. torch's own members are converted to ours.

    As in torch, an item is an activity, or a dict from activities to the names of the types to collect.
    """
    if activities is None:
        return frozenset({ProfilerActivity.CPU})
    chosen: list[ProfilerActivity] = []
    strangers: list[object] = []
    for item in activities:
        for member in item if isinstance(item, dict) else (item,):
            activity = _member(member)
            if activity is None:
                strangers.append(item)
            elif activity in chosen:
                raise ValueError(f"Activity {activity} specified more than once")
            else:
                chosen.append(activity)
    if not chosen:
        raise AssertionError("No valid profiler activities found")
    if strangers:
        raise TypeError(f"Expected ProfilerActivity or dict, got {type(strangers[0])}")
    return frozenset(chosen)


def check_filters(activities: Iterable[object]) -> dict[ProfilerActivity, set[str]]:
    """Returns, by activity, the names of the types to collect, if the program gives some. vestige collects every type
    anyway; a name that torch does not know raises the error that torch would raise.
    """
    filters: dict[ProfilerActivity, set[str]] = {}
    for item in activities:
        for member, names in item.items() if isinstance(item, dict) else ():
            activity = _member(member)
            if activity is not None:
                filters[activity] = set(names)
    for name in sorted(filters.get(ProfilerActivity.CPU, set()) - CPU_TYPES):
        raise RuntimeError(f"Unknown or non-member activity type name: '{name}'")
    return filters


def _member(activity: object) -> ProfilerActivity | None:
    if isinstance(activity, ProfilerActivity):
        return activity
    name = str(getattr(activity, "name", ""))
    if type(activity).__name__ == "ProfilerActivity" and name in ProfilerActivity.__members__:
        return ProfilerActivity[name]  # an activity of torch's own enum
    return None
