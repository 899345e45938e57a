"""Compares timelines in Chrome's JSON with the execution trace of the same run: numbers of record functions ("rf_id"
and "Record function id"), names, threads, and nesting.
"""

from __future__ import annotations

from collections import Counter
from types import NoneType

from .node import PROCESS, USER
from .stream import Document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .graph import Graph

    Say = Callable[[int | None, str], None]

SLACK = 0.0021  # in µs, because times are rounded to nanoseconds


class Event:
    """A span of the timeline with the number of a record function."""

    __slots__ = ("begin", "end", "name", "path", "rf_id", "track")

    def __init__(self, path: str, rf_id: int, event: dict[str, Any]) -> None:
        self.path = path
        self.rf_id = rf_id
        self.name = str(event.get("name"))
        self.track = (_key(event.get("pid")), _key(event.get("tid")))
        self.begin = _time(event.get("ts"))
        self.end = self.begin + _time(event.get("dur"))

    def holds(self, other: Event) -> bool:
        return self.begin <= other.begin + SLACK and other.end <= self.end + SLACK


def _time(value: Any) -> float:
    """Returns a time in µs; 0 if the value is not a number."""
    try:
        return float(value) if type(value) in (int, float) else 0.0
    except OverflowError:
        return 0.0


def _key(value: Any) -> Any:
    """Returns a key for a process, thread or category. An unhashable value is represented by its text."""
    return value if type(value) in (int, str, float, NoneType) else str(value)


class Timeline:
    """The events of files, which are windows of one run, by number. Raises the errors of Document."""

    def __init__(self) -> None:
        self.events: dict[int, Event] = {}
        self._repeated: list[Event] = []
        self._zeros: dict[str, list[str]] = {}  # by file

    def read(self, path: str, progress: Callable[[float], None]) -> bool:
        """Adds a file. Returns whether it is a timeline."""
        open_: dict[Any, Event] = {}  # spans whose end is a separate event
        with Document(path, progress) as document:
            for event in document.elements("traceEvents"):
                if type(event) is dict and event.get("ph") in ("X", "b", "e"):
                    self._take(path, event, open_)
        return "traceEvents" in document.fields

    def _take(self, path: str, event: dict[str, Any], open_: dict[Any, Event]) -> None:
        key = _key(event.get("pid")), _key(event.get("cat")), _key(event.get("id"))
        if event["ph"] == "e":
            if key in open_:
                open_.pop(key).end = _time(event.get("ts"))
            return
        arguments = event.get("args")
        rf_id = arguments.get("Record function id") if type(arguments) is dict else None
        if type(rf_id) is not int:
            return
        if not rf_id:
            self._zeros.setdefault(path, []).append(str(event.get("name")))
            return
        found = Event(path, rf_id, event)
        if event["ph"] == "b":
            open_[key] = found
        if self.events.setdefault(rf_id, found) is not found:
            self._repeated.append(found)

    def compare(self, graph: Graph, say: Say, say_in: Callable[[str, int | None, str], None]) -> None:
        """Compares with the graph. Reports defects of a node by `say`, of a timeline by `say_in`."""
        for path, names in self._zeros.items():
            say_in(path, None, f"Record function id is 0 for {len(names):,} events, such as {names[0]}")
        for event in self._repeated:
            other = self.events[event.rf_id].name
            say_in(event.path, None, f"Record function id {event.rf_id} is that of {other} and of {event.name}")
        if self._zeros and not self.events:
            return
        places = {rf_id: place for place, rf_id in enumerate(graph.rf_ids) if rf_id}
        for rf_id, place in places.items():
            found = self.events.get(rf_id)
            if found is None:
                say(graph.ids[place], f"rf_id {rf_id} ({graph.names[place]}) is not on the timeline")
            elif found.name != graph.names[place]:
                say(graph.ids[place], f"is {graph.names[place]}, but on the timeline rf_id {rf_id} is {found.name}")
        for rf_id, event in self.events.items():
            if rf_id not in places:
                say_in(event.path, None, f"{event.name} (Record function id {rf_id}) is not a node")
        for place in self._compare_threads(graph, places, say):
            del places[graph.rf_ids[place]]
        self._compare_nesting(graph, places, say)

    def _compare_threads(self, graph: Graph, places: dict[int, int], say: Say) -> set[int]:
        """Compares threads. Returns the places of nodes that run on another thread than the one they work for, as the
        work of process groups does: such a node has the number of the requesting thread, and no operators below it.
        """
        tracks: dict[int, Counter[Any]] = {}
        for rf_id, place in places.items():
            event = self.events.get(rf_id)
            if event is not None:
                tracks.setdefault(graph.tids[place], Counter())[event.track] += 1
        own = {tid: found.most_common(1)[0][0] for tid, found in tracks.items()}
        parents: set[int] | None = None
        elsewhere = set()
        for rf_id, place in places.items():
            event = self.events.get(rf_id)
            if event is None or event.track == own[graph.tids[place]]:
                continue
            parents = set(graph.parents) if parents is None else parents
            if graph.scopes[place] == USER and graph.ids[place] not in parents:
                elsewhere.add(place)
                continue
            tid = graph.tids[place]
            there = f"which is tid {own[tid][1]} on the timeline, but its event is on {event.track[1]}"
            say(graph.ids[place], f"is on thread {tid}, {there}")
        return elsewhere

    def _compare_nesting(self, graph: Graph, places: dict[int, int], say: Say) -> None:
        """Compares nesting: the event of a node's parent must be the innermost event around the node's own. If times
        are equal, either may be.
        """
        inside = self._find_outer(places)
        for rf_id, place in places.items():
            event = self.events.get(rf_id)
            above = graph.places.get(graph.parents[place])
            if event is None or above is None or graph.names[above] == PROCESS:
                continue
            outer = inside.get(rf_id)
            parent = self.events.get(graph.rf_ids[above])
            if parent is outer or (parent is None and graph.rf_ids[above]):
                continue
            if parent is None:
                if outer is not None and not event.holds(outer):
                    where = f"{outer.name} (rf_id {outer.rf_id})"
                    say(graph.ids[place], f"is the first of its thread, but on the timeline in {where}")
            elif not parent.holds(event) or parent.track != event.track:
                say(graph.ids[place], f"is not in its parent, node {graph.ids[above]} ({parent.name}), on the timeline")
            elif outer is not None and not outer.holds(parent) and not event.holds(outer):
                where = f"{outer.name} (rf_id {outer.rf_id})"
                say(graph.ids[place], f"is in {where} on the timeline, but its parent is {parent.name}")

    def _find_outer(self, places: dict[int, int]) -> dict[int, Event]:
        """Returns the innermost event around each event, among events of nodes."""
        tracks: dict[Any, list[Event]] = {}
        for event in self.events.values():
            if event.rf_id in places:
                tracks.setdefault((event.path, event.track), []).append(event)
        inside = {}
        for events in tracks.values():
            events.sort(key=lambda event: (event.begin, -event.end, event.rf_id))
            stack: list[Event] = []
            for event in events:
                while stack and not stack[-1].holds(event):
                    stack.pop()
                if stack:
                    inside[event.rf_id] = stack[-1]
                stack.append(event)
        return inside
