"""The requests of the page, and their answers: turns names and numbers into calls of views, and results into JSON.
Times are nanoseconds from the beginning of the timeline (the earliest trace), so that JavaScript's numbers are exact.
Several threads of the server call this in parallel; they share the traces, which have locks.
"""

from __future__ import annotations

import os
import struct

from vestige.reading import activities
from vestige.reading.kinds import INSTANT, NAMES
from vestige.reading.metadata import load_json

from .answers import Answer, Problem, as_json, as_picture
from .exports import Tickets, Wanted
from .fields import Fields
from .lanes import LaneAnswers, state_sums
from .sources import Sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .follow import Follower
    from .server import Request
    from .traces import Shown, Traces

FLAGS = {
    1: "open at start",
    2: "open at end",
    4: "raised",
    8: "cut",
    16: "resumed",
    32: "suspended",
    64: "beside the stack",
}
ASYNC = 64
WAIT = 1.0  # seconds to wait for progress of an index
ROWS, ROWS_MAX = 20_000, 200_000  # rows of a flame graph: default and limit


class Api:
    """Answers requests about a set of traces."""

    def __init__(self, traces: Traces, follower: Follower | None = None) -> None:
        self.traces = traces
        self._follower = follower
        self.base = ""  # the server's own address, without the token
        self._sources = Sources()
        self._tickets = Tickets()
        self._lanes = LaneAnswers(traces)
        self._calls: dict[tuple[str, str], Callable[[Request, Fields], Answer]] = {
            ("GET", "info"): self._info,
            ("GET", "follow"): self._follow,
            ("GET", "progress"): self._progress,
            ("GET", "names"): self._names,
            ("GET", "window"): self._window,
            ("GET", "span"): self._span,
            ("GET", "source"): self._source,
            ("GET", "flame"): self._flame,
            ("POST", "imports"): self._imports,
            ("POST", "find"): self._find,
            ("POST", "next"): self._next,
            ("GET", "export"): self._export,
            ("GET", "handover"): self._handover,
            **self._lanes.calls,
        }

    def answer(self, request: Request) -> Answer:
        name = request.path.removeprefix("/api/")
        call = self._calls.get((request.method, name))
        if call is None:
            if any(known == name for _, known in self._calls):
                raise Problem(405, f"{request.path} does not answer {request.method}")
            raise Problem(404, "there is nothing at this address")
        return call(request, Fields(request.fields if request.method == "GET" else request.body))

    def hand_over(self, method: str, path: str, origin: str | None) -> Callable[[Callable[[float], None]], Answer]:
        """Checks another viewer's request for a file. Returns a function that makes the answer."""
        return self._tickets.redeem(method, path, origin)

    # ---- about the traces

    def _info(self, request: Request, fields: Fields) -> Answer:
        return as_json(describe(self.traces))

    def _follow(self, request: Request, fields: Fields) -> Answer:
        """Reads newly recorded data, then answers like _info()."""
        if self._follower is None:
            raise Problem(404, "this server does not follow recordings: start it with `vestige view --follow`")
        self._follower.refresh()
        return as_json(describe(self.traces))

    def _progress(self, request: Request, fields: Fields) -> Answer:
        if fields.flag("wait"):
            self.traces.wait(WAIT)
        current = self.traces.working_on
        rows = [
            {"trace": shown.number, "share": round(shown.share, 4), "ready": shown.ready, "error": shown.error}
            for shown in self.traces
        ]
        return as_json(
            {
                "ready": self.traces.finished,
                "share": round(self.traces.share, 4),
                "what": f"indexing {os.path.basename(current.source.path)}" if current else "",
                "traces": rows,
            }
        )

    def _names(self, request: Request, fields: Fields) -> Answer:
        return as_json(name_table(self._shown(fields)))

    def _imports(self, request: Request, fields: Fields) -> Answer:
        """Folds imports, or shows them with all of their frames. Builds the indexes anew."""
        self.traces.show_imports(folded=not fields.flag("all"))
        return as_json({"folded": self.traces.fold_imports})

    # ---- pictures

    def _window(self, request: Request, fields: Fields) -> Answer:
        shown = self._shown(fields)
        start, end = fields.range()
        pixels = fields.pixels()
        threads = fields.numbers("threads")
        depth = fields.number("depth", 0, 1 << 20, default=0)
        data = shown.view.window(self._absolute(start), self._absolute(end), pixels, threads=threads, max_depth=depth)
        return as_picture(data, start, end)

    # ---- about spans

    def _span(self, request: Request, fields: Fields) -> Answer:
        shown = self._shown(fields)
        thread, depth = fields.number("thread", 0, (1 << 32) - 1), fields.number("depth", 0, 1 << 20)
        time = self._absolute(fields.number("time"))
        span = shown.view.span_at(thread, depth, time)
        return as_json(None if span is None else self._describe_span(shown, span))

    def _describe_span(self, shown: Shown, span: dict[str, Any]) -> dict[str, Any]:
        base = self.traces.start_ns
        number = span["id"]
        kind, name, file, line = place_of(shown, number)
        parents = [
            {
                "id": one["id"],
                "name": place_of(shown, one["id"])[1],
                "start_ns": one["start_ns"] - base,
                "end_ns": one["end_ns"] - base,
                "depth": depth,
            }
            for depth, one in enumerate(span["parents"])
        ]
        return {
            **span,
            "kind": NAMES.get(kind, "?"),
            "name": name,
            "file": file,
            "line": line,
            "start_ns": span["start_ns"] - base,
            "end_ns": span["end_ns"] - base,
            "flags": flag_names(span["flags"]),
            "args": read_args(span["args"]),
            "parents": parents,
            "source": self._lines(shown, number),
            **self._times(shown, span),
        }

    def _times(self, shown: Shown, span: dict[str, Any]) -> dict[str, int]:
        """Returns how long a span ran and waited, as far as the trace knows. A span that is not on the stack may run on
        several threads, so its times are unknown.
        """
        facts, times = shown.source.facts, {}
        if not shown.has_states or span["flags"] & ASYNC:
            return {}
        waiting, preempted, gil = state_sums(shown, span["thread"], span["start_ns"], span["end_ns"])
        if facts["switches"]:
            times = {
                "running_ns": span["end_ns"] - span["start_ns"] - waiting - preempted,
                "waiting_ns": waiting,
                "preempted_ns": preempted,
            }
        if facts.get("object_waits"):
            return {**times, "object_ns": gil}
        return {**times, "gil_ns": gil} if facts["gil_waits"] else times

    def _source(self, request: Request, fields: Fields) -> Answer:
        return as_json(self._lines(self._shown(fields), fields.number("id", 0, (1 << 32) - 1)))

    def _lines(self, shown: Shown, number: int) -> dict[str, Any] | None:
        return source_of(self._sources, shown, number)

    def _flame(self, request: Request, fields: Fields) -> Answer:
        shown = self._shown(fields)
        start, end = fields.range()
        threads = fields.numbers("threads")
        limit = fields.number("limit", 1, ROWS_MAX, default=ROWS)
        rows, left_out = shown.view.flame(
            self._absolute(start), self._absolute(end), threads=threads, limit=limit, progress=request.check
        )
        return as_json({"rows": {name: list(rows[name]) for name in rows.columns}, "left_out": left_out})

    # ---- search

    def _find(self, request: Request, fields: Fields) -> Answer:
        shown = self._shown(fields)
        ids = fields.numbers("ids") or []
        start, end = fields.range()
        pixels = fields.pixels()
        threads = fields.numbers("threads")
        counts = shown.view.find(
            ids, self._absolute(start), self._absolute(end), pixels, threads=threads, progress=request.check
        )
        numbers = [count for (count,) in struct.iter_unpack("<I", counts)]
        numbers = self._lanes.add_found(request, fields, ids, numbers, start, end)
        return as_json({"total": sum(numbers), "counts": numbers})

    def _next(self, request: Request, fields: Fields) -> Answer:
        shown = self._shown(fields)
        ids = fields.numbers("ids") or []
        thread = fields.optional("thread", 0, (1 << 32) - 1)
        after = self._absolute(fields.number("after"))
        back = fields.flag("back")
        found = shown.view.next(ids, thread, after, back=back, progress=request.check)
        if found is not None:
            base = self.traces.start_ns
            found = {**found, "start_ns": found["start_ns"] - base, "end_ns": found["end_ns"] - base}
        candidates = [found]
        if thread is None:
            candidates += self._lanes.nearest(request, fields, ids, after, back)
        nearest = max if back else min
        known = (each for each in candidates if each is not None)
        return as_json(nearest(known, key=lambda each: each["start_ns"], default=None))

    # ---- for other viewers

    def _export(self, request: Request, fields: Fields) -> Answer:
        return self._wanted(fields).write(request.check)

    def _handover(self, request: Request, fields: Fields) -> Answer:
        return as_json(self._tickets.give(self._wanted(fields), self.base))

    def _wanted(self, fields: Fields) -> Wanted:
        numbers = fields.numbers("traces")
        traces = [self.traces[number] for number in numbers] if numbers else self.traces.all
        start, end = fields.optional("from"), fields.optional("to_ns")
        if start is not None and end is not None and start >= end:
            raise Problem(400, "from must be less than to_ns")
        return Wanted(
            fields.text("to"),
            traces,
            None if start is None else self._absolute(start),
            None if end is None else self._absolute(end),
        )

    # ---- helpers

    def _shown(self, fields: Fields) -> Shown:
        return self.traces[fields.number("trace", 0, 1 << 20, default=0)]

    def _absolute(self, time: int) -> int:
        return self.traces.start_ns + time


