"""Traces as data inside of one page, for `vestige view --html`: every span exactly, and all that the server would tell.

A container is a length (u32), that many bytes of JSON, zeros up to a multiple of 8, and a blob to which the JSON refers
by [offset, length]. Spans lie in rows, by thread and depth; a row is varints (7 bits each, low first), three a span in
order of start: the gap since the span before it ended (the first: since the timeline began), its duration, and its id
with flags above bit 24 as the server's rectangles have them. Spans of a row never overlap: one that would lies further
down.
"""

from __future__ import annotations

import gzip
import struct
from array import array

from vestige.reading.kinds import INSTANT

from .answers import to_json
from .api import describe, describe_loss, describe_track, name_table, read_args, read_points, source_of
from .embed_lanes import pack_lanes
from .left_out import describe_left_out
from .sources import Sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .traces import Shown, Traces

SPANS_MAX = 2_000_000
BYTES_MAX = 50 << 20  # of the page
ARGS_MAX = 8 << 20  # bytes of text, of all arguments
PIXELS = 1 << 14  # points of a counter's curve, at most
# Rows of Trace.events(), see python/ext/read/trace_events.c: eleven words of 8 bytes, or 22 of 4.
WORDS, HALVES = 11, 22
START, END, ARGS_AT, SELF_BYTES, TOTAL_BYTES = 0, 1, 3, 4, 5
ID, PARENT, THREAD, FLAGS, ARGS_LENGTH = 13, 14, 17, 18, 19
ASYNC = 64
MACHINERY = 512  # a frame of the import system
BITS = {4: 1 << 24, ASYNC: 1 << 25, 1: 1 << 26, 2: 1 << 27}  # flags of spans, and of rectangles


class TooLarge(Exception):
    """More than a page should hold."""


def pack(traces: Traces, sources: Sources | None = None) -> bytes:
    """All of it, compressed. The indexes must have been built. By default, only noted files give source lines."""
    sources = sources or Sources(only_noted=True)
    blob = Blob()
    if sum(shown.facts.get("spans", 0) for shown in traces) > SPANS_MAX:
        raise TooLarge(f"more than {SPANS_MAX:,} spans")
    info = describe(traces)
    packed = [_pack_trace(shown, traces, facts, blob, sources) for shown, facts in zip(traces, info["traces"])]
    body = to_json({"info": info, "traces": packed}).encode()
    head = struct.pack("<I", len(body)) + body
    return gzip.compress(head + bytes(-len(head) % 8) + bytes(blob.bytes), compresslevel=6, mtime=0)


class Blob:
    """Bytes, in pieces that begin at multiples of 8."""

    def __init__(self) -> None:
        self.bytes = bytearray()

    def add(self, piece: bytes | bytearray) -> list[int]:
        at = len(self.bytes)
        self.bytes += piece
        self.bytes += bytes(-len(self.bytes) % 8)
        return [at, len(piece)]


def _pack_trace(shown: Shown, traces: Traces, facts: dict[str, Any], blob: Blob, sources: Sources) -> dict[str, Any]:
    """Also sets in `facts` how many rows each thread needs."""
    if not shown.ready:
        nothing: dict[str, Any] = {"rows": [], "memory": None, "args": [], "counters": [], "losses": [], "sources": {}}
        nothing |= {"left_out": None, "lanes": {}}
        return {"names": name_table(shown), **nothing}
    block, text, _ = shown.open().events(all_windows=True, fold_imports=traces.fold_imports)
    rows = Rows(block, folded=traces.fold_imports)
    ranks = sorted(rows.lanes)
    depths = rows.depths()
    for thread in facts["threads"]:
        thread["depth"], thread["levels"] = depths.get(thread["number"], 0), rows.levels.get(thread["number"], 0)
    start, end = traces.start_ns, max(traces.end_ns, traces.start_ns + 1)
    counters = shown.view.counters(start, end, PIXELS)
    losses = shown.view.losses(start, end)
    raised = {number for number, entry in enumerate(shown.functions) if entry and entry[0] == INSTANT}
    found = {number: source_of(sources, shown, number) for number in sorted(raised | rows.shown_ids())}
    return {
        "names": name_table(shown),
        "rows": [[*rank, len(rows.lanes[rank]), *blob.add(rows.spans(rank, start))] for rank in ranks],
        "memory": [blob.add(rows.memory(rank)) for rank in ranks] if shown.source.facts["memory"] else None,
        "args": list(_args(rows, ranks, text)),
        "counters": [_pack_counter(shown, track, end - start, blob) for track in counters],
        "losses": [describe_loss(row, traces.start_ns) for row in losses],
        "left_out": describe_left_out(shown, traces.start_ns) if facts["left_out"] else None,
        "waits": {kind: bool(shown.source.facts.get(kind)) for kind in ("switches", "gil_waits", "object_waits")},
        "sources": {str(number): lines for number, lines in found.items() if lines is not None},
        "lanes": pack_lanes(shown, traces, blob),
    }


