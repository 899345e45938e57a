"""What the page asks about asyncio's tasks and greenlets: their lanes, pictures of these, and what woke whom.

Lanes have numbers (<vestige/task_lanes.h>): groups first, which are all tasks of a coroutine function on a thread, then
tasks.
"""

from __future__ import annotations

from vestige.reading.awaits import awaits

from .answers import Answer, Problem, as_json
from .pictures import draw_lanes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vestige._core import TaskLanes

    from .fields import Fields
    from .server import Request
    from .traces import Shown, Traces

WAKES_MAX = 200  # arrows in one picture; more would hide it
TASKS_MAX = 1_000_000  # names in one answer
NUMBER_MAX = (1 << 32) - 1
UNNAMED = "greenlet"  # asyncio names all tasks; a greenlet has a name only if the program gave it one


def _name(lanes: TaskLanes, lane: int) -> str:
    name: str = lanes.tasks(lane, 1)[0][0]
    return name or UNNAMED


class TaskAnswers:
    """Answers about the tasks of a set of traces."""

    def __init__(self, traces: Traces) -> None:
        self._traces = traces
        self.calls: dict[tuple[str, str], Callable[[Request, Fields], Answer]] = {
            ("GET", "tasks"): self._groups,
            ("GET", "tasks/names"): self._names,
            ("GET", "tasks/window"): self._window,
            ("GET", "tasks/at"): self._at,
            ("GET", "tasks/wakes"): self._wakes,
        }

    def _groups(self, request: Request, fields: Fields) -> Answer:
        shown = self._shown(fields)
        if not shown.facts.get("has_tasks"):
            return as_json({"groups": [], "left_out": 0})
        lanes = shown.task_lanes(request.check)
        groups = describe_groups(shown, lanes, self._traces.start_ns)
        return as_json({"groups": groups, "left_out": lanes.left_out()})

    def _names(self, request: Request, fields: Fields) -> Answer:
        """[name, start, end] of each lane of some that follow each other."""
        lanes, base = self._lanes(request, fields), self._traces.start_ns
        first, count = fields.number("first", 0, NUMBER_MAX), fields.number("count", 1, TASKS_MAX)
        rows = lanes.tasks(first, count)
        return as_json([(name or UNNAMED, start - base, end - base) for name, start, end, *_ in rows])

    def _window(self, request: Request, fields: Fields) -> Answer:
        return draw_lanes(self._lanes(request, fields), fields, self._traces.start_ns)

    def _at(self, request: Request, fields: Fields) -> Answer:
        shown, lanes = self._shown(fields), self._lanes(request, fields)
        found = lanes.at(fields.number("lane", 0, NUMBER_MAX), self._absolute(fields.number("time")))
        return as_json(found and self._describe(shown, lanes, found))

    def _wakes(self, request: Request, fields: Fields) -> Answer:
        """Where arrows begin and end, if they are few enough to be seen."""
        start, end = fields.range()
        numbers, base = fields.numbers("lanes") or [], self._traces.start_ns
        rows, count = self._lanes(request, fields).wakes(self._absolute(start), self._absolute(end), numbers, WAKES_MAX)
        arrows = [{"lane": row["lane"], "time_ns": row["start_ns"] - base, "waker": self._waker(row)} for row in rows]
        return as_json({"arrows": arrows, "count": count})

    # ---- what they share

    def _describe(self, shown: Shown, lanes: TaskLanes, found: dict[str, Any]) -> dict[str, Any]:
        base, awaiting = self._traces.start_ns, found["awaiting"]
        function = shown.functions[awaiting] if 0 < awaiting < len(shown.functions) else None
        place = shown.places[awaiting] if function else None
        waker = self._waker(found)
        if waker and waker["lane"]:
            waker["task"] = _name(lanes, waker["lane"])
        _, _, _, steps, running, awaited, end, _ = lanes.tasks(found["lane"], 1)[0]
        return {
            **found,
            "start_ns": found["start_ns"] - base,
            "end_ns": found["end_ns"] - base,
            "waker": waker,
            "task": {
                "name": _name(lanes, found["lane"]),
                "steps": steps,
                "running_ns": running,
                "awaiting_ns": awaited,
                "end": end,
            },
            "awaits": None if found["awaits"] < 0 else awaits(found["awaits"], function),
            "function": place[1] if place else None,
            "awaited_task": _name(lanes, found["awaited"]) if found["awaited"] else None,
        }

    def _waker(self, found: dict[str, Any]) -> dict[str, Any] | None:
        waker = found["waker"]
        return waker and {**waker, "time_ns": waker["time_ns"] - self._traces.start_ns}

    def _shown(self, fields: Fields) -> Shown:
        shown = self._traces[fields.number("trace", 0, 1 << 20, default=0)]
        _ = shown.view  # its index must be there: that tells whether there are tasks
        return shown

    def _lanes(self, request: Request, fields: Fields) -> TaskLanes:
        shown = self._shown(fields)
        if not shown.facts.get("has_tasks"):
            raise Problem(404, "the trace has no tasks")
        return shown.task_lanes(request.check)

    def _absolute(self, time: int) -> int:
        return self._traces.start_ns + time


def describe_groups(shown: Shown, lanes: TaskLanes, base: int) -> list[dict[str, Any]]:
    wrappers = set(shown.wrappers)
    return [
        {
            "lane": lane,
            "thread": thread,
            "id": function,
            "first": first,
            "tasks": count,
            "steps": steps,
            "start_ns": start - base,
            "end_ns": end - base,
            "running_ns": running,
            "awaiting_ns": awaiting,
            "task": _name(lanes, first) if count == 1 or function in wrappers else None,
        }
        for lane, (thread, function, first, count, steps, start, end, running, awaiting) in enumerate(lanes.groups())
    ]