def describe(traces: Traces) -> dict[str, Any]:
    """Describes the traces and their threads, for the page's first request."""
    from vestige import __version__

    return {
        "version": __version__,
        "start_ns": str(traces.start_ns),
        "duration_ns": traces.end_ns - traces.start_ns,
        "first_shown_ns": traces.first_shown_ns,
        "ready": traces.finished,
        "imports_folded": traces.fold_imports,
        "follows": any(shown.follows for shown in traces),
        "live": traces.follow,
        "traces": [_describe_trace(shown, traces.start_ns) for shown in traces],
    }


def _describe_trace(shown: Shown, base: int) -> dict[str, Any]:
    source, facts = shown.source, shown.source.facts
    index = None
    if shown.ready:
        index = {"path": shown.facts["index_path"], "bytes": shown.facts["index_bytes"], "built": shown.facts["built"]}
    return {
        "trace": shown.number,
        "title": source.title,
        "name": source.name,
        "file": source.path,
        "pid": facts["pid"],
        "rank": source.rank,
        "start_ns": shown.start_ns - base,
        "end_ns": shown.end_ns - base,
        "ready": shown.ready,
        "error": shown.error,
        "records": shown.facts.get("records", facts["records"]),
        "spans": shown.facts.get("spans", 0),
        "memory": facts["memory"],
        "ended": source.ended,
        "lost": facts["lost"],
        "dropped": facts["dropped"],
        "budget": source.metadata.get("vestige.budget"),
        "damaged_at": facts["damaged_at"],
        "windows": facts["windows"],
        # These need a reading of all records, which would be out of date immediately.
        "states": shown.has_states and not shown.live,
        "tasks": bool(shown.facts.get("has_tasks")) and not shown.live,
        "marks": shown.has_marks and not shown.live,
        "left_out": shown.has_lanes("left_out") and not shown.live,
        "devices": shown.has_devices and not shown.live,
        "devices_not_followed": shown.has_devices and shown.live,
        "functions": len(shown.places),
        "bytes": facts["bytes"],
        "index": index,
        "threads": [_describe_thread(thread, shown, base) for thread in shown.threads or source.threads],
    }


