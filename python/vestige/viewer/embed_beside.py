"""What a page made by `vestige view --html` has beside spans: the lanes of tasks, and others (embed_lanes.py).

Columns are varints, as embed.py has them. Each part has a most, so that the page stays small; what is above it is left
out or drawn coarser, and the page says so.
"""

from __future__ import annotations

from vestige.reading.awaits import awaits

from .embed_lanes import pack_lanes
from .tasks import UNNAMED, describe_groups
from .varints import varints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .embed import Blob
    from .traces import Shown, Traces

STEPS_MAX = 500_000


def pack_beside(shown: Shown, traces: Traces, blob: Blob) -> dict[str, Any]:
    return {
        "lanes": pack_lanes(shown, traces, blob),
        "tasks": _pack_tasks(shown, traces.start_ns, blob) if shown.facts.get("has_tasks") else None,
    }


# ---- tasks


def _pack_tasks(shown: Shown, base: int, blob: Blob) -> dict[str, Any]:
    """Of each lane a row: its task, and of each step the time since the one before, its length, 1 + what it awaits,
    the function that waits, the lane of the task that is awaited, and what woke it: 0, or 1 + its lane, thread, id and
    how long before.
    """
    lanes = shown.task_lanes(lambda share: None)
    groups = describe_groups(shown, lanes, base)
    words: set[tuple[int, int]] = set()
    rows, steps_left, left_out = [], STEPS_MAX, lanes.left_out()
    for group in groups:
        for at, task in enumerate(lanes.tasks(group["first"], group["tasks"])):
            name, start, end, steps, running, awaiting, became, _ = task
            found = lanes.steps(group["first"] + at)
            left_out += max(0, len(found) - steps_left)
            found = found[:steps_left]
            steps_left -= len(found)
            place = [len(found), *blob.add(varints(_steps(found, base)))]
            rows.append([name or UNNAMED, start - base, end - base, steps, running, awaiting, became, *place])
            words.update((step[2], step[3]) for step in found if step[2] >= 0)
    told = {f"{kind} {function}": awaits(kind, _function(shown, function)) for kind, function in sorted(words)}
    return {"groups": groups, "left_out": left_out, "lanes": rows, "awaits": told, "end_ns": shown.end_ns - base}


def _function(shown: Shown, number: int) -> tuple[int, str, str, str, int] | None:
    return shown.functions[number] if 0 < number < len(shown.functions) else None


def _steps(steps: list[tuple[int, int, int, int, int, tuple[int, int, int, int] | None]], base: int) -> Iterable[int]:
    before = base
    for start, end, kind, awaiting, awaited, waker in steps:
        yield from (start - before, end - start, 1 + kind, awaiting, awaited)
        if waker is None:
            yield 0
        else:
            lane, thread, number, time = waker
            yield from (1 + lane, thread, number, start - time)
        before = end
