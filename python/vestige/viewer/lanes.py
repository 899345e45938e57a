"""Answers to the page's requests about lanes: the lanes of a kind, their pictures, and their items. A lane has rows, a
row has items (src/view/lanes.h).
"""

from __future__ import annotations

import struct

from vestige.reading import activities
from vestige.reading.awaits import describe_awaits
from vestige.reading.kinds import INSTANT
from vestige.reading.metadata import load_json

from .answers import Answer, Problem, as_json, as_picture
from .calls import call_around
from .fields import LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from vestige._core import Lanes

    from .fields import Fields
    from .server import Request
    from .traces import Shown, Traces

KINDS = ("counters", "devices", "left_out", "losses", "marks", "states", "tasks")
# kinds that a search covers, and the kind of definition that names their items
SEARCHED = {"devices": activities.DEFINITION, "marks": INSTANT}
LISTED, LISTED_MAX = 50, 100_000  # items in one answer; a picture merges items that are close
LANES_MAX = 1_000_000  # the most lanes in one answer
LINKED = 200  # the most arrows in one picture; more would hide it
NUMBER_MAX = (1 << 32) - 1


class LaneAnswers:
    """Answers requests about the lanes of a set of traces."""

    def __init__(self, traces: Traces) -> None:
        self._traces = traces
        self.calls: dict[tuple[str, str], Callable[[Request, Fields], Answer]] = {
            ("GET", "lanes"): self._list,
            ("GET", "lanes/window"): self._window,
            ("GET", "lanes/at"): self._at,
            ("GET", "lanes/between"): self._between,
            ("GET", "call"): self._call,
        }

    def _list(self, request: Request, fields: Fields) -> Answer:
        shown, kind = self._shown(fields), _kind(fields)
        if not shown.has_lanes(kind):
            return as_json({"lanes": [], "left_out": [0, 0]})
        lanes = shown.lanes(kind, request.check)
        first, count = fields.number("first", 0, NUMBER_MAX, default=0), fields.optional("count", 1, LANES_MAX)
        if first > 0 or count is not None:  # the lanes that another lane shows as one
            return as_json({"lanes": list_lanes(lanes, self._traces.start_ns, first, count or 1)})
        (top,) = [each["first"] for each in lanes.lanes(0, 1)] or [0]
        described = {
            "lanes": list_lanes(lanes, self._traces.start_ns, 0, top or LANES_MAX),
            "left_out": lanes.left_out(),
        }
        return as_json({**described, **describe_kind(shown, kind)})

    def _window(self, request: Request, fields: Fields) -> Answer:
        (start, end), numbers = fields.range(), fields.numbers("lanes") or []
        lanes = self._lanes(request, fields)
        return as_picture(lanes.draw(self._absolute(start), self._absolute(end), fields.pixels(), numbers), start, end)

    def _at(self, request: Request, fields: Fields) -> Answer:
        lanes = self._lanes(request, fields)
        lane, row = fields.number("lane", 0, NUMBER_MAX), fields.number("row", 0, NUMBER_MAX, default=0)
        found = lanes.at(lane, row, self._absolute(fields.number("time")))
        return as_json(found and _describe_links(lanes, found, self._traces.start_ns))

    def _between(self, request: Request, fields: Fields) -> Answer:
        """Lists the items of some lanes that begin in a range: their number, and the first items."""
        lanes, base = self._lanes(request, fields), self._traces.start_ns
        start, end = fields.range()
        most = fields.number("most", 0, LISTED_MAX, default=LISTED)
        wanted = [each for number in fields.numbers("lanes") or [] for each in lanes.lanes(number, 1)]
        places = [(each["lane"], row) for each in wanted for row in range(each["rows"])]
        found = [lanes.between(*place, base + start, base + end, most) for place in places]
        items = sorted((each for _, row in found for each in row), key=lambda each: each["start_ns"])[:most]
        count = sum(count for count, _ in found)
        return as_json({"count": count, "items": [describe_item(each, base) for each in items]})

    def _call(self, request: Request, fields: Fields) -> Answer:
        """Finds the call of a function that is open at a time, or else the innermost open call."""
        shown, base = self._shown(fields), self._traces.start_ns
        thread, number = fields.number("thread", 0, NUMBER_MAX), fields.number("id", 0, NUMBER_MAX, default=0)
        return as_json(call_around(shown, thread, self._absolute(fields.number("time")), number, base))

    # ---- search

    def add_found(
        self, request: Request, fields: Fields, ids: Sequence[int], counts: list[int], start: int, end: int
    ) -> list[int]:
        """Adds the number of items in each pixel to the counts of spans that a search found."""
        for lanes, wanted, _ in self._searched(request, fields, ids):
            found = lanes.find(wanted, self._absolute(start), self._absolute(end), len(counts))
            counts = [count + more for count, (more,) in zip(counts, struct.iter_unpack("<I", found))]
        return counts

    def nearest(
        self, request: Request, fields: Fields, ids: Sequence[int], after: int, back: bool
    ) -> list[dict[str, Any] | None]:
        """Returns, for each kind, the next item with one of these ids; `after` is absolute."""
        base = self._traces.start_ns
        searched = [
            (lanes.next(wanted, after, back), kind) for lanes, wanted, kind in self._searched(request, fields, ids)
        ]
        return [found and {**describe_item(found, base), "lanes": kind} for found, kind in searched]

    def _searched(self, request: Request, fields: Fields, ids: Sequence[int]) -> list[tuple[Lanes, list[int], str]]:
        """Returns the kinds that may have items with these ids, each with the ids that name its items."""
        shown, searched = self._shown(fields), []
        for kind, what in SEARCHED.items():
            wanted = [
                each for each in ids if each < len(shown.places) and (place := shown.places[each]) and place[0] == what
            ]
            if wanted and not shown.live and shown.has_lanes(kind):
                searched.append((shown.lanes(kind, request.check), wanted, kind))
        return searched

    # ---- helpers

    def _shown(self, fields: Fields) -> Shown:
        return self._traces[fields.number("trace", 0, 1 << 20, default=0)]

    def _lanes(self, request: Request, fields: Fields) -> Lanes:
        shown, kind = self._shown(fields), _kind(fields)
        if not shown.has_lanes(kind):
            raise Problem(404, f"the trace has no {kind}")
        return shown.lanes(kind, request.check)

    def _absolute(self, time: int) -> int:
        return self._traces.start_ns + time