def _describe_thread(thread: dict[str, Any], shown: Shown, base: int) -> dict[str, Any]:
    """Describes a thread. If it has no spans, or its spans are not counted yet, it is as long as its trace."""
    spans = thread.get("spans", 0)
    return {
        "number": thread["number"],
        "tid": thread["tid"],
        "name": thread["name"],
        "depth": thread.get("depth", 0),
        "levels": thread.get("levels", 0),
        "start_ns": (thread["start_ns"] if spans else shown.start_ns) - base,
        "end_ns": (thread["end_ns"] if spans else shown.end_ns) - base,
        "spans": spans,
    }


def name_table(shown: Shown) -> dict[str, Any]:
    """Returns the kind and the place of each id."""
    kinds = {**NAMES, activities.DEFINITION: "activity"}
    return {"kinds": {str(number): kind for number, kind in kinds.items()}, "names": shown.places}


def place_of(shown: Shown, number: int) -> tuple[int, str, str | None, int]:
    place = shown.places[number] if 0 <= number < len(shown.places) else None
    return place or (0, f"unknown function {number}", None, 0)


def source_of(sources: Sources, shown: Shown, number: int) -> dict[str, Any] | None:
    kind, _, file, line = place_of(shown, number)
    folder, noted = os.path.dirname(shown.source.path) or ".", shown.noted.get(file or "")
    return sources.lines(file, line, shown.source.facts["end_ns"], folder, noted, around=kind == INSTANT)


def flag_names(flags: int) -> list[str]:
    return [name for bit, name in FLAGS.items() if flags & bit]


def read_args(text: str | None) -> dict[str, Any] | None:
    """Parses a span's arguments, which are the members of a JSON object."""
    if not text:
        return None
    members = load_json("{" + text + "}")
    return members if isinstance(members, dict) else {"args": text}