class Rows:
    """The spans of a trace, by where they are drawn: (thread, depth) to their numbers, in order of start."""

    def __init__(self, block: memoryview, *, folded: bool) -> None:
        self._hidden = MACHINERY if folded else 0
        words, halves = block.cast("q"), block.cast("i")
        self.starts, self.ends = words[START::WORDS].tolist(), words[END::WORDS].tolist()
        self.self_bytes, self.total_bytes = words[SELF_BYTES::WORDS].tolist(), words[TOTAL_BYTES::WORDS]
        self.args_at, self.args_length = words[ARGS_AT::WORDS], halves[ARGS_LENGTH::HALVES].tolist()
        self.ids, self.flags = halves[ID::HALVES].tolist(), halves[FLAGS::HALVES].tolist()
        self.threads, self.parents = halves[THREAD::HALVES].tolist(), halves[PARENT::HALVES].tolist()
        self.lanes: dict[tuple[int, int], array[int]] = {}
        self._last: dict[tuple[int, int], int] = {}  # when the last span of a lane ends
        self._place()

    def spans(self, rank: tuple[int, int], base: int) -> bytearray:
        packed = bytearray()
        starts, ends, ids, flags = self.starts, self.ends, self.ids, self.flags
        bits = [sum(bit for flag, bit in BITS.items() if value & flag) for value in range(128)]
        before = base
        for span in self.lanes[rank]:
            start = max(starts[span], before)  # in a damaged trace, times may be anything
            end = max(ends[span], start)
            for value in (start - before, end - start, ids[span] | bits[flags[span] & 127]):
                while value > 127:
                    packed.append(value & 127 | 128)
                    value >>= 7
                packed.append(value)
            before = end
        return packed

    def memory(self, rank: tuple[int, int]) -> bytearray:
        packed = bytearray()
        for span in self.lanes[rank]:
            put(packed, max(self.self_bytes[span], 0))
            put(packed, max(self.total_bytes[span], 0))
        return packed

    def _place(self) -> None:
        """Parents come before their children, so a span lies below its parent. Those beside the stack lie below all
        of their thread's. What lies in one that is hidden moves up, and what that one allocated by itself is its
        caller's."""
        depths: list[int] = []
        visible: list[int] = []  # itself, or the one around it that is
        beside = []
        for span, (parent, thread, flags) in enumerate(zip(self.parents, self.threads, self.flags)):
            inside = parent >= 0 and self.threads[parent] == thread
            depth = depths[parent] + 1 if inside else 0
            visible.append(span)
            if flags & ASYNC:
                beside.append(span)
                depths.append(depth - 1)  # as if it were not there
            elif flags & self._hidden:
                depths.append(depth - 1)
                visible[span] = visible[parent] if inside else span
                self.self_bytes[visible[span]] += self.self_bytes[span] if inside else 0
            else:
                depths.append(self._put(span, depth))
        self.levels = self.depths()
        for span in beside:
            self._put(span, self.levels.get(self.threads[span], 0))

    def shown_ids(self) -> set[int]:
        return {self.ids[span] for lane in self.lanes.values() for span in lane}

    def depths(self) -> dict[int, int]:
        """How many rows threads have so far."""
        found: dict[int, int] = {}
        for thread, depth in self.lanes:
            found[thread] = max(found.get(thread, 0), depth + 1)
        return found

    def _put(self, span: int, depth: int) -> int:
        """At that depth, or the next below where there is room."""
        rank = self.threads[span], depth
        start = self.starts[span]
        while self._last.get(rank, start) > start:
            rank = rank[0], rank[1] + 1
        self._last[rank] = self.ends[span]
        lane = self.lanes.get(rank)
        if lane is None:
            lane = self.lanes[rank] = array("I")
        lane.append(span)
        return rank[1]


def _args(rows: Rows, ranks: list[tuple[int, int]], text: memoryview) -> Iterable[list[Any]]:
    """The arguments of spans, as many as fit."""
    left = ARGS_MAX
    for number, rank in enumerate(ranks):
        for k, span in enumerate(rows.lanes[rank]):
            length = rows.args_length[span]
            if 0 < length <= left:
                left -= length
                at = rows.args_at[span]
                yield [number, k, read_args(bytes(text[at : at + length]).decode("utf-8", "replace"))]


def _pack_counter(shown: Shown, track: dict[str, Any], length: int, blob: Blob) -> dict[str, Any]:
    """Its last value in each of many short stretches."""
    points = read_points(track)
    times = array("d", (length * point[0] / PIXELS for point in points))
    values = array("d", (point[3] for point in points))
    return {
        **describe_track(shown, track),
        "count": len(points),
        "times": blob.add(times.tobytes())[0],
        "values": blob.add(values.tobytes())[0],
    }


def put(packed: bytearray, value: int) -> None:
    """A varint."""
    while value > 127:
        packed.append(value & 127 | 128)
        value >>= 7
    packed.append(value)
