"""Traces as data inside of one page, for `vestige view --html`: every call exactly, and all that the server would tell.

A container is a length (u32), that many bytes of JSON, zeros up to a multiple of 8, and a blob to which the JSON refers
by [offset, length]. What is drawn lies there as lanes (embed_lanes.py): calls, too, of which a row is a depth of a
thread. Calls of a row never overlap: one that would lies further down.
"""

from __future__ import annotations

import gzip
import struct

from .answers import to_json
from .api import describe, describe_loss, describe_track, name_table, read_points, source_of
from .embed_lanes import pack_lanes
from .left_out import describe_left_out
from .sources import Sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .traces import Shown, Traces

SPANS_MAX = 2_000_000
BYTES_MAX = 50 << 20  # of the page
PIXELS = 1 << 14  # points of a counter's curve, at most, as source_embedded.js knows


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
        nothing: dict[str, Any] = {"counters": [], "losses": [], "sources": {}, "left_out": None, "lanes": {}}
        return {"names": name_table(shown), **nothing}
    lanes = pack_lanes(shown, traces, blob)
    rows = {each["lane"]: each["rows"] for each in lanes["calls"]["lanes"]}
    for thread in facts["threads"]:
        thread["depth"] = rows.get(thread["number"], 0)
    start, end = traces.start_ns, max(traces.end_ns, traces.start_ns + 1)
    counters = shown.view.counters(start, end, PIXELS)
    losses = shown.view.losses(start, end)
    found = {number: source_of(sources, shown, number) for number in range(len(shown.places))}
    return {
        "names": name_table(shown),
        "counters": [{**describe_track(shown, track), "points": read_points(track)} for track in counters],
        "losses": [describe_loss(row, traces.start_ns) for row in losses],
        "left_out": describe_left_out(shown, traces.start_ns) if facts["left_out"] else None,
        "waits": {kind: bool(shown.source.facts.get(kind)) for kind in ("switches", "gil_waits", "object_waits")},
        "sources": {str(number): lines for number, lines in found.items() if lines is not None},
        "lanes": lanes,
    }
