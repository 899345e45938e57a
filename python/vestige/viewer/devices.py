"""What the page asks about devices: lanes of their streams and of the calls that threads made of them, pictures of
these, and what came from what.

Lanes and activities have numbers (<vestige/device_lanes.h>).
"""

from __future__ import annotations

import struct

from vestige.reading import activities

from .answers import Answer, Problem, as_json
from .calls import call_around
from .pictures import draw_lanes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from vestige._core import DeviceLanes

    from .fields import Fields
    from .server import Request
    from .traces import Shown, Traces

NUMBER_MAX = (1 << 32) - 1
LAUNCHED_MAX = 200  # arrows in one picture; more would hide it
COPIED = (activities.COPY, activities.SET)


class DeviceAnswers:
    """Answers about the devices of a set of traces."""

    def __init__(self, traces: Traces) -> None:
        self._traces = traces
        self.calls: dict[tuple[str, str], Callable[[Request, Fields], Answer]] = {
            ("GET", "devices"): self._describe_all,
            ("GET", "devices/window"): self._window,
            ("GET", "devices/at"): self._at,
        }

    def _describe_all(self, request: Request, fields: Fields) -> Answer:
        shown = self._shown(fields)
        if not shown.has_devices:
            return as_json({"devices": [], "lanes": [], "left_out": [0, 0]})
        lanes = shown.device_lanes(request.check)
        return as_json(
            {
                "devices": describe_devices(shown),
                "lanes": describe_lanes(shown, lanes, self._traces.start_ns),
                "left_out": lanes.left_out(),
            }
        )

    def _window(self, request: Request, fields: Fields) -> Answer:
        return draw_lanes(self._lanes(request, fields), fields, self._traces.start_ns)

    def _at(self, request: Request, fields: Fields) -> Answer:
        shown, lanes = self._shown(fields), self._lanes(request, fields)
        lane, row = fields.number("lane", 0, NUMBER_MAX), fields.number("row", 0, NUMBER_MAX)
        found = lanes.at(lane, row, self._absolute(fields.number("time")))
        return as_json(found and self._describe(shown, lanes, found))

    # ---- search

    def add_found(
        self, request: Request, fields: Fields, ids: Sequence[int], counts: list[int], start: int, end: int
    ) -> list[int]:
        """Adds to what a search found in each pixel the activities there."""
        shown = self._shown(fields)
        if not shown.has_devices or shown.live or not ids:
            return counts
        lanes = shown.device_lanes(request.check)
        found = lanes.find(ids, self._absolute(start), self._absolute(end), len(counts))
        return [count + more for count, (more,) in zip(counts, struct.iter_unpack("<I", found))]

    def nearest(
        self, request: Request, fields: Fields, ids: Sequence[int], after: int, back: bool
    ) -> dict[str, Any] | None:
        """The next activity with one of these ids; `after` is absolute."""
        shown = self._shown(fields)
        if not shown.has_devices or shown.live or not ids:
            return None
        found = shown.device_lanes(request.check).next(ids, after, back)
        if found is None:
            return None
        start, end = found["start_ns"] - self._traces.start_ns, found["end_ns"] - self._traces.start_ns
        place = {"lane": found["lane"], "depth": found["row"], "id": found["id"]}
        return {**place, "start_ns": start, "end_ns": end, "device": True}

    # ---- what they share

    def _describe(self, shown: Shown, lanes: DeviceLanes, found: dict[str, Any]) -> dict[str, Any]:
        call = lanes.get(found["launch"] - 1) if found["launch"] else None
        made_in = call or found  # a call itself
        numbers, count = lanes.launched(found["number"], LAUNCHED_MAX)
        launched = [each for number in numbers if (each := lanes.get(number)) is not None]
        lane = lanes.lanes()[made_in["lane"]]
        thread, start = lane[2], made_in["start_ns"]
        return {
            **describe_activity(shown, found, self._traces.start_ns),
            "stream": activities.stream_number(lanes.lanes()[found["lane"]][1]),
            "launch": call and {**self._brief(shown, call), "thread": thread},
            "launched": [self._brief(shown, each) for each in launched],
            "launched_count": count,
            "op": self._cause(shown, found["op"], thread, start),
            "annotation": self._cause(shown, found["annotation"], thread, start),
        }

    def _brief(self, shown: Shown, found: dict[str, Any]) -> dict[str, Any]:
        base = self._traces.start_ns
        return {
            "lane": found["lane"],
            "row": found["row"],
            "id": found["id"],
            "name": name_of(shown, found["id"]),
            "start_ns": found["start_ns"] - base,
            "end_ns": found["end_ns"] - base,
        }

    def _cause(self, shown: Shown, cause: tuple[int, int], thread: int, time: int) -> dict[str, Any] | None:
        """The operator or annotation that a call was made in, and where the timeline shows it."""
        serial, number = cause
        if not serial:
            return None
        call = call_around(shown, thread, time, number, self._traces.start_ns) if thread else None
        place = call if call is not None and call["id"] == number else None
        return {"id": number, "name": name_of(shown, number), "thread": thread, "call": place}

    def _shown(self, fields: Fields) -> Shown:
        return self._traces[fields.number("trace", 0, 1 << 20, default=0)]

    def _lanes(self, request: Request, fields: Fields) -> DeviceLanes:
        shown = self._shown(fields)
        if not shown.has_devices:
            raise Problem(404, "the trace has no devices")
        return shown.device_lanes(request.check)

    def _absolute(self, time: int) -> int:
        return self._traces.start_ns + time


def name_of(shown: Shown, number: int) -> str:
    place = shown.places[number] if 0 <= number < len(shown.places) else None
    return place[1] if place else f"unknown activity {number}"


def describe_devices(shown: Shown) -> list[dict[str, Any]]:
    return [
        {**device, "attributes": activities.read_attributes(device["attributes"])}
        for device in shown.source.facts["devices"]
    ]


def describe_lanes(shown: Shown, lanes: DeviceLanes, base: int) -> list[dict[str, Any]]:
    streams = {
        (device["number"], stream["number"]): stream
        for device in shown.source.facts["devices"]
        for stream in device["streams"]
    }
    return [
        {
            "lane": lane,
            "device": device,
            "stream": activities.stream_number(stream),
            "thread": thread,
            "rows": rows,
            "activities": count,
            "start_ns": start - base,
            "end_ns": end - base,
            "busy_ns": busy,
            "bytes": size,
            "name": streams.get((device, stream), {}).get("name") or "",
        }
        for lane, (device, stream, thread, rows, _, count, start, end, busy, size) in enumerate(lanes.lanes())
    ]


def describe_activity(shown: Shown, found: dict[str, Any], base: int) -> dict[str, Any]:
    """What it is, and where; not what it came from."""
    kind, length = found["kind"], found["end_ns"] - found["start_ns"]
    return {
        "lane": found["lane"],
        "row": found["row"],
        "id": found["id"],
        "name": name_of(shown, found["id"]),
        "kind": activities.NAMES.get(kind, "?"),
        "start_ns": found["start_ns"] - base,
        "end_ns": found["end_ns"] - base,
        "device": 0 if kind in activities.ON_THREAD else found["device"],
        "context": found["context"],
        "correlation": str(found["correlation"]),
        "external": str(found["external"]) if found["external"] else None,
        "bytes": found["bytes"] if kind in COPIED else None,
        "bandwidth": activities.bandwidth(found["bytes"], length) if kind in COPIED else None,
        "args": activities.read_attributes(found["args"]),
    }
