"""What the page asks about marks: exceptions, and instants that the program marks itself."""

from __future__ import annotations

import struct

from vestige.reading.kinds import INSTANT
from vestige.reading.metadata import load_json

from .answers import Answer, as_json
from .calls import call_around

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from vestige._core import Marks

    from .fields import Fields
    from .server import Request
    from .traces import Shown, Traces

    Mark = tuple[int, int, int, str, int, int, str | None]

LISTED = 50  # marks in one answer; a picture merges what is close
THREAD_MAX = (1 << 32) - 1


class MarkAnswers:
    """Answers about the marks of a set of traces."""

    def __init__(self, traces: Traces) -> None:
        self._traces = traces
        self.calls: dict[tuple[str, str], Callable[[Request, Fields], Answer]] = {
            ("GET", "marks"): self._threads,
            ("GET", "marks/draw"): self._draw,
            ("GET", "marks/at"): self._at,
        }

    def _threads(self, request: Request, fields: Fields) -> Answer:
        """Which threads have any: they get a strip for them."""
        marks = self._marks(request, fields)
        if marks is None:
            return as_json({"threads": [], "left_out": 0})
        return as_json({"threads": marks.threads(), "left_out": marks.left_out()})

    def _draw(self, request: Request, fields: Fields) -> Answer:
        """For each thread asked for, the parts of the range that have marks."""
        marks = self._marks(request, fields)
        start, end = fields.range()
        parts = fields.pixels()
        threads = fields.numbers("threads") or []
        if marks is None:
            return as_json([[] for _ in threads])
        start, end = self._absolute(start), self._absolute(end)
        return as_json([marks.draw(thread, start, end, parts) for thread in threads])

    def _at(self, request: Request, fields: Fields) -> Answer:
        """The marks of a thread in a range: how many there are, and the first of them."""
        shown, marks = self._shown(fields), self._marks(request, fields)
        start, end = fields.range()
        thread = fields.number("thread", 0, THREAD_MAX)
        if marks is None:
            return as_json({"count": 0, "marks": []})
        count, rows = marks.between(thread, self._absolute(start), self._absolute(end), LISTED)
        return as_json({"count": count, "marks": [self._describe(shown, mark) for mark in rows]})

    # ---- search

    def add_found(
        self, request: Request, fields: Fields, ids: Sequence[int], counts: list[int], start: int, end: int
    ) -> list[int]:
        """Adds to the spans that a search found in each pixel the marks there."""
        wanted = self._instants(fields, ids)
        marks = self._marks(request, fields) if wanted else None
        if marks is None:
            return counts
        found = marks.find(wanted, self._absolute(start), self._absolute(end), len(counts))
        return [count + more for count, (more,) in zip(counts, struct.iter_unpack("<I", found))]

    def nearest(
        self, request: Request, fields: Fields, ids: Sequence[int], after: int, back: bool
    ) -> dict[str, Any] | None:
        """The next mark with one of these ids; `after` is absolute."""
        wanted = self._instants(fields, ids)
        marks = self._marks(request, fields) if wanted else None
        mark = marks.next(wanted, after, back) if marks is not None else None
        if mark is None:
            return None
        time = mark[1] - self._traces.start_ns
        return {"thread": mark[0], "start_ns": time, "end_ns": time, "id": mark[2], "depth": 0, "mark": True}

    # ---- what they share

    def _describe(self, shown: Shown, mark: Mark) -> dict[str, Any]:
        described = describe_mark(shown, mark, self._traces.start_ns)
        return {**described, "call": call_around(shown, mark[0], mark[1], mark[4], self._traces.start_ns)}

    def _instants(self, fields: Fields, ids: Sequence[int]) -> list[int]:
        functions = self._shown(fields).functions
        return [each for each in ids if each < len(functions) and (entry := functions[each]) and entry[0] == INSTANT]

    def _shown(self, fields: Fields) -> Shown:
        return self._traces[fields.number("trace", 0, 1 << 20, default=0)]

    def _marks(self, request: Request, fields: Fields) -> Marks | None:
        shown = self._shown(fields)
        return shown.marks(request.check) if shown.has_marks else None

    def _absolute(self, time: int) -> int:
        return self._traces.start_ns + time


def describe_mark(shown: Shown, mark: Mark, base: int) -> dict[str, Any]:
    """What it is and where; `call` is not filled."""
    thread, time, number, end, raised_in, caught_in, args = mark
    entry = shown.functions[number] if number < len(shown.functions) else None
    return {
        "thread": thread,
        "time_ns": time - base,
        "id": number,
        "name": entry[1] if entry else "",
        "file": entry[2] if entry and end else None,
        "line": entry[4] if entry and end else 0,
        "end": end,
        "raised_in": raised_in,
        "caught_in": caught_in,
        "args": read_members(args) if args else None,
    }


def read_members(text: str) -> dict[str, Any]:
    """The arguments of an instant are members of a JSON object."""
    members = load_json("{" + text + "}")
    return members if isinstance(members, dict) else {"args": text}
