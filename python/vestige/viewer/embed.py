"""Traces as data inside one page, for `vestige view --html`: every call exactly, and everything that the server would
answer.

A container is a length (u32), that many bytes of JSON, zeros up to a multiple of 8, and a blob to which the JSON refers
by [offset, length]. Everything drawn is stored as lanes (embed_lanes.py), calls too:
a row of their lane is a depth of a thread. Calls of a row never overlap; a call that would overlap is in a deeper row.
"""

from __future__ import annotations

import gzip
import struct

from .answers import to_json
from .api import describe, name_table, source_of
from .embed_lanes import pack_lanes
from .sources import Sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .traces import Shown, Traces

SPANS_MAX = 2_000_000
BYTES_MAX = 50 << 20  # the largest page


class TooLarge(Exception):
    """Raised if the data is too large for a page."""


def pack(traces: Traces, sources: Sources | None = None) -> bytes:
    """Returns the container with all traces, compressed. The indexes must have been built. By default, only files that
    the recording noted give source lines.
    """
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
    """Collects pieces of bytes; each piece begins at a multiple of 8."""

    def __init__(self) -> None:
        self.bytes = bytearray()

    def add(self, piece: bytes | bytearray) -> list[int]:
        at = len(self.bytes)
        self.bytes += piece
        self.bytes += bytes(-len(self.bytes) % 8)
        return [at, len(piece)]


def _pack_trace(shown: Shown, traces: Traces, facts: dict[str, Any], blob: Blob, sources: Sources) -> dict[str, Any]:
    """Packs a trace, and sets in `facts` how many rows each thread needs."""
    if not shown.ready:
        nothing: dict[str, Any] = {"sources": {}, "lanes": {}}
        return {"names": name_table(shown), **nothing}
    lanes = pack_lanes(shown, traces, blob)
    rows = {each["lane"]: each["rows"] for each in lanes["calls"]["lanes"]}
    for thread in facts["threads"]:
        thread["depth"] = rows.get(thread["number"], 0)
    found = {number: source_of(sources, shown, number) for number in range(len(shown.places))}
    return {
        "names": name_table(shown),
        "waits": {kind: bool(shown.source.facts.get(kind)) for kind in ("switches", "gil_waits", "object_waits")},
        "sources": {str(number): lines for number, lines in found.items() if lines is not None},
        "lanes": lanes,
    }