def _kind(fields: Fields) -> str:
    kind = fields.text("kind")
    if kind not in KINDS:
        raise Problem(400, f"kind: not one of {', '.join(KINDS)}")
    return kind


def list_lanes(lanes: Lanes, base: int, first: int = 0, count: int = NUMBER_MAX) -> list[dict[str, Any]]:
    found = lanes.lanes(first, count)
    return [{**each, "start_ns": each["start_ns"] - base, "end_ns": each["end_ns"] - base} for each in found]


def describe_item(found: dict[str, Any], base: int) -> dict[str, Any]:
    """Describes an item. Texts are members of a JSON object. Large numbers become text, because JavaScript's numbers
    are not exact.
    """
    described: dict[str, Any] = {}
    for name, value in found.items():
        is_large = isinstance(value, int) and value >= LIMIT
        described[name] = read_members(value) if isinstance(value, str) else str(value) if is_large else value
    return {**described, "start_ns": found["start_ns"] - base, "end_ns": found["end_ns"] - base}


def _describe_links(lanes: Lanes, found: dict[str, Any], base: int) -> dict[str, Any]:
    """Describes an item, the items that its facts name, and the items that came from it."""
    described = describe_item(found, base)
    for name, unit in lanes.facts():
        if unit in ("item", "origin"):
            item = lanes.item(found[name] - 1) if found[name] else None
            described[name] = item and describe_item(item, base)
    linked, count = lanes.linked(found["number"], LINKED)
    return {**described, "linked": [describe_item(each, base) for each in linked], "linked_count": count}


def describe_kind(shown: Shown, kind: str) -> dict[str, Any]:
    """Returns facts about a kind in addition to its lanes."""
    if kind == "tasks":
        return {"awaits": describe_awaits(shown.functions)}
    if kind != "devices":
        return {}
    devices = shown.source.facts["devices"]
    return {"devices": [{**each, "attributes": activities.read_attributes(each["attributes"])} for each in devices]}


def read_members(text: str) -> dict[str, Any]:
    members = load_json("{" + text + "}") if text else {}
    return members if isinstance(members, dict) else {"args": text}


def state_sums(shown: Shown, thread: int, start: int, end: int) -> list[int]:
    """Returns how long a thread waited off the processor, was preempted, and waited for the GIL."""
    states = shown.lanes("states")
    return next(
        (states.busy(each["lane"], start, end) for each in states.lanes() if each["thread"] == thread), [0, 0, 0]
    )
