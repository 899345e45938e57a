"""Compares two Chrome files of one workload on a GPU, torch.profiler's and ours. Facts in both must be equal, times
must be near.
"""

from __future__ import annotations

from collections import Counter

from vestige.base.printable import one_line as clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Event = dict[str, Any]

WORK = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
LAUNCHES = ("Launch", "Memcpy", "Memset")  # parts of the names of calls that both files must have
NEAR = 0.25  # relative difference of durations, because two runs are never equal
NEAR_US = 3.0
SHOWN = 5  # the most differences shown of each kind


class Timeline:
    """The device's events in a file."""

    def __init__(self, document: Any) -> None:
        events = document.get("traceEvents") if isinstance(document, dict) else document
        self.events = [event for event in events or () if isinstance(event, dict) and event.get("ph") == "X"]
        self.work = sorted(self._of(WORK), key=lambda event: float(event["ts"]))
        self.calls = {_arg(event, "correlation"): event for event in self._of(CALLS)}
        self.names = {_arg(event, "External id"): event["name"] for event in self._of(("cpu_op", "user_annotation"))}

    def _of(self, categories: tuple[str, ...]) -> list[Event]:
        return [event for event in self.events if event.get("cat") in categories]

    def counts(self) -> Counter[str]:
        return Counter(f"{event['cat']} {event['name']}" for event in self.work)

    def launches(self) -> Counter[str]:
        names = (event["name"] for event in self._of(CALLS))
        return Counter(name for name in names if any(part in name for part in LAUNCHES))

    def causes(self) -> Counter[str]:
        """Returns, for each kernel, the innermost operator and the call that launched it."""
        found: Counter[str] = Counter()
        for event in self.work:
            call = self.calls.get(_arg(event, "correlation"), {}).get("name", "no call")
            operator = self.names.get(_arg(event, "External id"), "no operator")
            found[f"{event['name']} from {call} in {operator}"] += 1
        return found

    def streams(self) -> list[list[str]]:
        """Returns the names on each stream in order of time. Streams are in the order of their first use, because their
        numbers differ from run to run.
        """
        found: dict[Any, list[str]] = {}
        for event in self.work:
            found.setdefault((event["pid"], event["tid"]), []).append(event["name"])
        return list(found.values())

    def too_early(self) -> list[str]:
        """Returns the activities that began before the call that launched them."""
        return [
            event["name"]
            for event in self.work
            if (call := self.calls.get(_arg(event, "correlation"))) is not None
            and float(event["ts"]) < float(call["ts"])
        ]

    def durations(self) -> dict[str, float]:
        """Returns the median duration of each name, in µs."""
        found: dict[str, list[float]] = {}
        for event in self.work:
            found.setdefault(event["name"], []).append(float(event.get("dur", 0)))
        return {name: sorted(each)[len(each) // 2] for name, each in found.items()}


def _arg(event: Event, name: str) -> Any:
    args = event.get("args")
    return args.get(name) if isinstance(args, dict) else None


def compare(theirs: Timeline, ours: Timeline) -> list[tuple[str, list[str]]]:
    """Returns the compared facts, each with its differences."""
    return [
        (
            f"{sum(theirs.counts().values()):,} kernels, copies and sets, by name",
            _counts(theirs, ours, Timeline.counts),
        ),
        ("calls that launch, by name", _counts(theirs, ours, Timeline.launches)),
        ("the call and the operator of each", _counts(theirs, ours, Timeline.causes)),
        ("the order on each stream", _order(theirs.streams(), ours.streams())),
        ("nothing begins before its call", [f"{name} does" for name in ours.too_early()]),
        (f"durations, to {NEAR:.0%} or {NEAR_US:g} us", _times(theirs.durations(), ours.durations())),
    ]


def _counts(theirs: Timeline, ours: Timeline, count: Callable[[Timeline], Counter[str]]) -> list[str]:
    a, b = count(theirs), count(ours)
    return [f"{name}: torch.profiler has {a[name]:,}, vestige {b[name]:,}" for name in {**a, **b} if a[name] != b[name]]


def _order(theirs: list[list[str]], ours: list[list[str]]) -> list[str]:
    if len(theirs) != len(ours):
        return [f"torch.profiler has {len(theirs)} streams, vestige {len(ours)}"]
    found = []
    for number, (a, b) in enumerate(zip(theirs, ours), 1):
        if a != b:
            place = next((at for at, pair in enumerate(zip(a, b)) if pair[0] != pair[1]), min(len(a), len(b)))
            found.append(f"stream {number} of {len(theirs)}: from the {place + 1:,}. on")
    return found


def _times(theirs: dict[str, float], ours: dict[str, float]) -> list[str]:
    return [
        f"{name}: torch.profiler {theirs[name]:.1f} us, vestige {ours[name]:.1f} us"
        for name in theirs.keys() & ours.keys()
        if abs(theirs[name] - ours[name]) > max(NEAR_US, NEAR * theirs[name])
    ]


def verdict(found: list[tuple[str, list[str]]]) -> list[str]:
    lines = []
    for what, differences in found:
        lines.append(f"{'DIFFERENT' if differences else 'the same':<9}  {what}")
        lines += [f"           {clean(line)}" for line in sorted(differences)[:SHOWN]]
        if len(differences) > SHOWN:
            lines.append(f"           and {len(differences) - SHOWN:,} more")
    return lines
